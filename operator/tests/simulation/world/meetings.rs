//! Where the runners of one load meet in the simulation: they find the first one by the name that the cluster's DNS would
//! give its pod, and notice when it goes, as it notices them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::sync::watch;

use crate::cluster::Process;

/// How far the runners of one Job have come.
#[derive(Debug, Default)]
struct Meeting {
    ready: BTreeSet<i32>,
    ended: BTreeSet<i32>,
    /// Place of the load in the ledger, once it has begun.
    load: Option<usize>,
    first_gone: bool,
    lost: bool,
}

type Room = Arc<watch::Sender<Meeting>>;

/// All meetings, by the UID of the Job.
#[derive(Clone, Default)]
pub(crate) struct Meetings(Arc<Mutex<HashMap<String, Room>>>);

impl Meetings {
    fn room(&self, process: &Process) -> Room {
        let job = process.pod["metadata"]["ownerReferences"][0]["uid"]
            .as_str()
            .unwrap_or_default();
        let mut rooms = self.0.lock().expect("not poisoned");
        rooms.entry(job.to_owned()).or_default().clone()
    }

    /// The first one begins to wait.
    pub(crate) fn first(&self, process: &Process) -> First {
        First(self.room(process))
    }

    /// Another one comes, if it can find the first one by this name.
    pub(crate) fn other(&self, process: &Process, host: &str, index: i32) -> Option<Other> {
        let (name, service) = host.split_once('.')?;
        let namespace = process.pod["metadata"]["namespace"].as_str()?;
        let state = process.server.lock();
        let key = state.key("", "services", namespace, service);
        let selector = state.store.get(&key)?.value["spec"]["selector"]
            .as_object()?
            .clone();
        let job = process.pod["metadata"]["ownerReferences"][0]["uid"].as_str()?;
        let pods = state.key("", "pods", "", "").resource;
        let found = state
            .store
            .dependents_of(job)
            .into_iter()
            .filter(|key| key.resource == pods)
            .filter_map(|key| state.store.get(&key))
            .any(|pod| {
                let pod: &Value = &pod.value;
                pod["spec"]["hostname"] == name
                    && pod["spec"]["subdomain"] == service
                    && selector
                        .iter()
                        .all(|(label, value)| pod["metadata"]["labels"][label] == *value)
                    && !pod["status"]["podIP"].is_null()
            });
        drop(state);
        found.then(|| Other {
            room: self.room(process),
            index,
            ended: false,
        })
    }
}

/// The runner of index 0. Dropped, it has gone.
pub(crate) struct First(Room);

impl Drop for First {
    fn drop(&mut self) {
        self.0.send_modify(|meeting| meeting.first_gone = true);
    }
}

async fn until(room: &Room, reached: impl Fn(&Meeting) -> bool) {
    let _ = room.subscribe().wait_for(|meeting| reached(meeting)).await;
}

impl First {
    /// Whether all others came, once that is decided.
    pub(crate) async fn gathered(&self, others: usize) -> bool {
        until(&self.0, |meeting| meeting.lost || meeting.ready.len() == others).await;
        !self.0.borrow().lost
    }

    /// All begin.
    pub(crate) fn go(&self, load: usize) {
        self.0.send_modify(|meeting| meeting.load = Some(load));
    }

    /// Ends when one is lost.
    pub(crate) async fn broken(&self) {
        until(&self.0, |meeting| meeting.lost).await;
    }

    /// Whether all others ended well, once that is decided.
    pub(crate) async fn ended(&self, others: usize) -> bool {
        until(&self.0, |meeting| meeting.lost || meeting.ended.len() == others).await;
        !self.0.borrow().lost
    }
}

/// A runner of another index. Dropped before its end, it is lost.
pub(crate) struct Other {
    room: Room,
    index: i32,
    ended: bool,
}

impl Drop for Other {
    fn drop(&mut self) {
        if !self.ended {
            self.room.send_modify(|meeting| meeting.lost = true);
        }
    }
}

impl Other {
    /// Place of the load in the ledger when all begin; `None` if the first one goes instead.
    pub(crate) async fn started(&self) -> Option<usize> {
        self.room.send_modify(|meeting| {
            meeting.ready.insert(self.index);
        });
        until(&self.room, |meeting| meeting.first_gone || meeting.load.is_some()).await;
        let meeting = self.room.borrow();
        meeting.load.filter(|_| !meeting.first_gone)
    }

    /// Ends when the first one has gone.
    pub(crate) async fn broken(&self) {
        until(&self.room, |meeting| meeting.first_gone).await;
    }

    /// Its load has ended well.
    pub(crate) fn ended(mut self) {
        self.ended = true;
        self.room.send_modify(|meeting| {
            meeting.ended.insert(self.index);
        });
    }
}
