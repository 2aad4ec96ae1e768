//! Sums, and every way in which parts are no whole.

use std::collections::BTreeMap;

use crds::together::{LatencyHistogram, Part};
use proptest::prelude::*;

use super::super::RunnerPod;
use super::*;

fn part(index: i32) -> RunReport {
    let scale = i64::from(index) + 1;
    // All of one latency: place 512 is about 10 ms, each part's a little above the one before.
    let counts = BTreeMap::from([(512 + index as u16, 1_000 * scale as u64)]);
    RunReport {
        outcome: RunOutcome::Completed,
        run_uid: "ru".into(),
        epoch: 1,
        result: Some(RunResult {
            tps_milli: Some(100_000 * scale),
            qps_milli: Some(1_600_000 * scale),
            transactions: Some(1_000 * scale),
            queries: Some(16_000 * scale),
            window_micros: Some(10_000_000),
            latency_mean_micros: Some(1_000 * scale),
            latency_max_micros: Some(9_000 * scale),
            stalled_seconds: Some(scale),
            errors: Some(0),
            server_cpu_ppm: (index == 0).then_some(500_000),
            generator_cpu_ppm: Some(100_000 * scale),
            audit_completeness_ppm: (index == 0).then_some(3_000_000),
            round_trip_nanos: Some(50_000 * scale),
            ..RunResult::default()
        }),
        observed: Some(RunObservations {
            same_boot: (index == 0).then_some(true),
            generator_cpu_millis: Some(1_000 * scale),
            generator_cpu_available_millis: Some(10_000),
            server_cpu_millis: (index == 0).then_some(9_600),
            audit_bytes: (index == 0).then_some(9_600_000),
            queries_sent: Some(16_000 * scale),
            flags: vec![format!("Flag{index}"), "Stalled".into()],
            ..RunObservations::default()
        }),
        series: Some(Series {
            step_seconds: 1,
            tps: vec![100 * scale, 1],
            p95_micros: vec![900, 10 * scale],
        }),
        part: Some(Part {
            index,
            start_uncertainty_micros: (index > 0).then_some(80),
            load_millis: Some(12_000 + i64::from(index)),
            histogram: Some(LatencyHistogram::of(&counts, 1)),
        }),
        ..RunReport::default()
    }
}

fn pods(reports: &[RunReport]) -> Vec<EndedPod> {
    let pod = |(index, report): (usize, &RunReport)| EndedPod {
        index: report.part.as_ref().map_or(index as i32, |part| part.index),
        pod: RunnerPod::default(),
        message: serde_json::to_string(report).unwrap(),
        ..EndedPod::default()
    };
    reports.iter().enumerate().map(pod).collect()
}

fn reason(reports: &[RunReport], count: i32) -> (String, String) {
    let Err(finding) = whole(&pods(reports), count, 10) else {
        panic!("it is no whole");
    };
    (finding.reason, finding.message)
}

#[test]
fn figures_are_summed_and_costs_are_those_of_all_statements() {
    // In whatever order they are seen.
    let whole = whole(&pods(&[part(2), part(0), part(1)]), 3, 10).unwrap();
    assert_eq!(whole.generators.len(), 3);
    let report = &whole.report;
    let result = report.result.as_ref().unwrap();
    assert_eq!(
        (result.tps_milli, result.qps_milli, result.transactions),
        (Some(600_000), Some(9_600_000), Some(6_000))
    );
    assert_eq!(
        (result.window_micros, result.stalled_seconds, result.errors),
        (Some(10_000_000), Some(1), Some(0))
    );
    // (1 x 1000 + 2 x 2000 + 3 x 3000) / 6
    assert_eq!(
        (result.latency_mean_micros, result.latency_max_micros),
        (Some(2_333), Some(27_000))
    );
    // 96,000 statements: the server used 9.6 s and wrote 9.6 MB, and three times the first one's were found.
    assert_eq!(result.cpu_nanos_per_statement, Some(100_000));
    assert_eq!(result.client_cpu_nanos_per_statement, Some(62_500));
    assert_eq!(result.log_bytes_per_1000_statements, Some(100_000));
    assert_eq!(result.audit_completeness_ppm, Some(500_000));
    assert_eq!(
        (
            result.server_cpu_ppm,
            result.generator_cpu_ppm,
            result.round_trip_nanos
        ),
        (Some(500_000), Some(300_000), Some(150_000))
    );
    let p95 = result.latency_p95_micros.unwrap();
    let step = 1e8_f64.ln() / 1_023.0;
    let expected = (f64::from(514) * step).exp();
    assert!((p95 as f64 / expected - 1.0).abs() < 0.01, "{p95} and {expected}");
    let observed = report.observed.as_ref().unwrap();
    assert_eq!(
        (observed.queries_sent, observed.same_boot),
        (Some(96_000), Some(true))
    );
    assert_eq!(observed.flags, ["Flag0", "Flag1", "Flag2", "Stalled"]);
    let series = report.series.as_ref().unwrap();
    assert_eq!(
        (series.tps.as_slice(), series.p95_micros.as_slice()),
        ([600, 3].as_slice(), [900, 30].as_slice())
    );
}

#[test]
fn one_pod_is_its_own_whole() {
    let mut alone = part(0);
    alone.part = None;
    let whole = whole(&pods(std::slice::from_ref(&alone)), 1, 10).unwrap();
    assert_eq!(whole.report, alone);
    assert_eq!(whole.generators, [alone.observed.unwrap()]);
}

#[test]
fn a_part_that_is_missing_is_named() {
    let (reason, message) = reason(&[part(0), part(2)], 3);
    assert_eq!(reason, "GeneratorLost");
    assert!(
        message.contains("1 of 3") && message.ends_with(": 1"),
        "{message}"
    );
    let silent = EndedPod {
        index: 1,
        exit_code: 137,
        ..EndedPod::default()
    };
    let mut some = pods(&[part(0)]);
    some.push(silent);
    let finding = whole(&some, 2, 10).unwrap_err();
    assert_eq!(finding.reason, "NoCompleteReport");
    assert!(
        finding.message.contains("load generator 1 of 2") && finding.message.contains("137"),
        "{}",
        finding.message
    );
}

#[test]
fn the_cause_comes_before_what_followed_from_it() {
    let ended = |index, outcome, message: &str| RunReport {
        outcome,
        message: message.into(),
        part: Some(Part {
            index,
            ..Part::default()
        }),
        ..RunReport::default()
    };
    let reports = [
        ended(0, RunOutcome::PartLost, "the second was lost"),
        ended(1, RunOutcome::ToolFailed, "sysbench Fatal"),
        ended(2, RunOutcome::Interrupted, "told to stop"),
    ];
    let (reason, message) = reason(&reports, 3);
    assert_eq!(reason, "NoCompleteReport");
    assert_eq!(message, "load generator 1 of 3: sysbench Fatal");
    // Also when the others are gone without a word.
    assert_eq!(self::reason(&reports[..2], 3).0, "NoCompleteReport");
    assert_eq!(self::reason(&reports[2..], 3).0, "Interrupted");
    assert_eq!(self::reason(&reports[..1], 3).0, "GeneratorLost");
}

#[test]
fn loads_that_lie_apart_are_not_one() {
    let mut late = part(1);
    let told = late.part.as_mut().unwrap();
    told.load_millis = Some(12_251);
    assert_eq!(reason(&[part(0), late.clone()], 2).0, "GeneratorsApart");
    late.part.as_mut().unwrap().load_millis = Some(12_249);
    assert!(whole(&pods(&[part(0), late.clone()]), 2, 10).is_ok());
    late.part.as_mut().unwrap().start_uncertainty_micros = Some(2_000);
    assert_eq!(reason(&[part(0), late.clone()], 2).0, "GeneratorsApart");
    // Of a longer window two in a hundred.
    assert!(whole(&pods(&[part(0), late.clone()]), 2, 60).is_ok());
    late.part.as_mut().unwrap().load_millis = None;
    assert_eq!(reason(&[part(0), late], 2).0, "EvidenceMissing");
}

#[test]
fn reports_of_another_run_or_part_are_no_part() {
    let mut other = part(1);
    other.epoch = 2;
    assert_eq!(reason(&[part(0), other], 2).0, "ReportMismatch");
    let mut pods = pods(&[part(0), part(1)]);
    pods[1].message = pods[0].message.clone();
    assert_eq!(whole(&pods, 2, 10).unwrap_err().reason, "ReportMismatch");
}

#[test]
fn what_one_does_not_know_is_not_known() {
    let mut other = part(1);
    other.result.as_mut().unwrap().queries = None;
    other.part.as_mut().unwrap().histogram = None;
    other.series.as_mut().unwrap().step_seconds = 2;
    let report = whole(&pods(&[part(0), other]), 2, 10).unwrap().report;
    let result = report.result.unwrap();
    assert_eq!((result.queries, result.latency_p95_micros), (None, None));
    assert!(result.tps_milli.is_some());
    assert_eq!(report.series, None);
}

proptest! {
    #[test]
    fn the_sum_does_not_depend_on_the_order(order in Just(vec![0, 1, 2, 3]).prop_shuffle()) {
        let reports: Vec<RunReport> = order.into_iter().map(part).collect();
        let sorted: Vec<RunReport> = (0..4).map(part).collect();
        prop_assert_eq!(whole(&pods(&reports), 4, 10), whole(&pods(&sorted), 4, 10));
    }
}
