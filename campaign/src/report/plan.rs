//! What a campaign would do, before anything runs: the same expansion, order and budgets that the operator uses.

use std::fmt::Write as _;

use crds::campaign::BenchmarkCampaign;
use kube::ResourceExt as _;

use super::table::Table;
use crate::blocks::{self, Plan};
use crate::budget::{self, Budget, Seen, dataset, gibibytes, time};
use crate::campaign_planner::seed;
use crate::matrix::{self, Matrix, Problem};

/// Blocks whose order is printed in full.
const BLOCKS_SHOWN: usize = 24;

/// The plan as text.
///
/// # Errors
/// Everything for which the operator would refuse the campaign.
pub fn plan(campaign: &BenchmarkCampaign) -> Result<String, Vec<Problem>> {
    let matrix = matrix::expand(&campaign.spec)?;
    let iteration = campaign.status.as_ref().map_or(0, |status| status.iteration);
    let seed = seed(&campaign.uid().unwrap_or_default(), campaign.spec.seed, iteration);
    let plan = blocks::lay_out(&matrix, seed)?;
    let budget = budget::of(&matrix, &plan, &Seen::default());
    if !budget.problems.is_empty() {
        return Err(budget.problems);
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {} cells, {} blocks, {} boots, {} runs ({} of them burn-in), about {} (at most {})",
        campaign.name_any(),
        matrix.cells(),
        plan.blocks(),
        plan.visits(),
        plan.places.len(),
        plan.burn_in_runs(),
        time::words(budget.estimated_seconds),
        time::words(std::time::Duration::from(campaign.spec.maximum_duration).as_secs() as i64),
    );
    questions(&matrix, &plan, &mut text);
    instances(&matrix, &budget, &mut text);
    workloads(&matrix, &budget, &mut text);
    order(campaign, &plan, &mut text);
    for note in matrix.notes.iter().chain(&budget.notes) {
        let _ = writeln!(text, "note: {note}");
    }
    Ok(text)
}

fn questions(matrix: &Matrix<'_>, plan: &Plan, text: &mut String) {
    for group in &plan.groups {
        let arms: Vec<&str> = group.arms.iter().map(|arm| arm.name.as_str()).collect();
        let threads: Vec<String> = group.threads.iter().map(i32::to_string).collect();
        let question = match group.comparison {
            Some(index) => {
                let comparison = &matrix.spec.comparisons[index];
                format!(
                    "question {}: {} against {} ({:?}, margin {})",
                    comparison.name,
                    arms[1..].join(", "),
                    arms[0],
                    comparison.primary,
                    comparison.equivalence_margin
                )
            }
            None => "no question".to_owned(),
        };
        let _ = writeln!(
            text,
            "{question}: {} at {} threads",
            group.context,
            threads.join(", ")
        );
    }
}

fn instances(matrix: &Matrix<'_>, budget: &Budget, text: &mut String) {
    for (instance, given) in &budget.instances {
        let (database, size) = (
            &matrix.spec.databases[instance.0],
            &matrix.spec.instance_sizes[instance.1],
        );
        let pool = given
            .buffer_pool
            .map_or_else(|| "as configured".to_owned(), gibibytes);
        let log = given.log_storage.map_or_else(String::new, |bytes| {
            format!(", a log volume of {}", gibibytes(bytes))
        });
        let _ = writeln!(
            text,
            "instance {} {}: {} CPUs, {} of memory, buffer pool {pool}{log}",
            database.name, size.name, size.cpu.0, size.memory.0
        );
    }
}

fn workloads(matrix: &Matrix<'_>, budget: &Budget, text: &mut String) {
    for ((workload, size), rows) in &budget.rows {
        let workload = &matrix.spec.workloads[*workload];
        let tables = dataset::tables(workload);
        let _ = writeln!(
            text,
            "data of {} on {}: {tables} table{} of {rows} rows, about {}",
            workload.name,
            matrix.spec.instance_sizes[*size].name,
            if tables == 1 { "" } else { "s" },
            gibibytes(dataset::bytes(workload, *rows))
        );
    }
    if let Some(bytes) = budget.audit_log_bytes {
        let _ = writeln!(text, "audit log: at most about {} in a run", gibibytes(bytes));
    }
}

fn order(campaign: &BenchmarkCampaign, plan: &Plan, text: &mut String) {
    let known = campaign.uid().is_some() || campaign.spec.seed.is_some();
    let seed = if known {
        format!("seed {}", plan.seed.0)
    } else {
        "an example: the seed comes with the UID".to_owned()
    };
    let _ = writeln!(text, "order ({seed}):");
    let mut table = Table::new(["block", "arms in order", "threads in order"].map(str::to_owned));
    for unit in plan.units.iter().take(BLOCKS_SHOWN) {
        let places = &plan.places[unit.places.clone()];
        let first = &places[0];
        let arms: Vec<&str> = places
            .iter()
            .filter(|place| place.ordinal == 0)
            .map(|place| plan.arm(place).name.as_str())
            .collect();
        let threads: Vec<String> = places
            .iter()
            .filter(|place| place.position == first.position)
            .map(|place| place.threads.to_string())
            .collect();
        let block = if first.block == 0 {
            "burn-in".to_owned()
        } else {
            first.block.to_string()
        };
        table.row([block, arms.join(", "), threads.join(" ")]);
    }
    text.push_str(&table.render());
    if plan.units.len() > BLOCKS_SHOWN {
        let _ = writeln!(text, "  and {} more", plan.units.len() - BLOCKS_SHOWN);
    }
}
