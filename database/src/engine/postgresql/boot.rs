//! How a managed server is run and configured: its first container, its configuration file, its login.

use crds::audit::{AuditSetting, LogVolume};
use crds::load::CacheState;
use crds::parameter::Parameters;
use crds::target::{BootRequest, Engine};

use super::connection::{identifier, literal};
use super::marker;
use super::reserved::{problem, reserved};
use crate::access::ParameterProblem;
use crate::audit;
use crate::configuration::{ConfigurationError, ConfigurationFile, merge};
use crate::engine::{Layout, ManagedServer};

/// Log of the server where no audit setting names another: the same collector writes it in every arm.
pub(crate) const LOG: &str = "postgresql.log";
/// List of libraries that a person, an audit setting and a cache state may add to.
const LIBRARIES: &str = "shared_preload_libraries";
/// Switch of the part of `pg_prewarm` that dumps the buffers at the end and loads them at the start.
const AUTOPREWARM: &str = "pg_prewarm.autoprewarm";

/// Share of the memory that shared buffers get when no parameter says their size, in percent. The manual (19.4.1) calls
/// 25 % a reasonable start and finds more than 40 % unlikely to be better, because the kernel's page cache, which counts
/// against the same limit, holds the rest of the data.
const SHARED_BUFFERS_PERCENT: i64 = 25;
/// Least shared buffers, bytes.
const SHARED_BUFFERS_LEAST: i64 = 16 << 20;
/// What the planner may believe to be cached, in percent of the memory: shared buffers and page cache. The server's own
/// default of 4 GiB knows nothing of the instance.
const EFFECTIVE_CACHE_PERCENT: i64 = 75;

/// Bytes of shared buffers when no parameter says their size: 25 % of the memory in whole MiB.
pub fn default_shared_buffers(memory_bytes: i64) -> i64 {
    let share = memory_bytes.saturating_mul(SHARED_BUFFERS_PERCENT) / 100;
    (share >> 20 << 20).max(SHARED_BUFFERS_LEAST)
}

/// Lines of every file: one collector, one file that never rotates and loses nothing, records that can be counted.
/// `log_destination` and the collector are the same in all arms, or the pod's log would be what is measured.
const LINES: &[(&str, &str)] = &[
    ("log_destination", "stderr"),
    ("logging_collector", "on"),
    ("log_rotation_age", "0"),
    ("log_rotation_size", "0"),
    ("log_truncate_on_rotation", "off"),
    ("log_line_prefix", "%m [%p] "),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    // A crash of one process ends the server and so the boot that was proved.
    ("restart_after_crash", "off"),
];

/// How a managed server is run. Needs `sh`, `initdb`, `postgres` and `pg_isready` in the image's path, and a name for the
/// pod's user. The image's stop signal should be SIGINT: SIGTERM waits for clients that nobody closes.
pub(super) fn managed(layout: &Layout) -> ManagedServer {
    let data = layout.data_directory();
    let separate = layout.log_directory(LogVolume::Separate);
    let beside = layout.log_directory(LogVolume::WithData);
    let logs: Vec<String> = audit::mechanisms(Engine::PostgreSQL)
        .filter_map(audit::Mechanism::log_name)
        .chain([LOG])
        .flat_map(|log| [format!("{separate}/{log}"), format!("{beside}/{log}")])
        .collect();
    // The data directory gets its name only when it is complete: an init that was killed begins again. The external pid
    // file of a server that was killed stays until the next one overwrites it, so that this too can be repeated; the one
    // in the data directory goes when the single-user server below has recovered. What somebody set with ALTER SYSTEM
    // would override the configuration, and a log of the arm before would be counted again: both are taken away. The
    // login and the marker are made without any connection.
    let script = format!(
        "set -e; id -un >/dev/null 2>&1 || {{ echo \"user $(id -u) has no name in this image and initdb needs one: set \
         runAsUser to the user of the image\"; exit 1; }}; mkdir -p {separate} {beside}; \
         if test -e {pid}; then echo No; else echo Yes; fi >{clean}; chmod 644 {clean}; rm -f {logs}; \
         test -e {data}/PG_VERSION || {{ rm -rf {data} {data}.new; initdb --pgdata={data}.new --username=postgres \
         --encoding=UTF8 --locale=C --auth=reject >{tmp}/install.log 2>&1 || {{ cat {tmp}/install.log; exit 1; }}; \
         mv {data}.new {data}; }}; : >{data}/postgresql.auto.conf; \
         printf 'local all all peer\\nhost all all all scram-sha-256\\n' >{data}/pg_hba.conf; \
         postgres --single -D {data} -c exit_on_error=on -c log_min_error_statement=panic -c shared_buffers=32MB \
         -c huge_pages=off postgres <{init_sql} >{tmp}/init.log 2>&1 || {{ cat {tmp}/init.log; exit 1; }}",
        logs = logs.join(" "),
        tmp = layout.temporary,
        pid = layout.pid_file(),
        clean = layout.clean_shutdown(),
        init_sql = layout.init_sql,
    );
    ManagedServer {
        port: layout.port,
        init_command: vec!["sh".to_owned(), "-c".to_owned(), script],
        server_command: vec![
            "postgres".to_owned(),
            "-c".to_owned(),
            format!("config_file={}", layout.configuration),
        ],
        startup_probe: vec![
            "pg_isready".to_owned(),
            "--quiet".to_owned(),
            format!("--host={}", layout.temporary),
            format!("--port={}", layout.port),
            "--timeout=1".to_owned(),
        ],
        termination_grace_seconds: 600,
    }
}

/// SQL that a single-user server runs before every boot, one statement a line.
pub(super) fn init_sql(username: &str, password: &str) -> String {
    let (role, text) = (identifier(username), literal(username));
    [
        // Older servers would store what md5 makes of it.
        "SET password_encryption = 'scram-sha-256'".to_owned(),
        format!(
            "DO $init$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {text}) THEN CREATE ROLE {role}; END IF; \
             END $init$"
        ),
        format!(
            "ALTER ROLE {role} LOGIN SUPERUSER PASSWORD {}",
            literal(password)
        ),
    ]
    .into_iter()
    .chain(marker::schema_statements())
    .chain([marker::forget_proof_statement()])
    .fold(String::new(), |sql, statement| sql + &statement + ";\n")
}

/// Parameters that a cache state needs.
pub(super) fn cache_parameters(state: CacheState) -> Parameters {
    if state == CacheState::Dumped {
        Parameters::from([(AUTOPREWARM.to_owned(), "on".into())])
    } else {
        Parameters::new()
    }
}

/// The complete configuration of one boot.
pub(super) fn configuration(
    layout: &Layout,
    base: &Parameters,
    request: Option<&BootRequest>,
    memory_bytes: i64,
) -> Result<ConfigurationFile, ConfigurationError> {
    let nothing = (Parameters::new(), AuditSetting::default());
    let wanted = request.map_or(&nothing.0, |r| &r.parameters);
    let setting = request.and_then(|r| r.audit.as_ref()).unwrap_or(&nothing.1);
    let mechanism = audit::find(Engine::PostgreSQL, setting.type_)
        .map_err(|e| ConfigurationError::Unsupported(e.to_string()))?;

    let megabytes = |bytes: i64| format!("{}MB", bytes >> 20);
    let defaults = Parameters::from([
        (
            "shared_buffers".to_owned(),
            megabytes(default_shared_buffers(memory_bytes)).as_str().into(),
        ),
        (
            "effective_cache_size".to_owned(),
            megabytes((memory_bytes.saturating_mul(EFFECTIVE_CACHE_PERCENT) / 100).max(1 << 20))
                .as_str()
                .into(),
        ),
    ]);
    let mut parameters =
        merge([&defaults, base, wanted, &setting.parameters]).map_err(ConfigurationError::Refused)?;

    let mut problems: Vec<ParameterProblem> = parameters.keys().filter_map(|n| reserved(n)).collect();
    problems.extend(mechanism.problems(setting));
    let mut libraries = libraries(&mut parameters, &mut problems);

    let volume = setting.log.as_ref().map(|log| log.volume).unwrap_or_default();
    let (data, log_directory) = (layout.data_directory(), layout.log_directory(volume));
    let (port, pid_file) = (layout.port.to_string(), layout.pid_file());
    let mut lines: Vec<(&str, String)> = vec![
        ("data_directory", data.clone()),
        ("hba_file", format!("{data}/pg_hba.conf")),
        ("ident_file", format!("{data}/pg_ident.conf")),
        ("external_pid_file", pid_file),
        ("unix_socket_directories", layout.temporary.clone()),
        ("listen_addresses", layout.bind_address.clone()),
        ("port", port),
        ("log_directory", log_directory),
        ("log_filename", mechanism.log_name().unwrap_or(LOG).to_owned()),
    ];
    lines.extend(LINES.iter().map(|(name, value)| (*name, (*value).to_owned())));
    // Every mechanism is configured and silent: it begins to record after the boot, when it has been prepared.
    for other in audit::mechanisms(Engine::PostgreSQL) {
        let asked_for = (other.kind() == setting.type_).then_some(setting);
        for (name, value) in other.configuration(asked_for, layout) {
            if name == LIBRARIES {
                libraries.push(value);
            } else {
                lines.push((name, value));
            }
        }
    }
    lines.push((LIBRARIES, libraries.join(",")));
    let mut text = String::from(
        "# Written by the benchmark campaign operator; complete: no other file is read but an emptied postgresql.auto.conf.\n",
    );
    let parameters = parameters
        .iter()
        .map(|(name, value)| (name.as_str(), with_unit(value.to_string().trim())));
    for (name, value) in lines.into_iter().chain(parameters) {
        match quoted(&value) {
            Some(value) => {
                text.push_str(name);
                text.push_str(" = ");
                text.push_str(&value);
                text.push('\n');
            }
            None => problems.push(ParameterProblem {
                name: name.to_owned(),
                message: format!(
                    "the value of {name} cannot be written into a configuration file: no line breaks"
                ),
            }),
        }
    }
    if problems.is_empty() {
        Ok(ConfigurationFile::new(text))
    } else {
        Err(ConfigurationError::Refused(problems))
    }
}

/// Whether a parameter is that of a library which these parameters load: `auto_explain.log_analyze`.
pub(super) fn comes_with(name: &str, parameters: &Parameters) -> bool {
    let Some((library, _)) = name.split_once('.') else {
        return false;
    };
    [
        "shared_preload_libraries",
        "session_preload_libraries",
        "local_preload_libraries",
    ]
    .iter()
    .filter_map(|list| parameters.get(*list))
    .any(|list| list.to_string().split(',').any(|l| l.trim() == library))
}

/// Takes the list of libraries out of the parameters; what audit settings load is not a person's to name.
fn libraries(parameters: &mut Parameters, problems: &mut Vec<ParameterProblem>) -> Vec<String> {
    let listed = parameters
        .remove(LIBRARIES)
        .map(|v| v.to_string())
        .unwrap_or_default();
    let mut libraries: Vec<String> = listed
        .split(',')
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .map(str::to_owned)
        .collect();
    if libraries.iter().any(|l| l == "pgaudit") {
        problems.push(problem(
            LIBRARIES,
            "pgaudit is loaded by an audit setting of type PgAudit only",
        ));
    }
    let dumps = parameters
        .get(AUTOPREWARM)
        .is_some_and(|v| v.to_string().eq_ignore_ascii_case("on"));
    if dumps && !libraries.iter().any(|l| l == "pg_prewarm") {
        libraries.push("pg_prewarm".to_owned());
    }
    libraries
}

/// A number with `K`, `M`, `G` or `T` behind it as the server spells that unit.
fn with_unit(value: &str) -> String {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let unit = match &value[digits.len()..] {
        "K" | "k" | "KB" | "kb" => "kB",
        "M" => "MB",
        "G" => "GB",
        "T" => "TB",
        _ => return value.to_owned(),
    };
    if number {
        format!("{digits}{unit}")
    } else {
        value.to_owned()
    }
}

/// One value as the file needs it: bare numbers, anything else in quotes. `None` where no quoting can express it.
fn quoted(value: &str) -> Option<String> {
    if value.chars().any(char::is_control) {
        return None;
    }
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(value.to_owned());
    }
    Some(format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")))
}

#[cfg(test)]
mod tests;
