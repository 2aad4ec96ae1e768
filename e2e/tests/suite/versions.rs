//! Versions side by side: databases are an axis of a campaign, each with a server of its own and one of them at a time on
//! the node.

use std::collections::BTreeMap;

use serde_json::json;

use crate::bench::{assert_each_place_measured_once, bench, valid};
use crate::manifest;

const NAMESPACE: &str = "e2e-versions";

#[test]
fn two_versions_are_measured_in_one_campaign_each_as_itself() {
    let (bench, _alone) = bench();
    bench.clear();
    let newer = bench.newer_database_image();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "versions");
    let spec = &mut manifest["spec"];
    spec["databases"][0]["name"] = "mariadb-10-11".into();
    let mut other = spec["databases"][0].clone();
    other["name"] = "mariadb-11-8".into();
    other["managed"]["image"] = newer.into();
    spec["databases"].as_array_mut().expect("a list").push(other);
    spec["threads"] = json!([2]);
    spec["repetitions"]["blocks"] = 1.into();
    spec["comparisons"] = json!([{"name": "version", "axis": "Database", "baseline": "mariadb-10-11"}]);
    bench.apply(&manifest);
    let campaign = bench.completed(NAMESPACE, "versions", 420);
    let runs = bench.list(NAMESPACE, "benchmarkruns");
    assert_each_place_measured_once(&runs);

    let mut found = BTreeMap::<String, Vec<String>>::new();
    for run in runs.iter().filter(|run| valid(run)) {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let cell = &run["spec"]["cell"];
        let version = text(&run["status"]["environment"]["serverVersion"]);
        let audit = text(&cell["auditSetting"]);
        let measured = format!(
            "{} {audit}",
            version.split('.').take(2).collect::<Vec<_>>().join(".")
        );
        found.entry(text(&cell["database"])).or_default().push(measured);
    }
    for (database, version) in [("mariadb-10-11", "10.11"), ("mariadb-11-8", "11.8")] {
        for audit in ["no-audit", "audit-all"] {
            let wanted = format!("{version} {audit}");
            assert!(found[database].contains(&wanted), "{wanted} is not in {found:?}");
        }
        assert!(
            found[database]
                .iter()
                .all(|measured| measured.starts_with(version)),
            "{found:?}"
        );
    }
    let answers = campaign["status"]["answers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert!(
        answers.iter().any(|answer| answer["comparison"] == "version"),
        "no answer: {answers:?}"
    );
}
