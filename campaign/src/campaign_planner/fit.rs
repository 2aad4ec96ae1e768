//! Keeps the status within the bounds of the API and under 100 KiB, whatever the size of the campaign: all data is in
//! the runs, so that nothing is lost by leaving details out here.

use crds::BenchmarkCampaignStatus;
use crds::campaign::{BenchmarkCampaign, PlanSummary};

use super::targets;
use crate::blocks::Plan;
use crate::budget::Budget;
use crate::matrix::Matrix;
use crate::target_planner::condition::clip;

/// The most bytes of a status as JSON.
const LARGEST: usize = 96 * 1024;
/// Notes in the status.
const NOTES: usize = 32;
/// Bytes of a note.
const NOTE: usize = 512;
/// Targets in the status.
const TARGETS: usize = 256;

/// The plan of a spec that is carried out.
pub(super) fn summary(
    campaign: &BenchmarkCampaign,
    matrix: &Matrix<'_>,
    plan: &Plan,
    budget: &Budget,
) -> PlanSummary {
    let notes: Vec<&String> = matrix.notes.iter().chain(&budget.notes).collect();
    PlanSummary {
        cells: matrix.cells() as i64,
        blocks: plan.blocks() as i64,
        visits: plan.visits() as i64,
        runs: plan.places.len() as i64,
        burn_in_runs: plan.burn_in_runs() as i64,
        estimated_seconds: budget.estimated_seconds,
        targets: matrix
            .instances()
            .into_iter()
            .take(TARGETS)
            .map(|instance| targets::name_of(campaign, matrix, instance))
            .collect(),
        notes: notes.iter().take(NOTES).map(|note| clip(note, NOTE)).collect(),
        notes_omitted: notes.len().saturating_sub(NOTES) as i64,
        audit_log_bytes: budget.audit_log_bytes,
        smallest_effect_ppm: None,
        equivalent_chance_ppm: None,
    }
}

/// The plan of a spec that is refused: every problem, as a note.
pub(super) fn refused(problems: &[String]) -> PlanSummary {
    PlanSummary {
        notes: problems
            .iter()
            .take(NOTES)
            .map(|problem| clip(problem, NOTE * 2))
            .collect(),
        notes_omitted: problems.len().saturating_sub(NOTES) as i64,
        ..PlanSummary::default()
    }
}

fn bytes(status: &BenchmarkCampaignStatus) -> usize {
    serde_json::to_vec(status).map_or(0, |json| json.len())
}

/// Leaves out what is least missed until the status is small enough: details of the last answers first, then cells,
/// notes, reasons of blocks, answers.
pub(super) fn fit(status: &mut BenchmarkCampaignStatus) {
    if bytes(status) <= LARGEST {
        return;
    }
    for index in (0..status.answers.len()).rev() {
        status.answers[index].exploratory.clear();
        if index > 0 {
            status.answers[index].per_threads.clear();
        }
        if bytes(status) <= LARGEST {
            return;
        }
    }
    while status.cells.len() > 16 {
        let kept = status.cells.len() / 2;
        status.cells_omitted += (status.cells.len() - kept) as i64;
        status.cells.truncate(kept);
        if bytes(status) <= LARGEST {
            return;
        }
    }
    if let Some(plan) = &mut status.plan {
        plan.notes_omitted += plan.notes.len().saturating_sub(8) as i64;
        plan.notes.truncate(8);
        plan.targets.truncate(64);
    }
    for block in &mut status.blocks {
        block.reasons.truncate(1);
    }
    while bytes(status) > LARGEST && status.blocks.len() > 8 {
        let kept = status.blocks.len() / 2;
        status.blocks_omitted += (status.blocks.len() - kept) as i64;
        status.blocks.truncate(kept);
    }
    while bytes(status) > LARGEST && status.answers.len() > 1 {
        status.answers.pop();
        status.answers_omitted += 1;
    }
}
