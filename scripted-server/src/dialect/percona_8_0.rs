//! Percona Server 8.0.

use super::plugins::PERCONA_AUDIT_LOG;
use super::{Dialect, Source, mysql_8_0};

/// See the module.
pub(super) const DIALECT: Dialect = Dialect {
    name: "percona-8.0",
    version: "8.0.36-28",
    numbers: (8, 0, 36),
    comment: "Percona Server (GPL), Release 28, Revision 47601f19",
    plugins: &[PERCONA_AUDIT_LOG],
    sources: &[
        Source::Manual("Percona Server for MySQL 8.0 documentation", "Audit log plugin"),
        // What Percona does not change is MySQL's.
        Source::Manual("MySQL 8.0 Reference Manual", "Server System Variables"),
    ],
    ..mysql_8_0::DIALECT
};
