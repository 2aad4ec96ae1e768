//! `runner agent`: serves until SIGTERM. Exit code 1 if it can't.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use crds::names::AGENT_PORT;
use database::engine::VOLUME;
use runner::agent::{Agent, Token};
use runner::procfs::Kernel;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Address to listen on: the pod's
    #[arg(long, default_value_t = SocketAddr::from(([0, 0, 0, 0], AGENT_PORT)))]
    listen: SocketAddr,
    /// File with the bearer token that every request must carry
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// Where the volume with the server's audit logs is mounted
    #[arg(long, value_name = "FOLDER", default_value = VOLUME)]
    logs: PathBuf,
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "runner agent: {message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &Arguments) -> Result<(), String> {
    let token = Token::from_file(&arguments.token_file)?;
    let agent = Agent::new(token, &arguments.logs, Kernel::default());
    // One thread: the agent has a twentieth of a CPU.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|error| format!("no runtime: {error}"))?
        .block_on(async {
            let listener = TcpListener::bind(arguments.listen).await;
            let listener =
                listener.map_err(|error| format!("can't listen on {}: {error}", arguments.listen))?;
            let mut terminate =
                signal(SignalKind::terminate()).map_err(|error| format!("no signal handler: {error}"))?;
            let stop = async move {
                terminate.recv().await;
            };
            agent
                .serve(listener, stop)
                .await
                .map_err(|error| format!("serving failed: {error}"))
        })
}
