//! pgbench's log files (`-l`): one line a transaction, or one an interval (`--aggregate-interval`). They are the only
//! source of percentiles for pgbench.
//! Lines that are neither are skipped: a log is cut off when its writer is killed.

use super::super::ToolResult;
use super::super::decimal::count;

/// What log files hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// Latencies of transactions, microseconds, in the order of the files.
    pub latencies: Vec<u64>,
    /// Transactions that failed.
    pub failed: u64,
    /// Transactions that were skipped.
    pub skipped: u64,
    /// Intervals, in the order of the files; each of pgbench's threads writes its own file.
    pub aggregates: Vec<Aggregate>,
}

/// One interval of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// Start, seconds of the epoch.
    pub start: u64,
    /// Transactions that ended in it.
    pub transactions: u64,
    /// Sum of their latencies, microseconds.
    pub latency_sum: u64,
    /// Shortest, microseconds.
    pub latency_min: u64,
    /// Longest, microseconds.
    pub latency_max: u64,
    /// Transactions skipped.
    pub skipped: u64,
}

/// Fewest columns of a line of either kind.
const COLUMNS: usize = 6;

/// One line of a transaction: client, number, latency, script, seconds, microseconds (then lag, retries).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// When it ended, microseconds of the epoch.
    pub ended: i64,
    /// Place of its script among those of the command.
    pub script: usize,
    /// What became of it.
    pub outcome: Outcome,
    /// Tries beyond the first; 0 where the log does not say.
    pub retries: u64,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ended well after so many microseconds, the time that it waited for its turn included.
    Done(u64),
    /// It failed for good.
    Failed,
    /// It was never begun, because it was late.
    Skipped,
}

/// Reads a transaction's line; `throttled` and `retried` say which columns the tool was asked for. `None` for anything
/// else: a line that was cut off has no number that could be trusted.
pub fn transaction(line: &str, throttled: bool, retried: bool) -> Option<Transaction> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let wanted = COLUMNS + usize::from(throttled) + usize::from(retried);
    if columns.len() != wanted {
        return None;
    }
    let outcome = match columns[2] {
        "skipped" => Outcome::Skipped,
        "failed" | "serialization" | "deadlock" => Outcome::Failed,
        latency => Outcome::Done(count(latency)?),
    };
    let ended = count(columns[4])?
        .checked_mul(1_000_000)?
        .checked_add(count(columns[5])?)?;
    Some(Transaction {
        ended: i64::try_from(ended).ok()?,
        script: usize::try_from(count(columns[3])?).ok()?,
        outcome,
        retries: if retried { count(columns[wanted - 1])? } else { 0 },
    })
}

/// An interval's line starts with seconds of the epoch, a transaction's with the number of its client.
const EPOCH_SECONDS: u64 = 1_000_000_000;

impl Log {
    /// Adds the lines of one file. A transaction's line is client, number, latency, script, seconds, microseconds
    /// (then lag, retries).
    pub fn add(&mut self, text: &str) {
        for line in text.lines() {
            let columns: Vec<&str> = line.split_whitespace().collect();
            if columns.len() < COLUMNS {
                continue;
            }
            if count(columns[0]).is_some_and(|first| first >= EPOCH_SECONDS) {
                self.aggregates.extend(aggregate(&columns));
                continue;
            }
            match columns[2] {
                "skipped" => self.skipped += 1,
                "failed" | "serialization" | "deadlock" => self.failed += 1,
                latency => self.latencies.extend(count(latency)),
            }
        }
    }

    /// The `rank`th percentile of the transactions by nearest rank, microseconds.
    pub fn percentile(&self, rank: u64) -> Option<u64> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let position = (sorted.len() as u128 * u128::from(rank.min(100)))
            .div_ceil(100)
            .max(1);
        sorted.get(usize::try_from(position - 1).ok()?).copied()
    }

    /// Fills the figures that only a log has: minimum, maximum, and the 95th percentile if transactions were logged.
    pub fn complete(&self, result: &mut ToolResult) {
        let figures = &mut result.figures;
        let busy = || {
            self.aggregates
                .iter()
                .filter(|interval| interval.transactions > 0)
        };
        figures.latency_min_micros = self
            .latencies
            .iter()
            .copied()
            .chain(busy().map(|interval| interval.latency_min))
            .min();
        figures.latency_max_micros = self
            .latencies
            .iter()
            .copied()
            .chain(busy().map(|interval| interval.latency_max))
            .max();
        if let Some(p95) = self.percentile(95) {
            result.percentile = Some(95);
            figures.latency_percentile_micros = Some(p95);
            figures.latency_p95_micros = Some(p95);
        }
    }
}

/// `start transactions sum sum² min max [lag sum, sum², min, max [skipped …]]`.
fn aggregate(columns: &[&str]) -> Option<Aggregate> {
    let column = |index: usize| columns.get(index).and_then(|text| count(text));
    Some(Aggregate {
        start: column(0)?,
        transactions: column(1)?,
        latency_sum: column(2)?,
        latency_min: column(4)?,
        latency_max: column(5)?,
        skipped: column(10).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Command;

    #[test]
    fn reads_transactions_and_their_percentile() {
        let mut log = Log::default();
        for number in 1..=100 {
            log.add(&format!("0 {number} {} 0 1796059149 5\n", number * 10));
        }
        log.add("1 101 skipped 0 1796059149 5\n1 102 failed 0 1796059149 5\n1 103 99");
        assert_eq!(
            (log.percentile(95), log.percentile(100), log.skipped, log.failed),
            (Some(950), Some(1000), 1, 1)
        );
        assert_eq!(Log::default().percentile(95), None);
    }

    #[test]
    fn reads_intervals_of_two_threads() {
        let mut log = Log::default();
        log.add(include_str!(
            "../../../fixtures/pgbench/log_aggregate_interval.txt"
        ));
        assert_eq!(log.aggregates.len(), 4);
        assert_eq!(
            log.aggregates
                .iter()
                .map(|interval| interval.transactions)
                .sum::<u64>(),
            29_581
        );
        let mut result = ToolResult::new("pgbench", Command::Run, 0);
        log.complete(&mut result);
        assert_eq!(result.figures.latency_min_micros, Some(17));
        assert_eq!(result.figures.latency_max_micros, Some(9278));
        assert_eq!(result.figures.latency_p95_micros, None);
    }
}
