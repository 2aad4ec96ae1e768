//! What a campaign needs to know of one of its runs: a small projection, so that 10,000 runs are a few megabytes.

use crds::environment::Environment;
use crds::names::condition;
use crds::run::{Finding, RunResult, Step, ValidityVerdict};
use crds::{BenchmarkRun, BenchmarkRunStatus};
use kube::ResourceExt as _;
use sha2::{Digest, Sha256};

/// A run, as the campaign sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Iteration of the campaign that it belongs to.
    pub iteration: i64,
    /// Place in the plan, from 0.
    pub sequence: i32,
    /// Attempt of its block, from 1.
    pub attempt: i32,
    /// Where it is.
    pub state: RunState,
    /// Why it does not count, if it does not.
    pub reasons: Vec<Finding>,
    /// Whether the server had come to rest in time.
    pub settled: bool,
    /// Boot that it was measured on; kept for the first run of a visit only.
    pub boot: Option<Box<str>>,
    /// Figures of the measured window.
    pub figures: Figures,
    /// Fingerprint of each surrounding that may not change inside a block, in the order of [`SURROUNDINGS`]; 0: not known.
    pub surroundings: [u32; SURROUNDINGS.len()],
    /// Seconds from taking the target to the end.
    pub seconds: Option<u32>,
    /// What only a run that has not ended needs.
    pub open: Option<Box<OpenRun>>,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It waits for its turn and has changed nothing.
    Waiting,
    /// It has taken the target.
    Working,
    /// It has ended and counts.
    Valid,
    /// It has ended and does not count.
    Invalid,
}

/// What only a run that has not ended needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenRun {
    /// UID.
    pub uid: String,
    /// Resource version.
    pub resource_version: String,
    /// Why it waits, in words.
    pub waiting_for: Option<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// Figures of a run; absent where the tool does not give them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Queries per second, thousandths.
    pub qps_milli: Option<i64>,
    /// Transactions per second, thousandths.
    pub tps_milli: Option<i64>,
    /// Transactions in the window.
    pub transactions: Option<i64>,
    /// Mean latency, microseconds.
    pub latency_mean_micros: Option<i64>,
    /// 95th percentile of latency, microseconds.
    pub latency_p95_micros: Option<i64>,
    /// CPU time of the server per statement, nanoseconds.
    pub cpu_nanos_per_statement: Option<i64>,
    /// Share of its CPUs that the server used, parts per million.
    pub server_cpu_ppm: Option<i64>,
    /// Bytes of audit log per 1,000 statements.
    pub log_bytes_per_1000_statements: Option<i64>,
    /// Fastest network round trip, nanoseconds.
    pub round_trip_nanos: Option<i64>,
}

/// What may not change between two runs of a block, by the name of its field in `environment`.
pub const SURROUNDINGS: [&str; 8] = [
    "serverVersion",
    "clientVersion",
    "databaseImageId",
    "runnerImageId",
    "databaseNode",
    "kernel",
    "databaseCpus",
    "cpuGovernor",
];

/// Those of them that are not of the instance: they may not change between arms on different instances either.
pub(super) const OF_GENERATOR: [&str; 2] = ["clientVersion", "runnerImageId"];

impl From<&RunResult> for Figures {
    fn from(result: &RunResult) -> Self {
        Self {
            qps_milli: result.qps_milli,
            tps_milli: result.tps_milli,
            transactions: result.transactions,
            latency_mean_micros: result.latency_mean_micros,
            latency_p95_micros: result.latency_p95_micros,
            cpu_nanos_per_statement: result.cpu_nanos_per_statement,
            server_cpu_ppm: result.server_cpu_ppm,
            log_bytes_per_1000_statements: result.log_bytes_per_1000_statements,
            round_trip_nanos: result.round_trip_nanos,
        }
    }
}

impl From<&BenchmarkRun> for RunSummary {
    fn from(run: &BenchmarkRun) -> Self {
        let empty = BenchmarkRunStatus::default();
        let status = run.status.as_ref().unwrap_or(&empty);
        let visit = &run.spec.visit;
        let finished = status.step == Step::Finished;
        let valid = finished
            && status.result.is_some()
            && status
                .validity
                .as_ref()
                .is_some_and(|validity| validity.verdict == ValidityVerdict::Valid);
        let state = match (finished, valid) {
            (true, true) => RunState::Valid,
            (true, false) => RunState::Invalid,
            (false, _) if status.step == Step::Waiting => RunState::Waiting,
            (false, _) => RunState::Working,
        };
        let reasons = if state == RunState::Invalid {
            reasons(run)
        } else {
            Vec::new()
        };
        let seconds = match (&status.start_time, &status.completion_time) {
            (Some(start), Some(end)) => u32::try_from(end.0.duration_since(start.0).as_secs()).ok(),
            _ => None,
        };
        let evidence = status.evidence.as_ref();
        Self {
            iteration: visit.iteration,
            sequence: visit.sequence,
            attempt: run.spec.attempt,
            state,
            reasons,
            settled: evidence.is_none_or(|evidence| evidence.settle.met),
            boot: evidence
                .filter(|evidence| visit.ordinal == 0 && !evidence.boot_identity.is_empty())
                .map(|evidence| evidence.boot_identity.clone().into_boxed_str()),
            figures: status.result.as_ref().map(Figures::from).unwrap_or_default(),
            surroundings: status.environment.as_ref().map(surroundings).unwrap_or_default(),
            seconds,
            open: (!finished).then(|| {
                Box::new(OpenRun {
                    uid: run.uid().unwrap_or_default(),
                    resource_version: run.resource_version().unwrap_or_default(),
                    waiting_for: status.waiting_for.clone(),
                    deleting: run.metadata.deletion_timestamp.is_some(),
                })
            }),
        }
    }
}

impl RunSummary {
    /// Whether it has ended.
    pub fn finished(&self) -> bool {
        matches!(self.state, RunState::Valid | RunState::Invalid)
    }
}

/// Why a finished run does not count: its own judgement, or else why it could not be judged.
fn reasons(run: &BenchmarkRun) -> Vec<Finding> {
    let status = run.status.as_ref();
    let judged = status
        .and_then(|status| status.validity.as_ref())
        .map(|validity| validity.reasons.clone())
        .unwrap_or_default();
    if !judged.is_empty() {
        return judged;
    }
    let condition = status.and_then(|status| {
        status
            .conditions
            .iter()
            .find(|c| c.type_ == condition::SUCCEEDED && c.status == "False" && !c.reason.is_empty())
    });
    vec![condition.map_or_else(
        || Finding {
            reason: "NoResult".to_owned(),
            message: "the run ended without a result".to_owned(),
        },
        |c| Finding {
            reason: c.reason.clone(),
            message: c.message.clone(),
        },
    )]
}

fn surroundings(environment: &Environment) -> [u32; SURROUNDINGS.len()] {
    [
        &environment.server_version,
        &environment.client_version,
        &environment.database_image_id,
        &environment.runner_image_id,
        &environment.database_node,
        &environment.kernel,
        &environment.database_cpus,
        &environment.cpu_governor,
    ]
    .map(|value| value.as_deref().map_or(0, fingerprint))
}

/// Never 0, which means not known.
fn fingerprint(text: &str) -> u32 {
    let hash = Sha256::digest(text.as_bytes());
    u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]).max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{BenchmarkRun, RunState, RunSummary};

    fn run(status: &Value) -> BenchmarkRun {
        serde_json::from_value(json!({
            "apiVersion": "benchmark-campaign.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": "r", "uid": "u", "resourceVersion": "7"},
            "spec": {
                "targetRef": {"name": "t"},
                "visit": {"block": 1, "sequence": 5, "ordinal": 1},
                "attempt": 2,
                "audit": {"name": "no-audit", "type": "None"},
                "workload": {"name": "read-only", "type": "Sysbench"},
                "threads": 4,
            },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_run_counts_only_with_a_result_that_was_judged_valid() {
        let result = json!({"qpsMilli": 1000});
        for (status, state, reason) in [
            (json!({}), RunState::Waiting, None),
            (json!({"step": "Proving"}), RunState::Working, None),
            (
                json!({"step": "Finished", "validity": {"verdict": "Valid"}, "result": result}),
                RunState::Valid,
                None,
            ),
            (
                json!({"step": "Finished", "validity": {"verdict": "Valid"}}),
                RunState::Invalid,
                Some("NoResult"),
            ),
            (
                json!({"step": "Finished", "result": result}),
                RunState::Invalid,
                Some("NoResult"),
            ),
            (
                json!({"step": "Finished", "conditions": [{"type": "Succeeded", "status": "False", "reason": "BootFailed",
                    "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
                RunState::Invalid,
                Some("BootFailed"),
            ),
            (
                json!({"step": "Finished", "validity": {"verdict": "Invalid", "reasons": [{"reason": "PodChanged"}]}, "result": result}),
                RunState::Invalid,
                Some("PodChanged"),
            ),
        ] {
            let summary = RunSummary::from(&run(&status));
            assert_eq!(summary.state, state, "{status}");
            assert_eq!(
                summary.reasons.first().map(|found| found.reason.as_str()),
                reason,
                "{status}"
            );
            assert_eq!(summary.open.is_some(), !summary.finished());
            assert_eq!((summary.sequence, summary.attempt), (5, 2));
        }
    }

    #[test]
    fn a_boot_is_kept_for_the_first_run_of_a_visit_only() {
        let mut measured = run(&json!({"step": "Measuring", "evidence": {"bootIdentity": "pod/container"}}));
        assert_eq!(RunSummary::from(&measured).boot, None);
        measured.spec.visit.ordinal = 0;
        assert_eq!(RunSummary::from(&measured).boot.as_deref(), Some("pod/container"));
    }
}
