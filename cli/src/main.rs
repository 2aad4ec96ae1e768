//! `kubectl campaign`: plans a campaign before it is applied, follows it, prints what it found, runs it again.
//! Everything that decides is in the crate `campaign`; here are files, the API server and the terminal.

mod arguments;
mod cluster;
mod manifest;
mod plan;
mod report;
mod run;
mod table;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Command};

/// Why a command fails, in a sentence with what to do.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The manifest cannot be read.
    #[error("{0}")]
    Manifest(String),
    /// The operator would refuse the campaign.
    #[error("the campaign would be refused:\n{0}")]
    Refused(String),
    /// A layout is not understood, or does not fit the campaign.
    #[error("{0}")]
    Layout(String),
    /// The API server cannot be reached, or says no.
    #[error("{0}")]
    Cluster(String),
    /// The campaign has ended, and not as asked.
    #[error("{0}")]
    NotSucceeded(String),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run_command(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run_command(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Plan { name, file, scope } => plan::command(name.as_deref(), file.as_deref(), &scope).await,
        Command::Report { name, output, scope } => report::command(&name, output, &scope).await,
        Command::Table {
            names,
            layout,
            output,
            scope,
        } => table::command(&names, &layout, output, &scope).await,
        Command::Watch { name, scope } => watch::command(&name, &scope).await,
        Command::Run { name, token, scope } => run::command(&name, token, &scope).await,
    }
}
