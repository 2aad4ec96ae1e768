//! MySQL 8.4 Community: `SHOW SLAVE STATUS` is gone, native passwords are off.

use super::{Dialect, Source, mysql_8_0};

const MANUAL: &str = "MySQL 8.4 Reference Manual";

/// See the module.
pub(super) const DIALECT: Dialect = Dialect {
    name: "mysql-8.4",
    version: "8.4.4",
    numbers: (8, 4, 4),
    sources: &[
        // Removed statements and variables, changed defaults.
        Source::Manual(MANUAL, "What Is New in MySQL 8.4 since MySQL 8.0"),
        Source::Manual(MANUAL, "Server System Variables"),
        Source::Manual(MANUAL, "InnoDB Startup Options and System Variables"),
        Source::Manual(MANUAL, "RESTART Statement"),
        Source::Unverified("MySQL 8.4: defaults of InnoDB that follow the machine's size are those of 8.0"),
    ],
    ..mysql_8_0::DIALECT
};
