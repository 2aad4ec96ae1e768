//! The load generators that can be run: how an order becomes a command line and files.
//! Pure: nothing is started here. Reading their output is `parse`'s part.

mod libpq;
mod pgbench;
mod sysbench;

use std::path::{Path, PathBuf};

use crds::runner::{PrepareOrder, RunOrder};
use crds::workload::WorkloadType;
use database::Login;
use thiserror::Error;

use crate::parse::pgbench::window::Window;

/// Tables by name, with their rows.
pub type Tables = Vec<(String, i64)>;

/// A load generator.
#[derive(Clone, Copy)]
pub struct LoadGenerator {
    /// The workload type that asks for it.
    pub type_: WorkloadType,
    /// Name of its parser in [`crate::parse::TOOLS`].
    pub tool: &'static str,
    /// The command of a measured run.
    pub run: fn(&RunOrder, &Site<'_>) -> Result<Invocation, LoadError>,
    /// The command that makes the data.
    pub prepare: fn(&PrepareOrder, &Site<'_>) -> Result<Invocation, LoadError>,
    /// Tables that `prepare` makes, with their rows; none where only the script knows.
    pub tables: fn(&PrepareOrder) -> Result<Tables, LoadError>,
    /// What cuts the window out of the tool's log; nothing where its report is of the window alone.
    pub window: fn(&RunOrder) -> Option<Window>,
}

/// Every load generator; a new one is a new module and one line here.
pub const LOAD_GENERATORS: &[LoadGenerator] = &[sysbench::GENERATOR, pgbench::GENERATOR];

/// The generator of a workload type.
///
/// # Errors
/// If there is none.
pub fn generator(type_: WorkloadType) -> Result<LoadGenerator, LoadError> {
    LOAD_GENERATORS
        .iter()
        .find(|known| known.type_ == type_)
        .copied()
        .ok_or(LoadError::NoGenerator(type_))
}

/// What an invocation needs of its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Login of the database.
    pub login: &'a Login,
    /// A folder in memory, private to us, for files with secrets; the tool's working directory.
    pub scratch: &'a Path,
    /// Where the workload's own scripts are mounted.
    pub scripts: &'a Path,
    /// CPUs that the tool may use, at least 1.
    pub cpus: usize,
}

/// A command to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program.
    pub program: &'static str,
    /// Its arguments; never a secret.
    pub arguments: Vec<String>,
    /// Variables of its environment besides our own; never a secret.
    pub environment: Vec<(&'static str, String)>,
    /// Files to write before, readable by us only.
    pub files: Vec<(PathBuf, Secret)>,
    /// Where it is started.
    pub working_directory: PathBuf,
    /// Pipes that it makes and writes its log into.
    pub log: Option<LogPipes>,
}

/// Named pipes of a tool's log: `PREFIX.PID`, then `PREFIX.PID.1` and so on. A pipe and not a file, so that a long run
/// fills no disk and its writing disturbs nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPipes {
    /// Start of their names.
    pub prefix: PathBuf,
    /// How many there are.
    pub count: usize,
}

/// The text of a file that nobody else may see.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Why an order can't become a command.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LoadError {
    /// No generator for this type.
    #[error("workload.type {0:?} has no load generator in this image")]
    NoGenerator(WorkloadType),
    /// The union's member is missing.
    #[error("workload.{0} is missing: workload.type names it")]
    Missing(&'static str),
    /// The engine and the generator don't fit.
    #[error("{tool} can't load {engine}")]
    Engine {
        /// The generator.
        tool: &'static str,
        /// The engine.
        engine: String,
    },
    /// A value that the tool's file can't carry.
    #[error(
        "{0} holds a line break, or both kinds of quotes and a space or comma: the load generator's file can't carry it, choose another"
    )]
    Unquotable(&'static str),
    /// A password that a password file can't carry.
    #[error("the password holds a line break: a password file can't carry it, choose another")]
    LineBreak,
    /// The ConfigMap with scripts is empty or can't be read.
    #[error("workload.pgbench.scriptConfigMap: {0}")]
    Scripts(String),
    /// A script name that leaves its folder.
    #[error("script {0:?} is not a plain file name")]
    Script(String),
}
