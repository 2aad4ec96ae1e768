//! One connection to a PostgreSQL server: opened for one call, closed before it returns. Every statement has a limit,
//! every error says which statement and what to do; values never appear in an error.

mod errors;

use std::time::Duration;

use crds::target::TlsMode;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};

use super::tls::{Guarded, Tls};
use crate::access::{DatabaseError, Login, Result};

/// Database in which marker schema and locks are: it outlives the workload's, which is dropped and made again.
pub(super) const HOME: &str = "postgres";
/// SQLSTATE of a database that is not there.
pub(super) const NO_DATABASE: &str = "3D000";
/// SQLSTATE of a table that is not there.
pub(super) const NO_TABLE: &str = "42P01";
/// SQLSTATE of a schema that is not there.
pub(super) const NO_SCHEMA: &str = "3F000";
/// SQLSTATE of a lock that was not free within its time.
pub(super) const LOCK_NOT_FREE: &str = "55P03";

/// How long connecting and logging in may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// How long a statement may take unless said otherwise.
pub(super) const STATEMENT_LIMIT: Duration = Duration::from_secs(10);
/// How long a session that was said goodbye to may need to go.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);

/// What is measured may change the defaults of sessions; what we ask must not depend on it. The server ends a session
/// that says nothing: what it holds must not outlive a lost network. Names that a version does not know are left out.
const SETTINGS: &[(&str, &str)] = &[
    ("client_connection_check_interval", "5s"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("idle_session_timeout", "60s"),
    ("lock_timeout", "10s"),
    ("search_path", "pg_catalog"),
    ("statement_timeout", "0"),
    // What the fence row says must hold after a crash.
    ("synchronous_commit", "on"),
    ("transaction_timeout", "0"),
];

/// A value bound to a statement, with its type: nothing is asked of the server to find it out.
pub(super) type Value<'a> = (&'a (dyn ToSql + Sync), Type);

/// An open connection to one database of a server.
pub(super) struct Wire {
    client: Client,
    task: Background,
    host: String,
    port: u16,
}

/// The task that moves bytes; dropped, it lets go of the socket at once, whatever the server is at.
struct Background(JoinHandle<()>);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Wire {
    /// Connects to a database and logs in.
    pub(super) async fn open(login: &Login, database: &str) -> Result<Self> {
        let target = &login.connection;
        let at = (target.host.as_str(), target.port);
        if target.host.is_empty() {
            return Err(DatabaseError::Unsupported(
                "the connection names no host".to_owned(),
            ));
        }
        let opened = tokio::time::timeout(CONNECT_LIMIT, attempt(login, database));
        let (client, task) = opened.await.map_err(|_| {
            errors::unreachable(at, format!("no login within {} s", CONNECT_LIMIT.as_secs()))
        })??;
        let mut wire = Self {
            client,
            task: Background(task),
            host: target.host.clone(),
            port: target.port,
        };
        wire.prepare().await?;
        Ok(wire)
    }

    async fn prepare(&mut self) -> Result<()> {
        let (names, values): (Vec<&str>, Vec<&str>) = SETTINGS.iter().copied().unzip();
        let sql = "SELECT 1::int8 FROM (SELECT pg_catalog.set_config(wanted.name, wanted.value, false) FROM \
                   unnest($1::text[], $2::text[]) AS wanted(name, value) JOIN pg_catalog.pg_settings USING (name)) AS done";
        self.rows(
            "prepare the session",
            sql,
            &[(&names, Type::TEXT_ARRAY), (&values, Type::TEXT_ARRAY)],
        )
        .await
        .map(drop)
    }

    /// Says goodbye; a server that does not answer is left alone.
    pub(super) async fn close(self) {
        let Self { client, mut task, .. } = self;
        drop(client);
        let _ = tokio::time::timeout(GOODBYE_LIMIT, &mut task.0).await;
    }

    /// Rows of a query with bound values.
    pub(super) async fn rows(&mut self, doing: &str, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>> {
        self.rows_within(STATEMENT_LIMIT, doing, sql, values).await
    }

    /// Rows of a query that may take long.
    pub(super) async fn rows_within(
        &mut self,
        limit: Duration,
        doing: &str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>> {
        let answer = tokio::time::timeout(limit, self.client.query_typed(sql, values)).await;
        self.judged(doing, limit, answer)
    }

    /// The first column of the first row.
    pub(super) async fn one<T>(&mut self, doing: &str, sql: &str, values: &[Value<'_>]) -> Result<Option<T>>
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        let rows = self.rows(doing, sql, values).await?;
        rows.first().map(|row| column(row, 0, doing)).transpose()
    }

    /// Runs statements without values, rows discarded.
    pub(super) async fn run_within(&mut self, limit: Duration, doing: &str, sql: &str) -> Result<()> {
        let answer = tokio::time::timeout(limit, self.client.batch_execute(sql)).await;
        self.judged(doing, limit, answer)
    }

    /// The same with the usual limit.
    pub(super) async fn run(&mut self, doing: &str, sql: &str) -> Result<()> {
        self.run_within(STATEMENT_LIMIT, doing, sql).await
    }

    fn judged<T>(
        &self,
        doing: &str,
        limit: Duration,
        answer: std::result::Result<
            std::result::Result<T, tokio_postgres::Error>,
            tokio::time::error::Elapsed,
        >,
    ) -> Result<T> {
        match answer {
            Err(_) => Err(DatabaseError::TimedOut {
                doing: doing.to_owned(),
                limit,
            }),
            Ok(answer) => answer.map_err(|e| errors::mapped((&self.host, self.port), doing, &e)),
        }
    }
}

/// A column of a row, or an error that says of which query.
pub(super) fn column<'a, T>(row: &'a Row, index: usize, doing: &str) -> Result<T>
where
    T: tokio_postgres::types::FromSql<'a>,
{
    row.try_get(index).map_err(|e| DatabaseError::Statement {
        statement: doing.to_owned(),
        message: format!("column {index}: {e}"),
    })
}

/// Whether a statement failed with this SQLSTATE.
pub(super) fn failed_with(error: &DatabaseError, state: &str) -> bool {
    matches!(error, DatabaseError::Statement { message, .. } if message.starts_with(&format!("error {state}: ")))
}

async fn attempt(login: &Login, database: &str) -> Result<(Client, JoinHandle<()>)> {
    let target = &login.connection;
    let at = (target.host.as_str(), target.port);
    let stream = TcpStream::connect((target.host.as_str(), target.port))
        .await
        .map_err(|e| errors::unreachable(at, e.to_string()))?;
    let _ = stream.set_nodelay(true);
    let mut config = Config::new();
    config
        .user(&login.username)
        .password(&login.password)
        .dbname(database)
        .application_name("benchmark-campaign");
    let wanted = target.tls.as_ref().filter(|tls| tls.mode != TlsMode::Disabled);
    let failed = |e: tokio_postgres::Error| match errors::mapped(at, "connect", &e) {
        // No statement was sent: something between us and the server.
        DatabaseError::Statement { message, .. } if e.as_db_error().is_none() => {
            errors::unreachable(at, message)
        }
        other => other,
    };
    match wanted {
        None => {
            // A managed server is ours and reached over the cluster's own network.
            let armed = target.agent.is_none();
            config.ssl_mode(SslMode::Disable);
            let (client, connection) = config
                .connect_raw(Guarded::new(stream, armed), NoTls)
                .await
                .map_err(failed)?;
            Ok((client, tokio::spawn(async move { drop(connection.await) })))
        }
        Some(tls) => {
            let name = tls.server_name.as_deref().unwrap_or(&target.host);
            let connector = Tls::new(tls.mode, name, login.certificate_authority.as_deref())
                .map_err(|why| errors::refused(at, why))?;
            config.ssl_mode(SslMode::Require);
            let (client, connection) = config
                .connect_raw(Guarded::new(stream, false), connector)
                .await
                .map_err(failed)?;
            Ok((client, tokio::spawn(async move { drop(connection.await) })))
        }
    }
}

/// An identifier in quotes.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A string literal, however the server reads backslashes.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_cannot_leave_their_quotes() {
        assert_eq!(identifier("sb\"; --"), "\"sb\"\"; --\"");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
    }
}
