//! `cargo speed`: measures what the operator costs and prints a table.

use std::process::ExitCode;

use clap::Parser;
use e2e::cache::Cache;
use e2e::error::Result;
use e2e::speed::{self, Options, Part, table};

/// Measures the operator on the local node: dead time between runs, API requests, CPU time and memory, beside the targets,
/// the shell loop and what others reach. About a quarter of an hour, on a machine that does nothing else.
#[derive(Parser)]
struct Arguments {
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Only these parts (may be given more than once).
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Finished runs beside which memory is read.
    #[arg(long, default_value_t = 10_000)]
    stored_runs: usize,
    /// Restarts of the shell loop, half a minute each.
    #[arg(long, default_value_t = 3)]
    shell_restarts: u32,
    /// Leave the campaigns and runs for a closer look.
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse_from(e2e::arguments());
    match measured(&arguments) {
        Ok((text, failures)) => {
            println!("{text}");
            for failure in &failures {
                eprintln!("error: {failure}");
            }
            if failures.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The figures, and why some are missing.
fn measured(arguments: &Arguments) -> Result<(String, Vec<String>)> {
    let cache = Cache::of_user()?;
    let options = Options {
        only: arguments.only.clone(),
        stored_runs: arguments.stored_runs,
        shell_restarts: arguments.shell_restarts,
        keep: arguments.keep,
    };
    let report = speed::run(&cache, &options)?;
    let text = if arguments.json {
        speed::to_json(&report)?
    } else {
        table::render(&report)
    };
    Ok((text, report.failures))
}
