//! How far a campaign is, in figures and words. It follows from runs that have ended and from what is next, never from
//! the clock, so that a status changes only when a run does.

use std::collections::BTreeMap;

use crds::campaign::{BlockOutcome, BlockStatus, PlanSummary, Progress, ReasonCount};
use crds::run::Finding;

use super::Ready;
use super::answers::figure;
use super::ledger::{Ledger, UnitLog, UnitState};
use super::run_summary::RunState;
use crate::blocks::{Plan, REPEAT};
use crate::budget::time::{self, Pace};
use crate::inference::{self, Estimate};
use crate::matrix::Matrix;
use crate::target_planner::condition::clip;

/// Repeated or lost blocks in the status.
const BLOCKS: usize = 64;
/// Reasons of a block in the status.
const REASONS: usize = 2;
/// Bytes of a block's reason in the status: 64 blocks must fit beside the answers.
const REASON_BYTES: usize = 160;
/// Different reasons in the status.
const KINDS: usize = 32;
const FAMILY_LEVEL: f64 = 0.05;

/// Done, total and time left.
pub(super) fn progress(
    ready: &Ready<'_>,
    ledger: &Ledger<'_>,
    logs: &[UnitLog<'_>],
    stage: usize,
) -> Progress {
    let plan = &ready.plan;
    let policy = ready.matrix.spec.restart.policy;
    let ended = ledger.all().filter(|run| run.finished()).filter_map(|run| {
        let place = plan.places.get(usize::try_from(run.sequence).ok()?)?;
        Some((time::boots(place, policy), f64::from(run.seconds?)))
    });
    let pace = Pace::estimated(&ready.matrix).seen(ended);
    let mut progress = Progress::default();
    let mut left = 0.0;
    for (unit, log) in plan
        .units
        .iter()
        .zip(logs)
        .filter(|(unit, _)| unit.stage <= stage)
    {
        progress.total += unit.places.len() as i64;
        let from = match log.state {
            UnitState::Counts { .. } => unit.places.end,
            UnitState::Lost => {
                progress.blocks_lost += i64::from(!unit.burn_in(plan));
                continue;
            }
            UnitState::Open { place, .. } | UnitState::Next { place, .. } => place,
        };
        progress.done += (from - unit.places.start) as i64;
        left += plan.places[from..unit.places.end]
            .iter()
            .map(|place| pace.of(place, policy))
            .sum::<f64>();
    }
    progress.invalid = ledger.all().filter(|run| run.state == RunState::Invalid).count() as i64;
    let seconds = left.ceil() as i64;
    progress.seconds_left = Some(seconds);
    progress.time_left = Some(time::words(seconds));
    progress
}

/// What a run is, in words: `block 3 of 6: audit-all, 8 threads (read-only)`.
pub(super) fn in_words(ready: &Ready<'_>, place: usize, attempt: i32) -> String {
    let it = &ready.plan.places[place];
    let again = if attempt > 1 {
        format!(", attempt {attempt}")
    } else {
        String::new()
    };
    let workload = &ready.matrix.workload(ready.plan.levels(it)).name;
    let words = format!(
        "{}: {}, {} threads, {workload}{again}",
        block_in_words(ready, place),
        ready.plan.arm(it).name,
        it.threads
    );
    clip(&words, 256)
}

/// Which block a place belongs to, in words.
pub(super) fn block_in_words(ready: &Ready<'_>, place: usize) -> String {
    match ready.plan.places[place].block {
        0 => "burn-in".to_owned(),
        block => format!("block {block} of {}", ready.plan.looks.last()),
    }
}

/// Invalid runs by reason; reasons that need several runs count once a block.
pub(super) fn invalid(ledger: &Ledger<'_>, logs: &[UnitLog<'_>]) -> Vec<ReasonCount> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for run in ledger.all().filter(|run| run.state == RunState::Invalid) {
        for found in &run.reasons {
            *counts.entry(&found.reason).or_default() += 1;
        }
    }
    for failed in logs
        .iter()
        .flat_map(|log| &log.failed)
        .filter(|failed| failed.arm.is_none())
    {
        for found in &failed.reasons {
            *counts.entry(&found.reason).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .take(KINDS)
        .map(|(reason, count)| ReasonCount {
            reason: clip(reason, 64),
            count,
        })
        .collect()
}

/// Blocks that were repeated or lost, and how many do not fit; lost ones come first.
pub(super) fn blocks(matrix: &Matrix<'_>, plan: &Plan, logs: &[UnitLog<'_>]) -> (Vec<BlockStatus>, i64) {
    let mut troubled: Vec<BlockStatus> = plan
        .units
        .iter()
        .zip(logs)
        .filter(|(unit, log)| !log.failed.is_empty() && !unit.burn_in(plan))
        .map(|(unit, log)| {
            let place = &plan.places[unit.places.start];
            let group = plan.group(place);
            let (outcome, attempts) = match log.state {
                UnitState::Counts { attempt } => (BlockOutcome::Repeated, attempt),
                UnitState::Lost => (BlockOutcome::Lost, log.failed.len() as i32),
                UnitState::Open { attempt, .. } | UnitState::Next { attempt, .. } => {
                    (BlockOutcome::Repeating, attempt)
                }
            };
            BlockStatus {
                comparison: group
                    .comparison
                    .map(|index| matrix.spec.comparisons[index].name.clone())
                    .unwrap_or_default(),
                context: clip(&group.context, 256),
                block: place.block as i32,
                attempts,
                outcome,
                reasons: log
                    .failed
                    .iter()
                    .flat_map(|failed| &failed.reasons)
                    .rev()
                    .take(REASONS)
                    .map(|found| Finding {
                        reason: clip(&found.reason, 64),
                        message: clip(&found.message, REASON_BYTES),
                    })
                    .collect(),
            }
        })
        .collect();
    troubled.sort_by_key(|block| block.outcome != BlockOutcome::Lost);
    let omitted = troubled.len().saturating_sub(BLOCKS) as i64;
    troubled.truncate(BLOCKS);
    (troubled, omitted)
}

/// What the planned blocks can show, given the noise of the blocks that count so far: the least favourable of all
/// primary effects. The effects themselves stay hidden until a look.
pub(super) fn noise(
    ready: &Ready<'_>,
    ledger: &Ledger<'_>,
    logs: &[UnitLog<'_>],
    summary: &mut PlanSummary,
    old: Option<&PlanSummary>,
) {
    let ratios = ratios(&ready.matrix, &ready.plan, ledger, logs);
    let blocks = ready.plan.looks.last();
    let level = ready.plan.looks.level(ratios.len());
    for ((group, _), ratios) in &ratios {
        let Some(estimate) = Estimate::from_log_ratios(ratios, 0.0).filter(|e| e.blocks >= 3 && e.sd > 0.0)
        else {
            continue;
        };
        let comparison = ready.plan.groups[*group].comparison;
        let margin = comparison.map_or(0.0, |index| {
            ready.matrix.spec.comparisons[index]
                .equivalence_margin
                .fraction()
                .ln_1p()
        });
        let smallest = inference::ppm(inference::smallest_effect(estimate.sd, blocks, level));
        let chance = inference::chance_of_equivalent(estimate.sd, blocks, margin, FAMILY_LEVEL);
        let chance = (1e6 * chance).round() as i64;
        summary.smallest_effect_ppm = smallest.max(summary.smallest_effect_ppm);
        summary.equivalent_chance_ppm = Some(
            summary
                .equivalent_chance_ppm
                .map_or(chance, |least| least.min(chance)),
        );
    }
    if summary.smallest_effect_ppm.is_none() {
        summary.smallest_effect_ppm = old.and_then(|old| old.smallest_effect_ppm);
        summary.equivalent_chance_ppm = old.and_then(|old| old.equivalent_chance_ppm);
    }
}

/// Log-ratios of the primary metric by group and arm, one for each block that counts.
fn ratios(
    matrix: &Matrix<'_>,
    plan: &Plan,
    ledger: &Ledger<'_>,
    logs: &[UnitLog<'_>],
) -> BTreeMap<(usize, u16), Vec<f64>> {
    let mut ratios: BTreeMap<(usize, u16), Vec<f64>> = BTreeMap::new();
    for (unit, log) in plan.units.iter().zip(logs) {
        let group = plan.places[unit.places.start].group as usize;
        let (UnitState::Counts { attempt }, Some(comparison)) = (log.state, plan.groups[group].comparison)
        else {
            continue;
        };
        if unit.burn_in(plan) {
            continue;
        }
        let metric = matrix.spec.comparisons[comparison].primary;
        let mut sums: BTreeMap<u16, (f64, u32)> = BTreeMap::new();
        for index in unit.places.clone() {
            let value = ledger
                .run(index, attempt)
                .and_then(|run| figure(&run.figures, metric));
            if let Some(value) = value.filter(|value| *value > 0) {
                let sum = sums.entry(plan.places[index].arm).or_default();
                sum.0 += (value as f64).ln();
                sum.1 += 1;
            }
        }
        let mean = |(sum, count): &(f64, u32)| sum / f64::from(*count);
        let Some(baseline) = sums.get(&0).map(mean) else {
            continue;
        };
        for (arm, sum) in sums.iter().filter(|(arm, _)| **arm != 0) {
            if plan.groups[group].arms[usize::from(*arm)].name != REPEAT {
                ratios
                    .entry((group, *arm))
                    .or_default()
                    .push(mean(sum) - baseline);
            }
        }
    }
    ratios
}
