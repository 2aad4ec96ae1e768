//! Reads the lines of sysbench's cumulative reports into numbers, dialect by dialect, and keeps apart what belongs to a
//! checkpoint (the warm-up) and what to the measured window.
//! It collects; it judges nothing.

use std::collections::BTreeMap;

use super::super::decimal::{count, micros_of_millis, micros_of_seconds, milli};
use super::super::result::{Bucket, Interval};
use super::super::text::{Line, timestamp};
use super::super::{histogram, text};
use super::{DIALECTS, Dialect};

/// A line of the report, whatever its wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    Reads,
    Writes,
    Others,
    TotalQueries,
    Transactions,
    Queries,
    ReadWriteRequests,
    OtherOperations,
    IgnoredErrors,
    Deadlocks,
    Reconnects,
    TotalTime,
    Events,
    EventRate,
    Minimum,
    Mean,
    Maximum,
    Percentile,
    Sum,
    EventsFairness,
    TimeFairness,
}

/// The numbers of one line: as a count or time, and as the rate or deviation behind it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Value {
    pub(super) main: Option<u64>,
    pub(super) second: Option<u64>,
}

/// One cumulative report.
#[derive(Debug, Default)]
pub(super) struct Report {
    items: BTreeMap<Item, Value>,
    section: Option<Section>,
    /// Whether it reports on SQL; a script without a database does not.
    pub(super) sql: bool,
    /// The percentile's rank; 0 when disabled.
    pub(super) percentile: Option<u64>,
    checkpoint: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Sql,
    General,
    Latency,
    Fairness,
}

impl Report {
    /// The numbers of an item.
    pub(super) fn value(&self, item: Item) -> Value {
        self.items.get(&item).copied().unwrap_or_default()
    }

    /// Whether the item's line was there, even with a number that is none (`nan`).
    pub(super) fn has(&self, item: Item) -> bool {
        self.items.contains_key(&item)
    }

    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.section.is_none()
    }

    /// Reads a line into the report; false if it is none of a report's lines.
    fn read(&mut self, line: &str) -> bool {
        if let Some(section) = section(line) {
            self.section = Some(section);
            self.sql |= section == Section::Sql;
            return true;
        }
        let Some((label, value)) = line.split_once(':') else {
            return false;
        };
        let Some((item, value)) = self.item(label.trim(), value.trim()) else {
            return false;
        };
        // A later line of the same name (a hook's own report) does not replace the first.
        self.items.entry(item).or_insert(value);
        true
    }

    fn item(&mut self, label: &str, value: &str) -> Option<(Item, Value)> {
        let counted = || counted(value);
        let single = |main| Value { main, second: None };
        Some(match (label, self.section?) {
            ("read", Section::Sql) => (Item::Reads, counted()),
            ("write", Section::Sql) => (Item::Writes, counted()),
            ("other", Section::Sql) => (Item::Others, counted()),
            ("total", Section::Sql) => (Item::TotalQueries, counted()),
            ("transactions", Section::Sql) => (Item::Transactions, counted()),
            ("queries", Section::Sql) => (Item::Queries, counted()),
            ("read/write requests", Section::Sql) => (Item::ReadWriteRequests, counted()),
            ("other operations", Section::Sql) => (Item::OtherOperations, counted()),
            ("ignored errors", Section::Sql) => (Item::IgnoredErrors, counted()),
            ("deadlocks", Section::Sql) => (Item::Deadlocks, counted()),
            ("reconnects", Section::Sql) => (Item::Reconnects, counted()),
            ("total time" | "time elapsed", Section::General) => {
                (Item::TotalTime, single(micros_of_seconds(value)))
            }
            ("total number of events", Section::General) => (Item::Events, counted()),
            ("events/s (eps)" | "events per second", Section::General) => (
                Item::EventRate,
                Value {
                    main: None,
                    second: milli(value),
                },
            ),
            ("total time taken by event execution", Section::General) => {
                (Item::Sum, single(micros_of_seconds(value)))
            }
            ("min", Section::Latency) => (Item::Minimum, single(micros_of_millis(value))),
            ("avg", Section::Latency) => (Item::Mean, single(micros_of_millis(value))),
            ("max", Section::Latency) => (Item::Maximum, single(micros_of_millis(value))),
            ("sum", Section::Latency) => (Item::Sum, single(micros_of_millis(value))),
            ("percentile stats", Section::Latency) => {
                self.percentile = Some(0);
                (Item::Percentile, Value::default())
            }
            (label, Section::Latency) => {
                self.percentile = Some(percentile_rank(label)?);
                (Item::Percentile, single(micros_of_millis(value)))
            }
            ("events (avg/stddev)", Section::Fairness) => (Item::EventsFairness, pair(value, milli)?),
            ("execution time (avg/stddev)", Section::Fairness) => {
                (Item::TimeFairness, pair(value, micros_of_seconds)?)
            }
            _ => return None,
        })
    }
}

fn section(line: &str) -> Option<Section> {
    match line {
        "SQL statistics:" | "OLTP test statistics:" => Some(Section::Sql),
        "General statistics:" | "Throughput:" | "CPU speed:" => Some(Section::General),
        "Latency (ms):" | "response time:" => Some(Section::Latency),
        "Threads fairness:" => Some(Section::Fairness),
        _ => None,
    }
}

/// `20091  (2007.69 per sec.)`
fn counted(value: &str) -> Value {
    let (number, rate) = value.split_once('(').unwrap_or((value, ""));
    Value {
        main: count(number),
        second: rate.split_whitespace().next().and_then(milli),
    }
}

/// `5022.7500/423.62`; a pair whose end is cut off is none.
fn pair(value: &str, read: fn(&str) -> Option<u64>) -> Option<Value> {
    let (mean, deviation) = value.split_once('/')?;
    let deviation = deviation.trim();
    let digits = deviation
        .split_once(['.', ','])
        .map_or(0, |(_, fraction)| fraction.len());
    // Printed with two decimals, or as a word that is no number.
    if digits < 2 && !deviation.ends_with(['n', 'f', ')']) {
        return None;
    }
    Some(Value {
        main: read(mean),
        second: read(deviation),
    })
}

/// `95th percentile`, `approx.  95 percentile`.
fn percentile_rank(label: &str) -> Option<u64> {
    let rank = label
        .strip_suffix("percentile")?
        .trim()
        .trim_start_matches("approx.")
        .trim();
    count(rank.trim_end_matches(|found: char| found.is_ascii_alphabetic()))
}

/// Everything of a run's output that is not a message.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) version: Option<String>,
    pub(super) threads: Option<u64>,
    /// `--rate`, events per second.
    pub(super) rate: Option<u64>,
    /// `--report-interval`, seconds.
    pub(super) report_interval: Option<u64>,
    /// Reports, in the order of their printing.
    reports: Vec<Report>,
    intervals: Vec<Interval>,
    pub(super) histogram: Vec<Bucket>,
    markers: Vec<&'static str>,
}

impl Reading {
    pub(super) fn of(lines: &[Line<'_>]) -> Self {
        let mut reading = Self::default();
        let mut in_histogram = false;
        for line in lines {
            let text = line.text.trim();
            if let Some(version) = version(text) {
                // Output of another process before this one (a loop's log) is not this one's.
                reading = Self {
                    version: Some(version.to_owned()),
                    ..Self::default()
                };
                continue;
            }
            if text.starts_with("DEBUG:") {
                continue;
            }
            if let Some((second, rest)) = timestamp(text) {
                reading.stamped(second, rest);
                continue;
            }
            if text.starts_with("Latency histogram") {
                in_histogram = true;
                reading.reports.push(Report::default());
                reading.histogram.clear();
                continue;
            }
            if in_histogram {
                if let Some(bucket) = histogram::bucket(text) {
                    reading.histogram.push(bucket);
                    continue;
                }
                in_histogram = section(text).is_none();
            }
            reading.setting(text);
            // The last line of a capture that was cut off: its number may be cut too. The final line is recognised by
            // its form.
            if !line.terminated && !text.starts_with("execution time") {
                continue;
            }
            reading.report_line(text);
        }
        reading
    }

    fn stamped(&mut self, second: u64, rest: &str) {
        if rest.starts_with("Checkpoint report") {
            self.reports.push(Report {
                checkpoint: Some(second),
                ..Report::default()
            });
            return;
        }
        let read = self
            .dialect()
            .map_or(DIALECTS[0].interval, |dialect| dialect.interval);
        let interval = read(second, rest).or_else(|| {
            DIALECTS
                .iter()
                .find_map(|dialect| (dialect.interval)(second, rest))
        });
        self.intervals.extend(interval);
    }

    fn setting(&mut self, text: &str) {
        if let Some(threads) = text.strip_prefix("Number of threads:") {
            self.threads = count(threads);
        } else if let Some(rate) = text.strip_prefix("Target transaction rate:") {
            self.rate = rate.trim().split('/').next().and_then(count);
        } else if text.starts_with("Report intermediate results every") {
            self.report_interval = text::word_after(text, "every").and_then(count);
        }
    }

    fn report_line(&mut self, text: &str) {
        for dialect in DIALECTS {
            if (dialect.only_here)(text) && !self.markers.contains(&dialect.name) {
                self.markers.push(dialect.name);
            }
        }
        let starts = section(text).is_some_and(|section| match self.reports.last() {
            // A new report starts where a section would come a second time.
            Some(report) => report
                .section
                .is_some_and(|current| order(section) <= order(current) && report.ended(section)),
            None => true,
        });
        if starts {
            self.reports.push(Report::default());
        }
        if let Some(report) = self.reports.last_mut() {
            report.read(text);
        }
    }

    /// The dialect of the version, or, where the first line was lost, that of lines which only one dialect prints.
    pub(super) fn dialect(&self) -> Option<&'static Dialect> {
        match &self.version {
            Some(version) => DIALECTS.iter().find(|dialect| (dialect.speaks)(version)),
            None => ["1.1", "1.0", "0.4", "0.5"]
                .into_iter()
                .find(|name| self.markers.contains(name))
                .and_then(|name| DIALECTS.iter().find(|dialect| dialect.name == name)),
        }
    }

    /// The report of the measured window, and the one of the checkpoint at its start.
    pub(super) fn window(&self) -> (Option<&Report>, Option<&Report>) {
        let checkpoint = self.reports.iter().rfind(|report| report.checkpoint.is_some());
        let last = self
            .reports
            .last()
            .filter(|report| report.checkpoint.is_none() && !report.is_empty());
        (last, checkpoint)
    }

    /// Queries of all reports together: each covers what came after the one before it.
    pub(super) fn queries_sent(&self) -> Option<u64> {
        let counts = self
            .reports
            .iter()
            .filter(|report| report.sql)
            .map(|report| report.value(Item::TotalQueries).main);
        counts.reduce(|sum, count| sum?.checked_add(count?)).flatten()
    }

    /// Interval lines up to the last checkpoint and after it. The line for the checkpoint's own second is printed after
    /// the checkpoint's report but belongs to the warm-up.
    pub(super) fn series(&self) -> (Vec<Interval>, Vec<Interval>) {
        let start = self
            .reports
            .iter()
            .filter_map(|report| report.checkpoint)
            .next_back()
            .unwrap_or(0);
        self.intervals
            .iter()
            .cloned()
            .partition(|interval| start > 0 && interval.second <= start)
    }
}

impl Report {
    /// Whether the report already holds lines of `section` or of one behind it.
    fn ended(&self, section: Section) -> bool {
        // The rate of a built-in test (`CPU speed`) stands before the report proper.
        self.items
            .keys()
            .any(|item| *item != Item::EventRate && order(home(*item)) >= order(section))
    }
}

fn order(section: Section) -> u8 {
    match section {
        Section::Sql => 0,
        Section::General => 1,
        Section::Latency => 2,
        Section::Fairness => 3,
    }
}

fn home(item: Item) -> Section {
    match item {
        Item::Reads
        | Item::Writes
        | Item::Others
        | Item::TotalQueries
        | Item::Transactions
        | Item::Queries
        | Item::ReadWriteRequests
        | Item::OtherOperations
        | Item::IgnoredErrors
        | Item::Deadlocks
        | Item::Reconnects => Section::Sql,
        Item::TotalTime | Item::Events | Item::EventRate => Section::General,
        Item::Minimum | Item::Mean | Item::Maximum | Item::Percentile | Item::Sum => Section::Latency,
        Item::EventsFairness | Item::TimeFairness => Section::Fairness,
    }
}

/// The version in the first line: `sysbench 1.0.20 (using …)`, `sysbench 0.5:  multi-threaded …`, `sysbench 1.0.20`.
fn version(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("sysbench ")?;
    let version = rest.split_whitespace().next()?.trim_end_matches(':');
    version
        .starts_with(|first: char| first.is_ascii_digit())
        .then_some(version)
}
