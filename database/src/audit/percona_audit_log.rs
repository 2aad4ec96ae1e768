//! Percona Server's `audit_log` plugin, 5.6 to 8.4. Variables, their scopes and the record formats are those of the
//! manual: Percona Server for MySQL 8.0, "Audit log plugin", sections "Log format", "System variables" and "Status
//! variables". It was not tried on a real server by this project.

use crds::audit::{AuditLogPolicy, AuditSetting, AuditType};
use crds::target::Engine;

use super::audit_log_plugin::{self as plugin, PLUGIN, PREFIX, STATEMENTS};
use super::{Found, Mechanism, Statement, Wanted, told_path};
use crate::access::ParameterProblem;
use crate::engine::Layout;

const LOG: &str = "percona_audit.log";

/// See the module.
pub(super) struct PerconaAuditLog;

/// Whether the plugin that is loaded is Percona's: Oracle's has the same name and no handler.
fn here(found: &Found) -> bool {
    found.plugin_active(PLUGIN) && found.variables.contains_key("audit_log_handler")
}

impl Mechanism for PerconaAuditLog {
    fn kind(&self) -> AuditType {
        AuditType::PerconaAuditLog
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

    fn may_be_there(&self, flavour: &str, _: (u16, u16, u16)) -> bool {
        flavour == "Percona"
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
            ("loose_audit_log_handler", "FILE".to_owned()),
            // 0: the file is not rotated, however large it becomes.
            ("loose_audit_log_rotate_on_size", "0".to_owned()),
            ("loose_audit_log_policy", "NONE".to_owned()),
        ]);
        lines
    }

    fn problems(&self, _: &AuditSetting) -> Vec<ParameterProblem> {
        Vec::new()
    }

    fn install(&self, found: &Found) -> Vec<Statement> {
        plugin::install(found)
    }

    fn uninstall(&self) -> Option<String> {
        Some("UNINSTALL PLUGIN audit_log".to_owned())
    }

    fn wanted(&self, setting: &AuditSetting) -> Vec<Wanted> {
        let settings = plugin::settings(setting);
        let mut wanted = plugin::at_start(&settings);
        wanted.extend([
            Wanted::text("audit_log_handler", "FILE").at_start(),
            Wanted::integer("audit_log_rotate_on_size", 0).at_start(),
            Wanted::text("audit_log_policy", plugin::policy(&settings)),
        ]);
        wanted
    }

    fn silenced(&self) -> Vec<Wanted> {
        vec![Wanted::text("audit_log_policy", "NONE")]
    }

    fn recording(&self, found: &Found) -> bool {
        here(found) && found.variable("audit_log_policy") != "NONE"
    }

    fn faults(&self, found: &Found) -> Vec<String> {
        let mut faults = Vec::new();
        if found.plugin_active(PLUGIN) && !here(found) {
            faults.push(
                "the plugin audit_log of this server is Oracle's: use type EnterpriseAuditLog".to_owned(),
            );
        }
        for list in ["accounts", "commands", "databases"] {
            for which in ["include", "exclude"] {
                let name = format!("audit_log_{which}_{list}");
                let value = found.variable(&name);
                if !value.is_empty() {
                    faults.push(format!("{name} is `{value}`: it hides statements from the log"));
                }
            }
        }
        faults
    }

    fn log_path(&self, found: &Found) -> Option<String> {
        here(found)
            .then(|| told_path(found.variable("audit_log_file")))
            .flatten()
    }

    /// Records that were dropped, or written past the buffer: the server counts both as one.
    fn lost(&self, found: &Found) -> Option<i64> {
        here(found)
            .then(|| found.status("audit_log_buffer_size_overflow").parse().ok())
            .flatten()
    }

    fn statement_classes(&self, setting: &AuditSetting) -> Option<&'static [&'static str]> {
        (plugin::settings(setting).policy != AuditLogPolicy::Logins).then_some(STATEMENTS)
    }

    fn classify(&self, line: &[u8]) -> Option<&'static str> {
        plugin::classify(line)
    }
}
