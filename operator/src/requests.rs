//! Counts the requests to the API server by verb and resource, so that what a run costs the cluster can be seen.
//! It looks at method and path only and changes nothing; what it does not know is `other`, so labels stay few.

use std::task::{Context, Poll};

use http::{Method, Request};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tower::{Layer, Service};

/// Labels: what was asked of the API server. Both come from fixed lists.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ApiRequest {
    /// Verb in the API server's words: get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: &'static str,
    /// Plural of the kind, with its subresource after a slash; `version` for questions about the server itself.
    pub resource: &'static str,
}

/// Number of requests by what they asked.
pub type ApiRequests = Family<ApiRequest, Counter>;

/// Resources that are told apart.
const RESOURCES: [&str; 17] = [
    "benchmarkcampaigns",
    "benchmarkcampaigns/status",
    "benchmarkruns",
    "benchmarkruns/status",
    "benchmarkschedules",
    "benchmarktargets",
    "benchmarktargets/status",
    "configmaps",
    "events",
    "jobs",
    "leases",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "pods",
    "secrets",
    "services",
];
const OTHER: &str = "other";

/// Wraps a client's service so that every request through it is counted.
#[derive(Clone, Debug)]
pub struct CountRequests {
    requests: ApiRequests,
}

impl CountRequests {
    /// Counts into this metric.
    pub fn new(requests: ApiRequests) -> Self {
        Self { requests }
    }
}

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            requests: self.requests.clone(),
        }
    }
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    requests: ApiRequests,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.requests.get_or_create(&asked(&request)).inc();
        self.inner.call(request)
    }
}

/// What a request asks: `/api/v1/…` and `/apis/GROUP/VERSION/…`, then `namespaces/NAME` or not, the resource, a name,
/// a subresource.
fn asked<B>(request: &Request<B>) -> ApiRequest {
    let mut parts = request.uri().path().split('/').filter(|part| !part.is_empty());
    let in_group = match parts.next() {
        Some("api") => parts.next().is_some(),
        Some("apis") => parts.next().is_some() && parts.next().is_some(),
        Some("version") => {
            return ApiRequest {
                verb: "get",
                resource: "version",
            };
        }
        _ => false,
    };
    let rest: Vec<&str> = if in_group { parts.collect() } else { Vec::new() };
    let (resource, name, subresource) = match rest.as_slice() {
        ["namespaces", _, resource, rest @ ..] | [resource, rest @ ..] => {
            (*resource, !rest.is_empty(), rest.get(1).copied())
        }
        [] => (OTHER, false, None),
    };
    let known = RESOURCES
        .iter()
        .copied()
        .find(|known| match (known.split_once('/'), subresource) {
            (None, None) => *known == resource,
            (Some((kind, sub)), Some(subresource)) => kind == resource && sub == subresource,
            _ => false,
        });
    let query = request.uri().query().unwrap_or_default();
    let watches = query
        .split('&')
        .any(|pair| matches!(pair, "watch" | "watch=true" | "watch=1"));
    ApiRequest {
        verb: verb(request.method(), name, watches),
        resource: known.unwrap_or(OTHER),
    }
}

fn verb(method: &Method, one: bool, watches: bool) -> &'static str {
    match (method.as_str(), one) {
        ("GET", _) if watches => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tower::ServiceExt as _;

    #[rstest]
    #[case(
        "GET",
        "/apis/benchmark-campaign.dev/v1alpha1/namespaces/bench/benchmarkruns/a",
        "get",
        "benchmarkruns"
    )]
    #[case(
        "PATCH",
        "/apis/benchmark-campaign.dev/v1alpha1/namespaces/bench/benchmarkruns/a/status?fieldManager=x",
        "patch",
        "benchmarkruns/status"
    )]
    #[case(
        "GET",
        "/apis/benchmark-campaign.dev/v1alpha1/benchmarkruns?&limit=250",
        "list",
        "benchmarkruns"
    )]
    #[case(
        "GET",
        "/api/v1/namespaces/bench/pods?&watch=true&timeoutSeconds=290",
        "watch",
        "pods"
    )]
    #[case("POST", "/apis/batch/v1/namespaces/bench/jobs?", "create", "jobs")]
    #[case(
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/system/leases/l?",
        "update",
        "leases"
    )]
    #[case("POST", "/apis/events.k8s.io/v1/namespaces/bench/events?", "create", "events")]
    #[case("DELETE", "/api/v1/namespaces/bench/pods/server?", "delete", "pods")]
    #[case("GET", "/api/v1/namespaces/bench", "get", "namespaces")]
    #[case("GET", "/api/v1/nodes/n", "get", "nodes")]
    #[case(
        "GET",
        "/apis/example.com/v1/namespaces/bench/secrets-of-mine/name",
        "get",
        "other"
    )]
    #[case("GET", "/api/v1/namespaces/bench/pods/server/log", "get", "other")]
    #[case("GET", "/version", "get", "version")]
    #[case("OPTIONS", "/", "other", "other")]
    fn a_request_is_named_by_verb_and_resource(
        #[case] method: &str,
        #[case] uri: &str,
        #[case] verb: &str,
        #[case] resource: &str,
    ) {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let named = asked(&request);
        assert_eq!((named.verb, named.resource), (verb, resource), "{method} {uri}");
    }

    #[tokio::test]
    async fn every_request_is_counted_once_and_passed_on() {
        let requests = ApiRequests::default();
        let answering = tower::service_fn(|request: Request<u8>| async move { Ok::<_, ()>(*request.body()) });
        let service = CountRequests::new(requests.clone()).layer(answering);
        for body in [3, 4] {
            let request = Request::post("/apis/batch/v1/namespaces/bench/jobs")
                .body(body)
                .unwrap();
            assert_eq!(service.clone().oneshot(request).await, Ok(body));
        }
        let label = ApiRequest {
            verb: "create",
            resource: "jobs",
        };
        assert_eq!(requests.get_or_create(&label).get(), 2);
    }
}
