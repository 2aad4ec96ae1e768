//! The distributions that the rest uses, as total functions: an impossible argument gives NaN, which every
//! comparison in this module treats as "no evidence".

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::ln_gamma;

/// The value below which Student's t with `degrees` of freedom lies with probability `probability`.
pub(super) fn t_quantile(probability: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::NAN, |t| t.inverse_cdf(probability))
}

/// Probability that Student's t exceeds `value`.
pub(super) fn t_above(value: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::NAN, |t| t.cdf(-value))
}

/// Probability that a standard normal variable lies below `value`.
pub(super) fn normal_below(value: f64) -> f64 {
    0.5 * erfc(-value / std::f64::consts::SQRT_2)
}

/// The value below which a standard normal variable lies with probability `probability`.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2.0 * probability)
}

/// The mean of `f(s / sigma)` over the sampling distribution of a standard deviation `s` with `degrees` of
/// freedom, by Simpson's rule. Power of t tests follows from it without a noncentral t distribution.
pub(super) fn mean_over_sd(degrees: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 64;
    let spread = 9.0 / (2.0 * degrees).sqrt();
    let (low, high) = ((1.0 - spread).max(0.0), 1.0 + spread);
    let width = (high - low) / f64::from(STEPS);
    let half = degrees / 2.0;
    let constant = std::f64::consts::LN_2 + half * half.ln() - ln_gamma(half);
    let mut sum = 0.0;
    for step in 0..=STEPS {
        let ratio = low + f64::from(step) * width;
        let density = if ratio > 0.0 {
            (constant + (degrees - 1.0) * ratio.ln() - half * ratio * ratio).exp()
        } else if degrees > 1.0 {
            0.0
        } else {
            constant.exp()
        };
        let weight = match step {
            0 | STEPS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        sum += weight * density * f(ratio);
    }
    sum * width / 3.0
}

#[cfg(test)]
mod tests {
    use super::{mean_over_sd, normal_below, normal_quantile, t_above, t_quantile};

    #[test]
    fn agrees_with_printed_tables() {
        for (probability, degrees, expected) in [
            (0.975, 5.0, 2.570_582),
            (0.975, 7.0, 2.364_624),
            (0.95, 5.0, 2.015_048),
            (0.995, 5.0, 4.032_143),
            (0.95, 19.0, 1.729_133),
        ] {
            assert!(
                (t_quantile(probability, degrees) - expected).abs() < 1e-5,
                "{probability} {degrees}"
            );
            assert!((t_above(expected, degrees) - (1.0 - probability)).abs() < 1e-6);
        }
        assert!((normal_below(1.959_964) - 0.975).abs() < 1e-6);
        assert!((normal_quantile(0.975) - 1.959_964).abs() < 1e-5);
    }

    #[test]
    fn impossible_degrees_give_nan() {
        assert!(t_quantile(0.975, 0.0).is_nan());
        assert!(t_above(1.0, -1.0).is_nan());
    }

    #[test]
    fn the_density_of_the_standard_deviation_integrates_to_one_with_mean_square_one() {
        for degrees in [1.0, 2.0, 5.0, 9.0, 19.0, 99.0] {
            assert!((mean_over_sd(degrees, |_| 1.0) - 1.0).abs() < 1e-4, "{degrees}");
            assert!(
                (mean_over_sd(degrees, |ratio| ratio * ratio) - 1.0).abs() < 1e-3,
                "{degrees}"
            );
        }
    }
}
