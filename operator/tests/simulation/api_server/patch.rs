//! The four patch types as pure functions over JSON: merge, strategic (as merge with keyed lists), JSON patch and
//! server-side apply. Ownership of fields is known only by what each manager applied last, not by updates.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// RFC 7396.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(object) = target else {
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// How a list at some place merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    /// Elements are told apart by these fields.
    Map(Vec<String>),
}

/// Merge rules of lists; a custom resource's come from its schema, those of built-in kinds from a table.
pub(crate) trait ListTypes {
    /// The rule for the list at this path of field names (list elements add no segment).
    fn list_type(&self, path: &[String]) -> ListType;
}

/// The lists of built-in kinds that matter here.
pub(crate) struct BuiltInLists;

impl ListTypes for BuiltInLists {
    fn list_type(&self, path: &[String]) -> ListType {
        let keys = |names: &[&str]| ListType::Map(names.iter().map(|name| (*name).to_owned()).collect());
        match path.last().map(String::as_str) {
            Some("containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets") => keys(&["name"]),
            Some("volumeMounts") => keys(&["mountPath"]),
            Some("ownerReferences") => keys(&["uid"]),
            Some("conditions") => keys(&["type"]),
            Some("finalizers") => ListType::Set,
            Some("ports") => match path.iter().any(|part| part == "containers") {
                true => keys(&["containerPort", "protocol"]),
                false => keys(&["port", "protocol"]),
            },
            _ => ListType::Atomic,
        }
    }
}

/// Strategic merge patch: as a merge patch, but lists with keys merge by key.
pub(crate) fn strategic(target: &mut Value, patch: &Value, lists: &dyn ListTypes) {
    overlay(target, patch, lists, &mut Vec::new(), true);
}

/// Lays `patch` over `target`. `null` removes a field in a patch and is a value in an applied configuration.
fn overlay(
    target: &mut Value,
    patch: &Value,
    lists: &dyn ListTypes,
    path: &mut Vec<String>,
    null_removes: bool,
) {
    match (target, patch) {
        (Value::Object(object), Value::Object(fields)) => {
            for (name, value) in fields {
                if value.is_null() && null_removes {
                    object.remove(name);
                    continue;
                }
                path.push(name.clone());
                overlay(
                    object.entry(name).or_insert(Value::Null),
                    value,
                    lists,
                    path,
                    null_removes,
                );
                path.pop();
            }
        }
        (Value::Array(elements), Value::Array(wanted)) => match lists.list_type(path) {
            ListType::Atomic => elements.clone_from(wanted),
            ListType::Set => {
                for element in wanted {
                    if !elements.contains(element) {
                        elements.push(element.clone());
                    }
                }
            }
            ListType::Map(keys) => {
                for element in wanted {
                    match elements.iter_mut().find(|other| same(other, element, &keys)) {
                        Some(other) => overlay(other, element, lists, path, null_removes),
                        None => elements.push(element.clone()),
                    }
                }
            }
        },
        (target, patch) => {
            *target = patch.clone();
            if null_removes {
                strip_nulls(target);
            }
        }
    }
}

fn strip_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(strip_nulls);
    }
}

fn same(left: &Value, right: &Value, keys: &[String]) -> bool {
    keys.iter().all(|key| left[key] == right[key])
}

/// The object after a server-side apply: `applied` is laid over it, and what the same manager applied before and
/// now left out is removed unless another manager applied it too.
pub(crate) fn apply(
    current: &Value,
    applied: &Value,
    previous: Option<&Value>,
    others: &[&Value],
    lists: &dyn ListTypes,
) -> Value {
    let mut result = current.clone();
    if let Some(previous) = previous {
        withdraw(&mut result, previous, applied, others, lists, &mut Vec::new());
    }
    overlay(&mut result, applied, lists, &mut Vec::new(), false);
    result
}

/// Removes from `target` what is in `previous` and neither in `applied` nor in any of `others`.
fn withdraw(
    target: &mut Value,
    previous: &Value,
    applied: &Value,
    others: &[&Value],
    lists: &dyn ListTypes,
    path: &mut Vec<String>,
) {
    match (target, previous) {
        (Value::Object(object), Value::Object(fields)) => {
            for (name, old) in fields {
                let owned: Vec<&Value> = others.iter().filter_map(|other| other.get(name)).collect();
                let Some(kept) = applied.get(name).or(if owned.is_empty() {
                    None
                } else {
                    Some(&Value::Null)
                }) else {
                    remove_field(object, name, old);
                    continue;
                };
                if let Some(field) = object.get_mut(name) {
                    path.push(name.clone());
                    withdraw(field, old, kept, &owned, lists, path);
                    path.pop();
                }
            }
        }
        (Value::Array(elements), Value::Array(old)) => {
            let kept = |element: &Value, list: &Value, keys: &[String]| {
                list.as_array().is_some_and(|list| {
                    list.iter().any(|other| {
                        if keys.is_empty() {
                            other == element
                        } else {
                            same(other, element, keys)
                        }
                    })
                })
            };
            let keys = match lists.list_type(path) {
                ListType::Atomic => return,
                ListType::Set => Vec::new(),
                ListType::Map(keys) => keys,
            };
            elements.retain(|element| {
                let was_mine = old.iter().any(|other| {
                    if keys.is_empty() {
                        other == element
                    } else {
                        same(other, element, &keys)
                    }
                });
                !was_mine
                    || kept(element, applied, &keys)
                    || others.iter().any(|other| kept(element, other, &keys))
            });
            if keys.is_empty() {
                return;
            }
            for element in elements {
                let find = |list: &Value| -> Value {
                    list.as_array()
                        .and_then(|list| list.iter().find(|other| same(other, element, &keys)))
                        .cloned()
                        .unwrap_or(Value::Null)
                };
                let (mine, now) = (find(&Value::Array(old.clone())), find(applied));
                let theirs: Vec<Value> = others.iter().map(|other| find(other)).collect();
                withdraw(
                    element,
                    &mine,
                    &now,
                    &theirs.iter().collect::<Vec<_>>(),
                    lists,
                    path,
                );
            }
        }
        _ => {}
    }
}

/// Removes what was applied under a name; fields that others put beside it stay.
fn remove_field(object: &mut Map<String, Value>, name: &str, old: &Value) {
    let Some(field) = object.get_mut(name) else {
        return;
    };
    if let (Value::Object(inner), Value::Object(mine)) = (field, old)
        && !mine.is_empty()
    {
        for (name, old) in mine {
            remove_field(inner, name, old);
        }
        if !inner.is_empty() {
            return;
        }
    }
    object.remove(name);
}

/// Paths of leaves at which an applied configuration would change what another manager applied.
pub(crate) fn conflicts(applied: &Value, other: &Value, current: &Value) -> Vec<String> {
    let mut found = BTreeSet::new();
    collect_conflicts(applied, other, current, String::new(), &mut found);
    found.into_iter().collect()
}

fn collect_conflicts(
    applied: &Value,
    other: &Value,
    current: &Value,
    path: String,
    found: &mut BTreeSet<String>,
) {
    match (applied, other) {
        (Value::Object(mine), Value::Object(theirs)) => {
            for (name, value) in mine {
                if let Some(their) = theirs.get(name) {
                    collect_conflicts(value, their, &current[name], format!("{path}.{name}"), found);
                }
            }
        }
        // Lists are compared only as a whole; keyed lists seldom have two appliers.
        (Value::Array(_), _) | (_, Value::Array(_)) => {}
        (mine, _) if mine != current => {
            found.insert(path);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_removes_on_null_and_replaces_lists() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
        merge(&mut object, &json!({"a": {"b": null, "d": {"e": 1}}, "l": [3]}));
        assert_eq!(object, json!({"a": {"c": 2, "d": {"e": 1}}, "l": [3]}));
    }

    #[test]
    fn strategic_merges_keyed_lists() {
        let mut pod = json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}});
        let patch = json!({"spec": {"containers": [{"name": "a", "image": "y"}]}});
        strategic(&mut pod, &patch, &BuiltInLists);
        assert_eq!(
            pod["spec"]["containers"],
            json!([{"name": "a", "image": "y"}, {"name": "b"}])
        );
    }

    #[test]
    fn apply_withdraws_what_its_manager_left_out() {
        let current =
            json!({"metadata": {"labels": {"mine": "1", "theirs": "2", "both": "3"}}, "spec": {"x": 1}});
        let before = json!({"metadata": {"labels": {"mine": "1", "both": "3"}}, "spec": {"x": 1}});
        let other = json!({"metadata": {"labels": {"both": "3"}}});
        let after = apply(
            &current,
            &json!({"metadata": {"labels": {}}}),
            Some(&before),
            &[&other],
            &BuiltInLists,
        );
        assert_eq!(
            after,
            json!({"metadata": {"labels": {"theirs": "2", "both": "3"}}})
        );
    }

    #[test]
    fn apply_keeps_keyed_elements_of_others() {
        let current = json!({"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}});
        let mine = json!({"status": {"conditions": [{"type": "A", "status": "True"}]}});
        let now = json!({"status": {"conditions": [{"type": "C", "status": "True"}]}});
        let after = apply(&current, &now, Some(&mine), &[], &BuiltInLists);
        assert_eq!(
            after["status"]["conditions"],
            json!([{"type": "B", "status": "True"}, {"type": "C", "status": "True"}])
        );
    }

    #[test]
    fn conflicts_name_the_leaf() {
        let current = json!({"data": {"a": "1"}});
        let theirs = json!({"data": {"a": "1"}});
        assert_eq!(
            conflicts(&json!({"data": {"a": "2"}}), &theirs, &current),
            [".data.a"]
        );
        assert!(conflicts(&json!({"data": {"a": "1"}}), &theirs, &current).is_empty());
    }
}
