//! The general query log, to a file. It records what clients send: one line a statement, whether it succeeds or not.

use crds::audit::{AuditSetting, AuditType};
use crds::target::Engine;

use super::{Found, Mechanism, Wanted, log_file, table_output, told_path};
use crate::access::ParameterProblem;
use crate::engine::Layout;

const LOG: &str = "general.log";

/// See the module.
pub(super) struct GeneralLog;

impl Mechanism for GeneralLog {
    fn kind(&self) -> AuditType {
        AuditType::GeneralLog
    }
    fn engines(&self) -> &'static [Engine] {
        &[Engine::MariaDB, Engine::MySQL]
    }
    fn log_name(&self) -> Option<&'static str> {
        Some(LOG)
    }

    fn configuration(&self, setting: Option<&AuditSetting>, layout: &Layout) -> Vec<(&'static str, String)> {
        vec![
            ("general_log", "OFF".to_owned()),
            ("general_log_file", log_file(setting, layout, LOG)),
        ]
    }

    fn problems(&self, setting: &AuditSetting) -> Vec<ParameterProblem> {
        table_output(setting, setting.general_log.as_ref(), "generalLog")
    }

    fn wanted(&self, _: &AuditSetting) -> Vec<Wanted> {
        vec![
            Wanted::text("log_output", "FILE"),
            Wanted::text("general_log", "ON"),
        ]
    }

    fn silenced(&self) -> Vec<Wanted> {
        vec![Wanted::text("general_log", "OFF")]
    }

    fn recording(&self, found: &Found) -> bool {
        found.is_on("general_log")
    }

    fn log_path(&self, found: &Found) -> Option<String> {
        told_path(found.variable("general_log_file"))
    }

    fn statement_classes(&self, _: &AuditSetting) -> Option<&'static [&'static str]> {
        // Prepared statements are logged as Execute, others as Query.
        Some(&["Query", "Execute"])
    }

    /// `TIME\t   ID Command\tstatement`: a line that continues a statement has no time. MariaDB and MySQL 5.6 leave the
    /// time out while it is the same second, MySQL since 5.7 always writes `2026-11-30T17:20:49.000000Z` or with an offset
    /// in place of the `Z`.
    fn classify(&self, line: &[u8]) -> Option<&'static str> {
        let rest = match line {
            [b'\t', b'\t', rest @ ..] => rest,
            [_, _, _, _, b'-', _, _, b'-', _, _, b'T', ..] => {
                &line[1 + line.iter().position(|b| *b == b'\t').filter(|at| *at <= 33)?..]
            }
            _ if line.len() > 16 && line[6] == b' ' && line[9] == b':' && line[15] == b'\t' => &line[16..],
            _ => return None,
        };
        let start = rest.iter().position(|b| *b != b' ')?;
        let rest = &rest[start..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || rest.get(digits) != Some(&b' ') {
            return None;
        }
        let rest = &rest[digits + 1..];
        let end = rest.iter().position(|b| *b == b'\t')?;
        COMMANDS.iter().copied().find(|c| c.as_bytes() == &rest[..end])
    }
}

const COMMANDS: &[&str] = &[
    "Query",
    "Execute",
    "Prepare",
    "Close stmt",
    "Connect",
    "Quit",
    "Reset stmt",
    "Fetch",
    "Init DB",
    "Field List",
    "Ping",
    "Statistics",
    "Change user",
    "Reset connection",
    "Set option",
    "Long Data",
    "Shutdown",
];
