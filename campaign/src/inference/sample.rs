//! Questions for tests: figures made from a formula, in blocks that alternate AB BA.

use std::collections::BTreeMap;

use super::{Looks, Measurement, Metric, Plan, Question, Scope, VisitCounts};

pub(super) const BASELINE: &str = "no-audit";
pub(super) const REPEAT: &str = "no-audit-again";
pub(super) const LEVEL: &str = "audit-all";

/// A fixed plan of which all blocks are finished.
pub(super) fn fixed(blocks: u32) -> Plan {
    Plan {
        looks: Looks::fixed(blocks),
        comparative: true,
        finished_blocks: blocks,
    }
}

/// A question about `Qps` at 2, 4 and 8 threads without a measurement.
pub(super) fn question(levels: &[&str]) -> Question {
    Question {
        comparison: "audit".to_owned(),
        context: "mariadb-11-8, read-only".to_owned(),
        baseline: BASELINE.to_owned(),
        baseline_repeat: None,
        levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        threads: vec![2, 4, 8],
        metrics: vec![Metric::higher_is_better("Qps")],
        margin: 0.05,
        scope: Scope::Setting,
        measurements: Vec::new(),
        counts: BTreeMap::new(),
    }
}

/// Measures every arm in `blocks` blocks; `log_figure(block, arm, threads)` is the logarithm of the primary figure.
pub(super) fn measured(
    mut question: Question,
    blocks: u32,
    mut log_figure: impl FnMut(u32, &str, u32) -> f64,
) -> Question {
    let mut arms = vec![question.baseline.clone()];
    arms.extend(question.baseline_repeat.clone());
    arms.extend(question.levels.clone());
    let metric = question.metrics[0].name.clone();
    for block in 0..blocks {
        for (place, arm) in arms.iter().enumerate() {
            let position = if block % 2 == 0 {
                place
            } else {
                arms.len() - 1 - place
            } as u32;
            for threads in question.threads.clone() {
                question.measurements.push(Measurement {
                    block,
                    position,
                    arm: arm.clone(),
                    threads,
                    boot: format!("{arm}-{block}"),
                    values: BTreeMap::from([(metric.clone(), log_figure(block, arm, threads).exp())]),
                });
            }
        }
    }
    question
}

/// One level with the given log-ratios to the baseline, one per block, at every thread count; the machine's
/// speed also moves from block to block, which pairing must remove.
pub(super) fn with_ratios(log_ratios: &[f64]) -> Question {
    measured(
        question(&[LEVEL]),
        log_ratios.len() as u32,
        |block, arm, threads| {
            let speed = 8.0 + f64::from(threads) / 10.0 + f64::from(block % 3) * 0.2;
            speed
                + if arm == LEVEL {
                    log_ratios[block as usize]
                } else {
                    0.0
                }
        },
    )
}

/// Adds a second metric with the given logarithms.
pub(super) fn add_metric(
    question: &mut Question,
    metric: Metric,
    mut log_figure: impl FnMut(u32, &str, u32) -> f64,
) {
    for run in &mut question.measurements {
        let value = log_figure(run.block, &run.arm, run.threads).exp();
        run.values.insert(metric.name.clone(), value);
    }
    question.metrics.push(metric);
}

/// Residuals with mean 0, unrelated to the order of the arms.
pub(super) const NOISE: [f64; 6] = [0.9, 0.4, -1.2, 1.3, -0.8, -0.6];

pub(super) fn ratios(effect: f64, noise: f64) -> Vec<f64> {
    NOISE.iter().map(|residual| effect + noise * residual).collect()
}

pub(super) fn counts(invalid_attempts: u32, settle_timed_out: u32) -> VisitCounts {
    VisitCounts {
        invalid_attempts,
        visits: 6,
        settle_timed_out,
    }
}

pub(super) fn worse() -> Question {
    with_ratios(&ratios(-0.15, 0.03))
}

pub(super) fn noisy() -> Question {
    with_ratios(&ratios(-0.04, 0.1))
}
