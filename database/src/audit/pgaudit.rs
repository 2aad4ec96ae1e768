//! The extension pgaudit, session logging: records in the server's log with a class for each statement. Its library is
//! loaded at the start only; the extension's event triggers add names to records of data definition, and break every such
//! statement where the library is not loaded, so the extension comes and goes with it.

use crds::audit::{AuditSetting, AuditType, PgAudit as Settings, PgAuditClass};
use crds::target::Engine;

use super::log_statement::{canary_of_every_kind, logged};
use super::{Found, Mechanism, Statement, Wanted, canary_statement, told_path};
use crate::access::ParameterProblem;
use crate::engine::Layout;

const PLUGIN: &str = "PGAUDIT";
const EXTENSION: &str = "extension.pgaudit";
const LOG: &str = "pgaudit.log";
const SWITCH: &str = "pgaudit.log";

/// See the module.
pub(super) struct PgAudit;

fn settings(setting: &AuditSetting) -> Settings {
    setting.pg_audit.clone().unwrap_or_default()
}

/// The words of `pgaudit.log`; none named means every class.
fn classes(settings: &Settings) -> Vec<&'static str> {
    if settings.classes.is_empty() || settings.classes.contains(&PgAuditClass::All) {
        return vec!["all"];
    }
    settings
        .classes
        .iter()
        .map(|class| match class {
            PgAuditClass::All => "all",
            PgAuditClass::Read => "read",
            PgAuditClass::Write => "write",
            PgAuditClass::Function => "function",
            PgAuditClass::Role => "role",
            PgAuditClass::Ddl => "ddl",
            PgAuditClass::Misc => "misc",
        })
        .collect()
}

fn switch(name: &'static str, on: bool) -> Wanted {
    Wanted::text(name, if on { "on" } else { "off" })
}

/// Whether a log is the one that this mechanism's arms have.
pub(super) fn is_log(path: &str) -> bool {
    path.rsplit('/').next() == Some(LOG)
}

impl Mechanism for PgAudit {
    fn kind(&self) -> AuditType {
        AuditType::PgAudit
    }

    fn engines(&self) -> &'static [Engine] {
        &[Engine::PostgreSQL]
    }

    fn plugin(&self) -> Option<&'static str> {
        Some(PLUGIN)
    }

    fn prefix(&self) -> Option<&'static str> {
        Some("pgaudit.")
    }

    fn log_name(&self) -> Option<&'static str> {
        Some(LOG)
    }

    fn configuration(&self, setting: Option<&AuditSetting>, _: &Layout) -> Vec<(&'static str, String)> {
        if setting.is_none() {
            return Vec::new();
        }
        vec![
            ("shared_preload_libraries", "pgaudit".to_owned()),
            (SWITCH, "none".to_owned()),
        ]
    }

    fn problems(&self, setting: &AuditSetting) -> Vec<ParameterProblem> {
        let settings = settings(setting);
        if settings.classes.len() > 1 && settings.classes.contains(&PgAuditClass::All) {
            return vec![ParameterProblem {
                name: setting.name.clone(),
                message: format!(
                    "audit setting {}: pgAudit.classes: All includes every other class: name it alone",
                    setting.name
                ),
            }];
        }
        Vec::new()
    }

    fn install(&self, found: &Found) -> Vec<Statement> {
        if !found.plugin_active(PLUGIN) || !found.status(EXTENSION).is_empty() {
            return Vec::new();
        }
        vec![Statement::Sql(
            "CREATE EXTENSION IF NOT EXISTS pgaudit WITH SCHEMA public".to_owned(),
        )]
    }

    fn remove(&self, found: &Found) -> Vec<Statement> {
        if found.plugin_active(PLUGIN) || found.status(EXTENSION).is_empty() {
            return Vec::new();
        }
        // As a replica the session runs no triggers: the extension's own would fail for want of the library.
        vec![Statement::Sql(
            "BEGIN; SET LOCAL session_replication_role = replica; DROP EXTENSION IF EXISTS pgaudit; COMMIT"
                .to_owned(),
        )]
    }

    fn wanted(&self, setting: &AuditSetting) -> Vec<Wanted> {
        let settings = settings(setting);
        vec![
            Wanted::text("pgaudit.role", ""),
            Wanted::text("pgaudit.log_level", "log"),
            switch("pgaudit.log_client", false),
            switch("pgaudit.log_catalog", true),
            switch("pgaudit.log_parameter", settings.log_parameter),
            switch("pgaudit.log_relation", settings.log_relation),
            // Since the version for PostgreSQL 14.
            if settings.log_rows {
                switch("pgaudit.log_rows", true)
            } else {
                switch("pgaudit.log_rows", false).where_known()
            },
            switch("pgaudit.log_statement", true).where_known(),
            switch("pgaudit.log_statement_once", settings.log_statement_once),
            Wanted::list(SWITCH, &classes(&settings)),
        ]
    }

    fn silenced(&self) -> Vec<Wanted> {
        vec![Wanted::text(SWITCH, "none")]
    }

    fn canary(&self, setting: &AuditSetting, word: &str) -> String {
        if classes(&settings(setting)) == ["all"] {
            return canary_statement(word);
        }
        canary_of_every_kind(word)
    }

    fn recording(&self, found: &Found) -> bool {
        !matches!(found.variable(SWITCH), "" | "none")
    }

    fn faults(&self, found: &Found) -> Vec<String> {
        if found.status(EXTENSION).is_empty() {
            return vec!["the extension pgaudit is not made in the workload's database".to_owned()];
        }
        Vec::new()
    }

    fn log_path(&self, found: &Found) -> Option<String> {
        told_path(found.status("current_logfile")).filter(|path| is_log(path))
    }

    fn statement_classes(&self, setting: &AuditSetting) -> Option<&'static [&'static str]> {
        let settings = settings(setting);
        // With log_relation a statement has a record for each of its tables.
        (classes(&settings) == ["all"] && !settings.log_relation).then_some(CLASSES)
    }

    /// `… LOG:  AUDIT: SESSION,1,1,READ,SELECT,,,"SELECT 1",<not logged>`: the class is the fourth field.
    fn classify(&self, line: &[u8]) -> Option<&'static str> {
        let record = logged(line)?.strip_prefix(b"AUDIT: SESSION,")?;
        let class = record.split(|b| *b == b',').nth(2)?;
        CLASSES.iter().copied().find(|c| c.as_bytes() == class)
    }
}

const CLASSES: &[&str] = &["READ", "WRITE", "MISC", "FUNCTION", "DDL", "ROLE", "MISC_SET"];
