//! From what was seen to what is said: figures, observations and series of a run, and the termination message that must
//! fit into the kubelet's 4,096 bytes. Pure arithmetic; absent stays absent.

use std::collections::BTreeMap;

use crds::run::{RunResult, Series};
use crds::runner::{AgentAudit, AgentUsage, RunObservations, RunReport, TERMINATION_MESSAGE_LIMIT};
use crds::together::LatencyHistogram;

use crate::parse::ToolResult;
use crate::parse::result::Interval;

/// Longest message for people, bytes.
const MESSAGE_BYTES: usize = 500;
/// Fewest points of a series that are worth their place.
const FEWEST_POINTS: usize = 8;
/// Most points of a series (its type's limit).
const MOST_POINTS: usize = 512;
/// Points of the series of one of several pods.
const PART_POINTS: usize = 60;
/// What the histogram of one of several pods may take where not all fits: the figures take a third of the rest.
const HISTOGRAM_BYTES: usize = 1_800;

/// The state of things at one moment; two of them enclose the load.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Milliseconds on a clock that can't be set.
    pub at_millis: i64,
    /// The agent's counters.
    pub usage: Option<AgentUsage>,
    /// Busy time of each CPU of our own node, milliseconds.
    pub busy_millis: BTreeMap<u32, i64>,
    /// CPU time of this process and its children, milliseconds.
    pub own_cpu_millis: Option<i64>,
    /// Time for which our own cgroup was throttled, milliseconds.
    pub throttled_millis: Option<i64>,
}

/// What does not change during a run.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// CPUs that we may use.
    pub cpus: Vec<u32>,
    /// Our CPU limit, thousandths of a CPU.
    pub limit_milli: Option<i64>,
    /// Median round trip to the database's pod, nanoseconds.
    pub round_trip_nanos: Option<i64>,
    /// CPU time of the load generator, milliseconds.
    pub generator_cpu_millis: Option<i64>,
    /// What the audit log gained from the first sample to the second.
    pub audit: Option<AgentAudit>,
    /// Classes of audit events of which each statement of the load writes one; none where it records only some.
    pub statement_classes: Option<&'static [&'static str]>,
}

/// The figures and observations of a run.
pub fn figures(
    tool: &ToolResult,
    setting: &Setting,
    before: &Sample,
    after: &Sample,
) -> (RunResult, RunObservations) {
    let figures = &tool.figures;
    let sent = figures
        .queries_sent
        .and_then(|sent| i64::try_from(sent).ok())
        .filter(|sent| *sent > 0);
    let elapsed = (after.at_millis - before.at_millis).max(0);
    let usage = before.usage.as_ref().zip(after.usage.as_ref());
    let used = |read: fn(&AgentUsage) -> Option<i64>| {
        usage.and_then(|(before, after)| difference(read(before), read(after)))
    };
    let server_cpu = used(|usage| usage.server_cpu_millis);
    let server_cpus = usage
        .map(|(_, after)| after.server_cpus.as_slice())
        .filter(|cpus| !cpus.is_empty());
    let server_available = server_cpus.map(|cpus| elapsed * cpus.len() as i64);
    let server_busy = usage
        .zip(server_cpus)
        .map(|((before, after), cpus)| busy(&before.cpu_busy_millis, &after.cpu_busy_millis, cpus));
    let generator_available = generator_available(setting, before, after, elapsed);
    let audit_bytes = setting.audit.as_ref().map(|gained| gained.bytes);
    let audit_events = setting
        .audit
        .as_ref()
        .map(|gained| gained.events.clone())
        .unwrap_or_default();

    let count = |figure: Option<u64>| figure.and_then(|figure| i64::try_from(figure).ok());
    let per_statement = |millis: Option<i64>| Some(millis?.checked_mul(1_000_000)? / sent?);
    let result = RunResult {
        tps_milli: count(figures.tps_milli),
        qps_milli: count(figures.qps_milli),
        transactions: count(figures.transactions),
        queries: count(figures.queries),
        window_micros: count(figures.window_micros),
        latency_mean_micros: count(figures.latency_mean_micros),
        latency_p95_micros: count(
            figures
                .latency_percentile_interpolated_micros
                .filter(|_| tool.percentile == Some(95))
                .or(figures.latency_p95_micros),
        ),
        latency_max_micros: count(figures.latency_max_micros),
        errors: count(figures.ignored_errors.or(figures.failed_transactions)),
        reconnects: count(figures.reconnects),
        stalled_seconds: count(figures.stalled_seconds),
        cpu_nanos_per_statement: per_statement(server_cpu),
        server_cpu_ppm: share(server_cpu, server_available),
        client_cpu_nanos_per_statement: per_statement(setting.generator_cpu_millis),
        generator_cpu_ppm: share(setting.generator_cpu_millis, generator_available),
        log_bytes_per_1000_statements: audit_bytes
            .zip(sent)
            .and_then(|(bytes, sent)| Some(bytes.checked_mul(1_000)? / sent)),
        log_bytes_per_1000_records: audit_bytes.and_then(|bytes| {
            let records = audit_events.values().sum();
            bytes.checked_mul(1_000)?.checked_div(records)
        }),
        audit_completeness_ppm: setting.statement_classes.and_then(|classes| {
            setting.audit.as_ref()?;
            let found = classes.iter().filter_map(|class| audit_events.get(*class)).sum();
            share(Some(found), sent)
        }),
        round_trip_nanos: setting.round_trip_nanos,
    };
    let mut flags: Vec<String> = tool.flags.iter().map(|flag| format!("{flag:?}")).collect();
    if setting.audit.as_ref().is_some_and(|gained| gained.truncated) {
        flags.push("AuditLogTruncated".to_owned());
    }
    let observations = RunObservations {
        generator_cpu_millis: setting.generator_cpu_millis,
        generator_cpu_available_millis: generator_available,
        generator_throttled_millis: difference(before.throttled_millis, after.throttled_millis),
        server_cpu_millis: server_cpu,
        foreign_cpu_millis: server_busy.zip(server_cpu).map(|(busy, own)| (busy - own).max(0)),
        database_cpu_available_millis: server_available,
        swapped_pages: used(|usage| usage.swapped_pages),
        oom_kills: used(|usage| usage.oom_kills),
        database_throttled_millis: used(|usage| usage.throttled_millis),
        audit_events,
        audit_bytes,
        queries_sent: sent,
        flags,
        ..RunObservations::default()
    };
    (result, observations)
}

/// CPU time that the generator could have had: its limit, or its CPUs less what others used there, whichever is less.
fn generator_available(setting: &Setting, before: &Sample, after: &Sample, elapsed: i64) -> Option<i64> {
    let limit = setting
        .limit_milli
        .map(|limit| limit.saturating_mul(elapsed) / 1_000);
    let own = difference(before.own_cpu_millis, after.own_cpu_millis);
    let set = own.filter(|_| !setting.cpus.is_empty()).map(|own| {
        let others = (busy(&before.busy_millis, &after.busy_millis, &setting.cpus) - own).max(0);
        (elapsed * setting.cpus.len() as i64 - others).max(0)
    });
    [limit, set].into_iter().flatten().min()
}

fn busy(before: &BTreeMap<u32, i64>, after: &BTreeMap<u32, i64>, cpus: &[u32]) -> i64 {
    cpus.iter()
        .filter_map(|cpu| difference(before.get(cpu).copied(), after.get(cpu).copied()))
        .sum()
}

fn difference(before: Option<i64>, after: Option<i64>) -> Option<i64> {
    Some(after?.saturating_sub(before?))
}

/// Parts per million; `None` of nothing.
fn share(part: Option<i64>, whole: Option<i64>) -> Option<i64> {
    let (part, whole) = (part?, whole.filter(|whole| *whole > 0)?);
    i64::try_from(i128::from(part) * 1_000_000 / i128::from(whole)).ok()
}

/// The series of a window, thinned to at most `points`: the mean of the rates and the worst of the latencies of each
/// group of neighbours, so that a stall stays visible.
pub fn series(intervals: &[Interval], report_interval_seconds: u32, points: usize) -> Option<Series> {
    let points = points.min(MOST_POINTS);
    if intervals.is_empty() || points == 0 {
        return None;
    }
    let group = intervals.len().div_ceil(points);
    let groups = || intervals.chunks(group);
    let value = |figure: Option<u64>| figure.and_then(|figure| i64::try_from(figure).ok()).unwrap_or(0);
    let tps = groups().map(|group| {
        let sum: i64 = group.iter().map(|interval| value(interval.tps_milli)).sum();
        (sum + 500 * group.len() as i64) / (1_000 * group.len() as i64)
    });
    let p95 = groups().map(|group| {
        group
            .iter()
            .map(|interval| value(interval.latency_micros))
            .max()
            .unwrap_or(0)
    });
    Some(Series {
        step_seconds: i32::try_from(group * report_interval_seconds as usize).unwrap_or(i32::MAX),
        tps: differences(tps),
        p95_micros: differences(p95),
    })
}

/// The first value, then differences.
fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut last = 0;
    values
        .map(|value| {
            let step = value - last;
            last = value;
            step
        })
        .collect()
}

/// The report as compact JSON of at most 4,096 bytes: the series is thinned first, then left out, then words are cut;
/// figures stay.
pub fn termination_message(
    report: &RunReport,
    intervals: &[Interval],
    report_interval_seconds: u32,
) -> String {
    let mut report = report.clone();
    report.message = cut(&report.message, MESSAGE_BYTES);
    // Series of several pods are added point by point: they are thinned alike, or left out.
    let (most, fewest) = match &report.part {
        Some(_) => (PART_POINTS, PART_POINTS),
        None => (MOST_POINTS, FEWEST_POINTS),
    };
    let mut points = intervals.len().min(most);
    while points >= fewest.min(intervals.len()).max(1) {
        report.series = series(intervals, report_interval_seconds, points);
        if let Some(text) = fitting(&report) {
            return text;
        }
        points = points * 3 / 4;
    }
    report.series = None;
    if let Some(text) = fitting(&report) {
        return text;
    }
    if let Some(histogram) = report.part.as_mut().and_then(|part| part.histogram.as_mut()) {
        let counts = histogram.counts();
        for width in [2, 4, 8] {
            *histogram = LatencyHistogram::of(&counts, width);
            if serde_json::to_string(histogram).is_ok_and(|text| text.len() <= HISTOGRAM_BYTES) {
                break;
            }
        }
        if let Some(text) = fitting(&report) {
            return text;
        }
    }
    if let Some(observed) = &mut report.observed {
        for finding in &mut observed.changed_settings {
            finding.message = cut(&finding.message, 80);
        }
        observed.changed_settings.truncate(12);
        while observed.audit_events.len() > 16 {
            observed.audit_events.pop_last();
        }
        observed.flags.truncate(8);
    }
    report.message = cut(&report.message, 120);
    fitting(&report).unwrap_or_else(|| {
        report.observed = None;
        report.client_version = None;
        fitting(&report).unwrap_or_else(|| "{}".to_owned())
    })
}

fn fitting(report: &RunReport) -> Option<String> {
    serde_json::to_string(report)
        .ok()
        .filter(|text| text.len() <= TERMINATION_MESSAGE_LIMIT)
}

/// At most `bytes` of a text, at a character's end.
pub fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes.saturating_sub(3))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}…", &text[..end])
}

/// One sentence on why a tool's result is not acceptable.
pub fn refusal(tool: &ToolResult) -> String {
    let reasons: Vec<String> = tool.reasons.iter().map(|reason| format!("{reason:?}")).collect();
    // The last detail in the order of reasons is the cause; the first only say what is missing.
    let cause = tool
        .details
        .last()
        .map(|detail| format!(": {}", detail.text))
        .unwrap_or_default();
    cut(
        &format!("{} {}{cause}", tool.tool, reasons.join(", ")),
        MESSAGE_BYTES,
    )
}

#[cfg(test)]
mod tests;
