//! A manifest as the API server would take it: read, fields that it does not know named, its own rules applied.

use std::io::Read as _;
use std::path::Path;

use crds::BenchmarkCampaign;
use serde_json::Value;

use crate::Failure;

/// The campaigns of a file with one or several documents; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<BenchmarkCampaign>, Failure> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| Failure::Manifest(format!("{}: {error}", path.display())))?;
    parse(&text).map_err(|why| Failure::Manifest(format!("{}: {why}", path.display())))
}

/// The campaigns among the documents of a text.
pub(crate) fn parse(text: &str) -> Result<Vec<BenchmarkCampaign>, String> {
    let documents: Vec<Value> =
        serde_yaml::from_multiple(text).map_err(|error| format!("not YAML: {error}"))?;
    let campaigns: Vec<&Value> = documents
        .iter()
        .filter(|document| document["kind"] == "BenchmarkCampaign")
        .collect();
    if campaigns.is_empty() {
        return Err("there is no document of kind BenchmarkCampaign".to_owned());
    }
    campaigns.into_iter().map(one).collect()
}

fn one(document: &Value) -> Result<BenchmarkCampaign, String> {
    let campaign: BenchmarkCampaign = serde_json::from_value(document.clone())
        .map_err(|error| format!("not a BenchmarkCampaign: {error}"))?;
    let read = serde_json::to_value(&campaign).map_err(|error| error.to_string())?;
    let mut unknown = Vec::new();
    not_read(&document["spec"], &read["spec"], "spec", &mut unknown);
    if !unknown.is_empty() {
        return Err(format!(
            "these are not fields of a BenchmarkCampaign: {}; see kubectl explain bc.spec",
            unknown.join(", ")
        ));
    }
    kube::core::cel::validate_cel(&campaign).map_err(|errors| {
        let lines: Vec<String> = errors
            .as_slice()
            .iter()
            .map(|error| format!("{}: {}", error.field_path, error.message))
            .collect();
        format!("the API server would refuse it:\n{}", lines.join("\n"))
    })?;
    Ok(campaign)
}

/// Paths that were given and are not in what was read. Empty lists and maps may go.
fn not_read(given: &Value, read: &Value, path: &str, found: &mut Vec<String>) {
    match (given, read) {
        (Value::Object(fields), _) => {
            for (name, value) in fields {
                let empty = value.is_null()
                    || value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(serde_json::Map::is_empty)
                    || value == "";
                if !empty {
                    not_read(value, &read[name.as_str()], &format!("{path}.{name}"), found);
                }
            }
        }
        (Value::Array(given), Value::Array(read)) if given.len() == read.len() => {
            for (index, (given, read)) in given.iter().zip(read).enumerate() {
                not_read(given, read, &format!("{path}[{index}]"), found);
            }
        }
        (_, Value::Null) => found.push(path.to_owned()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    const QUICKSTART: &str = include_str!("../../examples/quickstart.yaml");

    #[test]
    fn the_quickstart_is_read() {
        let campaigns = parse(QUICKSTART).unwrap();
        assert_eq!(campaigns.len(), 1);
        let text = campaign::report::plan(&campaigns[0]).unwrap();
        assert!(text.contains("38 runs"), "{text}");
    }

    #[test]
    fn what_the_api_server_would_not_take_is_named() {
        for (from, to, words) in [
            ("warmup: 2s", "warmupp: 2s", "spec.run.warmupp"),
            ("baseline: no-audit", "baseline: nobody", "baseline"),
            ("blocks: 6", "blocks: 3", "repetitions.blocks must be at least 6"),
            ("engine: MariaDB", "engine: MariaDb", "not a BenchmarkCampaign"),
            (
                "kind: BenchmarkCampaign",
                "kind: Benchmark",
                "no document of kind",
            ),
            ("spec:", "spec: [", "not YAML"),
        ] {
            assert!(QUICKSTART.contains(from), "{from}");
            let error = parse(&QUICKSTART.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(words), "{to}: {error}");
        }
    }
}
