//! Every verdict, every reason and every flag, with its sentence.

use super::sample::{
    BASELINE, LEVEL, NOISE, REPEAT, add_metric, counts, fixed, measured, noisy, question, ratios,
    with_ratios, worse,
};
use super::{Looks, Metric, Plan, Question, Scope, assess};

/// One question for each kind of answer.
pub(super) fn every_kind() -> Vec<(&'static str, Plan, Question)> {
    let mut unequal_validity = worse();
    unequal_validity.counts.insert(LEVEL.to_owned(), counts(3, 0));
    let mut unequal_settle = worse();
    unequal_settle.counts.insert(LEVEL.to_owned(), counts(0, 3));
    unequal_settle.counts.insert(BASELINE.to_owned(), counts(0, 0));
    let mut unstable = question(&[LEVEL]);
    unstable.baseline_repeat = Some(REPEAT.to_owned());
    let unstable = measured(unstable, 6, |block, arm, _| {
        let noise = 0.005 * NOISE[block as usize];
        if arm == REPEAT { 8.05 + noise } else { 8.0 }
    });
    let mut carried = with_ratios(&[-0.20, -0.10, -0.21, -0.11, -0.19, -0.10]);
    carried.scope = Scope::ThisPairOfInstances;
    let mut waiting = worse();
    add_metric(
        &mut waiting,
        Metric::higher_is_better(Metric::CPU_UTILISATION),
        |block, arm, _| {
            if arm == LEVEL {
                -0.3 + 0.01 * NOISE[block as usize]
            } else {
                0.0
            }
        },
    );
    let mut latency = with_ratios(&ratios(0.15, 0.03));
    latency.metrics = vec![Metric::percentile("LatencyP95")];
    for run in &mut latency.measurements {
        run.values = run
            .values
            .values()
            .map(|value| ("LatencyP95".to_owned(), *value))
            .collect();
    }
    let interim = Plan {
        looks: Looks::planned(&[6, 8, 10]).unwrap(),
        comparative: true,
        finished_blocks: 4,
    };
    let first = Plan {
        finished_blocks: 6,
        ..interim.clone()
    };
    let descriptive = Plan {
        comparative: false,
        ..fixed(6)
    };
    vec![
        ("worse", fixed(6), worse()),
        ("better", fixed(6), with_ratios(&ratios(0.15, 0.03))),
        ("worse latency", fixed(6), latency),
        ("equivalent", fixed(6), with_ratios(&ratios(0.001, 0.01))),
        (
            "equivalent and different",
            fixed(6),
            with_ratios(&ratios(-0.01, 0.003)),
        ),
        ("noisy", fixed(6), noisy()),
        ("unlucky", fixed(6), with_ratios(&ratios(-0.03, 0.0325))),
        ("very noisy", fixed(6), with_ratios(&ratios(-0.04, 2.0))),
        ("worse at a look", first, worse()),
        ("before a look", interim, worse()),
        ("nothing measured", fixed(6), question(&[LEVEL])),
        (
            "too few restarts",
            fixed(3),
            with_ratios(&ratios(-0.15, 0.03)[..3]),
        ),
        ("no variance", fixed(6), with_ratios(&[-0.1; 6])),
        ("unequal validity", fixed(6), unequal_validity),
        ("unequal settling", fixed(6), unequal_settle),
        ("unstable bench", fixed(6), unstable),
        ("carry-over, instances", fixed(6), carried),
        ("lock-bound", fixed(6), waiting),
        ("descriptive", descriptive, worse()),
    ]
}

#[test]
fn every_sentence() {
    let lines: Vec<String> = every_kind()
        .into_iter()
        .map(|(name, plan, question)| format!("[{name}] {}", assess(&plan, &[question]).remove(0).sentence))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    [worse] Worse: with audit-all, Qps is 13.9 % lower than with no-audit (95 % interval: 16.6 % lower to 11.1 % lower; 6 blocks).
    [better] Better: with audit-all, Qps is 16.2 % higher than with no-audit (95 % interval: 12.5 % higher to 19.9 % higher; 6 blocks).
    [worse latency] Worse: with audit-all, LatencyP95 is 16.2 % higher than with no-audit (95 % interval: 12.5 % higher to 19.9 % higher; 6 blocks).
    [equivalent] Equivalent: with audit-all, Qps is 0.10 % higher than with no-audit (90 % interval: 0.73 % lower to 0.94 % higher; 6 blocks), which is within the margin of 5 % either way.
    [equivalent and different] Equivalent: with audit-all, Qps is 1.0 % lower than with no-audit (90 % interval: 1.2 % lower to 0.75 % lower; 6 blocks), which is within the margin of 5 % either way.
    [noisy] Inconclusive (Noisy): with audit-all, Qps is 3.9 % lower than with no-audit (95 % interval: 13.6 % lower to 6.8 % higher; 6 blocks); this machine's noise hides effects below about 15.6 %; 33 more blocks or a quieter node would decide 5 %.
    [unlucky] Inconclusive (Noisy): with audit-all, Qps is 3.0 % lower than with no-audit (95 % interval: 6.2 % lower to 0.45 % higher; 6 blocks); this machine's noise hides effects below about 4.8 %; as many blocks again would probably decide 5 %.
    [very noisy] Inconclusive (Noisy): with audit-all, Qps is 3.9 % lower than with no-audit (95 % interval: 88.5 % lower to 700 % higher; 6 blocks); this machine's noise hides effects below about 1713 %; only a quieter node would decide 5 %.
    [worse at a look] Worse: with audit-all, Qps is 13.9 % lower than with no-audit (97.53 % interval: 17.2 % lower to 10.5 % lower; 6 blocks).
    [before a look] Inconclusive (LookNotReached): 4 blocks of the 6 planned for the first decision are finished. So far with audit-all, Qps is 13.0 % lower than with no-audit (97.53 % interval: 18.8 % lower to 6.8 % lower; 4 blocks).
    [nothing measured] Inconclusive (NotEnoughRestarts): no block is complete. So far audit-all and no-audit cannot be compared.
    [too few restarts] Inconclusive (NotEnoughRestarts): only 3 restarts of each arm can be compared and a verdict needs 6. So far with audit-all, Qps is 13.8 % lower than with no-audit (95 % interval: 20.6 % lower to 6.5 % lower; 3 blocks).
    [no variance] Inconclusive (Resolution): every block gave the same ratio, so Qps is too coarse a figure to show the noise. So far with audit-all, Qps is 9.5 % lower than with no-audit (95 % interval: 9.5 % lower to 9.5 % lower; 6 blocks).
    [unequal validity] Inconclusive (UnequalValidity): 3 attempts of audit-all were invalid, 0 of no-audit; what spoils runs may be the effect itself. So far with audit-all, Qps is 13.9 % lower than with no-audit (95 % interval: 16.6 % lower to 11.1 % lower; 6 blocks).
    [unequal settling] Inconclusive (UnequalSettle): 3 of 6 visits of audit-all did not settle in time, 0 of 6 of no-audit; the arms did not start alike. So far with audit-all, Qps is 13.9 % lower than with no-audit (95 % interval: 16.6 % lower to 11.1 % lower; 6 blocks).
    [unstable bench] Inconclusive (UnstableBench): two arms with the same configuration differ (5.1 % higher, 99 % interval: 4.3 % higher to 6.0 % higher), so this bench cannot tell settings apart. So far with audit-all, Qps is 2.5 % lower than with no-audit (95 % interval: 2.7 % lower to 2.2 % lower; 6 blocks).
    [carry-over, instances] Worse: with audit-all, Qps is 14.1 % lower than with no-audit (95 % interval: 18.8 % lower to 9.1 % lower; 6 blocks). This holds for this pair of instances only. CarryOver: the ratio is 9.2 % lower where no-audit ran first (t = -14.5), so the order inside a block matters.
    [lock-bound] Worse: with audit-all, Qps is 13.9 % lower than with no-audit (95 % interval: 16.6 % lower to 11.1 % lower; 6 blocks). LockBound: the server also used less CPU, so sessions wait for locks or I/O instead of computing.
    [descriptive] Descriptive: with audit-all, Qps was 13.9 % lower than with no-audit in 6 blocks (2 threads 13.9 % lower, 4 threads 13.9 % lower, 8 threads 13.9 % lower). These numbers are descriptive and support no verdict.
    ");
}

#[test]
fn sentences_fit_a_condition_even_with_the_longest_names() {
    let (baseline, level) = ("b".repeat(63), "l".repeat(63));
    for (name, plan, mut question) in every_kind() {
        let rename = |arm: &str| match arm {
            BASELINE => baseline.clone(),
            LEVEL => level.clone(),
            other => other.to_owned(),
        };
        question.baseline = rename(&question.baseline);
        question.levels = vec![level.clone()];
        question.counts = question
            .counts
            .iter()
            .map(|(arm, counts)| (rename(arm), *counts))
            .collect();
        for run in &mut question.measurements {
            run.arm = rename(&run.arm);
        }
        let answer = assess(&plan, &[question]).remove(0);
        assert!(
            answer.sentence.len() < 512,
            "{name}: {} bytes",
            answer.sentence.len()
        );
    }
}
