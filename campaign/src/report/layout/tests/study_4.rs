//! Published study 4: two halves with two baselines, and the volume of their logs.

use crds::BenchmarkRun;
use crds::campaign::BenchmarkCampaign;
use crds::run::RunResult;

use super::studies::{find, number, once, rows, text, thousandths, values};
use super::{campaign, measured};

/// One half of study 4: the manifest, and which columns of the fixture its arms are.
fn study_4(
    manifest: &'static str,
    arms: &[(&str, usize, Option<i64>)],
) -> (BenchmarkCampaign, Vec<BenchmarkRun>) {
    let rows = rows(include_str!(
        "../../../../fixtures/studies/study4_mcafee_oracle_slowlog_qps.csv"
    ));
    let campaign = campaign(manifest, &once());
    let runs = measured(&campaign, |cell| {
        let row = find(&rows, &[(0, &cell.threads.to_string())]);
        let (_, column, bytes) = arms.iter().find(|(arm, ..)| *arm == cell.audit_setting).unwrap();
        RunResult {
            qps_milli: Some(thousandths(row[*column])),
            log_bytes_per_1000_records: *bytes,
            // The study takes a record for a statement.
            log_bytes_per_1000_statements: *bytes,
            ..RunResult::default()
        }
    });
    (campaign, runs)
}

const MCAFEE: &str = include_str!("../../../../../examples/studies/study-4-mcafee-and-slow-log.yaml");
const ORACLE: &str = include_str!("../../../../../examples/studies/study-4-oracle-audit-log.yaml");

/// Bytes of 1,000 records of the study's own logs.
fn bytes(plugin: &str) -> i64 {
    let rows = rows(include_str!("../../../../fixtures/studies/study4_log_volume.csv"));
    let row = find(&rows, &[(0, plugin)]);
    (number(row[2]) * 1024.0 * 1024.0 * 1000.0 / number(row[1])).round() as i64
}

#[test]
fn study_4_comes_back_and_keeps_eighty_to_ninety_eight_percent() {
    let rows = rows(include_str!(
        "../../../../fixtures/studies/study4_mcafee_oracle_slowlog_qps.csv"
    ));
    let words = "rows=Threads columns=AuditSetting metrics=Qps percent-of=base";
    let mcafee = study_4(
        MCAFEE,
        &[
            ("base", 1, None),
            ("slow-log", 2, None),
            ("mcafee", 4, Some(bytes("mcafee"))),
        ],
    );
    let oracle = study_4(ORACLE, &[("base", 6, None), ("oracle", 7, Some(bytes("oracle")))]);
    for ((campaign, runs), level, column) in [
        (&mcafee, "slow-log", 2),
        (&mcafee, "mcafee", 4),
        (&oracle, "oracle", 7),
    ] {
        for line in values(campaign, runs, words) {
            let row = find(&rows, &[(0, &line["Threads"])]);
            assert_eq!(
                thousandths(&line[&format!("{level} QPS")]),
                thousandths(row[column])
            );
            let percent = number(&line[&format!("{level} QPS % of base")]);
            assert!(
                (percent - number(row[column + 1])).abs() <= 0.55,
                "{row:?} {percent}"
            );
        }
    }
    let said = text(&oracle.0, &oracle.1);
    assert!(
        said.contains("Qps with oracle is 79.7 % to 98.2 % of that with base (13 cells)."),
        "{said}"
    );
    insta::assert_snapshot!(text(&mcafee.0, &mcafee.1));
}

#[test]
fn study_4_log_volume_is_for_each_record_and_not_for_a_thousand() {
    let published = rows(include_str!("../../../../fixtures/studies/study4_log_volume.csv"));
    let words = "rows=AuditSetting,Threads columns=none metrics=LogBytesPerRecord,LogPerDay statements-a-day=163330688 difference-from=none";
    for (manifest, arms, level) in [
        (
            MCAFEE,
            vec![
                ("base", 1, None),
                ("slow-log", 2, None),
                ("mcafee", 4, Some(bytes("mcafee"))),
            ],
            "mcafee",
        ),
        (
            ORACLE,
            vec![("base", 6, None), ("oracle", 7, Some(bytes("oracle")))],
            "oracle",
        ),
    ] {
        let (campaign, runs) = study_4(manifest, &arms);
        let row = find(&published, &[(0, level)]);
        let table = values(&campaign, &runs, words);
        let line = table.iter().find(|line| line["AuditSetting"] == level).unwrap();
        // 0.18 and 0.311 "K per 1,000 lines" are KiB of one line.
        let kibibytes = number(&line["log bytes/record"]) / 1024.0;
        assert!((kibibytes - number(row[3])).abs() < 0.001, "{kibibytes}");
        assert!(
            (number(&line["log GiB/day"]) - number(row[6])).abs() < 0.5,
            "{line:?}"
        );
        let base = table.iter().find(|line| line["AuditSetting"] == "base").unwrap();
        assert_eq!(
            (base["log bytes/record"].as_str(), base["log GiB/day"].as_str()),
            ("-", "-")
        );
    }
}
