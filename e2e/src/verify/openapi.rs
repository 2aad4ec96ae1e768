//! Turns the API server's `OpenAPI` v3 documents into JSON schemas that kubeconform reads, so that manifests are checked
//! against the API that is really there, our own kinds included. Unknown fields are refused, as a typing error should be.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/definitions/";

/// Schemas by the file name that [`LOCATION`] makes for their kind.
pub type Schemas = BTreeMap<String, Value>;

/// kubeconform's template of a schema's file name below a folder. For the core group kubeconform says `v1` as its name.
pub const LOCATION: &str = "{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json";

/// The schemas of all kinds in one `OpenAPI` v3 document.
pub fn schemas(document: &Value) -> Schemas {
    let Some(components) = document["components"]["schemas"].as_object() else {
        return Schemas::new();
    };
    let mut schemas = Schemas::new();
    for (name, component) in components {
        for kind in component["x-kubernetes-group-version-kind"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let text = |field: &str| kind[field].as_str().unwrap_or_default();
            let group = if text("group").is_empty() {
                text("version")
            } else {
                text("group")
            };
            let file = file_of(group, text("kind"), text("version"));
            let mut schema = converted(component);
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("definitions".into(), definitions(name, components));
            }
            schemas.insert(file, schema);
        }
    }
    schemas
}

fn file_of(group: &str, kind: &str, version: &str) -> String {
    format!("{group}/{}_{version}.json", kind.to_lowercase())
}

/// The files that [`schemas`] makes for the kinds of a list of definitions (a `List` of `CustomResourceDefinition`s), by
/// `group/version`.
pub fn kinds(definitions: &Value) -> BTreeMap<String, Vec<String>> {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for spec in definitions["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|definition| &definition["spec"])
    {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
        for version in spec["versions"].as_array().into_iter().flatten() {
            let version = text(&version["name"]);
            kinds
                .entry(format!("{group}/{version}"))
                .or_default()
                .push(file_of(&group, &kind, &version));
        }
    }
    kinds
}

/// Every component that this one refers to, directly or not.
fn definitions(name: &str, components: &Map<String, Value>) -> Value {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        if let Some(component) = components.get(&name) {
            let mut names = Vec::new();
            references(component, &mut names);
            open.extend(names.into_iter().filter(|name| found.insert(name.clone())));
        }
    }
    found
        .into_iter()
        .filter_map(|name| Some((name.clone(), converted(components.get(&name)?))))
        .collect()
}

fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|path| path.strip_prefix(COMPONENTS))
            {
                names.push(name.to_owned());
            }
            map.values().for_each(|value| references(value, names));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

fn converted(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => converted_object(map),
        Value::Array(list) => list.iter().map(converted).collect(),
        Value::String(text) => text.replace(COMPONENTS, DEFINITIONS).into(),
        other => other.clone(),
    }
}

fn converted_object(map: &Map<String, Value>) -> Value {
    if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return json!({"type": ["integer", "string"]});
    }
    let mut out = Map::new();
    for (key, value) in map {
        match key.as_str() {
            // A property may have any of these names; the schemas below it are converted as schemas.
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let converted = properties
                    .map(|(name, schema)| (name.clone(), converted(schema)))
                    .collect();
                out.insert(key.clone(), converted);
            }
            // Values, not schemas.
            "enum" | "required" => {
                out.insert(key.clone(), value.clone());
            }
            // Nothing that decides.
            "description" | "default" | "example" | "nullable" | "format" => {}
            extension if extension.starts_with("x-") => {}
            _ => {
                out.insert(key.clone(), converted(value));
            }
        }
    }
    let closed = out.contains_key("properties")
        && !out.contains_key("additionalProperties")
        && map.get("x-kubernetes-preserve-unknown-fields") != Some(&Value::Bool(true))
        && map.get("x-kubernetes-embedded-resource") != Some(&Value::Bool(true));
    if closed {
        out.insert("additionalProperties".into(), Value::Bool(false));
    }
    if map.get("nullable") == Some(&Value::Bool(true))
        && let Some(type_) = out.get("type").cloned()
    {
        out.insert("type".into(), json!([type_, "null"]));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        json!({"components": {"schemas": {
            "v1.Pod": {
                "type": "object",
                "description": "a pod",
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
                "properties": {
                    "spec": {"allOf": [{"$ref": "#/components/schemas/v1.Spec"}], "default": {}},
                    "default": {"type": "string", "nullable": true},
                },
            },
            "v1.Spec": {
                "type": "object",
                "properties": {
                    "port": {"x-kubernetes-int-or-string": true, "anyOf": []},
                    "again": {"$ref": "#/components/schemas/v1.Spec"},
                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}},
                    "map": {"type": "object", "additionalProperties": {"type": "string", "format": "date"}},
                },
            },
            "v1.Unused": {"type": "object"},
            "dev.Run": {"x-kubernetes-group-version-kind": [{"group": "benchmark-campaign.dev", "version": "v1alpha1", "kind": "BenchmarkRun"}]},
        }}})
    }

    #[test]
    fn files_are_named_as_kubeconform_looks_for_them() {
        let names: Vec<String> = schemas(&document()).into_keys().collect();
        assert_eq!(
            names,
            [
                "benchmark-campaign.dev/benchmarkrun_v1alpha1.json",
                "v1/pod_v1.json"
            ]
        );
    }

    #[test]
    fn the_kinds_of_definitions_are_looked_for_where_their_schemas_are_written() {
        let definitions = json!({"items": [{"spec": {
            "group": "benchmark-campaign.dev",
            "names": {"kind": "BenchmarkRun"},
            "versions": [{"name": "v1alpha1"}],
        }}]});
        let kinds = kinds(&definitions);
        let files = &kinds["benchmark-campaign.dev/v1alpha1"];
        assert!(
            files.iter().all(|file| schemas(&document()).contains_key(file)) && files.len() == 1,
            "{files:?}"
        );
    }

    #[test]
    fn a_schema_carries_what_it_refers_to_and_refuses_unknown_fields() {
        let pod = schemas(&document()).remove("v1/pod_v1.json").unwrap();
        assert_eq!(pod["additionalProperties"], json!(false));
        assert_eq!(
            pod["properties"]["spec"],
            json!({"allOf": [{"$ref": "#/definitions/v1.Spec"}]})
        );
        assert_eq!(
            pod["properties"]["default"],
            json!({"type": ["string", "null"]}),
            "a property called default stays"
        );
        let definitions = pod["definitions"].as_object().unwrap();
        assert_eq!(definitions.keys().collect::<Vec<_>>(), ["v1.Spec"]);
        let spec = &definitions["v1.Spec"]["properties"];
        assert_eq!(spec["port"], json!({"type": ["integer", "string"]}));
        assert_eq!(spec["any"].get("additionalProperties"), None);
        assert_eq!(
            spec["map"],
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        );
    }
}
