//! From readings to one log-ratio per block: pairing of arms inside a block, averaging of the two baselines, the
//! effect of the order, and the number of boots behind an effect.

use std::collections::BTreeSet;

use super::question::{Question, Readings};

/// How the effect depends on which arm came first in the block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderEffect {
    /// Mean log-ratio of the blocks in which the baseline came first, less that of the others.
    pub difference: f64,
    /// The difference over its standard error; infinite when the groups have no spread and differ.
    pub t: f64,
}

/// The mean figures of the two arms behind an effect, in the metric's own unit: geometric means over blocks and
/// thread counts, so that their ratio is the effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// Of the baseline, both baseline arms averaged; None where it has no positive figure (an audit log that does
    /// not exist).
    pub baseline: Option<f64>,
    /// Of the level.
    pub level: f64,
}

/// A block that is complete for an effect: mean logarithms over thread counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PairedBlock {
    pub(super) block: u32,
    pub(super) baseline: f64,
    pub(super) level: f64,
}

/// The blocks of one effect, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Paired(pub(super) Vec<PairedBlock>);

impl Paired {
    pub(super) fn log_ratios(&self) -> Vec<f64> {
        self.0.iter().map(|block| block.level - block.baseline).collect()
    }

    pub(super) fn means(&self) -> Option<Means> {
        let count = self.0.len() as f64;
        let mean = |log: fn(&PairedBlock) -> f64| (self.0.iter().map(log).sum::<f64>() / count).exp();
        (!self.0.is_empty()).then(|| Means {
            baseline: Some(mean(|block| block.baseline)),
            level: mean(|block| block.level),
        })
    }
}

/// Log-ratios of `level` to the baseline for `metric`, one per block that has every reading of `threads` in every
/// arm involved. With a second baseline arm, the baseline is the geometric mean of both.
pub(super) fn pair(question: &Question, level: &str, metric: &str, threads: &[u32], blocks: u32) -> Paired {
    let arm = question.readings(level, metric, blocks);
    let first = question.readings(&question.baseline, metric, blocks);
    let repeat = question
        .baseline_repeat
        .as_ref()
        .map(|name| question.readings(name, metric, blocks));
    let paired = |block: u32| {
        let level = mean_log(&arm, block, threads)?;
        let mut baseline = mean_log(&first, block, threads)?;
        if let Some(repeat) = &repeat {
            baseline = f64::midpoint(baseline, mean_log(repeat, block, threads)?);
        }
        Some(PairedBlock {
            block,
            baseline,
            level,
        })
    };
    Paired(arm.keys().filter_map(|&block| paired(block)).collect())
}

/// The second baseline arm paired with the first (A/A).
pub(super) fn pair_baselines(question: &Question, metric: &str, blocks: u32) -> Option<Paired> {
    let repeat = question.readings(question.baseline_repeat.as_ref()?, metric, blocks);
    let first = question.readings(&question.baseline, metric, blocks);
    let paired = |block: u32| {
        let level = mean_log(&repeat, block, &question.threads)?;
        let baseline = mean_log(&first, block, &question.threads)?;
        Some(PairedBlock {
            block,
            baseline,
            level,
        })
    };
    Some(Paired(repeat.keys().filter_map(|&block| paired(block)).collect()))
}

/// The mean figure of one arm alone, over its complete blocks: for a metric without a baseline to compare with.
pub(super) fn mean_alone(question: &Question, arm: &str, metric: &str, blocks: u32) -> Option<f64> {
    let readings = question.readings(arm, metric, blocks);
    let logs: Vec<f64> = readings
        .keys()
        .filter_map(|&block| mean_log(&readings, block, &question.threads))
        .collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn mean_log(readings: &Readings, block: u32, threads: &[u32]) -> Option<f64> {
    let of_block = readings.get(&block)?;
    let mut sum = 0.0;
    for threads in threads {
        sum += of_block.get(threads)?.ln();
    }
    (!threads.is_empty()).then(|| sum / threads.len() as f64)
}

/// The fewest distinct boots of any arm involved in an effect, over the blocks used.
pub(super) fn boots(question: &Question, level: &str, paired: &Paired) -> u32 {
    let used: BTreeSet<u32> = paired.0.iter().map(|paired| paired.block).collect();
    let of_arm = |arm: &str| {
        let boots: BTreeSet<&str> = question
            .measurements
            .iter()
            .filter(|run| run.arm == arm && used.contains(&run.block))
            .map(|run| run.boot.as_str())
            .collect();
        boots.len() as u32
    };
    let arms = [Some(&question.baseline), question.baseline_repeat.as_ref()];
    arms.into_iter()
        .flatten()
        .map(|arm| of_arm(arm))
        .fold(of_arm(level), u32::min)
}

/// The effect of the order: blocks in which the baseline ran before the level against the others. None when
/// either kind has fewer than two blocks.
pub(super) fn order_effect(question: &Question, level: &str, paired: &Paired) -> Option<OrderEffect> {
    let position = |arm: &str, block: u32| {
        question
            .measurements
            .iter()
            .find(|run| run.arm == arm && run.block == block)
            .map(|run| run.position)
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for &PairedBlock {
        block,
        baseline,
        level: figure,
    } in &paired.0
    {
        let ratio = figure - baseline;
        if position(&question.baseline, block)? < position(level, block)? {
            before.push(ratio);
        } else {
            after.push(ratio);
        }
    }
    if before.len() < 2 || after.len() < 2 {
        return None;
    }
    let mean = |group: &[f64]| group.iter().sum::<f64>() / group.len() as f64;
    let squares = |group: &[f64]| {
        let mean = mean(group);
        group.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>()
    };
    let (n, m) = (before.len() as f64, after.len() as f64);
    let variance = (squares(&before) + squares(&after)) / (n + m - 2.0);
    let difference = mean(&before) - mean(&after);
    let standard_error = (variance * (1.0 / n + 1.0 / m)).sqrt();
    let t = if difference == 0.0 {
        0.0
    } else {
        difference / standard_error
    };
    Some(OrderEffect { difference, t })
}
