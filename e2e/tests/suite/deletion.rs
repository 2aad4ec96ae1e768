//! A campaign, or its whole namespace, deleted in the middle leaves nothing behind.

use crate::bench::{Bench, bench};
use crate::manifest;

fn until_measuring(bench: &Bench, namespace: &str) {
    bench.wait(namespace, "a run is being measured", 240, || {
        bench
            .list(namespace, "benchmarkruns")
            .iter()
            .any(|run| run["status"]["step"] == "Measuring")
            .then_some(())
    });
}

fn node_leases_held(bench: &Bench) -> usize {
    bench
        .list(e2e::install::OPERATOR_NAMESPACE, "leases.coordination.k8s.io")
        .iter()
        .filter(|l| {
            l["metadata"]["name"]
                .as_str()
                .is_some_and(|n| n.starts_with("benchmark-node-"))
        })
        .filter(|l| {
            l["spec"]["holderIdentity"]
                .as_str()
                .is_some_and(|h| !h.is_empty())
        })
        .count()
}

#[test]
fn a_campaign_deleted_in_the_middle_leaves_no_job_pod_or_volume() {
    const NAMESPACE: &str = "e2e-deletion";
    let (bench, _alone) = bench();
    bench.clear();
    bench.apply(&manifest::campaign(bench, NAMESPACE, "deleted"));
    until_measuring(bench, NAMESPACE);
    bench.kubectl(&["delete", "bc", "deleted", "-n", NAMESPACE, "--timeout=60s"]);
    bench.wait(NAMESPACE, "everything of the campaign is gone", 120, || {
        [
            "bc",
            "br",
            "bt",
            "jobs",
            "pods",
            "persistentvolumeclaims",
            "secrets",
            "services",
        ]
        .iter()
        .all(|kind| bench.list(NAMESPACE, kind).is_empty())
        .then_some(())
    });
    // The next campaign of the same name starts afresh, and nothing of the old one holds the node.
    let mut again = manifest::campaign(bench, NAMESPACE, "deleted");
    again["spec"]["threads"] = serde_json::json!([1]);
    again["spec"]["repetitions"]["blocks"] = 1.into();
    bench.apply(&again);
    bench.completed(NAMESPACE, "deleted", 240);
    bench.wait(NAMESPACE, "no lease of a node is held", 30, || {
        (node_leases_held(bench) == 0).then_some(())
    });
}

#[test]
fn a_namespace_deleted_in_the_middle_goes() {
    const NAMESPACE: &str = "e2e-gone";
    let (bench, _alone) = bench();
    bench.clear();
    bench.apply(&manifest::campaign(bench, NAMESPACE, "gone"));
    until_measuring(bench, NAMESPACE);
    bench.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
    bench.wait(NAMESPACE, "the namespace is gone", 180, || {
        bench
            .kubectl(&["get", "namespace", NAMESPACE, "--ignore-not-found"])
            .is_empty()
            .then_some(())
    });
    let volumes = bench.kubectl(&["get", "persistentvolumes", "-o", "json"]);
    let volumes: serde_json::Value = serde_json::from_str(&volumes).expect("JSON");
    let left = volumes["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|v| v["spec"]["claimRef"]["namespace"] == NAMESPACE);
    let left = left.filter(|v| v["status"]["phase"] == "Bound").count();
    assert_eq!(left, 0, "no volume is still bound");
}
