//! The runs of a campaign by cell: those that count, and why the others do not. The same ledger decides as while it was
//! measured, so that a table can never average what an answer left out.

use std::collections::BTreeMap;

use crds::BenchmarkRun;
use crds::campaign::BenchmarkCampaign;
use crds::run::Cell;
use kube::ResourceExt as _;

use super::ledger::{Ledger, UnitState};
use super::run_summary::{RunState, RunSummary};
use super::seed;
use crate::blocks;
use crate::matrix::{self, Levels, Problem};

/// The runs of one cell, burn-in left out.
#[derive(Clone, Debug)]
pub struct CellRuns<'a> {
    /// The cell.
    pub cell: Cell,
    /// Runs that count, in the order of the plan.
    pub counted: Vec<&'a BenchmarkRun>,
    /// Runs that do not.
    pub left_out: Vec<LeftOut>,
}

/// A run that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Whether it is invalid itself; otherwise it is doubtful: valid, in a block that does not count.
    pub invalid: bool,
    /// Why, in one CamelCase word.
    pub reason: String,
}

/// The cells of a campaign in the order of its axes, with the runs of its current iteration.
///
/// # Errors
/// Every problem of a spec that cannot be planned: which of its runs count is then not known.
pub fn by_cell<'a>(
    campaign: &BenchmarkCampaign,
    runs: impl IntoIterator<Item = &'a BenchmarkRun>,
) -> Result<Vec<CellRuns<'a>>, Vec<Problem>> {
    let matrix = matrix::expand(&campaign.spec)?;
    let iteration = campaign.status.as_ref().map_or(0, |status| status.iteration);
    let seed = seed(&campaign.uid().unwrap_or_default(), campaign.spec.seed, iteration);
    let plan = blocks::lay_out(&matrix, seed)?;
    let runs: Vec<(&BenchmarkRun, RunSummary)> = runs
        .into_iter()
        .map(|run| (run, RunSummary::from(run)))
        .filter(|(_, summary)| summary.iteration == iteration)
        .collect();
    let summaries: Vec<&RunSummary> = runs.iter().map(|(_, summary)| summary).collect();
    let ledger = Ledger::new(&summaries, iteration);
    let mut by_place: BTreeMap<i32, Vec<(&BenchmarkRun, &RunSummary)>> = BTreeMap::new();
    for (run, summary) in &runs {
        by_place
            .entry(summary.sequence)
            .or_default()
            .push((*run, summary));
    }

    let mut cells: Vec<CellRuns<'a>> = Vec::new();
    let mut places: BTreeMap<(Levels, i32), usize> = BTreeMap::new();
    for row in &matrix.rows {
        for &threads in &row.threads {
            places.insert((row.levels, threads), cells.len());
            cells.push(CellRuns {
                cell: matrix.cell(row.levels, threads),
                counted: Vec::new(),
                left_out: Vec::new(),
            });
        }
    }
    for unit in plan.units.iter().filter(|unit| !unit.burn_in(&plan)) {
        let log = ledger.unit(&plan, unit, campaign.spec.run.attempts);
        for index in unit.places.clone() {
            let place = &plan.places[index];
            let Some(cell) = places.get(&(plan.levels(place), place.threads)) else {
                continue;
            };
            let cell = &mut cells[*cell];
            let mut here = by_place.get(&(index as i32)).cloned().unwrap_or_default();
            here.sort_by_key(|(_, summary)| summary.attempt);
            for (run, summary) in here {
                if matches!(log.state, UnitState::Counts { attempt } if attempt == summary.attempt) {
                    cell.counted.push(run);
                    continue;
                }
                if !summary.finished() {
                    continue;
                }
                let invalid = summary.state == RunState::Invalid;
                let of_block = usize::try_from(summary.attempt - 1)
                    .ok()
                    .and_then(|attempt| log.failed.get(attempt))
                    .map(|failed| &failed.reasons);
                let reasons = if invalid { Some(&summary.reasons) } else { of_block };
                cell.left_out.push(LeftOut {
                    invalid,
                    reason: reasons
                        .and_then(|reasons| reasons.first())
                        .map_or_else(|| "BlockNotComplete".to_owned(), |found| found.reason.clone()),
                });
            }
        }
    }
    Ok(cells)
}
