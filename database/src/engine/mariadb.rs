//! MariaDB: what distinguishes it from its kin, as the official image and Debian's packages ship it.

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
use crate::catalogue::{Catalogue, Kind, Variable};
use crate::configuration::{ConfigurationError, ConfigurationFile};
use crate::settle::Sample;

/// MariaDB, as the official image and Debian's packages ship it.
pub struct MariaDb;

/// MariaDB's port.
pub const PORT: u16 = 3306;

/// What the operator sets itself, besides what it sets for the whole family.
const RESERVED: &[(&str, &str)] = &[
    ("server_audit_logging", "use an audit setting of type ServerAudit"),
    (
        "server_audit_file_path",
        "use an audit setting of type ServerAudit",
    ),
    ("server_audit_output_type", "only files can be proved and counted"),
    (
        "server_audit_file_rotate_size",
        "a log that rotates loses records",
    ),
    ("server_audit_file_rotations", "a log that rotates loses records"),
    (
        "server_audit_events",
        "use serverAudit.events of the audit setting",
    ),
    (
        "server_audit_excl_users",
        "use serverAudit.excludeUsers of the audit setting",
    ),
    (
        "server_audit_query_log_limit",
        "use serverAudit.queryLogLimit of the audit setting",
    ),
];

/// Share of the memory that the buffer pool gets when no parameter says its size, in percent.
const BUFFER_POOL_PERCENT: i64 = 60;
/// Least buffer pool, bytes.
const BUFFER_POOL_LEAST: i64 = 32 << 20;

/// Bytes of the buffer pool when no parameter says its size: 60 % of the memory in whole MiB.
pub fn default_buffer_pool(memory_bytes: i64) -> i64 {
    let share = memory_bytes / 100 * BUFFER_POOL_PERCENT;
    (share >> 20 << 20).max(BUFFER_POOL_LEAST)
}

impl EngineFacts for MariaDb {
    fn engine(&self) -> Engine {
        Engine::MariaDB
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
            group: "mariadbd",
            buffer_pool: default_buffer_pool(memory_bytes),
            lines: &[],
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

impl Live for MariaDb {
    type Session = Session;
}

impl Dialect for MariaDb {
    fn catalogue<'a>(
        &'a self,
        session: &'a mut Session,
        _of_interest: &'a BTreeSet<String>,
    ) -> BoxFuture<'a, Result<Catalogue>> {
        catalogue(session).boxed()
    }

    fn audit_plugins(&self) -> &'static str {
        "SELECT UPPER(PLUGIN_NAME) FROM information_schema.ALL_PLUGINS WHERE PLUGIN_TYPE = 'AUDIT'"
    }

    fn capabilities(&self, _: Version) -> Capabilities {
        // MariaDB has neither SET PERSIST nor RESTART.
        Capabilities::default()
    }

    fn replica_query(&self, _: Version) -> &'static str {
        "SHOW ALL SLAVES STATUS"
    }

    fn rows_written(&self) -> &'static [&'static str] {
        &["handler_write", "handler_update", "handler_delete"]
    }

    fn redo_bytes(&self, found: &Found) -> Option<i64> {
        found.variable("innodb_log_file_size").parse().ok()
    }

    fn checkpoint_age(&self, found: &Found) -> Option<i64> {
        found.status("innodb_checkpoint_age").parse().ok()
    }

    fn sample<'a>(&'a self, session: &'a mut Session) -> BoxFuture<'a, Result<Sample>> {
        status_sample(session).boxed()
    }
}

/// How a managed server is run. Needs `sh`, `mariadbd`, `mariadb-install-db` and `mariadb-admin` in the image.
fn managed(layout: &Layout) -> ManagedServer {
    let make = format!(
        "TMPDIR={} mariadb-install-db --no-defaults --datadir={}.new --auth-root-authentication-method=normal \
         --skip-test-db",
        layout.temporary,
        layout.data_directory()
    );
    boot::managed(layout, &make, "mariadbd", "mariadb-admin")
}

/// SQL that the server runs at every boot.
fn init_sql(username: &str, password: &str) -> String {
    let (user, password) = (literal(username), literal(password));
    boot::init_sql([
        // The configuration may have changed how string literals are read.
        "SET SESSION sql_mode = ''".to_owned(),
        // What the installation leaves open besides the socket's root.
        "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost')".to_owned(),
        "FLUSH PRIVILEGES".to_owned(),
        format!("CREATE USER IF NOT EXISTS {user}@'%' IDENTIFIED BY {password}"),
        format!("ALTER USER {user}@'%' IDENTIFIED BY {password}"),
        format!("GRANT ALL PRIVILEGES ON *.* TO {user}@'%'"),
    ])
}

type CatalogueRow = (
    String,
    Option<String>,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
    Option<String>,
);

async fn catalogue(session: &mut Session) -> Result<Catalogue> {
    let rows: Vec<CatalogueRow> = session
        .rows(
            "read the catalogue of parameters",
            "SELECT VARIABLE_NAME, GLOBAL_VALUE, GLOBAL_VALUE_ORIGIN, VARIABLE_SCOPE, VARIABLE_TYPE, \
             NUMERIC_MIN_VALUE, NUMERIC_MAX_VALUE, NUMERIC_BLOCK_SIZE, ENUM_VALUE_LIST, READ_ONLY, \
             COMMAND_LINE_ARGUMENT \
             FROM information_schema.SYSTEM_VARIABLES",
        )
        .await?;
    Ok(Catalogue::from_variables(rows.into_iter().map(variable)))
}

/// Read-only variables that the catalogue lists without an argument although there is an option of their name.
const OPTIONS: &[&str] = &["log_bin", "skip_external_locking"];

fn variable(row: CatalogueRow) -> Variable {
    let (name, value, origin, scope, kind, min, max, block, words, read_only, argument) = row;
    let number = |text: Option<String>| text.and_then(|t| t.parse::<f64>().ok().map(|f| (t, f)));
    let whole = |(text, float): (String, f64)| text.parse::<i128>().unwrap_or(float as i128);
    let range = number(min).map(whole).zip(number(max).map(whole));
    Variable {
        name: name.to_ascii_lowercase(),
        value: value.unwrap_or_default(),
        kind: match kind.as_str() {
            "BOOLEAN" => Kind::Boolean,
            // Character sets and locales are said to be words, but none are listed.
            "ENUM" if words.is_none() => Kind::Text,
            "ENUM" => Kind::Word,
            "SET" => Kind::Set,
            "FLAGSET" => Kind::Switches,
            "DOUBLE" => Kind::Real,
            _ if kind.contains("INT") => Kind::Integer,
            _ => Kind::Text,
        },
        range,
        block: block.and_then(|b| b.parse().ok()).filter(|b| *b > 0).unwrap_or(1),
        words: words
            .map(|w| w.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        fixed: read_only == "YES"
            && argument.is_none()
            && !OPTIONS.contains(&name.to_ascii_lowercase().as_str()),
        read_only: read_only == "YES",
        session_only: scope == "SESSION ONLY",
        origin,
    }
}
