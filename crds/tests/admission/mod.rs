//! What the API server would say to an object of one of our kinds: unknown fields, defaults, structural schema, CEL
//! rules. The structural check is the simulation's, which a conformance test compares with a real API server; this
//! module only puts the steps in the server's order.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kube::core::cel::{CompiledSchema, apply_defaults, compile_schema, validate_compiled};
use serde_json::Value;

pub(crate) mod table;

/// The simulation's check of a schema.
#[path = "../../../operator/tests/simulation/api_server/structural.rs"]
mod structural;

/// Its word for one field that is refused.
#[path = "../../../operator/tests/simulation/api_server/cause.rs"]
mod cause;

/// Where an object is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// By the structural schema, or for a field that it does not know (strict, as kubectl asks for).
    Schema,
    /// By a CEL rule.
    Rule,
}

/// The schema of one kind.
struct Kind {
    schema: Value,
    rules: CompiledSchema,
}

static KINDS: LazyLock<BTreeMap<String, Kind>> = LazyLock::new(|| {
    crds::all()
        .into_iter()
        .map(|definition| {
            let version = definition.spec.versions.first().expect("one version");
            let schema = version
                .schema
                .as_ref()
                .and_then(|schema| schema.open_api_v3_schema.as_ref());
            let schema = serde_json::to_value(schema.expect("a schema")).expect("plain data");
            let rules = compile_schema(&schema);
            (definition.spec.names.kind, Kind { schema, rules })
        })
        .collect()
});

/// The schema of a kind, as the API server has it.
pub(crate) fn schema(kind: &str) -> &'static Value {
    &KINDS.get(kind).expect("one of our kinds").schema
}

/// The object as the API server would store it.
pub(crate) fn defaulted(object: &Value) -> Value {
    let kind = object["kind"].as_str().expect("an object has a kind");
    let mut stored = apply_defaults(schema(kind), object);
    stored["metadata"] = object["metadata"].clone();
    stored
}

/// What is wrong with an object (or with a change of `old`, which must be defaulted), as lines `field: message`.
pub(crate) fn refused(object: &Value, old: Option<&Value>) -> Result<Value, (Refusal, Vec<String>)> {
    let name = object["kind"].as_str().expect("an object has a kind");
    let kind = KINDS.get(name).expect("one of our kinds");
    let mut unknown = Vec::new();
    structural::prune(&kind.schema, &mut object.clone(), "", &mut unknown);
    if !unknown.is_empty() {
        let lines = unknown.iter().map(|path| format!("unknown field \"{path}\""));
        return Err((Refusal::Schema, lines.collect()));
    }
    let stored = defaulted(object);
    let mut causes = Vec::new();
    structural::check(&kind.schema, &stored, "", &mut causes);
    if !causes.is_empty() {
        let lines = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message));
        return Err((Refusal::Schema, lines.collect()));
    }
    match validate_compiled(&kind.rules, &stored, old) {
        Ok(()) => Ok(stored),
        Err(errors) => {
            let lines = errors
                .into_iter()
                .map(|error| format!("{}: {}", error.field_path.trim_start_matches('.'), error.message));
            Err((Refusal::Rule, lines.collect()))
        }
    }
}
