//! MySQL Enterprise Audit's `audit_log` plugin in legacy mode, 5.7 to 9.5 (from 9.6 on it is a component with dotted names,
//! which is refused). Variables, their scopes and the record formats are those of the manual: MySQL 8.0 Reference Manual,
//! 8.4.5.4 "Audit Log File Formats", 8.4.5.10 "Legacy Mode Audit Log Filtering" and 8.4.5.11 "Audit Log Reference". It was
//! not tried on a real server by this project.

use crds::audit::{AuditLogFormat, AuditLogPolicy, AuditSetting, AuditType};
use crds::target::Engine;

use super::audit_log_plugin::{self as plugin, PLUGIN, PREFIX, STATEMENTS};
use super::{Found, Mechanism, Statement, Wanted, told_path};
use crate::access::ParameterProblem;
use crate::engine::Layout;

const LOG: &str = "enterprise_audit.log";

/// See the module.
pub(super) struct EnterpriseAuditLog;

/// Whether the plugin that is loaded is Oracle's: Percona's has one policy that can be set while it runs, not two.
fn here(found: &Found) -> bool {
    found.plugin_active(PLUGIN) && found.variables.contains_key("audit_log_statement_policy")
}

impl Mechanism for EnterpriseAuditLog {
    fn kind(&self) -> AuditType {
        AuditType::EnterpriseAuditLog
    }

    fn engines(&self) -> &'static [Engine] {
        &[Engine::MySQL]
    }

    fn plugin(&self) -> Option<&'static str> {
        Some(PLUGIN)
    }

    fn prefix(&self) -> Option<&'static str> {
        Some(PREFIX)
    }

    fn may_be_there(&self, flavour: &str, version: (u16, u16, u16)) -> bool {
        flavour == "MySQL Enterprise" && version < (9, 6, 0)
    }

    fn unverified(&self) -> bool {
        true
    }

    fn log_name(&self) -> Option<&'static str> {
        Some(LOG)
    }

    fn configuration(&self, setting: Option<&AuditSetting>, layout: &Layout) -> Vec<(&'static str, String)> {
        let Some(setting) = setting else {
            return Vec::new();
        };
        let mut lines = plugin::lines(setting, layout, LOG);
        lines.extend([
            ("loose_audit_log_rotate_on_size", "0".to_owned()),
            ("loose_audit_log_connection_policy", "NONE".to_owned()),
            ("loose_audit_log_statement_policy", "NONE".to_owned()),
        ]);
        lines
    }

    fn problems(&self, setting: &AuditSetting) -> Vec<ParameterProblem> {
        let mut problems = Vec::new();
        if plugin::settings(setting).format == AuditLogFormat::Csv {
            problems.push(ParameterProblem {
                name: setting.name.clone(),
                message: format!(
                    "audit setting {}: auditLog.format Csv is Percona's: MySQL Enterprise writes Json, New or Old",
                    setting.name
                ),
            });
        }
        problems
    }

    fn install(&self, found: &Found) -> Vec<Statement> {
        plugin::install(found)
    }

    fn uninstall(&self) -> Option<String> {
        Some("UNINSTALL PLUGIN audit_log".to_owned())
    }

    fn wanted(&self, setting: &AuditSetting) -> Vec<Wanted> {
        let settings = plugin::settings(setting);
        let (connections, statements) = match settings.policy {
            AuditLogPolicy::All => ("ALL", "ALL"),
            AuditLogPolicy::Logins => ("ALL", "NONE"),
            AuditLogPolicy::Queries => ("NONE", "ALL"),
        };
        let mut wanted = plugin::at_start(&settings);
        wanted.extend([
            Wanted::integer("audit_log_rotate_on_size", 0),
            // Since 8.0.28.
            Wanted::text("audit_log_disable", "OFF").where_known(),
            Wanted::text("audit_log_connection_policy", connections),
            Wanted::text("audit_log_statement_policy", statements),
        ]);
        wanted
    }

    fn silenced(&self) -> Vec<Wanted> {
        vec![
            Wanted::text("audit_log_connection_policy", "NONE"),
            Wanted::text("audit_log_statement_policy", "NONE"),
        ]
    }

    fn recording(&self, found: &Found) -> bool {
        here(found)
            && !found.is_on("audit_log_disable")
            && ["audit_log_connection_policy", "audit_log_statement_policy"]
                .iter()
                .any(|policy| found.variable(policy) != "NONE")
    }

    fn faults(&self, found: &Found) -> Vec<String> {
        let mut faults = Vec::new();
        if found.plugin_active(PLUGIN) && !here(found) {
            faults.push(
                "the plugin audit_log of this server is Percona's: use type PerconaAuditLog".to_owned(),
            );
        }
        for name in ["audit_log_include_accounts", "audit_log_exclude_accounts"] {
            let value = found.variable(name);
            if !value.is_empty() {
                faults.push(format!("{name} is `{value}`: it hides statements from the log"));
            }
        }
        faults
    }

    fn log_path(&self, found: &Found) -> Option<String> {
        here(found)
            .then(|| told_path(found.variable("audit_log_file")))
            .flatten()
    }

    fn lost(&self, found: &Found) -> Option<i64> {
        here(found)
            .then(|| found.status("audit_log_events_lost").parse().ok())
            .flatten()
    }

    fn statement_classes(&self, setting: &AuditSetting) -> Option<&'static [&'static str]> {
        (plugin::settings(setting).policy != AuditLogPolicy::Logins).then_some(STATEMENTS)
    }

    /// In JSON the name of the command is deep in the record, which the plugin writes on one line.
    fn classify(&self, line: &[u8]) -> Option<&'static str> {
        plugin::classify(line).or_else(|| {
            if !line.trim_ascii_start().starts_with(b"{ \"timestamp\"") {
                return None;
            }
            let text = String::from_utf8_lossy(line);
            let rest = text.split("\"command\": \"").nth(1)?;
            match rest.split('"').next()? {
                "Query" => Some("Query"),
                "Execute" => Some("Execute"),
                "Prepare" => Some("Prepare"),
                _ => None,
            }
        })
    }
}
