//! The slow query log with a threshold of 0: every statement, with its times. The threshold is copied into a session
//! when it connects, so only clients that connect afterwards are recorded.

use crds::audit::{AuditSetting, AuditType};
use crds::target::Engine;

use super::{Found, Mechanism, Wanted, log_file, table_output, told_path};
use crate::access::ParameterProblem;
use crate::engine::Layout;

const LOG: &str = "slow.log";

/// See the module.
pub(super) struct SlowLog;

impl Mechanism for SlowLog {
    fn kind(&self) -> AuditType {
        AuditType::SlowLog
    }
    fn engines(&self) -> &'static [Engine] {
        &[Engine::MariaDB, Engine::MySQL]
    }
    fn log_name(&self) -> Option<&'static str> {
        Some(LOG)
    }

    fn configuration(&self, setting: Option<&AuditSetting>, layout: &Layout) -> Vec<(&'static str, String)> {
        vec![
            ("slow_query_log", "OFF".to_owned()),
            ("slow_query_log_file", log_file(setting, layout, LOG)),
        ]
    }

    fn problems(&self, setting: &AuditSetting) -> Vec<ParameterProblem> {
        table_output(setting, setting.slow_log.as_ref(), "slowLog")
    }

    fn wanted(&self, _: &AuditSetting) -> Vec<Wanted> {
        vec![
            Wanted::text("log_output", "FILE"),
            Wanted::integer("min_examined_row_limit", 0),
            Wanted::integer("log_slow_rate_limit", 1).where_known(),
            Wanted::integer("long_query_time", 0),
            Wanted::text("slow_query_log", "ON"),
        ]
    }

    fn silenced(&self) -> Vec<Wanted> {
        vec![Wanted::text("slow_query_log", "OFF")]
    }

    /// A slow log with a threshold is somebody's tool, not an audit of every statement.
    fn recording(&self, found: &Found) -> bool {
        found.is_on("slow_query_log")
            && found
                .variable("long_query_time")
                .parse::<f64>()
                .is_ok_and(|t| t < 1e-6)
    }

    fn log_path(&self, found: &Found) -> Option<String> {
        told_path(found.variable("slow_query_log_file"))
    }

    fn statement_classes(&self, _: &AuditSetting) -> Option<&'static [&'static str]> {
        Some(&["Query"])
    }

    /// Every entry has exactly one such line.
    fn classify(&self, line: &[u8]) -> Option<&'static str> {
        line.starts_with(b"# User@Host: ").then_some("Query")
    }
}
