//! What the servers of the MySQL family share: protocol, configuration file, the statements of every step. What
//! distinguishes them is a [`Dialect`], one in each engine's own file.

pub(crate) mod boot;
pub(crate) mod connection;
mod facts;
mod marker;
mod rest;
mod server;

use std::collections::BTreeSet;

use crds::parameter::Parameters;
use crds::target::{Capabilities, Engine};
use futures::future::{BoxFuture, FutureExt as _};

pub(crate) use connection::{Session, identifier};
pub(crate) use rest::status_sample;
pub(crate) use server::{bound_value, quoted_variable};

use super::EngineFacts;
use crate::access::{DatabaseError, ParameterProblem, Result};
use crate::audit::Found;
use crate::catalogue::Catalogue;
use crate::settle::Sample;

/// Every member of the family.
const DIALECTS: &[&dyn Dialect] = &[&super::mariadb::MariaDb, &super::mysql::MySql];

/// Version of a server as three numbers.
pub(crate) type Version = (u16, u16, u16);

/// What distinguishes a server from its kin once it is running.
pub(crate) trait Dialect: EngineFacts {
    /// What each of our sessions sets besides what the family needs, so that its answers do not depend on defaults.
    fn session_statements(&self, _version: Version) -> &'static [&'static str] {
        &[]
    }

    /// Reads the catalogue of parameters. Whether a parameter can be set while the server runs need only be known of those
    /// `of_interest`.
    fn catalogue<'a>(
        &'a self,
        session: &'a mut Session,
        of_interest: &'a BTreeSet<String>,
    ) -> BoxFuture<'a, Result<Catalogue>>;

    /// What the server itself has against values that the catalogue cannot judge; nothing is set.
    fn objections<'a>(
        &'a self,
        _session: &'a mut Session,
        _catalogue: &'a Catalogue,
        _wanted: &'a Parameters,
    ) -> BoxFuture<'a, Result<Vec<ParameterProblem>>> {
        async { Ok(Vec::new()) }.boxed()
    }

    /// Expression that tells a borrowed server from every other, at every boot.
    fn identity(&self) -> &'static str {
        "CONCAT(@@hostname, ':', @@port, ':', @@datadir)"
    }

    /// Query that gives the names, in upper case, of audit plugins that could be loaded or are.
    fn audit_plugins(&self) -> &'static str;

    /// What it can do besides auditing.
    fn capabilities(&self, version: Version) -> Capabilities;

    /// Statement that ends the server so that it comes back: by itself where it runs under a supervisor and knows how,
    /// else whatever brings it back must.
    fn restart_statement(&self, _version: Version) -> &'static str {
        "SHUTDOWN"
    }

    /// Query whose rows say that the server follows another: none if it follows nobody.
    fn replica_query(&self, version: Version) -> &'static str;

    /// Names of the status variables that count rows written to tables since the boot.
    fn rows_written(&self) -> &'static [&'static str];

    /// Bytes of the redo log.
    fn redo_bytes(&self, found: &Found) -> Option<i64>;

    /// Bytes of redo since the last checkpoint.
    fn checkpoint_age(&self, found: &Found) -> Option<i64>;

    /// One look whether the server has settled.
    fn sample<'a>(&'a self, session: &'a mut Session) -> BoxFuture<'a, Result<Sample>>;
}

/// The dialect of an engine of the family.
pub(crate) fn dialect(engine: Engine) -> Result<&'static dyn Dialect> {
    DIALECTS
        .iter()
        .copied()
        .find(|d| d.engine() == engine)
        .ok_or_else(|| DatabaseError::Unsupported(format!("{engine:?} does not speak the MySQL protocol")))
}
