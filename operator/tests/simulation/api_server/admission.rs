//! What the API server itself does to objects of each kind on their way in: initial values, names, what may not
//! change. A subset: what an operator of databases and Jobs can run into.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{cause::Cause, failure::Failure, kinds::Kind, structural::pattern_matches};

/// The finalizer that keeps a claim while a pod uses it.
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";

/// Fills in what a new object of this kind gets by itself.
pub(crate) fn set_initial_values(kind: &Kind, object: &mut Value) {
    let default = |object: &mut Value, pointer: &str, value: Value| {
        if object.pointer(pointer).is_none()
            && let Some((parent, name)) = pointer.rsplit_once('/')
            && let Some(parent) = object.pointer_mut(parent)
            && parent.is_object()
        {
            parent[name] = value;
        }
    };
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => {
            set_pod_defaults(&mut object["spec"], "Always");
            object["status"] = json!({"phase": "Pending", "qosClass": quality_of_service(&object["spec"])});
        }
        ("batch", "Job") => {
            let uid = object["metadata"]["uid"].clone();
            let name = object["metadata"]["name"].clone();
            default(object, "/spec/parallelism", json!(1));
            default(object, "/spec/completions", json!(1));
            default(object, "/spec/backoffLimit", json!(6));
            default(object, "/spec/completionMode", json!("NonIndexed"));
            default(object, "/spec/suspend", json!(false));
            default(object, "/spec/podReplacementPolicy", json!("TerminatingOrFailed"));
            let labels = json!({
                "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
                "controller-uid": uid, "job-name": name,
            });
            if object["metadata"]["labels"].is_null() {
                object["metadata"]["labels"] = labels.clone();
            }
            object["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
            super::patch::merge(
                &mut object["spec"]["template"],
                &json!({"metadata": {"labels": labels}}),
            );
            set_pod_defaults(&mut object["spec"]["template"]["spec"], "Always");
            object["status"] = json!({});
        }
        ("", "PersistentVolumeClaim") => {
            let finalizers = &mut object["metadata"]["finalizers"];
            if finalizers.is_null() {
                *finalizers = json!([]);
            }
            if let Some(finalizers) = finalizers.as_array_mut()
                && !finalizers.contains(&json!(CLAIM_PROTECTION))
            {
                finalizers.push(json!(CLAIM_PROTECTION));
            }
            default(object, "/spec/volumeMode", json!("Filesystem"));
            object["status"] = json!({"phase": "Pending"});
        }
        ("", "Namespace") => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        ("", "Secret") => {
            default(object, "/type", json!("Opaque"));
            fold_string_data(object);
        }
        ("", "Service") => {
            default(object, "/spec/type", json!("ClusterIP"));
            default(object, "/spec/clusterIP", json!("10.96.0.7"));
            object["status"] = json!({"loadBalancer": {}});
        }
        _ if kind.status => {
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
        }
        _ => {}
    }
}

fn set_pod_defaults(spec: &mut Value, restart_policy: &str) {
    let Some(fields) = spec.as_object_mut() else {
        return;
    };
    let mut default = |name: &str, value: Value| {
        fields.entry(name).or_insert(value);
    };
    default("restartPolicy", json!(restart_policy));
    default("terminationGracePeriodSeconds", json!(30));
    default("dnsPolicy", json!("ClusterFirst"));
    default("schedulerName", json!("default-scheduler"));
    default("serviceAccountName", json!("default"));
}

/// Guaranteed if every container's limits equal its requests for both resources.
fn quality_of_service(spec: &Value) -> &'static str {
    let containers = || {
        ["containers", "initContainers"]
            .iter()
            .flat_map(|list| spec[*list].as_array().into_iter().flatten())
    };
    let guaranteed = containers().all(|container| {
        ["cpu", "memory"].iter().all(|resource| {
            let limit = &container["resources"]["limits"][*resource];
            let request = &container["resources"]["requests"][*resource];
            !limit.is_null() && (request.is_null() || request == limit)
        })
    });
    if guaranteed {
        "Guaranteed"
    } else if containers().all(|container| {
        container["resources"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty)
    }) {
        "BestEffort"
    } else {
        "Burstable"
    }
}

/// `stringData` is written into `data`, base64 encoded, and never read back.
fn fold_string_data(object: &mut Value) {
    let Some(texts) = object
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"))
    else {
        return;
    };
    for (name, text) in texts.as_object().into_iter().flatten() {
        let encoded = k8s_openapi::ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec());
        object["data"][name] = json!(encoded);
    }
}

/// Fields of a changed object that the server completes again.
pub(crate) fn complete_update(kind: &Kind, object: &mut Value) {
    if kind.kind == "Secret" && kind.group.is_empty() {
        fold_string_data(object);
    }
}

/// Names, labels and the few fields that each kind demands.
pub(crate) fn validate(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let service = kind.kind == "Service";
    let (pattern, limit) = if service || kind.kind == "Namespace" {
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 63)
    } else {
        (
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            253,
        )
    };
    if name.len() > limit || !pattern_matches(pattern, name) {
        let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let short_key = key.rsplit('/').next().unwrap_or_default();
        let word = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
        if text.len() > 63 || !pattern_matches(word, text) {
            let why = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
            causes.push(Cause::invalid("metadata.labels", value, why));
        }
        if short_key.is_empty() || short_key.len() > 63 || !pattern_matches(word, short_key) {
            causes.push(Cause::invalid("metadata.labels", &json!(key), "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"));
        }
    }
    for (index, owner) in object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                causes.push(Cause::invalid(&path, &json!(""), "must not be empty"));
            }
        }
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => check_pod_spec(&object["spec"], "spec", &mut causes),
        ("batch", "Job") => {
            let spec = &object["spec"]["template"]["spec"];
            check_pod_spec(spec, "spec.template.spec", &mut causes);
            if !matches!(spec["restartPolicy"].as_str(), Some("Never" | "OnFailure")) {
                let message = "Required value: valid values: \"OnFailure\", \"Never\"";
                causes.push(Cause::new(
                    "spec.template.spec.restartPolicy",
                    "FieldValueRequired",
                    message,
                ));
            }
            let name_limit = if object["spec"]["completionMode"] == "Indexed" {
                61
            } else {
                63
            };
            if name.len() > name_limit {
                let why = format!("must be no more than {name_limit} characters");
                causes.push(Cause::invalid("metadata.name", &json!(name), &why));
            }
        }
        _ => {}
    }
    causes
}

fn check_pod_spec(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let required = |field: String, causes: &mut Vec<Cause>| {
        causes.push(Cause::new(&field, "FieldValueRequired", "Required value"));
    };
    let containers = spec["containers"].as_array().map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        required(format!("{path}.containers"), causes);
    }
    let volumes: Vec<&Value> = spec["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|volume| &volume["name"])
        .collect();
    let mut names: Vec<&Value> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}.containers[{index}]");
        if container["name"].as_str().is_none_or(str::is_empty) {
            required(format!("{path}.name"), causes);
        } else if names.contains(&&container["name"]) {
            let message = format!("Duplicate value: {}", container["name"]);
            causes.push(Cause::new(
                &format!("{path}.name"),
                "FieldValueDuplicate",
                message,
            ));
        }
        names.push(&container["name"]);
        if container["image"].as_str().is_none_or(str::is_empty) {
            required(format!("{path}.image"), causes);
        }
        let mounts = container["volumeMounts"].as_array().into_iter().flatten();
        for (mount_index, mount) in mounts.enumerate() {
            if !volumes.contains(&&mount["name"]) {
                let message = format!("Not found: {}", mount["name"]);
                let field = format!("{path}.volumeMounts[{mount_index}].name");
                causes.push(Cause::new(&field, "FieldValueNotFound", message));
            }
        }
    }
}

/// What may not change once an object exists.
pub(crate) fn validate_update(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut immutable = |pointer: &str, path: &str| {
        if old.pointer(pointer) != new.pointer(pointer) {
            causes.push(Cause::invalid(path, &Value::Null, "field is immutable"));
        }
    };
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("batch", "Job") => {
            for field in [
                "selector",
                "template",
                "completionMode",
                "completions",
                "podReplacementPolicy",
            ] {
                immutable(&format!("/spec/{field}"), &format!("spec.{field}"));
            }
        }
        ("", "Secret" | "ConfigMap") if old["immutable"] == true => {
            if old["data"] != new["data"] || new["immutable"] != true {
                let why = "field is immutable when `immutable` is set";
                causes.push(Cause::forbidden("data", why));
            }
        }
        ("", "Secret") => immutable("/type", "type"),
        ("", "Pod") => {
            let fixed = |object: &Value| {
                let mut spec = object["spec"].clone();
                for list in ["containers", "initContainers"] {
                    for container in spec[list].as_array_mut().into_iter().flatten() {
                        container["image"] = Value::Null;
                    }
                }
                for name in [
                    "activeDeadlineSeconds",
                    "tolerations",
                    "terminationGracePeriodSeconds",
                ] {
                    spec[name] = Value::Null;
                }
                spec
            };
            if fixed(old) != fixed(new) {
                let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
                causes.push(Cause::forbidden("spec", why));
            }
        }
        ("", "PersistentVolumeClaim") => {
            let fixed = |object: &Value| {
                let mut spec = object["spec"].clone();
                spec["resources"] = Value::Null;
                spec["volumeName"] = Value::Null;
                spec
            };
            if fixed(old) != fixed(new) {
                let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
                causes.push(Cause::forbidden("spec", why));
            }
        }
        _ => {}
    }
    causes
}

/// The schema's and the kind's refusals of an object, as one failure.
pub(crate) fn refuse(
    kind: &Arc<Kind>,
    name: &str,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Failure> {
    let mut causes = validate(kind, object);
    if let Some(old) = old {
        causes.extend(validate_update(kind, old, object));
    }
    if causes.is_empty()
        && let Some(schema) = &kind.schema
    {
        causes.extend(schema.validate(object, old));
    }
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Failure::invalid(kind, name, &causes))
    }
}
