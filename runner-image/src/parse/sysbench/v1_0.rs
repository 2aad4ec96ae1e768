//! Dialect 1.0 (versions 1.0.0 to 1.0.20): `thds:` interval lines, `General statistics`, `Latency (ms)`.
//! `per sec.` divides by the time since the last checkpoint, `total time` counts from the start.

use super::super::decimal::{count, micros_of_millis, milli};
use super::super::result::Interval;
use super::super::text::word_after;
use super::report::Item;
use super::{Dialect, v0_5};

pub(super) const DIALECT: Dialect = Dialect {
    name: "1.0",
    speaks: |version| version.starts_with("1.0"),
    only_here: |line| line == "Latency (ms):",
    interval,
    time_restarts_at_checkpoint: false,
    lines: LINES,
};

/// What a complete report holds.
pub(super) const LINES: &[Item] = &[
    Item::TotalTime,
    Item::Events,
    Item::Minimum,
    Item::Mean,
    Item::Maximum,
    Item::Percentile,
    Item::Sum,
    Item::EventsFairness,
    Item::TimeFairness,
];

/// `thds: 4 tps: 2190.21 qps: 43855.07 (r/w/o: …) lat (ms,95%): 3.19 err/s: 0.00 reconn/s: 0.00`, and without a
/// database `thds: 4 eps: 2190.21 lat (ms,95%): 3.19`. A line that was cut off is no interval.
///
/// `sysbench.report_default()` in a script's hook prints `err/s` without its colon.
pub(super) fn interval(second: u64, rest: &str) -> Option<Interval> {
    if !rest.starts_with("thds:") {
        // 1.0 before its first release printed the lines of 0.5.
        return v0_5::interval(second, rest);
    }
    let (_, latency) = rest.split_once("lat (ms,")?;
    let disabled = latency.starts_with("0%");
    let latency = word_after(latency, "): ")?;
    if rest.contains("tps:") && !rest.contains("reconn/s:") {
        return None;
    }
    Some(Interval {
        second,
        threads: word_after(rest, "thds:").and_then(count),
        tps_milli: word_after(rest, "tps:")
            .or_else(|| word_after(rest, "eps:"))
            .and_then(milli),
        qps_milli: word_after(rest, "qps:").and_then(milli),
        latency_micros: micros_of_millis(latency).filter(|_| !disabled),
        errors_milli: word_after(rest, "err/s:")
            .or_else(|| word_after(rest, "err/s "))
            .and_then(milli),
        reconnects_milli: word_after(rest, "reconn/s:").and_then(milli),
    })
}
