//! MariaDB's `server_audit` plugin. Its default rotation (1 MB, 9 files) loses a quarter of the records within seconds
//! of load, and a path that cannot be written is only a warning: both are ruled out here.

use crds::audit::{AuditSetting, AuditType, ServerAudit, ServerAuditEvent};
use crds::target::Engine;

use super::{Found, Mechanism, Statement, Wanted, log_file, told_path};
use crate::access::ParameterProblem;
use crate::engine::Layout;

const PLUGIN: &str = "SERVER_AUDIT";
const LOG: &str = "server_audit.log";
/// The largest size at which a file is rotated: never.
const NEVER: i64 = i64::MAX;

/// See the module.
pub(super) struct ServerAuditPlugin;

fn settings(setting: &AuditSetting) -> ServerAudit {
    setting.server_audit.clone().unwrap_or_default()
}

/// The words of `server_audit_events`; none means every event.
fn events(settings: &ServerAudit) -> Vec<&'static str> {
    if settings.events.contains(&ServerAuditEvent::All) {
        return Vec::new();
    }
    settings
        .events
        .iter()
        .map(|event| match event {
            ServerAuditEvent::All => "",
            ServerAuditEvent::Connect => "CONNECT",
            ServerAuditEvent::Query => "QUERY",
            ServerAuditEvent::Table => "TABLE",
            ServerAuditEvent::QueryDdl => "QUERY_DDL",
            ServerAuditEvent::QueryDml => "QUERY_DML",
            ServerAuditEvent::QueryDmlNoSelect => "QUERY_DML_NO_SELECT",
            ServerAuditEvent::QueryDcl => "QUERY_DCL",
        })
        .collect()
}

impl Mechanism for ServerAuditPlugin {
    fn kind(&self) -> AuditType {
        AuditType::ServerAudit
    }

    fn engines(&self) -> &'static [Engine] {
        &[Engine::MariaDB]
    }

    fn plugin(&self) -> Option<&'static str> {
        Some(PLUGIN)
    }

    fn prefix(&self) -> Option<&'static str> {
        Some("server_audit_")
    }

    fn log_name(&self) -> Option<&'static str> {
        Some(LOG)
    }

    fn configuration(&self, setting: Option<&AuditSetting>, layout: &Layout) -> Vec<(&'static str, String)> {
        // Without the plugin its variables are unknown and the server would not start.
        if setting.is_none() {
            return Vec::new();
        }
        vec![
            ("plugin_load_add", "server_audit".to_owned()),
            ("server_audit_logging", "OFF".to_owned()),
            ("server_audit_output_type", "file".to_owned()),
            ("server_audit_file_path", log_file(setting, layout, LOG)),
        ]
    }

    fn problems(&self, setting: &AuditSetting) -> Vec<ParameterProblem> {
        let settings = settings(setting);
        let mut problems = Vec::new();
        let mut problem = |message: &str| {
            problems.push(ParameterProblem {
                name: setting.name.clone(),
                message: format!("audit setting {}: {message}", setting.name),
            });
        };
        if settings.events.len() > 1 && settings.events.contains(&ServerAuditEvent::All) {
            problem("serverAudit.events: All includes every other class: name it alone");
        }
        if settings
            .exclude_users
            .iter()
            .any(|u| u.contains([',', '\'', '\n', '\0']))
        {
            problem("serverAudit.excludeUsers: a name may hold no comma, quote or line break");
        }
        problems
    }

    fn install(&self, found: &Found) -> Vec<Statement> {
        if found.managed || found.plugin_active(PLUGIN) {
            return Vec::new();
        }
        vec![Statement::Sql("INSTALL SONAME 'server_audit'".to_owned())]
    }

    fn uninstall(&self) -> Option<String> {
        Some("UNINSTALL SONAME 'server_audit'".to_owned())
    }

    fn wanted(&self, setting: &AuditSetting) -> Vec<Wanted> {
        let settings = settings(setting);
        let users: Vec<&str> = settings.exclude_users.iter().map(String::as_str).collect();
        let mut wanted = vec![
            Wanted::text("server_audit_output_type", "file"),
            Wanted::integer("server_audit_file_rotate_size", NEVER),
            Wanted::integer("server_audit_file_rotations", 0),
            Wanted::list("server_audit_events", &events(&settings)),
            Wanted::text("server_audit_incl_users", ""),
            Wanted::list("server_audit_excl_users", &users),
        ];
        if let Some(limit) = settings.query_log_limit {
            wanted.push(Wanted::integer("server_audit_query_log_limit", limit));
        }
        wanted.push(Wanted::text("server_audit_logging", "ON"));
        wanted
    }

    fn silenced(&self) -> Vec<Wanted> {
        vec![Wanted::text("server_audit_logging", "OFF")]
    }

    fn recording(&self, found: &Found) -> bool {
        found.plugin_active(PLUGIN)
            && (found.is_on("server_audit_logging") || found.status("server_audit_active") == "ON")
    }

    fn faults(&self, found: &Found) -> Vec<String> {
        let mut faults = Vec::new();
        if found.status("server_audit_active") != "ON" {
            faults.push(format!(
                "Server_audit_active is `{}`, wanted ON",
                found.status("server_audit_active")
            ));
        }
        let (current, path) = (
            found.status("server_audit_current_log"),
            found.variable("server_audit_file_path"),
        );
        if current != path {
            faults.push(format!("server_audit writes to `{current}`, not to `{path}`"));
        }
        let error = found.status("server_audit_last_error");
        if !error.is_empty() {
            faults.push(format!("server_audit reports: {error}"));
        }
        faults
    }

    fn log_path(&self, found: &Found) -> Option<String> {
        told_path(found.status("server_audit_current_log"))
    }

    fn lost(&self, found: &Found) -> Option<i64> {
        found.status("server_audit_writes_failed").parse().ok()
    }

    fn statement_classes(&self, setting: &AuditSetting) -> Option<&'static [&'static str]> {
        let settings = settings(setting);
        let events = events(&settings);
        (events.is_empty() || events.contains(&"QUERY")).then_some(&["QUERY"])
    }

    /// `20261130 17:20:49,server,user,host,connection,query,CLASS,schema,object,code`: line breaks in statements are
    /// escaped, so every line is one event.
    fn classify(&self, line: &[u8]) -> Option<&'static str> {
        // The first field has a fixed width; a user name may hold a comma, so the class is looked for from there on.
        if line.len() < 18 || line.get(8) != Some(&b' ') || line.get(17) != Some(&b',') {
            return None;
        }
        line[18..]
            .split(|b| *b == b',')
            .skip(5)
            .find_map(|field| CLASSES.iter().copied().find(|c| c.as_bytes() == field))
    }
}

const CLASSES: &[&str] = &[
    "QUERY",
    "READ",
    "WRITE",
    "CONNECT",
    "DISCONNECT",
    "FAILED_CONNECT",
    "CREATE",
    "ALTER",
    "RENAME",
    "DROP",
];
