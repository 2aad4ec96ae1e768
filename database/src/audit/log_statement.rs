//! PostgreSQL's `log_statement`: statements in the server's own log, one record each, before they run. The parameters of
//! a prepared statement follow in a record of their own that begins no event.

use crds::audit::{AuditSetting, AuditType, LogStatement as Settings, LoggedStatements};
use crds::target::Engine;

use super::{Found, Mechanism, Wanted, canary_statement, pgaudit, told_path};
use crate::access::ParameterProblem;
use crate::engine::Layout;

/// The server's log in every arm but pgaudit's: without an audit setting a statement must not be found there.
const LOG: &str = "postgresql.log";
const SWITCH: &str = "log_statement";

/// See the module.
pub(super) struct LogStatement;

fn statements(setting: &AuditSetting) -> LoggedStatements {
    let settings: Settings = setting.log_statement.clone().unwrap_or_default();
    settings.statements
}

impl Mechanism for LogStatement {
    fn kind(&self) -> AuditType {
        AuditType::LogStatement
    }
    fn engines(&self) -> &'static [Engine] {
        &[Engine::PostgreSQL]
    }
    fn log_name(&self) -> Option<&'static str> {
        Some(LOG)
    }

    fn configuration(&self, _: Option<&AuditSetting>, _: &Layout) -> Vec<(&'static str, String)> {
        vec![(SWITCH, "none".to_owned())]
    }

    fn problems(&self, _: &AuditSetting) -> Vec<ParameterProblem> {
        Vec::new()
    }

    fn wanted(&self, setting: &AuditSetting) -> Vec<Wanted> {
        let word = match statements(setting) {
            LoggedStatements::All => "all",
            LoggedStatements::Ddl => "ddl",
            LoggedStatements::Mod => "mod",
        };
        vec![Wanted::text(SWITCH, word)]
    }

    fn silenced(&self) -> Vec<Wanted> {
        vec![Wanted::text(SWITCH, "none")]
    }

    fn canary(&self, setting: &AuditSetting, word: &str) -> String {
        if statements(setting) == LoggedStatements::All {
            return canary_statement(word);
        }
        canary_of_every_kind(word)
    }

    fn recording(&self, found: &Found) -> bool {
        !matches!(found.variable(SWITCH), "" | "none")
    }

    fn log_path(&self, found: &Found) -> Option<String> {
        told_path(found.status("current_logfile")).filter(|path| !pgaudit::is_log(path))
    }

    fn statement_classes(&self, setting: &AuditSetting) -> Option<&'static [&'static str]> {
        // A statement of the simple protocol is one record, one of the extended protocol is one at every execution.
        (statements(setting) == LoggedStatements::All).then_some(&["statement", "execute"])
    }

    fn classify(&self, line: &[u8]) -> Option<&'static str> {
        let text = logged(line)?;
        [
            (&b"statement: "[..], "statement"),
            // A portal that is read on has begun before.
            (b"execute fetch from ", "fetch"),
            (b"execute ", "execute"),
        ]
        .into_iter()
        .find(|(begin, _)| text.starts_with(begin))
        .map(|(_, class)| class)
    }
}

/// Statements of every class, each with the word; they leave nothing behind.
pub(super) fn canary_of_every_kind(word: &str) -> String {
    [
        "CREATE TEMPORARY TABLE /**/ benchmark_canary (i int)",
        "INSERT INTO /**/ benchmark_canary VALUES (1)",
        "GRANT SELECT /**/ ON benchmark_canary TO CURRENT_USER",
        "DO /**/ 'BEGIN END'",
        "SELECT /**/ i FROM benchmark_canary",
        "DROP TABLE /**/ benchmark_canary",
        "DISCARD /**/ PLANS",
    ]
    .map(|statement| statement.replace("/**/", &format!("/* {word} */")))
    .join("; ")
}

/// The text of a record of level LOG whose prefix is `%m [%p] `; a line that continues a statement begins with a tab.
pub(super) fn logged(line: &[u8]) -> Option<&[u8]> {
    if !line.first()?.is_ascii_digit() || line.get(4) != Some(&b'-') {
        return None;
    }
    // The prefix has no brackets but the process'.
    let end = line.iter().take(64).position(|b| *b == b']')?;
    line[end + 1..].strip_prefix(b" LOG:  ")
}
