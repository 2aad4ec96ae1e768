//! `prepare` and `run` against real servers and real load generators.

// A test that can't go on fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod pgbench;
mod sysbench;
mod together;
