//! The definitions as a picky reader of the API sees them: every field described, everything in a spec bounded, the
//! frozen fields all of them, the columns real.

// A test may panic: clippy knows it of test functions, not of what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;

use std::collections::BTreeSet;

use crds::campaign::{FREE, FROZEN};
use serde_json::Value;

/// Calls `visit(path, schema)` for every schema below `schema`, itself included.
fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    for (below, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[below].is_object() {
            walk(&format!("{path}{mark}"), &schema[below], visit);
        }
    }
}

/// Every schema of every kind, with paths such as `BenchmarkCampaign.spec.threads[]`.
fn every_schema(mut visit: impl FnMut(&str, &Value)) {
    for kind in [
        "BenchmarkSchedule",
        "BenchmarkCampaign",
        "BenchmarkTarget",
        "BenchmarkRun",
    ] {
        walk(kind, admission::schema(kind), &mut visit);
    }
}

fn faults(mut fault: impl FnMut(&str, &Value) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    every_schema(|path, schema| {
        if let Some(what) = fault(path, schema) {
            found.push(format!("{path}: {what}"));
        }
    });
    found
}

fn is_property(path: &str) -> bool {
    path.contains('.') && !path.ends_with("[]") && !path.ends_with("{}")
}

#[test]
fn every_field_has_a_description_that_is_a_sentence() {
    let found = faults(|path, schema| {
        if !is_property(path) {
            return None;
        }
        let text = schema["description"].as_str().unwrap_or_default();
        (text.len() < 4 || text == "Spec" || text.starts_with("Auto-generated"))
            .then(|| format!("described as `{text}`"))
    });
    assert_eq!(found, [""; 0]);
}

/// `kubectl explain` does not show defaults, so the description must.
#[test]
fn every_field_with_a_default_says_so() {
    let found = faults(|path, schema| {
        let value = &schema["default"];
        let plain = value.is_string() || value.is_number() || value.is_boolean();
        if !plain || !path.contains(".spec.") || *value == "" {
            return None;
        }
        let text = schema["description"].as_str().unwrap_or_default();
        (!text.contains("default")).then(|| format!("the default is {value}, the description `{text}`"))
    });
    assert_eq!(found, [""; 0]);
}

/// The defaults that the documents promise.
#[test]
fn the_defaults_are_those_of_the_design() {
    let stored = admission::defaulted(&serde_json::json!({
        "apiVersion": "benchmark-campaign.dev/v1alpha1", "kind": "BenchmarkCampaign", "metadata": {"name": "c"},
        "spec": {
            "databases": [], "instanceSizes": [], "workloads": [], "threads": [1],
            "comparisons": [{"name": "audit", "axis": "AuditSetting", "baseline": "no-audit"}],
        },
    }));
    for (pointer, expected) in [
        ("/spec/run/warmup", "60s".into()),
        ("/spec/run/duration", "600s".into()),
        ("/spec/run/reportInterval", "1s".into()),
        ("/spec/run/attempts", 3.into()),
        ("/spec/run/load/type", "Closed".into()),
        ("/spec/order", "Balanced".into()),
        ("/spec/inference", "Comparative".into()),
        ("/spec/restart/policy", "BeforeEachArm".into()),
        ("/spec/restart/settle/timeout", "60s".into()),
        ("/spec/cache/state", "Prewarmed".into()),
        ("/spec/dataset/rebuild", "WhenGrown".into()),
        ("/spec/parallelism", 1.into()),
        ("/spec/idleTargets", "Stop".into()),
        ("/spec/suspend", false.into()),
        ("/spec/loadGenerator/count", 1.into()),
        ("/spec/comparisons/0/primary", "Qps".into()),
        ("/spec/comparisons/0/equivalenceMargin", "5%".into()),
        ("/spec/comparisons/0/noiseFloor", false.into()),
        ("/spec/parameterTemplates/0/name", "default".into()),
        ("/spec/auditSettings/0/type", "None".into()),
    ] {
        let value: Value = expected;
        assert_eq!(stored.pointer(pointer), Some(&value), "{pointer} of {stored}");
    }
    let length: crds::campaign::BenchmarkCampaignSpec =
        serde_json::from_value(stored["spec"].clone()).unwrap();
    let length = std::time::Duration::from(length.maximum_duration);
    assert_eq!(length, std::time::Duration::from_hours(4));
}

/// An unbounded list, map or text costs every rule above it its budget, and the API server its memory.
#[test]
fn everything_in_a_spec_is_bounded() {
    let found = faults(|path, schema| {
        if !path.contains(".spec.") || schema["x-kubernetes-preserve-unknown-fields"] == true {
            return None;
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return schema["maxLength"].is_null().then(|| "no maxLength".to_owned());
        }
        let missing = match schema["type"].as_str()? {
            "string" if schema["enum"].is_null() && schema["maxLength"].is_null() => "maxLength",
            "array" if schema["maxItems"].is_null() => "maxItems",
            "object" if schema["additionalProperties"].is_object() && schema["maxProperties"].is_null() => {
                "maxProperties"
            }
            "integer" | "number" if schema["minimum"].is_null() => "minimum",
            _ => return None,
        };
        Some(format!("no {missing}"))
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn names_are_camel_case_and_formats_known() {
    let found = faults(|path, schema| {
        let name = path
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .trim_end_matches(['[', ']', '{', '}']);
        let camel = path.matches('.').count() == 0
            || name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_alphanumeric());
        let format = schema["format"].as_str();
        let known = format.is_none_or(|format| ["int32", "int64", "date-time", "double"].contains(&format));
        (!camel || !known).then(|| format!("name {name}, format {format:?}"))
    });
    assert_eq!(found, [""; 0]);
}

/// Lists whose elements have names are merged by name, so that two people can apply parts of one.
#[test]
fn lists_of_named_things_are_maps() {
    let found = faults(|path, schema| {
        let named = schema["items"]["properties"]["name"].is_object() && path.contains(".spec.");
        let map =
            schema["x-kubernetes-list-type"] == "map" && schema["x-kubernetes-list-map-keys"][0] == "name";
        (named && !map).then(|| "not a map by name".to_owned())
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn each_field_of_a_campaign_is_either_frozen_or_free() {
    let spec = &admission::schema("BenchmarkCampaign")["properties"]["spec"]["properties"];
    let fields: BTreeSet<&str> = spec.as_object().unwrap().keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> = FROZEN.iter().chain(FREE).copied().collect();
    assert_eq!(
        listed, fields,
        "FROZEN and FREE name every field of the spec once"
    );
    assert_eq!(
        FROZEN.len() + FREE.len(),
        listed.len(),
        "no field is in both lists"
    );
}

#[test]
fn columns_show_fields_that_exist_with_their_type() {
    for definition in crds::all() {
        let kind = definition.spec.names.kind;
        let schema = admission::schema(&kind);
        for column in definition.spec.versions[0]
            .additional_printer_columns
            .iter()
            .flatten()
        {
            let what = format!("{kind}, column {}", column.name);
            if column.json_path == ".metadata.creationTimestamp" {
                continue;
            }
            let mut field = schema;
            for part in column
                .json_path
                .trim_start_matches('.')
                .split('.')
                .filter(|part| !part.starts_with("type=="))
            {
                let (name, filtered) = match part.split_once("[?(@") {
                    Some((name, _)) => (name, true),
                    None => (part, false),
                };
                field = &field["properties"][name];
                if filtered {
                    field = &field["items"];
                }
                assert!(
                    field.is_object(),
                    "{what}: no field {part} in {}",
                    column.json_path
                );
            }
            match column.type_.as_str() {
                "date" => assert_eq!(field["format"], "date-time", "{what}"),
                type_ => assert_eq!(field["type"], type_, "{what}"),
            }
        }
    }
}

#[test]
fn every_rule_says_what_to_do_and_points_at_a_field_that_exists() {
    let found = faults(|_, schema| {
        let mut wrong = Vec::new();
        for rule in schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let message = rule["message"].as_str().unwrap_or_default();
            if message.len() < 20 {
                wrong.push(format!("{} says only `{message}`", rule["rule"]));
            }
            if let Some(path) = rule["fieldPath"].as_str() {
                let names = path.trim_start_matches('.').split('.');
                if names.fold(schema, |at, name| &at["properties"][name]).is_null() {
                    wrong.push(format!("{path} does not exist"));
                }
            }
        }
        (!wrong.is_empty()).then(|| wrong.join("; "))
    });
    assert_eq!(found, [""; 0]);
}
