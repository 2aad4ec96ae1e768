//! Wrong manifests are refused, at apply or in a condition within seconds, with the field, the value and the remedy;
//! a refused campaign can be corrected and applied again.

use crate::bench::{bench, condition};
use crate::manifest;

const NAMESPACE: &str = "e2e-refusal";

#[test]
fn a_doomed_plan_is_refused_and_a_corrected_one_runs() {
    let (bench, _alone) = bench();
    bench.clear();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "doomed");
    manifest["spec"]["threads"] = serde_json::json!([1]);
    manifest["spec"]["repetitions"]["blocks"] = 1.into();
    // 12 statements a thread at 2 tables do not fit into 5.
    manifest["spec"]["parameterTemplates"][0]["parameters"]["max_prepared_stmt_count"] = 5.into();
    bench.apply(&manifest);
    let campaign = bench.finished(NAMESPACE, "doomed", 20);
    assert_eq!(campaign["status"]["state"], "Refused");
    let stalled = condition(&campaign, "Stalled").expect("a condition Stalled");
    assert_eq!(stalled["status"], "True");
    assert_eq!(stalled["reason"], "Refused");
    let message = stalled["message"].as_str().expect("a message");
    assert!(
        message.contains("max_prepared_stmt_count") && message.contains('5'),
        "{message}"
    );
    assert!(campaign["status"]["startTime"].is_null(), "the spec stays free");
    assert_eq!(
        condition(&campaign, "Succeeded").expect("a condition")["status"],
        "False"
    );

    manifest["spec"]["parameterTemplates"][0]["parameters"]["max_prepared_stmt_count"] = 1000.into();
    bench.apply(&manifest);
    let campaign = bench.wait(NAMESPACE, "the corrected campaign has ended", 240, || {
        bench
            .get(NAMESPACE, "bc", "doomed")
            .filter(|c| c["status"]["state"] == "Completed")
    });
    assert!(condition(&campaign, "Stalled").is_none_or(|c| c["status"] == "False"));

    // Started and ended: the spec is frozen, but for suspend and parallelism.
    manifest["spec"]["threads"] = serde_json::json!([1, 2]);
    let said = bench
        .refused_at_apply(&manifest)
        .expect("a started campaign is frozen");
    assert!(said.contains("run-request"), "{said}");
}

#[test]
fn what_only_the_server_knows_is_refused_before_anything_is_measured() {
    let (bench, _alone) = bench();
    bench.clear();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "unknown");
    manifest["spec"]["parameterTemplates"][0]["parameters"]["inodb_io_capacity"] = 400.into();
    bench.apply(&manifest);
    let campaign = bench.finished(NAMESPACE, "unknown", 90);
    let message = condition(&campaign, "Stalled").expect("a condition Stalled")["message"].to_string();
    assert!(
        message.contains("inodb_io_capacity") && message.contains("innodb_io_capacity"),
        "{message}"
    );
    assert!(bench.list(NAMESPACE, "br").is_empty(), "nothing was measured");
}
