//! Laws of the plan: every cell in every block once, arms side by side, and the same plan each time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::{Plan, REPEAT, lay_out};
use crate::matrix::expand;
use crate::matrix::tests::{changed, quickstart};
use crate::order::Seed;

fn in_words(plan: &Plan) -> Vec<String> {
    plan.units
        .iter()
        .map(|unit| {
            let places = &plan.places[unit.places.clone()];
            let runs: Vec<String> = places
                .iter()
                .map(|place| format!("{} {}", plan.arm(place).name, place.threads))
                .collect();
            format!("block {}: {}", places[0].block, runs.join(", "))
        })
        .collect()
}

#[test]
fn the_quickstart_in_order() {
    let spec = quickstart().spec;
    let plan = lay_out(&expand(&spec).unwrap(), Seed(1)).unwrap();
    assert_eq!(
        (plan.places.len(), plan.visits(), plan.burn_in_runs()),
        (38, 14, 2)
    );
    insta::assert_yaml_snapshot!(in_words(&plan));
}

#[test]
fn a_grouped_order_repeats_visits_and_has_no_burn_in() {
    let spec = changed(&[("/order", json!("Grouped"))]);
    let plan = lay_out(&expand(&spec).unwrap(), Seed(1)).unwrap();
    assert_eq!(plan.units.len(), 12);
    let arms: Vec<&str> = plan
        .units
        .iter()
        .map(|unit| plan.arm(&plan.places[unit.places.start]).name.as_str())
        .collect();
    assert!(
        arms[..6].iter().all(|arm| *arm == "no-audit") && arms[6..].iter().all(|arm| *arm == "audit-all")
    );
}

#[test]
fn a_noise_floor_adds_a_second_baseline_and_no_second_burn_in() {
    let spec = changed(&[("/comparisons/0/noiseFloor", json!(true))]);
    let plan = lay_out(&expand(&spec).unwrap(), Seed(1)).unwrap();
    let names: Vec<&str> = plan.groups[0].arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["no-audit", REPEAT, "audit-all"]);
    assert_eq!(plan.burn_in_runs(), 2);
    assert_eq!(plan.places.len(), 2 + 3 * 3 * 6);
}

#[test]
fn two_comparisons_measure_a_shared_cell_in_both_and_the_rest_alone() {
    let spec = changed(&[
        (
            "/parameterTemplates/-",
            json!({"name": "fast", "parameters": {"max_prepared_stmt_count": 1000}}),
        ),
        (
            "/parameterTemplates/-",
            json!({"name": "third", "parameters": {"max_prepared_stmt_count": 1000}}),
        ),
        (
            "/comparisons/-",
            json!({"name": "template", "axis": "ParameterTemplate", "baseline": "default"}),
        ),
        (
            "/exclude",
            json!([{"parameterTemplate": "third", "auditSetting": "audit-all"}, {"parameterTemplate": "fast", "threads": [8]}]),
        ),
        ("/maximumDuration", json!("10h")),
    ]);
    let plan = lay_out(&expand(&spec).unwrap(), Seed(1)).unwrap();
    let groups: Vec<String> = plan
        .groups
        .iter()
        .map(|group| {
            let arms: Vec<&str> = group.arms.iter().map(|arm| arm.name.as_str()).collect();
            format!(
                "{:?} [{}] {} {:?}",
                group.comparison,
                group.context,
                arms.join(" / "),
                group.threads
            )
        })
        .collect();
    insta::assert_yaml_snapshot!(groups);
}

/// Two questions over one axis, each with a baseline and levels of its own: no arm of one is measured for the other.
#[test]
fn a_comparison_takes_the_levels_that_it_names() {
    let setting = |name: &str, type_: &str| json!({"name": name, "type": type_});
    let spec = changed(&[
        (
            "/auditSettings",
            json!([
                setting("off", "None"),
                setting("general", "GeneralLog"),
                setting("slow", "SlowLog"),
                setting("off-again", "None"),
                setting("alone", "None")
            ]),
        ),
        (
            "/comparisons",
            json!([
                {"name": "first", "axis": "AuditSetting", "baseline": "off", "levels": ["general"]},
                {"name": "second", "axis": "AuditSetting", "baseline": "off-again", "levels": ["slow"], "noiseFloor": true},
            ]),
        ),
        ("/threads", json!([2])),
    ]);
    let matrix = expand(&spec).unwrap();
    let plan = lay_out(&matrix, Seed(1)).unwrap();
    let arms: Vec<Vec<&str>> = plan
        .groups
        .iter()
        .map(|group| group.arms.iter().map(|arm| arm.name.as_str()).collect())
        .collect();
    assert_eq!(
        arms,
        [
            vec!["off", "general"],
            vec!["off-again", "A/A", "slow"],
            vec!["alone"]
        ]
    );
    // What is measured together is said, and both questions have their own cells.
    let comparisons: Vec<_> = plan.groups.iter().map(|group| group.comparison).collect();
    assert_eq!(comparisons, [Some(0), Some(1), None]);
}

/// A context without any level of a comparison is none of its questions; one with levels and no baseline is refused.
#[test]
fn where_no_level_of_a_comparison_is_left_it_asks_nothing() {
    let size = json!({"name": "2u2g", "cpu": 2, "memory": "2Gi"});
    let with = |exclude: serde_json::Value| {
        let spec = changed(&[
            ("/auditSettings/-", json!({"name": "slow", "type": "SlowLog"})),
            ("/comparisons/0/levels", json!(["audit-all"])),
            ("/instanceSizes/-", size.clone()),
            ("/exclude", exclude),
            ("/threads", json!([2])),
        ]);
        let matrix = expand(&spec).unwrap();
        lay_out(&matrix, Seed(1)).map(|plan| plan.groups.iter().filter(|g| g.comparison.is_some()).count())
    };
    assert_eq!(with(json!([])), Ok(2));
    let both = json!([{"instanceSize": "2u2g", "auditSetting": "no-audit"}, {"instanceSize": "2u2g", "auditSetting": "audit-all"}]);
    assert_eq!(with(both), Ok(1));
    let baseline = json!([{"instanceSize": "2u2g", "auditSetting": "no-audit"}]);
    assert!(
        with(baseline).unwrap_err()[0]
            .found
            .contains("leave out no-audit")
    );
}

#[test]
fn ten_thousand_runs_are_laid_out() {
    let spec = changed(&[
        ("/repetitions/blocks", json!(1000)),
        ("/threads", json!([1, 2, 3, 4, 5])),
        ("/maximumDuration", json!("1000h")),
    ]);
    let plan = lay_out(&expand(&spec).unwrap(), Seed(1)).unwrap();
    assert_eq!(plan.places.len(), 10_002);
    assert!(std::mem::size_of::<super::Place>() <= 24);
}

proptest! {
    #[test]
    fn every_cell_of_a_group_is_measured_once_in_every_block(
        seed in any::<u64>(),
        looks in any::<bool>(),
        noise_floor in any::<bool>(),
        grouped in any::<bool>(),
        threads in proptest::sample::subsequence(vec![1, 2, 4, 8, 16, 32], 1..6),
        workloads in 1_usize..3,
    ) {
        let mut changes = vec![
            ("/comparisons/0/noiseFloor", json!(noise_floor)),
            ("/threads", json!(threads)),
        ];
        if looks && !grouped { changes.push(("/repetitions", json!({"looks": "UpTo10"}))); }
        if grouped { changes.push(("/order", json!("Grouped"))); }
        if workloads == 2 {
            changes.push(("/workloads/-", json!({"name": "points", "type": "Sysbench", "sysbench": {"script": "oltp_point_select", "tables": 1, "tableSize": 10}})));
        }
        let spec = changed(&changes);
        let matrix = expand(&spec).unwrap();
        let plan = lay_out(&matrix, Seed(seed)).unwrap();
        prop_assert_eq!(&plan, &lay_out(&matrix, Seed(seed)).unwrap());
        // Units are all places, in order, without gaps.
        let mut next = 0;
        for unit in &plan.units {
            prop_assert_eq!(unit.places.start, next);
            next = unit.places.end;
            let places = &plan.places[unit.places.clone()];
            prop_assert!(places.iter().all(|place| place.group == places[0].group && place.block == places[0].block));
        }
        prop_assert_eq!(next, plan.places.len());
        prop_assert!(plan.units.windows(2).all(|pair| pair[0].stage <= pair[1].stage));
        // Every block has every arm and thread count once, visits follow each other, ordinals count from 0.
        let mut blocks: BTreeMap<(u32, u32), Vec<&super::Place>> = BTreeMap::new();
        for place in plan.places.iter().filter(|place| place.block > 0) {
            blocks.entry((place.group, place.block)).or_default().push(place);
        }
        prop_assert_eq!(blocks.len(), plan.groups.len() * plan.looks.last() as usize);
        for ((group, _), places) in blocks {
            let group = &plan.groups[group as usize];
            let cells: BTreeSet<_> = places.iter().map(|place| (place.arm, place.threads)).collect();
            prop_assert_eq!(cells.len(), group.arms.len() * group.threads.len());
            prop_assert_eq!(places.len(), cells.len());
            for visit in places.chunks(group.threads.len()) {
                prop_assert!(visit.iter().all(|place| place.arm == visit[0].arm));
                prop_assert!(visit.iter().enumerate().all(|(i, place)| usize::from(place.ordinal) == i));
            }
            if !grouped {
                let seeds: BTreeSet<u32> = places.iter().map(|place| plan.load_seed(place)).collect();
                prop_assert_eq!(seeds.len(), 1);
            }
        }
    }
}
