//! What every controller is given: the client, the databases, the clock, the settings of this installation.

use std::sync::Arc;

use database::{DatabaseAccess, DatabaseError};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};

use crate::{Clock, metrics::Metrics};

/// Settings of this installation, from flags and environment.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespaces watched; every namespace if empty.
    pub watch_namespaces: Vec<String>,
    /// Namespace of the operator itself: its leader lease and the leases of nodes live there.
    pub operator_namespace: String,
    /// Identity of this process in leases.
    pub identity: String,
    /// Image of the runner and agent.
    pub runner_image: String,
    /// Seconds after which a finished Job is removed by the cluster.
    pub job_ttl_seconds: i32,
}

/// Which objects the controllers of one set watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of every namespace.
    #[default]
    Cluster,
    /// Those of one namespace: needs no cluster-wide rights.
    Namespace(String),
}

impl Settings {
    /// What is watched: one scope for every namespace, or one a namespace.
    pub fn scopes(&self) -> Vec<Scope> {
        match self.watch_namespaces.as_slice() {
            [] => vec![Scope::Cluster],
            namespaces => namespaces.iter().cloned().map(Scope::Namespace).collect(),
        }
    }
}

/// What every controller is given.
#[derive(Clone)]
pub struct Context {
    /// What this set of controllers watches.
    pub scope: Scope,
    /// Client with our own retry policy (none inside: a failed call fails the reconcile, which is tried again).
    pub client: Client,
    /// The databases.
    pub database: Arc<dyn DatabaseAccess>,
    /// The clock.
    pub clock: Clock,
    /// Settings.
    pub settings: Arc<Settings>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
}

impl Context {
    /// The objects of a kind that this set of controllers watches.
    pub fn watched<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match &self.scope {
            Scope::Cluster => Api::all(self.client.clone()),
            Scope::Namespace(namespace) => Api::namespaced(self.client.clone(), namespace),
        }
    }

    /// The objects of a kind in one namespace.
    pub fn namespaced<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Why a reconcile failed; it is tried again with a growing delay.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not do what was asked.
    #[error("{doing}: {source}")]
    Kube {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        #[source]
        source: kube::Error,
    },
    /// Somebody else wrote the object since it was read: it is read again at once.
    #[error("{0} was changed meanwhile")]
    Conflict(&'static str),
    /// A database did not do what was asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// An object lacks what every stored object has.
    #[error("{0} has no {1}")]
    Incomplete(&'static str, &'static str),
    /// Another process leads now.
    #[error("leadership was lost: another operator may act now")]
    LeadershipLost,
    /// An answer took longer than allowed.
    #[error("no answer from the API server while {0}")]
    TimedOut(&'static str),
}

/// Result of a reconcile's step.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Turns an API error into ours: 409 is a conflict, everything else keeps its cause.
pub fn while_doing(doing: &'static str) -> impl FnOnce(kube::Error) -> Error {
    move |source| match &source {
        kube::Error::Api(status) if status.code == 409 && status.reason != "AlreadyExists" => {
            Error::Conflict(doing)
        }
        _ => Error::Kube { doing, source },
    }
}

/// Limit of one call to the API server.
pub const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Makes one call to the API server with a limit, and says what was being done if it fails.
pub async fn timed<T>(doing: &'static str, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Err(_) => Err(Error::TimedOut(doing)),
        Ok(result) => result.map_err(while_doing(doing)),
    }
}
