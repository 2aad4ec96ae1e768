//! Laws that hold for any figures.

use proptest::prelude::*;

use super::sample::{BASELINE, LEVEL, fixed, measured, question, with_ratios};
use super::{Answer, Direction, Estimate, Metric, Question, Reason, Verdict, assess};

fn only(question: Question) -> Answer {
    let blocks = question
        .measurements
        .iter()
        .map(|run| run.block + 1)
        .max()
        .unwrap_or(1);
    assess(&fixed(blocks), &[question]).remove(0)
}

fn close(one: f64, two: f64) -> bool {
    (one - two).abs() <= 1e-9 * (1.0 + one.abs())
}

/// Six to ten blocks; the middle of each range is where verdicts change.
fn ratios() -> impl Strategy<Value = Vec<f64>> {
    (-0.15_f64..0.15, 0.001_f64..0.15)
        .prop_flat_map(|(effect, noise)| prop::collection::vec((effect - noise)..(effect + noise), 6..10))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_verdict_agrees_with_its_interval(ratios in ratios()) {
        let answer = only(with_ratios(&ratios));
        let (estimate, interval) = (answer.estimate.unwrap(), answer.interval.unwrap());
        prop_assert!(interval.contains(estimate.mean));
        let margin = 1.05_f64.ln();
        match answer.verdict {
            Verdict::Equivalent => {
                prop_assert!(-margin < interval.low && interval.high < margin);
                prop_assert!(close(interval.confidence, 0.9));
            }
            Verdict::Better => prop_assert!(interval.low > 0.0),
            Verdict::Worse => prop_assert!(interval.high < 0.0),
            Verdict::Inconclusive => {
                prop_assert_eq!(answer.reason, Some(Reason::Noisy));
                prop_assert!(interval.contains(0.0));
                // Not equivalent either: the 90 % interval leaves the margin.
                let narrow = estimate.interval(0.9);
                prop_assert!(narrow.low <= -margin || narrow.high >= margin);
            }
            Verdict::Descriptive => prop_assert!(false, "not asked for"),
        }
        prop_assert_eq!(answer.reason.is_some(), answer.verdict == Verdict::Inconclusive);
        prop_assert!(answer.sentence.starts_with(answer.verdict.as_str()));
        prop_assert!(answer.sentence.len() < 512);
    }

    #[test]
    fn swapping_the_arms_flips_the_sign_and_the_verdict(ratios in ratios()) {
        let one = only(with_ratios(&ratios));
        let mut swapped = with_ratios(&ratios);
        swapped.baseline = LEVEL.to_owned();
        swapped.levels = vec![BASELINE.to_owned()];
        let two = only(swapped);
        prop_assert!(close(one.estimate.unwrap().mean, -two.estimate.unwrap().mean));
        prop_assert!(close(one.interval.unwrap().low, -two.interval.unwrap().high));
        let flipped = match one.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        prop_assert_eq!(flipped, two.verdict);
    }

    #[test]
    fn the_unit_and_the_speed_of_a_block_do_not_matter(ratios in ratios(), unit in 0.001_f64..1_000.0, seed: u64) {
        let original = with_ratios(&ratios);
        let mut scaled = original.clone();
        let mut draw = crate::order::Seed(seed).draw("speed");
        let speeds: Vec<f64> = ratios.iter().map(|_| unit * (0.5 + draw.unit())).collect();
        for run in &mut scaled.measurements {
            for value in run.values.values_mut() {
                *value *= speeds[run.block as usize];
            }
        }
        let (one, two) = (only(original), only(scaled));
        prop_assert!(close(one.estimate.unwrap().mean, two.estimate.unwrap().mean));
        prop_assert!(close(one.estimate.unwrap().sd, two.estimate.unwrap().sd));
        prop_assert_eq!(one.verdict, two.verdict);
    }

    #[test]
    fn the_order_of_blocks_and_of_runs_does_not_matter(ratios in ratios(), seed: u64) {
        let mut draw = crate::order::Seed(seed).draw("permutation");
        let mut permuted = ratios.clone();
        draw.shuffle(&mut permuted);
        let mut question = with_ratios(&permuted);
        draw.shuffle(&mut question.measurements);
        let (one, two) = (only(with_ratios(&ratios)), only(question));
        prop_assert!(close(one.estimate.unwrap().mean, two.estimate.unwrap().mean));
        prop_assert!(close(one.p_different, two.p_different));
        prop_assert_eq!(one.verdict, two.verdict);
    }

    #[test]
    fn latency_is_the_mirror_of_throughput(ratios in ratios()) {
        let throughput = only(with_ratios(&ratios));
        let mut question = with_ratios(&ratios);
        question.metrics[0].direction = Direction::LowerIsBetter;
        for run in &mut question.measurements {
            for value in run.values.values_mut() {
                *value = 1.0 / *value;
            }
        }
        prop_assert_eq!(throughput.verdict, only(question).verdict);
    }

    #[test]
    fn a_larger_family_never_helps(ratios in ratios(), others in 1_usize..6) {
        let alone = only(with_ratios(&ratios));
        // Companions without any effect at all, or not yet measured.
        let mut questions = vec![with_ratios(&ratios)];
        questions.extend((0..others).map(|_| question(&[LEVEL])));
        let together = assess(&fixed(ratios.len() as u32), &questions).remove(0);
        if together.verdict != Verdict::Inconclusive {
            prop_assert_ne!(alone.verdict, Verdict::Inconclusive);
        }
        prop_assert!(together.p_different >= alone.p_different - 1e-12);
    }

    #[test]
    fn a_percentile_is_never_surer_than_its_buckets(ratios in ratios()) {
        let metric = Metric::percentile("LatencyP95");
        let estimate = Estimate::from_log_ratios(&ratios, metric.standard_error_floor).unwrap();
        prop_assert!(estimate.standard_error >= 0.018 / 12_f64.sqrt() - 1e-12);
    }

    #[test]
    fn any_figures_at_all_give_an_answer(
        values in prop::collection::vec(prop::num::f64::ANY, 36), finished in 0_u32..9,
    ) {
        let mut values = values.into_iter();
        let mut question = measured(question(&[LEVEL]), 6, |_, _, _| 0.0);
        for run in &mut question.measurements {
            run.values.insert("Qps".to_owned(), values.next().unwrap());
        }
        let mut plan = fixed(6);
        plan.finished_blocks = finished;
        let answer = assess(&plan, &[question]).remove(0);
        prop_assert!(!answer.sentence.is_empty());
    }
}
