//! What operator, runner and agent say to each other: the runner's orders, its last word, the agent's answers.
//! None of it holds a secret: logins are files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::AuditSetting;
use crate::parameter::Parameters;
use crate::run::{Finding, RunResult, Series};
use crate::target::{Engine, Tls};
use crate::together::{Meeting, Part};
use crate::workload::Workload;

/// Bytes that a termination message may have (a limit of the kubelet).
pub const TERMINATION_MESSAGE_LIMIT: usize = 4096;
/// Exit code of a runner that did what was asked, whatever it found; the message says what.
pub const EXIT_REPORTED: i32 = 0;
/// Exit code of a runner that another start of the same Job had preceded: it measured nothing.
pub const EXIT_ALREADY_STARTED: i32 = 3;
/// Exit code of a runner that could not do what was asked; the message says why.
pub const EXIT_FAILED: i32 = 1;

/// How the database is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Engine.
    pub engine: Engine,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Transport security; none for managed targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Schema of the workload's tables.
    pub schema: String,
    /// Base URL of the agent, `http://ADDRESS:9180`; absent for borrowed databases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Orders for `runner run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunOrder {
    /// The database.
    pub connection: Connection,
    /// UID of the BenchmarkRun, the key of the fence row.
    pub run_uid: String,
    /// Epoch of the fence row.
    pub epoch: i64,
    /// The load generator and its script.
    pub workload: Workload,
    /// Rows per table.
    pub rows_per_table: i64,
    /// Client threads, of all pods together.
    pub threads: i32,
    /// Load before the window, seconds.
    pub warmup_seconds: u32,
    /// The window, seconds.
    pub duration_seconds: u32,
    /// Step of the series, seconds.
    pub report_interval_seconds: u32,
    /// Arrival rate of all pods together, transactions per second; closed loop if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<i64>,
    /// Seed of the load generator.
    pub seed: i64,
    /// Start of the server as it was proved, seconds since 1970; the run is invalid if it differs (tolerance 5 s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_started: Option<i64>,
    /// Parameters that must still be in force at the end.
    pub parameters: Parameters,
    /// Audit setting that must still be in force at the end.
    pub audit: AuditSetting,
    /// Audit log file, as the agent names it, and its size when load began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_log: Option<AuditLogPosition>,
    /// Where several pods of this run meet; absent where one applies the load alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meeting: Option<Meeting>,
}

/// A place in an audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogPosition {
    /// Path within the log volume.
    pub file: String,
    /// Offset in bytes.
    pub offset: i64,
}

/// Orders for `runner prepare`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrepareOrder {
    /// The database.
    pub connection: Connection,
    /// UID of the BenchmarkRun that asks for it.
    pub run_uid: String,
    /// Epoch of the fence row.
    pub epoch: i64,
    /// The load generator and its script.
    pub workload: Workload,
    /// Rows per table.
    pub rows_per_table: i64,
    /// Hash that the marker table will carry.
    pub dataset_hash: String,
}

/// The runner's last word: its termination message, and the last line of its log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunReport {
    /// What it came to.
    pub outcome: RunOutcome,
    /// One sentence for people, under 512 bytes; never a secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// UID of the run that it speaks of.
    pub run_uid: String,
    /// Epoch that it claimed.
    pub epoch: i64,
    /// Figures of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    /// Series, thinned so that the message fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// What it saw of the surroundings, for the judgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<RunObservations>,
    /// What one of several pods tells besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The tool's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// Dataset made (prepare only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<crate::dataset::DatasetStatus>,
    /// Start of the load generator process, milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_started_millis: Option<i64>,
    /// End of the load generator process, milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_ended_millis: Option<i64>,
}

/// What a runner came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunOutcome {
    /// The tool finished what was asked.
    Completed,
    /// The tool failed or gave no complete report.
    ToolFailed,
    /// Another start of this Job had claimed the fence row.
    AlreadyStarted,
    /// The fence row belongs to somebody else.
    Fenced,
    /// The server was not the one that had been proved.
    BootChanged,
    /// The database could not be reached or refused.
    DatabaseFailed,
    /// It was told to stop.
    Interrupted,
    /// Another pod of the same load did not come to the start, or was lost under load.
    PartLost,
    /// Something else; the message says what.
    #[default]
    Failed,
}

/// What the runner saw, for the judgement of validity. Absent: could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunObservations {
    /// Whether the boot at the end is the one at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_boot: Option<bool>,
    /// Settings that no longer read back as wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_settings: Vec<Finding>,
    /// CPU seconds that the load generator used, thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_cpu_millis: Option<i64>,
    /// CPU seconds that it could have had (its limit or cpuset less what others used there), thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_cpu_available_millis: Option<i64>,
    /// Milliseconds for which it was throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_throttled_millis: Option<i64>,
    /// CPU seconds that the server process used, thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_millis: Option<i64>,
    /// CPU seconds used by others on the database's own CPUs, thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_cpu_millis: Option<i64>,
    /// CPU seconds that the database's own CPUs had in the window, thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_cpu_available_millis: Option<i64>,
    /// Pages swapped in or out on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swapped_pages: Option<i64>,
    /// Processes killed for want of memory on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<i64>,
    /// Milliseconds for which the database's pod was throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_throttled_millis: Option<i64>,
    /// Rows written while a read-only load ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_written: Option<i64>,
    /// Audit events by class.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_events: BTreeMap<String, i64>,
    /// Audit log bytes written in the whole load (warm-up included).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_bytes: Option<i64>,
    /// Records that the mechanism itself reports as lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_lost: Option<i64>,
    /// Queries that the tool sent in the whole load, warm-up and failed attempts included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries_sent: Option<i64>,
    /// Flags of the tool's output (stalls, ignored errors, …).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
}

/// Answer of `GET /v1/audit`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentAudit {
    /// Size of the file now, bytes.
    pub size: i64,
    /// Bytes since the offset asked for.
    pub bytes: i64,
    /// Events since the offset, by class.
    pub events: BTreeMap<String, i64>,
    /// Whether the canary asked for was found since the offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_found: Option<bool>,
    /// Whether the file became smaller than the offset or was rotated away: records may be lost.
    pub truncated: bool,
}

/// Answer of `GET /v1/usage`: counters since boot; a reader takes differences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentUsage {
    /// CPU time of the server process, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_millis: Option<i64>,
    /// Resident memory of the server process, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_resident_bytes: Option<i64>,
    /// Bytes that the server process caused to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_write_bytes: Option<i64>,
    /// CPUs that the server process may use.
    pub server_cpus: Vec<u32>,
    /// Busy time of each CPU of the node, milliseconds.
    pub cpu_busy_millis: BTreeMap<u32, i64>,
    /// Pages swapped in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swapped_pages: Option<i64>,
    /// Kills for want of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<i64>,
    /// Dirty and writeback pages of the node, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<i64>,
    /// Time for which the database's container was throttled, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_millis: Option<i64>,
    /// Kernel release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// CPU model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Mode of transparent huge pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_pages: Option<String>,
    /// Frequency governor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_governor: Option<String>,
    /// Swap in use, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_used_bytes: Option<i64>,
}
