//! What Percona's and Oracle's `audit_log` plugins share: name, library, most variables, record formats. Both are never
//! loaded at once; which one is there is told by the variables that only one of them has.

use crds::audit::{AuditLogFormat, AuditLogPlugin, AuditLogPolicy, AuditLogStrategy, AuditSetting};

use super::{Found, Statement, Wanted, log_file};
use crate::engine::Layout;

/// Name of both plugins.
pub(super) const PLUGIN: &str = "AUDIT_LOG";
/// What their variables begin with.
pub(super) const PREFIX: &str = "audit_log_";

pub(super) fn settings(setting: &AuditSetting) -> AuditLogPlugin {
    setting.audit_log.clone().unwrap_or_default()
}

pub(super) const fn policy(settings: &AuditLogPlugin) -> &'static str {
    match settings.policy {
        AuditLogPolicy::All => "ALL",
        AuditLogPolicy::Logins => "LOGINS",
        AuditLogPolicy::Queries => "QUERIES",
    }
}

pub(super) const fn strategy(settings: &AuditLogPlugin) -> &'static str {
    match settings.strategy {
        AuditLogStrategy::Asynchronous => "ASYNCHRONOUS",
        AuditLogStrategy::Performance => "PERFORMANCE",
        AuditLogStrategy::Semisynchronous => "SEMISYNCHRONOUS",
        AuditLogStrategy::Synchronous => "SYNCHRONOUS",
    }
}

pub(super) const fn format(settings: &AuditLogPlugin) -> &'static str {
    match settings.format {
        AuditLogFormat::Json => "JSON",
        AuditLogFormat::Old => "OLD",
        AuditLogFormat::New => "NEW",
        AuditLogFormat::Csv => "CSV",
    }
}

/// Lines that load the plugin with a log of this name. `loose_`: a server without the plugin starts all the same and says
/// at the proof that it is not active.
pub(super) fn lines(setting: &AuditSetting, layout: &Layout, log: &str) -> Vec<(&'static str, String)> {
    let settings = settings(setting);
    let mut lines = vec![
        ("plugin_load_add", "audit_log=audit_log.so".to_owned()),
        ("loose_audit_log_file", log_file(Some(setting), layout, log)),
        ("loose_audit_log_format", format(&settings).to_owned()),
        ("loose_audit_log_strategy", strategy(&settings).to_owned()),
    ];
    if let Some(bytes) = settings.buffer_size {
        lines.push(("loose_audit_log_buffer_size", bytes.to_string()));
    }
    lines
}

/// Variables of both that only the start of the server sets.
pub(super) fn at_start(settings: &AuditLogPlugin) -> Vec<Wanted> {
    let mut wanted = vec![
        Wanted::text("audit_log_format", format(settings)).at_start(),
        Wanted::text("audit_log_strategy", strategy(settings)).at_start(),
    ];
    if let Some(bytes) = settings.buffer_size {
        wanted.push(Wanted::integer("audit_log_buffer_size", bytes).at_start());
    }
    wanted
}

/// Loads the plugin on a borrowed server.
pub(super) fn install(found: &Found) -> Vec<Statement> {
    if found.managed || found.plugin_active(PLUGIN) {
        return Vec::new();
    }
    vec![Statement::Sql(
        "INSTALL PLUGIN audit_log SONAME 'audit_log.so'".to_owned(),
    )]
}

/// Names of records of which one is written for every statement that a client sends.
pub(super) const STATEMENTS: &[&str] = &["Query", "Execute"];

/// Names of records.
const NAMES: &[&str] = &[
    "Query",
    "Execute",
    "Prepare",
    "Close stmt",
    "Connect",
    "Quit",
    "Init DB",
    "Ping",
    "Statistics",
    "Change user",
    "Reset stmt",
    "Fetch",
    "Field List",
    "Long Data",
    "Set option",
    "Audit",
    "NoAudit",
];

/// The record that begins with this line, in any of the formats: the name is the first field of a record in JSON and CSV,
/// and has a line of its own in XML.
pub(super) fn classify(line: &[u8]) -> Option<&'static str> {
    const BEFORE: &[(&[u8], u8)] = &[
        (b"{\"audit_record\":{\"name\":\"", b'"'),
        (b"NAME=\"", b'"'),
        (b"<NAME>", b'<'),
        (b"\"", b'"'),
    ];
    let line = line.trim_ascii_start();
    BEFORE.iter().find_map(|(before, end)| {
        let rest = line.strip_prefix(*before)?;
        let name = &rest[..rest.iter().position(|b| b == end)?];
        NAMES.iter().copied().find(|n| n.as_bytes() == name)
    })
}
