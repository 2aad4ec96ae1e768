//! Dialect 1.1 (the development tree after 1.0): as 1.0, with `Throughput: events/s (eps), time elapsed` in place of
//! `General statistics`, and a warm-up (`--warmup-time`) that neither times nor reports count.

use super::{Dialect, v1_0};

pub(super) const DIALECT: Dialect = Dialect {
    name: "1.1",
    speaks: |version| version.starts_with("1.") && !version.starts_with("1.0"),
    only_here: |line| line.starts_with("events/s (eps):") || line.starts_with("time elapsed:"),
    interval: v1_0::interval,
    time_restarts_at_checkpoint: false,
    lines: v1_0::LINES,
};
