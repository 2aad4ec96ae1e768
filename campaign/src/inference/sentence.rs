//! The sentence for each verdict, for a database administrator who has not read how the method works.

use super::answer::Answer;
use super::assess::Plan;
use super::effect::{Interval, percent};
use super::question::{Question, Scope};
use super::verdict::{Flag, Reason, Verdict};
use super::{FEWEST_BOOTS, VisitCounts};

/// The most bytes of a message in the status.
const LONGEST: usize = 511;

/// A percentage without its sign: one decimal, two below 1 %.
pub(super) fn magnitude(percent: f64) -> String {
    let size = percent.abs();
    if !size.is_finite() {
        "any".to_owned()
    } else if size < 0.995 && size > 0.0 {
        format!("{size:.2}")
    } else if size < 99.95 {
        format!("{size:.1}")
    } else {
        format!("{size:.0}")
    }
}

/// A share that was given, such as a margin, in percent as a person would write it: `5`, `2.5`.
pub(super) fn limit(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A log-ratio in words: `14.6 % lower`.
pub(super) fn change(log_ratio: f64) -> String {
    if !log_ratio.is_finite() {
        return "unbounded".to_owned();
    }
    let percent = percent(log_ratio);
    format!(
        "{} % {}",
        magnitude(percent),
        if percent < 0.0 { "lower" } else { "higher" }
    )
}

/// `95 % interval: 23.9 % lower to 4.1 % lower`.
pub(super) fn interval(interval: &Interval) -> String {
    format!(
        "{} % interval: {} to {}",
        limit(interval.confidence),
        change(interval.low),
        change(interval.high)
    )
}

pub(super) fn blocks(count: u32) -> String {
    if count == 1 {
        "1 block".to_owned()
    } else {
        format!("{count} blocks")
    }
}

/// `with audit-all, Qps is 14.6 % lower than with no-audit (95 % interval: …; 8 blocks)`.
fn finding(answer: &Answer) -> String {
    match (&answer.estimate, &answer.interval) {
        (Some(estimate), Some(ends)) => format!(
            "with {}, {} is {} than with {} ({}; {})",
            answer.level,
            answer.metric.name,
            change(estimate.mean),
            answer.baseline,
            interval(ends),
            blocks(estimate.blocks),
        ),
        _ => format!("{} and {} cannot be compared", answer.level, answer.baseline),
    }
}

/// The sentence of an answer with a verdict or a reason for having none.
pub(super) fn of(answer: &Answer, question: &Question, plan: &Plan) -> String {
    let finding = finding(answer);
    let mut extras = Vec::new();
    let mut text = match answer.verdict {
        Verdict::Better => format!("Better: {finding}."),
        Verdict::Worse => format!("Worse: {finding}."),
        Verdict::Equivalent => {
            let margin = limit(question.margin);
            format!("Equivalent: {finding}, which is within the margin of {margin} % either way.")
        }
        Verdict::Descriptive => format!("Descriptive: {finding}."),
        Verdict::Inconclusive => {
            let reason = answer.reason.unwrap_or(Reason::Noisy);
            let why = why(reason, answer, question, plan);
            if reason == Reason::Noisy {
                format!("Inconclusive (Noisy): {finding}; {why}.")
            } else {
                extras.push(format!("So far {finding}."));
                format!("Inconclusive ({reason}): {why}.")
            }
        }
    };
    if answer.scope == Scope::ThisPairOfInstances {
        extras.push("This holds for this pair of instances only.".to_owned());
    }
    extras.extend(answer.flags.iter().map(|flag| flag_sentence(*flag, answer)));
    // With names near the limit not everything fits; the fields hold what is left out here.
    for extra in extras {
        if text.len() + 1 + extra.len() <= LONGEST {
            text.push(' ');
            text.push_str(&extra);
        }
    }
    text
}

fn why(reason: Reason, answer: &Answer, question: &Question, plan: &Plan) -> String {
    let counts = |arm: &str| question.counts_of(arm);
    match reason {
        Reason::Noisy => noisy(answer, question),
        Reason::LookNotReached => format!(
            "{} of the {} planned for the first decision are finished",
            blocks(plan.finished_blocks),
            plan.looks.sizes().first().copied().unwrap_or(1),
        ),
        Reason::NotEnoughRestarts if answer.boots == 0 => "no block is complete".to_owned(),
        Reason::NotEnoughRestarts => format!(
            "only {} of each arm can be compared and a verdict needs {FEWEST_BOOTS}",
            if answer.boots == 1 {
                "1 restart".to_owned()
            } else {
                format!("{} restarts", answer.boots)
            },
        ),
        Reason::UnstableBench => {
            let difference = answer.baselines.map_or_else(String::new, |(estimate, ends)| {
                format!(" ({}, {})", change(estimate.mean), interval(&ends))
            });
            format!(
                "two arms with the same configuration differ{difference}, so this bench cannot tell settings apart"
            )
        }
        Reason::UnequalValidity => {
            let (one, two) = (counts(&answer.level), counts(&answer.baseline));
            let (name, counts) = repeated(one, two, question);
            format!(
                "{} attempts of {} were invalid, {} of {name}; what spoils runs may be the effect itself",
                one.invalid_attempts, answer.level, counts.invalid_attempts,
            )
        }
        Reason::UnequalSettle => {
            let (one, two) = (counts(&answer.level), counts(&answer.baseline));
            let (name, counts) = repeated(one, two, question);
            format!(
                "{} of {} visits of {} did not settle in time, {} of {} of {name}; the arms did not start alike",
                one.settle_timed_out, one.visits, answer.level, counts.settle_timed_out, counts.visits,
            )
        }
        Reason::Resolution => format!(
            "every block gave the same ratio, so {} is too coarse a figure to show the noise",
            answer.metric.name,
        ),
    }
}

/// The arm with which the level's counts disagree: the baseline, or else its repetition.
fn repeated(level: VisitCounts, baseline: VisitCounts, question: &Question) -> (&str, VisitCounts) {
    let alike = level.invalid_attempts.abs_diff(baseline.invalid_attempts) < 2
        && u64::from(level.settle_timed_out) * u64::from(baseline.visits)
            == u64::from(baseline.settle_timed_out) * u64::from(level.visits);
    match &question.baseline_repeat {
        Some(repeat) if alike => (repeat, question.counts_of(repeat)),
        _ => (&question.baseline, baseline),
    }
}

fn noisy(answer: &Answer, question: &Question) -> String {
    let margin = limit(question.margin);
    let Some(resolution) = answer.resolution else {
        return "there is no measure of this machine's noise".to_owned();
    };
    let hidden = magnitude(percent(resolution.smallest_effect));
    let remedy = match resolution.more_blocks {
        // Enough blocks, and one of the two in ten cases in which enough is not.
        Some(0) => format!("as many blocks again would probably decide {margin} %"),
        Some(1) => format!("1 more block or a quieter node would decide {margin} %"),
        Some(more) => format!("{more} more blocks or a quieter node would decide {margin} %"),
        None => format!("only a quieter node would decide {margin} %"),
    };
    format!("this machine's noise hides effects below about {hidden} %; {remedy}")
}

fn flag_sentence(flag: Flag, answer: &Answer) -> String {
    match flag {
        Flag::CarryOver => {
            let (difference, t) = answer.order_effect.map_or((0.0, 0.0), |order| (order.difference, order.t));
            format!(
                "CarryOver: the ratio is {} where {} ran first (t = {t:.1}), so the order inside a block matters.",
                change(difference),
                answer.baseline,
            )
        }
        Flag::LockBound => {
            "LockBound: the server also used less CPU, so sessions wait for locks or I/O instead of computing."
                .to_owned()
        }
    }
}
