//! What is read of a server: who it is, what it has, what its data weighs.

use std::collections::BTreeMap;

use crds::audit::AuditType;
use crds::environment::Environment;
use crds::target::{Capabilities, CleanShutdown};

use super::Session;
use crate::access::{DatabaseError, Login, Result, ServerIdentity};
use crate::after::Counters;
use crate::audit::{self, Found, Mechanism};
use crate::identity::flavour;

pub(super) async fn identify(session: &mut Session, login: &Login) -> Result<ServerIdentity> {
    let sql = format!(
        "SELECT @@version, @@version_comment, @@hostname, {}, UNIX_TIMESTAMP()",
        session.dialect().identity()
    );
    let rows: Vec<(String, String, String, String, i64)> =
        session.rows("ask the server who it is", &sql).await?;
    let (version, comment, host_name, own, now) = rows.into_iter().next().unwrap_or_default();
    let uptime: Vec<(String, i64)> = session
        .rows("read the uptime", "SHOW GLOBAL STATUS LIKE 'Uptime'")
        .await?;
    let started = now - uptime.first().map_or(0, |(_, seconds)| *seconds);
    // A managed server's @@server_uid follows its network card, so it changes with every pod; the marker stays with the
    // data. A borrowed server has a marker only while it is borrowed: it is known by what it always has.
    let marked = match login.connection.agent {
        Some(_) => super::marker::read_fence(session).await?,
        None => None,
    };
    let server_identity = match marked {
        Some(fence) => fence.server_identity,
        None => own,
    };
    let dialect = session.dialect();
    let plugins: Vec<String> = session
        .rows("ask for audit plugins", dialect.audit_plugins())
        .await?;
    let flavour = flavour(&version, &comment);
    let version_numbers = session.version();
    let capable = || {
        audit::mechanisms(login.connection.engine).filter(|m| {
            m.may_be_there(flavour, version_numbers)
                || m.plugin().is_none_or(|p| plugins.iter().any(|have| have == p))
        })
    };
    let kinds: Vec<AuditType> = capable().map(Mechanism::kind).collect();
    let unverified = capable()
        .filter(|m| m.unverified())
        .map(Mechanism::kind)
        .collect();
    Ok(ServerIdentity {
        flavour: flavour.to_owned(),
        version,
        server_identity,
        host_name,
        started,
        capabilities: Capabilities {
            audit: kinds,
            unverified,
            ..dialect.capabilities(session.version())
        },
        clean_shutdown: clean_shutdown(session, login).await?,
    })
}

/// How the server ended before this boot: a managed server's first container wrote it beside the data.
async fn clean_shutdown(session: &mut Session, login: &Login) -> Result<CleanShutdown> {
    if login.connection.agent.is_none() {
        return Ok(CleanShutdown::Unknown);
    }
    let said: Vec<Option<String>> = session
        .rows(
            "read how the server ended before",
            "SELECT CONVERT(LOAD_FILE(CONCAT(@@datadir, '../clean-shutdown')) USING ascii)",
        )
        .await?;
    Ok(
        match said.into_iter().flatten().next().as_deref().map(str::trim) {
            Some("Yes") => CleanShutdown::Yes,
            Some("No") => CleanShutdown::No,
            _ => CleanShutdown::Unknown,
        },
    )
}

/// When the server started, seconds since 1970 by its own clock, from a status read a moment ago.
pub(super) async fn started(session: &mut Session, found: &Found) -> Result<i64> {
    let now: Vec<i64> = session
        .rows("read the start time", "SELECT UNIX_TIMESTAMP()")
        .await?;
    let uptime: i64 = found.status("uptime").parse().unwrap_or_default();
    Ok(now.first().copied().unwrap_or_default() - uptime)
}

pub(super) async fn is_replica(session: &mut Session) -> Result<Option<bool>> {
    let query = session.dialect().replica_query(session.version());
    match session
        .rows::<mysql_async::Row>("ask for the replication role", query)
        .await
    {
        Ok(rows) => Ok(Some(!rows.is_empty())),
        Err(DatabaseError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) async fn counters(session: &mut Session) -> Result<Counters> {
    let found = Found {
        status: status(session).await?,
        ..Found::default()
    };
    let number = |name: &str| found.status(name).parse::<i64>().unwrap_or_default();
    let written = session.dialect().rows_written();
    Ok(Counters {
        started: started(session, &found).await?,
        rows_written: written.iter().copied().map(number).sum(),
        questions: number("questions"),
        audit_lost: None,
    })
}

async fn status(session: &mut Session) -> Result<BTreeMap<String, String>> {
    let rows = session.rows("read status", "SHOW GLOBAL STATUS").await?;
    Ok(lower(rows))
}

fn lower(rows: Vec<(String, String)>) -> BTreeMap<String, String> {
    rows.into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect()
}

/// Variables, status and plugins of the server.
pub(super) async fn found(session: &mut Session, login: &Login) -> Result<Found> {
    let variables = session.rows("read variables", "SHOW GLOBAL VARIABLES").await?;
    let plugins: Vec<(String, String)> = session
        .rows(
            "read plugins",
            "SELECT UPPER(PLUGIN_NAME), PLUGIN_STATUS FROM information_schema.PLUGINS",
        )
        .await?;
    Ok(Found {
        variables: lower(variables),
        status: status(session).await?,
        plugins: plugins.into_iter().collect(),
        managed: login.connection.agent.is_some(),
    })
}

pub(super) fn surroundings(session: &Session, found: &Found) -> Environment {
    let dialect = session.dialect();
    let variable = |name: &str| Some(found.variable(name).to_owned()).filter(|v| !v.is_empty());
    Environment {
        server_version: variable("version"),
        log_bin: variable("log_bin"),
        redo_bytes: dialect.redo_bytes(found),
        checkpoint_age_bytes: dialect.checkpoint_age(found),
        buffer_pool_bytes: found.variable("innodb_buffer_pool_size").parse().ok(),
        history_list_length: found.status("innodb_history_list_length").parse().ok(),
        ..Environment::default()
    }
}

pub(super) async fn table_count(session: &mut Session, schema: &str) -> Result<i64> {
    let tables: Vec<i64> = session
        .rows_with(
            "count the tables",
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'BASE TABLE'",
            (schema,),
        )
        .await?;
    Ok(tables.first().copied().unwrap_or_default())
}

pub(super) async fn table_bytes(session: &mut Session, schema: &str) -> Result<i64> {
    let rows: Vec<Option<i64>> = session
        .rows_with(
            "read the size of the tables",
            "SELECT CAST(SUM(DATA_LENGTH + INDEX_LENGTH) AS SIGNED) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?",
            (schema,),
        )
        .await?;
    Ok(rows.into_iter().next().flatten().unwrap_or_default())
}

/// A log's path relative to the data volume, as the agent wants it; `None` outside of it.
pub(super) fn on_volume(found: &Found, path: &str) -> Option<String> {
    let data = found.variable("datadir").trim_end_matches('/');
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
            variables: [("datadir".to_owned(), "/var/lib/benchmark/data/".to_owned())].into(),
            ..Found::default()
        };
        let name = |path: &str| on_volume(&found, path);
        assert_eq!(
            name("/var/lib/benchmark/log/general.log").as_deref(),
            Some("log/general.log")
        );
        assert_eq!(name("/var/log/mysql/general.log"), None);
        assert_eq!(name("/var/lib/benchmark/../x"), None);
        assert_eq!(name("host.log"), None);
    }
}
