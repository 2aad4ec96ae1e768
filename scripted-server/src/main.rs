//! `scripted-server --dialect NAME --listen ADDRESS`: one scripted server, until it is told to end. Login and password come
//! from the environment or from files, never from arguments.

use std::env::VarError;
use std::process::ExitCode;

use clap::Parser;
use scripted_server::{Account, Listening, Server, dialect};

/// A server that speaks the MySQL protocol and answers as a vendor's manual says.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Which server: see docs/verified.md.
    #[arg(long)]
    dialect: String,
    /// Address to listen at.
    #[arg(long, default_value = "127.0.0.1:3306")]
    listen: String,
    /// Whether something brings the server back when it ends by RESTART.
    #[arg(long)]
    supervised: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match serve(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(arguments: Arguments) -> Result<(), String> {
    let dialect = dialect::find(&arguments.dialect)?;
    let account = Account::all(
        &secret("SCRIPTED_SERVER_USER")?,
        &secret("SCRIPTED_SERVER_PASSWORD")?,
    );
    let mut server = Server::new(dialect, account);
    server.supervise(arguments.supervised);
    let listening = Listening::start(server, &arguments.listen)
        .await
        .map_err(|error| format!("cannot listen at {}: {error}", arguments.listen))?;
    println!("{} listens at {}", dialect.name, listening.address());
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| error.to_string())?;
    tokio::select! {
        ended = tokio::signal::ctrl_c() => ended.map_err(|error| error.to_string()),
        _ = terminate.recv() => Ok(()),
    }
}

/// The value of an environment variable, or what is in the file that the variable with `_FILE` names.
fn secret(name: &str) -> Result<String, String> {
    let file = format!("{name}_FILE");
    match (std::env::var(name), std::env::var(&file)) {
        (Ok(value), Err(VarError::NotPresent)) => Ok(value),
        (Err(VarError::NotPresent), Ok(path)) => std::fs::read_to_string(&path)
            .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
            .map_err(|error| format!("{file}: {path} cannot be read: {error}")),
        (Ok(_), Ok(_)) => Err(format!("{name} and {file} are both set: set one")),
        _ => Err(format!("set {name}, or {file} to a file that holds it")),
    }
}
