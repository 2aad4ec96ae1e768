//! The objects, their history and one counter of revisions: what etcd and the watch cache are to the real server.
//! It stamps `resourceVersion` and knows nothing of validation, deletion rules or requests.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::kinds::ResourceId;

/// Changes that are remembered for watches of one resource; older revisions answer 410.
const HISTORY: usize = 4_096;

/// Where an object lives. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) resource: ResourceId,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// One stored version of an object, with the JSON that every reader gets.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) revision: u64,
    pub(crate) value: Value,
    pub(crate) json: String,
}

impl Version {
    /// The object's UID.
    pub(crate) fn uid(&self) -> &str {
        self.value["metadata"]["uid"].as_str().unwrap_or_default()
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeType {
    Added,
    Modified,
    Deleted,
}

/// One entry of the history.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) change: ChangeType,
    pub(crate) key: Key,
    pub(crate) object: Arc<Version>,
    pub(crate) previous: Option<Arc<Version>>,
}

#[derive(Debug)]
struct History {
    changes: VecDeque<Change>,
    /// The newest revision that is forgotten.
    compacted: u64,
    /// Wakes the watches of this resource; carries the newest revision.
    newest: watch::Sender<u64>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            changes: VecDeque::new(),
            compacted: 0,
            newest: watch::Sender::new(0),
        }
    }
}

/// All objects of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Store {
    revision: u64,
    objects: BTreeMap<Key, Arc<Version>>,
    uids: BTreeMap<String, Key>,
    dependents: BTreeMap<String, BTreeSet<Key>>,
    histories: BTreeMap<ResourceId, History>,
    subscribers: Vec<mpsc::UnboundedSender<Change>>,
}

impl Store {
    /// The newest revision of anything.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The stored version.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Version>> {
        self.objects.get(key).cloned()
    }

    /// The key of the living object with this UID.
    pub(crate) fn key_of(&self, uid: &str) -> Option<&Key> {
        self.uids.get(uid)
    }

    /// Objects that name this UID as an owner.
    pub(crate) fn dependents_of(&self, uid: &str) -> Vec<Key> {
        self.dependents
            .get(uid)
            .map(|keys| keys.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// All objects of a resource in a namespace (all namespaces if `None`), by namespace and name.
    pub(crate) fn list<'a>(
        &'a self,
        resource: ResourceId,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Version>)> {
        let start = Key {
            resource,
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        self.objects.range(start..).take_while(move |(key, _)| {
            key.resource == resource && namespace.is_none_or(|wanted| key.namespace == wanted)
        })
    }

    /// Every object in a namespace, whatever its kind.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Key> {
        self.objects
            .keys()
            .filter(|key| key.namespace == namespace)
            .cloned()
            .collect()
    }

    /// The objects of a resource as they were at an older revision; `None` if that is forgotten.
    pub(crate) fn list_at(
        &self,
        resource: ResourceId,
        namespace: Option<&str>,
        revision: u64,
    ) -> Option<Vec<(Key, Arc<Version>)>> {
        let mut objects: BTreeMap<Key, Arc<Version>> = self
            .list(resource, None)
            .map(|(key, version)| (key.clone(), version.clone()))
            .collect();
        if let Some(history) = self.histories.get(&resource) {
            if revision < history.compacted {
                return None;
            }
            for change in history.changes.iter().rev() {
                if change.revision <= revision {
                    break;
                }
                match &change.previous {
                    Some(previous) => objects.insert(change.key.clone(), previous.clone()),
                    None => objects.remove(&change.key),
                };
            }
        }
        objects.retain(|key, _| namespace.is_none_or(|wanted| key.namespace == wanted));
        Some(objects.into_iter().collect())
    }

    /// Stores a new version and stamps its `resourceVersion`.
    pub(crate) fn put(&mut self, key: &Key, mut value: Value) -> Arc<Version> {
        self.revision += 1;
        value["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let version = Arc::new(Version {
            revision: self.revision,
            json: value.to_string(),
            value,
        });
        let previous = self.objects.insert(key.clone(), version.clone());
        if let Some(previous) = &previous {
            self.forget_owners(key, previous);
        }
        for owner in owners(&version.value) {
            self.dependents.entry(owner).or_default().insert(key.clone());
        }
        self.uids.insert(version.uid().to_owned(), key.clone());
        let change = if previous.is_some() {
            ChangeType::Modified
        } else {
            ChangeType::Added
        };
        self.announce(Change {
            revision: version.revision,
            change,
            key: key.clone(),
            object: version.clone(),
            previous,
        });
        version
    }

    /// Takes an object out; the last version carries the revision of its deletion.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Version>> {
        self.remove_as(key, None)
    }

    /// As [`Self::remove`], with the value to be seen last.
    pub(crate) fn remove_as(&mut self, key: &Key, last: Option<Value>) -> Option<Arc<Version>> {
        let previous = self.objects.remove(key)?;
        self.forget_owners(key, &previous);
        self.uids.remove(previous.uid());
        self.revision += 1;
        let mut value = last.unwrap_or_else(|| previous.value.clone());
        value["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let version = Arc::new(Version {
            revision: self.revision,
            json: value.to_string(),
            value,
        });
        self.announce(Change {
            revision: self.revision,
            change: ChangeType::Deleted,
            key: key.clone(),
            object: version.clone(),
            previous: Some(previous),
        });
        Some(version)
    }

    fn forget_owners(&mut self, key: &Key, version: &Version) {
        for owner in owners(&version.value) {
            if let Some(keys) = self.dependents.get_mut(&owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(&owner);
                }
            }
        }
    }

    fn announce(&mut self, change: Change) {
        self.subscribers
            .retain(|subscriber| subscriber.send(change.clone()).is_ok());
        let history = self.histories.entry(change.key.resource).or_default();
        let revision = change.revision;
        history.changes.push_back(change);
        if history.changes.len() > HISTORY
            && let Some(oldest) = history.changes.pop_front()
        {
            history.compacted = oldest.revision;
        }
        history.newest.send_replace(revision);
    }

    /// Forgets all history, as the real server does after some minutes: old watches answer 410.
    pub(crate) fn compact(&mut self) {
        for history in self.histories.values_mut() {
            history.changes.clear();
            history.compacted = self.revision;
        }
    }

    /// Changes of a resource after a revision, oldest first; `None` if some of them are forgotten.
    pub(crate) fn changes_after(&self, resource: ResourceId, revision: u64) -> Option<Vec<Change>> {
        let Some(history) = self.histories.get(&resource) else {
            return Some(Vec::new());
        };
        if revision < history.compacted {
            return None;
        }
        let mut changes: Vec<Change> = history
            .changes
            .iter()
            .rev()
            .take_while(|change| change.revision > revision)
            .cloned()
            .collect();
        changes.reverse();
        Some(changes)
    }

    /// Follows the newest revision of a resource.
    pub(crate) fn follow(&mut self, resource: ResourceId) -> watch::Receiver<u64> {
        self.histories.entry(resource).or_default().newest.subscribe()
    }

    /// Every change from now on; how the models of kubelet and controllers see the cluster.
    pub(crate) fn subscribe(&mut self) -> mpsc::UnboundedReceiver<Change> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.subscribers.push(sender);
        receiver
    }
}

fn owners(object: &Value) -> Vec<String> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str().map(str::to_owned))
        .collect()
}
