//! Methods that assume less, printed beside the answer and never deciding it: the signed-rank test, the
//! Hodges-Lehmann estimate and, from 10 blocks on, the `BCa` bootstrap interval.

use crate::order::Seed;

use super::distribution::{normal_below, normal_quantile};
use super::effect::Interval;

/// Blocks up to which the signed-rank test is exact.
const EXACT_UP_TO: usize = 40;
/// Blocks from which a bootstrap says anything.
const BOOTSTRAP_FROM: usize = 10;
const RESAMPLES: usize = 2_000;

/// What other methods say about the same blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// Two-sided p-value of Wilcoxon's signed-rank test.
    pub signed_rank_p: f64,
    /// The Hodges-Lehmann estimate, a log-ratio: the median of the means of all pairs of blocks.
    pub hodges_lehmann: f64,
    /// `BCa` bootstrap interval at 95 %, from 10 blocks on.
    pub bootstrap: Option<Interval>,
}

/// The sensitivity output for one log-ratio per block. None without blocks. The bootstrap has its own fixed seed:
/// the same blocks always print the same interval.
pub fn sensitivity(log_ratios: &[f64]) -> Option<Sensitivity> {
    if log_ratios.is_empty() || log_ratios.iter().any(|ratio| !ratio.is_finite()) {
        return None;
    }
    Some(Sensitivity {
        signed_rank_p: signed_rank_p(log_ratios),
        hodges_lehmann: hodges_lehmann(log_ratios),
        bootstrap: (log_ratios.len() >= BOOTSTRAP_FROM).then(|| bootstrap(log_ratios, 0.95)),
    })
}

fn hodges_lehmann(log_ratios: &[f64]) -> f64 {
    let mut means: Vec<f64> = Vec::with_capacity(log_ratios.len() * (log_ratios.len() + 1) / 2);
    for (place, one) in log_ratios.iter().enumerate() {
        means.extend(log_ratios[place..].iter().map(|two| f64::midpoint(*one, *two)));
    }
    means.sort_by(f64::total_cmp);
    f64::midpoint(means[(means.len() - 1) / 2], means[means.len() / 2])
}

fn signed_rank_p(log_ratios: &[f64]) -> f64 {
    let mut ratios: Vec<f64> = log_ratios.iter().copied().filter(|ratio| *ratio != 0.0).collect();
    if ratios.is_empty() {
        return 1.0;
    }
    ratios.sort_by(|one, two| one.abs().total_cmp(&two.abs()));
    let doubled = doubled_ranks(&ratios);
    let positive: usize = ratios
        .iter()
        .zip(&doubled)
        .filter(|(ratio, _)| **ratio > 0.0)
        .map(|(_, rank)| rank)
        .sum();
    let all: usize = doubled.iter().sum();
    let smaller = positive.min(all - positive);
    if ratios.len() > EXACT_UP_TO {
        let variance: f64 = doubled.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0;
        let distance = (all as f64 / 2.0 - smaller as f64 - 1.0).max(0.0);
        return (2.0 * normal_below(-distance / variance.sqrt())).min(1.0);
    }
    // The exact distribution: the share of the 2^n sign patterns by their sum of positive ranks.
    let mut shares = vec![0.0; all + 1];
    shares[0] = 1.0;
    let mut reach = 0;
    for &rank in &doubled {
        for sum in (0..=reach).rev() {
            let half = shares[sum] / 2.0;
            shares[sum] = half;
            shares[sum + rank] += half;
        }
        reach += rank;
    }
    (2.0 * shares[..=smaller].iter().sum::<f64>()).min(1.0)
}

/// Twice the rank of each value by size, ties sharing their mean rank (doubling keeps it whole).
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for tied in sorted.chunk_by(|one, two| one.abs().total_cmp(&two.abs()).is_eq()) {
        let first = ranks.len() + 1;
        ranks.extend(std::iter::repeat_n(2 * first + tied.len() - 1, tied.len()));
    }
    ranks
}

/// Bias-corrected and accelerated bootstrap of the mean (Efron 1987).
fn bootstrap(log_ratios: &[f64], confidence: f64) -> Interval {
    let count = log_ratios.len();
    let total: f64 = log_ratios.iter().sum();
    let mean = total / count as f64;
    let mut draw = Seed(0).draw("bootstrap");
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            (0..count)
                .map(|_| log_ratios[draw.below(count as u64) as usize])
                .sum::<f64>()
                / count as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let below = means.iter().filter(|resampled| **resampled < mean).count() as f64 / RESAMPLES as f64;
    let bias = normal_quantile(below.clamp(1e-4, 1.0 - 1e-4));
    let (mut cubes, mut squares) = (0.0, 0.0);
    for ratio in log_ratios {
        let left_out = (total - ratio) / (count as f64 - 1.0);
        cubes += (mean - left_out).powi(3);
        squares += (mean - left_out).powi(2);
    }
    let acceleration = if squares > 0.0 {
        cubes / (6.0 * squares.powf(1.5))
    } else {
        0.0
    };
    let end = |probability: f64| {
        let z = bias + normal_quantile(probability);
        let share = normal_below(bias + z / (1.0 - acceleration * z));
        means[((share * RESAMPLES as f64) as usize).min(RESAMPLES - 1)]
    };
    Interval {
        low: end(0.5 - confidence / 2.0),
        high: end(0.5 + confidence / 2.0),
        confidence,
    }
}

#[cfg(test)]
mod tests {
    use super::{sensitivity, signed_rank_p};
    use crate::order::Seed;

    #[test]
    fn signed_rank_is_exact_for_few_blocks() {
        // All six pairs on one side: 2 / 2^6; the source's ".031".
        assert!((signed_rank_p(&[-0.1, -0.2, -0.3, -0.4, -0.5, -0.6]) - 2.0 / 64.0).abs() < 1e-12);
        // The smallest on the other side: W = 1, four patterns of 64 in both tails.
        assert!((signed_rank_p(&[0.1, -0.2, -0.3, -0.4, -0.5, -0.6]) - 4.0 / 64.0).abs() < 1e-12);
        assert!(
            (signed_rank_p(&[0.1, -0.1]) - 1.0).abs() < 1e-12,
            "a tie shares its ranks"
        );
        assert!((signed_rank_p(&[0.0, 0.0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_normal_form_continues_the_exact_one() {
        let mut draw = Seed(4).draw("ranks");
        let ratios: Vec<f64> = (0..41).map(|_| 0.25 + draw.normal()).collect();
        let exact = signed_rank_p(&ratios[..40]);
        let normal = signed_rank_p(&ratios);
        assert!((exact - normal).abs() < 0.05, "{exact} {normal}");
    }

    #[test]
    fn hodges_lehmann_resists_one_wild_block() {
        let output = sensitivity(&[-0.10, -0.11, -0.09, -0.10, 3.0]).unwrap();
        assert!(
            (output.hodges_lehmann + 0.1).abs() < 0.02,
            "{}",
            output.hodges_lehmann
        );
        assert_eq!(output.bootstrap, None);
        assert_eq!(sensitivity(&[]), None);
    }

    #[test]
    fn the_bootstrap_covers_about_its_confidence() {
        let mut draw = Seed(5).draw("coverage");
        let covered = (0..60)
            .filter(|_| {
                let ratios: Vec<f64> = (0..20).map(|_| -0.1 + 0.05 * draw.normal()).collect();
                sensitivity(&ratios).unwrap().bootstrap.unwrap().contains(-0.1)
            })
            .count();
        assert!((50..=60).contains(&covered), "{covered} of 60");
    }
}
