//! Entry point: arguments in, exit code out. Everything else is in the library.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod agent_command;
mod order_command;
mod parse_command;

/// The load generator of the benchmark campaign operator.
#[derive(Debug, Parser)]
#[command(name = "runner", version)]
struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Measure one run: claim it, apply load, report
    Run(order_command::Arguments),
    /// Make a workload's data, count its rows, mark it as made
    Prepare(order_command::Arguments),
    /// Serve what SQL can't tell, beside a managed database
    Agent(agent_command::Arguments),
    /// Print the typed result of a captured tool output as JSON
    Parse(parse_command::Arguments),
}

fn main() -> ExitCode {
    // Standard output carries results only.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    match Arguments::parse().command {
        Subcommands::Run(arguments) => order_command::run(&arguments),
        Subcommands::Prepare(arguments) => order_command::prepare(&arguments),
        Subcommands::Agent(arguments) => agent_command::execute(&arguments),
        Subcommands::Parse(arguments) => parse_command::execute(&arguments),
    }
}
