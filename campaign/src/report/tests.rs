//! What people read, in full.

use crds::campaign::{
    Answer, BenchmarkCampaign, BenchmarkCampaignStatus, BlockOutcome, BlockStatus, CampaignState,
    ExploratoryEffect, Metric, Progress, ReasonCount, ThreadsAnswer, Verdict,
};
use crds::run::{Finding, RunResult, Step, Validity, ValidityVerdict};
use crds::{BenchmarkRun, BenchmarkRunStatus};
use serde_json::json;

use super::{line, plan, runs_csv, text};
use crate::matrix::tests::{changed, quickstart};

fn measured() -> BenchmarkCampaign {
    let mut campaign = quickstart();
    let at = |threads: i32, baseline: i64, effect: i64| ThreadsAnswer {
        threads,
        verdict: Verdict::Worse,
        effect_ppm: Some(effect),
        low_ppm: Some(effect - 50_000),
        high_ppm: Some(effect + 50_000),
        baseline_milli: Some(baseline),
        level_milli: Some(baseline * (1_000_000 + effect) / 1_000_000),
    };
    campaign.status = Some(BenchmarkCampaignStatus {
        state: CampaignState::Completed,
        progress: Some(Progress {
            done: 38,
            total: 38,
            invalid: 1,
            ..Progress::default()
        }),
        answers: vec![Answer {
            comparison: "audit".into(),
            level: "audit-all".into(),
            baseline: "no-audit".into(),
            context: "mariadb-10-11, 1u1g, default, read-only".into(),
            verdict: Verdict::Worse,
            effect_ppm: Some(-146_000),
            low_ppm: Some(-239_000),
            high_ppm: Some(-41_000),
            confidence_ppm: Some(950_000),
            blocks: 6,
            baseline_milli: Some(14_000_000),
            level_milli: Some(11_956_000),
            sentence: "Worse: with audit-all, Qps is 14.6 % lower than with no-audit.".into(),
            per_threads: vec![
                at(2, 9_000_000, -140_000),
                at(4, 14_000_000, -150_000),
                at(8, 21_000_000, -148_000),
            ],
            exploratory: vec![
                ExploratoryEffect {
                    metric: Metric::LatencyP95,
                    effect_ppm: Some(170_000),
                    low_ppm: Some(50_000),
                    high_ppm: Some(300_000),
                    level_milli: Some(2_400),
                },
                ExploratoryEffect {
                    metric: Metric::LogBytes,
                    level_milli: Some(160_500),
                    ..ExploratoryEffect::default()
                },
            ],
            ..Answer::default()
        }],
        invalid: vec![ReasonCount {
            reason: "PodChanged".into(),
            count: 1,
        }],
        blocks: vec![BlockStatus {
            comparison: "audit".into(),
            block: 3,
            attempts: 2,
            outcome: BlockOutcome::Repeated,
            reasons: vec![Finding {
                reason: "PodChanged".into(),
                message: "another pod answered".into(),
            }],
            ..BlockStatus::default()
        }],
        ..BenchmarkCampaignStatus::default()
    });
    campaign
}

#[test]
fn a_campaign_that_has_ended() {
    insta::assert_snapshot!(text(&measured()));
}

#[test]
fn a_campaign_that_runs_in_one_line() {
    let mut campaign = measured();
    let status = campaign.status.as_mut().unwrap();
    status.state = CampaignState::Running;
    status.progress = Some(Progress {
        done: 12,
        total: 38,
        invalid: 1,
        current: Some("block 3 of 6: audit-all, 8 threads, read-only".into()),
        seconds_left: Some(420),
        time_left: Some("7m".into()),
        ..Progress::default()
    });
    assert_eq!(
        line(&campaign),
        "Running: 12 of 38, 1 invalid, 7m left: block 3 of 6: audit-all, 8 threads, read-only"
    );
}

#[test]
fn the_plan_of_the_quickstart() {
    let mut campaign = quickstart();
    campaign.spec.seed = Some(1);
    insta::assert_snapshot!(plan(&campaign).unwrap());
}

#[test]
fn a_plan_that_is_refused_names_what_the_operator_names() {
    let mut campaign = quickstart();
    campaign.spec = changed(&[("/threads", json!([2, 200]))]);
    let problems = plan(&campaign).unwrap_err();
    assert!(
        problems
            .iter()
            .any(|problem| problem.to_string().contains("max_connections"))
    );
}

#[test]
fn runs_as_values_separated_by_commas() {
    let run = |sequence: i32, finished: bool| {
        let spec = json!({
            "targetRef": {"name": "t"},
            "cell": {"database": "m, or \"n\"", "threads": 4},
            "visit": {"comparison": "audit", "block": 1, "sequence": sequence, "arm": "no-audit"},
            "audit": {"name": "no-audit", "type": "None"},
            "workload": {"name": "read-only", "type": "Sysbench"},
            "threads": 4,
        });
        let mut run = BenchmarkRun::new("r", serde_json::from_value(spec).unwrap());
        run.status = finished.then(|| BenchmarkRunStatus {
            step: Step::Finished,
            validity: Some(Validity {
                verdict: ValidityVerdict::Valid,
                reasons: vec![],
            }),
            result: Some(RunResult {
                qps_milli: Some(1_234_005),
                latency_p95_micros: Some(2_450),
                ..RunResult::default()
            }),
            ..BenchmarkRunStatus::default()
        });
        run
    };
    let (later, earlier) = (run(1, false), run(0, true));
    insta::assert_snapshot!(runs_csv([&later, &earlier]));
}
