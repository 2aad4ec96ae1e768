//! Means of cells over the runs that count. Invalid runs and blocks that are not complete never enter.

use std::collections::BTreeMap;

use crds::campaign::CellResult;

use super::ledger::{Ledger, UnitLog, UnitState};
use crate::blocks::Plan;
use crate::matrix::{Levels, Matrix};

/// Cells in the status.
const CELLS: usize = 100;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: f64,
    squares: f64,
    count: f64,
}

impl Sum {
    fn add(&mut self, value: Option<i64>) {
        if let Some(value) = value {
            let value = value as f64;
            self.total += value;
            self.squares += value * value;
            self.count += 1.0;
        }
    }
    fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.total / self.count)
    }
    fn whole(&self) -> Option<i64> {
        self.mean().map(|mean| mean.round() as i64)
    }
    /// Coefficient of variation in parts per million, from two values on.
    fn cv_ppm(&self) -> Option<i64> {
        let mean = self.mean().filter(|mean| *mean > 0.0 && self.count >= 2.0)?;
        let variance = ((self.squares - self.total * mean) / (self.count - 1.0)).max(0.0);
        Some((1e6 * variance.sqrt() / mean).round() as i64)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    runs: i64,
    tps: Sum,
    qps: Sum,
    p95: Sum,
    log: Sum,
}

/// Cells, and how many do not fit. If not all fit, those stay that differ most from their baseline.
pub(super) fn cells(
    matrix: &Matrix<'_>,
    plan: &Plan,
    ledger: &Ledger<'_>,
    logs: &[UnitLog<'_>],
) -> (Vec<CellResult>, i64) {
    let mut cells: BTreeMap<(Levels, i32), Cell> = BTreeMap::new();
    for (unit, log) in plan.units.iter().zip(logs) {
        let UnitState::Counts { attempt } = log.state else {
            continue;
        };
        if unit.burn_in(plan) {
            continue;
        }
        for index in unit.places.clone() {
            let Some(run) = ledger.run(index, attempt) else {
                continue;
            };
            let place = &plan.places[index];
            let cell = cells.entry((plan.levels(place), place.threads)).or_default();
            cell.runs += 1;
            cell.tps.add(run.figures.tps_milli);
            cell.qps.add(run.figures.qps_milli);
            cell.p95.add(run.figures.latency_p95_micros);
            cell.log.add(run.figures.log_bytes_per_1000_statements);
        }
    }
    let omitted = cells.len().saturating_sub(CELLS);
    let mut kept: Vec<(&(Levels, i32), &Cell)> = cells.iter().collect();
    if omitted > 0 {
        let effects = effects(plan, &cells);
        let effect = |key: &(Levels, i32)| effects.get(key).copied().unwrap_or(0.0);
        kept.sort_by(|one, other| effect(other.0).total_cmp(&effect(one.0)));
        kept.truncate(CELLS);
    }
    let results = kept
        .into_iter()
        .map(|((levels, threads), cell)| CellResult {
            cell: matrix.cell(*levels, *threads),
            runs: cell.runs,
            tps_milli: cell.tps.whole(),
            qps_milli: cell.qps.whole(),
            qps_cv_ppm: cell.qps.cv_ppm(),
            latency_p95_micros: cell.p95.whole(),
            log_bytes_per_1000_statements: cell.log.whole(),
        })
        .collect();
    (results, omitted as i64)
}

/// The largest distance (log-ratio of queries per second) of a cell from the baseline of a comparison it is in.
fn effects(plan: &Plan, cells: &BTreeMap<(Levels, i32), Cell>) -> BTreeMap<(Levels, i32), f64> {
    let mut effects: BTreeMap<(Levels, i32), f64> = BTreeMap::new();
    let qps = |levels: Levels, threads: i32| cells.get(&(levels, threads)).and_then(|cell| cell.qps.mean());
    for group in plan.groups.iter().filter(|group| group.comparison.is_some()) {
        for &threads in &group.threads {
            let Some(baseline) = qps(group.arms[0].levels, threads) else {
                continue;
            };
            for arm in &group.arms[1..] {
                if let Some(level) = qps(arm.levels, threads) {
                    let distance = (level / baseline).ln().abs();
                    let known = effects.entry((arm.levels, threads)).or_default();
                    *known = known.max(distance);
                }
            }
        }
    }
    effects
}
