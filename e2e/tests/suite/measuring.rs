//! A campaign from apply to numbers: every place of the plan measured once, settings proved, the story readable, no
//! secret anywhere.

use std::collections::BTreeMap;

use e2e::install::OPERATOR_NAMESPACE;
use serde_json::Value;

use crate::bench::{Bench, bench, condition, valid};
use crate::manifest;
use crate::studies::{NAMESPACE, Records, repeated_with};

const CAMPAIGN: &str = "study-4-oracle-reduced";

#[test]
fn study_4_oracle_audit_log_ends_with_a_verdict_and_all_of_it_can_be_read() {
    let (bench, _alone) = bench();
    bench.clear();
    // The server must still run when its log is looked at.
    let study = repeated_with(bench, "study-4-oracle-audit-log", |spec| {
        spec["idleTargets"] = "Keep".into();
    });
    let campaign = &study.campaign;
    let succeeded = condition(campaign, "Succeeded").expect("a condition Succeeded");
    assert_eq!(succeeded["status"], "True");
    let plan = &campaign["status"]["plan"];
    assert_eq!(campaign["status"]["progress"]["done"], plan["runs"]);
    // Six blocks of two arms, and a burn-in of one run for each arm.
    assert_eq!(plan["runs"], 6 * 2 + 2);
    let answers = campaign["status"]["answers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert!(
        answers
            .iter()
            .any(|answer| answer["level"] == "server-audit" && answer["verdict"].is_string()),
        "six blocks end with a verdict: {answers:?}"
    );
    study.recorded("base", Records::Nothing);
    study.recorded("server-audit", Records::EachStatement);
    study.table(
        0,
        &[
            "Threads",
            "base QPS",
            "server-audit QPS",
            "server-audit QPS % of base",
        ],
        &["2"],
    );
    study.table(
        1,
        &["AuditSetting", "Threads", "log bytes/record", "log GiB/day"],
        &["base 2", "server-audit 2"],
    );

    for run in &study.runs {
        settings_were_proved(run);
    }
    audited_runs_wrote_a_log(&study.runs);
    the_story_is_short_and_readable(bench, campaign);
    audited_by_hand(bench);
    let read = |pod: &str, what: &str| {
        bench.kubectl(&[
            "exec", pod, "-n", NAMESPACE, "-c", "database", "--", "sh", "-c", what,
        ])
    };
    no_password_can_be_found(bench, NAMESPACE, |pod| {
        (pod["metadata"]["labels"]["benchmark-campaign.dev/role"] == "database").then(|| {
            let name = pod["metadata"]["name"].as_str().expect("a name");
            read(name, "cat /var/lib/benchmark/data-log/*; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; env; cat /proc/1/environ | tr '\\0' '\\n'")
        })
    });
}

/// One more run, with auditing, on the campaign's server: a log goes when the next run without auditing begins, and the
/// campaign's last run may be such a one.
fn audited_by_hand(bench: &Bench) {
    let targets = bench.list(NAMESPACE, "benchmarktargets");
    let target = targets
        .iter()
        .find(|target| target["metadata"]["ownerReferences"][0]["name"] == CAMPAIGN);
    let target = target.expect("the campaign's target")["metadata"]["name"]
        .as_str()
        .expect("a name");
    let mut run = manifest::run(NAMESPACE, "by-hand", target, 2);
    run["spec"]["audit"] = serde_json::json!({
        "name": "audit-all", "type": "ServerAudit", "serverAudit": {"events": ["All"]},
        "log": {"volume": "WithData", "limit": "256Mi"},
    });
    run["spec"]["restartBefore"] = true.into();
    bench.apply(&run);
    let run = bench.ended(NAMESPACE, "benchmarkrun", "by-hand", 120);
    assert!(
        run["status"]["result"]["logBytesPer1000Statements"]
            .as_i64()
            .is_some_and(|bytes| bytes > 0),
        "{}",
        run["status"]
    );
}

fn settings_were_proved(run: &Value) {
    let evidence = &run["status"]["evidence"];
    assert_eq!(evidence["level"], "Proved", "{run:#}");
    let audited = run["spec"]["audit"]["type"] == "ServerAudit";
    assert_eq!(evidence["audit"]["recording"], audited);
    assert_eq!(evidence["audit"]["canaryFound"], audited);
    let read_back = evidence["parameters"].as_array().expect("parameters read back");
    let wanted = read_back
        .iter()
        .find(|p| p["name"] == "max_prepared_stmt_count")
        .expect("the template's parameter");
    assert_eq!(wanted["found"], "100000");
    assert!(
        run["status"]["result"]["qpsMilli"]
            .as_i64()
            .is_some_and(|qps| qps > 0),
        "{run:#}"
    );
}

fn audited_runs_wrote_a_log(runs: &[Value]) {
    let mut bytes = BTreeMap::<&str, Vec<i64>>::new();
    for run in runs.iter().filter(|run| valid(run)) {
        let arm = run["spec"]["audit"]["name"].as_str().expect("an arm");
        bytes.entry(arm).or_default().push(
            run["status"]["result"]["logBytesPer1000Statements"]
                .as_i64()
                .unwrap_or(0),
        );
    }
    assert!(bytes["base"].iter().all(|b| *b == 0), "{bytes:?}");
    // 151 to 160 bytes a statement were seen with every event recorded; prepared statements differ a little.
    assert!(
        bytes["server-audit"]
            .iter()
            .all(|b| (80_000..400_000).contains(b)),
        "{bytes:?}"
    );
    let complete = runs
        .iter()
        .filter(|run| valid(run) && run["spec"]["audit"]["type"] == "ServerAudit")
        .filter_map(|run| run["status"]["result"]["auditCompletenessPpm"].as_i64());
    for ppm in complete {
        assert!((990_000..=1_010_000).contains(&ppm), "completeness {ppm} ppm");
    }
}

fn the_story_is_short_and_readable(bench: &Bench, campaign: &Value) {
    let table = bench.kubectl(&["get", "bc,br,bt", "-n", NAMESPACE]);
    for word in [
        "STATE",
        "DONE",
        "TOTAL",
        "INVALID",
        "VERDICT",
        "Completed",
        CAMPAIGN,
    ] {
        assert!(table.contains(word), "`{word}` is not in\n{table}");
    }
    let events = bench.list(NAMESPACE, "events.events.k8s.io");
    let of_campaign = events
        .iter()
        .filter(|e| e["regarding"]["name"] == CAMPAIGN)
        .count();
    assert!(
        (1..=12).contains(&of_campaign),
        "{of_campaign} events tell the campaign's story"
    );
    bench.kubectl(&[
        "wait",
        "--for=condition=Finished",
        &format!("bc/{CAMPAIGN}"),
        "-n",
        NAMESPACE,
        "--timeout=5s",
    ]);
    let explained = bench.kubectl(&["explain", "bc.spec.run"]);
    for word in ["warmup", "60s", "duration", "600s", "attempts"] {
        assert!(explained.contains(word), "`{word}` is not in\n{explained}");
    }
    assert!(
        campaign["status"]["answers"]
            .as_array()
            .is_some_and(|a| !a.is_empty())
    );
}

/// Looks for the logins' passwords and the agents' tokens in everything that a user of the namespace, or of the node, could
/// read; `more` reads what is inside a pod, a database's log of statements above all.
pub(crate) fn no_password_can_be_found(
    bench: &Bench,
    namespace: &str,
    more: impl Fn(&Value) -> Option<String>,
) {
    let secrets = bench.list(namespace, "secrets");
    let encoded: Vec<&str> = secrets
        .iter()
        .flat_map(|secret| ["password", "agent-token"].map(|key| secret["data"][key].as_str()))
        .flatten()
        .collect();
    assert!(!encoded.is_empty(), "there are Secrets to look for");
    let plain: Vec<String> = encoded.iter().map(|e| decode(e)).collect();
    assert!(
        plain.iter().all(|p| p.len() >= 12),
        "long enough not to stand anywhere by chance"
    );

    let mut places = Vec::new();
    for kind in [
        "bc",
        "br",
        "bt",
        "pods",
        "jobs",
        "configmaps",
        "events",
        "services",
        "pvc",
        "leases",
    ] {
        let text = bench.kubectl(&["get", kind, "-n", namespace, "-o", "yaml"]);
        places.push((kind.to_owned(), text));
    }
    let mut inside = 0;
    for pod in bench.list(namespace, "pods") {
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        let logs = bench.kubectl(&["logs", &name, "-n", namespace, "--all-containers"]);
        places.push((format!("logs of {name}"), logs));
        if let Some(text) = more(&pod) {
            assert!(
                text.to_lowercase().contains("select"),
                "a log of statements was read in {name}"
            );
            places.push((format!("inside of {name}"), text));
            inside += 1;
        }
    }
    assert!(inside > 0, "a database was looked into");
    let selector = "app.kubernetes.io/name=benchmark-campaign-operator";
    places.push((
        "operator's log".to_owned(),
        bench.kubectl(&["logs", "-n", OPERATOR_NAMESPACE, "-l", selector, "--tail=-1"]),
    ));
    for operator in bench.list(OPERATOR_NAMESPACE, "pods") {
        let labels = &operator["metadata"]["labels"];
        if labels["app.kubernetes.io/component"] == "operator" {
            let name = operator["metadata"]["name"].as_str().expect("a name");
            let path = format!("/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{name}:8080/proxy/metrics");
            places.push(("metrics".to_owned(), bench.kubectl(&["get", "--raw", &path])));
        }
    }
    for (place, text) in &places {
        for secret in plain.iter().map(String::as_str).chain(encoded.iter().copied()) {
            assert!(!text.contains(secret), "a secret stands in {place}");
        }
    }
}

/// Base 64 without a crate: the alphabet is fixed and the suite's needs are small.
fn decode(text: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for byte in text.bytes().take_while(|b| *b != b'=') {
        let value = ALPHABET.iter().position(|a| *a == byte).expect("base 64");
        bits = bits << 6 | u32::try_from(value).expect("small");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).expect("a byte"));
        }
    }
    String::from_utf8(bytes).expect("text")
}
