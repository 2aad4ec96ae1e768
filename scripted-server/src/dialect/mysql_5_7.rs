//! MySQL 5.7: Community, Enterprise, and Community with McAfee's plugin in its plugin directory.

use super::common::{ALL, MYSQL_5_7, OLD_STATEMENTS, STATUS, SUPER};
use super::plugins::{ENTERPRISE_5_7, MCAFEE};
use super::{Authentication, Dialect, Source};

const MANUAL: &str = "MySQL 5.7 Reference Manual";

pub(super) const SOURCES: &[Source] = &[
    // Names, scopes, ranges, defaults; 1193, 1238, 1228, 1231, 1232 and the warning 1292 of a value that is cut.
    Source::Manual(MANUAL, "Server System Variables"),
    Source::Manual(MANUAL, "System Variable Privileges"),
    Source::Manual(MANUAL, "InnoDB Startup Options and System Variables"),
    // No SET PERSIST, no RESTART; SHUTDOWN since 5.7.9.
    Source::Manual(MANUAL, "SET Syntax for Variable Assignment"),
    Source::Manual(MANUAL, "SHUTDOWN Statement"),
    Source::Manual(MANUAL, "INSTALL PLUGIN Statement"),
    Source::Manual(MANUAL, "SHOW SLAVE STATUS Statement"),
];

/// Community.
pub(super) const DIALECT: Dialect = Dialect {
    name: "mysql-5.7",
    version: "5.7.44",
    numbers: (5, 7, 44),
    comment: "MySQL Community Server (GPL)",
    authentication: Authentication::Native,
    variables: &[ALL, OLD_STATEMENTS, MYSQL_5_7],
    status: STATUS,
    plugins: &[],
    components: &[],
    to_set: SUPER,
    sources: SOURCES,
};

/// Enterprise.
pub(super) const ENTERPRISE: Dialect = Dialect {
    name: "mysql-enterprise-5.7",
    version: "5.7.44-enterprise-commercial-advanced",
    comment: "MySQL Enterprise Server - Advanced Edition (Commercial)",
    plugins: &[ENTERPRISE_5_7],
    ..DIALECT
};

/// Community with McAfee's plugin.
pub(super) const WITH_MCAFEE: Dialect = Dialect {
    name: "mysql-5.7-mcafee",
    plugins: &[MCAFEE],
    ..DIALECT
};
