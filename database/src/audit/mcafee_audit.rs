//! McAfee's (Trellix') AUDIT plugin for MySQL 5.1 to 8.0. Variables and record format are those of its documentation:
//! mysql-audit wiki, pages "Configuration" and "JSON Format". It was not tried on a real server by this project. It needs
//! the offsets of the very build of the server: give `audit_offsets` among the parameters of the audit setting where the
//! plugin does not know them. No statement of ours loads or unloads it: `UNINSTALL PLUGIN` fails (error 1148) unless the
//! server was started with `audit_uninstall_plugin`, and then must be said twice (mysql-audit, `src/audit_plugin.cc`), so
//! that a borrowed server could not be left as it was.

use crds::audit::{AuditSetting, AuditType};
use crds::target::Engine;

use super::{Found, Mechanism, Wanted, log_file, told_path};
use crate::access::ParameterProblem;
use crate::engine::Layout;

const PLUGIN: &str = "AUDIT";
const LOG: &str = "mcafee_audit.json";

/// See the module.
pub(super) struct McAfeeAudit;

fn whitelist(setting: &AuditSetting) -> Option<String> {
    let commands = setting.mc_afee_audit.as_ref()?.whitelist_commands.as_ref()?;
    Some(commands.join(","))
}

impl Mechanism for McAfeeAudit {
    fn kind(&self) -> AuditType {
        AuditType::McAfeeAudit
    }

    fn engines(&self) -> &'static [Engine] {
        &[Engine::MySQL]
    }

    fn plugin(&self) -> Option<&'static str> {
        Some(PLUGIN)
    }

    fn prefix(&self) -> Option<&'static str> {
        Some("audit_")
    }

    fn may_be_there(&self, flavour: &str, version: (u16, u16, u16)) -> bool {
        // It belongs to no server: whether the image has it is seen when it is loaded.
        ["MySQL", "MySQL Enterprise", "Percona"].contains(&flavour) && version < (8, 1, 0)
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
        let mut lines = vec![
            ("plugin_load_add", "AUDIT=libaudit_plugin.so".to_owned()),
            ("loose_audit_json_file", "OFF".to_owned()),
            ("loose_audit_json_log_file", log_file(Some(setting), layout, LOG)),
        ];
        lines.extend(whitelist(setting).map(|commands| ("loose_audit_whitelist_cmds", commands)));
        lines
    }

    fn problems(&self, setting: &AuditSetting) -> Vec<ParameterProblem> {
        let commands = setting
            .mc_afee_audit
            .iter()
            .flat_map(|m| m.whitelist_commands.iter().flatten());
        commands
            .filter(|command| !command.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
            .map(|command| ParameterProblem {
                name: setting.name.clone(),
                message: format!(
                    "audit setting {}: mcAfeeAudit.whitelistCommands: `{command}` is no command: letters, digits and \
                     underscores are allowed",
                    setting.name
                ),
            })
            .collect()
    }

    fn wanted(&self, setting: &AuditSetting) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        if let Some(commands) = whitelist(setting) {
            let commands: Vec<&str> = commands.split(',').filter(|c| !c.is_empty()).collect();
            wanted.push(Wanted::list("audit_whitelist_cmds", &commands));
        }
        // Lists that restrict what is recorded.
        wanted.push(Wanted::text("audit_record_cmds", "").where_known());
        wanted.push(Wanted::text("audit_record_objs", "").where_known());
        wanted.push(Wanted::text("audit_json_file", "ON"));
        wanted
    }

    fn silenced(&self) -> Vec<Wanted> {
        vec![Wanted::text("audit_json_file", "OFF")]
    }

    fn recording(&self, found: &Found) -> bool {
        found.plugin_active(PLUGIN) && found.is_on("audit_json_file")
    }

    fn log_path(&self, found: &Found) -> Option<String> {
        found
            .plugin_active(PLUGIN)
            .then(|| told_path(found.variable("audit_json_log_file")))
            .flatten()
    }

    /// Commands that are whitelisted (BEGIN, COMMIT and PING unless said otherwise) leave no record, so that a statement
    /// need not have one.
    fn statement_classes(&self, _: &AuditSetting) -> Option<&'static [&'static str]> {
        None
    }

    /// One JSON object a line: `{"msg-type":"activity",…,"cmd":"select",…}`.
    fn classify(&self, line: &[u8]) -> Option<&'static str> {
        let rest = line.trim_ascii_start().strip_prefix(b"{\"msg-type\":\"")?;
        let kind = &rest[..rest.iter().position(|b| *b == b'"')?];
        match kind {
            b"activity" => Some("activity"),
            b"header" => Some("header"),
            b"alert" => Some("alert"),
            _ => None,
        }
    }
}
