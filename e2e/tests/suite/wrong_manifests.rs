//! The table of wrong manifests (`crds/tests/wrong`) against a real API server and the operator: each is refused at
//! apply, or named in a condition within seconds, with the words that the table wants.

use serde_json::{Value, json};

use crate::bench::{Bench, bench, condition};

#[path = "../../../crds/tests/admission/table.rs"]
mod table;

use table::Case;

const NAMESPACE: &str = "e2e-wrong";
/// Here the operator does not look: what only the API server says is not disturbed by what the operator writes.
const UNWATCHED: &str = "e2e-unwatched";

/// Seconds until a plan that needs no database is refused.
const PLAN_SECONDS: u64 = 20;
/// The same where a database has to be started and asked first.
const CATALOGUE_SECONDS: u64 = 90;

/// The table with the namespace in which each case is tried.
fn cases() -> Vec<Case> {
    let mut cases = table::cases();
    for case in &mut cases {
        let watched = ["plan", "catalogue"].contains(&case.stage.as_str());
        for object in [&mut case.before, &mut case.wrong] {
            object["metadata"]["namespace"] = json!(if watched { NAMESPACE } else { UNWATCHED });
        }
    }
    cases
}

fn of_stage<'a>(cases: &'a [Case], stages: &'a [&str]) -> impl Iterator<Item = &'a Case> {
    cases.iter().filter(|case| stages.contains(&case.stage.as_str()))
}

/// The campaign under a name of its own, so that several can be there at once.
fn renamed(case: &Case, number: usize) -> (String, Value) {
    let name = format!("wrong-{number}");
    let mut object = case.wrong.clone();
    object["metadata"]["name"] = json!(name);
    (name, object)
}

/// Waits for the refusal and returns everything that the campaign's status says of it.
fn refusal(bench: &Bench, name: &str, seconds: u64) -> String {
    let campaign = bench.finished(NAMESPACE, name, seconds);
    match condition(&campaign, "Stalled") {
        Some(stalled) if stalled["status"] == "True" => format!(
            "{} {}",
            stalled["message"].as_str().unwrap_or_default(),
            campaign["status"]["plan"]["notes"]
        ),
        other => format!("no refusal ({other:?}), but {}", campaign["status"]),
    }
}

#[test]
fn each_wrong_manifest_is_refused_at_apply_or_in_a_condition() {
    let (bench, _alone) = bench();
    bench.clear();
    bench.namespace(UNWATCHED);
    let cases = cases();
    let mut wrong = Vec::new();

    let mut at_apply = 0;
    for case in of_stage(&cases, &["schema", "rule"]) {
        at_apply += 1;
        match bench.refused_dry(&case.wrong) {
            Some(said) => wrong.extend(case.missing(&said)),
            None => wrong.push(format!("{}: accepted", case.name)),
        }
    }
    assert!(at_apply >= 60, "{at_apply} at apply");

    for case in of_stage(&cases, &["update"]) {
        let kind = case.before["kind"].as_str().expect("a kind").to_lowercase();
        let name = case.before["metadata"]["name"].as_str().expect("a name");
        // As a person applies it: what is left out later is then taken out.
        assert_eq!(bench.refused_at_apply(&case.before), None, "{}", case.name);
        bench.kubectl(&[
            "patch",
            &kind,
            name,
            "-n",
            UNWATCHED,
            "--subresource=status",
            "--type=merge",
            "--patch",
            r#"{"status":{"startTime":"2026-01-01T00:00:00Z"}}"#,
        ]);
        match bench.refused_at_apply(&case.wrong) {
            Some(said) => wrong.extend(case.missing(&said)),
            None => wrong.push(format!("{}: accepted", case.name)),
        }
        bench.kubectl(&["delete", &kind, name, "-n", UNWATCHED, "--timeout=60s"]);
    }

    let mut planned = Vec::new();
    for (number, case) in of_stage(&cases, &["plan"]).enumerate() {
        let (name, object) = renamed(case, number);
        bench.apply(&object);
        planned.push((name, case));
    }
    for (name, case) in planned {
        wrong.extend(case.missing(&refusal(bench, &name, PLAN_SECONDS)));
        bench.kubectl(&["delete", "bc", &name, "-n", NAMESPACE, "--timeout=60s"]);
    }

    for (number, case) in of_stage(&cases, &["catalogue"]).enumerate() {
        let (name, object) = renamed(case, 100 + number);
        bench.apply(&object);
        wrong.extend(case.missing(&refusal(bench, &name, CATALOGUE_SECONDS)));
        bench.kubectl(&["delete", "bc", &name, "-n", NAMESPACE, "--timeout=60s"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
