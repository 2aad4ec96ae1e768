//! The rules of the assessment, one by one.

use super::sample::{
    BASELINE, LEVEL, NOISE, REPEAT, add_metric, counts, fixed, measured, noisy, question, ratios,
    with_ratios, worse,
};
use super::sentence_tests::every_kind;
use super::{
    Answer, Flag, Looks, Metric, Next, Plan, Question, Reason, Verdict, VisitCounts, assess, next, ppm,
};

fn one(question: Question) -> Answer {
    assess(&fixed(6), &[question]).remove(0)
}

#[test]
fn a_reason_bars_the_verdict_and_keeps_the_figures() {
    for (_, plan, question) in every_kind() {
        let answer = assess(&plan, &[question]).remove(0);
        assert_eq!(answer.reason.is_some(), answer.verdict == Verdict::Inconclusive);
        if let Some(reason) = answer.reason {
            assert!(
                answer.sentence.starts_with(&format!("Inconclusive ({reason}):")),
                "{}",
                answer.sentence
            );
            assert!(answer.estimate.is_some() || answer.boots == 0);
        }
    }
}

#[test]
fn one_invalid_attempt_more_is_chance_and_two_are_not() {
    let with = |baseline: VisitCounts, level: VisitCounts| {
        let mut question = worse();
        question.counts.insert(BASELINE.to_owned(), baseline);
        question.counts.insert(LEVEL.to_owned(), level);
        one(question).reason
    };
    assert_eq!(with(counts(0, 0), counts(1, 0)), None);
    assert_eq!(with(counts(0, 0), counts(2, 0)), Some(Reason::UnequalValidity));
    assert_eq!(with(counts(3, 0), counts(1, 0)), Some(Reason::UnequalValidity));
    assert_eq!(with(counts(0, 2), counts(0, 2)), None);
    assert_eq!(with(counts(0, 1), counts(0, 0)), Some(Reason::UnequalSettle));
    let halves = VisitCounts {
        visits: 12,
        settle_timed_out: 4,
        invalid_attempts: 0,
    };
    assert_eq!(with(counts(0, 2), halves), None, "2 of 6 is 4 of 12");
}

#[test]
fn both_baselines_average_into_one() {
    let mut question = question(&[LEVEL]);
    question.baseline_repeat = Some(REPEAT.to_owned());
    let question = measured(question, 6, |block, arm, _| {
        let noise = 0.02 * NOISE[block as usize];
        match arm {
            LEVEL => 7.9,
            REPEAT => 8.0 + noise,
            _ => 8.0 - noise,
        }
    });
    let answer = one(question);
    let estimate = answer.estimate.unwrap();
    assert!((estimate.mean + 0.1).abs() < 1e-9);
    assert!(estimate.sd < 1e-9, "the noise of the two baselines cancels here");
    assert!(answer.baselines.unwrap().1.contains(0.0));
    assert_eq!(answer.reason, Some(Reason::Resolution));
}

#[test]
fn a_block_counts_only_when_complete_for_the_effect() {
    let mut both = measured(question(&["a", "b"]), 7, |block, arm, _| {
        8.0 + if arm == "a" {
            -0.15 + 0.03 * f64::from(block % 3)
        } else {
            0.0
        }
    });
    both.measurements
        .retain(|run| !(run.arm == "a" && run.block == 2 && run.threads == 4));
    both.measurements
        .iter_mut()
        .filter(|run| run.arm == "b" && run.block == 5)
        .for_each(|run| {
            run.values.insert("Qps".to_owned(), 0.0);
        });
    let answers = assess(&fixed(7), &[both]);
    assert_eq!(
        answers[0].estimate.unwrap().blocks,
        6,
        "block 2 lacks a reading of a"
    );
    assert_eq!(
        answers[1].estimate.unwrap().blocks,
        6,
        "block 5 has no logarithm in b"
    );
    assert_eq!(answers[0].boots, 6);
    let at_four = answers[0].by_threads.iter().find(|one| one.threads == 4).unwrap();
    let at_eight = answers[0].by_threads.iter().find(|one| one.threads == 8).unwrap();
    assert_eq!((at_four.estimate.blocks, at_eight.estimate.blocks), (6, 7));
}

#[test]
fn runs_of_one_boot_are_no_replication() {
    let mut question = worse();
    for run in &mut question.measurements {
        run.boot = if run.block < 3 {
            "first".to_owned()
        } else {
            format!("{}-{}", run.arm, run.block)
        };
    }
    let answer = one(question);
    assert_eq!(
        (answer.boots, answer.reason),
        (4, Some(Reason::NotEnoughRestarts))
    );
}

#[test]
fn thread_counts_have_verdicts_only_below_a_proved_primary() {
    assert!(one(noisy()).by_threads.iter().all(|one| one.verdict.is_none()));
    let answer = one(worse());
    assert_eq!(answer.by_threads.len(), 3);
    assert!(
        answer
            .by_threads
            .iter()
            .all(|one| one.verdict == Some((Verdict::Worse, None)))
    );
    // An effect at one thread count only: the others are not called.
    let at_eight = measured(question(&[LEVEL]), 6, |block, arm, threads| {
        let noise = 0.02 * NOISE[block as usize] * f64::from(threads);
        8.0 + if arm == LEVEL && threads == 8 { -0.8 } else { 0.0 } + if arm == LEVEL { noise } else { 0.0 }
    });
    let answer = one(at_eight);
    assert_eq!(answer.verdict, Verdict::Worse);
    let called: Vec<u32> = answer
        .by_threads
        .iter()
        .filter(|one| one.verdict == Some((Verdict::Worse, None)))
        .map(|one| one.threads)
        .collect();
    assert_eq!(called, [8]);
}

#[test]
fn the_family_is_corrected_and_intervals_say_so() {
    let questions = vec![worse(), noisy(), noisy(), question(&[LEVEL])];
    let answers = assess(&fixed(6), &questions);
    assert!(
        (answers[0].interval.unwrap().confidence - 0.9875).abs() < 1e-12,
        "0.05 over four"
    );
    assert!(
        (answers[1].interval.unwrap().confidence - (1.0 - 0.05 / 3.0)).abs() < 1e-12,
        "over three standing"
    );
    assert!(answers[1].interval.unwrap().contains(0.0));
}

#[test]
fn flags_do_not_change_the_verdict() {
    let all = every_kind();
    let of = |name: &str| {
        let (_, plan, question) = all.iter().find(|kind| kind.0 == name).unwrap();
        assess(plan, std::slice::from_ref(question)).remove(0)
    };
    let carried = of("carry-over, instances");
    assert_eq!(
        (carried.verdict, carried.flags.as_slice()),
        (Verdict::Worse, &[Flag::CarryOver][..])
    );
    assert!(carried.order_effect.unwrap().t.abs() > 3.0);
    let waiting = of("lock-bound");
    assert_eq!(
        (waiting.verdict, waiting.flags.as_slice()),
        (Verdict::Worse, &[Flag::LockBound][..])
    );
    assert_eq!(waiting.exploratory.len(), 1);
    assert!(of("worse").flags.is_empty());
}

#[test]
fn a_campaign_goes_on_only_while_blocks_can_help() {
    let looks = Looks::planned(&[6, 8, 10]).unwrap();
    let plan = |finished_blocks| Plan {
        looks: looks.clone(),
        comparative: true,
        finished_blocks,
    };
    let decide = |plan: &Plan, question: &Question| next(plan, &assess(plan, std::slice::from_ref(question)));
    assert_eq!(decide(&plan(3), &worse()), Next::Continue { blocks: 6 });
    assert_eq!(decide(&plan(6), &worse()), Next::Stop);
    assert_eq!(decide(&plan(6), &noisy()), Next::Continue { blocks: 8 });
    assert_eq!(decide(&plan(7), &noisy()), Next::Continue { blocks: 8 });
    assert_eq!(decide(&plan(10), &noisy()), Next::Stop);
    let mut spoiled = worse();
    spoiled.counts.insert(LEVEL.to_owned(), counts(2, 0));
    assert_eq!(decide(&plan(6), &spoiled), Next::Stop);
    let descriptive = Plan {
        looks: Looks::fixed(6),
        comparative: false,
        finished_blocks: 3,
    };
    assert_eq!(decide(&descriptive, &worse()), Next::Continue { blocks: 6 });
}

#[test]
fn blocks_after_the_look_wait_for_the_next_one() {
    let plan = Plan {
        looks: Looks::planned(&[6, 8]).unwrap(),
        comparative: true,
        finished_blocks: 7,
    };
    let mut seven = ratios(-0.15, 0.03);
    seven.push(3.0);
    let answer = assess(&plan, &[with_ratios(&seven)]).remove(0);
    assert_eq!(
        (answer.verdict, answer.estimate.unwrap().blocks),
        (Verdict::Worse, 6)
    );
    assert_eq!(answer.look.unwrap().number, 1);
}

#[test]
fn the_status_has_integers() {
    let answer = one(worse());
    assert_eq!(ppm(answer.estimate.unwrap().mean), Some(-139_292));
}

#[test]
fn means_agree_with_the_effect_and_survive_a_baseline_without_figures() {
    let mut question = worse();
    // The log of an arm that has none is empty; its bytes have no ratio.
    add_metric(&mut question, Metric::lower_is_better("LogBytes"), |_, arm, _| {
        if arm == LEVEL {
            160_000_f64.ln()
        } else {
            f64::NEG_INFINITY
        }
    });
    let answer = one(question);
    let means = answer.means.unwrap();
    assert!(((means.level / means.baseline.unwrap()).ln() - answer.estimate.unwrap().mean).abs() < 1e-12);
    for threads in &answer.by_threads {
        let means = threads.means.unwrap();
        assert!(((means.level / means.baseline.unwrap()).ln() - threads.estimate.mean).abs() < 1e-12);
    }
    let bytes = &answer.exploratory[0];
    assert_eq!((bytes.effect, bytes.means.baseline), (None, None));
    assert!((bytes.means.level - 160_000.0).abs() < 1e-6);
}

#[test]
fn descriptive_figures_have_no_verdict_anywhere() {
    let plan = Plan {
        comparative: false,
        ..fixed(6)
    };
    let answer = assess(&plan, &[worse()]).remove(0);
    assert_eq!(
        (answer.verdict, answer.reason, answer.resolution),
        (Verdict::Descriptive, None, None)
    );
    assert!(answer.by_threads.iter().all(|one| one.verdict.is_none()));
}

#[test]
fn a_percentile_without_variance_proves_nothing_in_its_family() {
    let mut coarse = with_ratios(&[-0.1; 6]);
    coarse.metrics[0].standard_error_floor = 0.005;
    let answers = assess(&fixed(6), &[coarse, worse()]);
    assert_eq!(answers[0].reason, Some(Reason::Resolution));
    assert!((answers[0].p_adjusted - 1.0).abs() < 1e-12);
    assert!(answers[0].by_threads.iter().all(|one| one.verdict.is_none()));
    assert_eq!(answers[1].verdict, Verdict::Worse);
    assert!((answers[1].p_adjusted - 2.0 * answers[1].p_different).abs() < 1e-12);
}

#[test]
fn the_sentence_names_the_arm_whose_counts_disagree() {
    let mut question = question(&[LEVEL]);
    question.baseline_repeat = Some(REPEAT.to_owned());
    let mut question = measured(question, 6, |block, arm, _| {
        8.0 + if arm == LEVEL {
            -0.1
        } else {
            0.01 * NOISE[block as usize]
        }
    });
    question.counts.insert(REPEAT.to_owned(), counts(2, 0));
    let answer = one(question);
    assert_eq!(answer.reason, Some(Reason::UnequalValidity));
    assert!(
        answer
            .sentence
            .contains("0 attempts of audit-all were invalid, 2 of no-audit-again"),
        "{}",
        answer.sentence
    );
}
