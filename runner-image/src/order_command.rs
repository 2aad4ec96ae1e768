//! `runner run` and `runner prepare`: an order and credentials from files; the report to the termination message and, as
//! the last line, to standard output.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crds::runner::{
    Connection, EXIT_ALREADY_STARTED, EXIT_FAILED, EXIT_REPORTED, PrepareOrder, RunOrder, RunOutcome,
};
use database::engine::SECRET_DIRECTORY;
use runner::load::Site;
use runner::procfs::Kernel;
use runner::run::Told;
use runner::stop::Stop;
use runner::{login, prepare, report, run};
use serde::de::DeserializeOwned;

/// Most points of the series in the log line (its type's limit).
const LOG_POINTS: usize = 512;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// File with the order, JSON
    #[arg(long, value_name = "FILE", default_value = "/etc/benchmark/order/order.json")]
    order: PathBuf,
    /// Folder with the files username and password, and ca.crt and agent-token if there are any
    #[arg(long, value_name = "FOLDER", default_value = SECRET_DIRECTORY)]
    credentials: PathBuf,
    /// Folder with the workload's own scripts
    #[arg(long, value_name = "FOLDER", default_value = "/etc/benchmark/scripts")]
    scripts: PathBuf,
    /// Folder in memory for files that hold a secret while the tool runs
    #[arg(long, value_name = "FOLDER", default_value = "/tmp")]
    scratch: PathBuf,
    /// Which of several pods this is
    #[arg(long, env = "JOB_COMPLETION_INDEX")]
    index: Option<i32>,
    /// File for the report, at most 4,096 bytes
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    termination_log: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let order = read::<RunOrder>(&arguments.order);
    let told = carried_out(
        arguments,
        order,
        |order| order.connection.clone(),
        async |order, login, site, stop| run::run(order, arguments.index, login, site, stop).await,
    );
    tell(arguments, told)
}

pub(crate) fn prepare(arguments: &Arguments) -> ExitCode {
    let order = read::<PrepareOrder>(&arguments.order);
    let told = carried_out(
        arguments,
        order,
        |order| order.connection.clone(),
        async |order, login, site, stop| prepare::prepare(order, login, site, stop).await,
    );
    tell(arguments, told)
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<T, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("order {}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("order {}: {error}", file.display()))
}

fn carried_out<T>(
    arguments: &Arguments,
    order: Result<T, String>,
    connection: fn(&T) -> Connection,
    work: impl AsyncFnOnce(&T, &database::Login, &Site<'_>, &Stop) -> Told,
) -> Told {
    let attempt = || -> Result<Told, String> {
        let order = order?;
        let login = login::from_folder(&arguments.credentials, connection(&order))?;
        let site = Site {
            login: &login,
            scratch: &arguments.scratch,
            scripts: &arguments.scripts,
            cpus: Kernel::default()
                .cpus_allowed("self")
                .map_or(1, |cpus| cpus.len()),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime
            .map_err(|error| format!("no runtime: {error}"))?
            .block_on(async {
                let stop = Stop::on_signals().map_err(|error| format!("no signal handlers: {error}"))?;
                Ok(work(&order, &login, &site, &stop).await)
            })
    };
    attempt().unwrap_or_else(|message| Told::only(RunOutcome::Failed, message))
}

/// The termination message first: the kubelet reads it when the process has ended, a log may be cut.
fn tell(arguments: &Arguments, told: Told) -> ExitCode {
    let message = report::termination_message(&told.report, &told.intervals, told.step_seconds);
    let written = fs::write(&arguments.termination_log, &message);
    if let Err(error) = &written {
        let _ = writeln!(
            std::io::stderr(),
            "termination message {}: {error}",
            arguments.termination_log.display()
        );
    }
    let Told {
        mut report,
        intervals,
        step_seconds,
    } = told;
    report.series = report::series(&intervals, step_seconds, LOG_POINTS);
    match serde_json::to_string(&report) {
        Ok(line) => drop(writeln!(std::io::stdout(), "{line}")),
        Err(error) => drop(writeln!(
            std::io::stderr(),
            "the report can't be written as JSON: {error}"
        )),
    }
    let code = match report.outcome {
        RunOutcome::Completed if written.is_ok() => EXIT_REPORTED,
        RunOutcome::AlreadyStarted => EXIT_ALREADY_STARTED,
        _ => EXIT_FAILED,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
