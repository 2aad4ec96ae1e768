//! Where a pod goes: node selectors, host names in the affinity, and the node that holds its volumes.

use serde_json::{Value, json};

use super::Node;
use crate::{
    api_server::{State, store::Key},
    random::Dice,
};

/// Chooses a node and binds the pod and its claims; the reason if it cannot.
pub(crate) fn bind(
    state: &mut State,
    dice: &mut Dice,
    nodes: &[Node],
    key: &Key,
    pod: &Value,
) -> Result<String, String> {
    let claims = claim_keys(state, key, pod);
    let mut bound = None;
    for claim in &claims {
        let Some(version) = state.store.get(claim) else {
            return Err(format!("persistentvolumeclaim {:?} not found", claim.name));
        };
        if !version.value["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!("persistentvolumeclaim {:?} is being deleted", claim.name));
        }
        if let Some(node) = version.value["metadata"]["annotations"][SELECTED_NODE].as_str() {
            bound = Some(node.to_owned());
        }
    }
    let candidates: Vec<&Node> = nodes
        .iter()
        .filter(|node| fits(node, &pod["spec"]) && bound.as_ref().is_none_or(|bound| node.name == *bound))
        .collect();
    if candidates.is_empty() {
        return Err(format!(
            "0/{} nodes are available: node(s) didn't match Pod's node affinity/selector",
            nodes.len()
        ));
    }
    let node = candidates[dice.index(candidates.len())].name.clone();
    for claim in &claims {
        state.change("scheduler", claim, |object| {
            object["metadata"]["annotations"][SELECTED_NODE] = json!(node);
            let volume = format!("pvc-{}", object["metadata"]["uid"].as_str().unwrap_or_default());
            object["spec"]["volumeName"] = json!(volume);
            object["status"]["phase"] = json!("Bound");
            object["status"]["capacity"] = object["spec"]["resources"]["requests"].clone();
        });
    }
    Ok(node)
}

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

fn claim_keys(state: &State, pod_key: &Key, pod: &Value) -> Vec<Key> {
    pod["spec"]["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
        .map(|name| state.key("", "persistentvolumeclaims", &pod_key.namespace, name))
        .collect()
}

fn fits(node: &Node, spec: &Value) -> bool {
    if let Some(name) = spec["nodeName"].as_str() {
        return name == node.name;
    }
    let has = |key: &str, value: &str| {
        node.labels
            .iter()
            .any(|(label, found)| label == key && found == value)
    };
    let selected = spec["nodeSelector"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| has(key, value.as_str().unwrap_or_default()));
    let terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        .as_array();
    selected
        && terms.is_none_or(|terms| {
            terms.iter().any(|term| {
                requirements(term, "matchExpressions").all(|expression| {
                    let key = expression["key"].as_str().unwrap_or_default();
                    let label = node.labels.iter().find(|(label, _)| label == key);
                    expression_holds(label.map(|(_, value)| value.as_str()), expression)
                }) && requirements(term, "matchFields").all(|expression| {
                    // The only field that nodes are selected by.
                    expression["key"] == "metadata.name" && expression_holds(Some(&node.name), expression)
                })
            })
        })
}

fn requirements<'a>(term: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    term[list].as_array().into_iter().flatten()
}

fn expression_holds(value: Option<&str>, expression: &Value) -> bool {
    let listed = expression["values"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|wanted| wanted.as_str() == value);
    match expression["operator"].as_str() {
        Some("In") => listed,
        Some("NotIn") => !listed,
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => false,
    }
}

/// Secrets and ConfigMaps that a pod mounts and that are not there.
pub(crate) fn missing_references(state: &State, pod_key: &Key, pod: &Value) -> Option<String> {
    for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
        for (field, name_field, plural) in [
            ("secret", "secretName", "secrets"),
            ("configMap", "name", "configmaps"),
        ] {
            let source = &volume[field];
            let Some(name) = source[name_field].as_str() else {
                continue;
            };
            let key = state.key("", plural, &pod_key.namespace, name);
            if source["optional"] != true && state.store.get(&key).is_none() {
                return Some(format!("{plural} {name:?} not found"));
            }
        }
    }
    None
}
