//! Watches: a stream of lines that follows the history of one resource, with the faults a watch can meet.

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;
use serde_json::json;
use tokio::{
    sync::watch::Receiver,
    time::{Instant, sleep, sleep_until},
};

use super::{
    ApiServer,
    failure::Failure,
    kinds::Kind,
    read::render,
    request::{Actor, ApiRequest},
    selector::Selector,
    store::{Change, ChangeType, Version},
};

/// How long a watch lasts if the client does not say.
const DEFAULT_SECONDS: u64 = 1_800;

struct Watch {
    server: ApiServer,
    actor: Actor,
    kind: Arc<Kind>,
    namespace: Option<String>,
    selector: Selector,
    metadata_only: bool,
    bookmarks: bool,
    /// The newest revision that was looked at.
    seen: u64,
    newest: Receiver<u64>,
    deadline: Instant,
    lines: VecDeque<String>,
    ended: bool,
}

/// Opens a watch; the stream yields newline separated events.
pub(crate) fn open(
    server: &ApiServer,
    request: &ApiRequest,
) -> Result<impl Stream<Item = Result<Frame<Bytes>, io::Error>> + Send + use<>, Failure> {
    let selector = request.selector()?;
    let from = request.number("resourceVersion")?.unwrap_or(0);
    let initial_events = request.parameter("sendInitialEvents") == Some("true");
    let bookmarks = request.parameter("allowWatchBookmarks") == Some("true");
    let seconds = request.number("timeoutSeconds")?.unwrap_or(DEFAULT_SECONDS);
    let mut state = server.lock();
    let mut watch = Watch {
        server: server.clone(),
        actor: request.actor.clone(),
        kind: request.kind.clone(),
        namespace: request.namespace.clone(),
        selector,
        metadata_only: request.metadata_only,
        bookmarks,
        seen: from,
        newest: state.store.follow(request.kind.id),
        deadline: Instant::now() + Duration::from_secs(seconds),
        lines: VecDeque::new(),
        ended: false,
    };
    if from == 0 || initial_events {
        watch.seen = state.store.revision();
        let current: Vec<Arc<Version>> = state
            .store
            .list(watch.kind.id, watch.namespace.as_deref())
            .filter(|(_, version)| watch.selector.matches(&version.value))
            .map(|(_, version)| version.clone())
            .collect();
        for version in current {
            watch.push("ADDED", &version);
        }
        if initial_events {
            watch.push_bookmark(true);
        }
    }
    drop(state);
    Ok(futures::stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((Ok(Frame::data(Bytes::from(line))), watch))
    }))
}

impl Watch {
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            let newest = *self.newest.borrow_and_update();
            if newest > self.seen {
                self.read_changes().await;
                continue;
            }
            tokio::select! {
                biased;
                changed = self.newest.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                }
                () = sleep_until(self.deadline) => {
                    if self.bookmarks {
                        self.push_bookmark(false);
                    }
                    self.ended = true;
                }
            }
        }
    }

    async fn read_changes(&mut self) {
        let fate = self.server.lock().faults.watch_fate(&self.actor);
        if !fate.lag.is_zero() {
            sleep(fate.lag).await;
        }
        if fate.dropped {
            self.ended = true;
            return;
        }
        let changes = if fate.gone {
            None
        } else {
            let state = self.server.lock();
            state.store.changes_after(self.kind.id, self.seen)
        };
        let Some(changes) = changes else {
            let message = format!("too old resource version: {}", self.seen);
            let status = Failure::expired(message).to_value();
            let line = json!({"type": "ERROR", "object": status}).to_string();
            self.lines.push_back(format!("{line}\n"));
            self.ended = true;
            return;
        };
        for change in changes {
            self.seen = change.revision;
            self.translate(&change, fate.duplicated);
        }
    }

    /// What a change looks like through this watch's selector.
    fn translate(&mut self, change: &Change, twice: bool) {
        if self
            .namespace
            .as_ref()
            .is_some_and(|namespace| *namespace != change.key.namespace)
        {
            return;
        }
        let selected = |version: &Option<Arc<Version>>| {
            version
                .as_ref()
                .is_some_and(|version| self.selector.matches(&version.value))
        };
        let before = selected(&change.previous);
        let after = change.change != ChangeType::Deleted && self.selector.matches(&change.object.value);
        let word = match (before, after) {
            (false, false) => return,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        self.push(word, &change.object);
        if twice {
            self.push(word, &change.object);
        }
    }

    fn push(&mut self, word: &str, version: &Version) {
        let object = render(version, self.metadata_only);
        self.lines
            .push_back(format!("{{\"type\":\"{word}\",\"object\":{object}}}\n"));
    }

    fn push_bookmark(&mut self, initial_events_end: bool) {
        let mut metadata = json!({"resourceVersion": self.seen.to_string()});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = json!({
            "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata,
        });
        let line = json!({"type": "BOOKMARK", "object": object});
        self.lines.push_back(format!("{line}\n"));
    }
}
