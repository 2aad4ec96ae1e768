//! The measured window, cut out of pgbench's log while it is written. pgbench knows no warm-up, so its own report covers
//! all of the load; what counts here are the transactions that ended inside the window.
//! Bounded: a histogram for the whole window, one for each point of the series, one count for each second.

use std::collections::BTreeMap;

use super::super::decimal::rate_milli;
use super::super::histogram;
use super::super::result::{Flag, Interval, Reason, ToolResult};
use super::log::{Outcome, transaction};

/// Most points of the series.
const MOST_POINTS: u32 = 1_200;

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// Seconds from the tool's start to the window: what opening the connections may take, and the warm-up.
    pub lead_seconds: u32,
    /// How much of the lead is for opening the connections, seconds.
    pub opening_seconds: u32,
    /// Length of the window, seconds.
    pub duration_seconds: u32,
    /// Step of the series, seconds.
    pub interval_seconds: u32,
    /// Whether transactions arrive at a rate: the log then has a column for how late each was.
    pub throttled: bool,
    /// Whether transactions are tried again: the log then has a column for how often.
    pub retried: bool,
    /// Statements in a transaction of each script; empty where that is not known.
    pub statements: Vec<u64>,
}

/// One point of the series.
#[derive(Debug, Clone, Default)]
struct Point {
    failed: u64,
    histogram: BTreeMap<u16, u64>,
}

/// A window that takes in lines.
#[derive(Debug, Clone, Default)]
pub struct Window {
    shape: Shape,
    /// Step of the series, seconds.
    step: u32,
    /// Start of the window, microseconds of the epoch.
    start: Option<i64>,
    seconds: Vec<bool>,
    points: Vec<Point>,
    transactions: u64,
    queries: u64,
    failed: u64,
    skipped: u64,
    retried: u64,
    retries: u64,
    latency_sum: u64,
    latency_min: Option<u64>,
    latency_max: Option<u64>,
    /// Statements of the whole load; `None` once one of its transactions was tried again or failed.
    queries_sent: Option<u64>,
}

impl Window {
    /// A window of this shape.
    pub fn new(shape: Shape) -> Self {
        let interval = shape.interval_seconds.max(1);
        let step = interval
            * shape
                .duration_seconds
                .div_ceil(interval)
                .div_ceil(MOST_POINTS)
                .max(1);
        Self {
            step,
            seconds: vec![false; shape.duration_seconds as usize],
            points: vec![Point::default(); shape.duration_seconds.div_ceil(step) as usize],
            queries_sent: (!shape.statements.is_empty()).then_some(0),
            shape,
            ..Self::default()
        }
    }

    /// The tool was started, microseconds of the epoch by the clock that it takes too.
    pub fn begin(&mut self, started: i64) {
        self.start = Some(started + i64::from(self.shape.lead_seconds) * 1_000_000);
    }

    /// Seconds between two points of the series.
    pub fn step_seconds(&self) -> u32 {
        self.step
    }

    /// Takes in one line of a log.
    pub fn line(&mut self, line: &[u8]) {
        let Some(start) = self.start else { return };
        let Some(found) = std::str::from_utf8(line)
            .ok()
            .and_then(|text| transaction(text, self.shape.throttled, self.shape.retried))
        else {
            return;
        };
        let statements = self.shape.statements.get(found.script).copied();
        self.queries_sent = match (self.queries_sent, found.outcome) {
            (Some(sent), Outcome::Done(_)) if found.retries == 0 => statements.map(|more| sent + more),
            (sent, Outcome::Skipped) => sent,
            _ => None,
        };
        let Some(since) = u64::try_from(found.ended - start).ok() else {
            return;
        };
        let second = usize::try_from(since / 1_000_000).unwrap_or(usize::MAX);
        if second >= self.seconds.len() {
            return;
        }
        let point = &mut self.points[second / self.step as usize];
        self.retried += u64::from(found.retries > 0);
        self.retries += found.retries;
        match found.outcome {
            Outcome::Failed => {
                self.failed += 1;
                point.failed += 1;
            }
            Outcome::Skipped => self.skipped += 1,
            Outcome::Done(latency) => {
                self.seconds[second] = true;
                self.transactions += 1;
                self.queries += statements.unwrap_or(0);
                self.latency_sum = self.latency_sum.saturating_add(latency);
                self.latency_min = Some(self.latency_min.map_or(latency, |least| least.min(latency)));
                self.latency_max = self.latency_max.max(Some(latency));
                *point.histogram.entry(histogram::place(latency)).or_default() += 1;
            }
        }
    }

    /// Puts the window's figures in the place of those of the whole load, and judges again.
    #[must_use]
    pub fn complete(&self, mut result: ToolResult) -> ToolResult {
        let opening = result.figures.connection_micros.unwrap_or(0);
        let seconds = |seconds: u32| u64::from(seconds) * 1_000_000;
        // What opening took beyond its allowance is taken from the warm-up, then from the window.
        let late = opening.saturating_sub(seconds(self.shape.opening_seconds));
        let lost = opening.saturating_sub(seconds(self.shape.lead_seconds));
        let length = seconds(self.shape.duration_seconds).saturating_sub(lost);
        let mut all = BTreeMap::new();
        for (place, count) in self.points.iter().flat_map(|point| &point.histogram) {
            *all.entry(*place).or_default() += count;
        }
        result.histogram = histogram::buckets(&all);
        let p95 = histogram::percentile(&result.histogram, 95);
        let known = !self.shape.statements.is_empty();
        let figures = &mut result.figures;
        figures.window_micros = Some(length);
        figures.transactions = Some(self.transactions);
        figures.events = Some(self.transactions);
        figures.tps_milli = rate_milli(self.transactions, length);
        figures.queries = known.then_some(self.queries);
        figures.qps_milli = figures.queries.and_then(|queries| rate_milli(queries, length));
        figures.queries_sent = self.queries_sent;
        figures.failed_transactions = Some(self.failed);
        figures.skipped_transactions = Some(self.skipped);
        figures.retried_transactions = Some(self.retried);
        figures.retries = Some(self.retries);
        figures.latency_sum_micros = Some(self.latency_sum);
        figures.latency_mean_micros = self.latency_sum.checked_div(self.transactions);
        figures.latency_stddev_micros = None;
        figures.latency_min_micros = self.latency_min;
        figures.latency_max_micros = self.latency_max;
        figures.latency_percentile_micros = p95;
        figures.latency_p95_micros = p95;
        figures.latency_percentile_interpolated_micros = p95;
        let stalled = self.seconds.iter().filter(|busy| !**busy).count() as u64;
        // With few transactions asked for, an empty second is chance.
        figures.stalled_seconds = (!self.shape.throttled
            || self.transactions >= 10 * self.seconds.len() as u64)
            .then_some(stalled)
            .or(Some(0));
        result.percentile = Some(95);
        result.series = self.series();
        result.warmup_series = Vec::new();
        self.judge(&mut result, late);
        result.judged()
    }

    fn series(&self) -> Vec<Interval> {
        let point = |(index, point): (usize, &Point)| {
            let from = index as u32 * self.step;
            let length = self.step.min(self.shape.duration_seconds - from);
            let buckets = histogram::buckets(&point.histogram);
            let done = point.histogram.values().sum();
            let micros = u64::from(length) * 1_000_000;
            Interval {
                second: u64::from(self.shape.lead_seconds + from + length),
                tps_milli: rate_milli(done, micros),
                latency_micros: histogram::percentile(&buckets, 95),
                errors_milli: rate_milli(point.failed, micros),
                ..Interval::default()
            }
        };
        self.points.iter().enumerate().map(point).collect()
    }

    fn judge(&self, result: &mut ToolResult, late: u64) {
        if self.transactions == 0 {
            result.refuse_because(Reason::NoEvents, "no transaction ended inside the window");
        }
        // Those of the whole load speak of the warm-up too.
        result.flags.retain(|flag| {
            !matches!(
                flag,
                Flag::Stalled | Flag::FailedTransactions | Flag::Retries | Flag::SkippedTransactions
            )
        });
        for (flag, found) in [
            (Flag::Stalled, result.figures.stalled_seconds > Some(0)),
            (Flag::FailedTransactions, self.failed > 0),
            (Flag::Retries, self.retries > 0),
            (Flag::SkippedTransactions, self.skipped > 0),
            (Flag::ShortWarmUp, late > 0),
        ] {
            if found {
                result.flag(flag);
            }
        }
    }
}

#[cfg(test)]
mod tests;
