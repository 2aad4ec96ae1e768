//! Manifests of the suite: small campaigns of a few seconds a run.

use serde_json::{Value, json};

use crate::bench::Bench;

/// Auditing against none on a small read-only load: Descriptive, two blocks, runs of three seconds.
pub(crate) fn campaign(bench: &Bench, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "benchmark-campaign.dev/v1alpha1",
        "kind": "BenchmarkCampaign",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "databases": [{
                "name": "mariadb",
                "engine": "MariaDB",
                "type": "Managed",
                "managed": {"image": bench.database_image(), "storage": {"size": "1Gi"}},
            }],
            "instanceSizes": [{"name": "1u1g", "cpu": "1", "memory": "1Gi"}],
            "parameterTemplates": [{"name": "default", "parameters": {"max_prepared_stmt_count": 100_000}}],
            "auditSettings": [
                {"name": "no-audit", "type": "None"},
                {"name": "audit-all", "type": "ServerAudit", "serverAudit": {"events": ["All"]},
                 "log": {"volume": "WithData", "limit": "256Mi"}},
            ],
            "workloads": [{
                "name": "read-only",
                "type": "Sysbench",
                "sysbench": {"script": "oltp_read_only", "tables": 2, "tableSize": 2000, "options": {"rand-type": "uniform"}},
            }],
            "threads": [1, 2],
            "run": {"warmup": "1s", "duration": "3s", "attempts": 3},
            "repetitions": {"blocks": 2},
            "inference": "Descriptive",
            // No burn-in.
            "order": "Grouped",
            "restart": {"settle": {"timeout": "20s"}},
            "comparisons": [{"name": "audit", "axis": "AuditSetting", "baseline": "no-audit"}],
            "maximumDuration": "1h",
        },
    })
}

/// A database to make runs on by hand.
pub(crate) fn target(bench: &Bench, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "benchmark-campaign.dev/v1alpha1",
        "kind": "BenchmarkTarget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "engine": "MariaDB",
            "type": "Managed",
            "managed": {
                "image": bench.database_image(), "cpu": "1", "memory": "1Gi",
                "storage": {"size": "1Gi"}, "idle": "Keep",
            },
        },
    })
}

/// A run made by hand, without auditing.
pub(crate) fn run(namespace: &str, name: &str, target: &str, seconds: u32) -> Value {
    json!({
        "apiVersion": "benchmark-campaign.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "targetRef": {"name": target},
            "audit": {"name": "no-audit", "type": "None"},
            "workload": {
                "name": "read-only",
                "type": "Sysbench",
                "sysbench": {"script": "oltp_read_only", "tables": 2, "tableSize": 10_000, "options": {"rand-type": "uniform"}},
            },
            "rowsPerTable": 10_000,
            "threads": 2,
            "seed": 7,
            "run": {"warmup": "2s", "duration": format!("{seconds}s")},
            "restart": {"policy": "Never", "settle": {"timeout": "10s"}},
        },
    })
}
