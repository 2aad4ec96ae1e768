//! Wrong manifests, each a small change of a valid one (`wrong/*.yaml`): refused where the table says, with the words
//! that a person needs. The end-to-end suite reads the same table against a real API server.

// A test may panic: clippy knows it of test functions, not of what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;

use admission::table::cases;
use admission::{Refusal, refused};

#[test]
fn each_is_refused_where_the_table_says_with_the_words_it_says() {
    let mut wrong = Vec::new();
    for case in cases() {
        let name = &case.name;
        let outcome = if case.stage == "update" {
            let started = serde_json::json!({"startTime": "2026-01-01T00:00:00Z"});
            let (mut old, mut new) = (case.before.clone(), case.wrong.clone());
            (old["status"], new["status"]) = (started.clone(), started);
            let old = refused(&old, None).unwrap_or_else(|why| panic!("{name}: the base is wrong: {why:?}"));
            refused(&new, Some(&old))
        } else {
            refused(&case.wrong, None)
        };
        match (case.stage.as_str(), outcome) {
            // The schema cannot know; the planner must refuse it.
            ("plan" | "catalogue", Ok(_)) => {}
            ("schema", Err((Refusal::Schema, lines))) | ("rule" | "update", Err((Refusal::Rule, lines))) => {
                wrong.extend(case.missing(&lines.join("\n")));
            }
            (stage, outcome) => wrong.push(format!("{name}: should be refused by {stage}, but: {outcome:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_is_large_enough_and_each_case_has_its_own_name_and_says_what_is_expected() {
    let mut names = Vec::new();
    let mut at_apply = 0;
    for case in cases() {
        let (name, stage) = (case.name, case.stage.as_str());
        assert!(!case.expect.is_empty(), "{name}");
        assert!(
            ["schema", "rule", "update", "plan", "catalogue"].contains(&stage),
            "{name}: {stage}"
        );
        at_apply += usize::from(!["plan", "catalogue"].contains(&stage));
        names.push(name);
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "names are unique");
    assert!(at_apply >= 60, "{at_apply}");
}
