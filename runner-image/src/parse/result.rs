//! The typed result of one tool process. Figures are integers with the unit in their name; a figure that the capture
//! does not hold is null.
//! Only data: what makes a result acceptable is decided by the parser of each tool.

use serde::{Deserialize, Serialize};

/// What the tool was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Command {
    /// Apply load and report.
    Run,
    /// Create and fill tables (`pgbench -i`).
    Prepare,
    /// Read the tables into the server's cache.
    Prewarm,
    /// Drop the tables.
    Cleanup,
}

/// Why a result is not acceptable. The first ones say what is missing, the others name the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// The capture holds no report of the measured window.
    NoReport,
    /// A report was begun and not finished.
    IncompleteReport,
    /// The report counts no event (pgbench: no transaction).
    NoEvents,
    /// The exit code is not 0.
    ExitCode,
    /// The tool printed a FATAL message.
    Fatal,
    /// The run was aborted; what was reported covers a part of it.
    Aborted,
    /// A signal ended the tool (SIGKILL, SIGTERM).
    Killed,
    /// SIGINT ended the tool, or the runner was told to stop.
    Interrupted,
    /// The tool crashed (SIGSEGV, SIGABRT, …).
    Crashed,
    /// The time limit passed with transactions unfinished (`--forced-shutdown`).
    ForcedShutdown,
    /// Threads did not start within the tool's limit (30 s in sysbench 1.0).
    ThreadInitTimeout,
    /// The requested rate is more than the threads can do.
    RateOverload,
    /// prepare, prewarm or cleanup did not do every table.
    IncompleteTables,
    /// The server has no connection left.
    TooManyConnections,
    /// `max_prepared_stmt_count` is reached.
    MaxPreparedStmtCount,
    /// Login or privilege refused.
    AccessDenied,
    /// No server listens there.
    ConnectionRefused,
    /// The server did not answer in time.
    ConnectionTimeout,
    /// The host name has no address.
    UnknownHost,
    /// TLS could not be agreed on.
    TlsFailed,
    /// The server or a connection to it went away.
    ConnectionLost,
    /// There is no such database.
    UnknownDatabase,
    /// There is no such table: not prepared, or with fewer tables.
    MissingTable,
    /// A table to create is there already.
    TableExists,
    /// A deadlock that was not to be ignored.
    Deadlock,
    /// A lock wait timeout.
    LockWaitTimeout,
    /// A transaction could not be serialized.
    SerializationFailure,
    /// A duplicate key that was not to be ignored.
    DuplicateKey,
    /// The server is read-only.
    ReadOnlyServer,
    /// No space left.
    DiskFull,
    /// No memory left.
    OutOfMemory,
    /// Another SQL error.
    SqlError,
    /// The script failed outside of SQL.
    ScriptError,
    /// There is no such script or built-in test.
    UnknownScript,
    /// An option that the tool does not know.
    UnknownOption,
    /// A value that an option does not take.
    InvalidOption,
    /// No command was given.
    NoCommand,
}

/// What is worth knowing about an acceptable result; flags never change `acceptable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Flag {
    /// Intervals without a transaction, or one event that took a hundred times the percentile and over a second.
    Stalled,
    /// Errors that the tool was told to ignore.
    IgnoredErrors,
    /// Deadlocks that the tool retried (dialect 0.4 counts them).
    Deadlocks,
    /// Connections that were opened again.
    Reconnects,
    /// Transactions that were tried again.
    Retries,
    /// Transactions that failed for good (serialization, deadlock).
    FailedTransactions,
    /// Transactions that were never begun because they were late.
    SkippedTransactions,
    /// Interval lines are missing in the middle of the series.
    MissingIntervals,
    /// ALERT messages.
    Alerts,
    /// WARNING messages.
    Warnings,
    /// prepare made no secondary index.
    NoSecondaryIndex,
    /// Opening the connections took longer than was allowed for: the warm-up was shorter than asked for.
    ShortWarmUp,
}

/// The message behind a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// The reason that it explains.
    pub reason: Reason,
    /// What the tool said, or what was found, at most 240 characters.
    pub text: String,
}

/// The figures of the measured window: after the last checkpoint if there was one, else the whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Figures {
    /// Transactions per second, thousandths.
    pub tps_milli: Option<u64>,
    /// Queries per second, thousandths.
    pub qps_milli: Option<u64>,
    /// Shortest event, microseconds.
    pub latency_min_micros: Option<u64>,
    /// Mean event, microseconds.
    pub latency_mean_micros: Option<u64>,
    /// Longest event, microseconds.
    pub latency_max_micros: Option<u64>,
    /// Standard deviation of the events, microseconds.
    pub latency_stddev_micros: Option<u64>,
    /// The percentile named by `percentile`, as the tool printed it (steps of 1.8 % in sysbench), microseconds.
    pub latency_percentile_micros: Option<u64>,
    /// The same if it is the 95th.
    pub latency_p95_micros: Option<u64>,
    /// The same percentile, interpolated within its bucket of the histogram, microseconds.
    pub latency_percentile_interpolated_micros: Option<u64>,
    /// Sum of all events' times, microseconds.
    pub latency_sum_micros: Option<u64>,
    /// Transactions.
    pub transactions: Option<u64>,
    /// Queries, those of failed attempts included.
    pub queries: Option<u64>,
    /// Queries of the whole load: those of the window and, if there was a checkpoint, of the warm-up.
    pub queries_sent: Option<u64>,
    /// Reading queries.
    pub reads: Option<u64>,
    /// Writing queries.
    pub writes: Option<u64>,
    /// Other queries (BEGIN, COMMIT).
    pub others: Option<u64>,
    /// Errors that were ignored.
    pub ignored_errors: Option<u64>,
    /// Deadlocks (dialect 0.4 only, which retries them).
    pub deadlocks: Option<u64>,
    /// Connections opened again.
    pub reconnects: Option<u64>,
    /// Transactions that failed for good.
    pub failed_transactions: Option<u64>,
    /// Transactions that were tried more than once.
    pub retried_transactions: Option<u64>,
    /// Tries beyond the first.
    pub retries: Option<u64>,
    /// Transactions never begun.
    pub skipped_transactions: Option<u64>,
    /// Total time as printed, warm-up included, microseconds.
    pub total_time_micros: Option<u64>,
    /// Length of the measured window, microseconds.
    pub window_micros: Option<u64>,
    /// Events in the window.
    pub events: Option<u64>,
    /// Threads of the tool.
    pub threads: Option<u64>,
    /// Connections, where a tool tells them from its threads.
    pub clients: Option<u64>,
    /// Time to open the connections, or the mean time of one when each transaction opens its own; microseconds.
    pub connection_micros: Option<u64>,
    /// Seconds of the window without a transaction.
    pub stalled_seconds: Option<u64>,
}

/// One line of the intermediate report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interval {
    /// End of the interval, seconds since the load's start, warm-up included.
    pub second: u64,
    /// Threads that ran.
    pub threads: Option<u64>,
    /// Transactions per second, thousandths.
    pub tps_milli: Option<u64>,
    /// Queries per second, thousandths.
    pub qps_milli: Option<u64>,
    /// The percentile of the interval (of pgbench's own lines the mean), microseconds.
    pub latency_micros: Option<u64>,
    /// Errors per second, thousandths (pgbench: failed transactions).
    pub errors_milli: Option<u64>,
    /// Reconnects per second, thousandths.
    pub reconnects_milli: Option<u64>,
}

/// One bucket of the latency histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// The bucket's middle on a logarithmic scale, as printed, microseconds.
    pub value_micros: u64,
    /// Events in it.
    pub count: u64,
}

/// How evenly the threads worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fairness {
    /// Events per thread, mean, thousandths.
    pub events_mean_milli: Option<u64>,
    /// Their standard deviation, thousandths.
    pub events_stddev_milli: Option<u64>,
    /// Execution time per thread, mean, microseconds.
    pub time_mean_micros: Option<u64>,
    /// Its standard deviation, microseconds.
    pub time_stddev_micros: Option<u64>,
}

/// What prepare, prewarm or cleanup did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableWork {
    /// Tables created.
    pub created: u64,
    /// Tables that rows were inserted into.
    pub filled: u64,
    /// Tables that got a secondary index.
    pub indexed: u64,
    /// Tables read into the cache.
    pub prewarmed: u64,
    /// Tables dropped.
    pub dropped: u64,
    /// Rows announced, over all tables.
    pub rows: u64,
}

/// One script of a mix (pgbench).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Script {
    /// Its name.
    pub name: String,
    /// Its weight in the mix.
    pub weight: Option<u64>,
    /// Transactions.
    pub transactions: Option<u64>,
    /// Transactions per second, thousandths.
    pub tps_milli: Option<u64>,
    /// Mean latency, microseconds.
    pub latency_mean_micros: Option<u64>,
    /// Its standard deviation, microseconds.
    pub latency_stddev_micros: Option<u64>,
    /// Transactions that failed.
    pub failed_transactions: Option<u64>,
}

/// One command of a script (pgbench `-r`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    /// Index of its script in `scripts`; 0 if there is one script only.
    pub script: usize,
    /// Mean latency, microseconds.
    pub latency_mean_micros: u64,
    /// Failures (absent before PostgreSQL 15).
    pub failures: Option<u64>,
    /// Retries (with `--max-tries`).
    pub retries: Option<u64>,
    /// Its first line.
    pub text: String,
}

/// The result of one tool process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The tool's name.
    pub tool: String,
    /// The version that it printed.
    pub version: Option<String>,
    /// The dialect of its report: sysbench `1.1`, `1.0`, `0.5` or `0.4`.
    pub dialect: Option<String>,
    /// What it was asked to do.
    pub command: Command,
    /// Its exit code.
    pub exit_code: i32,
    /// The tool finished what was asked: exit code 0, a complete report with more than 0 events, nothing fatal.
    pub acceptable: bool,
    /// Why not; empty exactly if acceptable.
    pub reasons: Vec<Reason>,
    /// Messages behind the reasons.
    pub details: Vec<Detail>,
    /// What else is worth knowing.
    pub flags: Vec<Flag>,
    /// The percentile reported; null when disabled or not reported.
    pub percentile: Option<u64>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Interval lines of the measured window.
    pub series: Vec<Interval>,
    /// Interval lines of the warm-up, up to the last checkpoint.
    pub warmup_series: Vec<Interval>,
    /// Latency histogram of the window.
    pub histogram: Vec<Bucket>,
    /// How evenly the threads worked.
    pub fairness: Option<Fairness>,
    /// What a command other than `run` did.
    pub tables: Option<TableWork>,
    /// The scripts of a mix.
    pub scripts: Vec<Script>,
    /// Latency by statement.
    pub statements: Vec<Statement>,
}

/// Longest detail text, characters.
const DETAIL_LENGTH: usize = 240;

impl ToolResult {
    /// A result with nothing found yet.
    pub fn new(tool: &str, command: Command, exit_code: i32) -> Self {
        Self {
            tool: tool.to_owned(),
            version: None,
            dialect: None,
            command,
            exit_code,
            acceptable: false,
            reasons: Vec::new(),
            details: Vec::new(),
            flags: Vec::new(),
            percentile: None,
            figures: Figures::default(),
            series: Vec::new(),
            warmup_series: Vec::new(),
            histogram: Vec::new(),
            fairness: None,
            tables: None,
            scripts: Vec::new(),
            statements: Vec::new(),
        }
    }

    /// Adds a reason, once.
    pub fn refuse(&mut self, reason: Reason) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Adds a reason and, the first time, what it is about.
    pub fn refuse_because(&mut self, reason: Reason, text: &str) {
        if !self.details.iter().any(|detail| detail.reason == reason) {
            let text = text.trim().chars().take(DETAIL_LENGTH).collect();
            self.details.push(Detail { reason, text });
        }
        self.refuse(reason);
    }

    /// Adds a flag, once.
    pub fn flag(&mut self, flag: Flag) {
        if !self.flags.contains(&flag) {
            self.flags.push(flag);
        }
    }

    /// Orders reasons and flags and decides: acceptable exactly if nothing was refused.
    #[must_use]
    pub fn judged(mut self) -> Self {
        self.reasons.sort_unstable();
        self.details.sort_by_key(|detail| detail.reason);
        self.flags.sort_unstable();
        self.acceptable = self.reasons.is_empty();
        self
    }
}
