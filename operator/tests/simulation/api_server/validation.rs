//! What a `CustomResourceDefinition` does to an object: prune unknown fields, set defaults, check the structural
//! schema, evaluate the CEL rules. Compiling is dear, so that hundreds of servers share one `Schema`.

use kube::core::cel::{CompiledSchema, apply_defaults, compile_schema, validate_compiled};
use serde_json::Value;

use super::{
    cause::Cause,
    patch::{ListType, ListTypes},
    structural,
};

/// How the real server names the whole object as a field.
const ROOT: &str = "<nil>";

/// A compiled schema of a custom resource.
#[derive(Debug)]
pub(crate) struct Schema {
    json: Value,
    rules: CompiledSchema,
    status_has_rules: bool,
}

impl Schema {
    /// Compiles a schema; expensive, so that worlds share what they have in common.
    pub(crate) fn compile(schema: &Value) -> Self {
        Self {
            rules: compile_schema(schema),
            status_has_rules: has_rules(&schema["properties"]["status"]),
            json: schema.clone(),
        }
    }

    /// Removes fields that the schema does not know; returns their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut dropped = Vec::new();
        structural::prune(&self.json, object, "", &mut dropped);
        dropped
    }

    /// Sets defaults of missing fields.
    pub(crate) fn set_defaults(&self, object: &mut Value) {
        let metadata = object["metadata"].take();
        let mut defaulted = apply_defaults(&self.json, object);
        defaulted["metadata"] = metadata;
        *object = defaulted;
    }

    /// Prunes and defaults a status alone: the rest of the object is as it was stored.
    pub(crate) fn complete_status(&self, object: &mut Value) {
        let schema = &self.json["properties"]["status"];
        let Some(status) = object.get_mut("status") else {
            return;
        };
        structural::prune(schema, status, "status", &mut Vec::new());
        *status = apply_defaults(schema, status);
    }

    /// Everything that is wrong with an object. CEL rules do not run where a value is missing or of the wrong type, and
    /// that is said too, in the real server's words. Where only the status changed, only the status is looked at: rules
    /// of the whole object are about the spec.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        let only_status = old.is_some_and(|old| old["spec"] == object["spec"]);
        if only_status && object["status"].is_null() {
            return causes;
        }
        if only_status {
            let schema = &self.json["properties"]["status"];
            structural::check(schema, &object["status"], "status", &mut causes);
        } else {
            structural::check(&self.json, object, "", &mut causes);
        }
        if causes.iter().any(Cause::blocks_rules) {
            let message = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            causes.push(Cause::new(ROOT, "FieldValueInvalid", message));
            return causes;
        }
        let errors = if only_status {
            match self.rules.properties.get("status") {
                Some(rules) if self.status_has_rules => {
                    let before = old.map(|old| &old["status"]).filter(|status| !status.is_null());
                    validate_compiled(rules, &object["status"], before)
                }
                _ => Ok(()),
            }
        } else {
            validate_compiled(&self.rules, object, old)
        };
        let Err(errors) = errors else {
            return causes;
        };
        let errors = errors.into_iter().map(|error| {
            let reason = match error.reason.as_deref() {
                Some("FieldValueRequired") => "FieldValueRequired",
                Some("FieldValueForbidden") => "FieldValueForbidden",
                Some("FieldValueDuplicate") => "FieldValueDuplicate",
                _ => "FieldValueInvalid",
            };
            let path = error.field_path.trim_start_matches('.');
            let field = match (only_status, path) {
                (false, "") => ROOT.to_owned(),
                (false, path) => path.to_owned(),
                (true, "") => "status".to_owned(),
                (true, path) => format!("status.{path}"),
            };
            Cause::new(&field, reason, format!("Invalid value: {}", error.message))
        });
        causes.extend(errors);
        causes
    }
}

fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            fields.contains_key("x-kubernetes-validations") || fields.values().any(has_rules)
        }
        Value::Array(elements) => elements.iter().any(has_rules),
        _ => false,
    }
}

impl ListTypes for Schema {
    fn list_type(&self, path: &[String]) -> ListType {
        if path.first().is_some_and(|root| root == "metadata") {
            return super::patch::BuiltInLists.list_type(path);
        }
        let mut schema = &self.json;
        for name in path {
            if schema["items"].is_object() {
                schema = &schema["items"];
            }
            schema = match schema["properties"].get(name) {
                Some(property) => property,
                None => &schema["additionalProperties"],
            };
        }
        match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(
                schema["x-kubernetes-list-map-keys"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|key| key.as_str().map(str::to_owned))
                    .collect(),
            ),
            _ => ListType::Atomic,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::compile(&json!({
            "type": "object",
            "required": ["spec"],
            "x-kubernetes-validations": [
                {"rule": "!has(oldSelf.status) || self.spec.size == oldSelf.spec.size", "message": "size is fixed once started"}
            ],
            "properties": {
                "spec": {
                    "type": "object",
                    "required": ["size"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1, "maximum": 9},
                        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                        "parts": {
                            "type": "array", "maxItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {
                                "name": {"type": "string"}, "share": {"type": "integer", "default": 1}
                            }}
                        },
                        "value": {"x-kubernetes-int-or-string": true},
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
                    },
                    "x-kubernetes-validations": [{"rule": "!has(self.name) || self.size > 1", "message": "a name needs size 2"}]
                },
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
            }
        }))
    }

    fn fields(object: &Value, old: Option<&Value>) -> Vec<(String, &'static str)> {
        schema()
            .validate(object, old)
            .into_iter()
            .filter(|cause| cause.field != ROOT || !cause.message.contains("were not checked"))
            .map(|cause| (cause.field, cause.reason))
            .collect()
    }

    #[test]
    fn defaults_and_pruning() {
        let mut object = json!({"metadata": {"name": "x"}, "spec": {
            "size": 1, "odd": true, "parts": [{"name": "p", "odd": 1}], "labels": {"k": "v"}, "free": {"any": {"thing": 1}}
        }});
        assert_eq!(schema().prune(&mut object), ["spec.odd", "spec.parts[0].odd"]);
        schema().set_defaults(&mut object);
        assert_eq!(
            object,
            json!({"metadata": {"name": "x"}, "spec": {
                "size": 1, "color": "red", "parts": [{"name": "p", "share": 1}], "labels": {"k": "v"}, "free": {"any": {"thing": 1}}
            }})
        );
    }

    #[test]
    fn each_kind_of_fault_is_found() {
        let table = [
            (json!({"size": 1}), vec![]),
            (json!({}), vec![("spec.size", "FieldValueRequired")]),
            (json!({"size": 0}), vec![("spec.size", "FieldValueInvalid")]),
            (json!({"size": 10}), vec![("spec.size", "FieldValueInvalid")]),
            (json!({"size": "1"}), vec![("spec.size", "FieldValueTypeInvalid")]),
            (
                json!({"size": 1, "color": "green"}),
                vec![("spec.color", "FieldValueNotSupported")],
            ),
            (
                json!({"size": 2, "name": "A"}),
                vec![("spec.name", "FieldValueInvalid")],
            ),
            (
                json!({"size": 2, "name": "abcdef"}),
                vec![("spec.name", "FieldValueTooLong")],
            ),
            (
                json!({"size": 1, "name": "a"}),
                vec![("spec", "FieldValueInvalid")],
            ),
            (json!({"size": 1, "value": 1}), vec![]),
            (json!({"size": 1, "value": "1"}), vec![]),
            (
                json!({"size": 1, "value": true}),
                vec![("spec.value", "FieldValueTypeInvalid")],
            ),
            (
                json!({"size": 1, "labels": {"k": 1}}),
                vec![("spec.labels.k", "FieldValueTypeInvalid")],
            ),
            (
                json!({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}),
                vec![("spec.parts[1]", "FieldValueDuplicate")],
            ),
            (
                json!({"size": 1, "parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
                vec![("spec.parts", "FieldValueTooMany")],
            ),
        ];
        for (spec, expected) in table {
            let expected: Vec<(String, &str)> = expected
                .into_iter()
                .map(|(field, reason)| (field.to_owned(), reason))
                .collect();
            assert_eq!(fields(&json!({"spec": spec}), None), expected, "{spec}");
        }
    }

    #[test]
    fn transition_rules_see_the_old_object() {
        let old = json!({"spec": {"size": 1}, "status": {"phase": "Running"}});
        let new = json!({"spec": {"size": 2}, "status": {"phase": "Running"}});
        assert_eq!(fields(&new, Some(&old)).len(), 1);
        assert!(fields(&old, Some(&old)).is_empty());
    }
}
