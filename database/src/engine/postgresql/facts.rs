//! Who a server is and what it says of itself: version, identity, parameters, statistics, surroundings.

use std::time::Duration;

use crds::audit::AuditType;
use crds::environment::Environment;
use crds::target::{Capabilities, CleanShutdown, Engine};
use tokio::time::{Instant, sleep};
use tokio_postgres::types::{ToSql, Type};

use super::connection::{STATEMENT_LIMIT, Wire, column};
use super::marker;
use super::session::Session;
use crate::access::{DatabaseError, Login, Result, ServerIdentity};
use crate::after::Counters;
use crate::audit::{self, Found, Mechanism};

/// Tables of people, by the catalogue: not the server's own, not a partition.
const TABLES: &str = "FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname NOT IN ('pg_catalog', \
                      'information_schema') AND nspname NOT LIKE 'pg\\_toast%' AND relpersistence <> 't'";
/// How long sessions of the load may need to end and to hand in what they counted.
const HANDED_IN: Duration = Duration::from_secs(2);
/// How long the statistics of servers before 15 may be behind.
const STATISTICS_DELAY: Duration = Duration::from_millis(600);
/// First version whose statistics are in shared memory.
const SHARED_STATISTICS: i32 = 150_000;

/// Version as one number: 170002 is 17.2.
pub(super) async fn version(wire: &mut Wire) -> Result<i32> {
    let sql = "SELECT current_setting('server_version_num')::int4";
    Ok(wire
        .one("ask for the version", sql, &[])
        .await?
        .unwrap_or_default())
}

pub(super) async fn identify(session: &mut Session, login: &Login) -> Result<ServerIdentity> {
    let doing = "ask the server who it is";
    let rows = session
        .home
        .rows(
            doing,
            "SELECT current_setting('server_version'), version(), coalesce(host(inet_server_addr()), ''), extract(epoch \
             FROM pg_postmaster_start_time())::int8, (SELECT system_identifier::text FROM pg_control_system()), EXISTS \
             (SELECT FROM pg_settings WHERE name = 'pgaudit.log'), EXISTS (SELECT FROM pg_available_extensions WHERE name \
             = 'pgaudit')",
            &[],
        )
        .await?;
    let row = rows.first().ok_or_else(|| DatabaseError::Statement {
        statement: doing.to_owned(),
        message: "no answer".to_owned(),
    })?;
    let managed = login.connection.agent.is_some();
    let (loaded, shipped): (bool, bool) = (column(row, 5, doing)?, column(row, 6, doing)?);
    // A borrowed server's libraries are not ours to load.
    let pgaudit = loaded || (managed && shipped);
    let own: String = column(row, 4, doing)?;
    let server_identity = match marker::read_fence(&mut session.home).await? {
        Some(fence) => fence.server_identity,
        None => own,
    };
    Ok(ServerIdentity {
        version: column(row, 0, doing)?,
        flavour: flavour(&column::<String>(row, 1, doing)?).to_owned(),
        server_identity,
        host_name: column(row, 2, doing)?,
        started: column(row, 3, doing)?,
        capabilities: Capabilities {
            audit: audit::mechanisms(Engine::PostgreSQL)
                .map(Mechanism::kind)
                .filter(|kind| *kind != AuditType::PgAudit || pgaudit)
                .collect(),
            persist: true,
            ..Capabilities::default()
        },
        clean_shutdown: clean_shutdown(&mut session.home, managed).await?,
    })
}

/// The flavour by what `version()` says.
fn flavour(version: &str) -> &'static str {
    let text = version.to_ascii_lowercase();
    [
        ("percona", "Percona"),
        ("enterprisedb", "EnterpriseDB"),
        ("aurora", "Aurora"),
    ]
    .into_iter()
    .find(|(word, _)| text.contains(word))
    .map_or("PostgreSQL", |(_, name)| name)
}

/// How the server ended before this boot: a managed server's first container wrote it beside the data.
async fn clean_shutdown(wire: &mut Wire, managed: bool) -> Result<CleanShutdown> {
    if !managed {
        return Ok(CleanShutdown::Unknown);
    }
    let said: Option<Option<String>> = wire
        .one(
            "read how the server ended before",
            "SELECT pg_read_file(current_setting('data_directory') || '/../clean-shutdown', 0, 16, true)",
            &[],
        )
        .await?;
    Ok(match said.flatten().as_deref().map(str::trim) {
        Some("Yes") => CleanShutdown::Yes,
        Some("No") => CleanShutdown::No,
        _ => CleanShutdown::Unknown,
    })
}

/// Parameters as a session has them that begins now, and what else mechanisms and surroundings are judged by.
pub(super) async fn found(session: &mut Session, login: &Login) -> Result<Found> {
    let mut fresh = session.fresh().await?;
    let found = read(&mut fresh, login.connection.agent.is_some()).await;
    fresh.close().await;
    found
}

async fn read(wire: &mut Wire, managed: bool) -> Result<Found> {
    let mut found = Found {
        managed,
        ..Found::default()
    };
    let doing = "read parameters";
    for row in wire
        .rows(
            doing,
            "SELECT lower(name), coalesce(reset_val, setting, '') FROM pg_settings",
            &[],
        )
        .await?
    {
        found
            .variables
            .insert(column(&row, 0, doing)?, column(&row, 1, doing)?);
    }
    let doing = "read status";
    for row in wire
        .rows(
            doing,
            "SELECT 'started', extract(epoch FROM pg_postmaster_start_time())::int8::text UNION ALL SELECT \
             'checkpoint_age', CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), \
             redo_lsn)::int8::text END FROM pg_control_checkpoint() UNION ALL SELECT 'extension.' || extname, extversion \
             FROM pg_extension",
            &[],
        )
        .await?
    {
        found.status.insert(column(&row, 0, doing)?, column(&row, 1, doing)?);
    }
    // Only members of pg_monitor may know.
    match wire
        .one("read the log's name", "SELECT pg_current_logfile()", &[])
        .await
    {
        Ok(name) => {
            let name: Option<Option<String>> = name;
            found
                .status
                .insert("current_logfile".to_owned(), name.flatten().unwrap_or_default());
        }
        Err(DatabaseError::Refused { .. }) => {}
        Err(error) => return Err(error),
    }
    if found.variables.contains_key("pgaudit.log") {
        found.plugins.insert("PGAUDIT".to_owned(), "ACTIVE".to_owned());
    }
    Ok(found)
}

pub(super) async fn is_replica(session: &mut Session) -> Result<Option<bool>> {
    session
        .home
        .one("ask for the replication role", "SELECT pg_is_in_recovery()", &[])
        .await
}

pub(super) async fn table_count(session: &mut Session) -> Result<i64> {
    let sql = format!("SELECT count(*) {TABLES} AND relkind IN ('r', 'p') AND NOT relispartition");
    number(session, "count the tables", &sql).await
}

/// With indexes, and with partitions, which the parent does not count.
pub(super) async fn table_bytes(session: &mut Session) -> Result<i64> {
    let sql = format!(
        "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::int8 {TABLES} AND relkind = 'r'"
    );
    number(session, "read the size of the tables", &sql).await
}

/// A number that the workload's database gives; 0 where there is none.
async fn number(session: &mut Session, doing: &str, sql: &str) -> Result<i64> {
    let rows = session.in_workload(STATEMENT_LIMIT, doing, sql, &[]).await?;
    match rows.unwrap_or_default().first() {
        Some(row) => column(row, 0, doing),
        None => Ok(0),
    }
}

/// Rows that tables of people saw written, and when the server started. The server has no counter of statements.
pub(super) async fn counters(session: &mut Session) -> Result<Counters> {
    handed_in(session).await?;
    let sql = "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int8 FROM pg_stat_user_tables";
    let rows_written = number(session, "read the counters of rows", sql).await?;
    let sql = "SELECT extract(epoch FROM pg_postmaster_start_time())::int8";
    let started = session.home.one("read the start time", sql, &[]).await?;
    Ok(Counters {
        started: started.unwrap_or_default(),
        rows_written,
        ..Counters::default()
    })
}

/// Waits until the sessions of the load have ended: each hands in its counts at its end.
async fn handed_in(session: &mut Session) -> Result<()> {
    let limit = Instant::now() + HANDED_IN;
    let database = session.database().to_owned();
    let values = [(&database as &(dyn ToSql + Sync), Type::TEXT)];
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' AND \
               application_name NOT LIKE 'benchmark-campaign%'";
    let mut waited = false;
    loop {
        let left: Option<i64> = session.home.one("look who is connected", sql, &values).await?;
        if left.unwrap_or_default() == 0 || Instant::now() >= limit {
            break;
        }
        waited = true;
        sleep(Duration::from_millis(20)).await;
    }
    if version(&mut session.home).await? < SHARED_STATISTICS {
        sleep(STATISTICS_DELAY).await;
    } else if waited {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Start of the server, seconds since 1970.
pub(super) fn started(found: &Found) -> i64 {
    found.status("started").parse().unwrap_or_default()
}

pub(super) fn surroundings(found: &Found) -> Environment {
    let variable = |name: &str| Some(found.variable(name).to_owned()).filter(|v| !v.is_empty());
    let counted = |name: &str, unit: i64| found.variable(name).parse::<i64>().ok().map(|n| n * unit);
    Environment {
        server_version: variable("server_version"),
        // In its own unit, MB.
        redo_bytes: counted("max_wal_size", 1 << 20),
        checkpoint_age_bytes: found.status("checkpoint_age").parse().ok(),
        buffer_pool_bytes: found
            .variable("block_size")
            .parse()
            .ok()
            .and_then(|block| counted("shared_buffers", block)),
        ..Environment::default()
    }
}

/// A file's path relative to the volume of a managed server; `None` outside of it.
pub(super) fn on_volume(found: &Found, path: &str) -> Option<String> {
    let data = found.variable("data_directory").trim_end_matches('/');
    let (volume, _) = data.rsplit_once('/')?;
    let rest = path.strip_prefix(volume)?.strip_prefix('/')?;
    (!rest.split('/').any(|part| part == "..")).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_named_relative_to_the_volume() {
        let found = Found {
            variables: [("data_directory".to_owned(), "/var/lib/benchmark/data".to_owned())].into(),
            ..Found::default()
        };
        let name = |path: &str| on_volume(&found, path);
        assert_eq!(
            name("/var/lib/benchmark/log/postgresql.log").as_deref(),
            Some("log/postgresql.log")
        );
        assert_eq!(name("/var/log/postgresql/x.log"), None);
        assert_eq!(name("/var/lib/benchmark/../x"), None);
        assert_eq!(name("log/x"), None);
    }

    #[test]
    fn flavours_are_told_by_the_version() {
        assert_eq!(flavour("PostgreSQL 17.6 on x86_64-pc-linux-gnu"), "PostgreSQL");
        assert_eq!(
            flavour("PostgreSQL 16.4 - Percona Server for PostgreSQL"),
            "Percona"
        );
    }
}
