//! The words of an answer and the rule of precedence. Names are those of the status and of YAML.

use std::fmt;

use super::effect::Estimate;
use super::holm::Tested;
use super::question::Direction;

/// The answer to one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval excludes no difference, on the better side of the metric.
    Better,
    /// The interval excludes no difference, on the worse side of the metric.
    Worse,
    /// The difference is proved to lie within the margin (two one-sided tests).
    Equivalent,
    /// Neither is proved; the reason says why.
    Inconclusive,
    /// Numbers without a claim, because that was asked for.
    Descriptive,
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Fewer finished blocks than the first planned look, or none that is complete.
    LookNotReached,
    /// Fewer than 6 distinct boots of an arm.
    NotEnoughRestarts,
    /// Two arms with the same configuration differ.
    UnstableBench,
    /// Invalid attempts differ by 2 or more between the arms.
    UnequalValidity,
    /// The shares of visits that did not settle in time differ between the arms.
    UnequalSettle,
    /// Every block gave the same ratio: the metric is too coarse to show noise.
    Resolution,
    /// The machine's noise hides effects of the size asked for.
    Noisy,
}

/// What a reader must know besides the verdict. A flag never changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The order of the arms inside a block made a difference (|t| above 3).
    CarryOver,
    /// The primary metric is worse while the server uses less of its CPU: sessions wait.
    LockBound,
}

impl Verdict {
    /// The name as in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Better => "Better",
            Self::Worse => "Worse",
            Self::Equivalent => "Equivalent",
            Self::Inconclusive => "Inconclusive",
            Self::Descriptive => "Descriptive",
        }
    }
}

impl Reason {
    /// The name as in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LookNotReached => "LookNotReached",
            Self::NotEnoughRestarts => "NotEnoughRestarts",
            Self::UnstableBench => "UnstableBench",
            Self::UnequalValidity => "UnequalValidity",
            Self::UnequalSettle => "UnequalSettle",
            Self::Resolution => "Resolution",
            Self::Noisy => "Noisy",
        }
    }
}

impl Flag {
    /// The name as in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CarryOver => "CarryOver",
            Self::LockBound => "LockBound",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The verdict of two tests: equivalence first, so that a difference too small to matter is called so.
pub(super) fn decide(
    estimate: &Estimate,
    direction: Direction,
    equivalence: Tested,
    difference: Tested,
) -> (Verdict, Option<Reason>) {
    if estimate.without_variance() {
        return (Verdict::Inconclusive, Some(Reason::Resolution));
    }
    if equivalence.rejected {
        return (Verdict::Equivalent, None);
    }
    if !difference.rejected {
        return (Verdict::Inconclusive, Some(Reason::Noisy));
    }
    let higher = estimate.mean > 0.0;
    let better = higher == (direction == Direction::HigherIsBetter);
    (if better { Verdict::Better } else { Verdict::Worse }, None)
}
