//! What the controllers ask of a database, as one trait: the real thing is [`crate::Databases`], the simulation
//! has a model. Every call opens its own connection and closes it before it returns, so that nothing is connected
//! while load is measured.

use std::time::Duration;

use crds::audit::AuditSetting;
use crds::dataset::DatasetStatus;
use crds::environment::Environment;
use crds::load::{CacheState, Settle};
use crds::parameter::Parameters;
use crds::run::Evidence;
use crds::runner::{AuditLogPosition, Connection};
use crds::target::{Capabilities, CleanShutdown, OriginalState, Permissions};
use crds::workload::Workload;
use futures::future::BoxFuture;

use crate::original::{Captured, Left};

/// Where and as whom to log in. `Debug` shows no password.
#[derive(Clone)]
pub struct Login {
    /// Engine, host, port, schema, agent.
    pub connection: Connection,
    /// Login name.
    pub username: String,
    /// Password.
    pub password: String,
    /// PEM certificate authority, for TLS.
    pub certificate_authority: Option<Vec<u8>>,
    /// Bearer token of the agent.
    pub agent_token: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("connection", &self.connection)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// Who a server is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerIdentity {
    /// Version as the server says it.
    pub version: String,
    /// Flavour found.
    pub flavour: String,
    /// Identity of the server's data.
    pub server_identity: String,
    /// Host name as the server knows it.
    pub host_name: String,
    /// Start of the server process, seconds since 1970 by the server's own clock (uncertain by 1 s).
    pub started: i64,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Whether the shutdown before this boot was clean.
    pub clean_shutdown: CleanShutdown,
}

/// A parameter that cannot be set as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterProblem {
    /// Name, as written in the manifest.
    pub name: String,
    /// What was found, what is allowed, what to do (a near match, the range), in one sentence.
    pub message: String,
}

/// What must be in force before load may begin.
#[derive(Clone, Debug)]
pub struct EstablishOrder {
    /// UID of the run: holder in the fence row.
    pub run_uid: String,
    /// Epoch of the fence row.
    pub epoch: i64,
    /// Parameters that must be in force.
    pub parameters: Parameters,
    /// Audit setting that must be in force.
    pub audit: AuditSetting,
    /// The load to come: its tables are checked and warmed.
    pub workload: Workload,
    /// Rows per table.
    pub rows_per_table: i64,
    /// Hash that the dataset's marker must carry.
    pub dataset_hash: String,
    /// Make the data again when its bytes have grown by this share (0.1); `None`: never for growth.
    pub rebuild_when_grown: Option<f64>,
    /// How the server settles.
    pub settle: Settle,
    /// What the cache must hold.
    pub cache: CacheState,
    /// Whether the server was restarted for this run; if not, settling and warming are checks only.
    pub fresh_boot: bool,
}

/// What [`DatabaseAccess::establish`] came to.
#[derive(Clone, Debug)]
pub enum Established {
    /// Everything is in force and proved; load may begin.
    Ready(Box<Proof>),
    /// The data is missing, of another shape, or has grown: it must be made first. Nothing was changed.
    DatasetNeeded {
        /// What was found instead, in words.
        found: String,
    },
    /// A setting could not be brought in force or did not read back: the run is invalid.
    NotInForce {
        /// Which settings, wanted and found.
        problems: Vec<ParameterProblem>,
    },
    /// The fence row belongs to a holder that is not known to have ended.
    Fenced {
        /// The holder's run UID.
        holder: String,
    },
    /// A runner has started for this very run: nothing may be changed any more, and nothing was.
    Started,
}

/// Proof that everything wanted is in force.
#[derive(Clone, Debug)]
pub struct Proof {
    /// For the run's status; `proved_at` and `boot_identity` are filled in by the caller.
    pub evidence: Evidence,
    /// Surroundings before the load.
    pub environment: Environment,
    /// Start of the server process, seconds since 1970.
    pub started: i64,
    /// Where the audit log stands; `None` where nothing is recorded or it cannot be read.
    pub audit_log: Option<AuditLogPosition>,
    /// Data found.
    pub dataset: DatasetStatus,
}

/// Why a database did not do what was asked. Never holds a password.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DatabaseError {
    /// It cannot be reached (yet): try again.
    #[error("{host}:{port} cannot be reached: {message}")]
    Unreachable {
        /// Host.
        host: String,
        /// Port.
        port: u16,
        /// What the network said.
        message: String,
    },
    /// Login or privilege refused: a person must act.
    #[error("{host}:{port} refused: {message}")]
    Refused {
        /// Host.
        host: String,
        /// Port.
        port: u16,
        /// What the server said and which grant is missing.
        message: String,
    },
    /// A statement failed.
    #[error("{statement}: {message}")]
    Statement {
        /// What was tried, without values.
        statement: String,
        /// What the server said.
        message: String,
    },
    /// The agent did not answer as it should.
    #[error("agent: {0}")]
    Agent(String),
    /// This engine, mechanism or route is not implemented.
    #[error("{0}")]
    Unsupported(String),
    /// Somebody else is changing the server for the same run: try again.
    #[error("{0}")]
    Busy(String),
    /// It took longer than allowed.
    #[error("no answer within {} s while {doing}", limit.as_secs())]
    TimedOut {
        /// What was being done.
        doing: String,
        /// The limit.
        limit: Duration,
    },
}

/// Result of asking a database.
pub type Result<T> = std::result::Result<T, DatabaseError>;

/// What the controllers ask of a database.
pub trait DatabaseAccess: Send + Sync + 'static {
    /// Who answers there.
    fn identify<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<ServerIdentity>>;

    /// Which of these parameters and audit settings the live server would refuse, all of them at once.
    fn check<'a>(
        &'a self,
        login: &'a Login,
        parameters: &'a [Parameters],
        audit: &'a [AuditSetting],
    ) -> BoxFuture<'a, Result<Vec<ParameterProblem>>>;

    /// Brings everything wanted in force after a boot, waits until the server has settled, warms the cache, proves
    /// the settings and writes that into the fence row. Can be repeated: what is in force stays as it is. No two of
    /// these are at one server at the same time, whoever asks.
    fn establish<'a>(
        &'a self,
        login: &'a Login,
        order: &'a EstablishOrder,
    ) -> BoxFuture<'a, Result<Established>>;

    /// Borrows a server for a target (by its UID), if no other has it, and reads what the server has of all that its owner
    /// permits to change. Can be repeated as long as nothing was changed.
    fn capture<'a>(
        &'a self,
        login: &'a Login,
        permissions: &'a Permissions,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<Captured>>;

    /// Puts back what was captured for a target (by its UID), drops what we made (the workload's schema unless it is to be
    /// retained, the marker schema), reads everything back and says what is still not as it was. Can be repeated. `None`:
    /// nothing was captured, only borrowing is undone. Nobody may hold the server.
    fn restore<'a>(
        &'a self,
        login: &'a Login,
        original: Option<&'a OriginalState>,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Left>>>;

    /// Restarts a borrowed server by a statement; returns when the server has taken it, not when it is back.
    fn restart<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<()>>;
}
