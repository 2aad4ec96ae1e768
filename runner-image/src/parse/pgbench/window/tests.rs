//! What counts, what does not, and that nothing is counted twice.

use super::super::super::{Capture, Command};
use super::*;
use proptest::prelude::*;

const STARTED: i64 = 1_796_059_149_250_000;

fn shape() -> Shape {
    Shape {
        lead_seconds: 3,
        opening_seconds: 1,
        duration_seconds: 4,
        interval_seconds: 2,
        statements: vec![7],
        ..Shape::default()
    }
}

fn line(after_micros: i64, latency: &str) -> String {
    let ended = STARTED + after_micros;
    format!("0 1 {latency} 0 {} {}", ended / 1_000_000, ended % 1_000_000)
}

fn report() -> ToolResult {
    super::super::parse(&Capture {
        stdout: include_str!("../../../../fixtures/pgbench/tpcb_progress_latency.txt"),
        stderr: include_str!("../../../../fixtures/pgbench/tpcb_progress_latency.stderr.txt"),
        exit_code: 0,
        command: Command::Run,
    })
}

fn filled(shape: Shape, lines: &[String]) -> ToolResult {
    let mut window = Window::new(shape);
    window.begin(STARTED);
    for line in lines {
        window.line(line.as_bytes());
    }
    window.complete(report())
}

#[test]
fn only_what_ends_inside_the_window_counts() {
    let lines = [
        line(2_999_999, "5000000"),
        line(3_000_000, "1000"),
        line(6_999_999, "9000000"),
        line(7_000_000, "1"),
        line(4_000_000, "failed"),
        line(4_000_000, "12")[..20].to_owned(),
    ];
    let result = filled(shape(), &lines);
    let figures = &result.figures;
    assert!(result.acceptable, "{:?}", result.details);
    assert_eq!(
        (figures.transactions, figures.window_micros, figures.tps_milli),
        (Some(2), Some(4_000_000), Some(500))
    );
    assert_eq!((figures.queries, figures.qps_milli), (Some(14), Some(3_500)));
    assert_eq!(
        (
            figures.latency_mean_micros,
            figures.latency_min_micros,
            figures.latency_max_micros
        ),
        (Some(4_500_500), Some(1_000), Some(9_000_000))
    );
    // A failed transaction sent statements that nobody counted.
    assert_eq!(
        (figures.failed_transactions, figures.queries_sent),
        (Some(1), None)
    );
    assert_eq!(figures.stalled_seconds, Some(2));
    assert_eq!(result.flags, [Flag::Stalled, Flag::FailedTransactions]);
    let rates: Vec<_> = result.series.iter().map(|point| point.tps_milli).collect();
    assert_eq!(rates, [Some(500), Some(500)]);
    assert!(result.histogram.iter().map(|bucket| bucket.count).sum::<u64>() == 2);
}

#[test]
fn statements_of_the_whole_load_are_counted() {
    let lines: Vec<String> = (0..80).map(|tenth| line(tenth * 100_000, "900")).collect();
    let figures = filled(shape(), &lines).figures;
    assert_eq!(
        (figures.queries_sent, figures.queries, figures.stalled_seconds),
        (Some(560), Some(280), Some(0))
    );
    let unknown = Shape {
        statements: Vec::new(),
        ..shape()
    };
    let figures = filled(unknown, &lines).figures;
    assert_eq!(
        (
            figures.queries_sent,
            figures.queries,
            figures.qps_milli,
            figures.transactions
        ),
        (None, None, None, Some(40))
    );
}

#[test]
fn columns_for_lag_and_retries_are_those_asked_for() {
    let throttled = Shape {
        throttled: true,
        retried: true,
        ..shape()
    };
    let lines = [
        format!("{} 250 2", line(3_500_000, "1000")),
        format!("{} 0 0", line(3_500_000, "skipped")),
        line(3_500_000, "1000"),
    ];
    let result = filled(throttled, &lines);
    let figures = result.figures;
    assert_eq!(
        (
            figures.transactions,
            figures.retries,
            figures.retried_transactions
        ),
        (Some(1), Some(2), Some(1))
    );
    assert_eq!(
        (figures.skipped_transactions, figures.stalled_seconds),
        (Some(1), Some(0))
    );
    assert_eq!(result.flags, [Flag::Retries, Flag::SkippedTransactions]);
}

#[test]
fn slow_connections_shorten_the_warm_up_and_then_the_window() {
    let lines = [line(3_500_000, "1000")];
    let mut window = Window::new(shape());
    window.begin(STARTED);
    window.line(lines[0].as_bytes());
    let opened_after = |micros| {
        let mut result = report();
        result.figures.connection_micros = Some(micros);
        let result = window.complete(result);
        (
            result.flags.contains(&Flag::ShortWarmUp),
            result.figures.window_micros,
        )
    };
    assert_eq!(opened_after(900_000), (false, Some(4_000_000)));
    assert_eq!(opened_after(1_100_000), (true, Some(4_000_000)));
    assert_eq!(opened_after(3_500_000), (true, Some(3_500_000)));
}

#[test]
fn an_empty_window_is_not_acceptable() {
    let result = filled(shape(), &[line(100, "1000")]);
    assert_eq!(result.reasons, [Reason::NoEvents]);
    assert_eq!(result.figures.latency_mean_micros, None);
}

#[test]
fn a_long_window_has_a_coarser_series() {
    let window = Window::new(Shape {
        duration_seconds: 86_400,
        interval_seconds: 1,
        ..shape()
    });
    assert_eq!((window.step_seconds(), window.points.len()), (72, 1_200));
    let window = Window::new(Shape {
        duration_seconds: 7,
        interval_seconds: 2,
        ..shape()
    });
    assert_eq!((window.step_seconds(), window.points.len()), (2, 4));
}

proptest! {
    #[test]
    fn counts_agree_whatever_the_lines(
        ends in proptest::collection::vec((0i64..9_000_000, 1u64..200_000_000), 0..200),
        junk in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut window = Window::new(shape());
        window.begin(STARTED);
        for (after, latency) in &ends {
            window.line(line(*after, &latency.to_string()).as_bytes());
            window.line(&junk);
        }
        let result = window.complete(report());
        let inside: Vec<u64> = ends
            .iter()
            .filter(|(after, _)| (3_000_000..7_000_000).contains(after))
            .map(|(_, latency)| *latency)
            .collect();
        let counted = result.histogram.iter().map(|bucket| bucket.count).sum::<u64>();
        prop_assert_eq!(counted, inside.len() as u64);
        prop_assert_eq!(result.figures.transactions, Some(inside.len() as u64));
        prop_assert_eq!(result.figures.latency_max_micros, inside.iter().copied().max());
        prop_assert_eq!(result.acceptable, !inside.is_empty());
    }
}
