//! TaurusDB, Huawei Cloud's MySQL: an 8.0 whose audit is switched by an HTTP API, with no plugin that SQL could load.

use super::{Dialect, Source, mysql_8_0};

/// See the module.
pub(super) const DIALECT: Dialect = Dialect {
    name: "taurusdb",
    version: "8.0.22-taurus",
    numbers: (8, 0, 22),
    comment: "TaurusDB",
    sources: &[
        Source::Manual("MySQL 8.0 Reference Manual", "Server System Variables"),
        Source::Unverified("TaurusDB: the texts of @@version and @@version_comment"),
        Source::Unverified("TaurusDB: that variables, ranges and errors are those of MySQL 8.0"),
    ],
    ..mysql_8_0::DIALECT
};
