//! Percona Server 5.7.

use super::common::{ALL, MYSQL_5_7, OLD_STATEMENTS, STATUS};
use super::plugins::PERCONA_AUDIT_LOG;
use super::{Dialect, Source, mysql_5_7};

/// See the module.
pub(super) const DIALECT: Dialect = Dialect {
    name: "percona-5.7",
    version: "5.7.44-48",
    comment: "Percona Server (GPL), Release 48, Revision 497f936a373",
    variables: &[ALL, OLD_STATEMENTS, MYSQL_5_7],
    status: STATUS,
    plugins: &[PERCONA_AUDIT_LOG],
    sources: &[
        Source::Manual("Percona Server 5.7 documentation", "Audit Log Plugin"),
        // What Percona does not change is MySQL's.
        Source::Manual("MySQL 5.7 Reference Manual", "Server System Variables"),
    ],
    ..mysql_5_7::DIALECT
};
