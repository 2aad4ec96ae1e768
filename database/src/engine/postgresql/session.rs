//! A session at a PostgreSQL server: one connection to the database `postgres`, where marker and locks are, and one to
//! the workload's database, opened when it is first needed. Advisory locks belong to a database, and so does nearly all
//! that can be asked of tables.

use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};

use super::connection::{HOME, LOCK_NOT_FREE, NO_DATABASE, STATEMENT_LIMIT, Wire, failed_with, identifier};
use crate::access::{DatabaseError, Login, Result};
use crate::configuration::hex_digest;

/// How often a connection that waits for the other one says that it is there.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// What the second connection of a session is called, with the first one's process behind it: whoever ends the one ends
/// the other.
const COMPANION: &str = "benchmark-campaign of ";

/// An open session.
pub(crate) struct Session {
    pub(super) home: Wire,
    process: i32,
    workload: Option<Wire>,
    login: Login,
}

impl Session {
    pub(super) async fn connect(login: &Login) -> Result<Self> {
        let mut home = Wire::open(login, HOME).await?;
        let process = home
            .one("look which process serves us", "SELECT pg_backend_pid()", &[])
            .await?
            .unwrap_or_default();
        Ok(Self {
            home,
            process,
            workload: None,
            login: login.clone(),
        })
    }

    pub(super) async fn goodbye(mut self) {
        self.leave_workload().await;
        self.home.close().await;
    }

    /// Name of the workload's database.
    pub(super) fn database(&self) -> &str {
        &self.login.connection.schema
    }

    /// A connection that has just begun, to the workload's database or, where there is none yet, to `postgres`.
    pub(super) async fn fresh(&self) -> Result<Wire> {
        if let Some(wire) = reach(&self.login, self.database()).await? {
            return Ok(wire);
        }
        self.fresh_home().await
    }

    /// A connection that has just begun, to `postgres`: what it has is the same whether or not there is the workload's
    /// database.
    pub(super) async fn fresh_home(&self) -> Result<Wire> {
        Wire::open(&self.login, HOME).await
    }

    /// An error that a person must do something about.
    pub(super) fn refused(&self, message: String) -> DatabaseError {
        DatabaseError::Refused {
            host: self.login.connection.host.clone(),
            port: self.login.connection.port,
            message,
        }
    }

    /// Opens the connection to the workload's database; whether there is that database.
    pub(super) async fn enter_workload(&mut self) -> Result<bool> {
        if self.workload.is_some() {
            return Ok(true);
        }
        let Some(mut wire) = reach(&self.login, self.database()).await? else {
            return Ok(false);
        };
        let name = format!("{COMPANION}{}", self.process);
        wire.rows(
            "name the connection",
            "SELECT set_config('application_name', $1, false), set_config('idle_session_timeout', '0', false) FROM \
             pg_settings WHERE name = 'application_name'",
            &[(&name, Type::TEXT)],
        )
        .await?;
        self.workload = Some(wire);
        Ok(true)
    }

    /// Closes the connection to the workload's database, which cannot be dropped while somebody is in it.
    pub(super) async fn leave_workload(&mut self) {
        if let Some(wire) = self.workload.take() {
            wire.close().await;
        }
    }

    /// The first connection and, if it is open, the second.
    pub(super) fn wires(&mut self) -> (&mut Wire, Option<&mut Wire>) {
        (&mut self.home, self.workload.as_mut())
    }

    /// Rows of a query in the workload's database; `None` where there is no such database.
    pub(super) async fn in_workload(
        &mut self,
        limit: Duration,
        doing: &str,
        sql: &str,
        values: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Option<Vec<tokio_postgres::Row>>> {
        if !self.enter_workload().await? {
            return Ok(None);
        }
        let (home, workload) = self.wires();
        let Some(workload) = workload else { return Ok(None) };
        let rows = kept(home, workload.rows_within(limit, doing, sql, values)).await??;
        Ok(Some(rows))
    }

    /// Runs a statement in the workload's database, or in `postgres` where there is none.
    pub(super) async fn run_in_workload(&mut self, limit: Duration, doing: &str, sql: &str) -> Result<()> {
        self.enter_workload().await?;
        let (home, workload) = self.wires();
        match workload {
            Some(workload) => kept(home, workload.run_within(limit, doing, sql)).await?,
            None => home.run_within(limit, doing, sql).await,
        }
    }

    /// Says on both connections that they are in use; fails if somebody ended one.
    pub(super) async fn alive(&mut self) -> Result<()> {
        let (home, workload) = self.wires();
        home.run("keep the session open", "SELECT 1").await?;
        match workload {
            Some(workload) => workload.run("keep the session open", "SELECT 1").await,
            None => Ok(()),
        }
    }

    pub(super) async fn lock(&mut self, name: &str, patience: Duration) -> Result<bool> {
        let doing = "take the lock under which the server is changed";
        let key = key(name);
        let values = [(&key as &(dyn ToSql + Sync), Type::INT8)];
        if patience.is_zero() {
            let sql = "SELECT pg_try_advisory_lock($1)";
            return Ok(self.home.one(doing, sql, &values).await?.unwrap_or_default());
        }
        let limit = |milliseconds: u128| format!("SET lock_timeout = {milliseconds}");
        self.home.run(doing, &limit(patience.as_millis())).await?;
        let answer = self
            .home
            .rows_within(
                STATEMENT_LIMIT + patience,
                doing,
                "SELECT pg_advisory_lock($1)::text",
                &values,
            )
            .await;
        self.home.run(doing, &limit(STATEMENT_LIMIT.as_millis())).await?;
        match answer {
            Ok(_) => Ok(true),
            Err(error) if failed_with(&error, LOCK_NOT_FREE) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn release(&mut self, name: &str) {
        let key = key(name);
        let sql = "SELECT pg_advisory_unlock($1)";
        let _ = self
            .home
            .rows("give the lock back", sql, &[(&key, Type::INT8)])
            .await;
    }

    pub(super) async fn end_holder(&mut self, name: &str) -> Result<()> {
        let doing = "look who changes the server";
        let key = key(name);
        let sql = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND (classid::int8 << 32 \
                   | objid::int8) = $1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let holder: Option<i32> = self.home.one(doing, sql, &[(&key, Type::INT8)]).await?;
        if let Some(holder) = holder {
            let companion = format!("{COMPANION}{holder}");
            let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 OR application_name = $2";
            let values = [
                (&holder as &(dyn ToSql + Sync), Type::INT4),
                (&companion, Type::TEXT),
            ];
            let _ = self.home.rows("end an older session", sql, &values).await;
        }
        Ok(())
    }

    pub(super) async fn databases(&mut self) -> Result<Vec<String>> {
        let doing = "list the databases";
        let rows = self
            .home
            .rows(doing, "SELECT datname::text FROM pg_database", &[])
            .await?;
        rows.iter()
            .map(|row| super::connection::column(row, 0, doing))
            .collect()
    }

    pub(super) async fn drop_database(&mut self, limit: Duration, database: &str) -> Result<()> {
        self.leave_workload().await;
        // Whoever is still connected, a load generator that was killed perhaps, would keep it.
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", identifier(database));
        self.home
            .run_within(limit, "drop the workload's database", &sql)
            .await
    }

    pub(super) async fn make_empty(&mut self, limit: Duration, database: &str) -> Result<()> {
        self.drop_database(limit, database).await?;
        let name = identifier(database);
        self.home
            .run_within(
                limit,
                "make the workload's database",
                // What somebody put into template1, or is at there, does not matter.
                &format!("CREATE DATABASE {name} TEMPLATE template0"),
            )
            .await
    }
}

/// Waits for one connection while the other says now and then that it is there; fails soon after somebody ended that.
pub(super) async fn kept<T>(idle: &mut Wire, busy: impl Future<Output = T>) -> Result<T> {
    let mut busy = std::pin::pin!(busy);
    loop {
        if let Ok(ended) = tokio::time::timeout(SIGN_OF_LIFE, &mut busy).await {
            return Ok(ended);
        }
        idle.run("keep the session open", "SELECT 1").await?;
    }
}

/// A connection to a database; `None` where there is no such database.
async fn reach(login: &Login, database: &str) -> Result<Option<Wire>> {
    if database.is_empty() {
        return Ok(None);
    }
    match Wire::open(login, database).await {
        Ok(wire) => Ok(Some(wire)),
        Err(error) if failed_with(&error, NO_DATABASE) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Key of an advisory lock by its name.
pub(super) fn key(name: &str) -> i64 {
    u64::from_str_radix(&hex_digest(name.as_bytes(), 16), 16)
        .unwrap_or_default()
        .cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_have_keys_of_their_own_that_stay() {
        assert_ne!(key("benchmark_campaign"), key("benchmark_campaign_scan"));
        assert_eq!(key("benchmark_campaign"), key("benchmark_campaign"));
    }
}
