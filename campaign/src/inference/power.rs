//! What a number of blocks can show, given the noise: power of the t test and of the equivalence test, by the
//! t distribution. Effects and deviations are log-ratios.

use super::distribution::{mean_over_sd, normal_below, t_quantile};

/// The chance with which an effect "can be seen": the usual 80 %.
const CHANCE: f64 = 0.8;
/// More blocks than this are not a plan.
const MOST_BLOCKS: u32 = 1_000;

/// What the blocks measured can show, and what it would take to decide the margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resolution {
    /// The smallest true effect (log-ratio) that would be called with a chance of 80 %.
    pub smallest_effect: f64,
    /// The chance of `Equivalent` if there is no effect at all.
    pub chance_of_equivalent: f64,
    /// Blocks to add until a true effect of the margin's size, and no effect, are each called with a chance of
    /// 80 %; None when more than 1000 blocks in all would be needed.
    pub more_blocks: Option<u32>,
}

/// The chance that a true effect is told from 0 in a two-sided t test at `level` over `blocks` blocks with paired
/// standard deviation `sd`.
pub fn chance_of_difference(effect: f64, sd: f64, blocks: u32, level: f64) -> f64 {
    if blocks < 2 || sd <= 0.0 {
        return f64::from(u8::from(sd <= 0.0 && blocks >= 2 && effect != 0.0));
    }
    let degrees = f64::from(blocks - 1);
    let critical = t_quantile(1.0 - level / 2.0, degrees);
    let shift = effect * f64::from(blocks).sqrt() / sd;
    mean_over_sd(degrees, |ratio| {
        normal_below(shift - critical * ratio) + normal_below(-shift - critical * ratio)
    })
}

/// The chance of `Equivalent` when the true effect is 0: both one-sided t tests at `level` reject within
/// `log_margin`.
pub fn chance_of_equivalent(sd: f64, blocks: u32, log_margin: f64, level: f64) -> f64 {
    if blocks < 2 || sd <= 0.0 {
        return f64::from(u8::from(sd <= 0.0 && blocks >= 2 && log_margin > 0.0));
    }
    let degrees = f64::from(blocks - 1);
    let critical = t_quantile(1.0 - level, degrees);
    let reach = log_margin * f64::from(blocks).sqrt() / sd;
    mean_over_sd(degrees, |ratio| {
        (2.0 * normal_below(reach - critical * ratio) - 1.0).max(0.0)
    })
}

/// The smallest true effect (log-ratio) that `blocks` blocks tell from 0 with a chance of 80 %; infinite for
/// fewer than two blocks.
pub fn smallest_effect(sd: f64, blocks: u32, level: f64) -> f64 {
    if blocks < 2 || !sd.is_finite() {
        return f64::INFINITY;
    }
    if sd <= 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, sd);
    while chance_of_difference(high, sd, blocks, level) < CHANCE {
        high *= 2.0;
    }
    for _ in 0..26 {
        let middle = f64::midpoint(low, high);
        if chance_of_difference(middle, sd, blocks, level) < CHANCE {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The number of blocks, at least `from`, with which a true effect of `log_margin` is told from 0 and no effect is
/// called `Equivalent`, each with a chance of 80 %. None above 1000.
pub fn blocks_to_decide(sd: f64, log_margin: f64, level: f64, from: u32) -> Option<u32> {
    let decides = |blocks: u32| {
        chance_of_difference(log_margin, sd, blocks, level) >= CHANCE
            && chance_of_equivalent(sd, blocks, log_margin, level) >= CHANCE
    };
    let from = from.max(2);
    if decides(from) {
        return Some(from);
    }
    if from >= MOST_BLOCKS || !decides(MOST_BLOCKS) {
        return None;
    }
    // Both chances rise with the number of blocks, so that the boundary can be bisected.
    let (mut low, mut high) = (from, MOST_BLOCKS);
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        if decides(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// All of the above for an effect measured over `blocks` blocks.
pub fn resolution(sd: f64, blocks: u32, log_margin: f64, level: f64) -> Resolution {
    Resolution {
        smallest_effect: smallest_effect(sd, blocks, level),
        chance_of_equivalent: chance_of_equivalent(sd, blocks, log_margin, level),
        more_blocks: blocks_to_decide(sd, log_margin, level, blocks)
            .map(|needed| needed.saturating_sub(blocks)),
    }
}

#[cfg(test)]
mod tests {
    use super::{blocks_to_decide, chance_of_difference, chance_of_equivalent, smallest_effect};

    #[test]
    fn power_agrees_with_published_values() {
        // Paired t test, standardised effects; G*Power and R's power.t.test(type = "paired") agree on these.
        for (effect, blocks, expected) in [
            (1.0, 10, 0.803),
            (0.5, 34, 0.808),
            (1.435, 6, 0.80),
            (0.0, 8, 0.05),
        ] {
            let power = chance_of_difference(effect, 1.0, blocks, 0.05);
            assert!((power - expected).abs() < 0.006, "{effect} {blocks}: {power}");
        }
    }

    #[test]
    fn three_percent_needs_a_deviation_under_two_percent_at_six_blocks() {
        let margin = 1.03_f64.ln();
        assert!(chance_of_equivalent(0.02, 6, margin, 0.05) > 0.75);
        assert!(chance_of_equivalent(0.025, 6, margin, 0.05) < 0.65);
    }

    #[test]
    fn the_smallest_effect_falls_with_blocks_and_scales_with_noise() {
        let six = smallest_effect(0.1, 6, 0.05);
        assert!((chance_of_difference(six, 0.1, 6, 0.05) - 0.8).abs() < 1e-6);
        assert!(smallest_effect(0.1, 12, 0.05) < six);
        assert!((smallest_effect(0.2, 6, 0.05) - 2.0 * six).abs() < 1e-6);
        assert!(smallest_effect(0.1, 1, 0.05).is_infinite());
        assert!(smallest_effect(0.0, 6, 0.05).abs() < f64::EPSILON);
    }

    #[test]
    fn blocks_to_decide_is_the_first_number_that_suffices() {
        let margin = 1.05_f64.ln();
        let blocks = blocks_to_decide(0.05, margin, 0.05, 6).unwrap();
        let both = |blocks| {
            chance_of_difference(margin, 0.05, blocks, 0.05)
                .min(chance_of_equivalent(0.05, blocks, margin, 0.05))
        };
        assert!(both(blocks) >= 0.8 && both(blocks - 1) < 0.8, "{blocks}");
        assert_eq!(
            blocks_to_decide(0.001, margin, 0.05, 6),
            Some(6),
            "already enough"
        );
        assert_eq!(blocks_to_decide(5.0, margin, 0.05, 6), None);
    }
}
