//! pgbench from two pods at a rate, on PostgreSQL without pgaudit, with it loaded, and with it on: both pods meet, apply their
//! halves, and count as one.

use std::collections::BTreeSet;

use serde_json::json;

use crate::bench::{assert_each_place_measured_once, bench, valid};
use crate::manifest;

const NAMESPACE: &str = "e2e-load";
/// Transactions per second of both.
const RATE: i64 = 100;

#[test]
fn two_load_generators_keep_a_rate_together() {
    let (bench, _alone) = bench();
    bench.clear();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "together");
    let spec = &mut manifest["spec"];
    spec["databases"] = json!([{
        "name": "postgresql-17", "engine": "PostgreSQL", "type": "Managed",
        "managed": {"image": bench.postgresql_image(), "storage": {"size": "3Gi"}},
    }]);
    spec["parameterTemplates"] = json!([{"name": "default", "parameters": {"work_mem": "8MB"}}]);
    spec["auditSettings"] = json!([
        {"name": "no-audit", "type": "None"},
        {"name": "pgaudit-off", "type": "PgAudit", "state": "InstalledOff"},
        {"name": "pgaudit", "type": "PgAudit", "pgAudit": {"classes": ["All"]}, "log": {"volume": "WithData", "limit": "256Mi"}},
    ]);
    spec["workloads"] = json!([
        {"name": "bank", "type": "Pgbench", "pgbench": {"scale": 1, "builtin": "TpcbLike"}},
    ]);
    spec["threads"] = json!([2]);
    spec["loadGenerator"] = json!({
        "count": 2,
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
    });
    spec["run"]["load"] = json!({"type": "Rate", "rate": RATE});
    spec["comparisons"][0]["primary"] = "LatencyMean".into();
    spec["repetitions"]["blocks"] = 1.into();
    bench.apply(&manifest);
    bench.completed(NAMESPACE, "together", 600);
    let runs = bench.list(NAMESPACE, "benchmarkruns");
    assert_each_place_measured_once(&runs);
    let counted: Vec<_> = runs.iter().filter(|run| valid(run)).collect();
    let mut arms = BTreeSet::new();
    for run in counted {
        let result = &run["status"]["result"];
        let tps = result["tpsMilli"].as_i64().unwrap_or_default();
        assert!((RATE * 500..RATE * 1_500).contains(&tps), "{result}");
        assert_eq!(
            result["qpsMilli"].as_i64().map(|qps| (qps - 7 * tps).abs() < 20),
            Some(true)
        );
        assert!(result["latencyP95Micros"].as_i64() > Some(0), "{result}");
        let (arm, evidence) = (&run["spec"]["cell"]["auditSetting"], &run["status"]["evidence"]);
        assert_eq!(evidence["level"], "Proved", "{arm}");
        assert_eq!(evidence["audit"]["installed"], *arm != "no-audit", "{arm}");
        assert_eq!(evidence["audit"]["recording"], *arm == "pgaudit", "{arm}");
        if *arm == "pgaudit" {
            let ppm = result["auditCompletenessPpm"].as_i64().unwrap_or_default();
            assert!((990_000..=1_010_000).contains(&ppm), "{ppm}");
        }
        arms.insert(arm.to_string());
    }
    assert_eq!(arms.len(), 3, "not preloaded, preloaded and off, on: {arms:?}");
    let jobs = bench.list(NAMESPACE, "jobs");
    let indexed = jobs
        .iter()
        .filter(|job| job["spec"]["completionMode"] == "Indexed")
        .count();
    assert!(indexed > 0, "the runs' Jobs have two pods each");
}
