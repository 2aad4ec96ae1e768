//! The second container of a managed database pod: answers what SQL can't, over HTTP on the pod's address, to whoever has
//! the bearer token. It does nothing between requests and changes nothing but the logs that it is told to remove.
//! The client is `database::Agent`; the protocol is described there.

mod audit_log;
mod token;
mod usage;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use crds::audit::LogVolume;
use crds::runner::{AgentAudit, AgentUsage};
use database::engine::Layout;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::procfs::Kernel;
pub use token::Token;

/// What the agent knows.
#[derive(Debug)]
pub struct Agent {
    token: Token,
    volume: PathBuf,
    logs: Vec<PathBuf>,
    kernel: Kernel,
    /// One reader of logs at a time: two would share 50 milli-CPU and twice the memory.
    reading: Mutex<()>,
}

impl Agent {
    /// An agent beside a server whose data volume is mounted at `volume`.
    pub fn new(token: Token, volume: &Path, kernel: Kernel) -> Self {
        let layout = Layout {
            volume: volume.to_string_lossy().into_owned(),
            ..Layout::pod(0)
        };
        let logs =
            [LogVolume::Separate, LogVolume::WithData].map(|kind| PathBuf::from(layout.log_directory(kind)));
        Self {
            token,
            volume: volume.to_owned(),
            logs: logs.into(),
            kernel,
            reading: Mutex::new(()),
        }
    }

    /// Answers requests until `stop` ends.
    ///
    /// # Errors
    /// If the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        // Echoes measure the network: no waiting for more to send.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, self.router())
            .with_graceful_shutdown(stop)
            .await
    }

    fn router(self) -> Router {
        let agent = Arc::new(self);
        Router::new()
            .route("/v1/echo", get(|| async { StatusCode::NO_CONTENT }))
            .route("/v1/usage", get(usage))
            .route("/v1/audit", get(audit))
            .route("/v1/audit/rotate", post(rotate))
            .layer(middleware::from_fn_with_state(Arc::clone(&agent), authorize))
            .with_state(agent)
    }

    /// Reads logs on a thread of their own, one request after another.
    async fn reading(
        &self,
        read: impl FnOnce() -> io::Result<AgentAudit> + Send + 'static,
    ) -> Result<Json<AgentAudit>, Refusal> {
        let _one = self.reading.lock().await;
        let answer = tokio::task::spawn_blocking(read).await;
        answer
            .map_err(io::Error::other)
            .flatten()
            .map(Json)
            .map_err(Refusal::Failed)
    }
}

/// Why a request is refused.
#[derive(Debug)]
enum Refusal {
    NoLog(String),
    Failed(io::Error),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::NoLog(file) => (
                StatusCode::NOT_FOUND,
                format!("{file:?} is no audit log below the volume"),
            )
                .into_response(),
            Self::Failed(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct AuditQuery {
    file: String,
    #[serde(default)]
    from: u64,
    canary: Option<String>,
}

async fn authorize(State(agent): State<Arc<Agent>>, request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(header::AUTHORIZATION)
        .map(HeaderValue::as_bytes);
    if agent.token.permits(given) {
        next.run(request).await
    } else {
        (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response()
    }
}

async fn usage(State(agent): State<Arc<Agent>>) -> Json<AgentUsage> {
    Json(usage::read(&agent.kernel))
}

async fn audit(
    State(agent): State<Arc<Agent>>,
    Query(query): Query<AuditQuery>,
) -> Result<Json<AgentAudit>, Refusal> {
    let file = audit_log::locate(&agent.volume, &query.file).ok_or(Refusal::NoLog(query.file))?;
    agent
        .reading(move || audit_log::count(&file, query.from, query.canary.as_deref()))
        .await
}

async fn rotate(State(agent): State<Arc<Agent>>) -> Result<Json<AgentAudit>, Refusal> {
    let (kernel, logs) = (agent.kernel.clone(), agent.logs.clone());
    agent
        .reading(move || {
            let servers = kernel.processes(usage::SERVERS);
            let open = servers
                .iter()
                .flat_map(|server| kernel.open_files(*server))
                .collect();
            audit_log::discard(&logs, &open)
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use database::Agent as Client;
    use std::fs;

    async fn with_agent<T>(test: impl AsyncFnOnce(String) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("log")).unwrap();
        let record = "20261130 17:20:49,vm,sb,1,9,9,QUERY,d,'SELECT 1',0\n";
        fs::write(folder.path().join("log/server_audit.log"), record).unwrap();
        let agent = Agent::new(Token::new("secret").unwrap(), folder.path(), Kernel::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server = tokio::spawn(agent.serve(listener, async { stopped.await.unwrap_or(()) }));
        let result = test(address).await;
        stop.send(()).unwrap();
        server.await.unwrap().unwrap();
        result
    }

    #[tokio::test]
    async fn the_client_of_the_database_crate_is_answered() {
        with_agent(async |address: String| {
            let client = Client::new(&address, "secret");
            client.echo().await.unwrap();
            assert!(client.usage().await.unwrap().kernel.is_some());
            let file = "log/server_audit.log";
            let audit = client.audit(0, file, Some("SELECT 1")).await.unwrap();
            assert_eq!(
                (audit.events.get("QUERY"), audit.canary_found),
                (Some(&1), Some(true))
            );
            client.rotate().await.unwrap();
            assert_eq!(client.audit(0, file, None).await.unwrap().size, 0);
            let error = client
                .audit(0, "../server_audit.log", None)
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains("404"), "{error}");
        })
        .await;
    }

    #[tokio::test]
    async fn without_the_token_nothing_is_answered() {
        with_agent(async |address: String| {
            let client = Client::new(&address, "guess");
            for error in [
                client.echo().await.unwrap_err(),
                client.usage().await.unwrap_err(),
                client.audit(0, "log/server_audit.log", None).await.unwrap_err(),
                client.rotate().await.unwrap_err(),
            ] {
                assert!(error.to_string().contains("401"), "{error}");
            }
            assert_eq!(
                Client::new(&address, "secret")
                    .audit(0, "log/server_audit.log", None)
                    .await
                    .unwrap()
                    .bytes,
                51
            );
        })
        .await;
    }
}
