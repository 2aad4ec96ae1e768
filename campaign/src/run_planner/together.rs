//! One report of several: the load generators of a run tell their parts, here they are summed. Whether all told, and
//! whether they applied their load at the same time, is decided first: a part that is missing cannot be made up for.

use std::collections::BTreeSet;

use crds::run::{Finding, RunResult, Series};
use crds::runner::{RunObservations, RunOutcome, RunReport};

use super::EndedPod;
use super::finish::finding;
use super::judge::outside;
use crate::histogram::Histogram;
use crate::target_planner::condition::tail;

/// Share of the window by which starts may differ: at each end the load was that much less than asked for.
const APART_SHARE: f64 = 0.02;
/// And milliseconds: less than this is how long a process takes to start.
const APART_MILLIS: f64 = 250.0;

/// The reports of all load generators of a run as one, and what each saw of its own CPU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Whole {
    pub(super) report: RunReport,
    pub(super) generators: Vec<RunObservations>,
}

/// What the pods of a run told, as one report. `Err`: why that is none, in the words of the status.
pub(super) fn whole(pods: &[EndedPod], count: i32, window_seconds: u32) -> Result<Whole, Finding> {
    let mut reports = Vec::new();
    for pod in pods {
        let Ok(report) = serde_json::from_str::<RunReport>(&pod.message) else {
            let message = format!(
                "the runner ended with exit code {} and without a report: {}",
                pod.exit_code,
                tail(&pod.message, 300)
            );
            return Err(finding("NoCompleteReport", &told_by(pod.index, count, &message)));
        };
        reports.push((pod.index, report));
    }
    if count <= 1 {
        return match reports.into_iter().next() {
            Some((_, report)) => Ok(Whole {
                generators: report.observed.clone().into_iter().collect(),
                report,
            }),
            None => Err(finding("PodLost", "no pod told how it ended")),
        };
    }
    causes(&reports, count)?;
    let wanted: BTreeSet<i32> = (0..count).collect();
    let told: BTreeSet<i32> = reports.iter().map(|(index, _)| *index).collect();
    if told != wanted {
        let missing: Vec<String> = wanted.difference(&told).map(ToString::to_string).collect();
        let message = format!(
            "{} of {count} load generators ended without a report: {}",
            missing.len(),
            missing.join(", ")
        );
        return Err(finding("GeneratorLost", &message));
    }
    let one = &reports[0].1;
    for (index, report) in &reports {
        let same = (&report.run_uid, report.epoch) == (&one.run_uid, one.epoch);
        let part = report.part.as_ref().map(|part| part.index);
        if !same || part != Some(*index) {
            let message = format!(
                "the report of pod {index} speaks of run {}, epoch {} and part {part:?}",
                report.run_uid, report.epoch
            );
            return Err(finding("ReportMismatch", &message));
        }
    }
    let mut reports: Vec<RunReport> = reports.into_iter().map(|(_, report)| report).collect();
    reports.sort_by_key(|report| report.part.as_ref().map(|part| part.index));
    apart(&reports, window_seconds)?;
    Ok(sum(&reports))
}

fn told_by(index: i32, count: i32, message: &str) -> String {
    if count > 1 {
        format!("load generator {index} of {count}: {message}")
    } else {
        message.to_owned()
    }
}

/// What one of them says of why it did not end well: the cause before its consequences.
fn causes(reports: &[(i32, RunReport)], count: i32) -> Result<(), Finding> {
    let consequence = |outcome| match outcome {
        RunOutcome::PartLost => 2,
        RunOutcome::Interrupted => 1,
        _ => 0,
    };
    let failed = reports
        .iter()
        .filter(|(_, report)| report.outcome != RunOutcome::Completed)
        .min_by_key(|(index, report)| (consequence(report.outcome), *index));
    match failed {
        None => Ok(()),
        Some((index, report)) => {
            let reason = outside(report.outcome).unwrap_or("NoCompleteReport");
            Err(finding(reason, &told_by(*index, count, &report.message)))
        }
    }
}

/// Whether all applied their load at the same time, each by its own clock from the common start on.
fn apart(reports: &[RunReport], window_seconds: u32) -> Result<(), Finding> {
    let allowed = (f64::from(window_seconds) * 1_000.0 * APART_SHARE).max(APART_MILLIS);
    let length = |report: &RunReport| report.part.as_ref().and_then(|part| part.load_millis);
    for (index, report) in reports.iter().enumerate() {
        let (Some(first), Some(own)) = (length(&reports[0]), length(report)) else {
            let message = format!("load generator {index} does not say how long it applied load");
            return Err(finding("EvidenceMissing", &message));
        };
        let part = report.part.as_ref();
        let start = part.and_then(|part| part.start_uncertainty_micros).unwrap_or(0) as f64 / 1_000.0;
        let millis = first.abs_diff(own) as f64 + start;
        if millis > allowed {
            let message = format!(
                "the load of generator {index} lay up to {millis:.0} ms beside that of the first; allowed are {allowed:.0} ms"
            );
            return Err(finding("GeneratorsApart", &message));
        }
    }
    Ok(())
}

/// The first one's report with the figures of all. It alone looked at the server.
fn sum(reports: &[RunReport]) -> Whole {
    let first = &reports[0];
    let observed = |read: fn(&RunObservations) -> Option<i64>| {
        added(reports.iter().map(|report| read(report.observed.as_ref()?)))
    };
    let sent = observed(|seen| seen.queries_sent).filter(|sent| *sent > 0);
    let own = first.observed.as_ref();
    let per_statement = |millis: Option<i64>| Some(millis?.checked_mul(1_000_000)? / sent?);
    let mut result = figures(reports);
    result.cpu_nanos_per_statement = per_statement(own.and_then(|own| own.server_cpu_millis));
    result.client_cpu_nanos_per_statement = per_statement(observed(|seen| seen.generator_cpu_millis));
    result.log_bytes_per_1000_statements = own
        .and_then(|own| own.audit_bytes)
        .and_then(|bytes| Some(bytes.checked_mul(1_000)? / sent?));
    // What was found stands to the statements of all as the first one's share of them does to what it was told.
    result.audit_completeness_ppm = first
        .result
        .as_ref()
        .and_then(|result| result.audit_completeness_ppm)
        .and_then(|ppm| {
            let found = i128::from(ppm) * i128::from(own?.queries_sent?);
            i64::try_from(found / i128::from(sent?)).ok()
        });
    let mut report = RunReport {
        result: first.result.as_ref().map(|_| result),
        series: series(reports),
        ..first.clone()
    };
    if let Some(seen) = &mut report.observed {
        seen.queries_sent = sent;
        let flags: BTreeSet<&String> = reports
            .iter()
            .filter_map(|report| report.observed.as_ref())
            .flat_map(|seen| &seen.flags)
            .collect();
        seen.flags = flags.into_iter().cloned().collect();
    }
    Whole {
        report,
        generators: reports
            .iter()
            .filter_map(|report| report.observed.clone())
            .collect(),
    }
}

/// The sum, if all are known.
fn added(values: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    values.sum::<Option<i64>>()
}

fn figures(reports: &[RunReport]) -> RunResult {
    let results = || reports.iter().map(|report| report.result.as_ref());
    let all = |read: fn(&RunResult) -> Option<i64>| results().map(move |result| result.and_then(read));
    let sum = |read| added(all(read));
    let most = |read| all(read).collect::<Option<Vec<i64>>>()?.into_iter().max();
    let transactions = sum(|r| r.transactions);
    let latency =
        |result: &RunResult| Some(i128::from(result.latency_mean_micros?) * i128::from(result.transactions?));
    let latencies: Option<i128> = results().map(|result| latency(result?)).sum();
    RunResult {
        tps_milli: sum(|r| r.tps_milli),
        qps_milli: sum(|r| r.qps_milli),
        transactions,
        queries: sum(|r| r.queries),
        window_micros: most(|r| r.window_micros),
        latency_mean_micros: latencies
            .zip(transactions.filter(|done| *done > 0))
            .and_then(|(sum, done)| i64::try_from(sum / i128::from(done)).ok()),
        latency_p95_micros: percentile(reports),
        latency_max_micros: most(|r| r.latency_max_micros),
        errors: sum(|r| r.errors),
        reconnects: sum(|r| r.reconnects),
        // Seconds in which nobody's transaction ended are seconds of each of them.
        stalled_seconds: all(|r| r.stalled_seconds)
            .collect::<Option<Vec<i64>>>()
            .and_then(|stalled| stalled.into_iter().min()),
        server_cpu_ppm: reports[0].result.as_ref().and_then(|r| r.server_cpu_ppm),
        // The one nearest to its limit, and the one farthest away.
        generator_cpu_ppm: most(|r| r.generator_cpu_ppm),
        round_trip_nanos: most(|r| r.round_trip_nanos),
        ..RunResult::default()
    }
}

/// The 95th percentile of all latencies: of the merged histograms, never of percentiles.
fn percentile(reports: &[RunReport]) -> Option<i64> {
    let mut merged = Histogram::new();
    for report in reports {
        merged.merge(&Histogram::told(report.part.as_ref()?.histogram.as_ref()?));
    }
    merged
        .percentile_ms(95.0)
        .map(|millis| (millis * 1_000.0).round() as i64)
}

/// Rates are added point by point, of latencies the worst counts; none where the points are not the same.
fn series(reports: &[RunReport]) -> Option<Series> {
    let all: Vec<&Series> = reports
        .iter()
        .map(|report| report.series.as_ref())
        .collect::<Option<_>>()?;
    let step_seconds = all[0].step_seconds;
    if all.iter().any(|series| series.step_seconds != step_seconds) {
        return None;
    }
    let together = |read: fn(&Series) -> &Vec<i64>, fold: fn(i64, i64) -> i64| {
        let values: Vec<Vec<i64>> = all.iter().map(|series| running(read(series))).collect();
        let points = values.iter().map(Vec::len).min().unwrap_or(0);
        let value = |point: usize| values.iter().map(|one| one[point]).reduce(fold).unwrap_or(0);
        differences((0..points).map(value))
    };
    Some(Series {
        step_seconds,
        tps: together(|series| &series.tps, i64::saturating_add),
        p95_micros: together(|series| &series.p95_micros, i64::max),
    })
}

fn running(differences: &[i64]) -> Vec<i64> {
    let add = |sum: &mut i64, step: &i64| {
        *sum = sum.saturating_add(*step);
        Some(*sum)
    };
    differences.iter().scan(0, add).collect()
}

fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let step = |last: &mut i64, value: i64| {
        let step = value.saturating_sub(*last);
        *last = value;
        Some(step)
    };
    values.scan(0, step).collect()
}

#[cfg(test)]
mod tests;
