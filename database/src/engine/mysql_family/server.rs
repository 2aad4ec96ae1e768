//! The steps' questions and changes, in the family's SQL.

use std::collections::BTreeSet;
use std::time::Duration;

use crds::dataset::DatasetStatus;
use crds::environment::Environment;
use crds::parameter::Parameters;
use mysql_async::Value;

use super::{Session, connection::STATEMENT_LIMIT, facts, identifier, marker, rest};
use crate::access::{DatabaseError, Login, ParameterProblem, Result, ServerIdentity};
use crate::after::Counters;
use crate::audit::{Bound, Found, Statement};
use crate::cache::Reads;
use crate::catalogue::Catalogue;
use crate::marker::{Fence, Progress, SCHEMA};
use crate::server::Server;
use crate::settle::Sample;

/// Schemas that are the server's own.
const OWN_SCHEMAS: &[&str] = &["mysql", "sys", "information_schema", "performance_schema"];

impl Server for Session {
    async fn open(login: &Login) -> Result<Self> {
        Self::connect(login).await
    }

    async fn close(self) {
        self.goodbye().await;
    }

    async fn run(&mut self, doing: &str, sql: &str) -> Result<u64> {
        self.query_drop(doing, sql).await
    }

    async fn run_within(&mut self, limit: Duration, doing: &str, sql: &str) -> Result<u64> {
        self.query_drop_within(limit, doing, sql).await
    }

    async fn apply(&mut self, name: &str, statement: &Statement) -> Result<Vec<ParameterProblem>> {
        apply(self, name, statement).await
    }

    async fn lock(&mut self, name: &str, patience: Duration) -> Result<bool> {
        let doing = "take the lock under which the server is changed";
        let sql = format!("SELECT GET_LOCK('{name}', {})", patience.as_secs());
        let answer: Vec<Option<i64>> = self.rows_within(STATEMENT_LIMIT + patience, doing, &sql).await?;
        Ok(answer == [Some(1)])
    }

    async fn release(&mut self, name: &str) {
        let sql = format!("DO RELEASE_LOCK('{name}')");
        let _ = self.query_drop("give the lock back", &sql).await;
    }

    async fn end_holder(&mut self, name: &str) -> Result<()> {
        let sql = format!("SELECT CAST(IS_USED_LOCK('{name}') AS SIGNED)");
        let holder: Vec<Option<i64>> = self.rows("look who changes the server", &sql).await?;
        if let Some(connection) = holder.into_iter().flatten().next() {
            let _ = self
                .query_drop("end an older session", &format!("KILL CONNECTION {connection}"))
                .await;
        }
        Ok(())
    }

    async fn ensure_marker(&mut self) -> Result<()> {
        marker::ensure(self).await
    }

    async fn own_marker(&mut self, owner: &str) -> Result<String> {
        marker::own(self, owner).await
    }

    async fn marker_owner(&mut self) -> Result<Option<String>> {
        marker::owner(self).await
    }

    /// A schema among the others.
    async fn has_marker(&mut self) -> Result<bool> {
        Ok(self.schemas().await?.iter().any(|schema| schema == SCHEMA))
    }

    async fn drop_marker(&mut self, limit: Duration) -> Result<()> {
        self.drop_schema(SCHEMA, limit).await
    }

    async fn read_fence(&mut self) -> Result<Option<Fence>> {
        marker::read_fence(self).await
    }

    async fn take_fence(&mut self, run_uid: &str, epoch: i64) -> Result<Fence> {
        marker::take_fence(self, run_uid, epoch).await
    }

    async fn advance(&mut self, run: (&str, i64), from: Progress, to: Progress) -> Result<bool> {
        marker::advance(self, run, from, to).await
    }

    async fn read_dataset(&mut self, schema: &str) -> Result<Option<DatasetStatus>> {
        marker::read_dataset(self, schema).await
    }

    async fn write_dataset(&mut self, schema: &str, made: &DatasetStatus, run: (&str, i64)) -> Result<bool> {
        marker::write_dataset(self, schema, made, run).await
    }

    async fn forget_dataset(&mut self, schema: &str) -> Result<()> {
        marker::forget_dataset(self, schema).await
    }

    fn belongs_to_server(schema: &str) -> bool {
        OWN_SCHEMAS.contains(&schema)
    }

    async fn schemas(&mut self) -> Result<Vec<String>> {
        self.rows("list the schemas", "SHOW DATABASES").await
    }

    async fn drop_schema(&mut self, schema: &str, limit: Duration) -> Result<()> {
        let sql = format!("DROP DATABASE IF EXISTS {}", identifier(schema));
        self.query_drop_within(limit, "drop the schema", &sql).await?;
        Ok(())
    }

    async fn restart(&mut self) -> Result<()> {
        let doing = "restart the server";
        let first = self.dialect().restart_statement(self.version());
        let mut answer = self.query_drop(doing, first).await;
        // 3707: nothing supervises this server.
        if matches!(&answer, Err(DatabaseError::Statement { message, .. }) if message.starts_with("error 3707"))
        {
            answer = self.query_drop(doing, "SHUTDOWN").await;
        }
        match answer {
            // It may be gone before it has answered.
            Ok(_) | Err(DatabaseError::Unreachable { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn make_empty(&mut self, schema: &str, limit: Duration) -> Result<()> {
        self.drop_schema(schema, limit).await?;
        let sql = format!("CREATE DATABASE {}", identifier(schema));
        self.query_drop("make the schema", &sql).await?;
        Ok(())
    }

    async fn analyse(&mut self, schema: &str, table: &str, limit: Duration) -> Result<()> {
        let sql = format!("ANALYZE TABLE {}.{}", identifier(schema), identifier(table));
        self.query_drop_within(limit, "refresh statistics", &sql).await?;
        Ok(())
    }

    async fn count_rows(&mut self, schema: &str, table: &str, limit: Duration) -> Result<i64> {
        let sql = format!(
            "SELECT COUNT(*) FROM {}.{}",
            identifier(schema),
            identifier(table)
        );
        let rows: Vec<i64> = self.rows_within(limit, "count rows", &sql).await?;
        Ok(rows.first().copied().unwrap_or_default())
    }

    async fn table_count(&mut self, schema: &str) -> Result<i64> {
        facts::table_count(self, schema).await
    }

    async fn table_bytes(&mut self, schema: &str) -> Result<i64> {
        facts::table_bytes(self, schema).await
    }

    async fn identify(&mut self, login: &Login) -> Result<ServerIdentity> {
        facts::identify(self, login).await
    }

    async fn found(&mut self, login: &Login) -> Result<Found> {
        facts::found(self, login).await
    }

    async fn catalogue(&mut self, of_interest: &BTreeSet<String>) -> Result<Catalogue> {
        self.dialect().catalogue(self, of_interest).await
    }

    async fn objections(
        &mut self,
        catalogue: &Catalogue,
        wanted: &Parameters,
    ) -> Result<Vec<ParameterProblem>> {
        self.dialect().objections(self, catalogue, wanted).await
    }

    async fn started(&mut self, found: &Found) -> Result<i64> {
        facts::started(self, found).await
    }

    async fn is_replica(&mut self) -> Result<Option<bool>> {
        facts::is_replica(self).await
    }

    async fn counters(&mut self) -> Result<Counters> {
        facts::counters(self).await
    }

    fn surroundings(&self, found: &Found) -> Environment {
        facts::surroundings(self, found)
    }

    fn on_volume(&self, found: &Found, path: &str) -> Option<String> {
        facts::on_volume(found, path)
    }

    async fn sample(&mut self) -> Result<Sample> {
        self.dialect().sample(self).await
    }

    fn cache_bytes(&self, catalogue: &Catalogue) -> Option<i64> {
        catalogue.get("innodb_buffer_pool_size")?.value.parse().ok()
    }

    async fn cache_reads(&mut self, _schema: &str) -> Result<Reads> {
        rest::reads(self).await
    }

    async fn cache_scans(&mut self, schema: &str) -> Result<Vec<String>> {
        rest::scans(self, schema).await
    }

    async fn dump_loaded(&mut self) -> Result<bool> {
        rest::load_completed(self).await
    }
}

async fn apply(session: &mut Session, name: &str, statement: &Statement) -> Result<Vec<ParameterProblem>> {
    let answer = match statement {
        Statement::Sql(sql) => session.query_drop(sql, sql).await,
        Statement::Set { name, value } => {
            let sql = format!("SET GLOBAL {} = ?", quoted_variable(name));
            session.run_with(&sql, &sql, (bound_value(value),)).await
        }
    };
    match answer {
        Ok(_) => {}
        // The server says no to this value: a finding about the setting, not a failure of ours.
        Err(DatabaseError::Statement { message, .. }) => {
            return Ok(vec![ParameterProblem {
                name: name.to_owned(),
                message: format!("{name}: {message}"),
            }]);
        }
        Err(error) => return Err(error),
    }
    // The pool is rounded up to whole pieces with the warning of a value that was cut: the read-back judges it.
    let rounded = matches!(statement, Statement::Set { name, .. } if name == "innodb_buffer_pool_size");
    let warnings: Vec<(String, u32, String)> = session.rows("read warnings", "SHOW WARNINGS").await?;
    Ok(warnings
        .into_iter()
        // 1292: cut to what is allowed; 1 and others of our own mechanisms: could not be done.
        .filter(|(level, code, _)| (*code == 1292 && !rounded) || level == "Error" || *code == 1)
        .map(|(_, code, message)| ParameterProblem {
            name: name.to_owned(),
            message: format!(
                "{name}: the server changed the value or could not use it (warning {code}): {message}"
            ),
        })
        .collect())
}

/// A variable's name in backquotes; a component's has two parts.
pub(crate) fn quoted_variable(name: &str) -> String {
    name.split('.').map(identifier).collect::<Vec<_>>().join(".")
}

/// A value as it is sent.
pub(crate) fn bound_value(bound: &Bound) -> Value {
    match bound {
        Bound::Integer(number) => i64::try_from(*number)
            .map(Value::Int)
            .or_else(|_| u64::try_from(*number).map(Value::UInt))
            .unwrap_or(Value::NULL),
        Bound::Real(number) => Value::Double(*number),
        Bound::Text(text) => Value::from(text.as_str()),
    }
}
