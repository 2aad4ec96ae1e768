//! The assessment of a campaign: all primary effects at the look reached, corrected as one family.

use super::answer::{Answer, Exploratory, ThreadAnswer};
use super::effect::{Estimate, Interval};
use super::holm::{Tested, holm};
use super::looks::{FAMILY_LEVEL, Look, Looks};
use super::pairing::{self, Means, OrderEffect, Paired};
use super::power::{Resolution, resolution};
use super::question::{Direction, Metric, Question};
use super::sensitivity::sensitivity;
use super::verdict::{Flag, Reason, Verdict, decide};
use super::{FEWEST_BOOTS, descriptive, sentence};

/// Confidence of intervals that carry no verdict.
const EXPLORATORY_CONFIDENCE: f64 = 0.95;
/// Confidence of the A/A interval, which must contain no difference.
const BASELINES_CONFIDENCE: f64 = 0.99;
/// |t| of the order effect above which [`Flag::CarryOver`] is raised.
const CARRY_OVER_T: f64 = 3.0;
/// Invalid attempts by which arms may not differ.
const UNEQUAL_ATTEMPTS: u32 = 2;

/// What was planned and how far it got.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The planned looks.
    pub looks: Looks,
    /// False: numbers without verdicts (`inference: Descriptive`).
    pub comparative: bool,
    /// Blocks that every group has finished, measured or lost.
    pub finished_blocks: u32,
}

/// What the campaign does after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Everything is decided, or no look is left.
    Stop,
    /// Measure until this many blocks are finished.
    Continue {
        /// Blocks in all at the next look.
        blocks: u32,
    },
}

/// What to do now: go on until every primary effect is decided or the last look is reached. More blocks cannot
/// mend arms that behave differently as runs, so such an answer does not ask for them.
pub fn next(plan: &Plan, answers: &[Answer]) -> Next {
    let Some(blocks) = plan.looks.after(plan.finished_blocks) else {
        return Next::Stop;
    };
    let open = |answer: &Answer| {
        matches!(
            answer.reason,
            Some(Reason::Noisy | Reason::NotEnoughRestarts | Reason::LookNotReached | Reason::Resolution)
        )
    };
    if plan.looks.reached(plan.finished_blocks).is_some() && plan.comparative && !answers.iter().any(open) {
        return Next::Stop;
    }
    Next::Continue { blocks }
}

/// Answers all questions of a campaign. All their levels are one family, those without a figure included, so pass
/// the whole campaign, in the same order each time.
pub fn assess(plan: &Plan, questions: &[Question]) -> Vec<Answer> {
    let look = plan.looks.reached(plan.finished_blocks);
    // Blocks after the look belong to the next one; before the first look figures are shown and decide nothing.
    let blocks = match look {
        Some(look) if plan.comparative => look.blocks,
        _ => plan.finished_blocks,
    };
    let primaries: Vec<Primary<'_>> = questions
        .iter()
        .flat_map(|question| {
            question
                .levels
                .iter()
                .map(move |level| Primary::new(question, level, blocks, look))
        })
        .collect();
    let level = |standing: usize| plan.looks.level(standing);
    let of = |p: fn(&Primary<'_>) -> f64| primaries.iter().map(p).collect::<Vec<f64>>();
    let differences = holm(&of(|primary| primary.p_different), primaries.len(), level);
    let equivalences = holm(&of(|primary| primary.p_equivalent), primaries.len(), level);
    primaries
        .iter()
        .zip(differences.iter().zip(&equivalences))
        .map(|(primary, (difference, equivalence))| primary.answer(plan, *difference, *equivalence))
        .collect()
}

/// One primary effect before the family is known.
struct Primary<'a> {
    question: &'a Question,
    level: &'a str,
    metric: Metric,
    blocks: u32,
    look: Option<Look>,
    paired: Paired,
    estimate: Option<Estimate>,
    boots: u32,
    baselines: Option<(Estimate, Interval)>,
    /// Why no verdict is possible, whatever the numbers.
    barred: Option<Reason>,
    p_different: f64,
    p_equivalent: f64,
}

impl<'a> Primary<'a> {
    fn new(question: &'a Question, level: &'a str, blocks: u32, look: Option<Look>) -> Self {
        let metric = question
            .metrics
            .first()
            .cloned()
            .unwrap_or_else(|| Metric::higher_is_better("Qps"));
        let paired = pairing::pair(question, level, &metric.name, &question.threads, blocks);
        let estimate = Estimate::from_log_ratios(&paired.log_ratios(), metric.standard_error_floor);
        let boots = pairing::boots(question, level, &paired);
        let baselines = pairing::pair_baselines(question, &metric.name, blocks)
            .and_then(|paired| Estimate::from_log_ratios(&paired.log_ratios(), metric.standard_error_floor))
            .map(|estimate| (estimate, estimate.interval(BASELINES_CONFIDENCE)));
        let barred = barred(
            question,
            level,
            look,
            boots,
            baselines.as_ref().map(|(_, interval)| interval),
        );
        // A barred effect stays in the family with no evidence, so that barring one never helps another.
        let usable = barred.is_none() && estimate.is_some_and(|estimate| !estimate.without_variance());
        let p = |p: f64| if usable { p } else { 1.0 };
        let p_different = p(estimate.map_or(1.0, |estimate| estimate.p_different()));
        let p_equivalent = p(estimate.map_or(1.0, |estimate| estimate.p_equivalent(question.log_margin())));
        Self {
            question,
            level,
            metric,
            blocks,
            look,
            paired,
            estimate,
            boots,
            baselines,
            barred,
            p_different,
            p_equivalent,
        }
    }

    fn answer(&self, plan: &Plan, difference: Tested, equivalence: Tested) -> Answer {
        let question = self.question;
        let (verdict, reason) = match (&self.estimate, self.barred) {
            _ if !plan.comparative => (Verdict::Descriptive, None),
            (_, Some(reason)) => (Verdict::Inconclusive, Some(reason)),
            (None, None) => (Verdict::Inconclusive, Some(Reason::LookNotReached)),
            (Some(estimate), None) => decide(estimate, self.metric.direction, equivalence, difference),
        };
        let interval = self.estimate.map(|estimate| match verdict {
            Verdict::Descriptive => estimate.interval(EXPLORATORY_CONFIDENCE),
            _ => estimate.interval(confidence(verdict, difference, equivalence)),
        });
        // A difference so small that the verdict is `Equivalent` still opens the gate: it is proved.
        let proved =
            difference.rejected && matches!(verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent);
        let exploratory = self.exploratory();
        let order_effect = pairing::order_effect(question, self.level, &self.paired);
        let mut answer = Answer {
            comparison: question.comparison.clone(),
            context: question.context.clone(),
            baseline: question.baseline.clone(),
            level: self.level.to_owned(),
            metric: self.metric.clone(),
            verdict,
            reason,
            flags: self.flags(verdict, order_effect, &exploratory),
            scope: question.scope,
            estimate: self.estimate,
            interval,
            means: self.paired.means(),
            p_different: self.estimate.map_or(1.0, |estimate| estimate.p_different()),
            p_adjusted: difference.adjusted,
            p_equivalent: self
                .estimate
                .map_or(1.0, |estimate| estimate.p_equivalent(question.log_margin())),
            by_threads: self.by_threads(proved.then_some(difference.level)),
            exploratory,
            order_effect,
            baselines: self.baselines,
            resolution: self.resolution(difference.level).filter(|_| plan.comparative),
            sensitivity: sensitivity(&self.paired.log_ratios()),
            boots: self.boots,
            look: self.look.filter(|_| plan.comparative),
            sentence: String::new(),
        };
        answer.sentence = if plan.comparative {
            sentence::of(&answer, question, plan)
        } else {
            descriptive::sentence(&answer)
        };
        answer
    }

    /// Thread counts are tested at the level that the primary effect used up, and only if `gate` gives it: that is,
    /// if the primary effect is proved to differ.
    fn by_threads(&self, gate: Option<f64>) -> Vec<ThreadAnswer> {
        let question = self.question;
        let floor = self.metric.standard_error_floor;
        let mut answers: Vec<ThreadAnswer> = question
            .threads
            .iter()
            .filter_map(|&threads| {
                let paired = pairing::pair(question, self.level, &self.metric.name, &[threads], self.blocks);
                let estimate = Estimate::from_log_ratios(&paired.log_ratios(), floor)?;
                let interval = estimate.interval(EXPLORATORY_CONFIDENCE);
                Some(ThreadAnswer {
                    threads,
                    estimate,
                    means: paired.means(),
                    interval,
                    verdict: None,
                })
            })
            .collect();
        let Some(level) = gate else {
            return answers;
        };
        let share = |standing: usize| level / standing as f64;
        let test = |p: &dyn Fn(&Estimate) -> f64| {
            let p_values: Vec<f64> = answers.iter().map(|answer| p(&answer.estimate)).collect();
            holm(&p_values, question.threads.len(), share)
        };
        let differences = test(&Estimate::p_different);
        let equivalences = test(&|estimate| estimate.p_equivalent(question.log_margin()));
        for (answer, (difference, equivalence)) in
            answers.iter_mut().zip(differences.iter().zip(&equivalences))
        {
            let verdict = if answer.estimate.blocks < FEWEST_BOOTS {
                (Verdict::Inconclusive, Some(Reason::NotEnoughRestarts))
            } else {
                decide(&answer.estimate, self.metric.direction, *equivalence, *difference)
            };
            answer.interval = answer
                .estimate
                .interval(confidence(verdict.0, *difference, *equivalence));
            answer.verdict = Some(verdict);
        }
        answers
    }

    fn exploratory(&self) -> Vec<Exploratory> {
        let question = self.question;
        question
            .metrics
            .iter()
            .skip(1)
            .filter_map(|metric| {
                let paired =
                    pairing::pair(question, self.level, &metric.name, &question.threads, self.blocks);
                let effect = Estimate::from_log_ratios(&paired.log_ratios(), metric.standard_error_floor)
                    .map(|estimate| (estimate, estimate.interval(EXPLORATORY_CONFIDENCE)));
                let alone = || pairing::mean_alone(question, self.level, &metric.name, self.blocks);
                let means = match paired.means() {
                    Some(means) => means,
                    None => Means {
                        baseline: None,
                        level: alone()?,
                    },
                };
                Some(Exploratory {
                    metric: metric.clone(),
                    effect,
                    means,
                })
            })
            .collect()
    }

    fn flags(&self, verdict: Verdict, order: Option<OrderEffect>, exploratory: &[Exploratory]) -> Vec<Flag> {
        let mut flags = Vec::new();
        if order.is_some_and(|order| order.t.abs() > CARRY_OVER_T) {
            flags.push(Flag::CarryOver);
        }
        let cpu_falls = exploratory.iter().any(|other| {
            other.metric.name == Metric::CPU_UTILISATION
                && other.effect.is_some_and(|(_, interval)| interval.high < 0.0)
        });
        if verdict == Verdict::Worse && self.metric.direction == Direction::HigherIsBetter && cpu_falls {
            flags.push(Flag::LockBound);
        }
        flags
    }

    fn resolution(&self, level: f64) -> Option<Resolution> {
        let estimate = self
            .estimate
            .filter(|estimate| estimate.blocks >= 2 && !estimate.without_variance())?;
        // The resolution of the metric counts as noise.
        let sd = estimate.standard_error * f64::from(estimate.blocks).sqrt();
        let level = if level > 0.0 { level } else { FAMILY_LEVEL };
        Some(resolution(sd, estimate.blocks, self.question.log_margin(), level))
    }
}

/// The confidence of the interval that shows a verdict: equivalence is shown by that of its two one-sided tests.
fn confidence(verdict: Verdict, difference: Tested, equivalence: Tested) -> f64 {
    match verdict {
        Verdict::Equivalent => 1.0 - 2.0 * equivalence.level,
        _ => 1.0 - difference.level,
    }
}

/// The reason that forbids a verdict, whatever the numbers; the one that undermines most comes first.
fn barred(
    question: &Question,
    level: &str,
    look: Option<Look>,
    boots: u32,
    baselines: Option<&Interval>,
) -> Option<Reason> {
    if look.is_none() {
        return Some(Reason::LookNotReached);
    }
    if boots < FEWEST_BOOTS {
        return Some(Reason::NotEnoughRestarts);
    }
    if baselines.is_some_and(|interval| !interval.contains(0.0)) {
        return Some(Reason::UnstableBench);
    }
    let names = [
        Some(question.baseline.as_str()),
        Some(level),
        question.baseline_repeat.as_deref(),
    ];
    let arms: Vec<_> = names
        .into_iter()
        .flatten()
        .map(|arm| question.counts_of(arm))
        .collect();
    let invalid = || arms.iter().map(|arm| arm.invalid_attempts);
    if invalid().max().unwrap_or(0) - invalid().min().unwrap_or(0) >= UNEQUAL_ATTEMPTS {
        return Some(Reason::UnequalValidity);
    }
    // a/b differs from c/d, without division.
    let unequal = |one: &super::VisitCounts, two: &super::VisitCounts| {
        u64::from(one.settle_timed_out) * u64::from(two.visits)
            != u64::from(two.settle_timed_out) * u64::from(one.visits)
    };
    if arms.iter().any(|arm| unequal(arm, &arms[0])) {
        return Some(Reason::UnequalSettle);
    }
    None
}
