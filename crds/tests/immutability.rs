//! What may change once a campaign has started, field by field: nothing but `suspend` and `parallelism`.

// A test may panic: clippy knows it of test functions, not of what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;

use admission::refused;
use crds::campaign::{FREE, FROZEN};
use serde_json::{Value, json};

/// A valid campaign in which every field of the spec is given, apart from `without`.
fn campaign() -> Value {
    let mut object =
        admission::table::documents(&admission::table::repository().join("examples/quickstart.yaml"))
            .remove(0);
    let spec = &mut object["spec"];
    spec["include"] = json!([{"workload": "read-only"}]);
    spec["exclude"] = json!([{"threads": [64]}]);
    spec["loadGenerator"] = json!({"count": 1});
    spec["inference"] = json!("Comparative");
    spec["order"] = json!("Balanced");
    spec["seed"] = json!(1);
    spec["cache"] = json!({"state": "Cold"});
    spec["dataset"] = json!({"rebuild": "Never"});
    spec["acceptance"] = json!([{"comparison": "audit", "maximumWorsening": "10%"}]);
    spec["parallelism"] = json!(2);
    spec["idleTargets"] = json!("Keep");
    spec["suspend"] = json!(true);
    object
}

fn stored(mut object: Value, started: bool) -> Value {
    object["status"] = if started {
        json!({"startTime": "2026-01-01T00:00:00Z"})
    } else {
        json!({"state": "Refused"})
    };
    refused(&object, None).unwrap_or_else(|why| panic!("{why:?}"))
}

/// Another valid value of a field, or None to take the field away.
fn other_value(field: &str) -> Vec<Option<Value>> {
    let given = |value: Value| Some(value);
    match field {
        "databases" => vec![given(
            json!([{"name": "mariadb-10-11", "engine": "MariaDB", "type": "Managed", "managed": {"image": "other:1"}}]),
        )],
        "instanceSizes" => vec![given(json!([{"name": "1u1g", "cpu": "2", "memory": "1Gi"}]))],
        "parameterTemplates" => vec![given(json!([{"name": "other"}])), None],
        "auditSettings" => vec![given(json!([{"name": "no-audit", "type": "None"}]))],
        "workloads" => vec![given(
            json!([{"name": "read-only", "type": "Sysbench", "sysbench": {"script": "oltp_insert", "tableSize": 1}}]),
        )],
        "threads" => vec![given(json!([2, 4]))],
        "include" | "exclude" | "acceptance" | "seed" | "cache" | "dataset" | "idleTargets"
        | "maximumDuration" => {
            vec![None]
        }
        "loadGenerator" => vec![given(json!({"image": "other:1"}))],
        "run" => vec![
            given(json!({"duration": "9s", "warmup": "2s", "attempts": 2})),
            None,
        ],
        "repetitions" => vec![
            given(json!({"blocks": 7})),
            given(json!({"looks": "UpTo10"})),
            None,
        ],
        "order" => vec![given(json!("Grouped"))],
        "restart" => vec![given(json!({"policy": "WhenRequired"})), None],
        "comparisons" => vec![given(
            json!([{"name": "audit", "axis": "AuditSetting", "baseline": "no-audit", "noiseFloor": true}]),
        )],
        // Held by other rules or changed together with another field, below.
        "inference" | "threadSearch" => vec![],
        other => panic!("{other} is a new field: say here how it can change"),
    }
}

#[test]
fn no_frozen_field_changes_comes_or_goes_after_the_start() {
    let full = campaign();
    for field in FROZEN {
        for value in other_value(field) {
            let mut changed = full.clone();
            match &value {
                Some(value) => changed["spec"][*field] = value.clone(),
                None => drop(changed["spec"].as_object_mut().unwrap().remove(*field)),
            }
            let change = format!("{field} becomes {value:?}");
            // Before the start it is an ordinary change, so the refusal below is the start's doing.
            let old = stored(full.clone(), false);
            assert!(
                refused(&changed, Some(&old)).is_ok(),
                "before the start, {change}: {:?}",
                refused(&changed, Some(&old))
            );
            for (from, to) in [(&full, &changed), (&changed, &full)] {
                let old = stored(from.clone(), true);
                let mut new = to.clone();
                new["status"] = old["status"].clone();
                let (_, lines) = refused(&new, Some(&old)).expect_err(&change);
                assert!(
                    lines[0].contains("the campaign has started"),
                    "{change}: {lines:?}"
                );
            }
        }
    }
}

#[test]
fn fields_that_only_change_together_are_frozen_too() {
    let full = campaign();
    let mut descriptive = full.clone();
    descriptive["spec"]["inference"] = json!("Descriptive");
    descriptive["spec"].as_object_mut().unwrap().remove("acceptance");
    let mut search = full.clone();
    search["spec"]["threadSearch"] = json!({"minimum": 1, "maximum": 8});
    search["spec"].as_object_mut().unwrap().remove("threads");
    for changed in [descriptive, search] {
        let mut old = stored(full.clone(), true);
        let mut new = changed.clone();
        new["status"] = old["status"].clone();
        assert!(refused(&new, Some(&old)).is_err());
        old["status"] = json!({"state": "Refused"});
        assert!(refused(&changed, Some(&old)).is_ok());
    }
}

#[test]
fn free_fields_change_after_the_start() {
    let old = stored(campaign(), true);
    for field in FREE {
        let mut new = old.clone();
        new["spec"][*field] = match *field {
            "suspend" => json!(false),
            "parallelism" => json!(1),
            other => panic!("{other} is a new free field: say here how it can change"),
        };
        assert!(refused(&new, Some(&old)).is_ok(), "{field}");
    }
}

#[test]
fn a_run_never_changes_and_a_target_keeps_its_engine_and_type() {
    let documents =
        |file: &str| admission::table::documents(&admission::table::repository().join("examples").join(file));
    let run = documents("run.yaml").remove(0);
    let old = refused(&run, None).unwrap();
    let mut new = old.clone();
    new["spec"]["seed"] = json!(8);
    assert!(refused(&new, Some(&old)).is_err());
    assert!(refused(&old, Some(&old)).is_ok());

    let target = documents("target-managed.yaml").remove(0);
    let old = refused(&target, None).unwrap();
    let mut new = old.clone();
    new["spec"]["engine"] = json!("MySQL");
    let (_, lines) = refused(&new, Some(&old)).unwrap_err();
    assert!(lines[0].contains("engine and type cannot change"), "{lines:?}");
    new = old.clone();
    new["spec"]["managed"]["image"] = json!("mariadb:12.0");
    assert!(refused(&new, Some(&old)).is_ok());
}
