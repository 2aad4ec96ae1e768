//! The configuration file of a managed server: what the whole family understands.

use crds::audit::{AuditSetting, LogVolume};
use crds::load::CacheState;
use crds::parameter::{ParameterValue, Parameters};
use crds::target::BootRequest;

use super::marker::{forget_proof_statement, schema_statements};
use crate::access::ParameterProblem;
use crate::audit;
use crate::configuration::{ConfigurationError, ConfigurationFile, merge, quoted};
use crate::engine::{EngineFacts, Layout, ManagedServer};

/// What the operator sets itself; a person who sets it would break the pod, the login or the evidence.
const RESERVED: &[(&str, &str)] = &[
    ("datadir", "the volume's layout is the operator's"),
    ("basedir", "it belongs to the image"),
    ("plugin_dir", "it belongs to the image"),
    ("socket", "the startup probe uses it"),
    ("pid_file", "the pod's layout is the operator's"),
    ("tmpdir", "the pod's layout is the operator's"),
    ("port", "the Service uses the engine's own port"),
    ("bind_address", "the pod's address is the only one"),
    ("skip_networking", "nothing could connect"),
    ("user", "the pod's security context says it"),
    ("init_file", "it makes the login"),
    ("skip_grant_tables", "it would let everybody in"),
    ("plugin_load", "audit settings load plugins"),
    ("plugin_load_add", "audit settings load plugins"),
    ("log_error", "the server's messages belong to the pod's log"),
    ("general_log", "use an audit setting of type GeneralLog"),
    ("general_log_file", "use an audit setting of type GeneralLog"),
    ("slow_query_log", "use an audit setting of type SlowLog"),
    ("log_slow_query", "use an audit setting of type SlowLog"),
    ("slow_query_log_file", "use an audit setting of type SlowLog"),
    ("log_slow_query_file", "use an audit setting of type SlowLog"),
    ("log_output", "use an audit setting of type GeneralLog or SlowLog"),
];

/// Prefixes that an option file understands as something else than a name.
const PREFIXES: &[&str] = &["loose_", "skip_", "enable_", "disable_", "maximum_"];
/// Parameters whose own names begin so.
const SKIP_NAMES: &[&str] = &[
    "skip_external_locking",
    "skip_name_resolve",
    "skip_show_database",
    "skip_parallel_replication",
    "skip_replication",
];

/// What a configuration file needs to know of the server that reads it.
pub(crate) struct Dialect {
    /// Group of the file.
    pub(crate) group: &'static str,
    /// Bytes of the buffer pool when no parameter says its size.
    pub(crate) buffer_pool: i64,
    /// Lines that only this server needs.
    pub(crate) lines: &'static [(&'static str, &'static str)],
}

/// How a managed server is run: `make` fills the data directory under its name with `.new` behind it.
pub(crate) fn managed(layout: &Layout, make: &str, server: &str, admin: &str) -> ManagedServer {
    let data = layout.data_directory();
    let separate = layout.log_directory(LogVolume::Separate);
    let beside = layout.log_directory(LogVolume::WithData);
    // The data directory gets its name only when it is complete: an init that was killed begins again. The pid file of
    // a server that was killed stays until the next one overwrites it, so that this too can be repeated.
    let script = format!(
        "set -e; mkdir -p {separate} {beside}; \
         if test -e {pid}; then echo No; else echo Yes; fi >{clean}; chmod 644 {clean}; test -d {data}/mysql && exit 0; \
         rm -rf {data} {data}.new; {make} >{tmp}/install.log 2>&1 || {{ cat {tmp}/install.log; exit 1; }}; \
         mv {data}.new {data}",
        tmp = layout.temporary,
        pid = layout.pid_file(),
        clean = layout.clean_shutdown(),
    );
    ManagedServer {
        port: layout.port,
        init_command: vec!["sh".to_owned(), "-c".to_owned(), script],
        server_command: vec![
            server.to_owned(),
            format!("--defaults-file={}", layout.configuration),
        ],
        startup_probe: vec![
            admin.to_owned(),
            "--no-defaults".to_owned(),
            format!("--socket={}", layout.socket()),
            "--user=root".to_owned(),
            "--connect-timeout=1".to_owned(),
            "ping".to_owned(),
        ],
        termination_grace_seconds: 600,
    }
}

/// The init file: the login's statements, then the marker schema's, one a line. No password is ever sent over a connection,
/// where an audit log would record it.
pub(crate) fn init_sql(login: impl IntoIterator<Item = String>) -> String {
    let mut sql = String::new();
    for statement in login
        .into_iter()
        .chain(schema_statements())
        .chain([forget_proof_statement()])
    {
        sql.push_str(&statement);
        sql.push_str(";\n");
    }
    sql
}

/// A string literal under the empty `sql_mode`.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Parameters that a cache state needs.
pub(crate) fn cache_parameters(state: CacheState) -> Parameters {
    let dumped = state == CacheState::Dumped;
    let word = if dumped { "ON" } else { "OFF" };
    let mut parameters = Parameters::from([
        ("innodb_buffer_pool_dump_at_shutdown".to_owned(), word.into()),
        ("innodb_buffer_pool_load_at_startup".to_owned(), word.into()),
    ]);
    if dumped {
        // The default of 25 leaves three quarters of the pool cold.
        parameters.insert("innodb_buffer_pool_dump_pct".to_owned(), 100.into());
    }
    parameters
}

/// The complete configuration of one boot.
pub(crate) fn configuration(
    engine: &impl EngineFacts,
    dialect: &Dialect,
    layout: &Layout,
    base: &Parameters,
    request: Option<&BootRequest>,
) -> Result<ConfigurationFile, ConfigurationError> {
    let nothing = (Parameters::new(), AuditSetting::default());
    let wanted = request.map_or(&nothing.0, |r| &r.parameters);
    let setting = request.and_then(|r| r.audit.as_ref()).unwrap_or(&nothing.1);
    let mechanism = audit::find(engine.engine(), setting.type_)
        .map_err(|e| ConfigurationError::Unsupported(e.to_string()))?;

    let mut defaults = cache_parameters(CacheState::Cold);
    defaults.insert("innodb_buffer_pool_size".to_owned(), dialect.buffer_pool.into());
    let mut parameters =
        merge([&defaults, base, wanted, &setting.parameters]).map_err(ConfigurationError::Refused)?;

    let mut problems: Vec<ParameterProblem> = parameters.keys().filter_map(|n| engine.reserved(n)).collect();
    problems.extend(mechanism.problems(setting));
    let binary_log = binary_log(parameters.remove("log_bin").as_ref(), &mut problems);

    let mut text = format!(
        "# Written by the benchmark campaign operator; complete: no other file is read.\n[{}]\n",
        dialect.group
    );
    let mut line = |name: &str, value: &str| {
        text.push_str(name);
        text.push('=');
        text.push_str(value);
        text.push('\n');
    };
    line("datadir", &layout.data_directory());
    line("tmpdir", &layout.temporary);
    line("socket", &layout.socket());
    line("pid_file", &layout.pid_file());
    line("bind_address", &layout.bind_address);
    line("port", &layout.port.to_string());
    line("init_file", &layout.init_sql);
    line("log_output", "FILE");
    for (name, value) in dialect.lines {
        line(name, value);
    }
    if !parameters.contains_key("skip_name_resolve") {
        line("skip_name_resolve", "ON");
    }
    // Every mechanism is configured and silent: it begins to record after the boot, when it has been prepared.
    for other in audit::mechanisms(engine.engine()) {
        let asked_for = (other.kind() == setting.type_).then_some(setting);
        for (name, value) in other.configuration(asked_for, layout) {
            line(name, &value);
        }
    }
    for (name, value) in &parameters {
        match file_value(value) {
            Some(value) => line(name, &value),
            None => problems.push(ParameterProblem {
                name: name.clone(),
                message: format!(
                    "the value of {name} cannot be written into a configuration file: no line breaks, and not both kinds of quotes"
                ),
            }),
        }
    }
    text.push_str(binary_log);
    text.push('\n');
    if problems.is_empty() {
        Ok(ConfigurationFile::new(text))
    } else {
        Err(ConfigurationError::Refused(problems))
    }
}

/// Sizes are written in bytes so that no suffix is read differently by another version.
fn file_value(value: &ParameterValue) -> Option<String> {
    match value.as_integer() {
        Some(integer) => Some(integer.to_string()),
        None => quoted(value.to_string().trim()),
    }
}

/// `log_bin` names files when it has a value, so `ON` cannot be passed on.
fn binary_log(value: Option<&ParameterValue>, problems: &mut Vec<ParameterProblem>) -> &'static str {
    match value.map(|v| v.to_string().to_ascii_uppercase()).as_deref() {
        None | Some("OFF" | "0" | "FALSE") => "skip_log_bin",
        Some("ON" | "1" | "TRUE") => "log_bin=binlog",
        Some(other) => {
            problems.push(ParameterProblem {
                name: "log_bin".to_owned(),
                message: format!("log_bin is ON or OFF here, not {other}: the files' name is the operator's"),
            });
            "skip_log_bin"
        }
    }
}

/// The problem with setting this parameter on a managed server, if it is not a person's to set.
///
/// `own` are those of this engine alone.
pub(crate) fn reserved(name: &str, own: &[(&str, &str)]) -> Option<ParameterProblem> {
    let reason = RESERVED
        .iter()
        .chain(own)
        .find(|(n, _)| *n == name)
        .map(|(_, why)| *why);
    let prefix = PREFIXES
        .iter()
        .find(|p| name.starts_with(**p) && !SKIP_NAMES.contains(&name));
    let message = match (reason, prefix) {
        (Some(reason), _) => format!("{name} is not yours to set: {reason}"),
        (None, Some(prefix)) => {
            format!("{name}: write the parameter's own name and a value instead of the prefix {prefix}")
        }
        (None, None) => return None,
    };
    Some(ParameterProblem {
        name: name.to_owned(),
        message,
    })
}
