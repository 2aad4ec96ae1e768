//! MySQL 5.6: the buffer pool is fixed at the start, no statement ends the server, a session holds one lock.

use super::common::{ALL, ISOLATION, OLD_STATEMENTS, STATUS, SUPER};
use super::{Authentication, Dialect, Kind, Source, Variable};

const MANUAL: &str = "MySQL 5.6 Reference Manual";

const MYSQL_5_6: &[Variable] = &[
    Variable::new(
        "innodb_buffer_pool_size",
        Kind::Integer(5_242_880, 18_446_744_073_709_551_615, 1),
        "134217728",
    )
    .read_only(),
    Variable::text("innodb_flush_method", "").read_only(),
    Variable::integer("innodb_log_file_size", "50331648", 1_048_576, 549_755_813_888).read_only(),
    Variable::integer("innodb_log_files_in_group", "2", 2, 100).read_only(),
    Variable::boolean("log_bin", "OFF").read_only(),
    Variable::integer("sync_binlog", "0", 0, 4_294_967_295),
    Variable::word("tx_isolation", "REPEATABLE-READ", ISOLATION).both(),
];

/// See the module.
pub(super) const DIALECT: Dialect = Dialect {
    name: "mysql-5.6",
    version: "5.6.51",
    numbers: (5, 6, 51),
    comment: "MySQL Community Server (GPL)",
    authentication: Authentication::Native,
    variables: &[ALL, OLD_STATEMENTS, MYSQL_5_6],
    status: STATUS,
    plugins: &[],
    components: &[],
    to_set: SUPER,
    sources: &[
        Source::Manual(MANUAL, "Server System Variables"),
        Source::Manual(MANUAL, "InnoDB Startup Options and System Variables"),
        Source::Manual(MANUAL, "SET Syntax for Variable Assignment"),
        // GET_LOCK() releases the lock that the session had.
        Source::Manual(MANUAL, "Locking Functions"),
        // The SHUTDOWN statement came with 5.7.9: "SHUTDOWN Statement" of the next manual.
        Source::Manual("MySQL 5.7 Reference Manual", "SHUTDOWN Statement"),
        Source::Manual(MANUAL, "SHOW SLAVE STATUS Statement"),
    ],
};
