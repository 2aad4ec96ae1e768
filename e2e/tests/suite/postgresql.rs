//! PostgreSQL with its mechanisms: nothing, a library that is loaded and records nothing, and what records.

use std::collections::BTreeMap;

use serde_json::json;

use crate::bench::{assert_each_place_measured_once, bench, valid};
use crate::manifest;

const NAMESPACE: &str = "e2e-postgresql";

#[test]
fn postgresql_is_measured_with_each_of_its_mechanisms() {
    let (bench, _alone) = bench();
    bench.clear();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "postgresql");
    let spec = &mut manifest["spec"];
    spec["databases"] = json!([{
        "name": "postgresql-17", "engine": "PostgreSQL", "type": "Managed",
        "expect": {"version": "17"},
        "managed": {"image": bench.postgresql_image(), "storage": {"size": "3Gi"}},
    }]);
    spec["parameterTemplates"] = json!([{"name": "default", "parameters": {"work_mem": "8MB"}}]);
    let log = json!({"volume": "WithData", "limit": "256Mi"});
    spec["auditSettings"] = json!([
        {"name": "no-audit", "type": "None"},
        {"name": "statements", "type": "LogStatement", "log": log},
        {"name": "pgaudit-off", "type": "PgAudit", "state": "InstalledOff"},
        {"name": "pgaudit", "type": "PgAudit", "pgAudit": {"classes": ["All"]}, "log": log},
    ]);
    spec["threads"] = json!([2]);
    spec["repetitions"]["blocks"] = 1.into();
    bench.apply(&manifest);
    bench.completed(NAMESPACE, "postgresql", 600);
    let runs = bench.list(NAMESPACE, "benchmarkruns");
    assert_each_place_measured_once(&runs);

    let found: BTreeMap<&str, (bool, Option<i64>)> = runs
        .iter()
        .filter(|run| valid(run))
        .map(|run| {
            let status = &run["status"];
            let arm = run["spec"]["cell"]["auditSetting"].as_str().unwrap_or_default();
            assert_eq!(status["evidence"]["level"], "Proved", "{arm}");
            let recording = status["evidence"]["audit"]["recording"] == true;
            (
                arm,
                (recording, status["result"]["auditCompletenessPpm"].as_i64()),
            )
        })
        .collect();
    assert_eq!(found.len(), 4, "{found:?}");
    for (arm, records) in [
        ("no-audit", false),
        ("pgaudit-off", false),
        ("statements", true),
        ("pgaudit", true),
    ] {
        let (recording, completeness) = found[arm];
        assert_eq!(recording, records, "{arm}");
        if records {
            let ppm = completeness.unwrap_or_default();
            assert!((990_000..=1_010_000).contains(&ppm), "{arm}: {ppm}");
        }
    }
}
