//! A borrowed server under a controller that may be interrupted after every single step: whatever happens, it is changed
//! only while what it had is in the status, and in the end it is as it was and nothing of ours is left.

use crds::audit::AuditType;
use crds::names::condition::{ORIGINAL_STATE_RESTORED, READY, STALLED};
use crds::target::{External, OriginalState, Permissions, RestartRoute, RunReference, TargetType};
use proptest::prelude::*;

use super::condition::{is_true, message, reason};
use super::holder::{self, BootWanted, Claimant};
use super::tests::{at, view};
use super::*;

const OWN: i64 = 42;

/// The world outside of the planner.
#[allow(clippy::struct_excessive_bools)] // each a thing that can be or not
#[derive(Clone, Debug)]
struct World {
    view: TargetView,
    /// The one value of the server.
    value: i64,
    /// Whether the server was told that it is borrowed.
    borrowed: bool,
    started: i64,
    up: bool,
    runner: bool,
    second: i64,
    gone: bool,
}

fn world() -> World {
    let mut view = view();
    view.spec.type_ = TargetType::External;
    view.spec.managed = None;
    view.spec.external = Some(External {
        host: "db.example".into(),
        permissions: Permissions {
            restart: true,
            ..Permissions::default()
        },
        restart: Some(RestartRoute::default()),
        ..External::default()
    });
    World {
        view,
        value: OWN,
        borrowed: false,
        started: 1_700_000_000,
        up: true,
        runner: false,
        second: 0,
        gone: false,
    }
}

impl World {
    /// One reconcile; `steps` is how many single steps are done before the operator is killed.
    fn reconcile(&mut self, mut steps: usize) {
        self.second += 1;
        self.view.server = ServerAnswer::NotAsked;
        self.view.borrowed.captured = CaptureAnswer::NotAsked;
        self.view.borrowed.restored = RestoreAnswer::NotAsked;
        self.view.borrowed.restart_sent = false;
        for _ in 0..16 {
            if self.gone {
                return;
            }
            let plan = plan(&self.view, at(self.second));
            if plan.status != self.view.status {
                if steps == 0 {
                    return;
                }
                steps -= 1;
                self.view.status = plan.status;
            }
            self.view.holder_gone = false;
            let Some(action) = plan.action else {
                return;
            };
            if steps == 0 {
                return;
            }
            steps -= 1;
            self.act(&action);
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::AddFinalizer => self.view.borrowed.finalized = true,
            Action::RemoveFinalizer => {
                self.view.borrowed.finalized = false;
                assert!(
                    self.view.status.original_state.is_none(),
                    "there is something to put back"
                );
                self.gone = self.view.terminating;
            }
            Action::Identify { .. } => {
                self.view.server = if self.up {
                    ServerAnswer::Identity(Box::new(ServerFound {
                        version: "10.11.14-MariaDB".into(),
                        flavour: "MariaDB".into(),
                        server_identity: "u".into(),
                        started: self.started,
                        ..ServerFound::default()
                    }))
                } else {
                    ServerAnswer::Silent
                };
            }
            Action::Capture => {
                assert!(self.view.borrowed.finalized, "captured without a finalizer");
                assert_eq!(self.value, OWN, "captured after a change");
                self.borrowed = true;
                let state = OriginalState {
                    parameters: [("v".to_owned(), self.value.to_string())].into(),
                    ..OriginalState::default()
                };
                self.view.borrowed.captured = CaptureAnswer::Captured(Box::new(state), Vec::new());
            }
            Action::Restore => {
                self.view.borrowed.restored = if self.runner {
                    RestoreAnswer::Busy("run-1".into())
                } else if self.up {
                    if let Some(state) = &self.view.status.original_state {
                        self.value = state.parameters["v"].parse().unwrap();
                    }
                    self.borrowed = false;
                    RestoreAnswer::Done(Vec::new())
                } else {
                    RestoreAnswer::Failed("no answer".into())
                };
            }
            Action::RestartBy(_) => {
                self.started += 100;
                self.view.borrowed.restart_sent = true;
                self.view.server = ServerAnswer::NotAsked;
            }
            other => panic!("{other:?} is for managed servers"),
        }
    }

    fn held(&self) -> bool {
        holder::held(self.view.status.holder.as_ref())
    }

    /// A run of the holder changes the server, as it may once what it had is in the status and it is ready.
    fn change(&mut self) {
        let ready = is_true(&self.view.status.conditions, READY);
        if self.held() && self.view.status.original_state.is_some() && ready && self.up {
            self.value += 1;
            self.runner = true;
        }
    }

    fn take(&mut self, boot: bool) {
        if self.view.status.boot.is_none() || self.view.terminating || self.held() {
            return;
        }
        let claimant = Claimant {
            kind: holder::CAMPAIGN.into(),
            name: "c".into(),
            uid: "c".into(),
        };
        let run = RunReference {
            name: "r".into(),
            uid: "r".into(),
        };
        let boot = boot.then(|| BootWanted {
            parameters: crds::parameter::Parameters::new(),
            audit: crds::audit::AuditSetting::default(),
        });
        holder::take(&mut self.view.status, &claimant, run, boot);
    }
}

fn settle(world: &mut World) {
    for _ in 0..20 {
        world.reconcile(usize::MAX);
    }
}

#[test]
fn a_borrowed_server_is_known_held_restarted_and_given_back() {
    let mut world = world();
    settle(&mut world);
    assert_eq!(reason(&world.view.status.conditions, READY), Some("Running"));
    assert!(
        !world.view.borrowed.finalized && !world.borrowed,
        "nothing is done before somebody holds it"
    );
    world.take(true);
    settle(&mut world);
    let status = &world.view.status;
    assert!(world.view.borrowed.finalized && status.original_state.is_some());
    let boot = status.boot.clone().unwrap();
    assert_eq!(
        (boot.serial, boot.identity.as_str()),
        (1, "u@db.example/1700000100")
    );
    assert_eq!(boot.address, "db.example");
    world.change();
    assert_eq!(world.value, OWN + 1);
    let quiet = world.view.status.clone();
    settle(&mut world);
    assert_eq!(world.view.status, quiet, "nothing happens while it is held");
    // The load generator has not ended yet.
    holder::release(&mut world.view.status);
    settle(&mut world);
    assert_eq!(world.value, OWN + 1);
    assert_eq!(reason(&world.view.status.conditions, READY), Some("Restoring"));
    world.runner = false;
    settle(&mut world);
    assert_eq!(world.value, OWN);
    assert!(is_true(&world.view.status.conditions, ORIGINAL_STATE_RESTORED));
    assert!(!world.view.borrowed.finalized && world.view.status.original_state.is_none());
}

#[test]
fn what_cannot_be_put_back_comes_with_its_statement_and_keeps_the_target() {
    let mut world = world();
    settle(&mut world);
    world.take(false);
    settle(&mut world);
    holder::release(&mut world.view.status);
    let mut view = world.view;
    view.borrowed.restored =
        RestoreAnswer::Done(vec![("v is `2`, it was `1`".into(), "SET GLOBAL v = 1".into())]);
    let plan = plan(&view, at(99));
    assert_eq!(plan.action, None);
    assert!(plan.status.original_state.is_some() && plan.requeue.is_some());
    let said = message(&plan.status.conditions, ORIGINAL_STATE_RESTORED).unwrap();
    assert!(said.contains("Run: SET GLOBAL v = 1;"), "{said}");
    assert!(is_true(&plan.status.conditions, STALLED));
}

#[test]
fn what_the_owner_does_not_permit_is_said() {
    let mut world = world();
    settle(&mut world);
    world.take(true);
    world.view.borrowed.finalized = true;
    let mut recording = world.view.clone();
    recording.borrowed.captured = CaptureAnswer::Captured(Box::default(), vec![AuditType::GeneralLog]);
    let status = plan(&recording, at(9)).status;
    assert_eq!(reason(&status.conditions, STALLED), Some("AuditNotPermitted"));
    assert!(status.original_state.is_none());
    world.view.spec.external.as_mut().unwrap().permissions.restart = false;
    settle(&mut world);
    let failure = world.view.status.boot_failure.clone().unwrap();
    assert_eq!((failure.serial, failure.reason.as_str()), (1, "RestartRefused"));
}

#[derive(Clone, Debug)]
enum Event {
    Reconcile(usize),
    Take(bool),
    Change,
    RunnerEnds,
    Release,
    HolderGone,
    Down(bool),
    Delete,
    Wait,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0usize..8).prop_map(Event::Reconcile),
        3 => any::<bool>().prop_map(Event::Take),
        3 => Just(Event::Change),
        2 => Just(Event::RunnerEnds),
        2 => Just(Event::Release),
        1 => Just(Event::HolderGone),
        1 => any::<bool>().prop_map(Event::Down),
        1 => Just(Event::Delete),
        1 => Just(Event::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_server_is_in_the_end_as_it_was(events in prop::collection::vec(event(), 0..60)) {
        let mut world = world();
        for event in events {
            match event {
                Event::Reconcile(steps) => world.reconcile(steps),
                Event::Take(boot) => world.take(boot),
                Event::Change => world.change(),
                Event::RunnerEnds => world.runner = false,
                Event::Release if !world.runner => holder::release(&mut world.view.status),
                Event::Release => {}
                Event::HolderGone => world.view.holder_gone = world.held(),
                Event::Down(down) => world.up = !down,
                Event::Delete => world.view.terminating = true,
                Event::Wait => world.second += 400,
            }
            // Whoever changed it can be undone, and the target stays until it is.
            if world.value != OWN {
                prop_assert!(world.view.status.original_state.is_some() && world.view.borrowed.finalized && !world.gone);
            }
            prop_assert!(world.view.status.original_state.is_none() || world.view.borrowed.finalized);
        }
        // Everybody lets go and the server answers.
        world.up = true;
        world.runner = false;
        holder::release(&mut world.view.status);
        settle(&mut world);
        prop_assert_eq!(world.value, OWN);
        prop_assert!(!world.borrowed && !world.view.borrowed.finalized);
        prop_assert!(world.view.status.original_state.is_none());
        let before = world.view.status.clone();
        settle(&mut world);
        prop_assert_eq!(world.view.status, before, "quiet when done");
    }
}
