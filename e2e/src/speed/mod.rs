//! `cargo speed`: what the operator costs, measured on the local node and printed as a table beside its targets, the
//! shell loop and what others reach. It judges nothing by time: a missed target is a line of the table, not a failure.

pub mod campaign;
pub mod gaps;
pub mod http;
pub mod metrics;
pub mod process;
pub mod shell_loop;
pub mod stored;
pub mod table;
pub mod testbed;
pub mod timeline;
pub mod watching;

use std::thread::sleep;
use std::time::Duration;

use serde::Serialize;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::install;
use crate::progress::step;
use process::Memory;
use testbed::{NAMESPACE, Testbed};

/// How long the operator is left alone before its idle memory is read.
const IDLE: Duration = Duration::from_secs(15);
/// Seed of the stored runs.
const SEED: u64 = 1;

/// A part of the benchmark that can be run by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Idle memory, dead time and API requests of a small campaign.
    Campaign,
    /// The operator's CPU time in a measured window.
    Quiet,
    /// The shell loop of study 1.
    ShellLoop,
    /// Memory beside many finished runs (copies of one that `campaign` measured).
    Stored,
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only these parts; all if empty.
    pub only: Vec<Part>,
    /// Finished runs beside which memory is read.
    pub stored_runs: usize,
    /// Restarts of the shell loop.
    pub shell_restarts: u32,
    /// Leave campaigns, runs and namespaces for a closer look.
    pub keep: bool,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Everything measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The operator's memory, just started and idle.
    pub idle: Option<Memory>,
    /// The small campaign.
    pub between: Option<campaign::Between>,
    /// The operator in a measured window.
    pub quiet: Option<campaign::Quiet>,
    /// The shell loop.
    pub shell_loop: Option<shell_loop::ShellLoop>,
    /// Memory beside many finished runs.
    pub stored: Option<stored::Stored>,
    /// Why figures are missing: what was measured before is not lost with them.
    pub failures: Vec<String>,
}

impl Report {
    /// The result of one part, or a line that says why there is none.
    fn of<T>(&mut self, part: Part, measured: Result<T>) -> Option<T> {
        measured
            .map_err(|error| self.failures.push(format!("{part:?}: {error}")))
            .ok()
    }
}

/// Measures.
pub fn run(cache: &Cache, options: &Options) -> Result<Report> {
    let testbed = Testbed::ready(cache)?;
    let measured = measure(&testbed, options);
    if !options.keep {
        testbed.leave()?;
    }
    measured
}

fn measure(testbed: &Testbed, options: &Options) -> Result<Report> {
    let mut report = Report::default();
    if options.wants(Part::Campaign) {
        testbed.remove(&[NAMESPACE])?;
    }
    install::namespace(&testbed.cluster, NAMESPACE)?;
    let operator = testbed.install(NAMESPACE)?;
    if options.wants(Part::Campaign) {
        let idle = step("the operator at rest", || {
            sleep(IDLE);
            operator.process.memory()
        });
        report.idle = report.of(Part::Campaign, idle);
        report.between = report.of(Part::Campaign, campaign::between(testbed, &operator));
    }
    if options.wants(Part::Quiet) {
        report.quiet = report.of(Part::Quiet, campaign::quiet(testbed, &operator));
    }
    if options.wants(Part::ShellLoop) {
        let measured = shell_loop::run(testbed, options.shell_restarts);
        report.shell_loop = report.of(Part::ShellLoop, measured);
    }
    if options.wants(Part::Stored) {
        let measured = stored::measure(testbed, options.stored_runs, SEED);
        report.stored = report.of(Part::Stored, measured);
    }
    Ok(report)
}

/// The report and the table's lines as JSON.
pub fn to_json(report: &Report) -> Result<String> {
    let all = serde_json::json!({"figures": table::figures(report), "details": report});
    serde_json::to_string_pretty(&all).map_err(|error| Error::Plain(error.to_string()))
}
