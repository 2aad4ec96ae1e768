//! The structural part of a CRD schema: which fields exist, and what values they may have.

#![allow(clippy::unused_self, reason = "the methods of one check read alike")]

use std::{
    collections::BTreeMap,
    sync::{LazyLock, Mutex},
};

use regex::Regex;
use serde_json::Value;

use super::cause::Cause;

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Removes unknown fields and lists their paths. `apiVersion`, `kind` and `metadata` of the root are always known.
pub(crate) fn prune(schema: &Value, value: &mut Value, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let preserve = schema["x-kubernetes-preserve-unknown-fields"] == true;
            let additional = &schema["additionalProperties"];
            fields.retain(|name, field| {
                if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                let below = match schema["properties"].get(name) {
                    Some(property) => property,
                    None if additional.is_object() => additional,
                    None if preserve || *additional == true => return true,
                    None => {
                        dropped.push(join(path, name));
                        return false;
                    }
                };
                prune(below, field, &join(path, name), dropped);
                true
            });
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter_mut().enumerate() {
                prune(&schema["items"], element, &format!("{path}[{index}]"), dropped);
            }
        }
        _ => {}
    }
}

/// Collects what is wrong with a value under its schema.
pub(crate) fn check(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if !schema.is_object() || value.is_null() && schema["nullable"] == true {
        return;
    }
    if !type_fits(schema, value) {
        let wanted = schema["type"].as_str().unwrap_or("integer or string");
        let why = format!("{path} in body must be of type {wanted}");
        let mut cause = Cause::invalid(path, value, &why);
        cause.reason = "FieldValueTypeInvalid";
        causes.push(cause);
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!(
            "Unsupported value: {value}: supported values: {}",
            allowed.join(", ")
        );
        causes.push(Cause::new(path, "FieldValueNotSupported", message));
    }
    match value {
        Value::Object(_) => check_object(schema, value, path, causes),
        Value::Array(elements) => check_array(schema, elements, path, causes),
        Value::String(text) => check_string(schema, text, path, causes),
        Value::Number(_) => check_number(schema, value, path, causes),
        _ => {}
    }
    check_junctors(schema, value, path, causes);
}

fn type_fits(schema: &Value, value: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || value.is_i64() || value.is_u64();
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        Some("number") => value.is_number(),
        _ => true,
    }
}

fn check_object(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(fields) = value.as_object() else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !fields.contains_key(name) {
            causes.push(Cause::new(
                &join(path, name),
                "FieldValueRequired",
                "Required value",
            ));
        }
    }
    let size = fields.len() as u64;
    if let Some(limit) = schema["maxProperties"].as_u64()
        && size > limit
    {
        let message = format!("Too many: {size}: must have at most {limit} items");
        causes.push(Cause::new(path, "FieldValueTooMany", message));
    }
    if let Some(limit) = schema["minProperties"].as_u64()
        && size < limit
    {
        let why = format!("{path} in body should have at least {limit} properties");
        causes.push(Cause::invalid(path, &Value::from(size), &why));
    }
    for (name, field) in fields {
        if path.is_empty() && name == "metadata" {
            continue;
        }
        let below = match schema["properties"].get(name) {
            Some(property) => property,
            None => &schema["additionalProperties"],
        };
        check(below, field, &join(path, name), causes);
    }
}

fn check_array(schema: &Value, elements: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let size = elements.len() as u64;
    if let Some(limit) = schema["maxItems"].as_u64()
        && size > limit
    {
        let message = format!("Too many: {size}: must have at most {limit} items");
        causes.push(Cause::new(path, "FieldValueTooMany", message));
        return;
    }
    if let Some(limit) = schema["minItems"].as_u64()
        && size < limit
    {
        let why = format!("{path} in body should have at least {limit} items");
        causes.push(Cause::invalid(path, &Value::from(size), &why));
    }
    let identity = |element: &Value| -> Value {
        match schema["x-kubernetes-list-map-keys"].as_array() {
            Some(keys) => keys
                .iter()
                .map(|key| element[key.as_str().unwrap_or_default()].clone())
                .collect(),
            None => element.clone(),
        }
    };
    let unique = matches!(schema["x-kubernetes-list-type"].as_str(), Some("set" | "map"));
    let mut seen = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if unique {
            let identity = identity(element);
            if seen.contains(&identity) {
                let message = format!("Duplicate value: {identity}");
                causes.push(Cause::new(&path, "FieldValueDuplicate", message));
            }
            seen.push(identity);
        }
        check(&schema["items"], element, &path, causes);
    }
}

fn check_string(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let value = Value::from(text);
    let length = text.chars().count() as u64;
    if let Some(limit) = schema["maxLength"].as_u64()
        && length > limit
    {
        let message = format!("Too long: may not be more than {limit} bytes");
        causes.push(Cause::new(path, "FieldValueTooLong", message));
        return;
    }
    if let Some(limit) = schema["minLength"].as_u64()
        && length < limit
    {
        let why = format!("{path} in body should be at least {limit} chars long");
        causes.push(Cause::invalid(path, &value, &why));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && !pattern_matches(pattern, text)
    {
        let why = format!("{path} in body should match '{pattern}'");
        causes.push(Cause::invalid(path, &value, &why));
    }
    let format_fits = match schema["format"].as_str() {
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        _ => true,
    };
    if !format_fits {
        let why = format!("{path} in body must be of type date-time");
        causes.push(Cause::invalid(path, &value, &why));
    }
}

fn check_number(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(number) = value.as_f64() else {
        return;
    };
    if let Some(limit) = schema["minimum"].as_f64()
        && (number < limit || schema["exclusiveMinimum"] == true && number <= limit)
    {
        let why = format!("{path} in body should be greater than or equal to {limit}");
        causes.push(Cause::invalid(path, value, &why));
    }
    if let Some(limit) = schema["maximum"].as_f64()
        && (number > limit || schema["exclusiveMaximum"] == true && number >= limit)
    {
        let why = format!("{path} in body should be less than or equal to {limit}");
        causes.push(Cause::invalid(path, value, &why));
    }
}

fn check_junctors(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let fits = |branch: &Value| {
        let mut below = Vec::new();
        check(branch, value, path, &mut below);
        below.is_empty()
    };
    let fitting = |name: &str| {
        schema[name]
            .as_array()
            .map(|branches| branches.iter().filter(|branch| fits(branch)).count())
    };
    if fitting("anyOf") == Some(0) {
        let why = format!("{path} in body must validate at least one schema (anyOf)");
        causes.push(Cause::invalid(path, value, &why));
    }
    if fitting("oneOf").is_some_and(|count| count != 1) {
        let why = format!("{path} in body must validate one and only one schema (oneOf)");
        causes.push(Cause::invalid(path, value, &why));
    }
    for branch in schema["allOf"].as_array().into_iter().flatten() {
        check(branch, value, path, causes);
    }
    if schema["not"].is_object() && fits(&schema["not"]) {
        let why = format!("{path} in body must not validate the schema (not)");
        causes.push(Cause::invalid(path, value, &why));
    }
}

/// Whether a text matches a pattern anywhere, as `OpenAPI` has it. Compiled patterns are kept for the process.
pub(crate) fn pattern_matches(pattern: &str, text: &str) -> bool {
    static PATTERNS: LazyLock<Mutex<BTreeMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut patterns = PATTERNS.lock().expect("no panic while matching");
    patterns
        .entry(pattern.to_owned())
        .or_insert_with(|| Regex::new(pattern).expect("a pattern that the real server would accept"))
        .is_match(text)
}
