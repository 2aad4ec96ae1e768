//! Refusal and correction, targets before the start, suspension, requests to run again, names in the way, deletion.

use crds::campaign::CampaignState;
use crds::names::ANNOTATION_RUN_REQUEST;
use crds::names::condition::{FINISHED, READY, RECONCILING, STALLED, SUCCEEDED};
use crds::target::{BootFailure, Holder};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use serde_json::json;

use super::world::World;
use crate::campaign_planner::{Action, Obstacle, seed};

#[test]
fn a_refused_spec_is_corrected_and_runs() {
    let mut world = World::new(&[
        ("/threads", json!([2, 200])),
        ("/comparisons/0/baseline", json!("nobody")),
    ]);
    world.settle();
    let status = world.campaign.status.clone().unwrap();
    assert_eq!(status.state, CampaignState::Refused);
    assert!(status.start_time.is_none());
    for (type_, expected) in [
        (STALLED, "True"),
        (FINISHED, "True"),
        (SUCCEEDED, "False"),
        (READY, "False"),
    ] {
        let (found, reason, message) = world.condition(type_);
        assert_eq!(
            (found.as_str(), reason.as_str()),
            (expected, "Refused"),
            "{type_}"
        );
        assert!(message.contains("spec.comparisons[0].baseline") && message.contains("known are no-audit"));
    }
    assert!(world.targets.is_empty() && world.step().is_empty());

    // A budget is refused too, with the next generation.
    world.edit(&[("/threads", json!([2, 200]))]);
    world.settle();
    assert!(world.condition(STALLED).2.contains("max_connections"));
    assert_eq!(
        world.campaign.status.as_ref().unwrap().observed_generation,
        Some(2)
    );

    world.edit(&[]);
    world.finish(|_| vec![]);
    assert_eq!(world.condition(STALLED).0, "");
    assert_eq!(world.condition(SUCCEEDED).0, "True");
}

#[test]
fn a_server_that_does_not_know_a_parameter_refuses_the_campaign() {
    let mut world = World::new(&[]);
    world.problems = vec!["max_prepared_stmt_cout: not known; did you mean max_prepared_stmt_count?".into()];
    world.settle();
    assert_eq!(
        world.campaign.status.as_ref().unwrap().state,
        CampaignState::Refused
    );
    assert!(world.condition(STALLED).2.contains("did you mean"));
    assert!(world.runs.is_empty());
    assert!(
        world.log.last().unwrap().starts_with("release"),
        "{:?}",
        world.log
    );

    // Corrected: the target is asked again, and made anew only if it has changed.
    world.problems.clear();
    world.edit(&[(
        "/databases/0/managed/configuration",
        json!({"innodb_log_file_size": "128M"}),
    )]);
    world.finish(|_| vec![]);
    assert_eq!(world.condition(SUCCEEDED).0, "True");
    assert_eq!(
        world.log.iter().filter(|line| *line == "delete target").count(),
        1
    );
    assert_eq!(world.targets.len(), 1);
}

/// Targets and runs are told numbers: a share of the instance is known to the campaign only.
#[test]
fn a_share_of_the_instance_is_a_number_for_targets_and_runs() {
    let mut world = World::new(&[
        (
            "/databases/0/managed/configuration",
            json!({"key_buffer_size": "1% of memory"}),
        ),
        (
            "/parameterTemplates/0/parameters",
            json!({"innodb_buffer_pool_size": "50% of memory"}),
        ),
        (
            "/auditSettings/1/parameters",
            json!({"innodb_read_io_threads": "100% of cpu"}),
        ),
    ]);
    world.finish(|_| vec![]);
    assert_eq!(world.condition(SUCCEEDED).0, "True");
    let managed = world.targets[0].spec.managed.as_ref().unwrap();
    assert_eq!(managed.configuration["key_buffer_size"], (10 << 20).into());
    for run in world.runs.values() {
        assert_eq!(run.spec.parameters["innodb_buffer_pool_size"], (512 << 20).into());
        let own = run.spec.audit.parameters.get("innodb_read_io_threads");
        assert_eq!(own.is_some(), run.spec.cell.audit_setting == "audit-all");
        assert!(own.is_none_or(|value| *value == 1.into()));
    }
    let notes = world.campaign.status.unwrap().plan.unwrap().notes;
    let said = "innodb_buffer_pool_size: 50% of memory (template default) is 536870912 on 1u1g";
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
}

#[test]
fn targets_are_asked_one_after_another_where_idle_ones_stop() {
    let size = json!({"name": "2u2g", "cpu": 2, "memory": "2Gi"});
    let mut world = World::new(&[("/instanceSizes/-", size), ("/maximumDuration", json!("5h"))]);
    for _ in 0..10 {
        world.step();
    }
    let steps: Vec<&str> = world
        .log
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(&steps[..4], ["create", "hold", "check", "release"]);
    assert_eq!(&steps[4..7], ["create", "hold", "check"]);
    assert_eq!(world.open().len(), 1);
}

#[test]
fn conditions_keep_their_times_and_reconciling_ends_with_the_start() {
    let mut world = World::new(&[]);
    world.step();
    assert_eq!(world.condition(RECONCILING).0, "True");
    let since = |world: &World, type_: &str| {
        let status = world.campaign.status.as_ref().unwrap();
        status
            .conditions
            .iter()
            .find(|c| c.type_ == type_)
            .unwrap()
            .last_transition_time
            .clone()
    };
    let first = since(&world, FINISHED);
    world.settle();
    assert_eq!(world.condition(RECONCILING).0, "");
    assert_eq!(world.condition(READY).0, "True");
    assert_eq!(since(&world, FINISHED), first);
    assert!(since(&world, READY) > first);
}

#[test]
fn a_server_that_does_not_start_refuses_the_campaign() {
    let mut world = World::new(&[]);
    world.step();
    world.step();
    let status = world.targets[0].status.as_mut().unwrap();
    status.boot = None;
    let serial = status.holder.as_ref().unwrap().boot.as_ref().unwrap().serial;
    status.boot_failure = Some(BootFailure {
        serial,
        reason: "ServerExited".into(),
        message: "unknown variable 'foo=1'".into(),
    });
    world.settle();
    assert!(world.condition(STALLED).2.contains("unknown variable 'foo=1'"));
}

#[test]
fn a_target_of_somebody_else_is_waited_for() {
    let mut world = World::new(&[]);
    world.step();
    world.targets[0].status.get_or_insert_default().holder = Some(Holder {
        kind: "BenchmarkCampaign".into(),
        name: "other".into(),
        uid: "other".into(),
        ..Holder::default()
    });
    world.settle();
    assert_eq!(
        world.campaign.status.as_ref().unwrap().state,
        CampaignState::Queued
    );
    assert!(
        world
            .condition(READY)
            .2
            .contains("held by BenchmarkCampaign other")
    );
    world.targets[0].status.as_mut().unwrap().holder = None;
    world.finish(|_| vec![]);
    assert_eq!(world.condition(SUCCEEDED).0, "True");
}

#[test]
fn suspended_starts_nothing_and_goes_on_where_it_was() {
    let mut world = World::new(&[("/suspend", json!(true))]);
    world.settle();
    assert!(world.targets.is_empty());
    assert_eq!(
        world.campaign.status.as_ref().unwrap().state,
        CampaignState::Suspended
    );
    world.edit(&[]);
    for _ in 0..5 {
        world.settle();
        let name = world.open()[0].clone();
        world.end(&name, &[]);
    }
    world.edit(&[("/suspend", json!(true))]);
    world.settle();
    assert!(world.open().is_empty());
    let done = world
        .campaign
        .status
        .as_ref()
        .unwrap()
        .progress
        .clone()
        .unwrap()
        .done;
    assert_eq!(done, 5);
    world.edit(&[]);
    world.finish(|_| vec![]);
    assert_eq!(world.runs.len(), 38);
    assert_eq!(world.condition(SUCCEEDED).0, "True");
}

#[test]
fn a_run_that_has_not_begun_is_taken_back_by_suspend() {
    let mut world = World::new(&[]);
    world.settle();
    assert_eq!(world.open().len(), 1);
    world.edit(&[("/suspend", json!(true))]);
    world.settle();
    assert!(world.open().is_empty() && world.runs.is_empty());
    world.edit(&[]);
    world.finish(|_| vec![]);
    assert_eq!(world.runs.len(), 38);
}

#[test]
fn a_token_runs_the_campaign_again_once() {
    let mut world = World::new(&[]);
    world.finish(|_| vec![]);
    let first = world.campaign.status.clone().unwrap();
    let token = |world: &mut World, token: &str| {
        world
            .campaign
            .annotations_mut()
            .insert(ANNOTATION_RUN_REQUEST.into(), token.into());
    };
    token(&mut world, "monday");
    world.settle();
    let status = world.campaign.status.clone().unwrap();
    assert_eq!((status.iteration, status.state), (1, CampaignState::Running));
    assert!(status.answers.is_empty() && status.seed != first.seed);
    world.finish(|_| vec![]);
    assert_eq!(world.runs.len(), 76);
    assert_eq!(world.campaign.status.as_ref().unwrap().run_requests, ["monday"]);
    // The same token, and one already seen, never run again.
    assert!(world.step().is_empty());
    token(&mut world, "tuesday");
    world.finish(|_| vec![]);
    token(&mut world, "monday");
    world.settle();
    assert_eq!(world.campaign.status.as_ref().unwrap().iteration, 2);
    assert_eq!(world.runs.len(), 3 * 38);
    assert_eq!(world.targets.len(), 1, "managed targets are kept over iterations");
}

#[test]
fn a_token_that_comes_while_it_runs_waits_for_the_end() {
    let mut world = World::new(&[]);
    world.settle();
    world
        .campaign
        .annotations_mut()
        .insert(ANNOTATION_RUN_REQUEST.into(), "again".into());
    world.finish(|_| vec![]);
    assert_eq!(world.campaign.status.as_ref().unwrap().iteration, 1);
    assert_eq!(world.runs.len(), 76);
}

#[test]
fn names_in_the_way_are_waited_for_or_told() {
    let mut world = World::new(&[]);
    let Action::CreateTarget(target) = world.look().actions[0].clone() else {
        panic!("no target")
    };
    let obstacle = |leaving| Obstacle {
        kind: "BenchmarkTarget".into(),
        name: target.name_any(),
        leaving,
        owner: Some("BenchmarkCampaign/other".into()),
    };
    world.obstacles = vec![obstacle(true)];
    world.step();
    assert!(world.condition(READY).2.contains("WaitingForCleanup"));
    world.obstacles = vec![obstacle(false)];
    world.step();
    assert_eq!(world.condition(STALLED).1, "NameTaken");
    world.obstacles.clear();
    world.settle();
    assert_eq!(world.condition(READY).0, "True");

    // A run's name: measuring stops there and says why.
    let name = world.open()[0].clone();
    world.end(&name, &[]);
    let Some(Action::CreateRun(next)) = world
        .look()
        .actions
        .into_iter()
        .find(|a| matches!(a, Action::CreateRun(_)))
    else {
        panic!("no run")
    };
    world.obstacles = vec![Obstacle {
        kind: "BenchmarkRun".into(),
        name: next.name_any(),
        leaving: false,
        owner: None,
    }];
    world.step();
    assert!(world.open().is_empty());
    assert_eq!(world.condition(STALLED).1, "NameTaken");
    world.obstacles.clear();
    world.finish(|_| vec![]);
    assert_eq!(world.condition(SUCCEEDED).0, "True");
}

#[test]
fn a_deleted_campaign_does_nothing_more() {
    let mut world = World::new(&[]);
    world.settle();
    world.campaign.metadata.deletion_timestamp = Some(Time(world.now));
    let before = world.campaign.status.clone();
    assert!(world.step().is_empty());
    assert_eq!(world.campaign.status, before);
}

#[test]
fn what_an_older_release_began_and_this_one_refuses_is_ended_and_kept() {
    let mut world = World::new(&[]);
    world.settle();
    world.edit(&[("/databases/0/engine", json!("PostgreSQL"))]);
    let name = world.open()[0].clone();
    world.end(&name, &[]);
    world.settle();
    let status = world.campaign.status.clone().unwrap();
    assert_eq!(status.state, CampaignState::Failed);
    assert!(status.start_time.is_some() && status.completion_time.is_some());
    assert_eq!(world.condition(FINISHED).0, "True");
    assert!(
        world
            .condition(STALLED)
            .2
            .contains("ServerAudit does not exist for PostgreSQL")
    );
    assert_eq!(world.runs.len(), 1);
}

#[test]
fn a_deleted_target_is_made_again() {
    let mut world = World::new(&[]);
    world.settle();
    let name = world.open()[0].clone();
    world.end(&name, &["PodChanged"]);
    world.targets.clear();
    world.finish(|_| vec![]);
    assert_eq!(world.targets.len(), 1);
    assert_eq!(world.condition(SUCCEEDED).0, "True");
}

#[test]
fn seeds_differ_by_campaign_and_iteration_unless_given() {
    assert_ne!(seed("a", None, 0), seed("b", None, 0));
    assert_ne!(seed("a", None, 0), seed("a", None, 1));
    assert_eq!(seed("a", Some(7), 0).0, 7);
    assert_eq!(seed("a", Some(7), 1), seed("b", Some(7), 1));
    assert_ne!(seed("a", Some(7), 1), seed("a", Some(7), 2));
    assert!(i64::try_from(seed("a", None, 3).0).unwrap() < 1 << 53);
}
