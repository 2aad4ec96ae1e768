//! Create, replace and patch: one path for all three, so that every rule about updates is stated once.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    State, admission,
    cause::Cause,
    failure::Failure,
    kinds::Kind,
    patch::{self, BuiltInLists, ListTypes},
    request::{Actor, ApiRequest, Verb},
    store::{Key, Version},
};

/// A served write: the HTTP code and the object.
pub(crate) struct Written {
    pub(crate) code: u16,
    pub(crate) version: Arc<Version>,
    /// False if the object was already as wanted.
    pub(crate) changed: bool,
}

impl State {
    /// POST to a collection.
    pub(crate) fn create(&mut self, request: &ApiRequest) -> Result<Written, Failure> {
        let mut object = request.json()?;
        if !object.is_object() {
            return Err(Failure::bad_request("the body must be an object"));
        }
        if request.subresource.is_some() {
            return Err(Failure::method_not_allowed());
        }
        let metadata = &object["metadata"];
        if metadata["resourceVersion"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
        {
            return Err(Failure::internal(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        if metadata["name"].as_str().is_none_or(str::is_empty) {
            let Some(prefix) = metadata["generateName"].as_str().filter(|p| !p.is_empty()) else {
                let cause = Cause::new(
                    "metadata.name",
                    "FieldValueRequired",
                    "Required value: name or generateName is required",
                );
                return Err(Failure::invalid(&request.kind, "", &[cause]));
            };
            let name = format!("{prefix}{}", self.dice.suffix());
            object["metadata"]["name"] = json!(name);
        }
        self.create_object(request, object)
    }

    /// A creation by a model (the Job controller), under the same rules and without faults.
    pub(crate) fn create_by_model(
        &mut self,
        actor: &str,
        group: &str,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Version>, Failure> {
        let key = self.key(group, plural, namespace, "");
        let request = ApiRequest {
            actor: Actor {
                name: actor.to_owned(),
                faults: false,
            },
            verb: Verb::Create,
            kind: self.kinds.get(key.resource).clone(),
            namespace: Some(namespace.to_owned()),
            name: None,
            subresource: None,
            query: BTreeMap::new(),
            body: Vec::new(),
            content_type: String::new(),
            metadata_only: false,
        };
        let written = self.create_object(&request, object)?;
        let key = Key {
            name: written.version.value["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            ..key
        };
        self.record_model(actor, "create", &key, &written.version);
        Ok(written.version)
    }

    fn create_object(&mut self, request: &ApiRequest, mut object: Value) -> Result<Written, Failure> {
        let kind = request.kind.clone();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let key = Key {
            name: name.clone(),
            ..request.key()
        };
        self.check_identity(&kind, &key, &object)?;
        if self.store.get(&key).is_some() {
            return Err(Failure::already_exists(&kind, &name));
        }
        self.check_namespace(&kind, &key)?;
        let now = self.now_text();
        let metadata = &mut object["metadata"];
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "managedFields",
            "selfLink",
        ] {
            if let Some(fields) = metadata.as_object_mut() {
                fields.remove(field);
            }
        }
        metadata["uid"] = json!(self.dice.uid());
        metadata["creationTimestamp"] = json!(now);
        if kind.namespaced {
            metadata["namespace"] = json!(key.namespace);
        }
        if kind.generation {
            metadata["generation"] = json!(1);
        }
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.kind);
        admission::set_initial_values(&kind, &mut object);
        self.complete(request, &mut object)?;
        admission::refuse(&kind, &name, &object, None)?;
        let changed = !request.dry_run();
        let version = if changed {
            let version = self.store.put(&key, object);
            self.after_write(&kind, &version);
            version
        } else {
            Arc::new(unsaved(object))
        };
        Ok(Written {
            code: 201,
            version,
            changed,
        })
    }

    /// Prunes and defaults a custom resource.
    fn complete(&self, request: &ApiRequest, object: &mut Value) -> Result<(), Failure> {
        let Some(schema) = &request.kind.schema else {
            return Ok(());
        };
        if request.subresource.is_some() {
            schema.complete_status(object);
            return Ok(());
        }
        let dropped = schema.prune(object);
        if !dropped.is_empty() && request.parameter("fieldValidation") == Some("Strict") {
            let list: Vec<String> = dropped
                .iter()
                .map(|field| format!("unknown field \"{field}\""))
                .collect();
            return Err(Failure::bad_request(format!(
                "strict decoding error: {}",
                list.join(", ")
            )));
        }
        schema.set_defaults(object);
        Ok(())
    }

    fn check_identity(&self, kind: &Kind, key: &Key, object: &Value) -> Result<(), Failure> {
        let name = object["metadata"]["name"].as_str().unwrap_or(&key.name);
        if name != key.name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                key.name
            )));
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        if kind.namespaced && !namespace.is_empty() && namespace != key.namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if object["kind"].as_str().is_some_and(|found| found != kind.kind)
            || object["apiVersion"]
                .as_str()
                .is_some_and(|found| found != kind.api_version())
        {
            return Err(Failure::bad_request(format!(
                "{} in version \"{}\" cannot be handled as a {}: the API version or kind in the data does not match the expected one",
                object["kind"], object["apiVersion"], kind.kind
            )));
        }
        Ok(())
    }

    fn check_namespace(&self, kind: &Kind, key: &Key) -> Result<(), Failure> {
        if !kind.namespaced {
            return Ok(());
        }
        let Some(namespaces) = self.kinds.find("", "v1", "namespaces") else {
            return Ok(());
        };
        let namespace = self.store.get(&Key {
            resource: namespaces.id,
            namespace: String::new(),
            name: key.namespace.clone(),
        });
        match namespace {
            None => Err(Failure::not_found(&namespaces, &key.namespace)),
            Some(namespace) if !namespace.value["metadata"]["deletionTimestamp"].is_null() => {
                Err(Failure::namespace_terminating(kind, &key.name, &key.namespace))
            }
            Some(_) => Ok(()),
        }
    }

    /// PUT.
    pub(crate) fn replace(&mut self, request: &ApiRequest) -> Result<Written, Failure> {
        let object = request.json()?;
        if !object.is_object() {
            return Err(Failure::bad_request("the body must be an object"));
        }
        self.check_identity(&request.kind, &request.key(), &object)?;
        let Some(old) = self.store.get(&request.key()) else {
            let creates = request.kind.kind == "Lease"
                && object["metadata"]["resourceVersion"].is_null()
                && request.subresource.is_none();
            return if creates {
                self.create_object(request, object)
            } else {
                Err(Failure::not_found(&request.kind, &request.key().name))
            };
        };
        if object["metadata"]["resourceVersion"]
            .as_str()
            .is_none_or(str::is_empty)
            && !request.kind.unconditional_update
        {
            let cause = Cause::invalid(
                "metadata.resourceVersion",
                &json!(0),
                "must be specified for an update",
            );
            return Err(Failure::invalid(&request.kind, &request.key().name, &[cause]));
        }
        self.update(request, &old, object)
    }

    /// PATCH by any of the four types.
    pub(crate) fn patch(&mut self, request: &ApiRequest) -> Result<Written, Failure> {
        let key = request.key();
        let old = self.store.get(&key);
        let media_type = request.content_type.split(';').next().unwrap_or_default().trim();
        if media_type == "application/apply-patch+yaml" {
            return self.apply(request, old);
        }
        let old = old.ok_or_else(|| Failure::not_found(&request.kind, &key.name))?;
        let mut object = old.value.clone();
        match media_type {
            "application/merge-patch+json" => patch::merge(&mut object, &request.json()?),
            "application/strategic-merge-patch+json" if request.kind.schema.is_none() => {
                patch::strategic(&mut object, &request.json()?, &BuiltInLists);
            }
            "application/json-patch+json" => {
                let operations: json_patch::Patch = serde_json::from_value(request.json()?)
                    .map_err(|error| Failure::bad_request(error.to_string()))?;
                json_patch::patch(&mut object, &operations)
                    .map_err(|error| Failure::unprocessable(error.to_string()))?;
            }
            found => {
                let allowed = if request.kind.schema.is_none() {
                    "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"
                } else {
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                };
                return Err(Failure::unsupported_media_type(found, allowed));
            }
        }
        self.update(request, &old, object)
    }

    fn apply(&mut self, request: &ApiRequest, old: Option<Arc<Version>>) -> Result<Written, Failure> {
        let applied = request.json()?;
        let Some(manager) = request.parameter("fieldManager").map(str::to_owned) else {
            return Err(Failure::no_field_manager());
        };
        if applied["apiVersion"].is_null() || applied["kind"].is_null() {
            return Err(Failure::bad_request(
                "apiVersion and kind must be set in an apply patch",
            ));
        }
        let key = request.key();
        self.check_identity(&request.kind, &key, &applied)?;
        let set = (key.clone(), manager, request.subresource.clone());
        let written = match old {
            None if request.subresource.is_some() => {
                return Err(Failure::not_found(&request.kind, &key.name));
            }
            None if applied["metadata"]["uid"].is_string() => {
                return Err(Failure::conflict(
                    &request.kind,
                    &key.name,
                    "uid mismatch: the provided object specified uid, and no existing object was found",
                ));
            }
            None => {
                let mut object = applied.clone();
                object["metadata"]["name"] = json!(key.name);
                self.create_object(request, object)?
            }
            Some(old) => {
                let others: Vec<&Value> = self
                    .applied
                    .iter()
                    .filter(|(other, _)| other.0 == key && **other != set)
                    .map(|(_, value)| value)
                    .collect();
                if request.parameter("force") != Some("true") {
                    let conflicts: Vec<String> = others
                        .iter()
                        .flat_map(|other| patch::conflicts(&applied, other, &old.value))
                        .collect();
                    if !conflicts.is_empty() {
                        return Err(Failure::apply_conflict(&conflicts));
                    }
                }
                let lists: &dyn ListTypes = match &request.kind.schema {
                    Some(schema) => schema.as_ref(),
                    None => &BuiltInLists,
                };
                let previous = self.applied.get(&set);
                let object = patch::apply(&old.value, &applied, previous, &others, lists);
                self.update(request, &old, object)?
            }
        };
        if !request.dry_run() {
            self.applied.insert(set, applied);
        }
        Ok(written)
    }

    /// Stores a changed object if every rule allows it.
    fn update(
        &mut self,
        request: &ApiRequest,
        old: &Arc<Version>,
        mut object: Value,
    ) -> Result<Written, Failure> {
        let kind = request.kind.clone();
        let key = request.key();
        let old_metadata = &old.value["metadata"];
        self.check_identity(&kind, &key, &object)?;
        if let Some(uid) = object["metadata"]["uid"].as_str()
            && uid != old.uid()
        {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                old.uid()
            );
            return Err(Failure::conflict(&kind, &key.name, &why));
        }
        if let Some(wanted) = object["metadata"]["resourceVersion"].as_str()
            && !wanted.is_empty()
            && wanted != old.revision.to_string()
        {
            return Err(Failure::stale(&kind, &key.name));
        }
        keep_fields_of_the_server(&mut object, &old.value);
        match request.subresource.as_deref() {
            Some(_) => {
                let status = object["status"].take();
                object = old.value.clone();
                set_or_remove(&mut object, "status", status);
            }
            None if kind.status => {
                set_or_remove(&mut object, "status", old.value["status"].clone());
            }
            None => {}
        }
        admission::complete_update(&kind, &mut object);
        self.complete(request, &mut object)?;
        let deleting = !old_metadata["deletionTimestamp"].is_null();
        if deleting && adds_finalizer(old_metadata, &object["metadata"]) {
            let why = "no new finalizers can be added if the object is being deleted";
            let cause = Cause::forbidden("metadata.finalizers", why);
            // The real server checks a custom resource twice.
            let causes = vec![cause; if kind.schema.is_some() { 2 } else { 1 }];
            return Err(Failure::invalid(&kind, &key.name, &causes));
        }
        if object == old.value {
            return Ok(Written {
                code: 200,
                version: old.clone(),
                changed: false,
            });
        }
        admission::refuse(&kind, &key.name, &object, Some(&old.value))?;
        if kind.generation && spec_differs(&old.value, &object) {
            let generation = old_metadata["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = json!(generation);
        }
        if request.dry_run() {
            return Ok(Written {
                code: 200,
                version: Arc::new(unsaved(object)),
                changed: false,
            });
        }
        Ok(Written {
            code: 200,
            version: self.put_or_finish_deletion(&key, object),
            changed: true,
        })
    }
}

/// Fields of metadata that only the server writes.
fn keep_fields_of_the_server(object: &mut Value, old: &Value) {
    for field in [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "namespace",
        "name",
        "generateName",
    ] {
        let value = old["metadata"][field].clone();
        set_or_remove(&mut object["metadata"], field, value);
    }
    set_or_remove(&mut object["metadata"], "managedFields", Value::Null);
    for field in ["apiVersion", "kind"] {
        object[field] = old[field].clone();
    }
    // Empty collections are not stored, so that a patch of nothing stays nothing.
    for field in ["finalizers", "ownerReferences", "labels", "annotations"] {
        let empty = match &object["metadata"][field] {
            Value::Array(elements) => elements.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            other => other.is_null(),
        };
        if empty {
            set_or_remove(&mut object["metadata"], field, Value::Null);
        }
    }
}

fn set_or_remove(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        if value.is_null() {
            fields.remove(field);
        } else {
            fields.insert(field.to_owned(), value);
        }
    }
}

fn adds_finalizer(old: &Value, new: &Value) -> bool {
    let has = |finalizer: &Value| {
        old["finalizers"]
            .as_array()
            .is_some_and(|finalizers| finalizers.contains(finalizer))
    };
    new["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|finalizer| !has(finalizer))
}

/// Whether anything but metadata and status differs.
fn spec_differs(old: &Value, new: &Value) -> bool {
    let fields = |value: &Value| -> Vec<(String, Value)> {
        value
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    fields(old) != fields(new)
}

fn unsaved(object: Value) -> Version {
    Version {
        revision: 0,
        json: object.to_string(),
        value: object,
    }
}
