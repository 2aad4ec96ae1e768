//! A campaign from apply to numbers: every place of the plan measured once, settings proved, the story readable, no
//! secret anywhere.

use std::collections::BTreeMap;

use e2e::install::OPERATOR_NAMESPACE;
use serde_json::Value;

use crate::bench::{Bench, assert_each_place_measured_once, bench, condition, valid};
use crate::manifest;

const NAMESPACE: &str = "e2e-measuring";

#[test]
fn a_campaign_ends_with_numbers_and_each_place_is_measured_once() {
    let (bench, _alone) = bench();
    bench.clear();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "audit-cost");
    manifest["spec"]["idleTargets"] = "Keep".into();
    bench.apply(&manifest);
    let campaign = bench.completed(NAMESPACE, "audit-cost", 300);
    let succeeded = condition(&campaign, "Succeeded").expect("a condition Succeeded");
    assert_eq!(succeeded["status"], "True");
    let plan = &campaign["status"]["plan"];
    assert_eq!(campaign["status"]["progress"]["done"], plan["runs"]);
    // Two blocks of two arms at two thread counts, and a burn-in of one run for each arm.
    assert_eq!(plan["runs"], 2 * 2 * 2 + 2);

    let runs = bench.list(NAMESPACE, "benchmarkruns");
    assert_each_place_measured_once(&runs);
    for run in runs.iter().filter(|run| valid(run)) {
        settings_were_proved(run);
    }
    audited_runs_wrote_a_log(&runs);
    the_story_is_short_and_readable(bench, &campaign);
    audited_by_hand(bench);
    no_password_can_be_found(bench);
}

/// One more run, with auditing, on the campaign's server: a log goes when the next run without auditing begins, and the
/// campaign's last run may be such a one.
fn audited_by_hand(bench: &Bench) {
    let targets = bench.list(NAMESPACE, "benchmarktargets");
    let target = targets[0]["metadata"]["name"].as_str().expect("a name");
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
    assert!(bytes["no-audit"].iter().all(|b| *b == 0), "{bytes:?}");
    // 151 to 160 bytes a statement were seen with every event recorded; prepared statements differ a little.
    assert!(
        bytes["audit-all"].iter().all(|b| (80_000..400_000).contains(b)),
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
        "audit-cost",
    ] {
        assert!(table.contains(word), "`{word}` is not in\n{table}");
    }
    let events = bench.list(NAMESPACE, "events.events.k8s.io");
    let of_campaign = events
        .iter()
        .filter(|e| e["regarding"]["name"] == "audit-cost")
        .count();
    assert!(
        (1..=12).contains(&of_campaign),
        "{of_campaign} events tell the campaign's story"
    );
    bench.kubectl(&[
        "wait",
        "--for=condition=Finished",
        "bc/audit-cost",
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

/// Looks for the generated password in everything that a user of the namespace, or of the node, could read.
fn no_password_can_be_found(bench: &Bench) {
    let secrets = bench.list(NAMESPACE, "secrets");
    let encoded: Vec<String> = secrets
        .iter()
        .filter_map(|s| {
            Some((
                s["data"]["password"].as_str()?,
                s["data"]["agent-token"].as_str()?,
            ))
        })
        .flat_map(|(p, t)| [p.to_owned(), t.to_owned()])
        .collect();
    assert!(!encoded.is_empty(), "the target has a generated Secret");
    let plain: Vec<String> = encoded.iter().map(|e| decode(e)).collect();
    assert!(plain.iter().all(|p| p.len() >= 16), "generated secrets are long");

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
        places.push((
            kind.to_owned(),
            bench.kubectl(&["get", kind, "-n", NAMESPACE, "-o", "yaml"]),
        ));
    }
    for pod in bench.list(NAMESPACE, "pods") {
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        places.push((
            format!("logs of {name}"),
            bench.kubectl(&["logs", &name, "-n", NAMESPACE, "--all-containers"]),
        ));
        if pod["metadata"]["labels"]["benchmark-campaign.dev/role"] == "database" {
            let read = |what: &str| {
                bench.kubectl(&[
                    "exec", &name, "-n", NAMESPACE, "-c", "database", "--", "sh", "-c", what,
                ])
            };
            places.push((
                format!("audit log in {name}"),
                read("cat /var/lib/benchmark/data-log/*"),
            ));
            places.push((
                format!("arguments in {name}"),
                read("cat /proc/[0-9]*/cmdline | tr '\\0' ' '"),
            ));
            places.push((
                format!("environment in {name}"),
                read("env; cat /proc/1/environ 2>/dev/null | tr '\\0' '\\n'"),
            ));
        }
    }
    let selector = "app.kubernetes.io/name=benchmark-campaign-operator";
    places.push((
        "operator's log".to_owned(),
        bench.kubectl(&["logs", "-n", OPERATOR_NAMESPACE, "-l", selector, "--tail=-1"]),
    ));
    for (place, text) in &places {
        for secret in plain.iter().chain(&encoded) {
            assert!(!text.contains(secret.as_str()), "a secret stands in {place}");
        }
    }
    assert!(
        places
            .iter()
            .any(|(place, text)| place.starts_with("audit log") && text.contains("SELECT")),
        "the audit log was read"
    );
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
