//! Acceptance: bounds on the loss against a limit.

use super::sample::{LEVEL, NOISE, add_metric, counts, fixed, ratios, with_ratios, worse};
use super::{
    AcceptanceRule, AcceptanceState, Metric, Question, assess, judge_acceptance, overall_acceptance,
};

#[test]
fn acceptance_needs_the_whole_bound_on_one_side() {
    let rule = |limit: f64| AcceptanceRule {
        comparison: "audit".to_owned(),
        metric: "Qps".to_owned(),
        maximum_worsening: limit,
    };
    let judge = |question: Question, limit: f64| {
        let answers = assess(&fixed(6), &[question]);
        judge_acceptance(&fixed(6), &answers, &[rule(limit)]).remove(0)
    };
    // 13.9 % lower, give or take 2.2.
    let kept = judge(worse(), 0.2);
    let broken = judge(worse(), 0.1);
    let open = judge(worse(), 0.14);
    let gain = judge(with_ratios(&ratios(0.15, 0.03)), 0.0);
    let mut spoiled = worse();
    spoiled.counts.insert(LEVEL.to_owned(), counts(2, 0));
    let unfit = judge(spoiled, 0.5);
    let states = [&kept, &broken, &open, &gain, &unfit].map(|judged| judged.state);
    assert_eq!(
        states,
        [
            AcceptanceState::True,
            AcceptanceState::False,
            AcceptanceState::Unknown,
            AcceptanceState::True,
            AcceptanceState::Unknown
        ]
    );
    let all = [kept, broken, open, gain, unfit];
    let sentences: Vec<&str> = all.iter().map(|judged| judged.sentence.as_str()).collect();
    insta::assert_snapshot!(sentences.join("\n"), @r"
    True: the loss of Qps with audit-all is within 20 % (95 % bound: at most 16.0 %).
    False: the loss of Qps with audit-all is over 10 % (95 % bound: at least 11.8 %).
    Unknown: the loss of Qps with audit-all may lie on either side of 14 % (95 % bounds: 11.8 to 16.0 %).
    True: the loss of Qps with audit-all is within 0 % (95 % bound: there is no loss).
    Unknown: the loss of Qps with audit-all cannot be judged against 50 %: the comparison has no usable answer.
    ");
    assert_eq!(overall_acceptance(&all), AcceptanceState::False);
    assert_eq!(overall_acceptance(&all[..1]), AcceptanceState::True);
    assert_eq!(overall_acceptance(&all[2..4]), AcceptanceState::Unknown);
    assert_eq!(overall_acceptance(&[]), AcceptanceState::Unknown);
}

#[test]
fn acceptance_of_latency_counts_what_is_added() {
    let mut question = worse();
    add_metric(
        &mut question,
        Metric::lower_is_better("LatencyMean"),
        |block, arm, _| {
            if arm == LEVEL {
                0.15 + 0.03 * NOISE[block as usize]
            } else {
                0.0
            }
        },
    );
    let answers = assess(&fixed(6), &[question]);
    let rule = |metric: &str, limit: f64| AcceptanceRule {
        comparison: "audit".to_owned(),
        metric: metric.to_owned(),
        maximum_worsening: limit,
    };
    let judged = judge_acceptance(
        &fixed(6),
        &answers,
        &[
            rule("LatencyMean", 0.25),
            rule("LatencyMean", 0.1),
            rule("Tps", 0.1),
        ],
    );
    let states: Vec<AcceptanceState> = judged.iter().map(|judged| judged.state).collect();
    assert_eq!(
        states,
        [
            AcceptanceState::True,
            AcceptanceState::False,
            AcceptanceState::Unknown
        ]
    );
    assert!(judged[0].loss_at_most.unwrap() > 0.16);
}
