//! The campaigns that worlds measure: small, with windows of seconds.

use crds::names::{GROUP, VERSION};
use serde_json::{Value, json};

use super::NAMESPACE;

/// A campaign: two audit settings, some thread counts, some blocks, on a node of its own.
pub(crate) fn campaign(name: &str, node: &str, threads: &[u32], blocks: u32) -> Value {
    let inference = if blocks < 6 { "Descriptive" } else { "Comparative" };
    let databases = json!([{
        "name": "mariadb", "engine": "MariaDB", "type": "Managed",
        "managed": {"image": "mariadb:10.11", "storage": {"size": "2Gi"}, "nodeSelector": {"kubernetes.io/hostname": node}},
    }]);
    let audit = json!([
        {"name": "no-audit", "type": "None"},
        {"name": "audit-all", "type": "ServerAudit", "serverAudit": {"events": ["All"]}, "log": {"volume": "WithData", "limit": "512Mi"}},
    ]);
    let workloads = json!([{
        "name": "read-only", "type": "Sysbench",
        "sysbench": {"script": "oltp_read_only", "tables": 4, "tableSize": 25_000, "options": {"rand-type": "uniform"}},
    }]);
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "BenchmarkCampaign",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "databases": databases,
            "instanceSizes": [{"name": "1u1g", "cpu": "1", "memory": "1Gi"}],
            "parameterTemplates": [{"name": "default", "parameters": {"max_prepared_stmt_count": 1_048_576}}],
            "auditSettings": audit,
            "workloads": workloads,
            "threads": threads,
            "loadGenerator": {"nodeSelector": {"kubernetes.io/hostname": "node-c"}},
            "run": {"warmup": "1s", "duration": "6s", "reportInterval": "1s", "attempts": 3},
            "repetitions": {"blocks": blocks},
            "inference": inference,
            "restart": {"policy": "BeforeEachArm", "settle": {"timeout": "20s"}},
            "comparisons": [{"name": "audit", "axis": "AuditSetting", "baseline": "no-audit", "primary": "Qps"}],
            "maximumDuration": "10h",
        },
    })
}
