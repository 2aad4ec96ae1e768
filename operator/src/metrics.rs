//! Metrics in `OpenMetrics` text, without unbounded labels: kinds, outcomes and reasons only, never names.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::requests::ApiRequests;

/// Label: the kind reconciled.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Kind {
    /// Kind.
    pub kind: &'static str,
}

/// Label: outcome of a run.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Outcome {
    /// `Valid` or the first reason for which the run is invalid.
    pub outcome: String,
}

/// The operator's metrics.
#[derive(Default)]
pub struct Metrics {
    /// Reconciles begun, by kind.
    pub reconciles: Family<Kind, Counter>,
    /// Reconciles that failed and are tried again, by kind.
    pub reconcile_errors: Family<Kind, Counter>,
    /// Runs that ended, by outcome.
    pub runs: Family<Outcome, Counter>,
    /// Runs being measured now.
    pub runs_measuring: Gauge,
    /// 1 while this process leads.
    pub leader: Gauge,
    /// Borrowed targets whose original state could not be restored.
    pub restore_failures: Counter,
    /// Requests to the API server, by verb and resource.
    pub api_requests: ApiRequests,
}

impl Metrics {
    /// A registry with all metrics under the prefix `benchmark_campaign`.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("benchmark_campaign");
        registry.register("reconciles", "Reconciles begun", self.reconciles.clone());
        registry.register(
            "reconcile_errors",
            "Reconciles that failed and are tried again",
            self.reconcile_errors.clone(),
        );
        registry.register("runs", "Runs that ended, by outcome", self.runs.clone());
        registry.register(
            "runs_measuring",
            "Runs being measured now",
            self.runs_measuring.clone(),
        );
        registry.register("leader", "1 while this process leads", self.leader.clone());
        registry.register(
            "restore_failures",
            "Original states that could not be restored",
            self.restore_failures.clone(),
        );
        registry.register(
            "api_requests",
            "Requests to the API server, by verb and resource",
            self.api_requests.clone(),
        );
        registry
    }
}
