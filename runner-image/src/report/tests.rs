//! Figures from two samples, thinning, and that the message always fits.

use super::*;
use crate::parse::{Capture, Command, sysbench};
use crds::run::Finding;
use proptest::prelude::*;

fn tool() -> ToolResult {
    let stdout = include_str!("../../fixtures/sysbench/warmup_checkpoint_histogram_ro.txt");
    sysbench::parse(&Capture {
        stdout,
        stderr: "",
        exit_code: 0,
        command: Command::Run,
    })
}

fn usage(server: i64, busy: [i64; 2]) -> AgentUsage {
    AgentUsage {
        server_cpu_millis: Some(server),
        server_cpus: vec![1],
        cpu_busy_millis: BTreeMap::from([(0, busy[0]), (1, busy[1])]),
        swapped_pages: Some(5),
        ..AgentUsage::default()
    }
}

#[test]
fn figures_relate_costs_to_the_queries_of_the_whole_load() {
    let before = Sample {
        at_millis: 1_000,
        usage: Some(usage(100, [50, 200])),
        busy_millis: BTreeMap::from([(0, 50), (1, 200)]),
        own_cpu_millis: Some(0),
        throttled_millis: Some(7),
    };
    let after = Sample {
        at_millis: 9_000,
        usage: Some(usage(7_100, [5_050, 7_600])),
        busy_millis: BTreeMap::from([(0, 5_050), (1, 7_600)]),
        own_cpu_millis: Some(3_000),
        throttled_millis: Some(9),
    };
    let audit = AgentAudit {
        bytes: 24_737_600,
        events: BTreeMap::from([("QUERY".to_owned(), 247_376), ("READ".to_owned(), 9)]),
        ..AgentAudit::default()
    };
    let setting = Setting {
        cpus: vec![0],
        generator_cpu_millis: Some(2_900),
        audit: Some(audit),
        round_trip_nanos: Some(42),
        statement_classes: Some(&["QUERY"]),
        ..Setting::default()
    };
    let (result, observed) = figures(&tool(), &setting, &before, &after);
    assert_eq!(
        (result.tps_milli, result.latency_p95_micros),
        (Some(2_318_500), Some(3_071))
    );
    assert_eq!(result.audit_completeness_ppm, Some(1_000_000));
    assert_eq!(result.log_bytes_per_1000_statements, Some(100_000));
    assert_eq!(result.log_bytes_per_1000_records, Some(24_737_600_000 / 247_385));
    assert_eq!(result.cpu_nanos_per_statement, Some(7_000_000_000 / 247_376));
    assert_eq!(result.server_cpu_ppm, Some(875_000));
    // CPU 0 was busy for 5,000 of 8,000 ms, 3,000 of them by us: 6,000 were to be had.
    assert_eq!(observed.generator_cpu_available_millis, Some(6_000));
    assert_eq!(result.generator_cpu_ppm, Some(2_900 * 1_000_000 / 6_000));
    assert_eq!(
        (
            observed.foreign_cpu_millis,
            observed.database_cpu_available_millis
        ),
        (Some(400), Some(8_000))
    );
    assert_eq!(
        (observed.generator_throttled_millis, observed.swapped_pages),
        (Some(2), Some(0))
    );
    // A limit below that counts instead.
    let limited = Setting {
        limit_milli: Some(500),
        ..setting
    };
    let (_, observed) = figures(&tool(), &limited, &before, &after);
    assert_eq!(observed.generator_cpu_available_millis, Some(4_000));
}

#[test]
fn what_was_not_seen_is_absent() {
    let (result, observed) = figures(
        &tool(),
        &Setting::default(),
        &Sample::default(),
        &Sample::default(),
    );
    assert!(result.qps_milli.is_some() && observed.queries_sent.is_some());
    assert_eq!(
        (
            result.cpu_nanos_per_statement,
            result.audit_completeness_ppm,
            observed.foreign_cpu_millis
        ),
        (None, None, None)
    );
}

fn intervals(tps: &[u64]) -> Vec<Interval> {
    tps.iter()
        .enumerate()
        .map(|(index, tps)| Interval {
            second: index as u64 + 1,
            tps_milli: Some(tps * 1_000 + 400),
            latency_micros: Some(tps * 2),
            ..Interval::default()
        })
        .collect()
}

#[test]
fn a_series_is_thinned_by_means_and_worst_cases() {
    let whole = series(&intervals(&[100, 110, 0, 90, 50]), 2, 10).unwrap();
    assert_eq!(
        (whole.step_seconds, whole.tps.as_slice()),
        (2, [100, 10, -110, 90, -40].as_slice())
    );
    let thin = series(&intervals(&[100, 110, 0, 90, 50]), 2, 3).unwrap();
    assert_eq!(
        (thin.step_seconds, thin.tps.as_slice()),
        (4, [105, -60, 5].as_slice())
    );
    assert_eq!(thin.p95_micros, [220, -40, -80]);
    assert_eq!(series(&[], 1, 10), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_message_always_fits_and_keeps_the_figures(
        tps in proptest::collection::vec(0u64..1_000_000, 0..2_000),
        message in ".{0,2000}",
        findings in proptest::collection::vec(".{0,512}", 0..40),
        classes in 0usize..60,
    ) {
        let (result, mut observed) = figures(&tool(), &Setting::default(), &Sample::default(), &Sample::default());
        observed.changed_settings = findings.into_iter().map(|message| Finding { reason: "SettingChanged".to_owned(), message }).collect();
        observed.audit_events = (0..classes).map(|class| (format!("CLASS_{class:03}"), i64::MAX)).collect();
        let report = RunReport { message, run_uid: "u".repeat(36), result: Some(result.clone()), observed: Some(observed), ..RunReport::default() };
        let text = termination_message(&report, &intervals(&tps), 1);
        prop_assert!(text.len() <= TERMINATION_MESSAGE_LIMIT);
        let read: RunReport = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.result, Some(result));
        prop_assert!(tps.is_empty() || read.series.is_some() || text.len() > 1_000);
    }
}

#[test]
fn a_part_keeps_its_histogram_and_a_series_thinned_alike() {
    use crds::together::{LatencyHistogram, Part};
    let part = |places: u16, count: u64| {
        let counts = (100..100 + places).map(|place| (place, count)).collect();
        let (result, observed) = figures(
            &tool(),
            &Setting::default(),
            &Sample::default(),
            &Sample::default(),
        );
        RunReport {
            result: Some(result),
            observed: Some(observed),
            part: Some(Part {
                index: 1,
                histogram: Some(LatencyHistogram::of(&counts, 1)),
                ..Part::default()
            }),
            ..RunReport::default()
        }
    };
    let read = |report: &RunReport, seconds| -> RunReport {
        let text = termination_message(report, &intervals(&vec![2_000; seconds]), 1);
        assert!(text.len() <= TERMINATION_MESSAGE_LIMIT);
        serde_json::from_str(&text).unwrap()
    };
    let ordinary = part(180, 12_345);
    for seconds in [59, 60, 600] {
        let read = read(&ordinary, seconds);
        assert_eq!(read.part, ordinary.part);
        assert_eq!(read.series.unwrap().tps.len(), seconds.min(60));
    }
    // Every bucket there is, with counts of a long run: neighbours are put together, nothing is lost.
    let read = read(&part(900, 1_234_567), 600);
    let histogram = read.part.unwrap().histogram.unwrap();
    assert!(histogram.width > 1 && read.result.is_some());
    assert_eq!(histogram.counts().values().sum::<u64>(), 900 * 1_234_567);
}

#[test]
fn an_ordinary_run_keeps_a_series_of_every_second() {
    let report = RunReport {
        result: Some(RunResult::default()),
        ..RunReport::default()
    };
    let text = termination_message(&report, &intervals(&[2_000; 60]), 1);
    let read: RunReport = serde_json::from_str(&text).unwrap();
    assert_eq!(read.series.unwrap().tps.len(), 60);
}

#[test]
fn a_refusal_names_reasons_and_cause() {
    let stdout = include_str!("../../fixtures/sysbench/fail_1461_max_prepared_stmt.txt");
    let tool = sysbench::parse(&Capture {
        stdout,
        stderr: "",
        exit_code: 1,
        command: Command::Run,
    });
    let text = refusal(&tool);
    assert!(
        text.contains("MaxPreparedStmtCount") && text.contains("current value: 50"),
        "{text}"
    );
}
