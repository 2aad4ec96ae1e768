//! What the API server needs of a schema and the derive macros do not give: integer formats it knows,
//! list maps, and the immutability rule generated from the list of fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::{Schema, json_schema};
use serde_json::Value;

/// Removes what the API server warns about (`format: uint32` and its kin are not formats that it knows;
/// the bounds stay) so that applying a definition prints nothing.
pub fn finish(definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let Ok(mut value) = serde_json::to_value(&definition) else {
        return definition;
    };
    strip_formats(&mut value);
    serde_json::from_value(value).unwrap_or(definition)
}

fn strip_formats(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let unknown = map
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|f| f.starts_with("uint"));
            if unknown {
                map.remove("format");
            }
            map.values_mut().for_each(strip_formats);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_formats),
        _ => {}
    }
}

/// A root rule that freezes `spec` once `status.startTime` is set, apart from the fields that stay free.
///
/// A per-property `self == oldSelf` does not fire when an optional field comes or goes, hence one rule for all.
pub fn immutable_once_started(frozen: &[&str]) -> String {
    let fields = frozen
        .iter()
        .map(|f| {
            format!("has(self.spec.{f}) == has(oldSelf.spec.{f}) && (!has(self.spec.{f}) || self.spec.{f} == oldSelf.spec.{f})")
        })
        .collect::<Vec<_>>()
        .join(" && ");
    format!("!has(oldSelf.status) || !has(oldSelf.status.startTime) || ({fields})")
}

/// Schema of a field whose content the API server should keep and not look into (pod templates: their full
/// schema is 353 kB, over the limit of client-side apply).
pub fn preserve_unknown(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Schema of a duration in Go's notation.
pub fn duration(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 2, "maxLength": 32, "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"})
}

/// Schema of an optional duration in Go's notation.
pub fn optional_duration(g: &mut schemars::SchemaGenerator) -> Schema {
    let mut schema = duration(g);
    schema.insert("nullable".into(), Value::Bool(true));
    schema
}

/// Schema of a Kubernetes quantity: a number, or a string such as `500m`, `16Gi`.
pub fn quantity(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 32,
        "pattern": "^[+]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$"
    })
}

/// Schema of an optional Kubernetes quantity.
pub fn optional_quantity(g: &mut schemars::SchemaGenerator) -> Schema {
    let mut schema = quantity(g);
    schema.insert("nullable".into(), Value::Bool(true));
    schema
}

/// Schema of node labels that a pod requires.
pub fn node_selector(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 63},
        "maxProperties": 16
    })
}

/// Schema of labels or annotations (whose values may be longer).
pub fn metadata(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 4096},
        "maxProperties": 32
    })
}

/// Schema of a share in percent, such as `"5%"` or `"2.5%"`.
pub fn percent(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 2, "maxLength": 8, "pattern": "^(100(\\.0{1,3})?|[0-9]{1,2}(\\.[0-9]{1,3})?)%$"})
}
