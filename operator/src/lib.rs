//! The operator: one controller a kind, each in three steps that its files show: observe, decide (crate `campaign`,
//! pure), act. [`run`] starts them all on a client and a [`DatabaseAccess`](database::DatabaseAccess), so that the
//! simulation runs exactly what the binary runs.

pub mod backoff;
pub mod campaign;
pub mod clock;
pub mod context;
pub mod drain;
pub mod holder;
pub mod http;
pub mod leader;
mod listing;
mod lock;
pub mod login;
pub mod metrics;
mod newer;
pub mod node_lease;
pub mod requests;
pub mod run;
pub mod target;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, join_all};

pub use clock::Clock;
pub use context::{Context, Error, Settings};

/// Completes when the controllers are to stop; every controller is given a clone.
pub type Shutdown = Shared<BoxFuture<'static, ()>>;

/// A [`Shutdown`] from any future.
pub fn shutdown_on(stop: impl Future<Output = ()> + Send + 'static) -> Shutdown {
    stop.boxed().shared()
}

/// Runs the controllers of every kind for everything that is watched, until `shutdown` completes and what was begun
/// has ended. Leadership is the caller's business.
pub async fn run_controllers(context: Context, shutdown: Shutdown) {
    let controllers = context.settings.scopes().into_iter().flat_map(|scope| {
        let context = Context {
            scope,
            ..context.clone()
        };
        [
            target::controller(context.clone(), shutdown.clone()).boxed(),
            run::controller(context.clone(), shutdown.clone()).boxed(),
            campaign::controller(context, shutdown.clone()).boxed(),
        ]
    });
    join_all(controllers).await;
}

/// Waits to lead, runs the controllers while leading, and gives the lease up at the end.
///
/// Returns an error if leadership was lost: the process is to be restarted rather than to go on as a second leader.
pub async fn lead(
    context: Context,
    ready: http::Readiness,
    stop: impl Future<Output = ()> + Send + 'static,
) -> context::Result<()> {
    let stop = shutdown_on(stop);
    let answered = context.client.apiserver_version();
    match answered.await {
        Ok(version) => tracing::info!(version = %version.git_version, "the API server answers"),
        Err(source) => {
            return Err(Error::Kube {
                doing: "asking the API server for its version",
                source,
            });
        }
    }
    ready.set(true);
    let leadership = tokio::select! {
        leadership = leader::elect(&context) => leadership,
        () = stop.clone() => return Ok(()),
    };
    let controllers = run_controllers(context.clone(), stop);
    let outcome = tokio::select! {
        () = controllers => Ok(()),
        () = leadership.hold(&context) => Err(Error::LeadershipLost),
    };
    ready.set(false);
    if outcome.is_ok() {
        leader::release(&context).await;
    }
    outcome
}
