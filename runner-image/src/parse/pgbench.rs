//! pgbench's output: the report on standard output, progress and errors on standard error.
//! Exit code 2 means aborted although a report with a `tps` line is printed; without `-l` there are no percentiles.

pub mod log;
mod report;
pub mod window;

#[cfg(test)]
mod tests;

use super::result::{Flag, Interval, Reason};
use super::text::{self, word_after};
use super::{Capture, Command, ToolResult, decimal, failure};
use report::Report;

/// Reads what pgbench left behind.
pub fn parse(capture: &Capture<'_>) -> ToolResult {
    let mut result = ToolResult::new("pgbench", capture.command, capture.exit_code);
    let stdout = text::lines(capture.stdout);
    let stderr = text::lines(capture.stderr);
    let lines = || stdout.iter().chain(&stderr);

    messages(&mut result, lines().map(|line| line.text));
    failure::judge_exit_code(&mut result);
    if capture.exit_code == 2 && capture.command == Command::Run {
        result.refuse_because(
            Reason::Aborted,
            "exit code 2: clients were aborted, the report covers a part of the run",
        );
    }
    result.version = lines().find_map(|line| version(line.text)).map(str::to_owned);
    match capture.command {
        Command::Run => {
            result.series = lines().filter_map(|line| progress(line.text)).collect();
            Report::of(&stdout).into_result(&mut result);
            flag(&mut result);
        }
        Command::Prepare | Command::Prewarm | Command::Cleanup => {
            if !lines().any(|line| line.text.starts_with("done in ") && line.text.contains(" s")) {
                result.refuse_because(Reason::IncompleteTables, "no 'done in … s' line");
            }
        }
    }
    result.judged()
}

fn messages<'a>(result: &mut ToolResult, lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        failure::judge_shell_message(result, line);
        failure::flag_message(result, line);
        if failure::is_fatal(line) {
            result.refuse_because(Reason::Fatal, line);
        }
        let aborted = line.contains("Run was aborted")
            || (line.contains(" aborted ") && (line.contains("client ") || line.contains("Client ")));
        if aborted {
            result.refuse_because(Reason::Aborted, line);
        }
        // An error that is followed by a retry or counted as a failed transaction is printed without a level
        // (`--verbose-errors`), so it is none of these.
        let logged = line.starts_with("pgbench: error:") || line.starts_with("pgbench: fatal:");
        if logged && !aborted && result.exit_code != 0 {
            result.refuse_because(Reason::Fatal, line);
        }
        let telling =
            logged || aborted || failure::is_fatal(line) || line.starts_with("connection to database");
        if let Some(reason) = failure::cause(line).filter(|_| telling) {
            result.refuse_because(reason, line);
        }
        let option = line.contains("unrecognized option")
            || line.contains("invalid option")
            || line.contains("must be in range");
        if option && result.exit_code != 0 {
            let reason = if line.contains("range") {
                Reason::InvalidOption
            } else {
                Reason::UnknownOption
            };
            result.refuse_because(reason, line);
        }
    }
}

/// `pgbench (15.18 (Debian …))`, `pgbench (PostgreSQL) 15.18 (Debian …)`, `pgbench (16.1, server 15.4)`.
fn version(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("pgbench (")?;
    let rest = rest.strip_prefix("PostgreSQL) ").unwrap_or(rest);
    let version = rest.split([' ', ',', ')']).next()?;
    version
        .starts_with(|first: char| first.is_ascii_digit())
        .then_some(version)
}

/// `progress: 1.0 s, 542.9 tps, lat 7.691 ms stddev 9.916, 124 failed, 430 retried, 2300 retries`.
///
/// With `--progress-timestamp` the time is the epoch's. The interval's length is the report interval, which the line
/// does not give: failures are per line, and taken as per second.
fn progress(line: &str) -> Option<Interval> {
    let rest = line.trim().strip_prefix("progress: ")?;
    let mut parts = rest.split(", ");
    let second = decimal::scaled(parts.next()?.strip_suffix(" s")?, 0)?;
    let mut interval = Interval {
        second,
        ..Interval::default()
    };
    for part in parts {
        if let Some(rate) = part.strip_suffix(" tps") {
            interval.tps_milli = decimal::milli(rate);
        } else if part.starts_with("lat ") {
            interval.latency_micros = word_after(part, "lat ").and_then(decimal::micros_of_millis);
        } else if let Some(failed) = part.strip_suffix(" failed") {
            interval.errors_milli = decimal::milli(failed);
        }
    }
    // Cut off before its latency, it is no interval.
    (interval.tps_milli.is_some() && rest.contains("stddev ")).then_some(interval)
}

fn flag(result: &mut ToolResult) {
    let stalled = result
        .series
        .iter()
        .filter(|interval| interval.tps_milli == Some(0))
        .count() as u64;
    if !result.series.is_empty() {
        result.figures.stalled_seconds = Some(stalled);
    }
    let positive = |figure: Option<u64>| figure.is_some_and(|figure| figure > 0);
    for (flag, found) in [
        (Flag::Stalled, stalled > 0),
        (
            Flag::FailedTransactions,
            positive(result.figures.failed_transactions),
        ),
        (Flag::Retries, positive(result.figures.retries)),
        (
            Flag::SkippedTransactions,
            positive(result.figures.skipped_transactions),
        ),
    ] {
        if found {
            result.flag(flag);
        }
    }
}
