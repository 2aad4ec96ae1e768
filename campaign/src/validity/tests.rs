//! Every reason and every symptom is found where it is and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn managed(pod: &str, container: &str) -> BootIdentity {
    BootIdentity::Managed {
        pod_uid: pod.to_owned(),
        container_id: container.to_owned(),
    }
}

fn external(server: &str, host: &str, started_ms: u64) -> BootIdentity {
    BootIdentity::External {
        server: server.to_owned(),
        host: host.to_owned(),
        started_ms,
    }
}

fn quiet() -> Evidence {
    let snapshot = Snapshot {
        boot: Some(managed("pod", "container")),
        node: Some("node-1".to_owned()),
        settings: Some(map(&[
            ("max_prepared_stmt_count", "400000"),
            ("server_audit_logging", "ON"),
        ])),
        environment: map(&[("kernel", "6.12")]),
        rows_written: Some(100_000),
        burst_percent: Some(80.0),
    };
    Evidence {
        visit_boot: Some(managed("pod", "container")),
        before: snapshot.clone(),
        after: Some(snapshot),
        report: Report::Complete,
        generators: vec![GeneratorUsage {
            window_seconds: 10.0,
            cpu_seconds: 6.0,
            limit_cores: None,
            cpuset_cores: 1.0,
            others_cpu_seconds: 0.5,
            throttled_seconds: 0.0,
        }],
        disturbance: Some(Disturbance {
            window_seconds: 10.0,
            database_cores: 1.0,
            others_cpu_seconds: 0.4,
            swapped_pages: 0,
            oom_kills: 0,
        }),
        read_only: true,
        stalled_seconds: 0,
        errors_per_second: 0.0,
        arrivals: None,
        lost_audit_records: 0,
        audit: vec![AuditCount {
            class: "QUERY".to_owned(),
            expected: 172_339,
            found: 172_336,
        }],
        shutdown: Shutdown::Clean,
        shutdown_seconds: Some(2.0),
        settle_timed_out: false,
    }
}

fn reasons(change: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let mut evidence = quiet();
    change(&mut evidence);
    judge_run(&evidence)
        .reasons
        .iter()
        .map(|finding| finding.kind.as_str())
        .collect()
}

fn after(change: impl FnOnce(&mut Snapshot)) -> Vec<&'static str> {
    reasons(|evidence| change(evidence.after.as_mut().unwrap()))
}

#[test]
fn a_quiet_run_counts_without_remarks() {
    assert_eq!(judge_run(&quiet()), Judgement::default());
    assert!(judge_run(&quiet()).valid());
}

#[test]
fn a_changed_server_is_named_by_what_changed() {
    assert_eq!(
        after(|end| end.boot = Some(managed("other", "container"))),
        ["PodChanged"]
    );
    assert_eq!(
        after(|end| end.boot = Some(managed("pod", "other"))),
        ["BootChanged"]
    );
    assert_eq!(after(|end| end.node = Some("node-2".to_owned())), ["NodeChanged"]);
    assert_eq!(
        reasons(|evidence| evidence.visit_boot = Some(managed("pod", "earlier"))),
        ["BootChanged"],
        "later runs of a visit need its boot"
    );
    let borrowed = |end: BootIdentity| {
        reasons(|evidence| {
            evidence.visit_boot = None;
            evidence.before.boot = Some(external("uuid", "db-1", 1_000_000));
            evidence.after.as_mut().unwrap().boot = Some(end);
        })
    };
    assert!(
        borrowed(external("uuid", "db-1", 1_005_000)).is_empty(),
        "5 s of rounding"
    );
    assert_eq!(borrowed(external("uuid", "db-1", 1_005_001)), ["BootChanged"]);
    assert_eq!(borrowed(external("uuid", "db-2", 1_000_000)), ["FailedOver"]);
    assert_eq!(borrowed(external("other", "db-1", 1_000_000)), ["FailedOver"]);
    assert_eq!(borrowed(managed("pod", "container")), ["FailedOver"]);
}

#[test]
fn what_could_not_be_read_is_not_proved() {
    assert_eq!(reasons(|evidence| evidence.after = None), ["EvidenceMissing"]);
    assert_eq!(after(|end| end.boot = None), ["EvidenceMissing"]);
    assert_eq!(after(|end| end.settings = None), ["EvidenceMissing"]);
    assert_eq!(
        reasons(|evidence| {
            evidence.visit_boot = None;
            evidence.before.boot = None;
        }),
        ["EvidenceMissing"]
    );
    assert!(
        after(|end| end.burst_percent = None).is_empty(),
        "not every storage has credits"
    );
    assert!(after(|end| end.rows_written = None).is_empty());
    assert!(
        reasons(|evidence| evidence.disturbance = None).is_empty(),
        "a server outside the cluster"
    );
}

#[test]
fn a_starved_generator_measures_itself() {
    let usage = |change: fn(&mut GeneratorUsage)| reasons(|evidence| change(&mut evidence.generators[0]));
    assert!(
        usage(|generator| generator.cpu_seconds = 7.59).is_empty(),
        "80 % of 0.95 cores"
    );
    assert_eq!(
        usage(|generator| generator.cpu_seconds = 7.61),
        ["GeneratorStarved"]
    );
    assert_eq!(
        usage(|generator| generator.limit_cores = Some(0.7)),
        ["GeneratorStarved"]
    );
    assert_eq!(
        usage(|generator| generator.others_cpu_seconds = 3.0),
        ["GeneratorStarved"]
    );
    assert_eq!(
        usage(|generator| generator.throttled_seconds = 0.1),
        ["GeneratorStarved"]
    );
    assert!(usage(|generator| generator.throttled_seconds = 0.009).is_empty());
}

#[test]
fn a_disturbed_node_and_changed_settings_are_found() {
    let node =
        |change: fn(&mut Disturbance)| reasons(|evidence| change(evidence.disturbance.as_mut().unwrap()));
    assert!(node(|node| node.others_cpu_seconds = 0.5).is_empty());
    assert_eq!(node(|node| node.others_cpu_seconds = 0.51), ["NodeDisturbed"]);
    assert_eq!(node(|node| node.swapped_pages = 1), ["NodeDisturbed"]);
    assert_eq!(node(|node| node.oom_kills = 1), ["NodeDisturbed"]);
    let settings = |value: &[(&str, &str)]| after(|end| end.settings = Some(map(value)));
    assert_eq!(
        settings(&[
            ("max_prepared_stmt_count", "400000"),
            ("server_audit_logging", "OFF")
        ]),
        ["SettingsChanged"]
    );
    assert_eq!(
        settings(&[("max_prepared_stmt_count", "400000")]),
        ["SettingsChanged"],
        "no longer readable"
    );
    assert_eq!(
        after(|end| end.environment = map(&[("kernel", "6.13")])),
        ["EnvironmentChanged"]
    );
    assert_eq!(after(|end| end.rows_written = Some(100_001)), ["DatasetChanged"]);
    assert_eq!(after(|end| end.burst_percent = Some(0.0)), ["BurstExhausted"]);
    assert_eq!(
        reasons(|evidence| evidence.report = Report::Incomplete("exit code 1".to_owned())),
        ["NoCompleteReport"]
    );
    assert!(
        reasons(|evidence| {
            evidence.read_only = false;
            evidence.after.as_mut().unwrap().rows_written = Some(200_000);
        })
        .is_empty(),
        "a writing load writes"
    );
}

#[test]
fn symptoms_never_discard_a_run() {
    let mut evidence = quiet();
    evidence.stalled_seconds = 3;
    evidence.errors_per_second = 1.5;
    evidence.arrivals = Some(Arrivals {
        asked: 10_000,
        ended: 9_000,
    });
    evidence.lost_audit_records = 10;
    evidence.audit[0].found = 120_000;
    evidence.shutdown = Shutdown::Unclean;
    evidence.shutdown_seconds = Some(90.0);
    evidence.settle_timed_out = true;
    let judgement = judge_run(&evidence);
    assert!(judgement.valid());
    let names: BTreeSet<&str> = judgement
        .symptoms
        .iter()
        .map(|finding| finding.kind.as_str())
        .collect();
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        [
            "AuditIncomplete",
            "ErrorsPerSecond",
            "LostAuditRecords",
            "RateNotReached",
            "SettleTimedOut",
            "SlowShutdown",
            "StalledSeconds",
            "UncleanShutdown"
        ]
    );
}

#[test]
fn a_rate_is_reached_but_for_chance() {
    let reached = |asked: u64, ended: u64| {
        let mut evidence = quiet();
        evidence.arrivals = Some(Arrivals { asked, ended });
        judge_run(&evidence).symptoms.is_empty()
    };
    assert!(reached(100_000, 98_000) && reached(100_000, 103_000) && reached(100, 60) && reached(0, 0));
    assert!(!reached(100_000, 97_999) && !reached(100, 59));
}

#[test]
fn audit_is_complete_within_one_percent() {
    let found = |expected: u64, found: u64| {
        let mut evidence = quiet();
        evidence.audit = vec![AuditCount {
            class: "QUERY".to_owned(),
            expected,
            found,
        }];
        judge_run(&evidence).symptoms.is_empty()
    };
    assert!(found(1_000, 990) && found(1_000, 1_010) && found(0, 0));
    assert!(!found(1_000, 989) && !found(1_000, 1_011) && !found(0, 1));
}

fn block_run(arm: &str, micros: f64) -> BlockRun {
    BlockRun {
        arm: arm.to_owned(),
        threads: 4,
        reasons: Vec::new(),
        round_trip_micros: Some(micros),
        environment: map(&[("kernel", "6.12")]),
    }
}

#[test]
fn a_block_with_an_invalid_run_is_repeated_and_then_lost() {
    let mut runs = vec![block_run("off", 100.0), block_run("on", 109.0)];
    assert!(judge_block(&runs).is_empty());
    assert_eq!(block_outcome(&[], 3, 3), BlockOutcome::Counts);
    runs[1].reasons = vec![InvalidReason::PodChanged, InvalidReason::EvidenceMissing];
    let findings = judge_block(&runs);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].arm.as_deref(), Some("on"));
    assert_eq!(
        findings[0].finding.message,
        "on at 4 threads: PodChanged, EvidenceMissing"
    );
    assert_eq!(
        block_outcome(&findings, 1, 3),
        BlockOutcome::Repeat { attempt: 2 }
    );
    assert_eq!(
        block_outcome(&findings, 2, 3),
        BlockOutcome::Repeat { attempt: 3 }
    );
    assert_eq!(block_outcome(&findings, 3, 3), BlockOutcome::Lost);
}

#[test]
fn arms_at_different_distances_are_not_compared() {
    let runs = [block_run("off", 1_000.0), block_run("on", 1_101.0)];
    let findings = judge_block(&runs);
    assert_eq!(findings[0].finding.kind, InvalidReason::RoundTripDiffers);
    assert_eq!(findings[0].arm, None, "no arm is to blame");
    // The arm's fastest run counts: what came on top of the path in another is not the path.
    let runs = [
        block_run("off", 1_000.0),
        block_run("on", 1_600.0),
        block_run("on", 1_099.0),
    ];
    assert!(judge_block(&runs).is_empty());
    // Some tens of microseconds are the two programs, not the way between them.
    let runs = [block_run("off", 60.0), block_run("on", 109.0)];
    assert!(judge_block(&runs).is_empty());
    let runs = [block_run("off", 60.0), block_run("on", 111.0)];
    assert!(!judge_block(&runs).is_empty());
}

#[test]
fn an_environment_that_changes_inside_a_block_spoils_it() {
    let mut runs = vec![block_run("off", 100.0), block_run("on", 100.0)];
    runs[1].environment = map(&[("kernel", "6.13")]);
    assert_eq!(
        judge_block(&runs)[0].finding.kind,
        InvalidReason::EnvironmentChanged
    );
}
