//! What is known of each engine, in one list. A new engine is one new file and one line in [`ENGINES`].

mod layout;
pub mod mariadb;
pub mod mysql;
pub(crate) mod mysql_family;
pub mod postgresql;

use crds::dataset::DatasetStatus;
use crds::parameter::Parameters;
use crds::runner::RunOrder;
use crds::target::{BootRequest, Engine};
use futures::future::BoxFuture;

pub use layout::{
    CONFIGURATION_DIRECTORY, CONFIGURATION_KEY, DEFAULT_USER, LOG_DIRECTORY, Layout, ManagedServer,
    SECRET_DIRECTORY, TEMPORARY_DIRECTORY, VOLUME,
};

use crate::access::{DatabaseAccess, DatabaseError, Login, ParameterProblem, Result};
use crate::after::{AfterRun, Counters};
use crate::configuration::{ConfigurationError, ConfigurationFile};
use crate::marker::Claim;
use crate::server::Server;

/// Every engine that can be measured.
const ENGINES: &[&dyn EngineSupport] = &[&mariadb::MariaDb, &mysql::MySql, &postgresql::PostgreSql];

/// What an engine says of itself without asking a server.
pub trait EngineFacts: Send + Sync + 'static {
    /// Which engine this is.
    fn engine(&self) -> Engine;

    /// Port of the engine unless said otherwise.
    fn default_port(&self) -> u16;

    /// How a managed server is run.
    fn managed(&self, layout: &Layout) -> ManagedServer;

    /// SQL that the server runs at every boot: the login, the marker schema.
    fn init_sql(&self, username: &str, password: &str) -> String;

    /// The complete configuration of one boot.
    fn configuration(
        &self,
        layout: &Layout,
        base: &Parameters,
        request: Option<&BootRequest>,
        memory_bytes: i64,
    ) -> std::result::Result<ConfigurationFile, ConfigurationError>;

    /// Parameters that a cache state needs in the configuration file.
    fn cache_parameters(&self, state: crds::load::CacheState) -> Parameters;

    /// Whether a parameter exists only because these parameters load what it belongs to.
    fn comes_with(&self, _name: &str, _parameters: &Parameters) -> bool {
        false
    }

    /// Parameter of the server's configuration that names what is loaded when it starts.
    fn loads_at_start(&self) -> &'static str {
        "plugin_load_add"
    }

    /// The problem with setting this parameter (by its canonical name), if it is not a person's to set.
    fn reserved(&self, name: &str) -> Option<ParameterProblem>;
}

/// How a live server of an engine is talked to. Whoever has this has all the calls (`calls.rs`).
pub(crate) trait Live: EngineFacts {
    /// A session at such a server.
    type Session: Server;
}

/// What an engine offers: what it says of itself, and the calls.
pub trait EngineSupport: EngineFacts + DatabaseAccess {
    /// See [`crate::Databases::claim`].
    fn claim<'a>(&'a self, login: &'a Login, run_uid: &'a str, epoch: i64) -> BoxFuture<'a, Result<Claim>>;

    /// See [`crate::Databases::begin_dataset`].
    fn begin_dataset<'a>(
        &'a self,
        login: &'a Login,
        run_uid: &'a str,
        epoch: i64,
    ) -> BoxFuture<'a, Result<Claim>>;

    /// See [`crate::Databases::finish_dataset`].
    fn finish_dataset<'a>(
        &'a self,
        login: &'a Login,
        run: (&'a str, i64),
        hash: &'a str,
        tables: &'a [String],
        rows_per_table: i64,
    ) -> BoxFuture<'a, Result<Option<DatasetStatus>>>;

    /// See [`crate::Databases::row_counts`].
    fn row_counts<'a>(&'a self, login: &'a Login, tables: &'a [String]) -> BoxFuture<'a, Result<Vec<i64>>>;

    /// See [`crate::Databases::counters`].
    fn counters<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<Counters>>;

    /// See [`crate::Databases::after_run`].
    fn after_run<'a>(
        &'a self,
        login: &'a Login,
        order: &'a RunOrder,
        before: &'a Counters,
    ) -> BoxFuture<'a, Result<AfterRun>>;
}

/// The engine's entry in the list.
pub fn find(engine: Engine) -> Result<&'static dyn EngineSupport> {
    ENGINES
        .iter()
        .copied()
        .find(|e| e.engine() == engine)
        .ok_or_else(|| {
            let known: Vec<String> = ENGINES.iter().map(|e| format!("{:?}", e.engine())).collect();
            DatabaseError::Unsupported(format!(
                "engine {engine:?} cannot be measured yet: this version knows {}",
                known.join(", ")
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_found_with_its_own_port() {
        for (engine, port) in [
            (Engine::MariaDB, 3306),
            (Engine::MySQL, 3306),
            (Engine::PostgreSQL, 5432),
        ] {
            let support = find(engine).unwrap();
            assert_eq!((support.engine(), support.default_port()), (engine, port));
        }
    }
}
