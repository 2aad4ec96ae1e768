//! From the figures of the runs to answers: effects with intervals, verdicts and the sentence for each. Pure: the
//! same figures give the same answer. It sees valid runs only and never decides which runs are valid.
//!
//! The unit of replication is the block, never a second of a run: each primary effect is one number per block,
//! the mean over thread counts of the log-ratio of an arm to its baseline.

mod acceptance;
mod answer;
mod assess;
mod descriptive;
mod distribution;
mod effect;
mod holm;
mod looks;
mod pairing;
mod power;
mod question;
mod sensitivity;
mod sentence;
mod verdict;

#[cfg(test)]
mod acceptance_tests;
#[cfg(test)]
mod assess_tests;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod sentence_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod studies;

pub use acceptance::{Acceptance, AcceptanceRule, AcceptanceState, judge_acceptance, overall_acceptance};
pub use answer::{Answer, Exploratory, ThreadAnswer};
pub use assess::{Next, Plan, assess, next};
pub use descriptive::{Deltas, closed_loop_latency_ms, disagreeing_bases, identical_tables, spread};
pub use effect::{Estimate, Interval, percent, ppm};
pub use holm::{Tested, holm};
pub use looks::{Look, Looks, LooksError};
pub use pairing::{Means, OrderEffect};
pub use power::{
    Resolution, blocks_to_decide, chance_of_difference, chance_of_equivalent, resolution, smallest_effect,
};
pub use question::{Direction, Measurement, Metric, Question, Readings, Scope, VisitCounts};
pub use sensitivity::{Sensitivity, sensitivity};
pub use verdict::{Flag, Reason, Verdict};

/// Distinct boots per arm below which there is no verdict.
pub const FEWEST_BOOTS: u32 = 6;
/// The equivalence margin when none is given: 5 %.
pub const DEFAULT_MARGIN: f64 = 0.05;
/// The smallest equivalence margin for a percentile of a histogram: 4 %, about two buckets.
pub const SMALLEST_PERCENTILE_MARGIN: f64 = 0.04;
