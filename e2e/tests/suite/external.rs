//! A borrowed server, reached by its host name, with values that somebody set by hand: after a campaign, after one that was
//! deleted in the middle and after an operator that was killed in the middle it is as it was.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bench::{Bench, bench, valid};
use crate::manifest;
use crate::measuring::no_password_can_be_found;

const NAMESPACE: &str = "e2e-external";
const POD: &str = "orders";

/// A server as its owner runs it, with a login of the owner's for us.
fn server(bench: &Bench) {
    let start = "mariadb-install-db --no-defaults --datadir=/data/db --auth-root-authentication-method=normal --skip-test-db >/dev/null \
                 && exec mariadbd --no-defaults --datadir=/data/db --socket=/tmp/s --init-file=/owner/init.sql --bind-address=*";
    let container = json!({
        "name": "db", "image": bench.database_image(),
        "command": ["sh", "-c", start],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "owner", "mountPath": "/owner"}],
        "startupProbe": {"exec": {"command": ["mariadb-admin", "--no-defaults", "--socket=/tmp/s", "--user=root", "ping"]},
                         "periodSeconds": 1, "failureThreshold": 120},
        // Guaranteed, with a core of its own: the load generator needs the other.
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    });
    let meta = |name: &str| json!({"name": name, "namespace": NAMESPACE, "labels": {"app": POD, "suite": "foreign"}});
    let mut secret = meta("orders-login");
    secret["labels"]["benchmark-campaign.dev/credentials"] = "true".into();
    for object in [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta(POD), "stringData": {"init.sql":
            "CREATE USER IF NOT EXISTS bench@'%' IDENTIFIED BY 'of the owner';\nGRANT ALL PRIVILEGES ON *.* TO bench@'%';\n\
             CREATE DATABASE IF NOT EXISTS orders;\n"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": secret,
               "stringData": {"username": "bench", "password": "of the owner"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta(POD),
               "spec": {"clusterIP": "None", "selector": {"app": POD}, "ports": [{"port": 3306}]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta(POD), "spec": {
            "containers": [container],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "owner", "secret": {"secretName": POD}}],
            "securityContext": {"runAsUser": 999, "runAsGroup": 999, "runAsNonRoot": true, "fsGroup": 999,
                                "seccompProfile": {"type": "RuntimeDefault"}},
        }}),
    ] {
        bench.apply(&object);
    }
    bench.kubectl(&[
        "wait",
        "--namespace",
        NAMESPACE,
        "--for=condition=Ready",
        "--timeout=120s",
        "pod/orders",
    ]);
    sql(
        bench,
        "SET GLOBAL max_prepared_stmt_count = 12345, GLOBAL innodb_io_capacity = 333, GLOBAL long_query_time = 3.5, GLOBAL \
         slow_query_log = ON, GLOBAL log_output = 'TABLE'",
    );
}

fn sql(bench: &Bench, statement: &str) -> String {
    bench.kubectl(&[
        "exec",
        "--namespace",
        NAMESPACE,
        POD,
        "--",
        "mariadb",
        "--no-defaults",
        "--socket=/tmp/s",
        "--user=root",
        "--batch",
        "--skip-column-names",
        "--execute",
        statement,
    ])
}

/// Everything that a person can see of the server but its clock.
fn look(bench: &Bench) -> BTreeSet<String> {
    let all = sql(
        bench,
        "SHOW GLOBAL VARIABLES; SELECT CONCAT('plugin ', PLUGIN_NAME, ' ', PLUGIN_STATUS) FROM information_schema.PLUGINS; SHOW \
         DATABASES",
    );
    let moves = ["timestamp\t", "gtid_"];
    all.lines()
        .filter(|line| !moves.iter().any(|start| line.starts_with(start)))
        .map(str::to_owned)
        .collect()
}

fn target() -> Value {
    json!({
        "apiVersion": "benchmark-campaign.dev/v1alpha1", "kind": "BenchmarkTarget",
        "metadata": {"name": "orders", "namespace": NAMESPACE},
        "spec": {"engine": "MariaDB", "type": "External", "external": {
            "host": format!("{POD}.{NAMESPACE}.svc"),
            "tls": {"mode": "Disabled"},
            "credentialsSecretRef": {"name": "orders-login"},
            "permissions": {
                "parameters": ["max_prepared_stmt_count"], "audit": ["ServerAudit"], "datasetSchema": "sbtest",
            },
        }},
    })
}

fn campaign(bench: &Bench, name: &str) -> Value {
    let mut manifest = manifest::campaign(bench, NAMESPACE, name);
    let spec = &mut manifest["spec"];
    spec["databases"] = json!([{
        "name": "orders", "engine": "MariaDB", "type": "External",
        "external": {"targets": [{"instanceSize": "1u1g", "targetRef": {"name": "orders"}}]},
    }]);
    spec["threads"] = json!([2]);
    spec["repetitions"]["blocks"] = 1.into();
    spec["restart"] = json!({"policy": "Never", "settle": {"timeout": "5s"}});
    manifest
}

/// Waits until the target has nothing left to put back, and returns it.
fn given_back(bench: &Bench) -> Value {
    bench.wait(NAMESPACE, "what the server had is put back", 120, || {
        let target = bench.get(NAMESPACE, "benchmarktarget", "orders")?;
        let free = target["status"]["originalState"].is_null()
            && target["metadata"]["finalizers"].is_null()
            && target["status"]["holder"]["uid"]
                .as_str()
                .is_none_or(str::is_empty);
        free.then_some(target)
    })
}

/// Waits until load is applied to the borrowed server.
fn measured(bench: &Bench) {
    bench.wait(NAMESPACE, "load is applied", 120, || {
        let runs = bench.list(NAMESPACE, "benchmarkruns");
        runs.iter()
            .any(|run| run["status"]["step"] == "Measuring")
            .then_some(())
    });
}

#[test]
fn a_borrowed_server_is_as_it_was_after_a_campaign_a_deleted_one_and_a_killed_operator() {
    let (bench, _alone) = bench();
    bench.clear();
    server(bench);
    let before = look(bench);
    bench.apply(&target());

    // To the end.
    bench.apply(&campaign(bench, "whole"));
    bench.completed(NAMESPACE, "whole", 300);
    let runs = bench.list(NAMESPACE, "benchmarkruns");
    let evidence: BTreeSet<String> = runs
        .iter()
        .filter(|run| valid(run))
        .map(|run| {
            let status = &run["status"]["evidence"];
            format!("{} {}", status["level"], status["audit"]["recording"])
        })
        .collect();
    let wanted = ["\"ReadBack\" false", "\"ReadBack\" true"].map(str::to_owned);
    assert_eq!(
        evidence,
        BTreeSet::from(wanted),
        "a log that is not read proves nothing"
    );
    let target = given_back(bench);
    assert!(
        target["status"]["conditions"].as_array().is_some_and(|all| all
            .iter()
            .any(|c| c["type"] == "OriginalStateRestored" && c["status"] == "True")),
        "{target:#}"
    );
    assert_eq!(look(bench), before, "after a campaign");
    no_password_can_be_found(bench, NAMESPACE, |pod| {
        (pod["metadata"]["name"] == POD).then(|| {
            let what = "cat /data/db/server_audit.log*; cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
            bench.kubectl(&["exec", POD, "-n", NAMESPACE, "--", "sh", "-c", what])
        })
    });

    // Deleted in the middle.
    bench.apply(&campaign(bench, "deleted"));
    measured(bench);
    assert_ne!(look(bench), before);
    bench.kubectl(&["delete", "--namespace", NAMESPACE, "benchmarkcampaign", "deleted"]);
    given_back(bench);
    assert_eq!(look(bench), before, "after a deleted campaign");

    // The operator is killed in the middle, and the target deleted.
    bench.apply(&campaign(bench, "killed"));
    measured(bench);
    bench.kill_operator();
    bench.completed(NAMESPACE, "killed", 300);
    given_back(bench);
    assert_eq!(look(bench), before, "after a killed operator");
    bench.kubectl(&[
        "delete",
        "--namespace",
        NAMESPACE,
        "--timeout=60s",
        "benchmarktarget",
        "orders",
    ]);
}
