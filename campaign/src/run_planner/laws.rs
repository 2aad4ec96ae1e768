//! Laws of a run that hold whatever happens around it: a small world of target, leases, Jobs and crashes, driven by
//! random events, in which every plan is carried out.

use crds::run::{BenchmarkRunStatus, Finding, Step};
use crds::runner::RunOutcome;
use crds::target::BootFailure;
use proptest::prelude::*;

use super::tests::{at, boot, ended, proven, report, target, view};
use super::*;
use crate::target_planner::holder;

/// Something that happens around the run.
#[derive(Clone, Debug)]
enum Happening {
    /// The target's controller answers the last boot request, with a new server.
    Booted,
    /// It could not.
    BootFailed,
    /// The server crashed and came back as another boot of the same request.
    Crashed,
    /// The server is down.
    Down,
    /// Somebody let go of the target on our behalf, or somebody else holds it.
    HeldByOther,
    Released,
    /// The load generator ended.
    Reported(u8),
    /// Its pod is gone.
    Lost,
    /// The Job is gone without a trace.
    JobVanished,
    /// The operator was restarted and remembers nothing.
    Restarted,
    /// Time passes.
    Later(u16),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => Just(Happening::Booted),
        1 => Just(Happening::BootFailed),
        1 => Just(Happening::Crashed),
        1 => Just(Happening::Down),
        1 => Just(Happening::HeldByOther),
        1 => Just(Happening::Released),
        4 => (0u8..8).prop_map(Happening::Reported),
        1 => Just(Happening::Lost),
        1 => Just(Happening::JobVanished),
        2 => Just(Happening::Restarted),
        2 => (0u16..400).prop_map(Happening::Later),
    ]
}

/// The run and all that it depends on.
struct World {
    view: RunView,
    second: i64,
    boots: i64,
    answers: Vec<u8>,
    jobs_made: u32,
    jobs_vanished: u32,
}

impl World {
    fn happen(&mut self, happening: &Happening) {
        let boots = self.boots;
        match happening {
            Happening::Booted | Happening::Crashed => {
                self.boots += 1;
                let status = target(&mut self.view);
                let serial = holder::request(status.holder.as_ref()).map_or(0, |b| b.serial);
                status.boot = Some(boot(serial, &format!("p{boots}/c{boots}")));
            }
            Happening::BootFailed => {
                let status = target(&mut self.view);
                let serial = holder::request(status.holder.as_ref()).map_or(0, |b| b.serial);
                status.boot_failure = Some(BootFailure {
                    serial,
                    reason: "ServerEnded".into(),
                    message: "m".into(),
                });
            }
            Happening::Down => target(&mut self.view).boot = None,
            Happening::HeldByOther => {
                let other = holder::Claimant {
                    kind: holder::CAMPAIGN.into(),
                    name: "o".into(),
                    uid: "ou".into(),
                };
                let run = crds::target::RunReference {
                    name: "o-1".into(),
                    uid: "or".into(),
                };
                holder::take(target(&mut self.view), &other, run, None);
            }
            Happening::Released => holder::release(target(&mut self.view)),
            Happening::Reported(kind) => {
                let epoch = self.view.run.status.epoch.unwrap_or_default();
                let mut report = crds::runner::RunReport { epoch, ..report() };
                match kind {
                    0 => report.outcome = RunOutcome::ToolFailed,
                    1 => report.outcome = RunOutcome::AlreadyStarted,
                    2 => report.run_uid = "other".into(),
                    3 => report.observed = None,
                    _ => {}
                }
                let view = ended(serde_json::to_string(&report).unwrap(), i32::from(*kind));
                for job in [&mut self.view.job, &mut self.view.prepare] {
                    if matches!(job, JobView::Active { .. }) {
                        *job = view.clone();
                    }
                }
            }
            Happening::Lost => {
                for job in [&mut self.view.job, &mut self.view.prepare] {
                    if matches!(job, JobView::Active { .. }) {
                        *job = JobView::Lost(Finding {
                            reason: "PodLost".into(),
                            message: "m".into(),
                        });
                    }
                }
            }
            Happening::JobVanished => {
                self.jobs_vanished += 1;
                self.view.job = JobView::Absent;
            }
            Happening::Restarted => {
                self.view.node = NodeLease::Unknown;
            }
            Happening::Later(seconds) => self.second += i64::from(*seconds),
        }
        self.view.established = None;
    }

    /// Plans and acts until there is nothing to do.
    fn act(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..60 {
            let now = at(self.second);
            let before = self.view.run.status.clone();
            let plan = plan(&self.view, now);
            prop_assert_eq!(
                &plan,
                &super::plan(&self.view, now),
                "the same view gives the same plan"
            );
            check_status(&before, &plan.status)?;
            if plan.status != before {
                if plan.status.prepare_job_name != before.prepare_job_name {
                    self.view.prepare = JobView::Absent;
                }
                self.view.run.status = plan.status;
                continue;
            }
            let Some(action) = plan.action else {
                return Ok(());
            };
            self.carry_out(action)?;
        }
        prop_assert!(false, "it never comes to rest: {:?}", self.view.run.status);
        Ok(())
    }

    fn carry_out(&mut self, action: Action) -> Result<(), TestCaseError> {
        let answer = self.answers.pop().unwrap_or(0);
        let finished = self.view.run.status.step == Step::Finished;
        let letting_go = matches!(action, Action::ReleaseNode { .. } | Action::ReleaseTarget(_));
        prop_assert!(
            !finished || letting_go,
            "after the end only what was held is let go: {action:?}"
        );
        match action {
            Action::TakeNode { .. } => {
                self.view.node = if answer % 4 == 3 {
                    NodeLease::Other("somebody".into())
                } else {
                    NodeLease::Ours
                };
            }
            Action::ReleaseNode { .. } => self.view.node = NodeLease::Unknown,
            Action::TakeTarget(status) => {
                prop_assert_eq!(
                    &self.view.node,
                    &NodeLease::Ours,
                    "the node is ours before the target"
                );
                *target(&mut self.view) = *status;
            }
            Action::RequestBoot(status) | Action::RecordDataset(status) | Action::ReleaseTarget(status) => {
                *target(&mut self.view) = *status;
            }
            Action::Establish { boot_identity } => {
                prop_assert_ne!(
                    self.view.run.status.step,
                    Step::Measuring,
                    "silence while measuring"
                );
                let load_runs = matches!(self.view.job, JobView::Active { .. });
                prop_assert!(!load_runs, "silence while load is applied");
                self.view.established = Some(match answer % 9 {
                    0..4 => proven(&boot_identity),
                    4 => Establishment::DatasetNeeded {
                        found: "nothing".into(),
                    },
                    5 => Establishment::Unreachable("m".into()),
                    6 => Establishment::Fenced { holder: "x".into() },
                    7 => Establishment::Started,
                    _ => Establishment::NotInForce(Vec::new()),
                });
            }
            Action::CreatePrepareJob { .. } => {
                prop_assert_eq!(self.view.run.status.step, Step::PreparingDataset);
                self.view.prepare = JobView::Active { pod: None };
            }
            Action::CreateJob { order, .. } => {
                let status = &self.view.run.status;
                prop_assert_eq!(
                    status.step,
                    Step::Measuring,
                    "the proof is written before the Job is made"
                );
                let proved = status.evidence.as_ref().map(|e| e.boot_identity.clone());
                let seen = self.view.target.as_ref().and_then(|t| t.status.boot.as_ref());
                prop_assert_eq!(
                    proved,
                    seen.map(|b| b.identity.clone()),
                    "proved on the boot that is measured"
                );
                prop_assert_eq!(Some(order.epoch), status.epoch);
                self.jobs_made += 1;
                prop_assert!(self.jobs_made <= 1 + self.jobs_vanished, "one Job a run");
                self.view.job = JobView::Active { pod: None };
            }
        }
        Ok(())
    }
}

fn check_status(before: &BenchmarkRunStatus, after: &BenchmarkRunStatus) -> Result<(), TestCaseError> {
    if before.step == Step::Finished {
        prop_assert_eq!(after, before, "a result once written never changes");
    }
    if after.step == Step::Measuring {
        let evidence = after.evidence.as_ref();
        prop_assert!(evidence.is_some_and(|e| !e.boot_identity.is_empty() && e.proved_at.is_some()));
    }
    if before.step > Step::Waiting {
        prop_assert_eq!(before.epoch, after.epoch, "one epoch a run");
        prop_assert_ne!(after.step, Step::Waiting);
        prop_assert!(after.prepares.unwrap_or(0) >= before.prepares.unwrap_or(0));
    }
    prop_assert!(after.prepares.unwrap_or(0) <= PREPARE_ATTEMPTS);
    if after.result.is_some() {
        prop_assert_eq!(after.step, Step::Finished);
    }
    let finished = after.step == Step::Finished;
    prop_assert_eq!(finished, after.validity.is_some());
    prop_assert_eq!(finished, after.completion_time.is_some());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn whatever_happens(
        restart in any::<bool>(),
        happenings in proptest::collection::vec(happening(), 0..14),
        answers in proptest::collection::vec(any::<u8>(), 0..30),
    ) {
        let mut world = World { view: view(restart), second: 0, boots: 1, answers, jobs_made: 0, jobs_vanished: 0 };
        world.act()?;
        for happening in happenings {
            world.happen(&happening);
            world.act()?;
        }
    }
}
