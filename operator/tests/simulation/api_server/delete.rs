//! Deletion: preconditions, grace of pods, finalizers, propagation. What follows a deletion (dependents, contents of
//! a namespace) is the business of `background`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    State,
    failure::Failure,
    kinds::Kind,
    request::ApiRequest,
    store::{Key, Version},
};

/// Finalizer of an object whose dependents go first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an object whose dependents stay.
pub(crate) const ORPHAN: &str = "orphan";

/// Options of one deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    uid: Option<String>,
    resource_version: Option<String>,
    grace: Option<u64>,
    propagation: Option<String>,
    dry_run: bool,
}

impl DeleteOptions {
    fn parse(request: &ApiRequest) -> Result<Self, Failure> {
        let body = request.json()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(Self {
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            grace: match body["gracePeriodSeconds"].as_u64() {
                Some(seconds) => Some(seconds),
                None => request.number("gracePeriodSeconds")?,
            },
            propagation: text(&body["propagationPolicy"])
                .or_else(|| request.parameter("propagationPolicy").map(str::to_owned)),
            dry_run: request.dry_run() || body["dryRun"].as_array().is_some_and(|list| !list.is_empty()),
        })
    }

    /// As the models of kubelet and controllers delete.
    pub(crate) fn background() -> Self {
        Self {
            propagation: Some("Background".to_owned()),
            ..Self::default()
        }
    }

    /// At once, as the kubelet does when all containers have stopped.
    pub(crate) fn without_grace() -> Self {
        Self {
            grace: Some(0),
            ..Self::background()
        }
    }
}

/// Where a deletion led.
pub(crate) enum Deleted {
    /// The object is gone; its last version.
    Gone(Arc<Version>),
    /// It is marked and waits for finalizers or for its kubelet.
    Pending(Arc<Version>),
}

impl Deleted {
    /// The last version, whatever became of it.
    pub(crate) fn version(&self) -> &Arc<Version> {
        match self {
            Self::Gone(version) | Self::Pending(version) => version,
        }
    }
}

impl State {
    /// DELETE of a named object; the answer is the object or a `Status`.
    pub(crate) fn delete(&mut self, request: &ApiRequest) -> Result<(Deleted, String), Failure> {
        let options = DeleteOptions::parse(request)?;
        let kind = request.kind.clone();
        let key = request.key();
        if request.subresource.is_some() {
            return Err(Failure::method_not_allowed());
        }
        let deleted = self.delete_object(&kind, &key, &options)?;
        let body = match &deleted {
            Deleted::Gone(version) if !kind.returns_deleted => json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": key.name, "group": kind.group, "kind": kind.plural, "uid": version.uid()},
            })
            .to_string(),
            other => other.version().json.clone(),
        };
        Ok((deleted, body))
    }

    /// DELETE of a collection; the answer is the list of what was selected.
    pub(crate) fn delete_collection(&mut self, request: &ApiRequest) -> Result<String, Failure> {
        let options = DeleteOptions::parse(request)?;
        let selector = request.selector()?;
        let kind = request.kind.clone();
        let keys: Vec<Key> = self
            .store
            .list(kind.id, request.namespace.as_deref())
            .filter(|(_, version)| selector.matches(&version.value))
            .map(|(key, _)| key.clone())
            .collect();
        let mut items = Vec::new();
        for key in keys {
            let deleted = self.delete_object(&kind, &key, &options)?;
            items.push(deleted.version().json.clone());
        }
        Ok(format!(
            r#"{{"kind":"{}List","apiVersion":"{}","metadata":{{"resourceVersion":"{}"}},"items":[{}]}}"#,
            kind.kind,
            kind.api_version(),
            self.store.revision(),
            items.join(",")
        ))
    }

    /// Deletes or marks one object.
    pub(crate) fn delete_object(
        &mut self,
        kind: &Arc<Kind>,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Deleted, Failure> {
        let old = self
            .store
            .get(key)
            .ok_or_else(|| Failure::not_found(kind, &key.name))?;
        check_preconditions(kind, key, &old, options)?;
        let mut object = old.value.clone();
        set_propagation_finalizer(kind, &mut object["metadata"], options);
        let grace = grace_seconds(kind, &object, options);
        let already = !object["metadata"]["deletionTimestamp"].is_null();
        let earlier = object["metadata"]["deletionGracePeriodSeconds"].as_u64();
        if !already || earlier.is_some_and(|seconds| grace < seconds) {
            object["metadata"]["deletionTimestamp"] = json!(self.time_text(grace));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        }
        if !already && kind.generation {
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = json!(generation);
        }
        if kind.kind == "Namespace" && kind.group.is_empty() {
            object["status"]["phase"] = json!("Terminating");
        }
        if options.dry_run {
            return Ok(Deleted::Gone(old));
        }
        if may_go(kind, &object) {
            // The answer of a pod's deletion shows the mark, though nothing waits any more.
            let last = (kind.kind == "Pod").then_some(object);
            if let Some(gone) = self.store.remove_as(key, last) {
                self.after_removal(key);
                return Ok(Deleted::Gone(gone));
            }
            return Ok(Deleted::Gone(old));
        }
        if object == old.value {
            return Ok(Deleted::Pending(old));
        }
        Ok(Deleted::Pending(self.store.put(key, object)))
    }

    /// Stores an object, or removes it if the change took away its last reason to stay.
    pub(crate) fn put_or_finish_deletion(&mut self, key: &Key, object: Value) -> Arc<Version> {
        let kind = self.kinds.get(key.resource).clone();
        if !object["metadata"]["deletionTimestamp"].is_null() && may_go(&kind, &object) {
            // The change itself is never seen: the real server deletes in its place.
            if let Some(gone) = self.store.remove(key) {
                self.after_removal(key);
                return gone;
            }
        }
        let version = self.store.put(key, object);
        self.after_write(&kind, &version);
        version
    }

    fn after_removal(&mut self, key: &Key) {
        self.applied.retain(|(other, _, _), _| other != key);
    }
}

/// Nothing holds a deleted object any more.
fn may_go(kind: &Kind, object: &Value) -> bool {
    let empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let metadata = &object["metadata"];
    empty(&metadata["finalizers"])
        && metadata["deletionGracePeriodSeconds"].as_u64().unwrap_or(0) == 0
        && (kind.kind != "Namespace" || empty(&object["spec"]["finalizers"]))
}

fn check_preconditions(
    kind: &Kind,
    key: &Key,
    old: &Version,
    options: &DeleteOptions,
) -> Result<(), Failure> {
    if let Some(uid) = &options.uid
        && uid != old.uid()
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            old.uid()
        );
        return Err(Failure::conflict(kind, &key.name, &why));
    }
    if let Some(wanted) = &options.resource_version
        && *wanted != old.revision.to_string()
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({}). The object might have been modified",
            old.revision
        );
        return Err(Failure::conflict(kind, &key.name, &why));
    }
    Ok(())
}

/// Seconds that a pod may live on; 0 for every other kind and for pods that no kubelet runs.
fn grace_seconds(kind: &Kind, object: &Value, options: &DeleteOptions) -> u64 {
    if kind.kind != "Pod" || !kind.group.is_empty() {
        return 0;
    }
    let unscheduled = object["spec"]["nodeName"].as_str().is_none_or(str::is_empty);
    let finished = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if unscheduled || finished {
        return 0;
    }
    options
        .grace
        .or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_u64())
        .unwrap_or(30)
}

fn set_propagation_finalizer(kind: &Kind, metadata: &mut Value, options: &DeleteOptions) {
    // A Job deleted without a policy leaves its pods behind: batch/v1 keeps the policy of its first days.
    let job = kind.kind == "Job" && kind.group == "batch";
    let policy = options
        .propagation
        .as_deref()
        .unwrap_or(if job { "Orphan" } else { "Background" });
    let wanted = match policy {
        "Foreground" => Some(FOREGROUND),
        "Orphan" => Some(ORPHAN),
        _ => None,
    };
    let deleting = !metadata["deletionTimestamp"].is_null();
    let mut finalizers: Vec<Value> = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    if options.propagation.is_some() || !deleting {
        finalizers.retain(|finalizer| {
            let word = finalizer.as_str();
            word != Some(FOREGROUND) && word != Some(ORPHAN) || word == wanted
        });
        if let Some(wanted) = wanted
            && !finalizers.contains(&json!(wanted))
        {
            finalizers.push(json!(wanted));
        }
    }
    if let Some(fields) = metadata.as_object_mut() {
        if finalizers.is_empty() {
            fields.remove("finalizers");
        } else {
            fields.insert("finalizers".to_owned(), json!(finalizers));
        }
    }
}
