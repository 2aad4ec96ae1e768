//! From a runner's report to the judgement of [`crate::validity`]: what it saw, in the words of the judgement.

use std::collections::BTreeMap;

use crds::run::RunResult;
use crds::runner::{RunObservations, RunOutcome, RunReport};
use crds::target::CleanShutdown;

use super::finish::{Judged, finding};
use super::{RunView, load_seconds};
use crate::target_planner::{split_boot_identity, split_borrowed_boot_identity};
use crate::validity::{
    Arrivals, AuditCount, BootIdentity, Disturbance, Evidence, GeneratorUsage, InvalidReason, Report,
    Shutdown, Snapshot, judge_run,
};

/// Class of audit events that stands for one statement each.
const STATEMENTS: &str = "QUERY";

/// The reason that an outcome is, where the runner never came to measure or was kept from it.
pub(super) fn outside(outcome: RunOutcome) -> Option<&'static str> {
    match outcome {
        RunOutcome::Completed | RunOutcome::ToolFailed => None,
        RunOutcome::AlreadyStarted => Some("AlreadyStarted"),
        RunOutcome::Fenced => Some("Fenced"),
        RunOutcome::BootChanged => Some("BootChanged"),
        RunOutcome::DatabaseFailed => Some("DatabaseUnreachable"),
        RunOutcome::Interrupted => Some("Interrupted"),
        RunOutcome::PartLost => Some("GeneratorLost"),
        RunOutcome::Failed => Some("RunnerFailed"),
    }
}

/// Judges a run by its report, and by what each load generator saw of its own CPU.
pub(super) fn judge(view: &RunView, report: &RunReport, generators: &[RunObservations]) -> Judged {
    if let Some(reason) = outside(report.outcome) {
        return Judged {
            reasons: vec![finding(reason, &report.message)],
            symptoms: Vec::new(),
        };
    }
    let mut judgement = judge_run(&evidence(view, report, generators));
    // Stable: the causes first, each group in the order of its checks.
    judgement.reasons.sort_by_key(|finding| !is_cause(finding.kind));
    let mut judged = Judged {
        reasons: judgement
            .reasons
            .iter()
            .map(|f| finding(f.kind.as_str(), &f.message))
            .collect(),
        symptoms: judgement
            .symptoms
            .iter()
            .map(|f| finding(f.kind.as_str(), &f.message))
            .collect(),
    };
    let flags = report.observed.iter().flat_map(|o| &o.flags);
    judged
        .symptoms
        .extend(flags.map(|flag| finding(flag, "the load generator's output shows it")));
    judged
}

fn evidence(view: &RunView, report: &RunReport, generators: &[RunObservations]) -> Evidence {
    let spec = &view.run.spec;
    let status = &view.run.status;
    let proof = status.evidence.clone().unwrap_or_default();
    let result = report.result.clone().unwrap_or_default();
    let observed = report.observed.as_ref();
    let (_, window) = load_seconds(&spec.run);
    let window_seconds = result
        .window_micros
        .map_or(f64::from(window), |micros| micros as f64 / 1e6);

    let node = view.target.as_ref().and_then(|t| t.status.node.clone());
    let mut before = Snapshot {
        boot: boot(&proof.boot_identity),
        node: status
            .environment
            .as_ref()
            .and_then(|e| e.database_node.clone())
            .or_else(|| node.clone()),
        settings: Some(
            proof
                .parameters
                .iter()
                .map(|p| (p.name.clone(), p.found.clone()))
                .collect(),
        ),
        ..Snapshot::default()
    };
    let after = observed.map(|seen| {
        let mut settings = before.settings.clone().unwrap_or_default();
        for (index, change) in seen.changed_settings.iter().enumerate() {
            let name = format!("{} {}", change.reason, index + 1);
            let proved = before.settings.get_or_insert_with(BTreeMap::new);
            proved.insert(name.clone(), "as proved".to_owned());
            settings.insert(name, change.message.clone());
        }
        before.rows_written = seen.rows_written.map(|_| 0);
        Snapshot {
            boot: boot_at_the_end(view, seen, before.boot.as_ref()),
            node,
            settings: Some(settings),
            rows_written: seen.rows_written.and_then(|rows| u64::try_from(rows).ok()),
            ..Snapshot::default()
        }
    });
    Evidence {
        visit_boot: spec.requires_boot.as_deref().and_then(boot),
        before,
        after,
        report: completeness(report, &result),
        generators: generators
            .iter()
            .filter_map(|seen| generator(seen, window_seconds))
            .collect(),
        // What else the machine of a borrowed server does is not seen.
        disturbance: observed
            .filter(|_| !matches!(boot(&proof.boot_identity), Some(BootIdentity::External { .. })))
            .map(|seen| disturbance(seen, window_seconds)),
        read_only: view.read_only,
        stalled_seconds: result
            .stalled_seconds
            .and_then(|s| u32::try_from(s).ok())
            .unwrap_or(0),
        errors_per_second: result
            .errors
            .map_or(0.0, |errors| errors as f64 / window_seconds.max(1.0)),
        arrivals: spec.run.load.rate.map(|rate| Arrivals {
            asked: (rate.max(0) as f64 * window_seconds).round() as u64,
            ended: result
                .transactions
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or(0),
        }),
        lost_audit_records: observed
            .and_then(|o| o.audit_lost)
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(0),
        audit: observed.and_then(audit).into_iter().collect(),
        shutdown: match proof.clean_shutdown {
            CleanShutdown::Yes => Shutdown::Clean,
            CleanShutdown::No => Shutdown::Unclean,
            CleanShutdown::Unknown => Shutdown::Unknown,
        },
        shutdown_seconds: None,
        settle_timed_out: !proof.settle.met,
    }
}

fn completeness(report: &RunReport, result: &RunResult) -> Report {
    if report.outcome == RunOutcome::ToolFailed {
        return Report::Incomplete(report.message.clone());
    }
    if result.transactions.unwrap_or(0) <= 0 {
        return Report::Incomplete("no transaction was counted in the window".to_owned());
    }
    Report::Complete
}

fn boot(identity: &str) -> Option<BootIdentity> {
    if let Some((server, host, started)) = split_borrowed_boot_identity(identity) {
        return Some(BootIdentity::External {
            server: server.to_owned(),
            host: host.to_owned(),
            started_ms: started * 1000,
        });
    }
    let (pod_uid, container_id) = split_boot_identity(identity)?;
    Some(BootIdentity::Managed {
        pod_uid: pod_uid.to_owned(),
        container_id: container_id.to_owned(),
    })
}

/// The boot after the load: the cluster's word (pod and container) and the server's own (its start) must both agree.
/// What the cluster saw end needs no word of the server's.
fn boot_at_the_end(
    view: &RunView,
    seen: &RunObservations,
    before: Option<&BootIdentity>,
) -> Option<BootIdentity> {
    let now = view
        .target
        .as_ref()
        .and_then(|t| t.status.boot.as_ref())
        .and_then(|b| boot(&b.identity));
    match (now, seen.same_boot) {
        (Some(now), _) if before.is_some_and(|before| *before != now) => Some(now),
        (Some(now), Some(true)) => Some(now),
        (Some(_), None) => None,
        // The server is down in the cluster's eyes, or says itself that it is another: no boot equals this one.
        (None, _) | (Some(_), Some(false)) => Some(match before {
            Some(BootIdentity::External { server, host, .. }) => BootIdentity::External {
                server: server.clone(),
                host: host.clone(),
                started_ms: 0,
            },
            Some(BootIdentity::Managed { pod_uid, .. }) => BootIdentity::Managed {
                pod_uid: pod_uid.clone(),
                container_id: String::new(),
            },
            None => BootIdentity::Managed {
                pod_uid: String::new(),
                container_id: String::new(),
            },
        }),
    }
}

/// Whether a reason explains the others: a load generator whose server goes away fails in many ways.
fn is_cause(reason: InvalidReason) -> bool {
    matches!(
        reason,
        InvalidReason::BootChanged
            | InvalidReason::PodChanged
            | InvalidReason::NodeChanged
            | InvalidReason::FailedOver
    )
}

fn generator(seen: &RunObservations, window_seconds: f64) -> Option<GeneratorUsage> {
    let seconds = |millis: i64| millis as f64 / 1000.0;
    Some(GeneratorUsage {
        window_seconds,
        cpu_seconds: seconds(seen.generator_cpu_millis?),
        limit_cores: None,
        cpuset_cores: seconds(seen.generator_cpu_available_millis?) / window_seconds,
        others_cpu_seconds: 0.0,
        throttled_seconds: seconds(seen.generator_throttled_millis.unwrap_or(0)),
    })
}

fn disturbance(seen: &RunObservations, window_seconds: f64) -> Disturbance {
    let seconds = |millis: Option<i64>| millis.unwrap_or(0) as f64 / 1000.0;
    let count = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    Disturbance {
        window_seconds,
        database_cores: seconds(seen.database_cpu_available_millis) / window_seconds,
        others_cpu_seconds: seconds(seen.foreign_cpu_millis),
        swapped_pages: count(seen.swapped_pages),
        oom_kills: count(seen.oom_kills),
    }
}

fn audit(seen: &RunObservations) -> Option<AuditCount> {
    let found = *seen.audit_events.get(STATEMENTS)?;
    Some(AuditCount {
        class: STATEMENTS.to_owned(),
        expected: u64::try_from(seen.queries_sent?).ok()?,
        found: u64::try_from(found).ok()?,
    })
}
