//! From runs that count to answers: maps the plan and the figures to the inference's plain questions, and its
//! answers to the status. It computes no statistics itself.

use std::collections::BTreeMap;

use crds::campaign::{
    AcceptanceStatus, Answer, Axis, ExploratoryEffect, Inference, Metric, ThreadsAnswer, Verdict,
};

use super::ledger::{Ledger, UnitLog, UnitState};
use super::run_summary::Figures;
use crate::blocks::{Group, Plan, REPEAT};
use crate::inference::{
    self, Acceptance, AcceptanceRule, AcceptanceState, Interval, Measurement, Question, Scope, VisitCounts,
    ppm,
};
use crate::matrix::Matrix;

/// Answers in the status.
const ANSWERS: usize = 32;
/// Thread counts of an answer.
const THREADS: usize = 16;
/// Criteria in the status.
const CRITERIA: usize = 16;

const METRICS: [Metric; 7] = [
    Metric::Qps,
    Metric::Tps,
    Metric::Transactions,
    Metric::LatencyMean,
    Metric::LatencyP95,
    Metric::CpuPerStatement,
    Metric::LogBytes,
];

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) answers: Vec<Answer>,
    pub(super) omitted: i64,
    pub(super) acceptance: Vec<AcceptanceStatus>,
    /// `True`, `False` or `Unknown`, if there are criteria.
    pub(super) accepted: Option<&'static str>,
    /// All verdicts in a few words.
    pub(super) summary: String,
    /// Whether the plan stops here though blocks are left.
    pub(super) stop: bool,
}

/// The figure of a metric in thousandths of its unit (latency: microseconds), as the status gives it.
pub(super) fn figure(figures: &Figures, metric: Metric) -> Option<i64> {
    match metric {
        Metric::Qps => figures.qps_milli,
        Metric::Tps => figures.tps_milli,
        Metric::Transactions => figures.transactions.and_then(|count| count.checked_mul(1000)),
        Metric::LatencyMean => figures.latency_mean_micros,
        Metric::LatencyP95 => figures.latency_p95_micros,
        Metric::CpuPerStatement => figures.cpu_nanos_per_statement,
        Metric::LogBytes => figures.log_bytes_per_1000_statements,
    }
}

fn named(metric: Metric) -> inference::Metric {
    let name = format!("{metric:?}");
    match metric {
        Metric::Qps | Metric::Tps | Metric::Transactions => inference::Metric::higher_is_better(&name),
        Metric::LatencyP95 => inference::Metric::percentile(&name),
        Metric::LatencyMean | Metric::CpuPerStatement | Metric::LogBytes => {
            inference::Metric::lower_is_better(&name)
        }
    }
}

fn metric_of(name: &str) -> Option<Metric> {
    METRICS.into_iter().find(|metric| format!("{metric:?}") == name)
}

/// Assesses all questions after the look of `stage`.
pub(super) fn assess(
    matrix: &Matrix<'_>,
    plan: &Plan,
    ledger: &Ledger<'_>,
    logs: &[UnitLog<'_>],
    stage: usize,
) -> Found {
    let questions = questions(matrix, plan, ledger, logs);
    let sizes = plan.looks.sizes();
    let of = inference::Plan {
        looks: plan.looks.clone(),
        comparative: matrix.spec.inference == Inference::Comparative,
        finished_blocks: sizes[stage.min(sizes.len() - 1)],
    };
    let answers = inference::assess(&of, &questions);
    let rules: Vec<AcceptanceRule> = matrix
        .spec
        .acceptance
        .iter()
        .filter_map(|criterion| {
            let comparison = matrix
                .spec
                .comparisons
                .iter()
                .find(|c| c.name == criterion.comparison)?;
            Some(AcceptanceRule {
                comparison: criterion.comparison.clone(),
                metric: format!("{:?}", criterion.metric.unwrap_or(comparison.primary)),
                maximum_worsening: criterion.maximum_worsening.fraction(),
            })
        })
        .collect();
    let judged = inference::judge_acceptance(&of, &answers, &rules);
    let accepted = (!rules.is_empty()).then(|| state(inference::overall_acceptance(&judged)));
    Found {
        omitted: answers.len().saturating_sub(ANSWERS) as i64,
        summary: summary(&answers),
        stop: inference::next(&of, &answers) == inference::Next::Stop,
        acceptance: acceptance(&judged),
        accepted,
        answers: answers.iter().take(ANSWERS).map(answer).collect(),
    }
}

fn questions(matrix: &Matrix<'_>, plan: &Plan, ledger: &Ledger<'_>, logs: &[UnitLog<'_>]) -> Vec<Question> {
    let mut questions: Vec<Option<Question>> = plan
        .groups
        .iter()
        .map(|group| group.comparison.map(|index| empty(matrix, group, index)))
        .collect();
    for (unit, log) in plan.units.iter().zip(logs) {
        let first = &plan.places[unit.places.start];
        let Some(question) = &mut questions[first.group as usize] else {
            continue;
        };
        if first.block == 0 {
            continue;
        }
        for failed in &log.failed {
            if let Some(arm) = failed.arm {
                let arm = &plan.groups[first.group as usize].arms[arm].name;
                question.counts.entry(arm.clone()).or_default().invalid_attempts += 1;
            }
        }
        if let UnitState::Counts { attempt } = log.state {
            count(plan, ledger, unit.places.clone(), attempt, question);
        }
    }
    questions.into_iter().flatten().collect()
}

fn empty(matrix: &Matrix<'_>, group: &Group, index: usize) -> Question {
    let comparison = &matrix.spec.comparisons[index];
    let mut metrics = vec![named(comparison.primary)];
    metrics.extend(
        METRICS
            .into_iter()
            .filter(|metric| *metric != comparison.primary)
            .map(named),
    );
    metrics.push(inference::Metric::lower_is_better(
        inference::Metric::CPU_UTILISATION,
    ));
    Question {
        comparison: comparison.name.clone(),
        context: group.context.clone(),
        baseline: comparison.baseline.clone(),
        baseline_repeat: comparison.noise_floor.then(|| REPEAT.to_owned()),
        levels: group
            .arms
            .iter()
            .skip(1)
            .map(|arm| arm.name.clone())
            .filter(|name| name != REPEAT)
            .collect(),
        threads: group
            .threads
            .iter()
            .map(|threads| threads.unsigned_abs())
            .collect(),
        metrics,
        margin: comparison.equivalence_margin.fraction(),
        scope: match comparison.axis {
            Axis::Database | Axis::InstanceSize => Scope::ThisPairOfInstances,
            Axis::ParameterTemplate | Axis::AuditSetting => Scope::Setting,
        },
        measurements: Vec::new(),
        counts: BTreeMap::<String, VisitCounts>::new(),
    }
}

fn count(
    plan: &Plan,
    ledger: &Ledger<'_>,
    places: std::ops::Range<usize>,
    attempt: i32,
    question: &mut Question,
) {
    // The first run of a visit knows its boot; the runs after it were measured on the same.
    let mut boot = String::new();
    for index in places {
        let Some(run) = ledger.run(index, attempt) else {
            continue;
        };
        let place = &plan.places[index];
        let arm = &plan.arm(place).name;
        if place.ordinal == 0 {
            run.boot.as_deref().unwrap_or_default().clone_into(&mut boot);
            let counts = question.counts.entry(arm.clone()).or_default();
            counts.visits += 1;
            counts.settle_timed_out += u32::from(!run.settled);
        }
        let mut values: BTreeMap<String, f64> = METRICS
            .into_iter()
            .filter_map(|metric| Some((format!("{metric:?}"), figure(&run.figures, metric)? as f64)))
            .collect();
        if let Some(ppm) = run.figures.server_cpu_ppm {
            values.insert(inference::Metric::CPU_UTILISATION.to_owned(), ppm as f64);
        }
        question.measurements.push(Measurement {
            block: place.block - 1,
            position: u32::from(place.position),
            arm: arm.clone(),
            threads: place.threads.unsigned_abs(),
            boot: boot.clone(),
            values,
        });
    }
}

fn verdict(verdict: inference::Verdict) -> Verdict {
    match verdict {
        inference::Verdict::Better => Verdict::Better,
        inference::Verdict::Worse => Verdict::Worse,
        inference::Verdict::Equivalent => Verdict::Equivalent,
        inference::Verdict::Inconclusive => Verdict::Inconclusive,
        inference::Verdict::Descriptive => Verdict::Descriptive,
    }
}

fn rounded(value: f64) -> Option<i64> {
    (value.is_finite() && value.abs() < 9e15).then(|| value.round() as i64)
}

fn ends(interval: Option<&Interval>) -> (Option<i64>, Option<i64>) {
    (
        interval.and_then(|interval| ppm(interval.low)),
        interval.and_then(|interval| ppm(interval.high)),
    )
}

fn answer(found: &inference::Answer) -> Answer {
    let (low_ppm, high_ppm) = ends(found.interval.as_ref());
    let mut flags: Vec<String> = found.flags.iter().map(ToString::to_string).collect();
    if found.scope == Scope::ThisPairOfInstances {
        flags.push("ThisPairOfInstances".to_owned());
    }
    Answer {
        comparison: found.comparison.clone(),
        level: found.level.clone(),
        baseline: found.baseline.clone(),
        context: found.context.clone(),
        metric: metric_of(&found.metric.name).unwrap_or_default(),
        verdict: verdict(found.verdict),
        reason: found.reason.map(|reason| reason.to_string()),
        flags,
        effect_ppm: found.estimate.and_then(|estimate| ppm(estimate.mean)),
        low_ppm,
        high_ppm,
        confidence_ppm: found
            .interval
            .and_then(|interval| rounded(1e6 * interval.confidence)),
        adjusted_p_ppm: found.estimate.and_then(|_| rounded(1e6 * found.p_adjusted)),
        blocks: found.estimate.map_or(0, |estimate| i64::from(estimate.blocks)),
        baseline_milli: found.means.and_then(|means| rounded(means.baseline?)),
        level_milli: found.means.and_then(|means| rounded(means.level)),
        sentence: found.sentence.clone(),
        per_threads: found.by_threads.iter().take(THREADS).map(at_threads).collect(),
        exploratory: found.exploratory.iter().filter_map(exploratory).collect(),
    }
}

fn at_threads(found: &inference::ThreadAnswer) -> ThreadsAnswer {
    let (low_ppm, high_ppm) = ends(Some(&found.interval));
    ThreadsAnswer {
        threads: i32::try_from(found.threads).unwrap_or(i32::MAX),
        verdict: found
            .verdict
            .map_or(Verdict::Descriptive, |(found, _)| verdict(found)),
        effect_ppm: ppm(found.estimate.mean),
        low_ppm,
        high_ppm,
        baseline_milli: found.means.and_then(|means| rounded(means.baseline?)),
        level_milli: found.means.and_then(|means| rounded(means.level)),
    }
}

fn exploratory(found: &inference::Exploratory) -> Option<ExploratoryEffect> {
    let metric = metric_of(&found.metric.name)?;
    let (low_ppm, high_ppm) = ends(found.effect.as_ref().map(|(_, interval)| interval));
    Some(ExploratoryEffect {
        metric,
        effect_ppm: found.effect.and_then(|(estimate, _)| ppm(estimate.mean)),
        low_ppm,
        high_ppm,
        level_milli: rounded(found.means.level),
    })
}

fn state(state: AcceptanceState) -> &'static str {
    match state {
        AcceptanceState::True => "True",
        AcceptanceState::False => "False",
        AcceptanceState::Unknown => "Unknown",
    }
}

fn acceptance(judged: &[Acceptance]) -> Vec<AcceptanceStatus> {
    let mut judged: Vec<&Acceptance> = judged.iter().collect();
    // What is not met comes first, in case not everything fits.
    judged.sort_by_key(|one| one.state != AcceptanceState::False);
    judged
        .into_iter()
        .take(CRITERIA)
        .map(|one| AcceptanceStatus {
            comparison: one.comparison.clone(),
            metric: metric_of(&one.metric).unwrap_or_default(),
            status: state(one.state).to_owned(),
            message: one.sentence.clone(),
        })
        .collect()
}

/// `Worse -14.6% (audit-all)`, one for each answer; equal verdicts of several contexts are not merged.
fn summary(answers: &[inference::Answer]) -> String {
    let words = |answer: &inference::Answer| {
        let verdict = match answer.reason {
            Some(reason) => format!("{} {reason}", answer.verdict),
            None => answer.verdict.to_string(),
        };
        let effect = answer
            .estimate
            .and_then(|estimate| ppm(estimate.mean))
            .map(percent);
        match effect {
            Some(effect) => format!("{verdict} {effect} ({})", answer.level),
            None => format!("{verdict} ({})", answer.level),
        }
    };
    answers.iter().map(words).collect::<Vec<_>>().join("; ")
}

/// Parts per million as a signed percentage: `-14.6%`.
pub fn percent(ppm: i64) -> String {
    format!("{:+.1}%", ppm as f64 / 1e4)
}
