//! What this release can measure: one list for each kind of thing. Whatever is not here is refused before anything
//! starts, so that nothing starts that cannot end. A new engine or mechanism is one line here.

use crds::audit::AuditType;
use crds::target::Engine;
use crds::workload::WorkloadType;

/// Database engines.
pub const ENGINES: &[Engine] = &[Engine::MariaDB, Engine::MySQL, Engine::PostgreSQL];
/// Engines whose servers can be borrowed: what they had can be put back.
pub const BORROWED: &[Engine] = &[Engine::MariaDB, Engine::MySQL, Engine::PostgreSQL];
/// Audit mechanisms.
pub const AUDITS: &[AuditType] = &[
    AuditType::None,
    AuditType::ServerAudit,
    AuditType::GeneralLog,
    AuditType::SlowLog,
    AuditType::PerconaAuditLog,
    AuditType::EnterpriseAuditLog,
    AuditType::McAfeeAudit,
    AuditType::LogStatement,
    AuditType::PgAudit,
];
/// Load generators.
pub const WORKLOADS: &[WorkloadType] = &[WorkloadType::Sysbench, WorkloadType::Pgbench];
/// Most pods that apply load together.
pub const GENERATORS: i32 = 64;
/// Whether thread counts can be searched for.
pub const THREAD_SEARCH: bool = false;

/// Most runs of one campaign, over all planned blocks.
pub const MOST_RUNS: usize = 10_000;
/// Most combinations of levels and thread counts before include and exclude.
pub const MOST_COMBINATIONS: usize = 1_000_000;

/// The mechanisms that exist for an engine, in any release.
pub fn audits_of(engine: Engine) -> &'static [AuditType] {
    match engine {
        Engine::MariaDB => &[
            AuditType::None,
            AuditType::ServerAudit,
            AuditType::GeneralLog,
            AuditType::SlowLog,
            AuditType::Custom,
        ],
        Engine::MySQL => &[
            AuditType::None,
            AuditType::GeneralLog,
            AuditType::SlowLog,
            AuditType::PerconaAuditLog,
            AuditType::PerconaAuditLogFilter,
            AuditType::EnterpriseAuditLog,
            AuditType::McAfeeAudit,
            AuditType::TaurusSqlAudit,
            AuditType::Custom,
        ],
        Engine::PostgreSQL => &[
            AuditType::None,
            AuditType::LogStatement,
            AuditType::PgAudit,
            AuditType::Custom,
        ],
    }
}

/// The load generators that speak to an engine.
pub fn workloads_of(engine: Engine) -> &'static [WorkloadType] {
    match engine {
        Engine::MariaDB | Engine::MySQL => &[WorkloadType::Sysbench],
        Engine::PostgreSQL => &[WorkloadType::Sysbench, WorkloadType::Pgbench],
    }
}

/// Scripts that come with sysbench.
pub const SCRIPTS: &[&str] = &[
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "select_random_points",
    "select_random_ranges",
    "bulk_insert",
];

/// Scripts that can only prepare.
pub const PREPARE_SCRIPTS: &[&str] = &["oltp_common"];

/// Parameters that the operator sets itself, and what to use instead.
pub const RESERVED: &[(&str, &str)] = &[
    ("server_audit_", "an audit setting of type ServerAudit"),
    ("general_log", "an audit setting of type GeneralLog"),
    ("slow_query_log", "an audit setting of type SlowLog"),
    ("long_query_time", "an audit setting of type SlowLog"),
    ("log_slow_query", "an audit setting of type SlowLog"),
    ("log_output", "an audit setting of type GeneralLog or SlowLog"),
    (
        "audit_log_",
        "an audit setting of type PerconaAuditLog or EnterpriseAuditLog",
    ),
    ("audit_json_file", "an audit setting of type McAfeeAudit"),
    ("audit_json_log_file", "an audit setting of type McAfeeAudit"),
    ("secure_file_priv", "nothing: the operator reads a file with it"),
    ("mysqlx", "nothing: the load uses the classic protocol"),
    (
        "persisted_globals_load",
        "nothing: what somebody persisted would override the configuration",
    ),
    ("log_statement", "an audit setting of type LogStatement"),
    ("pgaudit.", "an audit setting of type PgAudit"),
    (
        "logging_collector",
        "nothing: the log is the same file in every arm",
    ),
    (
        "log_destination",
        "nothing: the log is the same file in every arm",
    ),
    ("log_directory", "log: {volume: …} of an audit setting"),
    ("log_filename", "nothing: the operator chooses it"),
    ("log_file_mode", "nothing: the agent reads the log"),
    ("log_line_prefix", "nothing: records are counted by it"),
    ("log_timezone", "nothing: records are counted by their prefix"),
    ("lc_messages", "nothing: translated records cannot be counted"),
    ("log_rotation_age", "nothing: a log that rotates loses records"),
    ("log_rotation_size", "nothing: a log that rotates loses records"),
    (
        "log_truncate_on_rotation",
        "nothing: a log that is cut loses records",
    ),
    ("allow_alter_system", "nothing: auditing is switched with it"),
    ("restart_after_crash", "nothing: a boot is proved once"),
    ("data_directory", "nothing: the operator chooses it"),
    ("config_file", "nothing: the operator chooses it"),
    ("hba_file", "nothing: it admits the operator's login"),
    ("ident_file", "nothing: the operator chooses it"),
    ("external_pid_file", "nothing: the operator chooses it"),
    ("listen_addresses", "nothing: the operator chooses it"),
    ("unix_socket_directories", "nothing: the operator chooses it"),
    ("include", "nothing: the file is complete"),
    ("plugin_load", "an audit setting"),
    ("plugin_dir", "an image whose server finds its plugins"),
    ("datadir", "nothing: the operator chooses it"),
    ("socket", "nothing: the operator chooses it"),
    ("port", "nothing: the operator chooses it"),
    ("bind_address", "nothing: the operator chooses it"),
    ("pid_file", "nothing: the operator chooses it"),
    ("init_file", "nothing: the operator makes its own login with it"),
    (
        "skip_grant_tables",
        "nothing: the operator logs in with a password",
    ),
    ("skip_networking", "nothing: the load comes over the network"),
    ("read_only", "nothing: the data must be made"),
    ("innodb_buffer_pool_load_at_startup", "cache: {state: Dumped}"),
    ("innodb_buffer_pool_dump_at_shutdown", "cache: {state: Dumped}"),
    ("innodb_buffer_pool_dump_pct", "cache: {state: Dumped}"),
];

/// Why a parameter may not be set, if it may not: what to use instead.
pub fn reserved(parameter: &str) -> Option<&'static str> {
    RESERVED
        .iter()
        .find(|(name, _)| {
            parameter == *name
                || (name.ends_with(['_', '.'])
                    || *name == "include"
                    || *name == "plugin_load"
                    || *name == "general_log"
                    || *name == "log_slow_query")
                    && parameter.starts_with(name)
        })
        .map(|(_, instead)| *instead)
}

/// Names in a sentence: `A, B or C`.
pub fn one_of<T: std::fmt::Debug>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}
