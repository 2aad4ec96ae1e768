//! Which runs make a figure: those that count in the campaign's own ledger, and no other.

use crds::BenchmarkRun;
use crds::run::{Finding, RunResult, Validity, ValidityVerdict};
use proptest::prelude::*;
use serde_json::json;

use super::super::{Choice, Entry, Format, Sheet, sheets, tables};
use super::{campaign, measured, places, run};

/// Two blocks of two arms at one thread count.
fn small() -> crds::BenchmarkCampaign {
    campaign(
        include_str!("../../../../../examples/quickstart.yaml"),
        &[
            ("/spec/threads", json!([2])),
            ("/spec/repetitions", json!({"blocks": 2})),
            ("/spec/inference", json!("Descriptive")),
        ],
    )
}

fn qps(qps: i64) -> RunResult {
    RunResult {
        qps_milli: Some(qps * 1000),
        ..RunResult::default()
    }
}

fn invalid(run: &mut BenchmarkRun, reason: &str) {
    run.status.as_mut().unwrap().validity = Some(Validity {
        verdict: ValidityVerdict::Invalid,
        reasons: vec![Finding {
            reason: reason.to_owned(),
            message: String::new(),
        }],
    });
}

fn sheet(runs: &[BenchmarkRun]) -> Sheet {
    sheets(&small(), runs, &Choice::default()).unwrap().remove(0)
}

/// What stands in a column of the only row.
fn at<'a>(sheet: &'a Sheet, heading: &str) -> &'a Entry {
    let place = sheet
        .columns
        .iter()
        .position(|column| format!("{} {}", column.level, column.heading) == heading);
    &sheet.sections[0].rows[0].1[place.unwrap()]
}

/// Hundredths and marks.
fn value(entry: &Entry) -> (i64, &str) {
    match entry {
        Entry::Number { value, marks, .. } => ((100.0 * value).round() as i64, marks),
        Entry::Word(word) => panic!("{word}"),
    }
}

/// Runs of the plan: the burn-in's figures are far off, so that they would be seen.
fn all() -> Vec<BenchmarkRun> {
    let campaign = small();
    let (plan, _) = places(&campaign);
    let mut runs = measured(&campaign, |_| qps(0));
    for (place, run) in runs.iter_mut().enumerate() {
        let here = &plan.places[place];
        let audited = run.spec.cell.audit_setting == "audit-all";
        let figure = match (here.block, audited) {
            (0, _) => 1,
            (block, false) => 100 * i64::from(block),
            (block, true) => 50 * i64::from(block),
        };
        run.status.as_mut().unwrap().result = Some(qps(figure));
    }
    runs
}

/// Places of block 1.
fn block_1() -> Vec<usize> {
    let (plan, _) = places(&small());
    (0..plan.places.len())
        .filter(|place| plan.places[*place].block == 1)
        .collect()
}

#[test]
fn the_mean_of_what_counts_without_the_burn_in() {
    let sheet = sheet(&all());
    assert_eq!(value(at(&sheet, "no-audit QPS")), (15_000, ""));
    assert_eq!(value(at(&sheet, "audit-all QPS")), (7_500, ""));
    assert_eq!(value(at(&sheet, "audit-all QPS diff %")).0, -5_000);
    assert_eq!(*at(&sheet, "audit-all runs"), Entry::Word("2".into()));
}

#[test]
fn an_invalid_attempt_and_its_doubtful_neighbours_are_shown_and_not_averaged() {
    let mut runs = all();
    let block = block_1();
    // The second run of the block is invalid, so the first does not count either, though it is valid by itself.
    for &place in &block {
        runs[place].status.as_mut().unwrap().result = Some(qps(9_999));
    }
    invalid(&mut runs[block[1]], "PodChanged");
    for &place in &block {
        let audited = runs[place].spec.cell.audit_setting == "audit-all";
        let again = run(
            &runs[place].spec.cell.clone(),
            place,
            2,
            qps(if audited { 50 } else { 100 }),
        );
        runs.push(again);
    }
    let sheet = sheet(&runs);
    assert_eq!(value(at(&sheet, "no-audit QPS")), (15_000, "*"));
    assert_eq!(value(at(&sheet, "audit-all QPS")), (7_500, "*"));
    let words: Vec<String> = ["no-audit left out", "audit-all left out"]
        .iter()
        .map(|heading| match at(&sheet, heading) {
            Entry::Word(word) => word.clone(),
            Entry::Number { .. } => String::new(),
        })
        .collect();
    assert!(words.contains(&"1 invalid PodChanged".to_owned()), "{words:?}");
    assert!(words.contains(&"1 doubtful PodChanged".to_owned()), "{words:?}");
    assert!(
        sheet
            .notes
            .iter()
            .any(|note| note.contains("runs left out: 1 invalid PodChanged"))
    );
}

#[test]
fn words_stand_where_nothing_counts() {
    let mut runs = all();
    for run in &mut runs {
        if run.spec.cell.audit_setting == "audit-all" {
            invalid(run, "NodeDisturbed");
        }
    }
    let sheet = sheet(&runs);
    assert_eq!(*at(&sheet, "audit-all QPS"), Entry::Word("invalid".into()));
    assert_eq!(
        *at(&sheet, "no-audit QPS"),
        Entry::Word("doubtful".into()),
        "its blocks never count"
    );
    assert_eq!(*at(&sheet, "audit-all QPS diff %"), Entry::Word("-".into()));
    let nothing = super::super::sheets(&small(), &[], &Choice::default()).unwrap();
    assert_eq!(*at(&nothing[0], "no-audit QPS"), Entry::Word("-".into()));
}

#[test]
fn single_runs_and_symptoms_are_said() {
    let block = block_1();
    let mut runs = all();
    runs[block[0]].status.as_mut().unwrap().symptoms = vec![Finding {
        reason: "Stalled".into(),
        message: String::new(),
    }];
    let with = tables(&small(), &runs, &Choice::default(), Format::Text).unwrap();
    assert!(with.contains('~') && with.contains("symptoms: Stalled"), "{with}");
    // Only the first block was measured.
    let last = *block.last().unwrap();
    let first: Vec<BenchmarkRun> = all().into_iter().take(last + 1).collect();
    let text = tables(&small(), &first, &Choice::default(), Format::Text).unwrap();
    assert!(text.contains("Every figure is a single run"), "{text}");
}

#[test]
fn runs_of_an_earlier_iteration_are_not_those_of_this_one() {
    let mut campaign = small();
    campaign.status = Some(crds::BenchmarkCampaignStatus {
        iteration: 1,
        ..Default::default()
    });
    let sheet = sheets(&campaign, &all(), &Choice::default()).unwrap().remove(0);
    assert_eq!(*at(&sheet, "no-audit QPS"), Entry::Word("-".into()));
}

#[test]
fn a_campaign_that_cannot_be_planned_has_no_table() {
    let mut campaign = small();
    campaign.spec.threads = None;
    let error = tables(&campaign, &all(), &Choice::default(), Format::Text).unwrap_err();
    assert!(error.contains("spec.threads"), "{error}");
}

proptest! {
    /// Whatever figures the runs of a failed attempt have, the table's figures are the same.
    #[test]
    fn what_does_not_count_changes_no_figure(figures in proptest::collection::vec(0_i64..1_000_000, 2), which in 0_usize..2) {
        let mut runs = all();
        let block = block_1();
        for (&place, &figure) in block.iter().zip(&figures) {
            let again = run(&runs[place].spec.cell.clone(), place, 2, runs[place].status.clone().unwrap().result.unwrap());
            runs.push(again);
            runs[place].status.as_mut().unwrap().result = Some(qps(figure));
        }
        invalid(&mut runs[block[which]], "PodChanged");
        let sheet = sheet(&runs);
        prop_assert_eq!(value(at(&sheet, "no-audit QPS")).0, 15_000);
        prop_assert_eq!(value(at(&sheet, "audit-all QPS")).0, 7_500);
    }
}
