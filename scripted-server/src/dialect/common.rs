//! Variables that several versions share. Names, scopes, ranges and defaults: each version's Reference Manual, chapters
//! "Server System Variables" and "InnoDB Startup Options and System Variables".

use super::{Kind, Variable};

const UNSIGNED: i128 = 18_446_744_073_709_551_615;
const UNSIGNED_32: i128 = 4_294_967_295;

/// Of every version.
pub(super) const ALL: &[Variable] = &[
    Variable::boolean("autocommit", "ON").both(),
    Variable::text("datadir", "/var/lib/mysql/").read_only(),
    Variable::boolean("general_log", "OFF"),
    Variable::text("general_log_file", "/var/lib/mysql/scripted.log"),
    Variable::boolean("innodb_adaptive_hash_index", "ON"),
    Variable::integer("innodb_flush_log_at_trx_commit", "1", 0, 2),
    Variable::integer("innodb_io_capacity", "200", 100, UNSIGNED),
    Variable::integer("innodb_lock_wait_timeout", "50", 1, 1_073_741_824).both(),
    Variable::integer("join_buffer_size", "262144", 128, UNSIGNED).both(),
    Variable::integer("lock_wait_timeout", "31536000", 1, 31_536_000).both(),
    Variable::new("log_output", Kind::Words(&["TABLE", "FILE", "NONE"]), "FILE"),
    Variable::new("long_query_time", Kind::Real(0.0, 31_536_000.0), "10.000000").both(),
    Variable::integer("max_connections", "151", 1, 100_000),
    Variable::integer("min_examined_row_limit", "0", 0, UNSIGNED).both(),
    Variable::integer("port", "3306", 0, 65_535).read_only(),
    Variable::integer("pseudo_thread_id", "0", 0, UNSIGNED).session(),
    Variable::boolean("slow_query_log", "OFF"),
    Variable::text("slow_query_log_file", "/var/lib/mysql/scripted-slow.log"),
    Variable::new(
        "sql_mode",
        Kind::Words(&[
            "ERROR_FOR_DIVISION_BY_ZERO",
            "NO_ENGINE_SUBSTITUTION",
            "NO_ZERO_DATE",
            "NO_ZERO_IN_DATE",
            "ONLY_FULL_GROUP_BY",
            "STRICT_ALL_TABLES",
            "STRICT_TRANS_TABLES",
        ]),
        "NO_ENGINE_SUBSTITUTION",
    )
    .both(),
    Variable::integer("wait_timeout", "28800", 1, 31_536_000).both(),
];

/// Of 5.7 and before 8.0.18: the most prepared statements.
pub(super) const OLD_STATEMENTS: &[Variable] = &[Variable::integer(
    "max_prepared_stmt_count",
    "16382",
    0,
    1_048_576,
)];

/// Since 8.0.18.
pub(super) const NEW_STATEMENTS: &[Variable] = &[Variable::integer(
    "max_prepared_stmt_count",
    "16382",
    0,
    4_194_304,
)];

/// Of 5.7: the buffer pool can be resized while the server runs.
pub(super) const MYSQL_5_7: &[Variable] = &[
    Variable::new(
        "innodb_buffer_pool_size",
        Kind::Integer(5_242_880, UNSIGNED, 1),
        "134217728",
    ),
    Variable::text("innodb_flush_method", "").read_only(),
    Variable::integer("innodb_log_file_size", "50331648", 4_194_304, 549_755_813_888).read_only(),
    Variable::integer("innodb_log_files_in_group", "2", 2, 100).read_only(),
    Variable::boolean("log_bin", "OFF").read_only(),
    Variable::integer("sync_binlog", "1", 0, UNSIGNED_32),
    Variable::word("tx_isolation", "REPEATABLE-READ", ISOLATION).both(),
];

/// Of 8.0 and 8.4.
pub(super) const MYSQL_8: &[Variable] = &[
    Variable::integer("information_schema_stats_expiry", "86400", 0, 31_536_000).both(),
    Variable::new(
        "innodb_buffer_pool_size",
        Kind::Integer(5_242_880, UNSIGNED, 1),
        "134217728",
    ),
    Variable::word(
        "innodb_flush_method",
        "fsync",
        &[
            "fsync",
            "O_DSYNC",
            "littlesync",
            "nosync",
            "O_DIRECT",
            "O_DIRECT_NO_FSYNC",
        ],
    )
    .read_only(),
    Variable::integer(
        "innodb_redo_log_capacity",
        "104857600",
        8_388_608,
        549_755_813_888,
    ),
    Variable::boolean("log_bin", "ON").read_only(),
    Variable::boolean("persisted_globals_load", "ON").read_only(),
    Variable::integer("sync_binlog", "1", 0, UNSIGNED_32),
    Variable::word("transaction_isolation", "REPEATABLE-READ", ISOLATION).both(),
];

pub(super) const ISOLATION: &[&str] = &[
    "READ-UNCOMMITTED",
    "READ-COMMITTED",
    "REPEATABLE-READ",
    "SERIALIZABLE",
];

/// Status of every version after a start.
pub(super) const STATUS: &[(&str, &str)] = &[
    (
        "Innodb_buffer_pool_load_status",
        "Buffer pool(s) load completed at 260101 00:00:00",
    ),
    ("Innodb_buffer_pool_pages_data", "100"),
    ("Innodb_buffer_pool_pages_free", "8000"),
    ("Innodb_buffer_pool_read_requests", "1000"),
    ("Innodb_buffer_pool_reads", "100"),
    ("Innodb_data_written", "0"),
    ("Innodb_os_log_written", "0"),
    ("Innodb_rows_deleted", "0"),
    ("Innodb_rows_inserted", "0"),
    ("Innodb_rows_updated", "0"),
];

/// Who may set global variables in 5.7.
pub(super) const SUPER: &str = "SUPER";
/// The same since 8.0.
pub(super) const ADMIN: &str = "SUPER or SYSTEM_VARIABLES_ADMIN";
