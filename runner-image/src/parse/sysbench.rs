//! sysbench's output. Dialects differ in their interval lines and in what their report's times cover; each is a file in
//! `sysbench/` and a line in [`DIALECTS`].
//! Judges one process; whether a run as a whole is valid (boots, starved generator, …) is decided elsewhere.

mod judge;
mod report;
mod tables;
mod v0_4;
mod v0_5;
mod v1_0;
mod v1_1;

#[cfg(test)]
mod tests;

use super::result::Interval;
use super::{Capture, Command, ToolResult, failure, text};
use report::Reading;

/// What tells one generation of sysbench's output from another.
struct Dialect {
    /// Its name in the result.
    name: &'static str,
    /// Whether the version (`1.0.20`) speaks it.
    speaks: fn(version: &str) -> bool,
    /// Whether a report line, trimmed, occurs in this dialect only: used where the first line was lost.
    only_here: fn(line: &str) -> bool,
    /// Reads the remainder of an interval line.
    interval: fn(second: u64, rest: &str) -> Option<Interval>,
    /// Whether `total time` starts anew at a checkpoint; else it counts from the start of the load.
    time_restarts_at_checkpoint: bool,
    /// Whether the report must hold a line for a percentile (0.x prints none for 0 events).
    lines: &'static [report::Item],
}

/// Every dialect, the newest first.
const DIALECTS: &[Dialect] = &[v1_1::DIALECT, v1_0::DIALECT, v0_5::DIALECT, v0_4::DIALECT];

/// Reads what sysbench left behind.
pub fn parse(capture: &Capture<'_>) -> ToolResult {
    let mut result = ToolResult::new("sysbench", capture.command, capture.exit_code);
    let stdout = text::lines(capture.stdout);
    let stderr = text::lines(capture.stderr);

    let reading = Reading::of(&stdout);
    judge::messages(&mut result, stdout.iter().chain(&stderr).map(|line| line.text));
    failure::judge_exit_code(&mut result);
    result.version.clone_from(&reading.version);
    result.dialect = reading.dialect().map(|dialect| dialect.name.to_owned());
    match capture.command {
        Command::Run => judge::run(&mut result, reading),
        Command::Prepare | Command::Prewarm | Command::Cleanup => tables::judge(&mut result, &stdout),
    }
    result.judged()
}
