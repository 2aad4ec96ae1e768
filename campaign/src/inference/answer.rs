//! What the assessment gives: plain figures and words, from which the planner fills the status.

use super::effect::{Estimate, Interval};
use super::looks::Look;
use super::pairing::{Means, OrderEffect};
use super::power::Resolution;
use super::question::{Metric, Scope};
use super::sensitivity::Sensitivity;
use super::verdict::{Flag, Reason, Verdict};

/// The answer for one level of one comparison with the other axes fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Name of the comparison.
    pub comparison: String,
    /// The fixed axes, as in the question.
    pub context: String,
    /// Name of the baseline arm.
    pub baseline: String,
    /// Name of the arm that is compared with it.
    pub level: String,
    /// The primary metric.
    pub metric: Metric,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is `Inconclusive`.
    pub reason: Option<Reason>,
    /// What a reader must know besides.
    pub flags: Vec<Flag>,
    /// What the verdict may be generalised to.
    pub scope: Scope,
    /// The primary effect; None without a complete block.
    pub estimate: Option<Estimate>,
    /// Its interval at the level used for the verdict (for `Equivalent`, that of the two one-sided tests).
    pub interval: Option<Interval>,
    /// The mean figures of the two arms over the blocks of the effect.
    pub means: Option<Means>,
    /// p-value of "no difference", before correction.
    pub p_different: f64,
    /// The same corrected for the family (Holm), to be compared with the nominal level of the look.
    pub p_adjusted: f64,
    /// p-value of "at least the margin", before correction.
    pub p_equivalent: f64,
    /// The primary metric by thread count.
    pub by_threads: Vec<ThreadAnswer>,
    /// The other metrics: intervals, never a verdict.
    pub exploratory: Vec<Exploratory>,
    /// The effect of the order of arms.
    pub order_effect: Option<OrderEffect>,
    /// The difference of the two baseline arms (A/A) and its 99 % interval.
    pub baselines: Option<(Estimate, Interval)>,
    /// What the blocks can show; None without noise to compute it from, or when descriptive.
    pub resolution: Option<Resolution>,
    /// What other methods say about the same blocks.
    pub sensitivity: Option<Sensitivity>,
    /// Distinct boots per arm behind the effect, the fewest of any arm.
    pub boots: u32,
    /// The look at which the verdict was reached.
    pub look: Option<Look>,
    /// All of this for people, in one or two sentences.
    pub sentence: String,
}

/// The primary metric at one thread count.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadAnswer {
    /// Thread count.
    pub threads: u32,
    /// The effect at this thread count.
    pub estimate: Estimate,
    /// The mean figures of the two arms at this thread count.
    pub means: Option<Means>,
    /// Its interval, at the level used, or at 95 % where there is no verdict.
    pub interval: Interval,
    /// A verdict only if the primary effect is proved to differ; None is exploratory.
    pub verdict: Option<(Verdict, Option<Reason>)>,
}

/// An effect without a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Exploratory {
    /// The metric.
    pub metric: Metric,
    /// The effect, averaged over thread counts like the primary one, and its 95 % interval, not corrected for
    /// anything. None where the baseline has no positive figure.
    pub effect: Option<(Estimate, Interval)>,
    /// The mean figures of the two arms.
    pub means: Means,
}
