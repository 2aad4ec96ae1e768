//! Transitions of a target, one test a rule.

use crds::audit::AuditSetting;
use crds::names::condition::{READY, RECONCILING, STALLED};
use crds::parameter::Parameters;
use crds::target::{
    BenchmarkTargetSpec, BenchmarkTargetStatus, Engine, Expect, IdleTargets, Managed, RunReference,
    TargetType,
};
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;

use super::holder::{BootWanted, CAMPAIGN, Claimant};
use super::*;

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(super) fn view() -> TargetView {
    TargetView {
        generation: 1,
        terminating: false,
        spec: BenchmarkTargetSpec {
            engine: Engine::MariaDB,
            type_: TargetType::Managed,
            expect: None,
            managed: Some(Managed {
                image: "mariadb:11.8".into(),
                ..Managed::default()
            }),
            external: None,
        },
        status: BenchmarkTargetStatus::default(),
        configuration: Ok("c0ffee".into()),
        parts: Parts {
            secret: true,
            service: true,
            volume: true,
            log_volume: true,
            configuration: true,
        },
        name_taken: None,
        refused: None,
        pod: None,
        server: ServerAnswer::NotAsked,
        holder_gone: false,
        borrowed: Borrowed::default(),
    }
}

pub(super) fn running(uid: &str, container: &str) -> PodView {
    PodView {
        uid: uid.into(),
        serial: 0,
        configuration_hash: "c0ffee".into(),
        outdated: false,
        created_at: at(0),
        deleted_at: None,
        node: Some("node-1".into()),
        address: Some("198.19.0.7".into()),
        unschedulable: None,
        failed: None,
        image_id: Some("sha256:server".into()),
        init: ContainerState::Ended(Exit::default()),
        database: ContainerState::Running {
            id: container.into(),
            started_at: Some(at(1)),
        },
        agent: ContainerState::Running {
            id: "agent".into(),
            started_at: Some(at(1)),
        },
    }
}

pub(super) fn found() -> ServerAnswer {
    ServerAnswer::Identity(Box::new(ServerFound {
        version: "11.8.3-MariaDB".into(),
        flavour: "MariaDB".into(),
        server_identity: "s".into(),
        started: at(1).as_second(),
        ..ServerFound::default()
    }))
}

/// A target whose server has booted and is idle.
pub(super) fn booted() -> TargetView {
    let mut view = view();
    view.pod = Some(running("p1", "c1"));
    view.server = found();
    view.status = plan(&view, at(2)).status;
    view.server = ServerAnswer::NotAsked;
    view
}

pub(super) fn take(view: &mut TargetView, run: &str, boot: bool) {
    let claimant = Claimant {
        kind: CAMPAIGN.into(),
        name: "c".into(),
        uid: "cu".into(),
    };
    let wanted = boot.then(|| BootWanted {
        parameters: Parameters::new(),
        audit: AuditSetting::default(),
    });
    holder::take(
        &mut view.status,
        &claimant,
        RunReference {
            name: run.into(),
            uid: run.into(),
        },
        wanted,
    );
}

fn ready(plan: &TargetPlan) -> (&str, &str) {
    let condition = plan.status.conditions.iter().find(|c| c.type_ == READY).unwrap();
    (condition.status.as_str(), condition.reason.as_str())
}

#[test]
fn everything_around_the_pod_is_made_first_and_in_order() {
    let mut view = view();
    view.parts = Parts::default();
    let mut made = Vec::new();
    loop {
        match plan(&view, at(0)).action {
            Some(Action::Create(part)) => {
                made.push(part);
                match part {
                    Part::Secret => view.parts.secret = true,
                    Part::Service => view.parts.service = true,
                    Part::Volume => view.parts.volume = true,
                    Part::LogVolume => view.parts.log_volume = true,
                    Part::Configuration => view.parts.configuration = true,
                }
            }
            Some(Action::CreatePod {
                serial,
                configuration_hash,
                node,
            }) => {
                assert_eq!((serial, configuration_hash.as_str(), node), (0, "c0ffee", None));
                break;
            }
            other => panic!("{other:?} after {made:?}"),
        }
    }
    let order = [
        Part::Secret,
        Part::Service,
        Part::Volume,
        Part::LogVolume,
        Part::Configuration,
    ];
    assert_eq!(made, order);
}

#[test]
fn a_running_server_is_asked_and_then_left_alone() {
    let mut view = view();
    view.pod = Some(running("p1", "c1"));
    let asked = plan(&view, at(2));
    assert_eq!(
        asked.action,
        Some(Action::Identify {
            address: "198.19.0.7".into()
        })
    );
    view.server = ServerAnswer::Silent;
    assert_eq!(plan(&view, at(2)).requeue, Some(ASK_EVERY));
    let view = booted();
    let boot = view.status.boot.as_ref().unwrap();
    assert_eq!((boot.identity.as_str(), boot.serial), ("p1/c1", 0));
    assert_eq!(view.status.node.as_deref(), Some("node-1"));
    let quiet = plan(&view, at(1000));
    assert_eq!(
        (quiet.action, quiet.requeue),
        (None, None),
        "no polling while a run may be measured"
    );
    assert_eq!(quiet.status, view.status);
}

#[test]
fn a_boot_request_replaces_the_pod_on_the_same_node() {
    let mut view = booted();
    take(&mut view, "r1", true);
    let delete = plan(&view, at(10));
    assert_eq!(
        delete.action,
        Some(Action::DeletePod {
            uid: "p1".into(),
            newer_than_request: false
        })
    );
    assert_eq!(
        delete.status, view.status,
        "a usual restart costs no write of its own"
    );
    view.pod.as_mut().unwrap().deleted_at = Some(at(10));
    let ending = plan(&view, at(11));
    assert_eq!(ending.action, None);
    assert_eq!(
        ready(&plan(&view, at(40))),
        ("False", "Booting"),
        "a slow one is shown"
    );
    view.pod = None;
    let create = plan(&view, at(12));
    let expected = Action::CreatePod {
        serial: 1,
        configuration_hash: "c0ffee".into(),
        node: Some("node-1".into()),
    };
    assert_eq!(create.action, Some(expected));
    view.pod = Some(PodView {
        serial: 1,
        ..running("p2", "c2")
    });
    view.server = found();
    let done = plan(&view, at(15));
    assert_eq!(done.status.boot.as_ref().unwrap().serial, 1);
    assert_eq!(ready(&done), ("True", "Running"));
}

#[test]
fn a_pod_that_answers_a_later_request_is_looked_at_live_before_it_is_deleted() {
    let mut view = booted();
    take(&mut view, "r1", true);
    view.pod = Some(PodView {
        serial: 7,
        ..running("p9", "c9")
    });
    let expected = Action::DeletePod {
        uid: "p9".into(),
        newer_than_request: true,
    };
    assert_eq!(plan(&view, at(10)).action, Some(expected));
}

#[test]
fn idle_servers_stop_where_they_are_to_but_not_before_they_were_asked_once() {
    let mut view = view();
    view.spec.managed.as_mut().unwrap().idle = IdleTargets::Stop;
    assert!(
        matches!(plan(&view, at(0)).action, Some(Action::CreatePod { .. })),
        "nobody knows yet what it can do"
    );
    view.pod = Some(running("p1", "c1"));
    view.server = found();
    view.status = plan(&view, at(2)).status;
    view.server = ServerAnswer::NotAsked;
    assert!(matches!(
        plan(&view, at(3)).action,
        Some(Action::DeletePod { .. })
    ));
    view.pod = None;
    let stopped = plan(&view, at(5));
    assert_eq!(
        (stopped.action.is_none(), stopped.status.boot.is_none()),
        (true, true)
    );
    assert_eq!(ready(&stopped), ("True", "Stopped"));
    take(&mut view, "r1", true);
    assert!(matches!(
        plan(&view, at(6)).action,
        Some(Action::CreatePod { serial: 1, .. })
    ));
}

#[test]
fn a_crash_takes_the_boot_out_and_starts_the_server_again_as_another_boot() {
    let mut view = booted();
    take(&mut view, "r1", false);
    let exit = Exit {
        code: 137,
        reason: "OOMKilled".into(),
        message: String::new(),
    };
    view.pod.as_mut().unwrap().database = ContainerState::Ended(exit);
    let crashed = plan(&view, at(100));
    assert_eq!(crashed.status.boot, None);
    assert_eq!(ready(&crashed), ("False", "Crashed"));
    assert!(matches!(crashed.action, Some(Action::DeletePod { .. })));
    view.status = crashed.status;
    view.pod = None;
    assert!(matches!(
        plan(&view, at(101)).action,
        Some(Action::CreatePod { serial: 0, .. })
    ));
}

#[test]
fn a_server_without_its_agent_is_no_boot_and_is_not_stopped_under_its_holder() {
    let mut starting = view();
    starting.pod = Some(PodView {
        agent: ContainerState::Waiting(None),
        ..running("p1", "c1")
    });
    assert_eq!(
        plan(&starting, at(2)).action,
        None,
        "asked when the agent runs too"
    );
    let mut view = booted();
    take(&mut view, "r1", false);
    let exit = Exit {
        code: 2,
        reason: "Error".into(),
        message: "no such flag".into(),
    };
    view.pod.as_mut().unwrap().agent = ContainerState::Ended(exit);
    let failed = plan(&view, at(500));
    assert_eq!((failed.action, failed.status.boot), (None, None));
    let failure = failed.status.boot_failure.unwrap();
    assert_eq!((failure.serial, failure.reason.as_str()), (0, "AgentEnded"));
    holder::release(&mut view.status);
    assert!(matches!(
        plan(&view, at(500)).action,
        Some(Action::DeletePod { .. })
    ));
}

#[test]
fn a_failed_boot_is_told_with_the_end_of_the_servers_words_and_not_repeated_for_its_holder() {
    let mut view = booted();
    take(&mut view, "r1", true);
    let words = format!("{} unknown variable 'x=1'", "noise ".repeat(200));
    view.pod = Some(PodView {
        serial: 1,
        database: ContainerState::Ended(Exit {
            code: 7,
            reason: "Error".into(),
            message: words,
        }),
        ..running("p2", "c2")
    });
    let failed = plan(&view, at(50));
    let failure = failed.status.boot_failure.clone().unwrap();
    assert_eq!((failure.serial, failure.reason.as_str()), (1, "ServerEnded"));
    assert!(
        failure.message.ends_with("unknown variable 'x=1'") && failure.message.len() <= 512,
        "{failure:?}"
    );
    assert_eq!((failed.action, failed.requeue), (None, None));
    assert_eq!(ready(&plan(&view, at(50))), ("False", "BootFailed"));
    view.status = failed.status;
    take(&mut view, "r2", true);
    assert!(
        matches!(plan(&view, at(60)).action, Some(Action::DeletePod { .. })),
        "the next request is another try"
    );
}

#[test]
fn a_failed_boot_that_nobody_asked_for_is_tried_again_after_a_minute() {
    let mut view = view();
    view.pod = Some(PodView {
        init: ContainerState::Ended(Exit {
            code: 1,
            ..Exit::default()
        }),
        ..running("p", "c")
    });
    let failed = plan(&view, at(5));
    assert_eq!(
        (failed.action, failed.requeue),
        (None, Some(Duration::from_secs(55)))
    );
    assert!(condition::is_true(&failed.status.conditions, STALLED));
    view.status = failed.status;
    assert!(matches!(
        plan(&view, at(61)).action,
        Some(Action::DeletePod { .. })
    ));
}

#[rstest]
#[case("ErrImagePull", "ImagePullBackOff")]
#[case("ImagePullBackOff", "ImagePullBackOff")]
#[case("InvalidImageName", "InvalidImageName")]
#[case("CreateContainerConfigError", "CreateContainerConfigError")]
fn what_keeps_a_pod_from_starting_is_named_at_once(#[case] seen: &str, #[case] told: &str) {
    let mut view = view();
    take(&mut view, "r1", true);
    let waiting = ContainerState::Waiting(Some(Problem::new(seen, "no such image")));
    view.pod = Some(PodView {
        serial: 1,
        database: waiting,
        ..running("p", "c")
    });
    let shown = plan(&view, at(1));
    assert_eq!(ready(&shown), ("False", told));
    assert!(condition::is_true(&shown.status.conditions, RECONCILING));
    view.status = shown.status.clone();
    assert_eq!(plan(&view, at(2)).status, shown.status, "told once");
    let given_up = plan(&view, at(16 * 60));
    assert_eq!(given_up.status.boot_failure.unwrap().serial, 1);
}

#[test]
fn usual_waiting_is_not_worth_a_write() {
    let mut view = booted();
    take(&mut view, "r1", true);
    let waiting = ContainerState::Waiting(Some(Problem::new("PodInitializing", "")));
    view.pod = Some(PodView {
        serial: 1,
        database: waiting,
        created_at: at(10),
        ..running("p", "c")
    });
    let starting = plan(&view, at(12));
    assert_eq!(starting.status, view.status);
    assert_eq!(starting.requeue, Some(Duration::from_secs(13)));
}

#[test]
fn an_unexpected_server_needs_a_person() {
    let mut view = booted();
    view.spec.expect = Some(Expect {
        flavour: Some("MariaDB".into()),
        version: Some("10.11".into()),
    });
    let refused = plan(&view, at(3));
    assert!(condition::is_true(&refused.status.conditions, STALLED));
    assert_eq!(ready(&refused), ("False", "UnexpectedServer"));
    view.spec.expect = Some(Expect {
        flavour: Some("mariadb".into()),
        version: Some("11.8".into()),
    });
    assert_eq!(ready(&plan(&view, at(3))), ("True", "Running"));
}

#[test]
fn a_holder_that_is_gone_is_let_go_of() {
    let mut view = booted();
    take(&mut view, "r1", true);
    let epoch = view.status.holder.as_ref().unwrap().epoch;
    view.holder_gone = true;
    let status = plan(&view, at(3)).status;
    assert!(!holder::held(status.holder.as_ref()));
    assert_eq!(status.holder.unwrap().epoch, epoch);
}

#[test]
fn what_can_never_run_is_said() {
    let mut empty = view();
    empty.spec.managed = None;
    let mut taken = view();
    taken.name_taken = Some("Service t belongs to somebody else".into());
    let mut broken = view();
    broken.configuration = Err("datadir cannot be set".into());
    let expect = |view: &TargetView, reason: &str| {
        let plan = plan(view, at(0));
        assert_eq!((ready(&plan), &plan.action), (("False", reason), &None));
    };
    expect(&empty, "Incomplete");
    expect(&taken, "WaitingForCleanup");
    expect(&broken, "ConfigurationRefused");
}

#[test]
fn a_configuration_that_cannot_be_made_fails_the_boot_that_asked_for_it() {
    let mut view = booted();
    take(&mut view, "r1", true);
    view.pod = None;
    view.configuration = Err("datadir cannot be set".into());
    let failed = plan(&view, at(3));
    assert_eq!(failed.status.boot_failure.unwrap().serial, 1);
    assert_eq!(failed.action, None);
}

#[test]
fn what_is_left_of_a_span_is_never_more_than_the_span() {
    let span = SignedDuration::from_secs(10);
    assert_eq!(
        remaining(at(100), span, at(0)),
        Some(Duration::from_secs(10)),
        "the other clock is ahead"
    );
    assert_eq!(remaining(at(0), span, at(4)), Some(Duration::from_secs(6)));
    assert_eq!(remaining(at(0), span, at(10)), None);
}
