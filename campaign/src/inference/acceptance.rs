//! Acceptance: is the loss proved to be within a limit, proved to be beyond it, or neither? A question of its own,
//! which a verdict does not answer: `Worse` by 2 % is accepted under a limit of 10 %.

use super::answer::Answer;
use super::assess::Plan;
use super::effect::Estimate;
use super::question::{Direction, Metric};
use super::sentence::{limit, magnitude};
use super::verdict::{Reason, Verdict};

/// A limit on the loss.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptanceRule {
    /// Name of the comparison.
    pub comparison: String,
    /// Name of the metric, the primary one or another of the comparison.
    pub metric: String,
    /// The largest loss accepted, as a share: 0.1 is 10 % lower throughput, or 10 % higher latency.
    pub maximum_worsening: f64,
}

/// Whether a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptanceState {
    /// Even the upper 95 % bound of the loss is within the limit.
    True,
    /// Even the lower 95 % bound of the loss is beyond the limit.
    False,
    /// Neither.
    Unknown,
}

/// The outcome of one rule for one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance {
    /// Name of the comparison.
    pub comparison: String,
    /// The fixed axes.
    pub context: String,
    /// The level judged.
    pub level: String,
    /// Name of the metric.
    pub metric: String,
    /// Whether the limit is kept.
    pub state: AcceptanceState,
    /// Lower bound of the loss, as a share (negative: a gain); None when not known.
    pub loss_at_least: Option<f64>,
    /// Upper bound of the loss, as a share.
    pub loss_at_most: Option<f64>,
    /// All of this for people.
    pub sentence: String,
}

/// The loss as a share: what is missing from 1 for throughput, what is above 1 for latency and cost.
fn loss(log_ratio: f64, direction: Direction) -> f64 {
    match direction {
        Direction::HigherIsBetter => -log_ratio.exp_m1(),
        Direction::LowerIsBetter => log_ratio.exp_m1(),
    }
}

/// Applies the rules to the answers of their comparisons. The bounds are one-sided at the nominal level of the
/// look (95 % in a fixed design). A rule whose comparison or metric has no figure is `Unknown`.
pub fn judge_acceptance(plan: &Plan, answers: &[Answer], rules: &[AcceptanceRule]) -> Vec<Acceptance> {
    rules
        .iter()
        .flat_map(|rule| {
            answers
                .iter()
                .filter(|answer| answer.comparison == rule.comparison)
                .map(|answer| judge(plan, answer, rule))
        })
        .collect()
}

/// All rules together: `False` if any is, `True` if all are. No correction is needed: accepting requires every
/// test to pass. Without a rule, nothing is known.
pub fn overall_acceptance(judged: &[Acceptance]) -> AcceptanceState {
    if judged.iter().any(|one| one.state == AcceptanceState::False) {
        AcceptanceState::False
    } else if !judged.is_empty() && judged.iter().all(|one| one.state == AcceptanceState::True) {
        AcceptanceState::True
    } else {
        AcceptanceState::Unknown
    }
}

fn judge(plan: &Plan, answer: &Answer, rule: &AcceptanceRule) -> Acceptance {
    // Noise widens the bounds and is no obstacle; every other reason makes the figures unfit for a claim.
    let fit = answer.verdict != Verdict::Descriptive && matches!(answer.reason, None | Some(Reason::Noisy));
    let figure = figure(answer, &rule.metric)
        .filter(|(_, estimate)| fit && estimate.blocks >= 2 && !estimate.without_variance());
    let limit = limit(rule.maximum_worsening);
    let subject = format!("the loss of {} with {}", rule.metric, answer.level);
    let mut outcome = Acceptance {
        comparison: answer.comparison.clone(),
        context: answer.context.clone(),
        level: answer.level.clone(),
        metric: rule.metric.clone(),
        state: AcceptanceState::Unknown,
        loss_at_least: None,
        loss_at_most: None,
        sentence: format!(
            "Unknown: {subject} cannot be judged against {limit} %: the comparison has no usable answer."
        ),
    };
    let Some((metric, estimate)) = figure else {
        return outcome;
    };
    let level = plan.looks.nominal();
    let interval = estimate.interval(1.0 - 2.0 * level);
    let (one, two) = (
        loss(interval.low, metric.direction),
        loss(interval.high, metric.direction),
    );
    let (least, most) = (one.min(two), one.max(two));
    outcome.loss_at_least = Some(least);
    outcome.loss_at_most = Some(most);
    let bound = format!("{:.1}", 100.0 * (1.0 - level));
    let bound = bound.trim_end_matches(".0");
    (outcome.state, outcome.sentence) = if most <= rule.maximum_worsening {
        let text = if most <= 0.0 {
            "there is no loss".to_owned()
        } else {
            format!("at most {} %", magnitude(100.0 * most))
        };
        (
            AcceptanceState::True,
            format!("True: {subject} is within {limit} % ({bound} % bound: {text})."),
        )
    } else if least > rule.maximum_worsening {
        let text = magnitude(100.0 * least);
        (
            AcceptanceState::False,
            format!("False: {subject} is over {limit} % ({bound} % bound: at least {text} %)."),
        )
    } else {
        let text = format!("{} to {} %", signed(least), signed(most));
        (
            AcceptanceState::Unknown,
            format!("Unknown: {subject} may lie on either side of {limit} % ({bound} % bounds: {text})."),
        )
    };
    outcome
}

fn signed(loss: f64) -> String {
    format!("{}{}", if loss < 0.0 { "-" } else { "" }, magnitude(100.0 * loss))
}

fn figure<'a>(answer: &'a Answer, metric: &str) -> Option<(&'a Metric, Estimate)> {
    if answer.metric.name == metric {
        return Some((&answer.metric, answer.estimate?));
    }
    let other = answer
        .exploratory
        .iter()
        .find(|other| other.metric.name == metric)?;
    Some((&other.metric, other.effect?.0))
}
