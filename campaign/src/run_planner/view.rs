//! What a decision about a run is made from, as plain values.

use crds::environment::Environment;
use crds::parameter::Parameters;
use crds::run::{BenchmarkRunSpec, BenchmarkRunStatus, Evidence, Finding};
use crds::runner::{AuditLogPosition, Connection};
use crds::target::{BenchmarkTargetSpec, BenchmarkTargetStatus, TargetType};
use jiff::Timestamp;

use crate::target_planner::holder::Claimant;

/// How often the data is made for one run before it is given up.
pub const PREPARE_ATTEMPTS: i32 = 2;

/// Everything that a decision about a run needs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunView {
    /// The run.
    pub run: RunObject,
    /// Its target, if there is one.
    pub target: Option<TargetSeen>,
    /// Whether the run that the target's holder names (if it is not this one) has finished or is gone.
    pub last_run_ended: bool,
    /// Who has the lease of the database's node.
    pub node: NodeLease,
    /// Parameters that the cache state wanted needs in every boot, below the run's own.
    pub cache_parameters: Parameters,
    /// Hash of what shapes the workload's data: tool, script, tables, rows.
    pub data_shape: String,
    /// Whether the load only reads.
    pub read_only: bool,
    /// The Job that makes the data, of the name that the status has.
    pub prepare: JobView,
    /// The Job that applies load.
    pub job: JobView,
    /// What came of [`super::Action::Establish`] in this reconcile.
    pub established: Option<Establishment>,
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunObject {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Who takes the target for it: the campaign that controls it, or itself.
    pub claimant: Claimant,
    /// The spec.
    pub spec: BenchmarkRunSpec,
    /// The status as stored.
    pub status: BenchmarkRunStatus,
}

/// A target, as a run sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSeen {
    /// Name.
    pub name: String,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// The spec.
    pub spec: BenchmarkTargetSpec,
    /// The status as stored.
    pub status: BenchmarkTargetStatus,
    /// How the database is reached, if it runs.
    pub connection: Option<Connection>,
}

impl TargetSeen {
    /// Where no two runs may be measured at once: the node of a managed server; a borrowed one itself, since where it runs
    /// is not known. None as long as that is not known either.
    pub fn place(&self) -> Option<String> {
        match self.spec.type_ {
            TargetType::Managed => self.status.node.clone(),
            TargetType::External => {
                let identity = self.status.server_identity.as_ref()?;
                Some(format!("server {identity}"))
            }
        }
    }

    /// Whether it may be changed: what a borrowed server had is in the status first.
    pub fn may_be_changed(&self) -> bool {
        self.spec.type_ == TargetType::Managed || self.status.original_state.is_some()
    }
}

/// Who has the lease of the database's node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeLease {
    /// Not known in this reconcile, or known to be free.
    #[default]
    Unknown,
    /// This run.
    Ours,
    /// A run that has not ended, in words.
    Other(String),
}

/// A Job of the runner's and its pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobView {
    /// There is none.
    #[default]
    Absent,
    /// It was made and nothing has ended.
    Active {
        /// Its pod, once there is one; of several, one that does not start.
        pod: Option<RunnerPod>,
    },
    /// The runner's container has ended in every pod of which anything is known, by index; none is left running.
    Ended(Vec<EndedPod>),
    /// It failed without a word from the runner.
    Lost(Finding),
}

/// A pod whose runner has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedPod {
    /// Index in the Job; 0 where there is one pod.
    pub index: i32,
    /// The pod.
    pub pod: RunnerPod,
    /// Exit code.
    pub exit_code: i32,
    /// Termination message: the report.
    pub message: String,
    /// When.
    pub finished_at: Option<Timestamp>,
}

/// The pod of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunnerPod {
    /// Node.
    pub node: Option<String>,
    /// Image digest of the runner's container.
    pub image_id: Option<String>,
    /// What it does.
    pub state: RunnerState,
}

/// What the runner's container does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunnerState {
    /// It does not run yet, and why, where a person should look.
    Pending(Option<Finding>),
    /// It runs.
    #[default]
    Running,
    /// It has ended.
    Ended,
}

/// What came of bringing everything wanted in force.
#[derive(Clone, Debug, PartialEq)]
pub enum Establishment {
    /// Everything is in force and proved.
    Ready(Box<Proven>),
    /// The data must be made first.
    DatasetNeeded {
        /// What was found instead.
        found: String,
    },
    /// Settings that could not be brought in force.
    NotInForce(Vec<Finding>),
    /// The fence row belongs to another run.
    Fenced {
        /// UID of that run.
        holder: String,
    },
    /// A runner has started for this run, whose status does not say so yet: nothing may be changed any more.
    Started,
    /// No answer (yet).
    Unreachable(String),
    /// The database refused, or a statement failed: trying again cannot help.
    Refused(Finding),
}

/// A proof, as the database gave it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proven {
    /// Boot that it speaks of.
    pub boot_identity: String,
    /// Evidence; boot and time are filled in here.
    pub evidence: Evidence,
    /// Surroundings.
    pub environment: Environment,
    /// Where the audit log stands.
    pub audit_log: Option<AuditLogPosition>,
    /// Milliseconds that it took.
    pub took_millis: i64,
}
