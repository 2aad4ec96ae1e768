//! MySQL: what distinguishes it from its kin. Written for 5.7 to 9, Percona Server and TaurusDB among them; older servers
//! can be borrowed, not run.

mod catalogue;

use std::collections::BTreeSet;

use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::target::{BootRequest, Capabilities, Engine};
use futures::future::{BoxFuture, FutureExt as _};

use super::mysql_family::boot::{self, literal};
use super::mysql_family::{Dialect, Session, Version, status_sample};
use super::{EngineFacts, Layout, Live, ManagedServer};
use crate::access::{ParameterProblem, Result};
use crate::audit::Found;
use crate::catalogue::Catalogue;
use crate::configuration::{ConfigurationError, ConfigurationFile};
use crate::settle::Sample;

/// MySQL, as Oracle's and Percona's images and Debian's packages ship it.
pub struct MySql;

/// MySQL's port.
pub const PORT: u16 = 3306;

/// What the operator sets itself, besides what it sets for the whole family.
const RESERVED: &[(&str, &str)] = &[
    (
        "secure_file_priv",
        "how the server ended before is read from a file",
    ),
    ("mysqlx", "the load uses the classic protocol"),
    (
        "persisted_globals_load",
        "what somebody persisted would override this configuration",
    ),
];

/// Lines of every file. `loose_`: servers before 8.0 know neither.
const LINES: &[(&str, &str)] = &[
    // The package's own directory is in no image; how the server ended before is read with LOAD_FILE.
    ("secure_file_priv", ""),
    ("loose_mysqlx", "OFF"),
    // SET PERSIST of an earlier campaign must not override the file.
    ("loose_persisted_globals_load", "OFF"),
];

/// Share of the memory that the buffer pool gets when no parameter says its size, in percent.
const BUFFER_POOL_PERCENT: i64 = 60;
/// Bytes of a server of version 9 that does nothing, beside its buffer pool (550 MiB were seen), and some for sessions.
const BESIDE: i64 = 640 << 20;
/// The pool is made of whole pieces of this size.
const PIECE: i64 = 128 << 20;

/// Bytes of the buffer pool when no parameter says its size: 60 % of the memory, or what the idle server leaves of it, in
/// whole pieces of 128 MiB.
pub fn default_buffer_pool(memory_bytes: i64) -> i64 {
    let share = (memory_bytes / 100 * BUFFER_POOL_PERCENT).min(memory_bytes - BESIDE);
    (share / PIECE * PIECE).max(PIECE)
}

impl EngineFacts for MySql {
    fn engine(&self) -> Engine {
        Engine::MySQL
    }

    fn default_port(&self) -> u16 {
        PORT
    }

    fn managed(&self, layout: &Layout) -> ManagedServer {
        managed(layout)
    }

    fn init_sql(&self, username: &str, password: &str) -> String {
        init_sql(username, password)
    }

    fn configuration(
        &self,
        layout: &Layout,
        base: &Parameters,
        request: Option<&BootRequest>,
        memory_bytes: i64,
    ) -> std::result::Result<ConfigurationFile, ConfigurationError> {
        let dialect = boot::Dialect {
            group: "mysqld",
            buffer_pool: default_buffer_pool(memory_bytes),
            lines: LINES,
        };
        boot::configuration(self, &dialect, layout, base, request)
    }

    fn cache_parameters(&self, state: CacheState) -> Parameters {
        boot::cache_parameters(state)
    }

    fn reserved(&self, name: &str) -> Option<ParameterProblem> {
        boot::reserved(name, RESERVED)
    }
}

impl Live for MySql {
    type Session = Session;
}

impl Dialect for MySql {
    fn session_statements(&self, version: Version) -> &'static [&'static str] {
        // Sizes of tables are otherwise a day old.
        if version >= (8, 0, 0) {
            &["SET SESSION information_schema_stats_expiry = 0"]
        } else {
            &[]
        }
    }

    fn catalogue<'a>(
        &'a self,
        session: &'a mut Session,
        of_interest: &'a BTreeSet<String>,
    ) -> BoxFuture<'a, Result<Catalogue>> {
        catalogue::load(session, of_interest).boxed()
    }

    fn objections<'a>(
        &'a self,
        session: &'a mut Session,
        catalogue: &'a Catalogue,
        wanted: &'a Parameters,
    ) -> BoxFuture<'a, Result<Vec<ParameterProblem>>> {
        catalogue::objections(session, catalogue, wanted).boxed()
    }

    fn identity(&self) -> &'static str {
        "@@server_uuid"
    }

    fn audit_plugins(&self) -> &'static str {
        "SELECT UPPER(PLUGIN_NAME) FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'AUDIT'"
    }

    fn capabilities(&self, version: Version) -> Capabilities {
        Capabilities {
            persist: version >= (8, 0, 0),
            restart_statement: version >= (8, 0, 4),
            ..Capabilities::default()
        }
    }

    fn restart_statement(&self, version: Version) -> &'static str {
        if version >= (8, 0, 4) {
            "RESTART"
        } else {
            "SHUTDOWN"
        }
    }

    fn replica_query(&self, version: Version) -> &'static str {
        if version >= (8, 0, 22) {
            "SHOW REPLICA STATUS"
        } else {
            "SHOW SLAVE STATUS"
        }
    }

    fn rows_written(&self) -> &'static [&'static str] {
        // Handler_write counts the server's own temporary tables too.
        &[
            "innodb_rows_inserted",
            "innodb_rows_updated",
            "innodb_rows_deleted",
        ]
    }

    fn redo_bytes(&self, found: &Found) -> Option<i64> {
        let number = |name: &str| found.variable(name).parse::<i64>().ok();
        number("innodb_redo_log_capacity").or_else(|| {
            number("innodb_log_file_size")
                .zip(number("innodb_log_files_in_group"))
                .map(|(size, files)| size * files)
        })
    }

    fn checkpoint_age(&self, found: &Found) -> Option<i64> {
        let number = |name: &str| found.status(name).parse::<i64>().ok();
        number("innodb_checkpoint_age").or_else(|| {
            number("innodb_redo_log_current_lsn")
                .zip(number("innodb_redo_log_checkpoint_lsn"))
                .map(|(now, then)| now - then)
        })
    }

    fn sample<'a>(&'a self, session: &'a mut Session) -> BoxFuture<'a, Result<Sample>> {
        async move {
            let mut sample = status_sample(session).await?;
            let history: Vec<i64> = session
                .rows(
                    "look whether the server has settled",
                    "SELECT CAST(COUNT AS SIGNED) FROM information_schema.INNODB_METRICS WHERE NAME = \
                     'trx_rseg_history_len'",
                )
                .await?;
            sample.history = history.first().copied();
            Ok(sample)
        }
        .boxed()
    }
}

/// How a managed server is run. Needs `sh`, `mysqld` (5.7 or newer) and `mysqladmin` in the image.
fn managed(layout: &Layout) -> ManagedServer {
    let make = format!(
        "mysqld --no-defaults --initialize-insecure --secure-file-priv= --tmpdir={} --datadir={}.new",
        layout.temporary,
        layout.data_directory()
    );
    boot::managed(layout, &make, "mysqld", "mysqladmin")
}

/// SQL that the server runs at every boot.
fn init_sql(username: &str, password: &str) -> String {
    let (user, password) = (literal(username), literal(password));
    boot::init_sql([
        // The configuration may have changed how string literals are read.
        "SET SESSION sql_mode = ''".to_owned(),
        format!("CREATE USER IF NOT EXISTS {user}@'%' IDENTIFIED BY {password}"),
        format!("ALTER USER {user}@'%' IDENTIFIED BY {password}"),
        format!("GRANT ALL PRIVILEGES ON *.* TO {user}@'%'"),
    ])
}
