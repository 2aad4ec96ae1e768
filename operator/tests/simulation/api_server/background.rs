//! The controllers of the cluster itself that work on any kind: garbage collection of dependents, foreground and
//! orphaning deletion, emptying of terminating namespaces, protection of claims in use.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    ApiServer, State,
    admission::CLAIM_PROTECTION,
    delete::{DeleteOptions, FOREGROUND, ORPHAN},
    store::{Change, ChangeType, Key, Version},
};
use crate::random::Dice;

const COLLECTOR: &str = "garbage-collector";

/// Something to look at after a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// An object with owners: do they live?
    Dependent(Key),
    /// An object that waits for its dependents, or is to be rid of them.
    Owner(Key),
    /// A namespace that is being terminated.
    Namespace(String),
    /// The claims of a namespace that are being deleted.
    Claims(String),
}

/// Starts the controllers; they act some hundred milliseconds after a change.
pub(crate) fn spawn(server: &ApiServer, mut dice: Dice) {
    let mut changes = server.lock().store.subscribe();
    let server = server.clone();
    tokio::spawn(async move {
        while let Some(first) = changes.recv().await {
            let mut work = BTreeSet::new();
            server.lock().work_after(&first, &mut work);
            if work.is_empty() {
                continue;
            }
            sleep(dice.millis(20, 400)).await;
            let mut state = server.lock();
            while let Ok(next) = changes.try_recv() {
                state.work_after(&next, &mut work);
            }
            for item in work {
                state.do_work(&item);
            }
        }
    });
}

fn has_finalizer(version: &Version, finalizer: &str) -> bool {
    version.value["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|finalizers| finalizers.contains(&json!(finalizer)))
}

fn remove_finalizer(object: &mut Value, finalizer: &str) {
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|other| other != finalizer);
        if finalizers.is_empty()
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("finalizers");
        }
    }
}

fn is_deleting(version: &Version) -> bool {
    !version.value["metadata"]["deletionTimestamp"].is_null()
}

impl State {
    fn work_after(&self, change: &Change, work: &mut BTreeSet<Work>) {
        let kind = self.kinds.get(change.key.resource);
        let namespace = &change.key.namespace;
        let core = kind.group.is_empty();
        match change.change {
            ChangeType::Deleted => {
                for key in self.store.dependents_of(change.object.uid()) {
                    work.insert(Work::Dependent(key));
                }
                for owner in owner_keys(self, &change.object) {
                    work.insert(Work::Owner(owner));
                }
                if core && kind.kind == "Pod" {
                    work.insert(Work::Claims(namespace.clone()));
                }
                if self.terminating(namespace) {
                    work.insert(Work::Namespace(namespace.clone()));
                }
            }
            ChangeType::Added | ChangeType::Modified => {
                let owners = &change.object.value["metadata"]["ownerReferences"];
                let owners_before = change
                    .previous
                    .as_ref()
                    .map_or(&Value::Null, |old| &old.value["metadata"]["ownerReferences"]);
                if owners != owners_before {
                    work.insert(Work::Dependent(change.key.clone()));
                }
                if is_deleting(&change.object) {
                    if has_finalizer(&change.object, FOREGROUND) || has_finalizer(&change.object, ORPHAN) {
                        work.insert(Work::Owner(change.key.clone()));
                    }
                    match (core, kind.kind.as_str()) {
                        (true, "Namespace") => {
                            work.insert(Work::Namespace(change.key.name.clone()));
                        }
                        (true, "PersistentVolumeClaim") => {
                            work.insert(Work::Claims(namespace.clone()));
                        }
                        _ => {}
                    }
                }
                if core && kind.kind == "Pod" && pod_finished(&change.object) {
                    work.insert(Work::Claims(namespace.clone()));
                }
            }
        }
    }

    fn terminating(&self, namespace: &str) -> bool {
        !namespace.is_empty()
            && self
                .store
                .get(&self.key("", "namespaces", "", namespace))
                .is_some_and(|namespace| is_deleting(&namespace))
    }

    fn do_work(&mut self, work: &Work) {
        match work {
            Work::Dependent(key) => self.collect_dependent(key),
            Work::Owner(key) => self.finish_owner(key),
            Work::Namespace(name) => self.empty_namespace(name),
            Work::Claims(namespace) => self.release_claims(namespace),
        }
    }

    fn collect_dependent(&mut self, key: &Key) {
        let Some(version) = self.store.get(key) else {
            return;
        };
        let references = version.value["metadata"]["ownerReferences"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let (solid, dangling): (Vec<Value>, Vec<Value>) = references
            .into_iter()
            .partition(|reference| self.owner_lives(key, reference));
        if dangling.is_empty() {
            return;
        }
        if solid.is_empty() {
            self.remove(COLLECTOR, key, &DeleteOptions::background());
        } else {
            self.change(COLLECTOR, key, |object| {
                object["metadata"]["ownerReferences"] = json!(solid);
            });
        }
    }

    /// Whether a reference leads to a living object of that kind and name, in the same namespace or in none.
    fn owner_lives(&self, dependent: &Key, reference: &Value) -> bool {
        let Some(key) = reference["uid"].as_str().and_then(|uid| self.store.key_of(uid)) else {
            return false;
        };
        let kind = self.kinds.get(key.resource);
        let named = self
            .kinds
            .find_kind(
                reference["apiVersion"].as_str().unwrap_or_default(),
                reference["kind"].as_str().unwrap_or_default(),
            )
            .is_some_and(|named| named.id == kind.id);
        named
            && reference["name"] == key.name.as_str()
            && (key.namespace.is_empty() || key.namespace == dependent.namespace)
    }

    fn finish_owner(&mut self, key: &Key) {
        let Some(owner) = self.store.get(key).filter(|owner| is_deleting(owner)) else {
            return;
        };
        let uid = owner.uid().to_owned();
        let dependents = self.store.dependents_of(&uid);
        if has_finalizer(&owner, ORPHAN) {
            for dependent in dependents {
                self.change(COLLECTOR, &dependent, |object| {
                    if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
                        owners.retain(|owner| owner["uid"] != uid.as_str());
                        if owners.is_empty()
                            && let Some(metadata) = object["metadata"].as_object_mut()
                        {
                            metadata.remove("ownerReferences");
                        }
                    }
                });
            }
            self.change(COLLECTOR, key, |object| remove_finalizer(object, ORPHAN));
        } else if has_finalizer(&owner, FOREGROUND) {
            let mut blocked = false;
            for dependent in dependents {
                let Some(version) = self.store.get(&dependent) else {
                    continue;
                };
                blocked |= version.value["metadata"]["ownerReferences"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|owner| owner["uid"] == uid.as_str() && owner["blockOwnerDeletion"] == true);
                if !is_deleting(&version) {
                    self.remove(COLLECTOR, &dependent, &DeleteOptions::background());
                }
            }
            let waits = blocked && !self.store.dependents_of(&uid).is_empty();
            if !waits {
                self.change(COLLECTOR, key, |object| remove_finalizer(object, FOREGROUND));
            }
        }
    }

    fn empty_namespace(&mut self, name: &str) {
        if !self.terminating(name) {
            return;
        }
        for key in self.store.in_namespace(name) {
            if self.store.get(&key).is_some_and(|version| !is_deleting(&version)) {
                self.remove("namespace-controller", &key, &DeleteOptions::background());
            }
        }
        if self.store.in_namespace(name).is_empty() {
            let key = self.key("", "namespaces", "", name);
            self.change("namespace-controller", &key, |namespace| {
                namespace["spec"]["finalizers"] = json!([]);
            });
        }
    }

    fn release_claims(&mut self, namespace: &str) {
        let claims = self.key("", "persistentvolumeclaims", namespace, "");
        let deleting: Vec<Key> = self
            .store
            .list(claims.resource, Some(namespace))
            .filter(|(_, claim)| is_deleting(claim) && has_finalizer(claim, CLAIM_PROTECTION))
            .map(|(key, _)| key.clone())
            .collect();
        for claim in deleting {
            let pods = self.key("", "pods", namespace, "").resource;
            let used = self.store.list(pods, Some(namespace)).any(|(_, pod)| {
                // A pod that no node has does not count: its kubelet would refuse a claim that is being deleted.
                !pod_finished(pod)
                    && pod.value["spec"]["nodeName"].is_string()
                    && pod.value["spec"]["volumes"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .any(|volume| volume["persistentVolumeClaim"]["claimName"] == claim.name.as_str())
            });
            if !used {
                self.change("pvc-protection", &claim, |object| {
                    remove_finalizer(object, CLAIM_PROTECTION);
                });
            }
        }
    }
}

fn pod_finished(pod: &Version) -> bool {
    matches!(
        pod.value["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    )
}

fn owner_keys(state: &State, version: &Arc<Version>) -> Vec<Key> {
    version.value["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|owner| state.store.key_of(owner["uid"].as_str()?).cloned())
        .collect()
}
