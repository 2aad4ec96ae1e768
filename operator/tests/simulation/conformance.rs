//! Small scripts of API requests with the answers that a real API server gives. The simulation runs them against the
//! API server in memory; the end-to-end suite includes this file and runs the same against a real one. Depends on
//! nothing of either crate: `kube`, `http`, `futures`, `serde_json` and `tokio` only.

use std::time::Duration;

use futures::{AsyncBufReadExt, FutureExt, StreamExt, future::BoxFuture};
use http::Request;
use kube::{Client, client::Body};
use serde_json::{Value, json};

#[path = "conformance_scripts.rs"]
mod scripts;

pub(crate) use scripts::SCRIPTS;

/// One script: its name, what it does and the transcript that it must leave.
pub(crate) struct Script {
    pub(crate) name: &'static str,
    run: for<'a> fn(&'a mut Bench) -> BoxFuture<'a, ()>,
    pub(crate) expected: &'static [&'static str],
}

impl Script {
    /// Runs it in a namespace that exists and is empty; returns the transcript.
    pub(crate) async fn run(&self, client: Client, namespace: &str) -> Vec<String> {
        let mut bench = Bench {
            client,
            namespace: namespace.to_owned(),
            transcript: Vec::new(),
        };
        (self.run)(&mut bench).await;
        bench.transcript
    }
}

/// Group of the custom resource that the scripts use.
const GROUP: &str = "conformance.benchmark-campaign.dev";

/// A custom resource with a default, an enum, a bound, a rule and a status subresource.
pub(crate) fn definition() -> Value {
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema()},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("samples.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList"},
            "versions": [version],
        },
    })
}

fn schema() -> Value {
    let part = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "share": {"type": "integer", "default": 1}},
    });
    let spec = json!({
        "type": "object",
        "required": ["size"],
        "x-kubernetes-validations": [
            {"rule": "!has(self.name) || self.size > 1", "message": "a name needs a size above 1"},
        ],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"},
            "parts": {
                "type": "array", "maxItems": 3, "items": part,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            },
        },
    });
    json!({
        "type": "object",
        "required": ["spec"],
        "x-kubernetes-validations": [{
            "rule": "!has(oldSelf.status) || !has(oldSelf.status.started) || self.spec.size == oldSelf.spec.size",
            "message": "size is fixed once started",
        }],
        "properties": {
            "spec": spec,
            "status": {"type": "object", "properties": {
                "phase": {"type": "string"}, "started": {"type": "boolean"},
            }},
        },
    })
}

/// Makes the custom resource served; does nothing where it already is.
pub(crate) async fn install_definition(client: &Client) {
    let bench = Bench {
        client: client.clone(),
        namespace: "default".to_owned(),
        transcript: Vec::new(),
    };
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    bench.send("POST", path, Some(definition())).await;
    for _ in 0..100 {
        let (code, _) = bench.send("GET", "samples", None).await;
        if code == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the custom resource of the conformance scripts is not served");
}

/// A client in one namespace, and what was seen.
pub(crate) struct Bench {
    client: Client,
    namespace: String,
    transcript: Vec<String>,
}

impl Bench {
    /// Full path of a short one: `configmaps/a`, `samples/x/status`; an absolute path stays.
    fn path(&self, short: &str) -> String {
        if short.starts_with('/') {
            return short.to_owned();
        }
        let plural = short.split(['/', '?']).next().unwrap_or_default();
        let prefix = match plural {
            "samples" => format!("/apis/{GROUP}/v1"),
            "jobs" => "/apis/batch/v1".to_owned(),
            "leases" => "/apis/coordination.k8s.io/v1".to_owned(),
            _ => "/api/v1".to_owned(),
        };
        format!("{prefix}/namespaces/{}/{short}", self.namespace)
    }

    /// Sends a request. Methods are those of HTTP, with the patch types `MERGE`, `JSONPATCH`, `STRATEGIC`, `APPLY`,
    /// and `METADATA` for a GET of metadata only.
    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let (http_method, content_type) = match method {
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "JSONPATCH" => ("PATCH", "application/json-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            "METADATA" => ("GET", "application/json"),
            other => (other, "application/json"),
        };
        let accept = if method == "METADATA" {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        };
        let body = body
            .map(|value| value.to_string().into_bytes())
            .unwrap_or_default();
        let request = Request::builder()
            .method(http_method)
            .uri(self.path(path))
            .header("content-type", content_type)
            .header("accept", accept)
            .body(Body::from(body))
            .expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.expect("a body");
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// Sends a request and notes the code, the reason of a refusal, the refused fields, and the values at `show`.
    async fn call(&mut self, method: &str, path: &str, body: Value, show: &[&str]) -> Value {
        let body = (!body.is_null()).then_some(body);
        let (code, answer) = self.send(method, path, body).await;
        let mut line = format!("{method} {path} {code}").replace(&self.namespace, "NAMESPACE");
        if code >= 400 {
            line += &format!(" {}", answer["reason"].as_str().unwrap_or("-"));
            for cause in answer["details"]["causes"].as_array().into_iter().flatten() {
                line += &format!(" {}", cause["field"].as_str().unwrap_or("-"));
            }
        }
        for pointer in show {
            let value = answer.pointer(pointer).unwrap_or(&Value::Null);
            line += &format!(" {}={value}", pointer.rsplit('/').next().unwrap_or_default());
        }
        self.transcript.push(line);
        answer
    }

    /// Notes a fact.
    fn note(&mut self, text: impl Into<String>) {
        self.transcript.push(text.into());
    }

    /// Asks until a GET answers with this code, up to 30 s; notes whether it did.
    async fn wait_for(&mut self, path: &str, wanted: u16) {
        for _ in 0..150 {
            let (code, _) = self.send("GET", path, None).await;
            if code == wanted {
                self.note(format!("{path} became {wanted}").replace(&self.namespace, "NAMESPACE"));
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.note(format!("{path} never became {wanted}").replace(&self.namespace, "NAMESPACE"));
    }

    /// Gives background controllers time to see what was done.
    async fn pause(&self) {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    /// Whether a GET still answers 200 after some seconds.
    async fn stays(&mut self, path: &str) {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (code, _) = self.send("GET", path, None).await;
        self.note(format!("{path} after 3 s {code}"));
    }

    /// The first `count` events of a watch, as `TYPE name` (or `ERROR code reason`), each noted.
    async fn watch(&mut self, path: &str, count: usize) {
        let request = Request::get(self.path(path)).body(Vec::new()).expect("a request");
        let stream = self.client.request_stream(request).await.expect("an answer");
        let events = std::pin::pin!(stream.lines().take(count));
        let mut lines = Vec::new();
        let read = events.for_each(|line| {
            lines.extend(line);
            std::future::ready(())
        });
        let timely = tokio::time::timeout(Duration::from_secs(20), read).await.is_ok();
        for line in &lines {
            let event: Value = serde_json::from_str(line).unwrap_or(Value::Null);
            let object = &event["object"];
            let what = match event["type"].as_str() {
                Some("ERROR") => format!(
                    "ERROR {} {}",
                    object["code"],
                    object["reason"].as_str().unwrap_or("-")
                ),
                Some(word) => format!("{word} {}", object["metadata"]["name"].as_str().unwrap_or("-")),
                None => "no event".to_owned(),
            };
            self.note(what);
        }
        if !timely {
            self.note("no more events");
        }
    }
}

/// Boxes a script's future; the function pointers in the table need one type.
fn boxed<'a>(future: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, ()> {
    future.boxed()
}
