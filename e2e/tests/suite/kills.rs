//! Kills in the middle: the operator five times, the database during a measured run. Nothing is lost, nothing is
//! measured twice, nothing doubtful is counted.

use std::time::Duration;

use crate::bench::{assert_each_place_measured_once, bench, by_place, valid};
use crate::manifest;

const NAMESPACE: &str = "e2e-kills";

#[test]
fn an_operator_killed_five_times_measures_every_place_once() {
    let (bench, _alone) = bench();
    bench.clear();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "killed");
    // Two runs of burn-in more, so that there are as many as kills wait for.
    manifest["spec"]["order"] = "Balanced".into();
    bench.apply(&manifest);
    for kill in 1..=5 {
        let before = kill * 2;
        bench.wait(
            NAMESPACE,
            &format!("{before} runs exist before kill {kill}"),
            180,
            || (bench.list(NAMESPACE, "benchmarkruns").len() >= before).then_some(()),
        );
        // Kills at different moments of a run: they are between 0 and 2.4 s after a run was created.
        std::thread::sleep(Duration::from_millis(600 * (kill as u64 - 1)));
        bench.kill_operator();
    }
    let campaign = bench.completed(NAMESPACE, "killed", 420);
    let runs = bench.list(NAMESPACE, "benchmarkruns");
    assert_eq!(
        by_place(&runs).len() as i64,
        campaign["status"]["plan"]["runs"].as_i64().expect("a plan")
    );
    assert_each_place_measured_once(&runs);
}

#[test]
fn a_database_killed_in_a_measured_run_makes_it_invalid_and_its_block_is_repeated() {
    let (bench, _alone) = bench();
    bench.clear();
    let mut manifest = manifest::campaign(bench, NAMESPACE, "crashed");
    manifest["spec"]["threads"] = serde_json::json!([2]);
    manifest["spec"]["run"]["duration"] = "5s".into();
    bench.apply(&manifest);
    let victim = bench.wait(NAMESPACE, "a run of block 1 is being measured", 240, || {
        bench.list(NAMESPACE, "benchmarkruns").into_iter().find(|run| {
            run["spec"]["visit"]["block"] == 1
                && run["status"]["step"] == "Measuring"
                && bench.list(NAMESPACE, "pods").iter().any(|pod| {
                    pod["metadata"]["labels"]["benchmark-campaign.dev/run"] == run["metadata"]["name"]
                        && pod["status"]["phase"] == "Running"
                })
        })
    });
    let name = victim["metadata"]["name"].as_str().expect("a name");
    let target = victim["spec"]["targetRef"]["name"].as_str().expect("a target");
    std::thread::sleep(Duration::from_millis(1500));
    bench.kubectl(&[
        "delete",
        "pod",
        target,
        "-n",
        NAMESPACE,
        "--force",
        "--grace-period=0",
    ]);

    let campaign = bench.completed(NAMESPACE, "crashed", 420);
    let runs = bench.list(NAMESPACE, "benchmarkruns");
    let killed = runs
        .iter()
        .find(|run| run["metadata"]["name"] == name)
        .expect("the killed run stays visible");
    assert_eq!(killed["status"]["validity"]["verdict"], "Invalid");
    let reasons = killed["status"]["validity"]["reasons"]
        .as_array()
        .expect("reasons");
    assert!(
        !reasons.is_empty()
            && reasons
                .iter()
                .all(|r| r["message"].as_str().is_some_and(|m| !m.is_empty())),
        "{reasons:?}"
    );
    let repeated = runs.iter().find(|run| {
        run["spec"]["visit"]["sequence"] == victim["spec"]["visit"]["sequence"] && run["spec"]["attempt"] == 2
    });
    assert!(repeated.is_some_and(valid), "the block was measured again");
    let blocks = campaign["status"]["blocks"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert!(
        blocks
            .iter()
            .any(|b| b["outcome"] == "Repeated" && b["block"] == 1),
        "{blocks:?}"
    );
    assert!(
        campaign["status"]["progress"]["invalid"]
            .as_i64()
            .is_some_and(|n| n >= 1)
    );
    let invalid = campaign["status"]["invalid"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert!(!invalid.is_empty(), "reasons are counted");
}
