//! What the operator answers over HTTP: `/healthz`, `/readyz` and `/metrics`. Nothing else, and nothing secret.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::get};
use prometheus_client::registry::Registry;

/// Whether the process can do its work: it leads, or waits to lead.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says that the process is ready, or no longer.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }
}

/// The answers, for a listener of the caller's.
pub fn router(registry: Registry, ready: Readiness) -> Router {
    let registry = Arc::new(registry);
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz).with_state(ready))
        .route("/metrics", get(metrics).with_state(registry))
}

async fn readyz(State(ready): State<Readiness>) -> impl IntoResponse {
    if ready.0.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the API server has not answered yet\n",
        )
    }
}

async fn metrics(State(registry): State<Arc<Registry>>) -> impl IntoResponse {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => (
            StatusCode::OK,
            [(
                "content-type",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            )],
            text,
        )
            .into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Kind, Metrics};
    use axum::body::Body;
    use http::Request;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    async fn ask(router: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        (
            status,
            String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap(),
        )
    }

    #[tokio::test]
    async fn readiness_and_metrics_say_what_is() {
        let metrics = Metrics::default();
        metrics
            .reconciles
            .get_or_create(&Kind { kind: "BenchmarkRun" })
            .inc();
        let ready = Readiness::default();
        let router = router(metrics.registry(), ready.clone());
        assert_eq!(ask(&router, "/healthz").await.0, StatusCode::OK);
        assert_eq!(ask(&router, "/readyz").await.0, StatusCode::SERVICE_UNAVAILABLE);
        ready.set(true);
        assert_eq!(ask(&router, "/readyz").await.0, StatusCode::OK);
        let (status, text) = ask(&router, "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert!(
            text.contains("benchmark_campaign_reconciles_total{kind=\"BenchmarkRun\"} 1"),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
    }
}
