//! One connection to a server of the MySQL family: opened for one call, closed before it returns. Every statement has
//! a limit, every error says which statement and what to do; values never appear in an error.

use std::time::Duration;

use crds::target::TlsMode;
use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{Conn, Error, IoError, OptsBuilder, Params, SslOpts, TlsError};
use rustls::CertificateError;

use super::{Dialect, dialect};
use crate::access::{DatabaseError, Login, Result};

/// How long connecting and logging in may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// How long a statement may take unless said otherwise.
pub(crate) const STATEMENT_LIMIT: Duration = Duration::from_secs(10);

/// Seconds after which the server ends a session that says nothing: what it holds must not outlive a lost network.
const IDLE_LIMIT: u64 = 60;
/// An open connection.
pub(crate) struct Session {
    connection: Conn,
    host: String,
    port: u16,
    dialect: &'static dyn Dialect,
}

impl Session {
    /// Connects and logs in.
    pub(super) async fn connect(login: &Login) -> Result<Self> {
        let target = &login.connection;
        let dialect = dialect(target.engine)?;
        let mut answer = attempt(login, None).await?;
        if let Err(error) = &answer
            && target
                .tls
                .as_ref()
                .is_some_and(|tls| tls.mode == TlsMode::VerifyCa)
            && let Some(name) = presented_name(error)
        {
            // The chain was verified, only the name was not: whatever name the certificate has is good enough.
            answer = attempt(login, Some(name)).await?;
        }
        match answer {
            Ok(connection) => {
                let mut session = Self {
                    connection,
                    host: target.host.clone(),
                    port: target.port,
                    dialect,
                };
                for statement in dialect.session_statements(session.version()) {
                    session.query_drop("prepare the session", statement).await?;
                }
                Ok(session)
            }
            Err(error) => Err(match mapped(&target.host, target.port, "connect", &error) {
                DatabaseError::Statement { message, .. } => DatabaseError::Unreachable {
                    host: target.host.clone(),
                    port: target.port,
                    message,
                },
                other => other,
            }),
        }
    }

    /// Says goodbye; a server that does not answer is left alone.
    pub(super) async fn goodbye(self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.connection.disconnect()).await;
    }

    /// What distinguishes this server from its kin.
    pub(super) fn dialect(&self) -> &'static dyn Dialect {
        self.dialect
    }

    /// Version of the server as three numbers, as it said when it was connected to.
    pub(crate) fn version(&self) -> (u16, u16, u16) {
        self.connection.server_version()
    }

    /// Rows of a query without values.
    pub(crate) async fn rows<T>(&mut self, doing: &str, sql: &str) -> Result<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        let query = self.connection.query(sql);
        let answer = tokio::time::timeout(STATEMENT_LIMIT, query).await;
        self.judged(doing, STATEMENT_LIMIT, answer)
    }

    /// Rows of a query that may take long.
    pub(crate) async fn rows_within<T>(&mut self, limit: Duration, doing: &str, sql: &str) -> Result<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        let answer = tokio::time::timeout(limit, self.connection.query(sql)).await;
        self.judged(doing, limit, answer)
    }

    /// Rows of a query with bound values.
    pub(crate) async fn rows_with<T>(
        &mut self,
        doing: &str,
        sql: &str,
        values: impl Into<Params> + Send,
    ) -> Result<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        let query = self.connection.exec(sql, values);
        let answer = tokio::time::timeout(STATEMENT_LIMIT, query).await;
        self.judged(doing, STATEMENT_LIMIT, answer)
    }

    /// Runs a statement without values, within the usual limit; how many rows it changed.
    pub(crate) async fn query_drop(&mut self, doing: &str, sql: &str) -> Result<u64> {
        self.query_drop_within(STATEMENT_LIMIT, doing, sql).await
    }

    /// Runs a statement that may take long, rows discarded.
    pub(super) async fn query_drop_within(&mut self, limit: Duration, doing: &str, sql: &str) -> Result<u64> {
        let answer = tokio::time::timeout(limit, self.connection.query_drop(sql)).await;
        self.judged(doing, limit, answer)?;
        Ok(self.connection.affected_rows())
    }

    /// Runs a statement with bound values; how many rows it changed.
    pub(crate) async fn run_with(
        &mut self,
        doing: &str,
        sql: &str,
        values: impl Into<Params> + Send,
    ) -> Result<u64> {
        let answer = tokio::time::timeout(STATEMENT_LIMIT, self.connection.exec_drop(sql, values)).await;
        self.judged(doing, STATEMENT_LIMIT, answer)?;
        Ok(self.connection.affected_rows())
    }

    fn judged<T>(
        &self,
        doing: &str,
        limit: Duration,
        answer: std::result::Result<mysql_async::Result<T>, tokio::time::error::Elapsed>,
    ) -> Result<T> {
        match answer {
            Err(_) => Err(DatabaseError::TimedOut {
                doing: doing.to_owned(),
                limit,
            }),
            Ok(answer) => answer.map_err(|e| mapped(&self.host, self.port, doing, &e)),
        }
    }
}

/// One try; `name` is the one expected in the certificate instead of the target's own.
async fn attempt(login: &Login, name: Option<String>) -> Result<mysql_async::Result<Conn>> {
    tokio::time::timeout(CONNECT_LIMIT, Conn::new(options(login, name)?))
        .await
        .map_err(|_| DatabaseError::Unreachable {
            host: login.connection.host.clone(),
            port: login.connection.port,
            message: format!("no login within {} s", CONNECT_LIMIT.as_secs()),
        })
}

/// What rustls says is wrong, if it does.
fn tls_error(error: &Error) -> Option<&rustls::Error> {
    match error {
        Error::Io(IoError::Tls(TlsError::Tls(error))) => Some(error),
        Error::Io(IoError::Io(error)) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// A name that a certificate from the right authority is valid for, when it is not valid for the one expected.
fn presented_name(error: &Error) -> Option<String> {
    let rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) =
        tls_error(error)?
    else {
        return None;
    };
    presented.iter().find_map(|name| {
        let name = name.strip_prefix("DnsName(\"")?.strip_suffix("\")")?;
        Some(name.replace('*', "any"))
    })
}

fn options(login: &Login, name: Option<String>) -> Result<OptsBuilder> {
    let target = &login.connection;
    let tls = match &target.tls {
        None => None,
        Some(tls) if tls.mode == TlsMode::Disabled => None,
        Some(tls) => {
            let mut options = SslOpts::default()
                .with_danger_tls_hostname_override(name.or_else(|| tls.server_name.clone()));
            if let Some(authority) = &login.certificate_authority {
                options = options
                    .with_disable_built_in_roots(true)
                    .with_root_certs(vec![authority.clone().into()]);
            }
            Some(options)
        }
    };
    if target.host.is_empty() {
        return Err(DatabaseError::Unsupported(
            "the connection names no host".to_owned(),
        ));
    }
    Ok(OptsBuilder::default()
        .ip_or_hostname(&target.host)
        .tcp_port(target.port)
        .user(Some(&login.username))
        .pass(Some(&login.password))
        .prefer_socket(Some(false))
        .stmt_cache_size(Some(0))
        // Both are asked for after every login unless they are said.
        .max_allowed_packet(Some(16 << 20))
        .wait_timeout(Some(60))
        .ssl_opts(tls)
        // What is measured may change the defaults of sessions; what we ask must not depend on it.
        .init(vec![format!(
            "SET SESSION sql_mode = '', autocommit = 1, innodb_lock_wait_timeout = 5, lock_wait_timeout = 10, \
             wait_timeout = {IDLE_LIMIT}"
        )]))
}

fn mapped(host: &str, port: u16, doing: &str, error: &Error) -> DatabaseError {
    let unreachable = |message: String| DatabaseError::Unreachable {
        host: host.to_owned(),
        port,
        message,
    };
    let refused = |message: String| DatabaseError::Refused {
        host: host.to_owned(),
        port,
        message,
    };
    if let Some(tls) = tls_error(error) {
        return refused(format!(
            "{tls}; check ca.crt of the credentials Secret, tls.serverName and tls.mode"
        ));
    }
    match error {
        Error::Io(io) => unreachable(io.to_string()),
        Error::Driver(
            mysql_async::DriverError::ConnectionClosed | mysql_async::DriverError::PoolDisconnected,
        ) => unreachable("the connection was closed".to_owned()),
        Error::Server(server) => {
            let said = format!("error {}: {}", server.code, server.message);
            match server.code {
                1045 | 1698 => refused(format!(
                    "{said}; check username and password of the credentials Secret"
                )),
                1130 => refused(format!("{said}; the login must be allowed from this host")),
                1129 => refused(format!("{said}; run FLUSH HOSTS on the server")),
                1044 => refused(format!("{said}; GRANT ALL on that schema is missing")),
                1142 | 1143 | 1370 => {
                    refused(format!("{said} ({doing}); grant that privilege on that table"))
                }
                1227 | 1220 => refused(format!("{said} ({doing}); grant that privilege ON *.*")),
                // Too many connections, shutting down, not yet up; a statement or session that somebody ended.
                1040 | 1053 | 1203 | 1317 | 1927 | 3169 => unreachable(said),
                _ => DatabaseError::Statement {
                    statement: doing.to_owned(),
                    message: said,
                },
            }
        }
        other => DatabaseError::Statement {
            statement: doing.to_owned(),
            message: other.to_string(),
        },
    }
}

/// An identifier in backquotes. Only for names that the server itself gave, or that are ours.
pub(crate) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
