//! The API reference as one Markdown page: every field of every kind with type, default, bounds and description, and
//! every rule with its message. It says what the definitions say and nothing else.

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The page.
pub(crate) fn page(definitions: &[CustomResourceDefinition]) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::from(
        "# API reference\n\nGenerated from the types by `cargo run -p crds --bin crdgen`; do not edit. `kubectl explain` shows the same.\n\
         `[]` is an element of a list, `{}` a value of a map. Fields marked * are required where the object around them is given.\n",
    );
    for definition in definitions {
        let names = &definition.spec.names;
        let version = definition
            .spec
            .versions
            .first()
            .ok_or("a definition has a version")?;
        let schema = version
            .schema
            .as_ref()
            .and_then(|schema| schema.open_api_v3_schema.as_ref())
            .ok_or("a version has a schema")?;
        let schema = serde_json::to_value(schema)?;
        let short = names
            .short_names
            .iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        write!(
            text,
            "\n## {}\n\n`{}/{}`, short name `{short}`. {}\n",
            names.kind,
            definition.spec.group,
            version.name,
            one_line(&schema["description"])
        )?;
        let mut rules = Vec::new();
        own_rules("", &schema, &mut rules);
        for part in ["spec", "status"] {
            let mut rows = String::new();
            fields("", &schema["properties"][part], &mut rows, &mut rules)?;
            write!(
                text,
                "\n### {} {part}\n\n| Field | Type | Description |\n|---|---|---|\n{rows}",
                names.kind
            )?;
        }
        write!(text, "\n### {} rules\n\n", names.kind)?;
        for (path, message) in rules {
            let place = if path.is_empty() {
                String::new()
            } else {
                format!("`{path}`: ")
            };
            writeln!(text, "- {place}{}", escaped(&message))?;
        }
    }
    Ok(text)
}

/// One row for each field below a schema, depth first.
fn fields(
    path: &str,
    schema: &Value,
    rows: &mut String,
    rules: &mut Vec<(String, String)>,
) -> Result<(), std::fmt::Error> {
    own_rules(path, schema, rules);
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let star = if required.contains(&name.as_str()) {
            " *"
        } else {
            ""
        };
        writeln!(
            rows,
            "| `{path}`{star} | {} | {} |",
            escaped(&type_of(field)),
            escaped(&one_line(&field["description"]))
        )?;
        below(&path, field, rules, rows)?;
    }
    Ok(())
}

fn below(
    path: &str,
    field: &Value,
    rules: &mut Vec<(String, String)>,
    rows: &mut String,
) -> Result<(), std::fmt::Error> {
    // Conditions are Kubernetes' own, described once and everywhere alike.
    if path == "conditions" {
        Ok(())
    } else if field["items"].is_object() {
        own_rules(path, field, rules);
        fields(&format!("{path}[]"), &field["items"], rows, rules)
    } else if field["additionalProperties"].is_object() {
        own_rules(path, field, rules);
        fields(
            &format!("{path}{{}}"),
            &field["additionalProperties"],
            rows,
            rules,
        )
    } else {
        fields(path, field, rows, rules)
    }
}

fn own_rules(path: &str, schema: &Value, rules: &mut Vec<(String, String)>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        rules.push((path.to_owned(), one_line(&rule["message"])));
    }
}

/// Type, bounds and default in a few words.
fn type_of(schema: &Value) -> String {
    let mut words = vec![name_of(schema)];
    let number = |key: &str| schema[key].as_f64().map(|n| Value::from(n as i64).to_string());
    match (number("minimum"), number("maximum")) {
        (Some(low), Some(high)) => words.push(format!("{low} to {high}")),
        (Some(low), None) => words.push(format!("at least {low}")),
        (None, Some(high)) => words.push(format!("at most {high}")),
        (None, None) => {}
    }
    for (key, what) in [
        ("maxItems", "elements"),
        ("maxProperties", "entries"),
        ("maxLength", "characters"),
    ] {
        if let Some(most) = schema[key].as_u64() {
            words.push(format!("at most {most} {what}"));
        }
    }
    let default = &schema["default"];
    if default.is_string() && *default != "" || default.is_number() || default.is_boolean() {
        words.push(format!("default `{}`", one_line(default)));
    }
    words.join(", ")
}

fn name_of(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .filter(|v| !v.is_null())
            .map(|v| format!("`{}`", one_line(v)))
            .collect();
        return values.join(" or ");
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", name_of(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", name_of(&schema["additionalProperties"]))
        }
        Some("string") if schema["format"] == "date-time" => "time".to_owned(),
        Some(name) => name.to_owned(),
        None => "anything".to_owned(),
    }
}

fn one_line(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text that a cell of a Markdown table can hold.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}
