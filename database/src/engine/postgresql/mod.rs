//! PostgreSQL, 13 to 18. The workload's schema is a database of its own, which is what load generators connect to.

mod apply;
mod boot;
mod catalogue;
mod connection;
mod facts;
mod lasting;
mod marker;
mod reserved;
mod rest;
mod rights;
mod session;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::dataset::DatasetStatus;
use crds::environment::Environment;
use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::target::{BootRequest, Engine, OriginalState, Permissions};

use self::connection::identifier;
pub(crate) use self::session::Session;
use super::{EngineFacts, Layout, Live, ManagedServer};
use crate::access::{DatabaseError, Login, ParameterProblem, Result, ServerIdentity};
use crate::after::Counters;
use crate::audit::{Found, Statement};
use crate::cache::Reads;
use crate::catalogue::Catalogue;
use crate::configuration::{ConfigurationError, ConfigurationFile};
use crate::marker::{Fence, Progress};
use crate::original::Left;
use crate::server::Server;
use crate::settle::Sample;

pub use boot::default_shared_buffers;

/// PostgreSQL, as the official image and Debian's packages ship it.
pub struct PostgreSql;

/// PostgreSQL's port.
pub const PORT: u16 = 5432;

/// Databases that are the server's own.
const OWN_DATABASES: &[&str] = &[connection::HOME, "template0", "template1"];

impl EngineFacts for PostgreSql {
    fn engine(&self) -> Engine {
        Engine::PostgreSQL
    }

    fn default_port(&self) -> u16 {
        PORT
    }

    fn managed(&self, layout: &Layout) -> ManagedServer {
        boot::managed(layout)
    }

    fn init_sql(&self, username: &str, password: &str) -> String {
        boot::init_sql(username, password)
    }

    fn configuration(
        &self,
        layout: &Layout,
        base: &Parameters,
        request: Option<&BootRequest>,
        memory_bytes: i64,
    ) -> std::result::Result<ConfigurationFile, ConfigurationError> {
        boot::configuration(layout, base, request, memory_bytes)
    }

    fn cache_parameters(&self, state: CacheState) -> Parameters {
        boot::cache_parameters(state)
    }

    fn loads_at_start(&self) -> &'static str {
        "shared_preload_libraries"
    }

    fn comes_with(&self, name: &str, parameters: &Parameters) -> bool {
        boot::comes_with(name, parameters)
    }

    fn reserved(&self, name: &str) -> Option<ParameterProblem> {
        reserved::reserved(name)
    }
}

impl Live for PostgreSql {
    type Session = Session;
}

impl Server for Session {
    async fn open(login: &Login) -> Result<Self> {
        Self::connect(login).await
    }

    async fn close(self) {
        self.goodbye().await;
    }

    async fn run(&mut self, doing: &str, sql: &str) -> Result<u64> {
        self.run_within(connection::STATEMENT_LIMIT, doing, sql).await
    }

    async fn run_within(&mut self, limit: Duration, doing: &str, sql: &str) -> Result<u64> {
        self.run_in_workload(limit, doing, sql).await.map(|()| 0)
    }

    async fn apply(&mut self, name: &str, statement: &Statement) -> Result<Vec<ParameterProblem>> {
        apply::apply(self, name, statement).await
    }

    async fn lock(&mut self, name: &str, patience: Duration) -> Result<bool> {
        Session::lock(self, name, patience).await
    }

    async fn release(&mut self, name: &str) {
        Session::release(self, name).await;
    }

    async fn end_holder(&mut self, name: &str) -> Result<()> {
        Session::end_holder(self, name).await
    }

    async fn ensure_marker(&mut self) -> Result<()> {
        marker::ensure(&mut self.home).await
    }

    async fn read_fence(&mut self) -> Result<Option<Fence>> {
        marker::read_fence(&mut self.home).await
    }

    async fn take_fence(&mut self, run_uid: &str, epoch: i64) -> Result<Fence> {
        marker::take_fence(&mut self.home, run_uid, epoch).await
    }

    async fn advance(&mut self, run: (&str, i64), from: Progress, to: Progress) -> Result<bool> {
        marker::advance(&mut self.home, run, from, to).await
    }

    async fn read_dataset(&mut self, schema: &str) -> Result<Option<DatasetStatus>> {
        marker::read_dataset(&mut self.home, schema).await
    }

    async fn write_dataset(&mut self, schema: &str, made: &DatasetStatus, run: (&str, i64)) -> Result<bool> {
        marker::write_dataset(&mut self.home, schema, made, run).await
    }

    async fn forget_dataset(&mut self, schema: &str) -> Result<()> {
        marker::forget_dataset(&mut self.home, schema).await
    }

    fn belongs_to_server(schema: &str) -> bool {
        OWN_DATABASES.contains(&schema)
    }

    /// The workload's schema is a database here.
    async fn schemas(&mut self) -> Result<Vec<String>> {
        Session::databases(self).await
    }

    async fn own_marker(&mut self, owner: &str) -> Result<String> {
        marker::own(&mut self.home, owner).await
    }

    async fn marker_owner(&mut self) -> Result<Option<String>> {
        marker::owner(&mut self.home).await
    }

    async fn has_marker(&mut self) -> Result<bool> {
        marker::exists(&mut self.home).await
    }

    async fn drop_marker(&mut self, limit: Duration) -> Result<()> {
        marker::drop(&mut self.home, limit).await
    }

    /// A schema of the database `postgres`.
    fn drop_marker_by_hand() -> String {
        format!(
            "\\connect {}; DROP SCHEMA {} CASCADE",
            connection::HOME,
            crate::marker::SCHEMA
        )
    }

    async fn borrowable(&mut self, permissions: &Permissions, names: &BTreeSet<String>) -> Result<()> {
        rights::borrowable(self, permissions, names).await
    }

    async fn persisted(&mut self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Option<String>>> {
        lasting::persisted(self, names).await
    }

    async fn put_back(&mut self, original: &OriginalState) -> Result<()> {
        lasting::put_back(self, original).await
    }

    async fn not_put_back(&mut self, original: &OriginalState) -> Result<Vec<Left>> {
        lasting::not_put_back(self, original).await
    }

    /// Extensions of a mechanism would break the data where its library is not loaded any more.
    async fn leave_data(&mut self) -> Result<()> {
        if !self.enter_workload().await? {
            return Ok(());
        }
        let sql = "DROP EXTENSION IF EXISTS pgaudit";
        self.run("take the extension out of data that is kept", sql)
            .await
            .map(drop)
    }

    async fn drop_schema(&mut self, schema: &str, limit: Duration) -> Result<()> {
        Session::drop_database(self, limit, schema).await
    }

    async fn restart(&mut self) -> Result<()> {
        Err(DatabaseError::Unsupported(
            "no statement restarts a PostgreSQL server: set spec.external.restart to type Workload, Job or Http".to_owned(),
        ))
    }

    async fn make_empty(&mut self, schema: &str, limit: Duration) -> Result<()> {
        Session::make_empty(self, limit, schema).await
    }

    /// Frozen and with its visibility map, so that nothing of it is left to a vacuum in the middle of a run.
    async fn analyse(&mut self, _schema: &str, table: &str, limit: Duration) -> Result<()> {
        let sql = format!("VACUUM (FREEZE, ANALYZE) public.{}", identifier(table));
        self.run_in_workload(limit, "refresh statistics", &sql).await
    }

    async fn count_rows(&mut self, _schema: &str, table: &str, limit: Duration) -> Result<i64> {
        let doing = "count rows";
        let sql = format!("SELECT count(*) FROM public.{}", identifier(table));
        let rows = self
            .in_workload(limit, doing, &sql, &[])
            .await?
            .unwrap_or_default();
        match rows.first() {
            Some(row) => connection::column(row, 0, doing),
            None => Ok(0),
        }
    }

    async fn table_count(&mut self, _schema: &str) -> Result<i64> {
        facts::table_count(self).await
    }

    async fn table_bytes(&mut self, _schema: &str) -> Result<i64> {
        facts::table_bytes(self).await
    }

    async fn identify(&mut self, login: &Login) -> Result<ServerIdentity> {
        facts::identify(self, login).await
    }

    async fn found(&mut self, login: &Login) -> Result<Found> {
        facts::found(self, login).await
    }

    async fn catalogue(&mut self, _of_interest: &BTreeSet<String>) -> Result<Catalogue> {
        let mut fresh = self.fresh().await?;
        let catalogue = catalogue::load(&mut fresh).await;
        fresh.close().await;
        catalogue
    }

    async fn objections(
        &mut self,
        catalogue: &Catalogue,
        wanted: &Parameters,
    ) -> Result<Vec<ParameterProblem>> {
        let known = wanted.keys().filter_map(|name| catalogue.get(name));
        let names: Vec<&str> = known.filter(|v| !v.read_only).map(|v| v.name.as_str()).collect();
        let objections = rights::objections(self, &names).await?;
        Ok(objections
            .into_iter()
            .map(|(name, why)| ParameterProblem {
                message: format!("{name}: {why}"),
                name,
            })
            .collect())
    }

    async fn started(&mut self, found: &Found) -> Result<i64> {
        Ok(facts::started(found))
    }

    async fn is_replica(&mut self) -> Result<Option<bool>> {
        facts::is_replica(self).await
    }

    async fn counters(&mut self) -> Result<Counters> {
        facts::counters(self).await
    }

    fn surroundings(&self, found: &Found) -> Environment {
        facts::surroundings(found)
    }

    fn on_volume(&self, found: &Found, path: &str) -> Option<String> {
        facts::on_volume(found, path)
    }

    async fn calm(&mut self, limit: Duration) -> Result<()> {
        rest::checkpoint(self, limit).await
    }

    async fn sample(&mut self) -> Result<Sample> {
        rest::sample(self).await
    }

    fn cache_bytes(&self, catalogue: &Catalogue) -> Option<i64> {
        let buffers = catalogue.get("shared_buffers")?;
        buffers.canonical(&buffers.value).ok()?.parse().ok()
    }

    async fn cache_reads(&mut self, _schema: &str) -> Result<Reads> {
        rest::reads(self).await
    }

    async fn cache_scans(&mut self, _schema: &str) -> Result<Vec<String>> {
        rest::scans(self).await
    }

    async fn dump_loaded(&mut self) -> Result<bool> {
        rest::dump_loaded(self).await
    }

    async fn keep_while<T: Send>(&mut self, other: impl Future<Output = T> + Send) -> Result<T> {
        let mut other = std::pin::pin!(other);
        loop {
            if let Ok(ended) = tokio::time::timeout(session::SIGN_OF_LIFE, &mut other).await {
                return Ok(ended);
            }
            self.alive().await?;
        }
    }
}
