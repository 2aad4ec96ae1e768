//! Client of the agent beside a managed server: what SQL cannot say. Used by the operator and by the runner; the
//! server side is in the runner's crate. Paths of log files are relative to the data volume's mount path.
//!
//! Protocol, HTTP/1.1 with `Authorization: Bearer TOKEN`, JSON in the shape of [`crds::runner`]:
//! `GET /v1/audit?file=FILE&from=OFFSET[&canary=WORD]` gives [`AgentAudit`] (a missing file has size 0; [`END`] as
//! offset reads nothing and only says the size; any other offset beyond the end means a log that was cut, and counts
//! from its begin),
//! `GET /v1/usage` gives [`AgentUsage`], `POST /v1/audit/rotate` removes every log that nothing writes to, `GET /v1/echo`
//! answers 204 at once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use crds::runner::{AgentAudit, AgentUsage};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;

use crate::access::{DatabaseError, Login, Result};

/// Bytes that an answer may have.
const ANSWER_LIMIT: usize = 1 << 20;
/// How long a short answer may take.
const SHORT: Duration = Duration::from_secs(5);
/// How long reading a log may take besides the time for its bytes.
const LOG: Duration = Duration::from_secs(30);
/// Bytes a second that an agent counts at least, on its small share of a CPU.
const COUNTED: u64 = 4 << 20;

/// An offset behind every log's end: only its size is asked for.
pub const END: i64 = i64::MAX;

/// A client of one agent. Connections are kept only between the calls on one value.
pub struct Agent {
    client: Client<HttpConnector, Empty<Bytes>>,
    base: String,
    token: String,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// A client of the agent at `base` (`http://ADDRESS:9180`).
    pub fn new(base: &str, token: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(Duration::from_secs(2)));
        connector.set_nodelay(true);
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            base: base.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
        }
    }

    /// The agent that a login names, if it names one.
    pub fn of(login: &Login) -> Option<Self> {
        let base = login.connection.agent.as_deref()?;
        Some(Self::new(base, login.agent_token.as_deref().unwrap_or_default()))
    }

    /// What a log holds from an offset on ([`END`]: only its size): its size, events by class, and whether the canary is among them.
    pub async fn audit(&self, from: i64, file: &str, canary: Option<&str>) -> Result<AgentAudit> {
        let file = encoded(file);
        let asked = format!("/v1/audit?file={file}&from={END}");
        let size: AgentAudit = self.json(Method::GET, &asked, SHORT).await?;
        if from == END {
            return Ok(size);
        }
        // A log may have gigabytes: how long counting may take depends on them.
        let bytes = u64::try_from(if from > size.size {
            size.size
        } else {
            size.size - from
        });
        let limit = LOG + Duration::from_secs(bytes.unwrap_or_default() / COUNTED);
        let mut path = format!("/v1/audit?file={file}&from={from}");
        if let Some(canary) = canary {
            path.push_str("&canary=");
            path.push_str(&encoded(canary));
        }
        self.json(Method::GET, &path, limit).await
    }

    /// Counters of the server process and the node.
    pub async fn usage(&self) -> Result<AgentUsage> {
        self.json(Method::GET, "/v1/usage", SHORT).await
    }

    /// Removes the logs that nothing writes to. Only while no mechanism records.
    pub async fn rotate(&self) -> Result<()> {
        self.call(Method::POST, "/v1/audit/rotate", LOG).await.map(|_| ())
    }

    /// One round trip; how long it took.
    pub async fn echo(&self) -> Result<Duration> {
        let start = Instant::now();
        self.call(Method::GET, "/v1/echo", SHORT).await?;
        Ok(start.elapsed())
    }

    async fn json<T: DeserializeOwned>(&self, method: Method, path: &str, limit: Duration) -> Result<T> {
        let body = self.call(method, path, limit).await?;
        serde_json::from_slice(&body)
            .map_err(|e| DatabaseError::Agent(format!("{}: not the answer expected: {e}", route(path))))
    }

    async fn call(&self, method: Method, path: &str, limit: Duration) -> Result<Bytes> {
        let failed = |message: String| DatabaseError::Agent(format!("{}: {message}", route(path)));
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(http::header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(http::header::CONTENT_LENGTH, 0)
            .body(Empty::new())
            .map_err(|e| failed(e.to_string()))?;
        let exchange = async {
            let answer = self
                .client
                .request(request)
                .await
                .map_err(|e| failed(chain(&e)))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_LIMIT)
                .collect()
                .await
                .map_err(|e| failed(e.to_string()))?
                .to_bytes();
            if status.is_success() {
                return Ok(body);
            }
            let said = String::from_utf8_lossy(&body);
            let said: String = said.chars().filter(|c| !c.is_control()).take(200).collect();
            Err(failed(format!("status {}: {said}", status.as_u16())))
        };
        tokio::time::timeout(limit, exchange)
            .await
            .unwrap_or_else(|_| Err(failed(format!("no answer within {} s", limit.as_secs()))))
    }
}

/// The path without its query, for messages.
fn route(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

/// An error with its causes: hyper's own texts say only "client error (Connect)".
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Percent-encoding of a query's value.
fn encoded(value: &str) -> String {
    value
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests;
