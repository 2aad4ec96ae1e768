//! Audit plugins that several servers can load.

use super::{Plugin, Source, Unloading, Variable};

const FORMATS: &[&str] = &["OLD", "NEW", "JSON", "CSV"];
const STRATEGIES: &[&str] = &["ASYNCHRONOUS", "PERFORMANCE", "SEMISYNCHRONOUS", "SYNCHRONOUS"];

/// Percona's `audit_log`. What can be set while the server runs, and what is there after `INSTALL PLUGIN`, is what the
/// manual's table and its `SHOW variables` say.
pub(super) const PERCONA_AUDIT_LOG: Plugin = Plugin {
    name: "audit_log",
    library: "audit_log.so",
    variables: &[
        Variable::integer(
            "audit_log_buffer_size",
            "1048576",
            4_096,
            18_446_744_073_709_547_520,
        )
        .read_only(),
        Variable::text("audit_log_exclude_accounts", ""),
        Variable::text("audit_log_exclude_commands", ""),
        Variable::text("audit_log_exclude_databases", ""),
        Variable::text("audit_log_file", "audit.log").read_only(),
        Variable::boolean("audit_log_flush", "OFF"),
        Variable::word("audit_log_format", "OLD", FORMATS).read_only(),
        Variable::word("audit_log_handler", "FILE", &["FILE", "SYSLOG"]).read_only(),
        Variable::text("audit_log_include_accounts", ""),
        Variable::text("audit_log_include_commands", ""),
        Variable::text("audit_log_include_databases", ""),
        Variable::word("audit_log_policy", "ALL", &["ALL", "LOGINS", "QUERIES", "NONE"]),
        Variable::integer("audit_log_rotate_on_size", "0", 0, 18_446_744_073_709_547_520).read_only(),
        Variable::integer("audit_log_rotations", "0", 0, 999).read_only(),
        Variable::word("audit_log_strategy", "ASYNCHRONOUS", STRATEGIES).read_only(),
        Variable::text("audit_log_syslog_facility", "LOG_USER").read_only(),
        Variable::text("audit_log_syslog_ident", "percona-audit").read_only(),
        Variable::text("audit_log_syslog_priority", "LOG_INFO").read_only(),
    ],
    status: &[("Audit_log_buffer_size_overflow", "0")],
    unloading: Unloading::Free,
    sources: &[
        Source::Manual(
            "Percona Server for MySQL 8.0 documentation",
            "Audit log plugin: Install the plugin, System variables, Status variables",
        ),
        Source::Manual(
            "Percona Server 5.7 documentation",
            "Audit Log Plugin: Installation, System Variables",
        ),
        Source::Unverified(
            "Percona audit_log: least and most of audit_log_buffer_size, audit_log_rotate_on_size and audit_log_rotations",
        ),
    ],
};

/// Oracle's `audit_log` in legacy mode: no filter tables, policies by variables.
const LEGACY: &[Variable] = &[
    Variable::integer(
        "audit_log_buffer_size",
        "1048576",
        4_096,
        18_446_744_073_709_547_520,
    )
    .read_only(),
    Variable::word("audit_log_connection_policy", "ALL", &["ALL", "ERRORS", "NONE"]),
    Variable::text("audit_log_exclude_accounts", ""),
    Variable::text("audit_log_file", "audit.log").read_only(),
    Variable::boolean("audit_log_flush", "OFF"),
    Variable::word("audit_log_format", "NEW", &["OLD", "NEW", "JSON"]).read_only(),
    Variable::text("audit_log_include_accounts", ""),
    Variable::word("audit_log_policy", "ALL", &["ALL", "LOGINS", "QUERIES", "NONE"]).read_only(),
    Variable::integer("audit_log_rotate_on_size", "0", 0, 18_446_744_073_709_547_520),
    Variable::word("audit_log_statement_policy", "ALL", &["ALL", "ERRORS", "NONE"]),
    Variable::word("audit_log_strategy", "ASYNCHRONOUS", STRATEGIES).read_only(),
];

/// The same with what came in 8.0.28.
const LEGACY_8_0_28: &[Variable] = &[
    LEGACY[0],
    LEGACY[1],
    Variable::boolean("audit_log_disable", "OFF"),
    LEGACY[2],
    LEGACY[3],
    LEGACY[4],
    LEGACY[5],
    LEGACY[6],
    LEGACY[7],
    LEGACY[8],
    LEGACY[9],
    LEGACY[10],
];

const ENTERPRISE_STATUS: &[(&str, &str)] = &[
    ("Audit_log_current_size", "0"),
    ("Audit_log_event_max_drop_size", "0"),
    ("Audit_log_events", "0"),
    ("Audit_log_events_filtered", "0"),
    ("Audit_log_events_lost", "0"),
    ("Audit_log_events_written", "0"),
    ("Audit_log_total_size", "0"),
    ("Audit_log_write_waits", "0"),
];

/// MySQL Enterprise Audit of 5.7.
pub(super) const ENTERPRISE_5_7: Plugin = Plugin {
    name: "audit_log",
    library: "audit_log.so",
    variables: LEGACY,
    status: ENTERPRISE_STATUS,
    unloading: Unloading::Free,
    sources: &[
        Source::Manual("MySQL 5.7 Reference Manual", "6.4.5.11 Audit Log Reference"),
        Source::Manual(
            "MySQL 5.7 Reference Manual",
            "6.4.5.10 Legacy Mode Audit Log Filtering",
        ),
    ],
};

/// MySQL Enterprise Audit of 8.0.28 and later.
pub(super) const ENTERPRISE_8_0: Plugin = Plugin {
    variables: LEGACY_8_0_28,
    sources: &[
        Source::Manual("MySQL 8.0 Reference Manual", "8.4.5.11 Audit Log Reference"),
        Source::Manual(
            "MySQL 8.0 Reference Manual",
            "8.4.5.10 Legacy Mode Audit Log Filtering",
        ),
    ],
    ..ENTERPRISE_5_7
};

/// McAfee's (Trellix') AUDIT.
pub(super) const MCAFEE: Plugin = Plugin {
    name: "AUDIT",
    library: "libaudit_plugin.so",
    variables: &[
        Variable::boolean("audit_force_record_logins", "OFF"),
        Variable::boolean("audit_header_msg", "ON"),
        Variable::boolean("audit_json_file", "OFF"),
        Variable::integer("audit_json_file_bufsize", "1", 1, 262_144),
        Variable::boolean("audit_json_file_flush", "OFF"),
        Variable::integer("audit_json_file_sync", "0", 0, 4_294_967_295),
        Variable::text("audit_json_log_file", "mysql-audit.json"),
        Variable::boolean("audit_json_socket", "OFF"),
        Variable::text("audit_offsets", "").read_only(),
        Variable::text("audit_record_cmds", ""),
        Variable::text("audit_record_objs", ""),
        Variable::boolean("audit_uninstall_plugin", "OFF").read_only(),
        Variable::text("audit_whitelist_cmds", "BEGIN,COMMIT,PING"),
        Variable::text("audit_whitelist_users", ""),
    ],
    status: &[],
    unloading: Unloading::TwiceIf("audit_uninstall_plugin"),
    sources: &[
        Source::Code(
            "mysql-audit (AUDIT Plugin for MySQL)",
            "src/audit_plugin.cc: plugin system vars, is_remove_patches",
        ),
        Source::Unverified(
            "McAfee AUDIT: that INSTALL PLUGIN AUDIT succeeds where the offsets of the build are known",
        ),
    ],
};
