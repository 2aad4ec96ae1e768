//! The published studies 0 to 3.

use std::collections::BTreeMap;

use crds::BenchmarkRun;
use crds::campaign::BenchmarkCampaign;
use crds::run::{Cell, RunResult};
use serde_json::{Value, json};

use super::super::{Choice, Format, tables};
use super::{campaign, measured};

/// Once, in the order of a for-loop: what the studies did.
pub(super) fn once() -> Vec<(&'static str, Value)> {
    vec![
        ("/spec/repetitions", json!({"blocks": 1})),
        ("/spec/inference", json!("Descriptive")),
        ("/spec/order", json!("Grouped")),
    ]
}

pub(super) fn rows(csv: &'static str) -> Vec<Vec<&'static str>> {
    csv.lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect()
}

/// Thousandths of a published figure, digit by digit.
pub(super) fn thousandths(field: &str) -> i64 {
    let (whole, fraction) = field.split_once('.').unwrap_or((field, ""));
    let digits = format!("{whole}{fraction:0<3}");
    digits.parse().unwrap()
}

pub(super) fn find<'a>(rows: &'a [Vec<&'static str>], keys: &[(usize, &str)]) -> &'a [&'static str] {
    rows.iter()
        .find(|row| keys.iter().all(|(place, key)| row[*place] == *key))
        .unwrap_or_else(|| panic!("{keys:?}"))
}

/// The tables that the manifest asks for.
pub(super) fn text(campaign: &BenchmarkCampaign, runs: &[BenchmarkRun]) -> String {
    tables(campaign, runs, &Choice::default(), Format::Text).unwrap()
}

/// One table as values by heading.
pub(super) fn values(
    campaign: &BenchmarkCampaign,
    runs: &[BenchmarkRun],
    words: &str,
) -> Vec<BTreeMap<String, String>> {
    let csv = tables(campaign, runs, &Choice::parse(words).unwrap(), Format::Csv).unwrap();
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned));
    let heading: Vec<String> = lines.next().unwrap().collect();
    lines
        .map(|line| heading.iter().cloned().zip(line).collect())
        .collect()
}

pub(super) fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

const STUDY_0: &str = include_str!("../../../../../examples/studies/study-0-taurusdb-sql-audit.yaml");

/// Its database is a cloud's: here one that can be planned, under the study's own names.
fn study_0(further: Vec<(&'static str, Value)>) -> (BenchmarkCampaign, Vec<BenchmarkRun>) {
    let rows = rows(include_str!(
        "../../../../fixtures/studies/study0_taurusdb_sql_audit.csv"
    ));
    let mut changes = once();
    changes.extend([
        (
            "/spec/databases/0",
            json!({"name": "taurusdb", "engine": "MySQL", "type": "Managed", "managed": {"image": "mysql:9", "storage": {"size": "99Gi"}}}),
        ),
        ("/spec/auditSettings/1", json!({"name": "audit-on", "type": "GeneralLog", "log": {"limit": "999Gi"}})),
    ]);
    changes.extend(further);
    let campaign = campaign(STUDY_0, &changes);
    let runs = measured(&campaign, |cell| {
        let mode = cell.workload.replace('-', "_");
        let row = find(&rows, &[(0, &mode), (3, &cell.threads.to_string())]);
        let at = if cell.audit_setting == "audit-on" { 4 } else { 6 };
        RunResult {
            tps_milli: Some(thousandths(row[at])),
            qps_milli: Some(thousandths(row[at + 1])),
            ..RunResult::default()
        }
    });
    (campaign, runs)
}

#[test]
fn study_0_comes_back_and_ten_of_its_costs_are_gains() {
    let (campaign, runs) = study_0(vec![]);
    let rows = rows(include_str!(
        "../../../../fixtures/studies/study0_taurusdb_sql_audit.csv"
    ));
    let table = values(
        &campaign,
        &runs,
        "rows=Threads columns=AuditSetting metrics=Tps,Qps difference-from=audit-off",
    );
    assert_eq!(table.len(), 18);
    for line in &table {
        let mode = line["Workload"].replace('-', "_");
        let row = find(&rows, &[(0, &mode), (3, &line["Threads"])]);
        for (heading, published) in [
            ("audit-on TPS", row[4]),
            ("audit-on QPS", row[5]),
            ("audit-off TPS", row[6]),
            ("audit-off QPS", row[7]),
        ] {
            assert_eq!(thousandths(&line[heading]), thousandths(published), "{heading}");
        }
        let difference = number(&line["audit-on TPS diff %"]);
        assert!((difference - number(row[8])).abs() < 0.006, "{line:?}");
        assert_eq!(line["audit-on runs"], "1");
    }
    insta::assert_snapshot!(text(&campaign, &runs));
}

#[test]
fn study_0_read_only_does_not_send_what_its_command_says() {
    // The flags that it prints leave out the range queries and the transaction's own statements.
    let flags = json!({"rand-type": "uniform", "range_selects": "off", "skip_trx": "on"});
    let (campaign, runs) = study_0(vec![("/spec/workloads/1/sysbench/options", flags)]);
    let text = text(&campaign, &runs);
    let said = "read-only: 12 of 12 cells do not have the 10 queries a transaction that its script and options send; the first has 16.00.";
    assert!(text.contains(said), "{text}");
    let table = values(
        &campaign,
        &runs,
        "rows=Threads,Workload metrics=QueriesPerTransaction difference-from=none",
    );
    let of_read_only: Vec<&str> = table
        .iter()
        .filter(|line| line["Workload"] == "read-only")
        .map(|line| line["audit-off queries/transaction"].as_str())
        .collect();
    assert_eq!(of_read_only, ["16.00"; 6]);
}

fn study_1() -> (BenchmarkCampaign, Vec<BenchmarkRun>) {
    let rows = rows(include_str!(
        "../../../../fixtures/studies/study1_percona_audit_log_mysql56.csv"
    ));
    let mut changes = once();
    changes.extend([
        ("/spec/databases/0/expect", json!({"flavour": "Percona", "version": "8.0"})),
        ("/spec/comparisons", json!([{"name": "audit", "axis": "AuditSetting", "baseline": "audit-off", "primary": "Transactions"}])),
    ]);
    let campaign = campaign(
        include_str!("../../../../../examples/studies/study-1-percona-audit-log.yaml"),
        &changes,
    );
    let runs = measured(&campaign, |cell| {
        let row = row_1(
            &rows,
            &cell.audit_setting,
            &cell.parameter_template,
            &cell.threads.to_string(),
        );
        RunResult {
            transactions: Some(row[7].parse().unwrap()),
            latency_p95_micros: Some(thousandths(row[8])),
            ..RunResult::default()
        }
    });
    (campaign, runs)
}

fn row_1<'a>(
    rows: &'a [Vec<&'static str>],
    audit: &str,
    template: &str,
    threads: &str,
) -> &'a [&'static str] {
    let audit = audit.trim_start_matches("audit-");
    let (sync, flush) = template
        .trim_start_matches("durability-")
        .split_once('-')
        .unwrap();
    find(rows, &[(0, audit), (1, sync), (2, flush), (6, threads)])
}

#[test]
fn study_1_comes_back_and_its_thirty_percent_are_twenty() {
    let (campaign, runs) = study_1();
    let rows = rows(include_str!(
        "../../../../fixtures/studies/study1_percona_audit_log_mysql56.csv"
    ));
    let table = values(
        &campaign,
        &runs,
        "rows=Threads columns=ParameterTemplate metrics=Transactions,LatencyP95 difference-from=none",
    );
    assert_eq!(table.len(), 10);
    for line in &table {
        for template in ["durability-0-0", "durability-1-1", "durability-100-2"] {
            let row = row_1(&rows, &line["AuditSetting"], template, &line["Threads"]);
            assert_eq!(line[&format!("{template} transactions")], row[7]);
            assert_eq!(line[&format!("{template} p95 ms")], row[8]);
        }
    }
    let costs = values(
        &campaign,
        &runs,
        "rows=Threads,ParameterTemplate columns=AuditSetting metrics=Transactions difference-from=audit-off",
    );
    let of = |threads: &str| {
        let line = costs
            .iter()
            .find(|line| line["Threads"] == threads && line["ParameterTemplate"] == "durability-100-2");
        line.unwrap()["audit-on transactions diff %"].clone()
    };
    assert_eq!(of("128"), "-20.77", "said to be 30 %");
    // Settings that a load which only reads never reaches.
    let notes = crate::matrix::expand(&campaign.spec).unwrap().notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("innodb_flush_log_at_trx_commit is inert"))
    );
    insta::assert_snapshot!(text(&campaign, &runs));
}

#[test]
fn study_2_comes_back() {
    let rows = rows(include_str!(
        "../../../../fixtures/studies/study2_tencent_pg_audit_qps.csv"
    ));
    let columns = ["no-audit", "audit-fast", "audit-fine", "log-statement-all"];
    let campaign = campaign(
        include_str!("../../../../../examples/studies/study-2-postgresql-audit.yaml"),
        &once(),
    );
    let runs = measured(&campaign, |cell: &Cell| {
        let place = columns
            .iter()
            .position(|audit| *audit == cell.audit_setting)
            .unwrap();
        RunResult {
            qps_milli: Some(thousandths(
                find(&rows, &[(0, &cell.threads.to_string())])[place + 1],
            )),
            ..RunResult::default()
        }
    });
    let table = values(&campaign, &runs, "rows=Threads columns=AuditSetting metrics=Qps");
    let found: Vec<Vec<i64>> = table
        .iter()
        .map(|line| {
            columns
                .iter()
                .map(|audit| thousandths(&line[&format!("{audit} QPS")]))
                .collect()
        })
        .collect();
    let published: Vec<Vec<i64>> = rows
        .iter()
        .map(|row| row[1..].iter().map(|field| thousandths(field)).collect())
        .collect();
    assert_eq!(found, published);
    insta::assert_snapshot!(text(&campaign, &runs));
}

#[test]
fn study_3_comes_back_and_two_of_its_versions_are_one_table() {
    let rows = rows(include_str!(
        "../../../../fixtures/studies/study3_tencent_mysql_param_templates.csv"
    ));
    let mut changes = once();
    changes.extend([
        ("/spec/databases/0/expect", json!({})),
        ("/spec/comparisons", json!([{"name": "template", "axis": "ParameterTemplate", "baseline": "default", "primary": "Tps"}])),
    ]);
    let campaign = campaign(
        include_str!("../../../../../examples/studies/study-3-parameter-templates.yaml"),
        &changes,
    );
    let row = |database: &str, threads: &str, template: &str| {
        let version = database.trim_start_matches("mysql-").replace('-', ".");
        let template = match template {
            "default" => "default_deprecated".to_owned(),
            other => other.replace('-', "_"),
        };
        find(&rows, &[(0, &version), (3, threads), (5, &template)])
    };
    let runs = measured(&campaign, |cell| {
        let row = row(
            &cell.database,
            &cell.threads.to_string(),
            &cell.parameter_template,
        );
        RunResult {
            qps_milli: Some(thousandths(row[6])),
            tps_milli: Some(thousandths(row[7])),
            latency_mean_micros: Some(thousandths(row[8])),
            ..RunResult::default()
        }
    });
    let table = values(
        &campaign,
        &runs,
        "rows=InstanceSize,Threads,ParameterTemplate columns=none metrics=Qps,Tps,LatencyMean",
    );
    assert_eq!(table.len(), 27);
    for line in &table {
        let row = row(&line["Database"], &line["Threads"], &line["ParameterTemplate"]);
        for (heading, published) in [("QPS", row[6]), ("TPS", row[7]), ("mean ms", row[8])] {
            assert_eq!(line[heading], published, "{line:?}");
        }
    }
    let text = text(&campaign, &runs);
    assert_eq!(
        text.matches("same figures to the last digit").count(),
        1,
        "{text}"
    );
    insta::assert_snapshot!(text);
}
