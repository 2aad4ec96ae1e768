//! An API server in memory, faithful in what a controller can notice, driven through a real `kube::Client`.
//! One task serves everything on tokio's paused clock; there is no state outside `State` and no real time.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header, request::Parts};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{
    faults::{FaultPlan, Outcome},
    random::Dice,
    record::{Entry, Record, hash_of},
};

pub(crate) mod admission;
pub(crate) mod background;
pub(crate) mod cause;
pub(crate) mod delete;
pub(crate) mod failure;
pub(crate) mod kinds;
mod patch;
mod read;
pub(crate) mod request;
mod selector;
pub(crate) mod store;
mod structural;
mod validation;
mod watch_stream;
mod write;

use delete::DeleteOptions;
use failure::Failure;
use kinds::{Kind, Kinds};
use request::{Actor, ApiRequest, Verb};
use store::{Key, Store, Version};

type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

/// What each manager applied last to an object (or one subresource of it).
type AppliedSets = BTreeMap<(Key, String, Option<String>), Value>;

/// Everything the server holds.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) faults: FaultPlan,
    pub(crate) record: Record,
    /// Log of each container, by pod UID and container name.
    pub(crate) logs: BTreeMap<(String, String), String>,
    applied: AppliedSets,
    dice: Dice,
    started: Instant,
    crashes: watch::Sender<u64>,
}

/// A handle to the server; clones share it.
#[derive(Clone)]
pub(crate) struct ApiServer {
    state: Arc<Mutex<State>>,
}

/// Breaks an act step on purpose, between the operator and the server: for tests that the invariants catch it.
pub(crate) trait Interposer: Send + Sync {
    /// May change the body; an answer is given in the server's place, which then never hears of the request.
    fn intercept(&self, server: &ApiServer, method: &str, path: &str, body: &mut Value) -> Option<Value>;
}

/// 2026-01-01T00:00:00Z: when every simulation begins.
const EPOCH: i64 = 1_767_225_600;

impl State {
    /// Since the start of the simulation.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The virtual wall clock.
    pub(crate) fn now(&self) -> Timestamp {
        let start = Timestamp::from_second(EPOCH).expect("a date that exists");
        start + jiff::SignedDuration::try_from(self.elapsed()).expect("less than an age")
    }

    /// The virtual wall clock in the API's whole seconds, some seconds from now.
    pub(crate) fn time_text(&self, seconds_from_now: u64) -> String {
        let seconds = self.now().as_second() + seconds_from_now as i64;
        Timestamp::from_second(seconds)
            .expect("a date that exists")
            .to_string()
    }

    /// The virtual wall clock in whole seconds.
    pub(crate) fn now_text(&self) -> String {
        self.time_text(0)
    }

    /// What a written object changes about the server itself.
    fn after_write(&mut self, kind: &Arc<Kind>, version: &Version) {
        if kind.kind == "CustomResourceDefinition" {
            self.kinds.add_custom(&version.value);
        }
    }

    /// The key of an object by words, for models and tests.
    pub(crate) fn key(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Key {
        let kind = self
            .kinds
            .iter()
            .find(|kind| kind.group == group && kind.plural == plural)
            .unwrap_or_else(|| panic!("no resource {plural}.{group} is served"));
        Key {
            resource: kind.id,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// A change by a model (kubelet, controller), atomic and without faults. False if the object is gone.
    pub(crate) fn change(&mut self, actor: &str, key: &Key, edit: impl FnOnce(&mut Value)) -> bool {
        let Some(old) = self.store.get(key) else {
            return false;
        };
        let mut object = old.value.clone();
        edit(&mut object);
        if object == old.value {
            return true;
        }
        let version = self.put_or_finish_deletion(key, object);
        self.record_model(actor, "update", key, &version);
        true
    }

    /// A deletion by a model.
    pub(crate) fn remove(&mut self, actor: &str, key: &Key, options: &DeleteOptions) {
        let kind = self.kinds.get(key.resource).clone();
        let before = self.store.revision();
        if let Ok(deleted) = self.delete_object(&kind, key, options)
            && self.store.revision() != before
        {
            let version = deleted.version().clone();
            self.record_model(actor, "delete", key, &version);
        }
    }

    /// Hash of an object as it is written. Generated passwords and the wall-clock times of events differ in every
    /// process, so that these have none.
    fn digest(kind: &Kind, json: &str) -> u64 {
        if matches!(kind.kind.as_str(), "Secret" | "Event") {
            0
        } else {
            hash_of(&json)
        }
    }

    fn record_model(&mut self, actor: &str, verb: &'static str, key: &Key, version: &Version) {
        let entry = Entry {
            at: self.elapsed(),
            actor: actor.to_owned(),
            verb,
            resource: self.kinds.get(key.resource).plural.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            code: 200,
            fault: None,
            wrote: true,
            digest: Self::digest(self.kinds.get(key.resource), &version.json),
        };
        self.record.push(entry);
    }
}

/// An answer, before it becomes HTTP.
struct Reply {
    code: u16,
    body: String,
    /// Hash of the object that was written.
    digest: u64,
    wrote: bool,
}

impl ApiServer {
    /// A server with the built-in kinds, the namespaces `default` and `kube-system`, and these definitions.
    pub(crate) fn start(seed: u64, faults: FaultPlan, definitions: &[Kind]) -> Self {
        let server = Self {
            state: Arc::new(Mutex::new(State {
                store: Store::default(),
                kinds: Kinds::built_in(),
                faults,
                record: Record::default(),
                logs: BTreeMap::new(),
                applied: BTreeMap::new(),
                dice: Dice::new(seed, 3),
                started: Instant::now(),
                crashes: watch::Sender::new(0),
            })),
        };
        {
            let mut state = server.lock();
            for definition in definitions {
                state.kinds.add(definition.clone());
            }
            for name in ["default", "kube-system"] {
                state.add_namespace(name);
            }
        }
        background::spawn(&server, Dice::new(seed, 4));
        server
    }

    /// The state; never held across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the state is locked")
    }

    /// A client that meets the faults and whose writes may crash it: the operator under test.
    pub(crate) fn operator(&self, name: &str) -> Client {
        self.client(
            Actor {
                name: name.to_owned(),
                faults: true,
            },
            None,
        )
    }

    /// As [`Self::operator`], with an act step that is broken on purpose.
    pub(crate) fn broken_operator(&self, name: &str, interposer: Arc<dyn Interposer>) -> Client {
        let actor = Actor {
            name: name.to_owned(),
            faults: true,
        };
        self.client(actor, Some(interposer))
    }

    /// A client that always works: a person or the test itself.
    pub(crate) fn user(&self) -> Client {
        self.client(
            Actor {
                name: "user".to_owned(),
                faults: false,
            },
            None,
        )
    }

    fn client(&self, actor: Actor, interposer: Option<Arc<dyn Interposer>>) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            let actor = actor.clone();
            let interposer = interposer.clone();
            async move { server.receive(actor, interposer, request).await }
        });
        Client::new(service, "default")
    }

    /// Counts crashes that the fault plan wants; the harness aborts the operator on each change and starts it again.
    pub(crate) fn crashes(&self) -> watch::Receiver<u64> {
        self.lock().crashes.subscribe()
    }

    async fn receive(
        &self,
        actor: Actor,
        interposer: Option<Arc<dyn Interposer>>,
        request: Request<Body>,
    ) -> Result<Response<ResponseBody>, io::Error> {
        let (parts, body) = request.into_parts();
        let mut body = body
            .collect()
            .await
            .map_err(io::Error::other)?
            .to_bytes()
            .to_vec();
        if let Some(interposer) = interposer {
            let mut object = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let method = parts.method.as_str();
            if let Some(answer) = interposer.intercept(self, method, parts.uri.path(), &mut object) {
                // A failure brings its code along.
                let code = answer["code"].as_u64().and_then(|code| u16::try_from(code).ok());
                return Ok(json_response(code.unwrap_or(200), answer.to_string()));
            }
            if !object.is_null() {
                body = object.to_string().into_bytes();
            }
        }
        self.handle(actor, parts, body).await
    }

    async fn handle(
        &self,
        actor: Actor,
        parts: Parts,
        body: Vec<u8>,
    ) -> Result<Response<ResponseBody>, io::Error> {
        let parsed = ApiRequest::parse(&self.lock().kinds, actor.clone(), &parts, body);
        let request = match parsed {
            Ok(request) => request,
            Err(failure) => {
                return match self.serve_discovery(&parts) {
                    Some(value) => Ok(json_response(200, value.to_string())),
                    None => Ok(failure_response(&failure)),
                };
            }
        };
        let decision = self.lock().faults.decide(&actor, request.verb);
        sleep(decision.before).await;
        let fault = match &decision.outcome {
            Outcome::Refuse(word, failure) => {
                self.note(&request, failure.code, Some(word), false, 0);
                return Ok(failure_response(failure));
            }
            Outcome::LoseRequest => {
                self.note(&request, 0, Some("lost request"), false, 0);
                return Err(connection_reset());
            }
            Outcome::LoseResponse => Some("lost response"),
            Outcome::Conflict => {
                let name = request.key().name;
                let failure = Failure::stale(&request.kind, &name);
                self.note(&request, failure.code, Some("conflict"), false, 0);
                return Ok(failure_response(&failure));
            }
            Outcome::Stale => Some("stale list"),
            Outcome::Serve => None,
        };
        if request.verb == Verb::Watch {
            self.note(&request, 200, fault, false, 0);
            return Ok(match watch_stream::open(self, &request) {
                Ok(stream) => Response::new(StreamBody::new(stream).boxed_unsync()),
                Err(failure) => failure_response(&failure),
            });
        }
        let (served, crashed) = {
            let mut state = self.lock();
            let served = state.serve(&request, fault == Some("stale list"));
            let crashed = served.as_ref().is_ok_and(|reply| reply.wrote) && state.faults.count_write(&actor);
            (served, crashed)
        };
        let (code, wrote, digest) = match &served {
            Ok(reply) => (reply.code, reply.wrote, reply.digest),
            Err(failure) => (failure.code, false, 0),
        };
        self.note(&request, code, fault, wrote, digest);
        if crashed {
            self.lock().crashes.send_modify(|count| *count += 1);
            // The operator never hears of this write: the harness ends it here.
            std::future::pending::<()>().await;
        }
        sleep(decision.after).await;
        if fault == Some("lost response") {
            return Err(connection_reset());
        }
        Ok(match served {
            Ok(reply) if request.subresource.as_deref() == Some("log") => text_response(reply.body),
            Ok(reply) => json_response(reply.code, reply.body),
            Err(failure) => failure_response(&failure),
        })
    }

    fn note(&self, request: &ApiRequest, code: u16, fault: Option<&'static str>, wrote: bool, digest: u64) {
        let mut state = self.lock();
        let resource = match &request.subresource {
            Some(subresource) => format!("{}/{subresource}", request.kind.plural),
            None => request.kind.plural.clone(),
        };
        let entry = Entry {
            at: state.elapsed(),
            actor: request.actor.name.clone(),
            verb: request.verb.word(),
            resource,
            namespace: request.namespace.clone().unwrap_or_default(),
            // An event's name holds the wall-clock time.
            name: request
                .name
                .clone()
                .filter(|_| request.kind.kind != "Event")
                .unwrap_or_default(),
            code,
            fault,
            wrote,
            digest,
        };
        state.record.push(entry);
    }

    fn serve_discovery(&self, parts: &Parts) -> Option<Value> {
        let state = self.lock();
        let path = parts.uri.path().trim_end_matches('/');
        let group_version = match path {
            "/version" => {
                return Some(json!({
                    "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "clean",
                    "buildDate": "2026-01-01T00:00:00Z", "goVersion": "go1.26", "compiler": "gc", "platform": "linux/amd64",
                }));
            }
            "/api/v1" => "v1",
            other => other
                .strip_prefix("/apis/")
                .filter(|rest| rest.split('/').count() == 2)?,
        };
        let list = read::resource_list(group_version, state.kinds.iter());
        (!list["resources"].as_array()?.is_empty()).then_some(list)
    }
}

impl State {
    fn serve(&mut self, request: &ApiRequest, stale: bool) -> Result<Reply, Failure> {
        let read = |body| Reply {
            code: 200,
            body,
            digest: 0,
            wrote: false,
        };
        let written = |written: write::Written| Reply {
            code: written.code,
            body: written.version.json.clone(),
            digest: Self::digest(&request.kind, &written.version.json),
            wrote: written.changed,
        };
        match request.verb {
            Verb::Get => self.get(request).map(read),
            Verb::List => {
                // Only a caller that accepts any version can be shown the past.
                let any = request.parameter("resourceVersion") == Some("0");
                let past = (stale && any).then(|| self.store.revision().saturating_sub(20));
                match self.list(request, past) {
                    Err(failure) if past.is_some() && failure.code == 410 => {
                        self.list(request, None).map(read)
                    }
                    other => other.map(read),
                }
            }
            Verb::Create => self.create(request).map(written),
            Verb::Replace => self.replace(request).map(written),
            Verb::Patch => self.patch(request).map(written),
            Verb::Delete => {
                let before = self.store.revision();
                let (deleted, body) = self.delete(request)?;
                Ok(Reply {
                    code: 200,
                    body,
                    digest: Self::digest(&request.kind, &deleted.version().json),
                    wrote: self.store.revision() != before,
                })
            }
            Verb::DeleteCollection => {
                let before = self.store.revision();
                let body = self.delete_collection(request)?;
                Ok(Reply {
                    code: 200,
                    digest: hash_of(&body),
                    body,
                    wrote: self.store.revision() != before,
                })
            }
            Verb::Watch => Err(Failure::method_not_allowed()),
        }
    }

    fn add_namespace(&mut self, name: &str) {
        let key = self.key("", "namespaces", "", name);
        let kind = self.kinds.get(key.resource).clone();
        let mut object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "uid": self.dice.uid(), "creationTimestamp": self.now_text()},
        });
        admission::set_initial_values(&kind, &mut object);
        self.store.put(&key, object);
    }
}

fn connection_reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

fn json_response(code: u16, body: String) -> Response<ResponseBody> {
    response(code, "application/json", body)
}

fn text_response(body: String) -> Response<ResponseBody> {
    response(200, "text/plain", body)
}

fn failure_response(failure: &Failure) -> Response<ResponseBody> {
    if failure.plain {
        return response(failure.code, "text/plain", failure.message().to_owned());
    }
    let mut response = json_response(failure.code, failure.to_value().to_string());
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn response(code: u16, media_type: &'static str, body: String) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).expect("a code of HTTP");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    response
}
