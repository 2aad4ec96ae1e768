//! The steps of a run, one test a transition; this file: the way through, and the load.

mod before_load;

use crds::audit::AuditSetting;
use crds::load::{Cache, LoadGenerator, RestartPolicy, RunSettings};
use crds::names::condition::{FINISHED, READY, SUCCEEDED};
use crds::parameter::Parameters;
use crds::run::{
    BenchmarkRunSpec, BenchmarkRunStatus, Cell, Evidence, Finding, RunResult, Step, ValidityVerdict, Visit,
};
use crds::runner::{Connection, RunObservations, RunOutcome, RunReport};
use crds::target::{
    BenchmarkTargetSpec, BenchmarkTargetStatus, Boot, BootFailure, Engine, LocalReference, Managed,
    TargetType,
};
use crds::workload::{Sysbench, Workload, WorkloadType};
use jiff::Timestamp;
use rstest::rstest;

use super::*;
use crate::target_planner::holder::{self, CAMPAIGN, Claimant};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(super) fn spec(restart_before: bool) -> BenchmarkRunSpec {
    BenchmarkRunSpec {
        target_ref: LocalReference { name: "t".into() },
        cell: Cell::default(),
        visit: Visit::default(),
        attempt: 1,
        seed: 7,
        parameters: Parameters::from([("sync_binlog".into(), 1.into())]),
        audit: AuditSetting {
            name: "none".into(),
            ..AuditSetting::default()
        },
        workload: Workload {
            name: "ro".into(),
            type_: WorkloadType::Sysbench,
            sysbench: Some(Sysbench {
                script: "oltp_read_only".into(),
                tables: 4,
                ..Sysbench::default()
            }),
            pgbench: None,
        },
        threads: 4,
        rows_per_table: 25_000,
        run: RunSettings::default(),
        restart: RestartPolicy::default(),
        restart_before,
        requires_boot: None,
        cache: Cache::default(),
        dataset: crds::dataset::DatasetPolicy::default(),
        load_generator: LoadGenerator::default(),
    }
}

pub(super) fn boot(serial: i64, identity: &str) -> Boot {
    Boot {
        serial,
        identity: identity.into(),
        address: "198.19.0.7".into(),
        ..Boot::default()
    }
}

pub(super) fn view(restart_before: bool) -> RunView {
    let claimant = Claimant {
        kind: CAMPAIGN.into(),
        name: "c".into(),
        uid: "cu".into(),
    };
    RunView {
        run: RunObject {
            name: "c-1".into(),
            uid: "ru".into(),
            generation: 1,
            terminating: false,
            claimant,
            spec: spec(restart_before),
            status: BenchmarkRunStatus::default(),
        },
        target: Some(TargetSeen {
            name: "t".into(),
            terminating: false,
            spec: BenchmarkTargetSpec {
                engine: Engine::MariaDB,
                type_: TargetType::Managed,
                expect: None,
                managed: Some(Managed::default()),
                external: None,
            },
            status: BenchmarkTargetStatus {
                boot: Some(boot(0, "p0/c0")),
                node: Some("node-1".into()),
                ..BenchmarkTargetStatus::default()
            },
            connection: Some(Connection {
                host: "198.19.0.7".into(),
                port: 3306,
                ..Connection::default()
            }),
        }),
        last_run_ended: true,
        node: NodeLease::Unknown,
        cache_parameters: Parameters::from([("innodb_buffer_pool_load_at_startup".into(), "OFF".into())]),
        data_shape: "shape".into(),
        read_only: true,
        prepare: JobView::Absent,
        job: JobView::Absent,
        established: None,
    }
}

pub(super) fn target(view: &mut RunView) -> &mut BenchmarkTargetStatus {
    &mut view.target.as_mut().unwrap().status
}

/// Plans until nothing is written any more; returns the action then.
pub(super) fn settle(view: &mut RunView, second: i64) -> Option<Action> {
    for _ in 0..8 {
        let plan = plan(view, at(second));
        if plan.status == view.run.status {
            return plan.action;
        }
        view.run.status = plan.status;
    }
    panic!("the status does not settle: {:?}", view.run.status);
}

pub(super) fn proven(boot_identity: &str) -> Establishment {
    let mut evidence = Evidence::default();
    evidence.settle.met = true;
    Establishment::Ready(Box::new(Proven {
        boot_identity: boot_identity.into(),
        evidence,
        took_millis: 900,
        ..Proven::default()
    }))
}

pub(super) fn report() -> RunReport {
    RunReport {
        outcome: RunOutcome::Completed,
        run_uid: "ru".into(),
        epoch: 1,
        result: Some(RunResult {
            transactions: Some(8_000),
            qps_milli: Some(16_000_000),
            window_micros: Some(8_000_000),
            ..RunResult::default()
        }),
        observed: Some(RunObservations {
            same_boot: Some(true),
            ..RunObservations::default()
        }),
        ..RunReport::default()
    }
}

pub(super) fn ended(message: String, exit_code: i32) -> JobView {
    JobView::Ended(vec![EndedPod {
        exit_code,
        message,
        finished_at: Some(at(60)),
        ..EndedPod::default()
    }])
}

/// A run that has taken its target; the server is not there yet where it restarts.
pub(super) fn taken(restart_before: bool) -> RunView {
    let mut view = view(restart_before);
    assert_eq!(
        settle(&mut view, 0),
        Some(Action::TakeNode {
            node: "node-1".into()
        })
    );
    view.node = NodeLease::Ours;
    let Some(Action::TakeTarget(status)) = settle(&mut view, 0) else {
        panic!("the target is free");
    };
    *target(&mut view) = *status;
    view
}

/// A run whose load is applied.
pub(super) fn measuring(restart_before: bool) -> RunView {
    let mut view = taken(restart_before);
    let identity = if restart_before { "p1/c1" } else { "p0/c0" };
    if restart_before {
        target(&mut view).boot = Some(boot(1, identity));
    }
    assert!(matches!(settle(&mut view, 5), Some(Action::Establish { .. })));
    view.established = Some(proven(identity));
    let Some(Action::CreateJob { name, order }) = settle(&mut view, 6) else {
        panic!("proved, so the Job is next");
    };
    assert_eq!(
        (name.as_str(), order.run_uid.as_str(), order.epoch),
        ("c-1", "ru", 1)
    );
    view.established = None;
    view.job = JobView::Active { pod: None };
    view
}

pub(super) fn reason(view: &RunView) -> &str {
    let validity = view.run.status.validity.as_ref().expect("it has ended");
    validity.reasons.first().map_or("", |f| f.reason.as_str())
}

#[test]
fn intent_comes_before_the_restart_and_the_proof_before_the_job() {
    let mut view = taken(true);
    let holder = target(&mut view).holder.clone().unwrap();
    assert_eq!((holder.epoch, holder.uid.as_str()), (1, "cu"));
    let request = holder.boot.unwrap();
    assert_eq!(request.serial, 1);
    assert!(request.parameters.contains_key("sync_binlog"));
    assert!(
        request
            .parameters
            .contains_key("innodb_buffer_pool_load_at_startup")
    );
    assert_eq!(
        settle(&mut view, 1),
        None,
        "the target's controller restarts the server"
    );
    assert_eq!(view.run.status.step, Step::Restarting);
    assert_eq!(
        (view.run.status.epoch, view.run.status.boot_serial),
        (Some(1), Some(1))
    );
    let view = measuring(true);
    assert_eq!(view.run.status.step, Step::Measuring);
    let evidence = view.run.status.evidence.as_ref().unwrap();
    assert_eq!(
        (evidence.boot_identity.as_str(), evidence.proved_at.is_some()),
        ("p1/c1", true)
    );
}

#[test]
fn three_writes_from_the_beginning_to_the_end() {
    let mut view = view(true);
    let mut writes = 0;
    for _ in 0..40 {
        let plan = plan(&view, at(5));
        if plan.status != view.run.status {
            writes += 1;
            view.run.status = plan.status;
            continue;
        }
        match plan.action {
            Some(Action::TakeNode { .. }) => view.node = NodeLease::Ours,
            Some(Action::TakeTarget(status)) => {
                *target(&mut view) = *status;
                target(&mut view).boot = Some(boot(1, "p1/c1"));
            }
            Some(Action::Establish { boot_identity }) => view.established = Some(proven(&boot_identity)),
            Some(Action::CreateJob { .. }) => view.job = ended(serde_json::to_string(&report()).unwrap(), 0),
            Some(Action::ReleaseNode { .. }) => view.node = NodeLease::Unknown,
            Some(other) => panic!("{other:?}"),
            None => break,
        }
    }
    assert_eq!((view.run.status.step, writes), (Step::Finished, 3));
}

#[test]
fn nothing_is_done_while_load_is_applied() {
    let view = measuring(true);
    let quiet = plan(&view, at(600));
    assert_eq!(quiet.action, None);
    assert_eq!(quiet.status, view.run.status);
    assert!(quiet.requeue.unwrap() > Duration::from_mins(16));
}

#[test]
fn a_valid_report_is_the_result() {
    let mut view = measuring(true);
    view.job = ended(serde_json::to_string(&report()).unwrap(), 0);
    assert_eq!(
        settle(&mut view, 700),
        Some(Action::ReleaseNode {
            node: "node-1".into()
        })
    );
    let status = &view.run.status;
    assert_eq!(
        status.validity.as_ref().unwrap().verdict,
        ValidityVerdict::Valid,
        "{:?}",
        status.validity
    );
    assert_eq!(status.result.as_ref().unwrap().transactions, Some(8_000));
    assert!(condition::is_true(&status.conditions, FINISHED));
    assert!(condition::is_true(&status.conditions, SUCCEEDED));
    view.node = NodeLease::Unknown;
    assert_eq!(settle(&mut view, 701), None, "the campaign keeps its target");
}

#[rstest]
#[case(RunOutcome::AlreadyStarted, "AlreadyStarted")]
#[case(RunOutcome::Fenced, "Fenced")]
#[case(RunOutcome::BootChanged, "BootChanged")]
#[case(RunOutcome::DatabaseFailed, "DatabaseUnreachable")]
#[case(RunOutcome::Interrupted, "Interrupted")]
#[case(RunOutcome::Failed, "RunnerFailed")]
#[case(RunOutcome::ToolFailed, "NoCompleteReport")]
fn a_runner_that_did_not_measure_says_why(#[case] outcome: RunOutcome, #[case] expected: &str) {
    let mut view = measuring(true);
    let report = RunReport {
        outcome,
        message: "why".into(),
        ..report()
    };
    view.job = ended(serde_json::to_string(&report).unwrap(), 1);
    settle(&mut view, 700);
    assert_eq!(reason(&view), expected);
    assert!(!condition::is_true(&view.run.status.conditions, SUCCEEDED));
}

#[test]
fn a_crash_of_the_server_during_the_load_makes_the_run_invalid() {
    let mut view = measuring(true);
    target(&mut view).boot = Some(boot(1, "p2/c9"));
    assert_eq!(settle(&mut view, 50), None, "the load generator ends first");
    // The tool failed, and the runner could not ask the server any more.
    let mut seen = report();
    seen.outcome = RunOutcome::ToolFailed;
    seen.observed.as_mut().unwrap().same_boot = None;
    let mut failed = view.clone();
    failed.job = ended(serde_json::to_string(&seen).unwrap(), 1);
    settle(&mut failed, 60);
    assert_eq!(
        reason(&failed),
        "PodChanged",
        "the cause, before what follows from it"
    );
    // The server says itself that it is another one.
    target(&mut view).boot = Some(boot(1, "p1/c1"));
    let mut seen = report();
    seen.observed.as_mut().unwrap().same_boot = Some(false);
    view.job = ended(serde_json::to_string(&seen).unwrap(), 0);
    settle(&mut view, 60);
    assert_eq!(reason(&view), "BootChanged");
}

#[test]
fn reports_of_others_lost_pods_and_silence_are_no_results() {
    let other = RunReport {
        run_uid: "else".into(),
        ..report()
    };
    let cases = [
        (ended(serde_json::to_string(&other).unwrap(), 0), "ReportMismatch"),
        (ended("Segmentation fault".into(), 139), "NoCompleteReport"),
        (
            JobView::Lost(Finding {
                reason: "PodLost".into(),
                message: "m".into(),
            }),
            "PodLost",
        ),
    ];
    for (job, expected) in cases {
        let mut view = measuring(true);
        view.job = job;
        settle(&mut view, 60);
        assert_eq!(reason(&view), expected);
        assert_eq!(view.run.status.result, None);
    }
}

#[test]
fn a_load_generator_that_cannot_start_is_told_once() {
    let mut view = measuring(true);
    let pending = RunnerState::Pending(Some(Finding {
        reason: "ImagePullBackOff".into(),
        message: "no image".into(),
    }));
    view.job = JobView::Active {
        pod: Some(RunnerPod {
            state: pending,
            ..RunnerPod::default()
        }),
    };
    assert_eq!(settle(&mut view, 10), None);
    assert_eq!(
        condition::reason(&view.run.status.conditions, READY),
        Some("ImagePullBackOff")
    );
}
