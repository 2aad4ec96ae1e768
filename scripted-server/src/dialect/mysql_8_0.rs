//! MySQL 8.0: Community and Enterprise.

use super::common::{ADMIN, ALL, MYSQL_8, NEW_STATEMENTS, STATUS};
use super::plugins::ENTERPRISE_8_0;
use super::{Authentication, Dialect, Source};

const MANUAL: &str = "MySQL 8.0 Reference Manual";

pub(super) const SOURCES: &[Source] = &[
    Source::Manual(MANUAL, "Server System Variables"),
    Source::Manual(MANUAL, "System Variable Privileges"),
    Source::Manual(MANUAL, "Persisted System Variables"),
    Source::Manual(MANUAL, "InnoDB Startup Options and System Variables"),
    Source::Manual(MANUAL, "SET Syntax for Variable Assignment"),
    Source::Manual(MANUAL, "RESET PERSIST Statement"),
    // Error 3707 where nothing supervises the server.
    Source::Manual(MANUAL, "RESTART Statement"),
    Source::Manual(MANUAL, "SHUTDOWN Statement"),
    Source::Manual(MANUAL, "INSTALL PLUGIN Statement"),
    Source::Manual(MANUAL, "Performance Schema variables_info Table"),
    Source::Manual(MANUAL, "Performance Schema persisted_variables Table"),
];

/// Community.
pub(super) const DIALECT: Dialect = Dialect {
    name: "mysql-8.0",
    version: "8.0.41",
    numbers: (8, 0, 41),
    comment: "MySQL Community Server - GPL",
    authentication: Authentication::CachingSha2,
    variables: &[ALL, NEW_STATEMENTS, MYSQL_8],
    status: STATUS,
    plugins: &[],
    components: &[],
    to_set: ADMIN,
    sources: SOURCES,
};

/// Enterprise.
pub(super) const ENTERPRISE: Dialect = Dialect {
    name: "mysql-enterprise-8.0",
    version: "8.0.41-commercial",
    comment: "MySQL Enterprise Server - Commercial",
    plugins: &[ENTERPRISE_8_0],
    ..DIALECT
};
