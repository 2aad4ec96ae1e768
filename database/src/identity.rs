//! Who a server is: version, flavour, the identity of its data, when it started, what it can do.

use crds::audit::AuditType;
use crds::target::{Capabilities, CleanShutdown};

use crate::access::{DatabaseError, Login, Result, ServerIdentity};
use crate::audit::{self, Found};
use crate::connection::Session;
use crate::marker;

/// Reads the identity over an open connection.
pub(crate) async fn identify(session: &mut Session, login: &Login) -> Result<ServerIdentity> {
    let rows: Vec<(String, String, String, String, i64)> = session
        .rows(
            "ask the server who it is",
            "SELECT @@version, @@version_comment, @@hostname, @@datadir, CAST(UNIX_TIMESTAMP() - (SELECT \
             VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME') AS SIGNED)",
        )
        .await?;
    let (version, comment, host_name, data, started) = rows.into_iter().next().unwrap_or_default();
    // The server's own @@server_uid follows its network card, so it changes with every pod; the marker stays with the
    // data. Without a marker, host and data directory tell two servers apart.
    let server_identity = match marker::read_fence(session).await? {
        Some(fence) => fence.server_identity,
        None => format!("{host_name}:{}:{data}", login.connection.port),
    };
    let plugins: Vec<String> = session
        .rows(
            "ask for audit plugins",
            "SELECT UPPER(PLUGIN_NAME) FROM information_schema.ALL_PLUGINS WHERE PLUGIN_TYPE = 'AUDIT'",
        )
        .await?;
    let capable: Vec<AuditType> = audit::mechanisms(login.connection.engine)
        .filter(|m| m.plugin().is_none_or(|p| plugins.iter().any(|have| have == p)))
        .map(audit::Mechanism::kind)
        .collect();
    Ok(ServerIdentity {
        flavour: flavour(&version, &comment).to_owned(),
        version,
        server_identity,
        host_name,
        started,
        capabilities: Capabilities {
            audit: capable,
            unverified: Vec::new(),
            // MariaDB has neither SET PERSIST nor RESTART.
            persist: false,
            restart_statement: false,
        },
        clean_shutdown: clean_shutdown(session, login).await?,
    })
}

/// When the server started, seconds since 1970 by its own clock, from a status read a moment ago.
pub(crate) async fn started(session: &mut Session, found: &Found) -> Result<i64> {
    let now: Vec<i64> = session
        .rows("read the start time", "SELECT UNIX_TIMESTAMP()")
        .await?;
    let uptime: i64 = found.status("uptime").parse().unwrap_or_default();
    Ok(now.first().copied().unwrap_or_default() - uptime)
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

/// The flavour by version and comment.
pub fn flavour(version: &str, comment: &str) -> &'static str {
    let text = format!("{version} {comment}").to_ascii_lowercase();
    [
        ("mariadb", "MariaDB"),
        ("percona", "Percona"),
        ("taurus", "TaurusDB"),
    ]
    .into_iter()
    .find(|(word, _)| text.contains(word))
    .map_or("MySQL", |(_, name)| name)
}

/// Whether the server follows another.
/// `None` where the login may not know.
pub(crate) async fn is_replica(session: &mut Session) -> Result<Option<bool>> {
    match session
        .rows::<mysql_async::Row>("ask for the replication role", "SHOW ALL SLAVES STATUS")
        .await
    {
        Ok(rows) => Ok(Some(!rows.is_empty())),
        Err(DatabaseError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_are_told_by_version_and_comment() {
        assert_eq!(flavour("10.11.19-MariaDB-0+deb12u1", "Debian 12"), "MariaDB");
        assert_eq!(
            flavour("8.0.36-28", "Percona Server (GPL), Release 28"),
            "Percona"
        );
        assert_eq!(flavour("8.0.41", "MySQL Community Server - GPL"), "MySQL");
    }
}
