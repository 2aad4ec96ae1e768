//! The evidence about one run, as plain values: what was seen before and after it and what the window used.

use std::collections::BTreeMap;

use super::InvalidReason;

/// How far the start of one and the same boot may seem to move, in milliseconds: it is the server's clock less its
/// uptime in whole seconds.
const SAME_START_MS: u64 = 5_000;

/// Which start of which server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootIdentity {
    /// A server that the operator runs.
    Managed {
        /// UID of the pod.
        pod_uid: String,
        /// ID of the database container: a restart in place changes it and not the pod.
        container_id: String,
    },
    /// A server that is borrowed.
    External {
        /// `server_uuid` or `system_identifier`; empty where there is none.
        server: String,
        /// Host name as the server sees it.
        host: String,
        /// Start of the server, milliseconds since 1970.
        started_ms: u64,
    },
}

impl BootIdentity {
    /// What changed from this boot to another: None if they are the same.
    pub fn changed_to(&self, other: &Self) -> Option<InvalidReason> {
        match (self, other) {
            (
                Self::Managed {
                    pod_uid,
                    container_id,
                },
                Self::Managed {
                    pod_uid: other_pod,
                    container_id: other_container,
                },
            ) => {
                if pod_uid != other_pod {
                    Some(InvalidReason::PodChanged)
                } else if container_id != other_container {
                    Some(InvalidReason::BootChanged)
                } else {
                    None
                }
            }
            (
                Self::External {
                    server,
                    host,
                    started_ms,
                },
                Self::External {
                    server: other_server,
                    host: other_host,
                    started_ms: other_started,
                },
            ) => {
                if server != other_server || host != other_host {
                    Some(InvalidReason::FailedOver)
                } else if started_ms.abs_diff(*other_started) > SAME_START_MS {
                    Some(InvalidReason::BootChanged)
                } else {
                    None
                }
            }
            _ => Some(InvalidReason::FailedOver),
        }
    }
}

/// What was seen at one moment. None: it could not be known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Which start of which server answered.
    pub boot: Option<BootIdentity>,
    /// The database's node; None for a server outside the cluster.
    pub node: Option<String>,
    /// Settings, audit state included, by name in canonical form. Before: as proved.
    pub settings: Option<BTreeMap<String, String>>,
    /// What else may change figures, by name: kernel, governor, image digests, client version.
    pub environment: BTreeMap<String, String>,
    /// Rows written since the server started, where a counter gives it.
    pub rows_written: Option<u64>,
    /// Burst credit left on the storage, percent, where a hook gives it.
    pub burst_percent: Option<f64>,
}

/// What the load generator's report says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The tool finished what was asked, with more than 0 events.
    Complete,
    /// It did not, and why.
    Incomplete(String),
}

/// CPU of one load generator in the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneratorUsage {
    /// Length of the window, seconds.
    pub window_seconds: f64,
    /// CPU time that the generator used, seconds.
    pub cpu_seconds: f64,
    /// Its CPU limit in cores, if it has one.
    pub limit_cores: Option<f64>,
    /// Number of cores in its cpuset.
    pub cpuset_cores: f64,
    /// CPU time that others used on these cores, seconds.
    pub others_cpu_seconds: f64,
    /// Time for which it was throttled, seconds.
    pub throttled_seconds: f64,
}

/// What others did on the database's node in the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disturbance {
    /// Length of the window, seconds.
    pub window_seconds: f64,
    /// Number of the database's own cores.
    pub database_cores: f64,
    /// CPU time that others used on these cores, seconds.
    pub others_cpu_seconds: f64,
    /// Pages swapped in and out.
    pub swapped_pages: u64,
    /// Processes killed for lack of memory.
    pub oom_kills: u64,
}

/// How the server was shut down before this boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shutdown {
    /// No recovery in the new log.
    Clean,
    /// Recovery in the new log.
    Unclean,
    /// Not known, or there was none.
    #[default]
    Unknown,
}

/// Transactions of a load at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Asked for in the window.
    pub asked: u64,
    /// Ended in the window.
    pub ended: u64,
}

/// Audit events of one class in the measured window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditCount {
    /// Class of event: `QUERY`, `CONNECT`.
    pub class: String,
    /// Expected: the tool's queries, failed attempts included.
    pub expected: u64,
    /// Found in the log.
    pub found: u64,
}

/// Everything that a judgement needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The boot of the visit, recorded by its first run; None in that run.
    pub visit_boot: Option<BootIdentity>,
    /// Seen when the settings were proved.
    pub before: Snapshot,
    /// Seen after the window; None when nothing could be gathered.
    pub after: Option<Snapshot>,
    /// The tool's report.
    pub report: Report,
    /// Every load generator.
    pub generators: Vec<GeneratorUsage>,
    /// The database's node; None for a server outside the cluster.
    pub disturbance: Option<Disturbance>,
    /// Whether the load only reads.
    pub read_only: bool,
    /// Seconds of the window without a transaction.
    pub stalled_seconds: u32,
    /// Errors per second that the tool ignored or retried.
    pub errors_per_second: f64,
    /// Transactions asked for and ended; None in a closed loop.
    pub arrivals: Option<Arrivals>,
    /// Audit records that the server counted as lost.
    pub lost_audit_records: u64,
    /// Audit events by class; empty without an audit log.
    pub audit: Vec<AuditCount>,
    /// How the server was shut down before this boot.
    pub shutdown: Shutdown,
    /// How long that took, seconds.
    pub shutdown_seconds: Option<f64>,
    /// Whether settling met its time limit.
    pub settle_timed_out: bool,
}
