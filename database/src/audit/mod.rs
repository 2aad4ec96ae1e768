//! Audit mechanisms: what each needs in the configuration file, how it is switched on and off, how it is proved, how
//! its log is counted. Everything here is pure: a mechanism reads what was [`Found`] and answers with statements as
//! data, so that stopping between any two of them and beginning again comes to the same end.
//! A new mechanism is one new file and one line in [`MECHANISMS`].

mod audit_log_plugin;
mod enterprise_audit_log;
mod general_log;
mod log_statement;
mod mcafee_audit;
mod none;
mod percona_audit_log;
mod pgaudit;
mod server_audit;
mod slow_log;
mod statement;

use std::collections::BTreeMap;

use crds::audit::{AuditSetting, AuditState, AuditType, LogDestination};
use crds::target::Engine;

use crate::access::{DatabaseError, ParameterProblem, Result};
use crate::engine::Layout;

pub use statement::{Bound, Statement, Wanted};

/// Every mechanism.
const MECHANISMS: &[&dyn Mechanism] = &[
    &none::Nothing,
    &server_audit::ServerAuditPlugin,
    &general_log::GeneralLog,
    &slow_log::SlowLog,
    &log_statement::LogStatement,
    &pgaudit::PgAudit,
    &percona_audit_log::PerconaAuditLog,
    &enterprise_audit_log::EnterpriseAuditLog,
    &mcafee_audit::McAfeeAudit,
];

/// What a server was found to have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Global variables by lower-case name.
    pub variables: BTreeMap<String, String>,
    /// Global status by lower-case name.
    pub status: BTreeMap<String, String>,
    /// Plugins by upper-case name, with their status (`ACTIVE`, …).
    pub plugins: BTreeMap<String, String>,
    /// Whether the operator runs the server: then plugins come and go with the configuration file only.
    pub managed: bool,
}

impl Found {
    /// A global variable, empty if there is none.
    pub fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }
    /// A status variable, empty if there is none.
    pub fn status(&self, name: &str) -> &str {
        self.status.get(name).map_or("", String::as_str)
    }
    /// Whether a global variable is `ON`.
    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.variable(name).to_ascii_uppercase().as_str(), "ON" | "1")
    }
    /// Whether a plugin is active.
    pub fn plugin_active(&self, name: &str) -> bool {
        self.plugins.get(name).is_some_and(|status| status == "ACTIVE")
    }
}

/// One mechanism.
pub trait Mechanism: Sync {
    /// Which one.
    fn kind(&self) -> AuditType;

    /// Engines that have it.
    fn engines(&self) -> &'static [Engine];

    /// Plugin that must be active; `None` for what is built in.
    fn plugin(&self) -> Option<&'static str> {
        None
    }

    /// Whether a server of this flavour and version may have the plugin though it does not list it before it is loaded.
    fn may_be_there(&self, _flavour: &str, _version: (u16, u16, u16)) -> bool {
        false
    }

    /// Whether statements and formats follow the vendor's manual and were not tried on a real server by this project.
    fn unverified(&self) -> bool {
        false
    }

    /// What the names of its plugin's own parameters begin with.
    fn prefix(&self) -> Option<&'static str> {
        None
    }

    /// Name of its log file; also how the agent knows what to count.
    fn log_name(&self) -> Option<&'static str>;

    /// Lines of the configuration file: `setting` is `None` when another mechanism was asked for. Nothing records yet.
    fn configuration(&self, setting: Option<&AuditSetting>, layout: &Layout) -> Vec<(&'static str, String)>;

    /// What of the setting cannot be done, whatever the server.
    fn problems(&self, setting: &AuditSetting) -> Vec<ParameterProblem>;

    /// Statements that must precede the variables (loading a plugin on a borrowed server).
    fn install(&self, _found: &Found) -> Vec<Statement> {
        Vec::new()
    }

    /// Statement that unloads what [`Mechanism::install`] loads.
    fn uninstall(&self) -> Option<String> {
        None
    }

    /// Statements that take away what would break a server on which it is no longer loaded.
    fn remove(&self, _found: &Found) -> Vec<Statement> {
        Vec::new()
    }

    /// Variables in the order in which they are set when it is switched on; the last one is the switch.
    fn wanted(&self, setting: &AuditSetting) -> Vec<Wanted>;

    /// Variables that silence it.
    fn silenced(&self) -> Vec<Wanted>;

    /// Whether it records now.
    fn recording(&self, found: &Found) -> bool;

    /// A statement with this word in it that the setting records.
    fn canary(&self, _setting: &AuditSetting, word: &str) -> String {
        canary_statement(word)
    }

    /// What is wrong besides variables that do not read back, while it should record.
    fn faults(&self, _found: &Found) -> Vec<String> {
        Vec::new()
    }

    /// File that it writes to, as the server names it.
    fn log_path(&self, found: &Found) -> Option<String>;

    /// Records that the mechanism itself counts as lost.
    fn lost(&self, _found: &Found) -> Option<i64> {
        None
    }

    /// Event classes of which one is written for every statement that a client sends; `None` where the setting records
    /// only some statements.
    fn statement_classes(&self, setting: &AuditSetting) -> Option<&'static [&'static str]>;

    /// Class of the event that begins with this line (without its line break); `None` for lines that begin none.
    fn classify(&self, line: &[u8]) -> Option<&'static str>;
}

/// Where a log of this name is to be written: on the volume that the setting names, the default one without a setting.
fn log_file(setting: Option<&AuditSetting>, layout: &Layout, name: &str) -> String {
    let volume = setting
        .and_then(|s| s.log.as_ref())
        .map(|log| log.volume)
        .unwrap_or_default();
    format!("{}/{name}", layout.log_directory(volume))
}

/// A path that the server tells; none if it tells none.
fn told_path(path: &str) -> Option<String> {
    (!path.is_empty()).then(|| path.to_owned())
}

/// The mechanisms of an engine.
pub fn mechanisms(engine: Engine) -> impl Iterator<Item = &'static dyn Mechanism> {
    MECHANISMS
        .iter()
        .copied()
        .filter(move |m| m.engines().contains(&engine))
}

/// A mechanism of an engine, by its type.
pub fn find(engine: Engine, kind: AuditType) -> Result<&'static dyn Mechanism> {
    mechanisms(engine).find(|m| m.kind() == kind).ok_or_else(|| {
        let known: Vec<String> = mechanisms(engine).map(|m| format!("{:?}", m.kind())).collect();
        DatabaseError::Unsupported(format!(
            "audit type {kind:?} is not there for {engine:?}: use one of {}",
            known.join(", ")
        ))
    })
}

/// Whether a parameter belongs to the plugin of one of an engine's mechanisms: it exists only where that is loaded.
pub fn owned(engine: Engine, name: &str) -> bool {
    let name = crate::configuration::canonical_name(name);
    mechanisms(engine)
        .filter_map(Mechanism::prefix)
        .any(|prefix| name.starts_with(prefix))
}

/// The mechanism that writes log files of this name (a path's last part), for whoever counts events.
pub fn by_log_name(path: &str) -> Option<&'static dyn Mechanism> {
    let name = path.rsplit('/').next().unwrap_or(path);
    MECHANISMS.iter().copied().find(|m| m.log_name() == Some(name))
}

/// Event classes of which one is expected for every statement that a client sends; `None` where nothing is recorded or
/// the setting records only some statements.
pub fn expected_classes(engine: Engine, setting: &AuditSetting) -> Option<&'static [&'static str]> {
    if setting.state == AuditState::InstalledOff {
        return None;
    }
    find(engine, setting.type_).ok()?.statement_classes(setting)
}

/// Statements that bring a setting in force on a server as found: everything else silent, then this one configured and
/// switched. Empty when it is in force already.
pub fn statements(engine: Engine, setting: &AuditSetting, found: &Found) -> Result<Vec<Statement>> {
    let wanted = find(engine, setting.type_)?;
    let mut statements = Vec::new();
    for other in mechanisms(engine).filter(|m| m.kind() != wanted.kind()) {
        if other.recording(found) {
            statements.extend(differing(&other.silenced(), found));
        }
        statements.extend(other.remove(found));
        // A managed server is restarted without it; a borrowed one cannot be, so it is unloaded.
        let loaded = other.plugin().is_some_and(|plugin| found.plugin_active(plugin));
        if loaded && !found.managed && other.plugin() != wanted.plugin() {
            // Two vendors' plugins share a name: it is unloaded once.
            let unload = other.uninstall().map(Statement::Sql);
            statements.extend(unload.filter(|unload| !statements.contains(unload)));
        }
    }
    statements.extend(wanted.install(found));
    statements.extend(differing(&wanted_variables(wanted, setting), found));
    Ok(statements)
}

/// Mechanisms that are loaded, are not the setting's, and cannot be unloaded by a statement.
pub fn stays(engine: Engine, setting: &AuditSetting, found: &Found) -> Vec<AuditType> {
    mechanisms(engine)
        .filter(|m| m.kind() != setting.type_ && m.uninstall().is_none())
        .filter(|m| m.plugin().is_some_and(|plugin| found.plugin_active(plugin)))
        .map(Mechanism::kind)
        .collect()
}

/// Statements that silence every mechanism that records.
pub fn silence(engine: Engine, found: &Found) -> Vec<Statement> {
    mechanisms(engine)
        .filter(|m| m.recording(found))
        .flat_map(|m| differing(&m.silenced(), found))
        .collect()
}

fn wanted_variables(mechanism: &dyn Mechanism, setting: &AuditSetting) -> Vec<Wanted> {
    let mut variables = mechanism.wanted(setting);
    if setting.state == AuditState::InstalledOff {
        let off = mechanism.silenced();
        variables.retain(|v| !off.iter().any(|o| o.name == v.name));
        variables.extend(off);
    }
    variables
}

fn differing(wanted: &[Wanted], found: &Found) -> Vec<Statement> {
    wanted
        .iter()
        .filter(|w| !w.at_start && !w.met(found))
        .map(|w| Statement::set(w.name, w.value.clone()))
        .collect()
}

/// What a setting was found to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Whether the mechanism is there (its plugin active; built-in logs always are; type None never is).
    pub installed: bool,
    /// Whether it records.
    pub recording: bool,
    /// Its settings, `name=value`.
    pub settings: Vec<String>,
    /// Its log, as the server names it.
    pub log_path: Option<String>,
    /// What is not as wanted.
    pub problems: Vec<ParameterProblem>,
}

/// Compares a setting with what was found.
pub fn verify(engine: Engine, setting: &AuditSetting, found: &Found) -> Result<Verdict> {
    let mechanism = find(engine, setting.type_)?;
    let on = setting.state == AuditState::On && setting.type_ != AuditType::None;
    let mut verdict = Verdict {
        installed: setting.type_ != AuditType::None
            && mechanism.plugin().is_none_or(|p| found.plugin_active(p)),
        recording: mechanism.recording(found),
        settings: Vec::new(),
        log_path: on.then(|| mechanism.log_path(found)).flatten(),
        problems: Vec::new(),
    };
    let mut problem = |name: &str, message: String| {
        verdict.problems.push(ParameterProblem {
            name: name.to_owned(),
            message,
        });
    };
    for wanted in wanted_variables(mechanism, setting) {
        let value = found.variable(wanted.name);
        verdict.settings.push(format!("{}={value}", wanted.name));
        if !wanted.met(found) {
            problem(
                wanted.name,
                format!("{} is `{value}`, wanted {}", wanted.name, shown(&wanted.value)),
            );
        }
    }
    if let Some(plugin) = mechanism.plugin()
        && !found.plugin_active(plugin)
    {
        problem(
            plugin,
            format!("plugin {plugin} is not active: the server must be started with it"),
        );
    }
    if on {
        if !verdict.recording {
            problem(&setting.name, format!("{:?} does not record", setting.type_));
        }
        for fault in mechanism.faults(found) {
            problem(&setting.name, fault);
        }
    }
    for other in mechanisms(engine).filter(|m| m.kind() != mechanism.kind()) {
        // Two vendors' plugins share a name: which of them it is, is the wanted one's to say.
        let same = other.plugin().is_some() && other.plugin() == mechanism.plugin();
        if other.recording(found) {
            problem(
                &setting.name,
                format!(
                    "{:?} records although {:?} is wanted",
                    other.kind(),
                    setting.type_
                ),
            );
        }
        if let Some(plugin) = other.plugin().filter(|p| !same && found.plugin_active(p)) {
            problem(
                plugin,
                format!(
                    "plugin {plugin} is loaded although {:?} is wanted: the server must be restarted without it",
                    setting.type_
                ),
            );
        }
    }
    Ok(verdict)
}

fn shown(value: &Bound) -> String {
    match value {
        Bound::Integer(i) => i.to_string(),
        Bound::Real(f) => f.to_string(),
        Bound::Text(t) => format!("`{t}`"),
    }
}

/// Records that the setting's mechanism counts as lost; `None` where it does not count.
pub fn lost(engine: Engine, setting: &AuditSetting, found: &Found) -> Option<i64> {
    find(engine, setting.type_).ok()?.lost(found)
}

/// The word that proves that a log records: it is sent in a comment and looked for in the log.
pub fn canary_word(run_uid: &str, epoch: i64) -> String {
    let uid: String = run_uid
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    format!("benchmark-canary-{uid}-{epoch}")
}

/// The statement that carries the canary where a setting is wanted.
pub fn canary(engine: Engine, setting: &AuditSetting, word: &str) -> Result<String> {
    Ok(find(engine, setting.type_)?.canary(setting, word))
}

/// The statement that carries the canary unless a mechanism needs another.
pub fn canary_statement(word: &str) -> String {
    format!("SELECT /* {word} */ 1")
}

/// A setting of a query log that asks for a table.
fn table_output(
    setting: &AuditSetting,
    log: Option<&crds::audit::LogOutput>,
    field: &str,
) -> Vec<ParameterProblem> {
    if log.is_some_and(|l| l.output == LogDestination::Table) {
        return vec![ParameterProblem {
            name: setting.name.clone(),
            message: format!(
                "audit setting {}: {field}.output Table cannot be counted yet: use File",
                setting.name
            ),
        }];
    }
    Vec::new()
}

#[cfg(test)]
mod plugin_tests;
#[cfg(test)]
mod tests;
