//! Layouts in words.

use crds::run::RunResult;
use serde_json::json;

use super::super::{Choice, Format, layouts, tables};
use super::{campaign, measured};

const QUICKSTART: &str = include_str!("../../../../../examples/quickstart.yaml");

fn layout(words: &str) -> Result<super::super::Layout, String> {
    let campaign = campaign(QUICKSTART, &[]);
    Choice::parse(words)
        .and_then(|choice| layouts(&campaign, &choice))
        .map(|mut layouts| layouts.remove(0))
}

#[test]
fn what_is_not_said_follows_from_the_comparison() {
    let whole = "rows=Threads columns=AuditSetting metrics=Qps difference-from=no-audit";
    assert_eq!(layout(""), layout(whole));
    assert_eq!(
        layout("percent-of=no-audit"),
        layout("percent-of=AuditSetting=no-audit rows=Threads")
    );
    assert_eq!(
        layout("rows=AuditSetting,Threads"),
        layout("rows=AuditSetting,Threads columns=none metrics=Qps difference-from=no-audit")
    );
    assert!(layout("difference-from=none").unwrap().relative.is_none());
}

#[test]
fn a_table_of_one_comparison_has_its_levels_and_its_baseline() {
    let questions = json!([
        {"name": "first", "axis": "AuditSetting", "baseline": "off", "levels": ["general"]},
        {"name": "second", "axis": "AuditSetting", "baseline": "off-again", "levels": ["slow"], "primary": "Tps"},
    ]);
    let settings = json!([{"name": "off", "type": "None"}, {"name": "general", "type": "GeneralLog"},
        {"name": "off-again", "type": "None"}, {"name": "slow", "type": "SlowLog"}]);
    let changes = [
        ("/spec/comparisons", questions),
        ("/spec/auditSettings", settings),
        ("/spec/threads", json!([2])),
    ];
    let campaign = campaign(QUICKSTART, &changes);
    let runs = measured(&campaign, |_| RunResult {
        qps_milli: Some(1_000_000),
        tps_milli: Some(50_000),
        ..RunResult::default()
    });
    let columns = |choice: &Choice| -> Vec<Vec<String>> {
        let sheets = super::super::sheets(&campaign, &runs, choice).unwrap();
        let of = |sheet: &super::super::Sheet| {
            let mut levels: Vec<String> = sheet.columns.iter().map(|column| column.level.clone()).collect();
            levels.dedup();
            levels
        };
        sheets.iter().map(of).collect()
    };
    // Each question has its own table; one that is asked for without a question shows all.
    assert_eq!(
        columns(&Choice::default()),
        [["off", "general"], ["off-again", "slow"]]
    );
    let second = Choice::parse("comparison=second").unwrap();
    assert_eq!(columns(&second), [["off-again", "slow"]]);
    assert_eq!(
        layouts(&campaign, &second).unwrap()[0]
            .relative
            .clone()
            .unwrap()
            .baseline,
        "off-again"
    );
    let all = Choice::parse("columns=AuditSetting").unwrap();
    assert_eq!(columns(&all), [["off", "general", "off-again", "slow"]]);
    let unknown = Choice::parse("comparison=third").unwrap();
    assert!(
        layouts(&campaign, &unknown)
            .unwrap_err()
            .contains("they are first, second")
    );
    assert!(
        Choice::parse("comparison=first comparison=second")
            .unwrap_err()
            .contains("said twice")
    );
}

#[test]
fn a_table_for_each_question_or_for_each_line_of_the_annotation() {
    let questions = json!([
        {"name": "audit", "axis": "AuditSetting", "baseline": "no-audit"},
        {"name": "template", "axis": "ParameterTemplate", "baseline": "default", "primary": "Tps"},
    ]);
    let templates = json!([{"name": "default"}, {"name": "fast"}]);
    let mut changes = vec![
        ("/spec/comparisons", questions),
        ("/spec/parameterTemplates", templates),
    ];
    let two = layouts(&campaign(QUICKSTART, &changes), &Choice::default()).unwrap();
    let baselines: Vec<String> = two
        .iter()
        .map(|layout| layout.relative.clone().unwrap().baseline)
        .collect();
    assert_eq!(baselines, ["no-audit", "default"]);
    changes.push((
        "/metadata/annotations",
        json!({"benchmark-campaign.dev/tables": "metrics=Tps,Qps\n\n  columns=ParameterTemplate\nrows=Threads\n"}),
    ));
    let three = layouts(&campaign(QUICKSTART, &changes), &Choice::default()).unwrap();
    assert_eq!(three.len(), 3);
    // Columns of one question are set against its baseline.
    assert_eq!(three[1].relative.clone().unwrap().baseline, "default");
    // What is asked for wins.
    let asked = Choice::parse("metrics=LatencyP95").unwrap();
    assert_eq!(layouts(&campaign(QUICKSTART, &changes), &asked).unwrap().len(), 1);
}

#[test]
fn what_is_not_known_is_named_with_what_is() {
    for (words, said) in [
        ("rows", "is not KEY=VALUE"),
        (
            "lines=Threads",
            "\"lines\" is not a word of a layout; they are rows",
        ),
        ("rows=Thread", "\"Thread\" is not one of Database, InstanceSize"),
        ("metrics=Speed", "\"Speed\" is not one of Tps, Qps"),
        ("metrics=none", "name at least one"),
        ("rows=Threads rows=Threads", "said twice"),
        ("rows=Threads,Threads", "Threads is named twice"),
        ("rows=Threads columns=Threads", "for rows and for columns"),
        ("percent-of=no-audit difference-from=no-audit", "give one of"),
        ("percent-of=nobody", "no level of any axis"),
        ("percent-of=AuditSetting=nobody", "they are no-audit, audit-all"),
        ("metrics=LogPerDay", "needs statements-a-day"),
        ("statements-a-day=many", "not a whole number"),
    ] {
        let error = layout(words).unwrap_err();
        assert!(error.contains(said), "{words}: {error}");
    }
    let named_twice = campaign(
        QUICKSTART,
        &[("/spec/parameterTemplates/0/name", json!("no-audit"))],
    );
    let asked = Choice::parse("percent-of=no-audit").unwrap();
    let error = layouts(&named_twice, &asked).unwrap_err();
    assert!(
        error.contains("ParameterTemplate=no-audit or AuditSetting=no-audit"),
        "{error}"
    );
    let wrong = campaign(
        QUICKSTART,
        &[(
            "/metadata/annotations",
            json!({"benchmark-campaign.dev/tables": "rows=Thread"}),
        )],
    );
    let error = tables(&wrong, &[], &Choice::default(), Format::Text).unwrap_err();
    assert!(
        error.starts_with("annotation benchmark-campaign.dev/tables: "),
        "{error}"
    );
}

#[test]
fn the_same_table_as_text_markdown_and_values() {
    let campaign = campaign(QUICKSTART, &[("/spec/threads", json!([2, 4]))]);
    let runs = measured(&campaign, |cell| crds::run::RunResult {
        qps_milli: Some(
            i64::from(cell.threads)
                * if cell.audit_setting == "no-audit" {
                    1_000_000
                } else {
                    900_000
                },
        ),
        ..Default::default()
    });
    let all: Vec<String> = [Format::Text, Format::Markdown, Format::Csv]
        .into_iter()
        .map(|format| tables(&campaign, &runs, &Choice::default(), format).unwrap())
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}
