//! Numbers without claims: what `inference: Descriptive` prints, and what published tables of single runs can
//! still tell: how many "costs" are gains, which tables are copies, which baselines disagree.

use super::answer::Answer;
use super::question::Direction;
use super::sentence::{blocks, change, magnitude};

/// Single differences between two arms, one per cell, none of them replicated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deltas {
    /// Number of cells.
    pub cells: u32,
    /// Cells in which the figure of a costly setting is better without it having a way to be.
    pub gains: u32,
    /// The median change as a log-ratio.
    pub median: f64,
    /// The lowest change, log-ratio.
    pub lowest: f64,
    /// The highest change, log-ratio.
    pub highest: f64,
    /// The largest gain, log-ratio of size: the noise of a single run is at least this, if the setting can
    /// only cost. 0 without gains.
    pub noise_at_least: f64,
}

impl Deltas {
    /// Summarises single differences (log-ratios of the arm to its baseline) of a setting that can only cost.
    /// None without finite differences.
    pub fn of_a_cost(log_ratios: &[f64], direction: Direction) -> Option<Self> {
        let mut sorted: Vec<f64> = log_ratios
            .iter()
            .copied()
            .filter(|ratio| ratio.is_finite())
            .collect();
        sorted.sort_by(f64::total_cmp);
        let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
        let gain = |ratio: f64| {
            if direction == Direction::HigherIsBetter {
                ratio
            } else {
                -ratio
            }
        };
        Some(Self {
            cells: sorted.len() as u32,
            gains: sorted.iter().filter(|ratio| gain(**ratio) > 0.0).count() as u32,
            median: f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]),
            lowest,
            highest,
            noise_at_least: sorted.iter().map(|ratio| gain(*ratio)).fold(0.0, f64::max),
        })
    }

    /// The same for people.
    pub fn sentence(&self) -> String {
        format!(
            "{} of {} costs are gains; the figures run from {} to {} (median {}), so a single run carries noise of at \
             least {} % and these numbers support no verdict.",
            self.gains,
            self.cells,
            change(self.lowest),
            change(self.highest),
            change(self.median),
            magnitude(100.0 * self.noise_at_least.exp_m1()),
        )
    }
}

/// Whether two arms have the same figures to the last digit in every cell, and more than one cell: measured
/// twice, that does not happen, so one table is a copy of the other.
pub fn identical_tables(one: &[f64], two: &[f64]) -> bool {
    one.len() > 1
        && one.len() == two.len()
        && one.iter().zip(two).all(|(one, two)| one.total_cmp(two).is_eq())
}

/// The cells (by index) in which two baselines that should be the same arm differ by more than `share` (0.05 is
/// 5 %): what is compared with the one cannot be compared with the other.
pub fn disagreeing_bases(one: &[f64], two: &[f64], share: f64) -> Vec<usize> {
    let limit = share.max(0.0).ln_1p();
    one.iter()
        .zip(two)
        .enumerate()
        .filter(|(_, (one, two))| (*one / *two).ln().abs() > limit)
        .map(|(place, _)| place)
        .collect()
}

/// The spread of figures that should be equal, such as those of settings that cannot matter under the load: the
/// log-ratio of the largest to the smallest. What is larger elsewhere may be an effect, what is smaller is noise.
/// None without two positive figures.
pub fn spread(figures: &[f64]) -> Option<f64> {
    if figures.len() < 2 || figures.iter().any(|figure| !figure.is_finite() || *figure <= 0.0) {
        return None;
    }
    let lowest = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = figures.iter().copied().fold(0.0, f64::max);
    Some((highest / lowest).ln())
}

/// The mean latency, milliseconds, that a closed load of `threads` must have at `tps` transactions a second
/// (Little's law): a published latency far from it belongs to another run.
pub fn closed_loop_latency_ms(threads: u32, tps: f64) -> f64 {
    1_000.0 * f64::from(threads) / tps
}

/// The sentence of a descriptive answer.
pub(super) fn sentence(answer: &Answer) -> String {
    let Some(estimate) = answer.estimate else {
        return format!(
            "Descriptive: {} against {}: no complete block.",
            answer.level, answer.baseline
        );
    };
    let mut text = format!(
        "Descriptive: with {}, {} was {} than with {} in {}",
        answer.level,
        answer.metric.name,
        change(estimate.mean),
        answer.baseline,
        blocks(estimate.blocks),
    );
    if answer.by_threads.len() > 1 {
        let each: Vec<String> = answer
            .by_threads
            .iter()
            .map(|one| format!("{} threads {}", one.threads, change(one.estimate.mean)))
            .take(8)
            .collect();
        text.push_str(" (");
        text.push_str(&each.join(", "));
        text.push(')');
    }
    text.push_str(". These numbers are descriptive and support no verdict.");
    text
}
