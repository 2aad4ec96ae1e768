//! An agent for tests: the protocol of [`crate::agent`] over the files of a [`super::TestServer`], as small as can be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crds::runner::{AgentAudit, AgentUsage};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::audit;

/// A running agent; it ends with the test's runtime.
pub struct TestAgent {
    base: String,
}

const TOKEN: &str = "test-token";

impl TestAgent {
    /// Starts an agent for this data volume.
    pub async fn start(volume: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let volume = PathBuf::from(volume);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, volume.clone()));
            }
        });
        Self {
            base: format!("http://{address}"),
        }
    }

    /// Base URL.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Bearer token.
    pub fn token(&self) -> &str {
        TOKEN
    }
}

async fn serve(mut stream: TcpStream, volume: PathBuf) {
    let mut request = Vec::new();
    loop {
        while !request.windows(4).any(|w| w == b"\r\n\r\n") {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => request.extend_from_slice(&buffer[..read]),
            }
        }
        let head = String::from_utf8_lossy(&request).into_owned();
        request.clear();
        let authorised = head.lines().any(|l| {
            l.to_ascii_lowercase().starts_with("authorization:") && l.ends_with(&format!("Bearer {TOKEN}"))
        });
        let line = head.lines().next().unwrap_or_default();
        let (status, body) = if authorised {
            answer(line, &volume)
        } else {
            (401, "who are you".to_owned())
        };
        let reply = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(line: &str, volume: &std::path::Path) -> (u16, String) {
    let target = line.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query: BTreeMap<&str, &str> = query.split('&').filter_map(|p| p.split_once('=')).collect();
    match (line.split(' ').next(), path) {
        (Some("GET"), "/v1/audit") => {
            let file = query.get("file").copied().unwrap_or_default();
            let from: usize = query.get("from").and_then(|f| f.parse().ok()).unwrap_or_default();
            let content = std::fs::read(volume.join(file)).unwrap_or_default();
            let size_only = query.get("from") == Some(&crate::agent::END.to_string().as_str());
            let start = if size_only || from <= content.len() {
                from
            } else {
                0
            };
            let new = content.get(start..).unwrap_or_default();
            let mut events = BTreeMap::new();
            if let Some(mechanism) = audit::by_log_name(file) {
                for class in new.split(|b| *b == b'\n').filter_map(|l| mechanism.classify(l)) {
                    *events.entry(class.to_owned()).or_insert(0) += 1;
                }
            }
            let audit = AgentAudit {
                size: content.len() as i64,
                bytes: new.len() as i64,
                events,
                canary_found: query
                    .get("canary")
                    .map(|word| String::from_utf8_lossy(new).contains(word)),
                truncated: from > content.len() && !size_only,
            };
            (200, serde_json::to_string(&audit).expect("JSON"))
        }
        (Some("GET"), "/v1/usage") => {
            let usage = AgentUsage {
                server_cpus: vec![0, 1],
                dirty_bytes: Some(0),
                kernel: Some("6.1.0-test".to_owned()),
                ..AgentUsage::default()
            };
            (200, serde_json::to_string(&usage).expect("JSON"))
        }
        (Some("POST"), "/v1/audit/rotate") => {
            for directory in ["log", "data-log"] {
                for entry in std::fs::read_dir(volume.join(directory))
                    .into_iter()
                    .flatten()
                    .flatten()
                {
                    // As the real one: what is still written to stays.
                    if !is_open(&entry.path()) {
                        let _ = std::fs::remove_file(entry.path());
                    }
                }
            }
            (204, String::new())
        }
        (Some("GET"), "/v1/echo") => (204, String::new()),
        _ => (404, "no such thing".to_owned()),
    }
}

/// Whether a process of a server with one fixed log, which is never closed, has this file open.
fn is_open(path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |path: &std::path::Path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let wanted = identity(path);
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|process| {
            std::fs::read_to_string(process.path().join("comm")).is_ok_and(|c| c.trim() == "postgres")
        })
        .filter_map(|process| std::fs::read_dir(process.path().join("fd")).ok())
        .flat_map(Iterator::flatten)
        .any(|file| identity(&file.path()) == wanted)
}
