//! Dialect 0.5: `threads: …, tps: …, reads: …, writes: …, response time: …ms (95%)` interval lines, `read/write requests`
//! and `other operations` in place of `queries`, `response time` in place of `Latency`.
//! Here `total time` starts anew at each checkpoint.

use super::super::decimal::{count, micros_of_millis, milli};
use super::super::result::Interval;
use super::super::text::word_after;
use super::Dialect;
use super::report::Item;

pub(super) const DIALECT: Dialect = Dialect {
    name: "0.5",
    speaks: |version| version.starts_with("0.5"),
    only_here: |line| line.starts_with("ignored errors:"),
    interval,
    time_restarts_at_checkpoint: true,
    lines: LINES,
};

/// What a complete report holds; the percentile's line is missing when there was no event.
pub(super) const LINES: &[Item] = &[
    Item::TotalTime,
    Item::Events,
    Item::Sum,
    Item::Minimum,
    Item::Mean,
    Item::Maximum,
    Item::EventsFairness,
    Item::TimeFairness,
];

/// Reads also dialect 0.4, whose counts are named `reads/s` and `writes/s` and which has no errors.
pub(super) fn interval(second: u64, rest: &str) -> Option<Interval> {
    if !rest.starts_with("threads:") {
        return None;
    }
    let latency = word_after(rest, "response time:")?.strip_suffix("ms")?;
    let reads = word_after(rest, " reads:")
        .or_else(|| word_after(rest, " reads/s:"))
        .and_then(milli);
    let writes = word_after(rest, " writes:")
        .or_else(|| word_after(rest, " writes/s:"))
        .and_then(milli);
    Some(Interval {
        second,
        threads: word_after(rest, "threads:").and_then(count),
        tps_milli: word_after(rest, "tps:").and_then(milli),
        // Without the other operations, which these lines do not give.
        qps_milli: reads
            .zip(writes)
            .and_then(|(reads, writes)| reads.checked_add(writes)),
        latency_micros: micros_of_millis(latency),
        errors_milli: word_after(rest, "errors:").and_then(milli),
        reconnects_milli: word_after(rest, "reconnects:").and_then(milli),
    })
}
