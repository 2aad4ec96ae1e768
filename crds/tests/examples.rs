//! Every manifest under `examples`, and every one in the documents, is one that the API server would accept, and says
//! nothing that our types do not know.

// A test may panic: clippy knows it of test functions, not of what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;

use std::path::{Path, PathBuf};

use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkSchedule, BenchmarkTarget};
use serde_json::Value;

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Accepted by the schema, read by the type, and nothing lost on the way.
fn check(document: &Value, place: &str) {
    let stored = admission::refused(document, None).unwrap_or_else(|why| panic!("{place}: {why:?}"));
    let read = match document["kind"].as_str().unwrap_or_default() {
        "BenchmarkCampaign" => {
            serde_json::from_value::<BenchmarkCampaign>(stored).and_then(serde_json::to_value)
        }
        "BenchmarkTarget" => serde_json::from_value::<BenchmarkTarget>(stored).and_then(serde_json::to_value),
        "BenchmarkRun" => serde_json::from_value::<BenchmarkRun>(stored).and_then(serde_json::to_value),
        "BenchmarkSchedule" => {
            serde_json::from_value::<BenchmarkSchedule>(stored).and_then(serde_json::to_value)
        }
        other => panic!("{place}: the kind {other} is not ours"),
    };
    let read = read.unwrap_or_else(|error| panic!("{place}: {error}"));
    let lost = lost(document, &read, "");
    assert!(lost.is_empty(), "{place}: not read: {lost:?}");
}

/// Paths of `given` that are not in `read`. Empty lists and maps may go.
fn lost(given: &Value, read: &Value, path: &str) -> Vec<String> {
    match (given, read) {
        (Value::Object(fields), _) => fields
            .iter()
            .filter(|(_, value)| !empty(value))
            .flat_map(|(name, value)| lost(value, &read[name.as_str()], &format!("{path}.{name}")))
            .collect(),
        (Value::Array(elements), Value::Array(others)) if elements.len() == others.len() => elements
            .iter()
            .zip(others)
            .flat_map(|(value, other)| lost(value, other, &format!("{path}[]")))
            .collect(),
        (_, Value::Null) => vec![path.to_owned()],
        _ => Vec::new(),
    }
}

fn empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
        || *value == ""
}

#[test]
fn every_example_is_accepted_and_read_whole() {
    let root = admission::table::repository();
    let mut checked = 0;
    for file in files(&root.join("examples"), "yaml") {
        let place = file.strip_prefix(&root).unwrap().display().to_string();
        let documents = admission::table::documents(&file);
        assert!(!documents.is_empty(), "{place} is empty");
        for document in documents
            .iter()
            .filter(|d| d["apiVersion"] == "benchmark-campaign.dev/v1alpha1")
        {
            check(document, &place);
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked}");
}

#[test]
fn every_study_has_its_manifest_with_the_axes_as_published() {
    let campaign = |file: &str| -> BenchmarkCampaign {
        let path = admission::table::repository().join("examples/studies").join(file);
        let object = admission::table::documents(&path)
            .into_iter()
            .find(|document| document["kind"] == "BenchmarkCampaign")
            .expect("a campaign");
        serde_json::from_value(admission::defaulted(&object)).unwrap()
    };
    // Databases, sizes, templates, audit settings, workloads, thread counts.
    for (file, axes) in [
        ("study-0-taurusdb-sql-audit.yaml", [1, 1, 1, 2, 3, 6]),
        ("study-1-percona-audit-log.yaml", [1, 1, 3, 2, 1, 5]),
        ("study-2-postgresql-audit.yaml", [1, 1, 1, 4, 1, 5]),
        ("study-3-parameter-templates.yaml", [3, 3, 3, 1, 1, 3]),
        ("study-4-mcafee-and-slow-log.yaml", [1, 1, 1, 3, 1, 13]),
        ("study-4-oracle-audit-log.yaml", [1, 1, 1, 2, 1, 13]),
        ("study-4-both-halves.yaml", [2, 1, 1, 5, 1, 13]),
    ] {
        let spec = campaign(file).spec;
        let own: usize = spec
            .instance_sizes
            .iter()
            .filter_map(|size| size.threads.as_ref())
            .map(Vec::len)
            .sum();
        let found = [
            spec.databases.len(),
            spec.instance_sizes.len(),
            spec.parameter_templates.len(),
            spec.audit_settings.len(),
            spec.workloads.len(),
            spec.threads.map_or(own, |threads| threads.len()),
        ];
        assert_eq!(found, axes, "{file}");
    }
}

#[test]
fn every_whole_manifest_in_the_documents_is_accepted() {
    let root = admission::table::repository();
    let mut pages = files(&root.join("docs"), "md");
    pages.push(root.join("README.md"));
    let mut checked = 0;
    for page in pages {
        let place = page.strip_prefix(&root).unwrap().display().to_string();
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            if block.contains("apiVersion: benchmark-campaign.dev/") {
                let documents: Vec<Value> = serde_yaml::from_multiple(block)
                    .unwrap_or_else(|error| panic!("{place}: {error}\n{block}"));
                for document in documents
                    .iter()
                    .filter(|d| d["apiVersion"] == "benchmark-campaign.dev/v1alpha1")
                {
                    check(document, &place);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 2, "{checked}");
}
