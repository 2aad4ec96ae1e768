//! The published studies, reduced for a small node (`examples/studies/*.reduced.yaml`): each ends with its tables in the
//! study's own layout, every figure of them measured. A test for each, so that one can be run by its name.

use campaign::report::layout::{Choice, Entry, Figure, Format, Kind, Sheet, sheets};
use crds::{BenchmarkCampaign, BenchmarkRun};
use e2e::images::repository;
use serde_json::Value;

use crate::bench::{Bench, bench};

const NAMESPACE: &str = "e2e-studies";
/// A campaign whose blocks are all measured again takes so long at most.
const SECONDS: u64 = 600;

#[test]
fn study_0_sql_audit_on_and_off() {
    let (sheets, _) = repeated("study-0-taurusdb-sql-audit");
    assert_eq!(sheets[0].sections.len(), 2, "a table for each load");
}

#[test]
fn study_1_a_loop_with_restarts_and_sleeps() {
    let (sheets, campaign) = repeated("study-1-percona-audit-log");
    assert_eq!(sheets.len(), 2);
    let plan = campaign.status.and_then(|status| status.plan).expect("a plan");
    assert_eq!(plan.burn_in_runs, 0, "a loop has none");
}

#[test]
fn study_2_four_ways_of_auditing_postgresql() {
    let (sheets, _) = repeated("study-2-postgresql-audit");
    let shown = |column: &&campaign::report::layout::Column| matches!(column.kind, Kind::Figure(_));
    assert_eq!(sheets[0].columns.iter().filter(shown).count(), 4);
}

#[test]
fn study_3_templates_on_two_databases() {
    let (sheets, _) = repeated("study-3-parameter-templates");
    assert_eq!(sheets[0].sections.len(), 2, "a table for each database");
}

#[test]
fn study_4_slow_log_and_another() {
    let (sheets, _) = repeated("study-4-mcafee-and-slow-log");
    the_log_has_a_volume(&sheets[1]);
}

#[test]
fn study_4_with_six_blocks_ends_with_a_verdict() {
    let (sheets, campaign) = repeated("study-4-oracle-audit-log");
    the_log_has_a_volume(&sheets[1]);
    let status = campaign.status.expect("a status");
    assert_ne!(
        status.answers[0].verdict,
        crds::campaign::Verdict::Descriptive,
        "{:?}",
        status.answers
    );
}

/// Applies a reduced manifest, waits for its end, prints its tables as the plugin does and returns them.
fn repeated(study: &str) -> (Vec<Sheet>, BenchmarkCampaign) {
    let (bench, _alone) = bench();
    bench.clear();
    let manifest = manifest(bench, study);
    let name = manifest["metadata"]["name"].as_str().expect("a name").to_owned();
    bench.apply(&manifest);
    let campaign: BenchmarkCampaign =
        serde_json::from_value(bench.completed(NAMESPACE, &name, SECONDS)).expect("a campaign");
    let runs: Vec<BenchmarkRun> = bench
        .list(NAMESPACE, "benchmarkruns")
        .into_iter()
        .map(|run| serde_json::from_value(run).expect("a run"))
        .collect();
    let sheets = sheets(&campaign, &runs, &Choice::default()).expect("tables");
    for sheet in &sheets {
        println!("{name}\n{}", sheet.render(Format::Text));
        every_figure_was_measured(sheet);
    }
    (sheets, campaign)
}

/// The manifest with the images as this cluster has them.
fn manifest(bench: &Bench, study: &str) -> Value {
    let file = repository().join(format!("examples/studies/{study}.reduced.yaml"));
    let text = std::fs::read_to_string(&file).expect("the reduced variant");
    let mut manifest: Value = serde_yaml::from_str(&text).expect("YAML");
    manifest["metadata"]["namespace"] = NAMESPACE.into();
    for database in manifest["spec"]["databases"].as_array_mut().expect("databases") {
        let image = match database["engine"].as_str() {
            Some("MySQL") => bench.mysql_image(),
            Some("PostgreSQL") => bench.postgresql_image(),
            _ => bench.database_image().to_owned(),
        };
        database["managed"]["image"] = image.into();
    }
    manifest
}

/// Entries of the columns of some figures, with the labels of their rows.
fn entries(sheet: &Sheet, of: impl Fn(Figure) -> bool) -> Vec<(&[String], &Entry)> {
    let rows = sheet.sections.iter().flat_map(|section| &section.rows);
    rows.flat_map(|(labels, entries)| {
        sheet
            .columns
            .iter()
            .zip(entries)
            .filter(|(column, _)| matches!(column.kind, Kind::Figure(figure) if of(figure)))
            .map(|(_, entry)| (labels.as_slice(), entry))
    })
    .collect()
}

fn is_positive(entry: &Entry) -> bool {
    matches!(entry, Entry::Number { value, .. } if *value > 0.0)
}

fn is_log(figure: Figure) -> bool {
    matches!(figure, Figure::LogBytesPerRecord | Figure::LogPerDay)
}

fn every_figure_was_measured(sheet: &Sheet) {
    for (labels, entry) in entries(sheet, |figure| !is_log(figure)) {
        assert!(
            is_positive(entry),
            "{labels:?}: {entry:?}\n{}",
            sheet.render(Format::Text)
        );
    }
}

/// All arms but the one without auditing wrote a log.
fn the_log_has_a_volume(sheet: &Sheet) {
    let found = entries(sheet, is_log);
    assert!(!found.is_empty());
    for (labels, entry) in found {
        assert_eq!(is_positive(entry), labels[0] != "base", "{labels:?}: {entry:?}");
    }
}
