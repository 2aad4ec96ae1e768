//! The judgement of one run from what was seen before and after it.

use std::collections::BTreeMap;

use super::evidence::{Disturbance, Evidence, GeneratorUsage, Report, Shutdown, Snapshot};
use super::{Finding, InvalidReason, Judgement, Symptom};

/// Share of the CPU that it could have above which a load generator is starved.
const GENERATOR_SHARE: f64 = 0.8;
/// Share of the window during which a generator may be throttled: less cannot move a figure that is compared at
/// the level of percents.
const THROTTLED_SHARE: f64 = 0.001;
/// Share of the database's own cores that others may use.
const DISTURBED_SHARE: f64 = 0.05;
/// Bounds of found over expected audit events.
const COMPLETE_AUDIT: (f64, f64) = (0.99, 1.01);
/// Share of the transactions asked for that may be missing at the end of the window.
const MISSING_SHARE: f64 = 0.02;
/// And standard deviations of their number: arrivals are random, so that few of them vary by more than that.
const MISSING_DEVIATIONS: f64 = 4.0;
/// Seconds above which a shutdown is slow.
const SLOW_SHUTDOWN: f64 = 60.0;

/// Judges one run. The same evidence always gives the same findings, in the order of their checks.
pub fn judge_run(evidence: &Evidence) -> Judgement {
    let mut reasons = Vec::new();
    let mut invalid = |kind: InvalidReason, message: String| reasons.push(Finding { kind, message });
    if let Report::Incomplete(why) = &evidence.report {
        invalid(
            InvalidReason::NoCompleteReport,
            format!("the load generator has no complete report: {why}"),
        );
    }
    boots(evidence, &mut invalid);
    match &evidence.after {
        None => invalid(
            InvalidReason::EvidenceMissing,
            "nothing could be gathered after the run".to_owned(),
        ),
        Some(after) => snapshots(evidence, after, &mut invalid),
    }
    for generator in &evidence.generators {
        starved(generator, &mut invalid);
    }
    if let Some(disturbance) = &evidence.disturbance {
        disturbed(disturbance, &mut invalid);
    }
    Judgement {
        reasons,
        symptoms: symptoms(evidence),
    }
}

fn boots(evidence: &Evidence, invalid: &mut impl FnMut(InvalidReason, String)) {
    let Some(before) = &evidence.before.boot else {
        invalid(
            InvalidReason::EvidenceMissing,
            "the boot was not known before the run".to_owned(),
        );
        return;
    };
    if let Some(change) = evidence
        .visit_boot
        .as_ref()
        .and_then(|visit| visit.changed_to(before))
    {
        invalid(
            change,
            "the server is not the boot that the first run of the visit recorded".to_owned(),
        );
    }
    let Some(after) = &evidence.after else {
        return;
    };
    match &after.boot {
        None => invalid(
            InvalidReason::EvidenceMissing,
            "the boot was not known after the run".to_owned(),
        ),
        Some(boot) => {
            if let Some(change) = before.changed_to(boot) {
                invalid(
                    change,
                    "the server at the end is not the boot that was measured at the start".to_owned(),
                );
            }
        }
    }
}

fn snapshots(evidence: &Evidence, after: &Snapshot, invalid: &mut impl FnMut(InvalidReason, String)) {
    let before = &evidence.before;
    if let (Some(one), Some(two)) = (&before.node, &after.node)
        && one != two
    {
        invalid(
            InvalidReason::NodeChanged,
            format!("the database moved from node {one} to {two}"),
        );
    }
    match (&before.settings, &after.settings) {
        (Some(proved), Some(found)) => {
            let wrong = differing(proved, found, false);
            if !wrong.is_empty() {
                invalid(
                    InvalidReason::SettingsChanged,
                    format!("not as proved at the end: {wrong}"),
                );
            }
        }
        _ => invalid(
            InvalidReason::EvidenceMissing,
            "the settings were not read back".to_owned(),
        ),
    }
    let changed = differing(&before.environment, &after.environment, true);
    if !changed.is_empty() {
        invalid(
            InvalidReason::EnvironmentChanged,
            format!("changed during the run: {changed}"),
        );
    }
    if let (true, Some(one), Some(two)) = (evidence.read_only, before.rows_written, after.rows_written)
        && one != two
    {
        let rows = one.abs_diff(two);
        invalid(
            InvalidReason::DatasetChanged,
            format!("{rows} rows were written during a read-only load"),
        );
    }
    if after.burst_percent.is_some_and(|left| left <= 0.0) {
        invalid(
            InvalidReason::BurstExhausted,
            "no burst credit of the storage is left".to_owned(),
        );
    }
}

/// The first few names whose values differ, with both values. What only one side knows differs only if
/// `both_known` is false and the first side knows it.
pub(super) fn differing(
    one: &BTreeMap<String, String>,
    two: &BTreeMap<String, String>,
    both_known: bool,
) -> String {
    const SHOWN: usize = 3;
    let wrong: Vec<String> = one
        .iter()
        .filter_map(|(name, value)| match two.get(name) {
            Some(other) if other == value => None,
            Some(other) => Some(format!("{name} was {value} and is {other}")),
            None if both_known => None,
            None => Some(format!("{name} was {value} and can no longer be read")),
        })
        .collect();
    let more = wrong.len().saturating_sub(SHOWN);
    let mut text = wrong.into_iter().take(SHOWN).collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str("; and ");
        text.push_str(&more.to_string());
        text.push_str(" more");
    }
    text
}

fn starved(usage: &GeneratorUsage, invalid: &mut impl FnMut(InvalidReason, String)) {
    if usage.window_seconds <= 0.0 {
        return;
    }
    let free = usage.cpuset_cores - usage.others_cpu_seconds / usage.window_seconds;
    let could_have = usage.limit_cores.map_or(free, |limit| limit.min(free)).max(0.0);
    let used = usage.cpu_seconds / usage.window_seconds;
    if used > GENERATOR_SHARE * could_have {
        let message = format!(
            "the load generator used {used:.2} of the {could_have:.2} cores it could have; allowed are 80 %"
        );
        invalid(InvalidReason::GeneratorStarved, message);
    } else if usage.throttled_seconds > THROTTLED_SHARE * usage.window_seconds {
        let message = format!(
            "the load generator was throttled for {:.2} s",
            usage.throttled_seconds
        );
        invalid(InvalidReason::GeneratorStarved, message);
    }
}

fn disturbed(usage: &Disturbance, invalid: &mut impl FnMut(InvalidReason, String)) {
    let capacity = usage.database_cores * usage.window_seconds;
    let share = if capacity > 0.0 {
        usage.others_cpu_seconds / capacity
    } else {
        0.0
    };
    if share > DISTURBED_SHARE {
        let message = format!(
            "others used {:.1} % of the database's own cores; allowed are 5 %",
            100.0 * share
        );
        invalid(InvalidReason::NodeDisturbed, message);
    }
    if usage.swapped_pages > 0 {
        invalid(
            InvalidReason::NodeDisturbed,
            format!("the node swapped {} pages", usage.swapped_pages),
        );
    }
    if usage.oom_kills > 0 {
        let message = format!("the node killed {} processes for lack of memory", usage.oom_kills);
        invalid(InvalidReason::NodeDisturbed, message);
    }
}

fn symptoms(evidence: &Evidence) -> Vec<Finding<Symptom>> {
    let mut symptoms = Vec::new();
    let mut seen = |kind: Symptom, message: String| symptoms.push(Finding { kind, message });
    if evidence.stalled_seconds > 0 {
        seen(
            Symptom::StalledSeconds,
            format!("{} seconds without a transaction", evidence.stalled_seconds),
        );
    }
    if evidence.errors_per_second > 0.0 {
        seen(
            Symptom::ErrorsPerSecond,
            format!("{:.2} errors a second", evidence.errors_per_second),
        );
    }
    if let Some(arrivals) = &evidence.arrivals {
        let asked = arrivals.asked as f64;
        let allowed = (asked * MISSING_SHARE).max(asked.sqrt() * MISSING_DEVIATIONS);
        if asked - arrivals.ended as f64 > allowed {
            let message = format!(
                "{} transactions ended in the window and {} were asked for: the rest waits, and latency says how long the \
                 window was",
                arrivals.ended, arrivals.asked
            );
            seen(Symptom::RateNotReached, message);
        }
    }
    if evidence.lost_audit_records > 0 {
        let message = format!("the server lost {} audit records", evidence.lost_audit_records);
        seen(Symptom::LostAuditRecords, message);
    }
    for count in &evidence.audit {
        let share = if count.expected == 0 {
            if count.found == 0 { 1.0 } else { f64::INFINITY }
        } else {
            count.found as f64 / count.expected as f64
        };
        if !(COMPLETE_AUDIT.0..=COMPLETE_AUDIT.1).contains(&share) {
            let message = format!(
                "{}: {} events in the log, {} expected",
                count.class, count.found, count.expected
            );
            seen(Symptom::AuditIncomplete, message);
        }
    }
    if evidence.shutdown == Shutdown::Unclean {
        seen(
            Symptom::UncleanShutdown,
            "the boot began with crash recovery".to_owned(),
        );
    }
    if let Some(seconds) = evidence
        .shutdown_seconds
        .filter(|seconds| *seconds > SLOW_SHUTDOWN)
    {
        seen(
            Symptom::SlowShutdown,
            format!("the shutdown before this boot took {seconds:.0} s"),
        );
    }
    if evidence.settle_timed_out {
        seen(
            Symptom::SettleTimedOut,
            "the server had not settled at the time limit".to_owned(),
        );
    }
    symptoms
}
