//! Versions and engines side by side: databases are an axis of a campaign, each with a server of its own and one of them at
//! a time on the node.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bench::{assert_each_place_measured_once, bench, valid};
use crate::manifest;

const NAMESPACE: &str = "e2e-versions";

#[test]
fn versions_and_engines_are_measured_in_one_campaign_each_as_itself() {
    let (bench, _alone) = bench();
    bench.clear();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "versions");
    let spec = &mut manifest["spec"];
    let database = |name: &str, engine: &str, image: &str| {
        json!({
            "name": name, "engine": engine, "type": "Managed",
            "managed": {"image": image, "storage": {"size": "2Gi"}},
        })
    };
    spec["databases"] = json!([
        database("mariadb-10-11", "MariaDB", bench.database_image()),
        database("mariadb-11-8", "MariaDB", &bench.newer_database_image()),
        database("mysql-9", "MySQL", &bench.mysql_image()),
    ]);
    let log = json!({"volume": "WithData", "limit": "256Mi"});
    spec["auditSettings"] = json!([
        {"name": "no-audit", "type": "None"},
        {"name": "general-log", "type": "GeneralLog", "log": log},
    ]);
    // A log of both engines; one MariaDB with it is enough.
    spec["exclude"] = json!([{"database": "mariadb-11-8", "auditSetting": "general-log"}]);
    spec["threads"] = json!([2]);
    spec["repetitions"]["blocks"] = 1.into();
    spec["comparisons"] = json!([{"name": "version", "axis": "Database", "baseline": "mariadb-10-11"}]);
    bench.apply(&manifest);
    let campaign = bench.completed(NAMESPACE, "versions", 600);
    let runs = bench.list(NAMESPACE, "benchmarkruns");
    assert_each_place_measured_once(&runs);

    let found: BTreeSet<(String, String, String)> = runs
        .iter()
        .filter(|run| valid(run))
        .map(|run| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let cell = &run["spec"]["cell"];
            let version = text(&run["status"]["environment"]["serverVersion"]);
            (text(&cell["database"]), version, text(&cell["auditSetting"]))
        })
        .collect();
    let wanted = [
        ("mariadb-10-11", "10.11.", "no-audit"),
        ("mariadb-10-11", "10.11.", "general-log"),
        ("mariadb-11-8", "11.8.", "no-audit"),
        ("mysql-9", "9.", "no-audit"),
        ("mysql-9", "9.", "general-log"),
    ];
    for (database, version, audit) in wanted {
        assert!(
            found
                .iter()
                .any(|(d, v, a)| d == database && v.starts_with(version) && a == audit),
            "{database} {version} {audit} is not in {found:?}"
        );
    }
    assert_eq!(found.len(), wanted.len(), "{found:?}");
    let answers = campaign["status"]["answers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for level in ["mariadb-11-8", "mysql-9"] {
        assert!(
            answers
                .iter()
                .any(|answer| answer["comparison"] == "version" && answer["level"] == level),
            "no answer for {level}: {answers:?}"
        );
    }
}
