//! The reduced manifest beside each source study, as a person applies it: each place measured once with its settings proved,
//! and at the end a table in the layout in which the study was published.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bench::{Bench, assert_each_place_measured_once, bench, valid};

pub(crate) const NAMESPACE: &str = "e2e-studies";

/// Prefix of the images in the examples: what the local node calls its own.
const LOCAL: &str = "localhost/benchmark-campaign/";

/// A study that has been repeated.
pub(crate) struct Repeated {
    /// As it ended.
    pub(crate) campaign: Value,
    /// The runs that count.
    pub(crate) runs: Vec<Value>,
    /// Its tables, as printed.
    tables: Vec<Table>,
}

/// What an arm leaves in its log.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Records {
    Nothing,
    /// As many records as the load generator counted statements.
    EachStatement,
    /// Something, not one record a statement: pgaudit with `log_relation` has one for each table.
    Uncounted,
}

impl Repeated {
    /// What the runs of a level have, where `axis` names a field of the cell.
    fn of<'a>(&'a self, axis: &str, level: &str) -> impl Iterator<Item = &'a Value> {
        let (axis, level) = (axis.to_owned(), level.to_owned());
        self.runs
            .iter()
            .filter(move |run| run["spec"]["cell"][&axis] == level.as_str())
    }

    /// What an arm recorded.
    pub(crate) fn recorded(&self, arm: &str, records: Records) {
        let mut runs = self.of("auditSetting", arm).peekable();
        assert!(runs.peek().is_some(), "no run of {arm}");
        for run in runs {
            let evidence = &run["status"]["evidence"];
            let recording = records != Records::Nothing;
            assert_eq!(evidence["audit"]["recording"], recording, "{arm}: {evidence}");
            let completeness = run["status"]["result"]["auditCompletenessPpm"].as_i64();
            match records {
                Records::Nothing => assert_eq!(completeness.unwrap_or_default(), 0, "{arm}"),
                Records::Uncounted => assert_eq!(completeness, None, "{arm}"),
                Records::EachStatement => {
                    let ppm = completeness.expect("how much of the statements was recorded");
                    assert!((990_000..=1_010_000).contains(&ppm), "{arm}: {ppm}");
                }
            }
        }
    }

    /// A table has the columns and rows in which the study was published, and a figure wherever it had one.
    pub(crate) fn table(&self, place: usize, columns: &[&str], rows: &[&str]) {
        let table = &self.tables[place];
        assert_eq!(table.head, columns, "{table:?}");
        let labels: Vec<String> = table.rows.iter().map(|row| row.labels.join(" ")).collect();
        assert_eq!(labels, rows, "{table:?}");
        for row in &table.rows {
            for figure in &row.figures {
                let base =
                    figure == "base" || figure == "-" && row.labels.iter().any(|label| label == "base");
                assert!(base || figure.parse::<f64>().is_ok(), "{figure:?} in {table:?}");
            }
        }
    }
}

/// A printed table.
#[derive(Debug)]
struct Table {
    head: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    labels: Vec<String>,
    figures: Vec<String>,
}

/// Names of axes begin with a capital and are one word; a column of figures names its level and its metric.
fn is_label(column: &str) -> bool {
    [
        "Database",
        "InstanceSize",
        "ParameterTemplate",
        "AuditSetting",
        "Workload",
        "Threads",
    ]
    .contains(&column)
}

/// Tables as comma-separated values, without the columns that count runs.
fn tables(printed: &str) -> Vec<Table> {
    printed
        .split("\n\n")
        .filter(|part| !part.trim().is_empty())
        .map(|part| {
            let mut lines = part
                .lines()
                .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
            let head = lines.next().expect("a head");
            let shown: Vec<usize> = (0..head.len())
                .filter(|&place| !head[place].ends_with("runs") && !head[place].ends_with("left out"))
                .collect();
            let pick = |line: &[String], label: bool| -> Vec<String> {
                let wanted = shown.iter().filter(|&&place| is_label(&head[place]) == label);
                wanted.map(|&place| line[place].clone()).collect()
            };
            let rows = lines
                .map(|line| Row {
                    labels: pick(&line, true),
                    figures: pick(&line, false),
                })
                .collect();
            Table {
                head: shown.iter().map(|&place| head[place].clone()).collect(),
                rows,
            }
        })
        .collect()
}

/// Applies the reduced manifest of a study and waits for its end.
pub(crate) fn repeated(bench: &Bench, study: &str) -> Repeated {
    repeated_with(bench, study, |_| ())
}

/// The same with a change of the spec.
pub(crate) fn repeated_with(bench: &Bench, study: &str, change: impl FnOnce(&mut Value)) -> Repeated {
    let file = e2e::images::repository().join(format!("examples/studies/{study}.reduced.yaml"));
    let text = std::fs::read_to_string(&file).expect("the manifest");
    let mut campaign: Value = serde_yaml::from_str(&text).expect("YAML");
    campaign["metadata"]["namespace"] = NAMESPACE.into();
    for database in campaign["spec"]["databases"].as_array_mut().expect("databases") {
        let image = &mut database["managed"]["image"];
        *image = match image.as_str().and_then(|name| name.strip_prefix(LOCAL)) {
            Some("mariadb:10.11") => bench.database_image().into(),
            Some("mariadb:11.8") => bench.newer_database_image().into(),
            Some("mysql:9") => bench.mysql_image().into(),
            Some("postgresql:17") => bench.postgresql_image().into(),
            other => panic!("{study}: no image {other:?}"),
        };
    }
    change(&mut campaign["spec"]);
    let name = campaign["metadata"]["name"].as_str().expect("a name").to_owned();
    bench.apply(&campaign);
    let campaign = bench.completed(NAMESPACE, &name, 600);
    let mut runs = bench.list(NAMESPACE, "benchmarkruns");
    runs.retain(|run| run["metadata"]["labels"]["benchmark-campaign.dev/campaign"] == name.as_str());
    assert_each_place_measured_once(&runs);
    runs.retain(valid);
    for run in &runs {
        assert_eq!(run["status"]["evidence"]["level"], "Proved", "{run:#}");
    }
    let printed = bench.plugin(&["table", &name, "--namespace", NAMESPACE, "--output", "csv"]);
    println!("{}", bench.plugin(&["table", &name, "--namespace", NAMESPACE]));
    Repeated {
        campaign,
        runs,
        tables: tables(&printed),
    }
}

#[test]
fn study_0_taurusdb_sql_audit() {
    let (bench, _alone) = bench();
    bench.clear();
    let study = repeated(bench, "study-0-taurusdb-sql-audit");
    study.recorded("audit-off", Records::Nothing);
    study.recorded("audit-on", Records::EachStatement);
    study.table(
        0,
        &[
            "Workload",
            "Threads",
            "audit-off TPS",
            "audit-off QPS",
            "audit-on TPS",
            "audit-on QPS",
            "audit-on TPS diff %",
        ],
        &["read-write 2", "read-only 2"],
    );
}

#[test]
fn study_1_percona_audit_log() {
    let (bench, _alone) = bench();
    bench.clear();
    let study = repeated(bench, "study-1-percona-audit-log");
    study.recorded("audit-off", Records::Nothing);
    study.recorded("audit-on", Records::EachStatement);
    study.table(
        0,
        &[
            "AuditSetting",
            "Threads",
            "durability-1-1 transactions",
            "durability-1-1 p95 ms",
            "durability-100-2 transactions",
            "durability-100-2 p95 ms",
        ],
        &["audit-off 2", "audit-on 2"],
    );
    study.table(
        1,
        &[
            "Threads",
            "ParameterTemplate",
            "audit-off transactions",
            "audit-on transactions",
            "audit-on transactions diff %",
        ],
        &["2 durability-1-1", "2 durability-100-2"],
    );
    assert!(
        study.runs.iter().all(|run| run["spec"]["restartBefore"] == true),
        "a restart before each run"
    );
}

#[test]
fn study_2_postgresql_audit() {
    let (bench, _alone) = bench();
    bench.clear();
    let study = repeated(bench, "study-2-postgresql-audit");
    study.recorded("no-audit", Records::Nothing);
    study.recorded("audit-fast", Records::EachStatement);
    study.recorded("audit-fine", Records::Uncounted);
    study.recorded("log-statement-all", Records::EachStatement);
    study.table(
        0,
        &[
            "Threads",
            "no-audit QPS",
            "audit-fast QPS",
            "audit-fast QPS diff %",
            "audit-fine QPS",
            "audit-fine QPS diff %",
            "log-statement-all QPS",
            "log-statement-all QPS diff %",
        ],
        &["2"],
    );
}

#[test]
fn study_3_parameter_templates() {
    let (bench, _alone) = bench();
    bench.clear();
    let study = repeated(bench, "study-3-parameter-templates");
    for (database, version) in [("mariadb-10-11", "10.11."), ("mysql-9", "9.")] {
        let found: BTreeSet<&str> = study
            .of("database", database)
            .filter_map(|run| run["status"]["environment"]["serverVersion"].as_str())
            .collect();
        assert!(
            !found.is_empty() && found.iter().all(|v| v.starts_with(version)),
            "{database}: {found:?}"
        );
    }
    let answers = study.campaign["status"]["answers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for (comparison, level) in [("template", "high-performance"), ("version", "mysql-9")] {
        let answered = |answer: &Value| answer["comparison"] == comparison && answer["level"] == level;
        assert!(
            answers.iter().any(answered),
            "no answer of {comparison} for {level}: {answers:?}"
        );
    }
    study.table(
        0,
        &[
            "Database",
            "InstanceSize",
            "Threads",
            "ParameterTemplate",
            "QPS",
            "TPS",
            "mean ms",
            "QPS diff %",
        ],
        &[
            "mariadb-10-11 1u1g 2 default",
            "mariadb-10-11 1u1g 2 high-performance",
            "mysql-9 1u1g 2 default",
            "mysql-9 1u1g 2 high-performance",
        ],
    );
}

#[test]
fn study_4_mcafee_and_slow_log() {
    let (bench, _alone) = bench();
    bench.clear();
    let study = repeated(bench, "study-4-mcafee-and-slow-log");
    study.recorded("base", Records::Nothing);
    study.recorded("slow-log", Records::EachStatement);
    study.recorded("general-log", Records::EachStatement);
    study.table(
        0,
        &[
            "Threads",
            "base QPS",
            "slow-log QPS",
            "slow-log QPS % of base",
            "general-log QPS",
            "general-log QPS % of base",
        ],
        &["1", "2"],
    );
    study.table(
        1,
        &["AuditSetting", "Threads", "log bytes/record", "log GiB/day"],
        &[
            "base 1",
            "base 2",
            "slow-log 1",
            "slow-log 2",
            "general-log 1",
            "general-log 2",
        ],
    );
}
