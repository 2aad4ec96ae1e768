//! Dialect 0.4: as 0.5, with `OLTP test statistics`, `deadlocks` (which the tool retries) and no errors or reconnects.

use super::{Dialect, v0_5};

pub(super) const DIALECT: Dialect = Dialect {
    name: "0.4",
    speaks: |version| version.starts_with("0.4"),
    only_here: |line| line.starts_with("deadlocks:"),
    interval: v0_5::interval,
    time_restarts_at_checkpoint: true,
    lines: v0_5::LINES,
};
