//! One effect: the mean of log-ratios over blocks, its t interval, and the tests of difference and of equivalence.

use super::distribution::{t_above, t_quantile};

/// Standard deviations below this are rounding, not noise (log-ratio).
const ZERO: f64 = 1e-12;

/// An effect estimated from one log-ratio per block. All fields are natural logarithms of ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Number of blocks.
    pub blocks: u32,
    /// Mean of the blocks' log-ratios.
    pub mean: f64,
    /// Paired standard deviation: that of the blocks' log-ratios; 0 with a single block.
    pub sd: f64,
    /// Standard error of the mean, not below the resolution of the metric.
    pub standard_error: f64,
}

/// A two-sided confidence interval of a log-ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, natural logarithm of the ratio; may be infinite.
    pub low: f64,
    /// Upper end, natural logarithm of the ratio; may be infinite.
    pub high: f64,
    /// Confidence, from 0 to 1.
    pub confidence: f64,
}

impl Interval {
    /// Whether a log-ratio lies inside, ends included.
    pub fn contains(&self, log_ratio: f64) -> bool {
        self.low <= log_ratio && log_ratio <= self.high
    }
}

/// A log-ratio as a change in percent: ln(0.9) is -10.
pub fn percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

/// A log-ratio as a change in parts per million, for the status: ln(0.9) is -100000. None when it is not finite.
pub fn ppm(log_ratio: f64) -> Option<i64> {
    let change = 1e6 * log_ratio.exp_m1();
    // Beyond 2^53 neighbouring integers are no longer distinct figures; no measurement gets there.
    (change.is_finite() && change.abs() < 9e15).then(|| change.round() as i64)
}

impl Estimate {
    /// The estimate from one log-ratio per block; `floor` is the smallest standard error that the metric's
    /// resolution allows (0: none). None without blocks, or when a log-ratio is not finite.
    pub fn from_log_ratios(log_ratios: &[f64], floor: f64) -> Option<Self> {
        if log_ratios.is_empty() || log_ratios.iter().any(|ratio| !ratio.is_finite()) {
            return None;
        }
        let count = log_ratios.len() as f64;
        let mean = log_ratios.iter().sum::<f64>() / count;
        let squares: f64 = log_ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        let sd = if log_ratios.len() > 1 {
            (squares / (count - 1.0)).sqrt()
        } else {
            0.0
        };
        Some(Self {
            blocks: log_ratios.len() as u32,
            mean,
            sd,
            standard_error: (sd / count.sqrt()).max(floor),
        })
    }

    /// Whether all blocks gave the same ratio: then the metric is too coarse, not the machine perfect.
    pub fn without_variance(&self) -> bool {
        self.sd <= ZERO
    }

    fn degrees(&self) -> f64 {
        f64::from(self.blocks) - 1.0
    }

    /// Whether there is any measure of noise to test against.
    fn testable(&self) -> bool {
        self.blocks >= 2 && self.standard_error > ZERO
    }

    /// Two-sided p-value of "no difference"; 1 when there is no noise to compare with.
    pub fn p_different(&self) -> f64 {
        if !self.testable() {
            return 1.0;
        }
        (2.0 * t_above((self.mean / self.standard_error).abs(), self.degrees())).min(1.0)
    }

    /// p-value of "the effect is at least `margin` (log-ratio) one way or the other": the larger of the two
    /// one-sided p-values (TOST).
    pub fn p_equivalent(&self, margin: f64) -> f64 {
        if !self.testable() {
            return 1.0;
        }
        t_above((margin - self.mean.abs()) / self.standard_error, self.degrees())
    }

    /// The two-sided t interval; unbounded with a single block.
    pub fn interval(&self, confidence: f64) -> Interval {
        if self.blocks < 2 {
            return Interval {
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
                confidence,
            };
        }
        let reach = t_quantile(0.5 + confidence / 2.0, self.degrees()) * self.standard_error;
        Interval {
            low: self.mean - reach,
            high: self.mean + reach,
            confidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimate, percent, ppm};

    /// Eight real interleaved blocks: MariaDB, `server_audit` on and off, sysbench read-only.
    fn real_blocks() -> Vec<f64> {
        let mut pairs = [[0.0_f64; 2]; 8];
        for line in include_str!("../../fixtures/real_interleaved_server_audit_ro.csv")
            .lines()
            .skip(1)
        {
            let fields: Vec<&str> = line.split(',').collect();
            let block: usize = fields[1].parse().unwrap();
            pairs[block - 1][usize::from(fields[2] == "on")] = fields[4].parse().unwrap();
        }
        pairs.iter().map(|[off, on]| (on / off).ln()).collect()
    }

    #[test]
    fn reproduces_the_published_effect_of_the_real_blocks() {
        let estimate = Estimate::from_log_ratios(&real_blocks(), 0.0).unwrap();
        let interval = estimate.interval(0.95);
        let printed = format!(
            "{:.1} [{:.1}, {:.1}]",
            percent(estimate.mean),
            percent(interval.low),
            percent(interval.high)
        );
        assert_eq!(printed, "-14.6 [-23.9, -4.1]");
        assert!(estimate.p_different() < 0.05);
    }

    #[test]
    fn p_value_and_interval_agree() {
        let estimate = Estimate::from_log_ratios(&real_blocks(), 0.0).unwrap();
        let p = estimate.p_different();
        assert!(!estimate.interval(1.0 - p - 1e-6).contains(0.0));
        assert!(estimate.interval(1.0 - p + 1e-6).contains(0.0));
        // TOST at level a passes exactly when the interval of confidence 1 - 2a lies inside the margin.
        let margin = 0.3;
        let p = estimate.p_equivalent(margin);
        assert!(p < 0.5);
        let inside = |level: f64| {
            let interval = estimate.interval(1.0 - 2.0 * level);
            -margin < interval.low && interval.high < margin
        };
        assert!(inside(p + 1e-6) && !inside(p - 1e-6));
    }

    #[test]
    fn one_block_proves_nothing() {
        let estimate = Estimate::from_log_ratios(&[0.5], 0.0).unwrap();
        assert!((estimate.p_different() - 1.0).abs() < f64::EPSILON);
        assert!((estimate.p_equivalent(1.0) - 1.0).abs() < f64::EPSILON);
        assert!(estimate.interval(0.95).contains(1e9));
        assert_eq!(Estimate::from_log_ratios(&[], 0.0), None);
        assert_eq!(Estimate::from_log_ratios(&[0.1, f64::NAN], 0.0), None);
    }

    #[test]
    fn the_floor_limits_the_standard_error_and_not_the_deviation() {
        let estimate = Estimate::from_log_ratios(&[0.1, 0.1, 0.1], 0.005).unwrap();
        assert!(estimate.without_variance());
        assert!((estimate.standard_error - 0.005).abs() < 1e-12);
    }

    #[test]
    fn parts_per_million_are_of_the_ratio() {
        assert_eq!(ppm(0.9_f64.ln()), Some(-100_000));
        assert_eq!(ppm(0.0), Some(0));
        assert_eq!(ppm(f64::INFINITY), None);
        assert_eq!(ppm(f64::NEG_INFINITY), Some(-1_000_000));
        assert_eq!(ppm(f64::NAN), None);
    }
}
