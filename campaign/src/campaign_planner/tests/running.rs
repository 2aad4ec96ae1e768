//! Campaigns that run: to the end, with invalid runs, in lanes, with looks.

use std::collections::{BTreeMap, BTreeSet};

use crds::campaign::{BlockOutcome, CampaignState, Verdict};
use crds::names::condition::{ACCEPTANCE_PASSED, FINISHED, READY, SUCCEEDED};
use crds::run::ValidityVerdict;
use proptest::prelude::*;
use serde_json::json;

use super::world::{World, surroundings};

#[test]
fn versions_differ_between_arms_that_are_versions_and_in_no_other_block() {
    let mut world = World::new(&[
        (
            "/databases",
            json!([
                {"name": "old", "engine": "MariaDB", "type": "Managed", "managed": {"image": "mariadb:10.11", "storage": {"size": "1Gi"}}},
                {"name": "new", "engine": "MariaDB", "type": "Managed", "managed": {"image": "mariadb:11.8", "storage": {"size": "1Gi"}}},
            ]),
        ),
        (
            "/comparisons",
            json!([
                {"name": "audit", "axis": "AuditSetting", "baseline": "no-audit"},
                {"name": "version", "axis": "Database", "baseline": "old"},
            ]),
        ),
        ("/maximumDuration", json!("2h")),
    ]);
    world.finish(|_| vec![]);
    let status = world.campaign.status.clone().unwrap();
    assert_eq!(
        status.state,
        CampaignState::Completed,
        "{:?}",
        world.condition(READY)
    );
    assert_eq!(status.progress.unwrap().invalid, 0);
    assert!(world.runs.values().all(|run| run.spec.attempt == 1));
    let asked: BTreeSet<_> = status.answers.iter().map(|a| a.comparison.as_str()).collect();
    assert_eq!(asked, BTreeSet::from(["audit", "version"]));
}

#[test]
fn a_block_in_which_the_server_was_exchanged_is_measured_again() {
    let mut world = World::new(&[]);
    world.surroundings = |run| {
        let mut found = surroundings(run);
        let visit = &run.spec.visit;
        if (visit.block, visit.position, run.spec.attempt) == (2, 1, 1) {
            found.server_version = Some("another".into());
        }
        found
    };
    world.finish(|_| vec![]);
    let status = world.campaign.status.clone().unwrap();
    let repeated: Vec<_> = status
        .blocks
        .iter()
        .map(|block| (block.block, block.outcome, block.reasons[0].reason.as_str()))
        .collect();
    assert_eq!(repeated, [(2, BlockOutcome::Repeated, "EnvironmentChanged")]);
}

#[test]
fn the_quickstart_from_manifest_to_verdict() {
    let mut world = World::new(&[(
        "/acceptance",
        json!([{"comparison": "audit", "maximumWorsening": "20%"}]),
    )]);
    world.finish(|_| vec![]);
    let status = world.campaign.status.clone().unwrap();
    assert_eq!(status.state, CampaignState::Completed);
    assert_eq!(world.condition(FINISHED).0, "True");
    assert_eq!(world.condition(SUCCEEDED).0, "True");
    assert_eq!(world.condition(READY).0, "True");
    assert_eq!(world.condition(ACCEPTANCE_PASSED).0, "True");
    let progress = status.progress.clone().unwrap();
    assert_eq!((progress.done, progress.total, progress.invalid), (38, 38, 0));
    assert_eq!((world.runs.len(), world.most_open), (38, 1));
    assert_eq!(status.answers.len(), 1);
    let answer = &status.answers[0];
    assert_eq!(answer.verdict, Verdict::Worse);
    assert!(
        (-160_000..-140_000).contains(&answer.effect_ppm.unwrap()),
        "{answer:?}"
    );
    assert_eq!(answer.per_threads.len(), 3);
    let ratio = answer.level_milli.unwrap() as f64 / answer.baseline_milli.unwrap() as f64 - 1.0;
    assert!(
        (1e6 * ratio - answer.effect_ppm.unwrap() as f64).abs() < 50.0,
        "means and effect agree"
    );
    assert_eq!(status.cells.len(), 6);
    assert!(status.cells.iter().all(|cell| cell.runs == 6));
    assert!(status.verdict.unwrap().starts_with("Worse -1"));
    // The story in a few events, and at most about one status a run.
    insta::assert_yaml_snapshot!(world.events);
    assert!(world.patches <= 38 + 6, "{}", world.patches);
    // Nothing more happens, and what was held is let go.
    assert!(world.step().is_empty());
    assert!(
        world.targets[0]
            .status
            .as_ref()
            .unwrap()
            .holder
            .as_ref()
            .unwrap()
            .uid
            .is_empty()
    );
}

#[test]
fn later_runs_of_a_visit_require_its_boot() {
    let mut world = World::new(&[]);
    world.finish(|_| vec![]);
    let mut boots: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for run in world.runs.values() {
        let visit = &run.spec.visit;
        assert_eq!(run.spec.restart_before, visit.ordinal == 0);
        assert_eq!(run.spec.requires_boot.is_some(), visit.ordinal > 0);
        let boot = run
            .status
            .as_ref()
            .unwrap()
            .evidence
            .as_ref()
            .unwrap()
            .boot_identity
            .clone();
        boots
            .entry((visit.block, visit.arm.clone()))
            .or_default()
            .insert(boot);
    }
    assert_eq!(boots.len(), 14);
    assert!(boots.values().all(|boots| boots.len() == 1));
}

#[test]
fn a_restart_when_required_is_one_between_different_settings() {
    let both = json!({"max_prepared_stmt_count": 1_048_576});
    let mut world = World::new(&[
        ("/restart/policy", json!("WhenRequired")),
        ("/parameterTemplates/0/parameters", both),
    ]);
    world.finish(|_| vec![]);
    let mut runs: Vec<_> = world.runs.values().map(|run| &run.spec).collect();
    runs.sort_by_key(|spec| spec.visit.sequence);
    assert!(runs[0].restart_before, "it starts from a known state");
    for pair in runs.windows(2) {
        let changes = pair[0].cell.audit_setting != pair[1].cell.audit_setting;
        assert_eq!(pair[1].restart_before, changes, "{:?}", pair[1].visit);
    }
}

#[test]
fn an_invalid_run_repeats_its_block_and_both_stay_visible() {
    let mut world = World::new(&[]);
    world.finish(|run| {
        let visit = &run.spec.visit;
        if visit.block == 3 && visit.position == 1 && visit.ordinal == 1 && run.spec.attempt == 1 {
            vec!["PodChanged"]
        } else {
            vec![]
        }
    });
    let status = world.campaign.status.clone().unwrap();
    // Five runs of the first attempt (the visit was not finished), and the block again.
    assert_eq!(world.runs.len(), 38 + 5);
    assert_eq!(status.progress.unwrap().invalid, 1);
    assert_eq!(status.invalid[0].reason, "PodChanged");
    assert_eq!(status.blocks.len(), 1);
    assert_eq!((status.blocks[0].block, status.blocks[0].attempts), (3, 2));
    assert_eq!(status.blocks[0].outcome, BlockOutcome::Repeated);
    assert_eq!(world.condition(SUCCEEDED).0, "True");
    assert_eq!(status.answers[0].blocks, 6);
    assert!(
        status.cells.iter().all(|cell| cell.runs == 6),
        "no run of the first attempt is averaged"
    );
    assert!(
        world
            .events
            .iter()
            .any(|event| event.starts_with("BlockRepeated: attempt 2 of block 3 of 6: PodChanged"))
    );
}

#[test]
fn a_block_without_a_good_attempt_is_lost_and_the_rest_is_measured() {
    let mut world = World::new(&[("/repetitions/blocks", json!(7))]);
    world.finish(|run| {
        if run.spec.visit.block == 2
            && run.spec.visit.ordinal == 2
            && run.spec.visit.position == run.spec.attempt - 1
        {
            vec!["NodeDisturbed"]
        } else {
            vec![]
        }
    });
    let status = world.campaign.status.clone().unwrap();
    assert_eq!(status.state, CampaignState::Failed);
    assert_eq!(
        world.condition(SUCCEEDED),
        ("False".into(), "BlocksLost".into(), world.condition(SUCCEEDED).2)
    );
    assert_eq!(world.condition(FINISHED).0, "True");
    assert_eq!(status.progress.as_ref().unwrap().blocks_lost, 1);
    assert_eq!(status.blocks[0].outcome, BlockOutcome::Lost);
    assert_eq!(status.answers[0].blocks, 6);
    assert_eq!(status.answers[0].verdict, Verdict::Worse);
}

#[test]
fn an_arm_that_spoils_its_own_runs_gets_no_verdict() {
    let mut world = World::new(&[("/repetitions/blocks", json!(7))]);
    world.finish(|run| {
        let audit = run.spec.cell.audit_setting == "audit-all";
        if run.spec.visit.block == 2 && audit {
            vec!["GeneratorStarved"]
        } else {
            vec![]
        }
    });
    let answer = &world.campaign.status.as_ref().unwrap().answers[0];
    assert_eq!(
        (answer.verdict, answer.reason.as_deref()),
        (Verdict::Inconclusive, Some("UnequalValidity"))
    );
}

#[test]
fn an_invalid_burn_in_is_tried_again_and_then_done_without() {
    let mut world = World::new(&[]);
    world.finish(|run| {
        if run.spec.visit.block == 0 {
            vec!["NodeDisturbed"]
        } else {
            vec![]
        }
    });
    assert_eq!(world.condition(SUCCEEDED).0, "True");
    assert_eq!(world.runs.len(), 36 + 4);
    assert_eq!(world.campaign.status.unwrap().answers[0].blocks, 6);
}

#[test]
fn looks_stop_as_soon_as_everything_is_decided() {
    let mut world = World::new(&[("/repetitions", json!({"looks": "UpTo10"}))]);
    world.finish(|_| vec![]);
    let status = world.campaign.status.clone().unwrap();
    let progress = status.progress.unwrap();
    assert_eq!(
        (progress.done, progress.total),
        (38, 38),
        "six blocks decide 15 %"
    );
    assert_eq!(status.answers[0].verdict, Verdict::Worse);

    // Arms that do not differ, and a margin that six blocks cannot show.
    let mut world = World::new(&[
        ("/repetitions", json!({"looks": "UpTo10"})),
        ("/comparisons/0/equivalenceMargin", json!("0.1%")),
        ("/auditSettings/1", json!({"name": "no-audit-2", "type": "None"})),
    ]);
    world.finish(|_| vec![]);
    let progress = world.campaign.status.unwrap().progress.unwrap();
    assert!(progress.done >= 38);
}

#[test]
fn two_instances_take_turns_and_idle_ones_are_let_go() {
    let size = json!({"name": "2u2g", "cpu": 2, "memory": "2Gi"});
    let mut world = World::new(&[
        ("/instanceSizes/-", size.clone()),
        ("/maximumDuration", json!("5h")),
    ]);
    world.finish(|_| vec![]);
    assert_eq!(world.targets.len(), 2);
    assert_eq!((world.runs.len(), world.most_open), (76, 1));
    let status = world.campaign.status.unwrap();
    assert_eq!(status.answers.len(), 2);
    let releases = world
        .log
        .iter()
        .filter(|line| line.starts_with("release"))
        .count();
    assert!((3..=6).contains(&releases), "{:?}", world.log);

    // Two lanes: both instances are measured at once, never two runs on one.
    let mut world = World::new(&[
        ("/instanceSizes/-", size),
        ("/parallelism", json!(2)),
        ("/idleTargets", json!("Keep")),
        ("/maximumDuration", json!("5h")),
    ]);
    world.finish(|_| vec![]);
    assert_eq!((world.runs.len(), world.most_open), (76, 2));
}

#[test]
fn instances_that_are_compared_are_answered_for_this_pair() {
    let mut world = World::new(&[
        (
            "/instanceSizes/-",
            json!({"name": "2u2g", "cpu": 2, "memory": "2Gi"}),
        ),
        (
            "/comparisons/0",
            json!({"name": "size", "axis": "InstanceSize", "baseline": "1u1g", "noiseFloor": true}),
        ),
        ("/maximumDuration", json!("5h")),
        ("/exclude", json!([{"auditSetting": "audit-all"}])),
    ]);
    world.finish(|_| vec![]);
    let answer = &world.campaign.status.as_ref().unwrap().answers[0];
    assert!(
        answer.flags.iter().any(|flag| flag == "ThisPairOfInstances"),
        "{:?}",
        answer.flags
    );
    assert_eq!(
        (answer.level.as_str(), answer.baseline.as_str()),
        ("2u2g", "1u1g")
    );
    assert_eq!(world.most_open, 1);
}

#[test]
fn a_run_deleted_by_hand_costs_its_block_an_attempt() {
    let mut world = World::new(&[]);
    let mut once = false;
    for _ in 0..2000 {
        world.settle();
        let Some(name) = world.open().first().cloned() else {
            break;
        };
        let visit = world.runs[&name].spec.visit.clone();
        world.end(&name, &[]);
        if visit.block == 2 && visit.ordinal == 1 && !once {
            once = true;
            world.settle();
            world.runs.remove(&name).unwrap();
        }
    }
    let status = world.campaign.status.unwrap();
    assert_eq!(status.state, CampaignState::Completed);
    assert_eq!(status.blocks[0].reasons[0].reason, "RunDeleted");
}

#[test]
fn descriptive_numbers_carry_no_verdict() {
    let mut world = World::new(&[
        ("/inference", json!("Descriptive")),
        ("/repetitions/blocks", json!(2)),
        ("/order", json!("Grouped")),
    ]);
    world.finish(|_| vec![]);
    let status = world.campaign.status.unwrap();
    assert_eq!(status.answers[0].verdict, Verdict::Descriptive);
    assert_eq!(world.runs.len(), 12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn whatever_is_invalid_every_counted_run_is_measured_once_and_the_campaign_ends(
        invalid in proptest::collection::btree_set((0_i32..38, 1_i32..3), 0..30),
        noise_floor in any::<bool>(),
    ) {
        let mut world = World::new(&[("/comparisons/0/noiseFloor", json!(noise_floor))]);
        world.finish(|run| {
            if invalid.contains(&(run.spec.visit.sequence, run.spec.attempt)) { vec!["NodeDisturbed"] } else { vec![] }
        });
        prop_assert_eq!(world.condition(FINISHED).0, "True");
        prop_assert_eq!(world.most_open, 1);
        let status = world.campaign.status.clone().unwrap();
        let lost = status.progress.as_ref().unwrap().blocks_lost;
        prop_assert_eq!(world.condition(SUCCEEDED).0, if lost > 0 { "False" } else { "True" });
        // A place counts in the last attempt of its block only if the whole block is valid there.
        let mut blocks: BTreeMap<(i32, i32), Vec<bool>> = BTreeMap::new();
        for run in world.runs.values().filter(|run| run.spec.visit.block > 0) {
            let valid = run.status.as_ref().unwrap().validity.as_ref().unwrap().verdict == ValidityVerdict::Valid;
            blocks.entry((run.spec.visit.block, run.spec.attempt)).or_default().push(valid);
        }
        let runs = if noise_floor { 9 } else { 6 };
        let good: Vec<i32> = blocks.iter().filter(|(_, runs)| runs.iter().all(|valid| *valid)).map(|((block, _), _)| *block).collect();
        prop_assert!(blocks.iter().filter(|((block, _), _)| good.contains(block)).any(|(_, each)| each.len() == runs) || good.is_empty());
        prop_assert_eq!(good.len() as i64, 6 - lost);
        prop_assert_eq!(status.answers[0].blocks, 6 - lost);
        let per_cell = (6 - lost) * if noise_floor { 2 } else { 1 };
        prop_assert!(status.cells.iter().filter(|cell| cell.cell.audit_setting == "no-audit").all(|cell| cell.runs == per_cell));
    }
}
