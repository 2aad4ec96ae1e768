//! BenchmarkRun: one measured run of one cell on one target. Its spec is resolved and immutable, its result never changes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::AuditSetting;
use crate::dataset::{DatasetPolicy, DatasetStatus};
use crate::environment::Environment;
use crate::load::{Cache, LoadGenerator, RestartPolicy, RunSettings};
use crate::parameter::Parameters;
use crate::target::{CleanShutdown, LocalReference};
use crate::workload::Workload;

/// One measured run of one cell on one target. A person may write one by hand.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "benchmark-campaign.dev",
    version = "v1alpha1",
    kind = "BenchmarkRun",
    plural = "benchmarkruns",
    shortname = "br",
    category = "benchmark",
    namespaced,
    status = "BenchmarkRunStatus",
    derive = "PartialEq",
    doc = "A BenchmarkRun is one measured run of one cell on one target; one object per attempt.",
    validation = Rule::new("self.spec == oldSelf.spec").message("a BenchmarkRun cannot be changed: make a new one").reason(Reason::FieldValueForbidden),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetRef.name", priority = 1),
    printcolumn(name = "Workload", type_ = "string", json_path = ".spec.cell.workload", priority = 1),
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.cell.parameterTemplate", priority = 1),
    printcolumn(name = "Audit", type_ = "string", json_path = ".spec.cell.auditSetting"),
    printcolumn(name = "Threads", type_ = "integer", json_path = ".spec.threads"),
    printcolumn(name = "Block", type_ = "integer", json_path = ".spec.visit.block"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.step"),
    printcolumn(name = "Valid", type_ = "string", json_path = ".status.validity.verdict"),
    printcolumn(name = "TPS/1000", type_ = "integer", json_path = ".status.result.tpsMilli"),
    printcolumn(name = "QPS/1000", type_ = "integer", json_path = ".status.result.qpsMilli"),
    printcolumn(name = "P95 us", type_ = "integer", json_path = ".status.result.latencyP95Micros"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BenchmarkRunSpec {
    /// The database instance.
    pub target_ref: LocalReference,
    /// Which cell of which campaign it is, for people; a run made by hand may leave it out.
    #[serde(default)]
    pub cell: Cell,
    /// Its place among the campaign's runs.
    #[serde(default)]
    pub visit: Visit,
    /// Which attempt of its block this is, from 1 (default 1).
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10))]
    pub attempt: i32,
    /// Random seed of the load generator, the same in all arms of a block (default 0).
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub seed: i64,
    /// Parameters that must be in force, resolved by precedence.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 256))]
    pub parameters: Parameters,
    /// Audit setting that must be in force.
    pub audit: AuditSetting,
    /// What is run.
    pub workload: Workload,
    /// Client threads.
    #[schemars(range(min = 1, max = 100_000))]
    pub threads: i32,
    /// Rows per table, resolved; a run made by hand repeats the workload's tableSize here (default 0).
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub rows_per_table: i64,
    /// Windows and load.
    #[serde(default)]
    pub run: RunSettings,
    /// Restarts and settling.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// Whether this run restarts the server: the first of a visit, or every run, by policy (default false).
    #[serde(default)]
    pub restart_before: bool,
    /// For a run that does not restart: the boot that it requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub requires_boot: Option<String>,
    /// Cache state.
    #[serde(default)]
    pub cache: Cache,
    /// Data policy.
    #[serde(default)]
    pub dataset: DatasetPolicy,
    /// Pods that apply load.
    #[serde(default)]
    pub load_generator: LoadGenerator,
}

fn one() -> i32 {
    1
}

/// A cell: one level of every axis, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cell {
    /// Database.
    #[schemars(length(max = 63))]
    pub database: String,
    /// Instance size.
    #[schemars(length(max = 63))]
    pub instance_size: String,
    /// Parameter template.
    #[schemars(length(max = 63))]
    pub parameter_template: String,
    /// Audit setting.
    #[schemars(length(max = 63))]
    pub audit_setting: String,
    /// Workload.
    #[schemars(length(max = 63))]
    pub workload: String,
    /// Client threads (default 0: not said).
    #[schemars(range(min = 0, max = 100_000))]
    pub threads: i32,
}

/// A run's place among the campaign's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Visit {
    /// Comparison whose block it belongs to; empty for cells in none.
    #[schemars(length(max = 63))]
    pub comparison: String,
    /// Block, from 1; 0 (default) is the burn-in, which is not counted.
    #[schemars(range(min = 0, max = 100_000))]
    pub block: i32,
    /// Level of the comparison's axis.
    #[schemars(length(max = 63))]
    pub arm: String,
    /// Place of the visit within its block, from 0 (default).
    #[schemars(range(min = 0, max = 64))]
    pub position: i32,
    /// Place of the run within its visit, from 0 (default).
    #[schemars(range(min = 0, max = 64))]
    pub ordinal: i32,
    /// Place of the run in the whole plan, from 0 (default); attempts share it.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub sequence: i32,
    /// Which iteration of the campaign (default 0).
    #[schemars(range(min = 0))]
    pub iteration: i64,
}

/// Steps of a run, in order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Step {
    /// Waiting for its turn on the node and the target.
    #[default]
    Waiting,
    /// The server is being restarted with the configuration wanted.
    Restarting,
    /// The data is being made.
    PreparingDataset,
    /// Volatile settings, settling, cache, proof.
    Proving,
    /// Load is applied; nothing else touches the database.
    Measuring,
    /// It has ended.
    Finished,
}

impl BenchmarkRun {
    /// Whether it has ended, valid or not.
    pub fn has_ended(&self) -> bool {
        self.status
            .as_ref()
            .is_some_and(|status| status.step == Step::Finished)
    }
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BenchmarkRunStatus {
    /// Generation of the spec that the rest speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it is.
    pub step: Step,
    /// When it took the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Why it waits, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// Epoch of the target's holder that belongs to this run; part of the fence row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// Boot request that this run made or relies on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_serial: Option<i64>,
    /// Job that applies load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Job that makes the data, if one was needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepare_job_name: Option<String>,
    /// How often the data was made for this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepares: Option<i32>,
    /// Milliseconds spent per step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// Proof that the settings were in force before load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Whether the run may be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
    /// What auditing or the setting may itself have caused; never a reason to discard.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symptoms: Vec<Finding>,
    /// Surroundings before the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Figures of the measured window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    /// Figures over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Conditions: Ready, Reconciling, Stalled, Finished, Succeeded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Milliseconds spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Timings {
    /// From the boot request to a server that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_millis: Option<i64>,
    /// Making the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepare_millis: Option<i64>,
    /// Volatile settings, settling, cache, proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proving_millis: Option<i64>,
    /// From the Job's creation to the load generator's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_start_millis: Option<i64>,
    /// From the load generator's end to the result in the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect_millis: Option<i64>,
}

/// Proof that the settings were in force before load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// `Proved` (settings read back and the audit log itself looked at) or `ReadBack` (the log cannot be read).
    pub level: EvidenceLevel,
    /// Boot that the proof speaks of.
    pub boot_identity: String,
    /// Every parameter as read back.
    #[schemars(length(max = 256))]
    pub parameters: Vec<ReadBack>,
    /// Audit mechanism as found.
    pub audit: AuditEvidence,
    /// Whether the server had come to rest.
    pub settle: SettleEvidence,
    /// What the cache held.
    pub cache: CacheEvidence,
    /// Data as found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetStatus>,
    /// Whether the shutdown before this boot was clean.
    pub clean_shutdown: CleanShutdown,
    /// When it was proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proved_at: Option<Time>,
}

/// How strong the proof is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EvidenceLevel {
    /// Settings read back only.
    #[default]
    ReadBack,
    /// Settings read back, and a canary found in the log (or, for an arm without auditing, not found).
    Proved,
}

/// One parameter as read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadBack {
    /// Name.
    pub name: String,
    /// Value wanted, in canonical form.
    pub wanted: String,
    /// Value found, in canonical form.
    pub found: String,
    /// Whether it cannot matter to this load.
    #[serde(default)]
    pub inert: bool,
}

/// An audit mechanism as found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditEvidence {
    /// Whether the mechanism is installed.
    pub installed: bool,
    /// Whether it records.
    pub recording: bool,
    /// Whether the canary statement was found in the log; absent where no log can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_found: Option<bool>,
    /// File that it writes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_file: Option<String>,
    /// Size of the log when load began, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_offset: Option<i64>,
    /// Settings as read back, `name=value`.
    #[schemars(length(max = 32))]
    pub settings: Vec<String>,
}

/// Whether the server had come to rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SettleEvidence {
    /// Whether every measure was met within the limit.
    pub met: bool,
    /// Milliseconds waited.
    pub waited_millis: i64,
    /// Measures not met.
    #[schemars(length(max = 8))]
    pub unmet: Vec<String>,
}

/// What the cache held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CacheEvidence {
    /// Whether the state wanted was reached.
    pub reached: bool,
    /// Share of reads that missed in the last sample, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss_ppm: Option<i64>,
    /// Pages held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<i64>,
}

/// Whether the run may be counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Validity {
    /// `Valid` or `Invalid`.
    pub verdict: ValidityVerdict,
    /// Why not.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Finding>,
}

/// `Valid` or `Invalid`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValidityVerdict {
    /// It may be counted.
    Valid,
    /// It may not, for reasons from outside.
    #[default]
    Invalid,
}

/// A reason or a symptom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// CamelCase word.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// What was found and what is allowed, under 512 bytes.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub message: String,
}

/// Figures of the measured window, as integers. Absent where the tool does not give them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunResult {
    /// Transactions per second, thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tps_milli: Option<i64>,
    /// Queries per second, thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qps_milli: Option<i64>,
    /// Transactions in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<i64>,
    /// Queries in the window, failed attempts included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<i64>,
    /// Length of the window, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_micros: Option<i64>,
    /// Mean latency of a transaction, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_mean_micros: Option<i64>,
    /// 95th percentile of latency, microseconds, interpolated within the histogram's bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p95_micros: Option<i64>,
    /// Largest latency, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_max_micros: Option<i64>,
    /// Errors that the tool ignored (deadlocks and the like).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<i64>,
    /// Reconnects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconnects: Option<i64>,
    /// Seconds of the window without a single transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled_seconds: Option<i64>,
    /// CPU time of the server process per statement, nanoseconds; explains, never decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_nanos_per_statement: Option<i64>,
    /// Share of its CPUs that the server used, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_ppm: Option<i64>,
    /// CPU time of the load generator per statement, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cpu_nanos_per_statement: Option<i64>,
    /// Share of the CPU it could have that the load generator used, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_cpu_ppm: Option<i64>,
    /// Bytes of audit log per 1,000 statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes_per_1000_statements: Option<i64>,
    /// Bytes of audit log per 1,000 records, of whatever class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes_per_1000_records: Option<i64>,
    /// Audit events found against events expected, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_completeness_ppm: Option<i64>,
    /// Fastest of 200 network round trips (small echoes to the agent) to the database's pod, nanoseconds; of 20 TCP
    /// connects where there is no agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_nanos: Option<i64>,
}

/// Figures over time: delta-coded arrays, at most 2 KB together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Series {
    /// Seconds between two points.
    pub step_seconds: i32,
    /// Transactions per second, whole; the first value, then differences.
    #[schemars(length(max = 512))]
    pub tps: Vec<i64>,
    /// 95th percentile of latency in microseconds; the first value, then differences.
    #[schemars(length(max = 512))]
    pub p95_micros: Vec<i64>,
}
