//! From a reading to a verdict on a `run`: what is missing, what failed, which figures the window has.

use super::super::decimal::{rate_milli, window_micros};
use super::super::result::{Fairness, Flag, Interval, Reason, ToolResult};
use super::super::{failure, histogram};
use super::report::{Item, Reading, Report};

/// Lines of the SQL section that every dialect prints.
const SQL_LINES: &[Item] = &[
    Item::Reads,
    Item::Writes,
    Item::Others,
    Item::TotalQueries,
    Item::Transactions,
];

/// An event this much longer than the percentile, and longer than a second, is a stall that a percentile hides.
const STALL_RATIO: u64 = 100;
const STALL_MICROS: u64 = 1_000_000;

/// Below this many expected events an empty interval is chance, not a stall.
const EVENTS_EXPECTED: u64 = 10;

/// Collects reasons and flags from messages of both streams.
pub(super) fn messages<'a>(result: &mut ToolResult, lines: impl Iterator<Item = &'a str>) {
    // ALERT lines name the cause of a FATAL in 0.4 and 0.5; without a FATAL they are worth a flag only.
    let mut alerts = Vec::new();
    let mut fatal = false;
    for line in lines {
        failure::judge_shell_message(result, line);
        failure::flag_message(result, line);
        if failure::is_fatal(line) {
            fatal = true;
            result.refuse_because(Reason::Fatal, line);
            if let Some(reason) = failure::cause(line) {
                result.refuse_because(reason, line);
            } else if is_script_error(line) {
                result.refuse_because(Reason::ScriptError, line);
            }
        } else if line.trim_start().starts_with("ALERT:") {
            alerts.push(line);
        } else if is_refusal(line) {
            if let Some(reason) = failure::cause(line) {
                result.refuse_because(reason, line);
            }
        } else if line.starts_with("PANIC:") {
            result.refuse_because(Reason::ScriptError, line);
        }
    }
    if fatal || result.exit_code != 0 {
        for line in alerts {
            if let Some(reason) = failure::cause(line) {
                result.refuse_because(reason, line);
            }
        }
    }
}

/// A Lua error that does not repeat an error which the driver has reported already.
fn is_script_error(line: &str) -> bool {
    let driver = [
        "SQL API error",
        "connection creation failed",
        "failed to initialize the DB driver",
    ];
    (line.contains("function failed:") || line.contains(".lua"))
        && !driver.iter().any(|text| line.contains(text))
}

/// Messages that sysbench prints without a level, before logging is set up.
fn is_refusal(line: &str) -> bool {
    [
        "invalid option:",
        "Invalid value for",
        "Unrecognized command line argument",
        "Missing required command argument",
        "Invalid test name",
    ]
    .iter()
    .any(|start| line.trim_start().starts_with(start))
}

/// Judges a `run`.
pub(super) fn run(result: &mut ToolResult, reading: Reading) {
    let (warmup, series) = reading.series();
    result.figures.threads = reading.threads;
    let (report, checkpoint) = reading.window();
    match report {
        None => result.refuse_because(Reason::NoReport, missing_report(&reading, checkpoint)),
        Some(report) => {
            judge_completeness(result, &reading, report);
            figures(result, &reading, report, checkpoint);
            flags(result, &reading, &series);
        }
    }
    result.series = series;
    result.warmup_series = warmup;
    result.histogram = reading.histogram;
}

fn missing_report(reading: &Reading, checkpoint: Option<&Report>) -> &'static str {
    if checkpoint.is_some() {
        "only the warm-up's checkpoint report, none of the measured window"
    } else if reading.version.is_none() {
        "no output of a run: not even the first line (verbosity 0, or the tool did not start)"
    } else if reading.threads.is_none() {
        "no run: the output is that of another command or ended before the load began"
    } else {
        "a run was announced, no report followed"
    }
}

fn judge_completeness(result: &mut ToolResult, reading: &Reading, report: &Report) {
    let dialect_lines = reading
        .dialect()
        .map_or(super::v1_0::LINES, |dialect| dialect.lines);
    let sql = if report.sql { SQL_LINES } else { &[] };
    let missing: Vec<String> = sql
        .iter()
        .chain(dialect_lines)
        .filter(|item| !report.has(**item))
        .map(|item| format!("{item:?}"))
        .collect();
    if !missing.is_empty() {
        result.refuse_because(
            Reason::IncompleteReport,
            &format!("missing lines: {}", missing.join(", ")),
        );
    } else if !report.sql && reading.version.is_none() {
        // Without its first line the capture may have lost the SQL section as well.
        result.refuse_because(Reason::IncompleteReport, "the start of the output is missing");
    } else if report.sql && report.value(Item::Transactions).main.is_none() {
        result.refuse_because(
            Reason::IncompleteReport,
            "the number of transactions is no number",
        );
    }
    match report.value(Item::Events).main {
        Some(0) => result.refuse_because(Reason::NoEvents, "the report counts 0 events"),
        None if report.has(Item::Events) => {
            result.refuse_because(Reason::IncompleteReport, "the number of events is no number");
        }
        _ => {}
    }
}

fn figures(result: &mut ToolResult, reading: &Reading, report: &Report, checkpoint: Option<&Report>) {
    let main = |item| report.value(item).main;
    let rate = |item| report.value(item).second;
    let figures = &mut result.figures;

    figures.events = main(Item::Events);
    figures.transactions = main(Item::Transactions).or(figures.events);
    figures.queries = main(Item::TotalQueries).or(main(Item::Queries));
    figures.queries_sent = reading.queries_sent();
    figures.reads = main(Item::Reads);
    figures.writes = main(Item::Writes);
    figures.others = main(Item::Others);
    figures.ignored_errors = main(Item::IgnoredErrors);
    figures.deadlocks = main(Item::Deadlocks);
    figures.reconnects = main(Item::Reconnects);
    figures.total_time_micros = main(Item::TotalTime);

    // `per sec.` divides by the time since the last checkpoint (`sb_timer_current(&sb_checkpoint_timer)`), so the
    // printed rates are those of the window as they stand: 9,282 transactions at 2,318.50 per second are 4.0035 s,
    // and the interval lines of seconds 4 to 7 average 2,320. `total time` however counts from the start of the load
    // (7.0036 s there): the window is the difference between the two reports' total times. 0.x restarts both.
    let restarts = reading
        .dialect()
        .is_some_and(|dialect| dialect.time_restarts_at_checkpoint);
    let printed_rate = rate(Item::Transactions).or(rate(Item::EventRate));
    figures.window_micros = match (checkpoint, restarts) {
        (Some(checkpoint), false) => main(Item::TotalTime)
            .zip(checkpoint.value(Item::TotalTime).main)
            .and_then(|(end, start)| end.checked_sub(start))
            .or_else(|| window_micros(figures.transactions?, printed_rate?)),
        _ => main(Item::TotalTime),
    };
    let per_second = |count: Option<u64>| rate_milli(count?, figures.window_micros?);
    figures.tps_milli = printed_rate.or_else(|| per_second(figures.transactions));
    figures.qps_milli = rate(Item::Queries)
        // 0.x has no rate of all queries, but those of its two halves.
        .or_else(|| rate(Item::ReadWriteRequests)?.checked_add(rate(Item::OtherOperations)?))
        .or_else(|| per_second(figures.queries));

    figures.latency_min_micros = main(Item::Minimum);
    figures.latency_mean_micros = main(Item::Mean);
    figures.latency_max_micros = main(Item::Maximum);
    figures.latency_sum_micros = main(Item::Sum);
    result.percentile = report.percentile.filter(|rank| *rank > 0);
    if let Some(rank) = result.percentile {
        figures.latency_percentile_micros = main(Item::Percentile);
        figures.latency_p95_micros = main(Item::Percentile).filter(|_| rank == 95);
        figures.latency_percentile_interpolated_micros = histogram::percentile(&reading.histogram, rank);
    }
    if report.has(Item::EventsFairness) || report.has(Item::TimeFairness) {
        let (events, time) = (
            report.value(Item::EventsFairness),
            report.value(Item::TimeFairness),
        );
        result.fairness = Some(Fairness {
            events_mean_milli: events.main,
            events_stddev_milli: events.second,
            time_mean_micros: time.main,
            time_stddev_micros: time.second,
        });
    }
}

fn flags(result: &mut ToolResult, reading: &Reading, series: &[Interval]) {
    let positive = |figure: Option<u64>| figure.is_some_and(|figure| figure > 0);
    let report_interval = reading.report_interval.unwrap_or(1).max(1);
    let expected = reading
        .rate
        .map_or(u64::MAX, |rate| rate.saturating_mul(report_interval));
    let stalled = series
        .iter()
        .filter(|interval| interval.tps_milli == Some(0))
        .count() as u64;
    let stalled = if expected >= EVENTS_EXPECTED { stalled } else { 0 };
    let hidden = result
        .figures
        .latency_max_micros
        .zip(result.figures.latency_percentile_micros)
        .is_some_and(|(maximum, percentile)| {
            maximum >= STALL_MICROS && maximum >= percentile.saturating_mul(STALL_RATIO)
        });
    if !series.is_empty() {
        result.figures.stalled_seconds = Some(stalled.saturating_mul(report_interval));
    }
    let gap = series
        .windows(2)
        .any(|pair| pair[1].second > pair[0].second.saturating_add(report_interval));
    for (flag, found) in [
        (Flag::Stalled, stalled > 0 || hidden),
        (Flag::IgnoredErrors, positive(result.figures.ignored_errors)),
        (Flag::Deadlocks, positive(result.figures.deadlocks)),
        (Flag::Reconnects, positive(result.figures.reconnects)),
        (Flag::MissingIntervals, gap),
    ] {
        if found {
            result.flag(flag);
        }
    }
}
