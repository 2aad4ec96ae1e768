//! The operator's program: `operator run` (default) and `operator drain`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use kube::Config;
use kube::client::ClientBuilder;
use operator::context::Scope;
use operator::http::Readiness;
use operator::metrics::Metrics;
use operator::requests::CountRequests;
use operator::{Clock, Context, Settings};

/// Runs benchmark campaigns on Kubernetes.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the controllers (default).
    Run,
    /// Before an uninstall: suspends every campaign, waits until runs have ended and borrowed databases have back what they had.
    Drain {
        /// How long to wait at most, seconds.
        #[arg(long, default_value_t = 900)]
        timeout_seconds: u64,
    },
}

#[derive(clap::Args)]
struct Flags {
    /// Namespaces to watch, separated by commas; every namespace if empty.
    #[arg(
        long,
        env = "WATCH_NAMESPACES",
        value_delimiter = ',',
        default_value = "",
        global = true
    )]
    watch_namespaces: Vec<String>,
    /// Namespace of the operator (its leases live there).
    #[arg(long, env = "POD_NAMESPACE", default_value = "default", global = true)]
    operator_namespace: String,
    /// Identity of this process in leases.
    #[arg(long, env = "POD_NAME", default_value = "operator", global = true)]
    identity: String,
    /// Image of the runner and agent.
    #[arg(
        long,
        env = "RUNNER_IMAGE",
        default_value = "localhost/benchmark-campaign/runner:latest",
        global = true
    )]
    runner_image: String,
    /// Seconds after which a finished Job is removed.
    #[arg(long, default_value_t = 600, global = true)]
    job_ttl_seconds: i32,
    /// Address for /healthz, /readyz and /metrics.
    #[arg(long, default_value = "0.0.0.0:8080", global = true)]
    listen: std::net::SocketAddr,
    /// How logs are written.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "LOG_FORMAT", global = true)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Two TLS providers could be meant in this process; the first one named is the one used.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        eprintln!("a TLS provider is installed already");
        return ExitCode::FAILURE;
    }
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG_LEVEL")
        .unwrap_or_else(|_| "info,kube_client=off,kube_runtime=warn".into());
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false);
    match arguments.settings.log_format {
        LogFormat::Text => logs.with_ansi(false).init(),
        LogFormat::Json => logs.json().init(),
    }
    // One thread: deciding is cheap, and a second one would only take a core from somebody's measurement.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no runtime");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(start(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %error, "stopped");
            ExitCode::FAILURE
        }
    }
}

async fn start(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let flags = arguments.settings;
    let mut config = Config::infer().await?;
    // Kube's own retry repeats writes for minutes; a failed call fails the reconcile, which is tried again.
    config.default_retry = false;
    config.read_timeout = Some(Duration::from_secs(295));
    config.connect_timeout = Some(Duration::from_secs(10));
    let settings = Settings {
        watch_namespaces: flags
            .watch_namespaces
            .into_iter()
            .filter(|n| !n.is_empty())
            .collect(),
        operator_namespace: flags.operator_namespace,
        identity: flags.identity,
        runner_image: flags.runner_image,
        job_ttl_seconds: flags.job_ttl_seconds,
    };
    let metrics = Arc::new(Metrics::default());
    let counted = CountRequests::new(metrics.api_requests.clone());
    let context = Context {
        scope: Scope::Cluster,
        client: ClientBuilder::try_from(config)?.with_layer(&counted).build(),
        database: Arc::new(database::Databases),
        clock: Clock::wall(),
        settings: Arc::new(settings),
        metrics,
    };
    match arguments.command.unwrap_or(Command::Run) {
        Command::Drain { timeout_seconds } => {
            operator::drain::drain(&context, Duration::from_secs(timeout_seconds)).await?;
        }
        Command::Run => {
            let ready = Readiness::default();
            let listener = tokio::net::TcpListener::bind(flags.listen).await?;
            let router = operator::http::router(context.metrics.registry(), ready.clone());
            let served = axum::serve(listener, router);
            tokio::select! {
                ended = served => ended?,
                lost = operator::lead(context, ready, stop_signal()?) => lost?,
            }
        }
    }
    Ok(())
}

/// Completes when the process is asked to stop.
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + Sync + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
