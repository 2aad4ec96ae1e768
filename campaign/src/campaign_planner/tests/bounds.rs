//! The status stays within the API's bounds and under 100 KiB however large the campaign is.

use std::collections::BTreeMap;

use crds::BenchmarkCampaignStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use super::world::{UID, World};
use crate::blocks::lay_out;
use crate::campaign_planner::{CampaignView, Figures, RunState, RunSummary, plan, seed};
use crate::matrix::expand;

/// Whether a value keeps the bounds of its schema: lengths of lists and strings, and no field that it does not have.
fn broken(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match schema
                    .pointer(&format!("/properties/{key}"))
                    .or_else(|| schema.get("additionalProperties"))
                {
                    Some(inner) => broken(inner, value, &format!("{at}.{key}"), found),
                    None => found.push(format!("{at}.{key} is not in the schema")),
                }
            }
        }
        Value::Array(list) => {
            if schema
                .get("maxItems")
                .and_then(Value::as_u64)
                .is_some_and(|most| list.len() as u64 > most)
            {
                found.push(format!("{at} has {} items", list.len()));
            }
            for (i, value) in list.iter().enumerate() {
                broken(&schema["items"], value, &format!("{at}[{i}]"), found);
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            if schema
                .get("maxLength")
                .and_then(Value::as_u64)
                .is_some_and(|most| length > most)
            {
                found.push(format!("{at} has {length} characters"));
            }
        }
        _ => {}
    }
}

fn check(status: &BenchmarkCampaignStatus) {
    let definition = serde_json::to_value(crds::BenchmarkCampaign::crd()).unwrap();
    let schema = definition
        .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status")
        .unwrap();
    let value = serde_json::to_value(status).unwrap();
    let mut found = Vec::new();
    broken(schema, &value, "status", &mut found);
    assert!(found.is_empty(), "{found:#?}");
    let bytes = value.to_string().len();
    assert!(bytes < 100 * 1024, "{bytes} bytes");
}

/// A campaign of about 10,000 runs with long names in every axis and many questions.
fn large() -> World {
    let long = |prefix: &str, most: usize| format!("{prefix}{}", "x".repeat(most - prefix.len()));
    let templates: Vec<Value> = (0..16)
        .map(|i| json!({"name": long(&format!("t{i}-"), 63), "parameters": {"max_prepared_stmt_count": 1_048_576, "sync_binlog": i, "innodb_flush_log_at_trx_commit": i % 3}}))
        .collect();
    let mut audits = vec![json!({"name": "no-audit", "type": "None"})];
    audits.push(json!({"name": long("audit-", 63), "type": "ServerAudit", "log": {"volume": "WithData", "limit": "512Mi"}}));
    let threads: Vec<i32> = (1..=16).collect();
    World::new(&[
        ("/parameterTemplates", json!(templates)),
        ("/auditSettings", json!(audits)),
        ("/threads", json!(threads)),
        ("/workloads/0/name", json!(long("w-", 63))),
        (
            "/comparisons",
            json!([
                {"name": "audit", "axis": "AuditSetting", "baseline": "no-audit"},
                {"name": "template", "axis": "ParameterTemplate", "baseline": templates[0]["name"]},
            ]),
        ),
        ("/maximumDuration", json!("1000h")),
        ("/repetitions/blocks", json!(9)),
    ])
}

/// Every run of the plan as a summary; `invalid`: whether the first attempt of a place failed.
fn summaries(world: &World, invalid: impl Fn(usize) -> bool) -> Vec<RunSummary> {
    let matrix = expand(&world.campaign.spec).unwrap();
    let plan = lay_out(&matrix, seed(UID, None, 0)).unwrap();
    let mut runs = Vec::new();
    for unit in &plan.units {
        let bad = unit.places.clone().find(|place| invalid(*place));
        for attempt in 1..=if bad.is_some() { 2 } else { 1 } {
            for place in unit.places.clone() {
                let fails = attempt == 1 && bad == Some(place);
                let it = &plan.places[place];
                let qps = 1_000_000 * i64::from(it.threads) + (place as i64 * 7919) % 40_000;
                runs.push(RunSummary {
                    iteration: 0,
                    sequence: place as i32,
                    attempt,
                    state: if fails { RunState::Invalid } else { RunState::Valid },
                    reasons: if fails {
                        vec![crds::run::Finding {
                            reason: "NodeDisturbed".into(),
                            message: "m".repeat(500),
                        }]
                    } else {
                        vec![]
                    },
                    settled: true,
                    boot: (it.ordinal == 0).then(|| format!("pod-{place}/{attempt}").into_boxed_str()),
                    figures: Figures {
                        qps_milli: Some(qps),
                        tps_milli: Some(qps / 16),
                        latency_mean_micros: Some(1_000_000_000 / qps),
                        latency_p95_micros: Some(2_000_000_000 / qps),
                        ..Figures::default()
                    },
                    surroundings: Default::default(),
                    seconds: Some(12),
                    open: None,
                });
                if fails {
                    break;
                }
            }
        }
    }
    runs
}

#[test]
fn ten_thousand_runs_fit_into_the_status() {
    let mut world = large();
    let runs = summaries(&world, |place| place % 61 == 0);
    assert!((9_000..12_000).contains(&runs.len()), "{}", runs.len());
    world.campaign.status = Some(BenchmarkCampaignStatus {
        start_time: Some(Time(world.now)),
        observed_generation: Some(1),
        ..BenchmarkCampaignStatus::default()
    });
    let refs: Vec<&RunSummary> = runs.iter().collect();
    let checks = BTreeMap::new();
    let mut view = CampaignView {
        campaign: &world.campaign,
        targets: &[],
        runs: &refs[..refs.len() - 1],
        checks: &checks,
        obstacles: &[],
    };
    let running = plan(&view, world.now);
    check(&running.status);
    assert!(running.status.answers.is_empty(), "no verdict before the look");
    view.runs = &refs;
    let ended = plan(&view, world.now);
    check(&ended.status);
    let status = ended.status;
    assert_eq!(
        status.progress.as_ref().map(|p| p.done),
        status.plan.as_ref().map(|p| p.runs)
    );
    assert!(!status.answers.is_empty() && status.answers_omitted > 0);
    assert!(status.cells_omitted > 0 && status.blocks_omitted > 0);
    assert!(
        std::mem::size_of::<RunSummary>() <= 360,
        "{}",
        std::mem::size_of::<RunSummary>()
    );
}

#[test]
fn many_problems_fit_into_the_status() {
    let databases: Vec<Value> = (0..16)
        .map(|i| json!({"name": format!("d{i}"), "engine": "PostgreSQL", "type": "Managed", "managed": {"image": "p", "configuration": {"general_log": "ä".repeat(400), "datadir": 1}}}))
        .collect();
    let mut world = World::new(&[("/databases", json!(databases)), ("/threads", json!([0]))]);
    world.settle();
    check(world.campaign.status.as_ref().unwrap());
    assert!(world.campaign.status.unwrap().plan.unwrap().notes_omitted > 0);
}

#[test]
fn the_quickstart_keeps_the_bounds_all_the_way() {
    let mut world = World::new(&[(
        "/acceptance",
        json!([{"comparison": "audit", "maximumWorsening": "10%"}]),
    )]);
    for _ in 0..200 {
        world.settle();
        check(world.campaign.status.as_ref().unwrap());
        let Some(name) = world.open().first().cloned() else {
            return;
        };
        world.end(&name, &[]);
    }
    panic!("no end");
}
