//! Published tables fed as runs come back as published, and say what is wrong with them; what does not count is not averaged.

mod counting;
mod studies;
mod study_4;
mod words;

use crds::run::{Cell, RunResult, Step, Validity, ValidityVerdict};
use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkRunStatus};
use serde_json::{Value, json};

use crate::blocks::{self, Plan};
use crate::campaign_planner::seed;
use crate::matrix;

/// The campaign of a manifest with parts replaced, by JSON pointer; null removes.
fn campaign(manifest: &str, changes: &[(&str, Value)]) -> BenchmarkCampaign {
    let documents: Vec<Value> = serde_yaml::from_multiple(manifest).unwrap();
    let mut object = documents
        .into_iter()
        .find(|document| document["kind"] == "BenchmarkCampaign")
        .unwrap();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        match parent {
            Value::Object(map) if value.is_null() => {
                map.remove(key);
            }
            Value::Object(map) => {
                map.insert(key.to_owned(), value.clone());
            }
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value.clone(),
            other => panic!("{pointer} leads into {other}"),
        }
    }
    object["metadata"]["uid"] = json!("0f8fad5b-d9cb-469f-a165-70867728950e");
    serde_json::from_value(object).unwrap()
}

/// Visits every place of a campaign's plan with its cell.
fn places(campaign: &BenchmarkCampaign) -> (Plan, Vec<Cell>) {
    let matrix = matrix::expand(&campaign.spec).unwrap();
    let uid = campaign.metadata.uid.clone().unwrap();
    let plan = blocks::lay_out(&matrix, seed(&uid, campaign.spec.seed, 0)).unwrap();
    let cells = plan
        .places
        .iter()
        .map(|place| matrix.cell(plan.levels(place), place.threads))
        .collect();
    (plan, cells)
}

/// A finished run.
fn run(cell: &Cell, sequence: usize, attempt: i32, result: RunResult) -> BenchmarkRun {
    let spec = json!({
        "targetRef": {"name": "t"},
        "cell": cell,
        "visit": {"sequence": sequence},
        "attempt": attempt,
        "audit": {"name": cell.audit_setting, "type": "None"},
        "workload": {"name": cell.workload, "type": "Sysbench"},
        "threads": cell.threads,
    });
    let mut run = BenchmarkRun::new(
        &format!("r{sequence}-{attempt}"),
        serde_json::from_value(spec).unwrap(),
    );
    run.status = Some(BenchmarkRunStatus {
        step: Step::Finished,
        validity: Some(Validity {
            verdict: ValidityVerdict::Valid,
            reasons: vec![],
        }),
        result: Some(result),
        ..BenchmarkRunStatus::default()
    });
    run
}

/// Every place measured once, with the figures of its cell.
fn measured(campaign: &BenchmarkCampaign, figures: impl Fn(&Cell) -> RunResult) -> Vec<BenchmarkRun> {
    let (_, cells) = places(campaign);
    cells
        .iter()
        .enumerate()
        .map(|(place, cell)| run(cell, place, 1, figures(cell)))
        .collect()
}
