//! The budgets against figures measured on real servers and computed from the published studies.

use proptest::prelude::*;
use serde_json::json;

use super::statements::{per_thread, queries_per_transaction, read_only};
use super::{Seen, dataset, of, time};
use crate::blocks::lay_out;
use crate::matrix::expand;
use crate::matrix::tests::{changed, problems, quickstart};
use crate::order::Seed;

fn sysbench(settings: serde_json::Value) -> crds::workload::Sysbench {
    serde_json::from_value(settings).unwrap()
}

#[test]
fn statements_and_queries_are_those_that_were_counted() {
    for (settings, statements, queries) in [
        (json!({"script": "oltp_read_write", "tables": 250}), 2252, 20),
        (json!({"script": "oltp_read_only", "tables": 4}), 22, 16),
        (json!({"script": "oltp_write_only", "tables": 10}), 42, 6),
        (
            json!({"script": "oltp_read_only", "tables": 7, "options": {"skip_trx": "on", "range_selects": "off"}}),
            7,
            10,
        ),
        (
            json!({"script": "oltp_read_only", "tables": 7, "options": {"skip-trx": "on", "range-selects": 0}}),
            7,
            10,
        ),
        (json!({"script": "oltp_point_select", "tables": 3}), 3, 1),
        (json!({"script": "select_random_points", "tables": 3}), 1, 1),
        (json!({"script": "oltp_insert", "tables": 3}), 0, 1),
        (
            json!({"script": "oltp_read_write", "tables": 250, "preparedStatements": "Disabled"}),
            0,
            20,
        ),
    ] {
        let settings = sysbench(settings);
        assert_eq!(per_thread(&settings), Some(statements), "{settings:?}");
        assert_eq!(queries_per_transaction(&settings), Some(queries), "{settings:?}");
    }
    let own = sysbench(json!({"script": "mine.lua", "luaConfigMap": "scripts", "tables": 3}));
    assert_eq!((per_thread(&own), read_only(&own)), (None, false));
    assert!(read_only(&sysbench(
        json!({"script": "oltp_read_only", "tables": 1})
    )));
    assert!(!read_only(&sysbench(
        json!({"script": "oltp_delete", "tables": 1})
    )));
}

/// Study 0's tables: the server's default allows 7 threads, 400,000 allows 177, and its own advice of 1,048,576
/// allows 465 and so not its 512.
#[test]
fn study_0_fits_as_far_as_it_was_computed() {
    let with = |threads: i32, parameters: serde_json::Value| {
        let spec = changed(&[
            (
                "/workloads/0/sysbench",
                json!({"script": "oltp_read_write", "tables": 250, "tableSize": 25000}),
            ),
            ("/parameterTemplates/0/parameters", parameters),
            ("/threads", json!([threads])),
            ("/instanceSizes/0/memory", json!("640Gi")),
            ("/databases/0/managed/storage/size", json!("100Gi")),
        ]);
        problems(&spec)
            .iter()
            .any(|problem| problem.to_string().contains("max_prepared_stmt_count"))
    };
    for (limit, threads) in [
        (json!({}), 7),
        (json!({"max_prepared_stmt_count": 400_000}), 177),
        (json!({"max_prepared_stmt_count": 1_048_576}), 465),
    ] {
        assert!(!with(threads, limit.clone()), "{limit} {threads}");
        assert!(with(threads + 1, limit.clone()), "{limit} {}", threads + 1);
    }
}

#[test]
fn rows_follow_from_a_share_of_memory() {
    // domain.md's table for PostgreSQL and InnoDB at about 241 bytes: 8 GiB x 1.2 is 42.7 million rows.
    let spec = changed(&[
        ("/instanceSizes/0/memory", json!("8Gi")),
        (
            "/workloads/0/sysbench",
            json!({"script": "oltp_read_only", "tables": 10, "sizeToMemoryRatio": 120}),
        ),
    ]);
    let matrix = expand(&spec).unwrap();
    let levels = matrix.rows[0].levels;
    let rows = dataset::rows_per_table(&matrix, levels);
    assert!((42.0..43.5).contains(&(rows as f64 * 10.0 / 1e6)), "{rows}");
    let bytes = dataset::bytes(matrix.workload(levels), rows) as f64;
    assert!((bytes / (1.2 * 8_589_934_592.0) - 1.0).abs() < 0.001, "{bytes}");
}

#[test]
fn the_quickstart_takes_about_ten_minutes_and_gets_most_of_its_memory() {
    let spec = quickstart().spec;
    let matrix = expand(&spec).unwrap();
    let plan = lay_out(&matrix, Seed(1)).unwrap();
    let budget = of(&matrix, &plan, &Seen::default());
    assert!(
        (540..780).contains(&budget.estimated_seconds),
        "{}",
        budget.estimated_seconds
    );
    let pool = budget.instances[&(0, 0)].buffer_pool.unwrap();
    assert!((500 << 20..620 << 20).contains(&pool), "{pool}");
    assert_eq!(budget.instances[&(0, 0)].log_storage, None);
    assert_eq!(budget.rows[&(0, 0)], 25_000);
    // 16,000 a second for 10 s, 160 bytes each.
    assert_eq!(budget.audit_log_bytes, Some(25_600_000));
}

#[test]
fn a_rate_that_was_seen_replaces_the_assumption() {
    let spec = quickstart().spec;
    let matrix = expand(&spec).unwrap();
    let plan = lay_out(&matrix, Seed(1)).unwrap();
    let fast = Seen {
        statements_per_second: Some(1e6),
    };
    let budget = of(&matrix, &plan, &fast);
    assert!(
        budget
            .problems
            .iter()
            .any(|problem| problem.to_string().contains("fastest run seen"))
    );
}

#[test]
fn refusals_in_full() {
    let spec = changed(&[
        (
            "/workloads/0/sysbench",
            json!({"script": "oltp_read_write", "tables": 250, "tableSize": 100_000}),
        ),
        ("/threads", json!([4, 64, 512])),
        (
            "/parameterTemplates/0/parameters/max_prepared_stmt_count",
            json!(400_000),
        ),
        ("/run/duration", json!("600s")),
        ("/run/warmup", json!("60s")),
    ]);
    let all: Vec<String> = problems(&spec).iter().map(ToString::to_string).collect();
    insta::assert_yaml_snapshot!(all);
}

#[test]
fn seconds_in_words() {
    for (seconds, words) in [
        (-5, "0s"),
        (45, "45s"),
        (60, "1m"),
        (90, "1m 30s"),
        (660, "11m"),
        (3600, "1h"),
        (7500, "2h 5m"),
        (86_400, "1d"),
        (273_600, "3d 4h"),
    ] {
        assert_eq!(time::words(seconds), words);
        assert!(words.len() <= 16);
    }
}

proptest! {
    #[test]
    fn more_rows_never_take_fewer_bytes(rows in 0_i64..50_000_000, more in 0_i64..1_000_000) {
        prop_assert!(dataset::table_bytes(rows) <= dataset::table_bytes(rows + more));
    }

    #[test]
    fn more_threads_or_tables_never_need_fewer_statements(threads in 1..2000, tables in 1..500) {
        let refused = |threads: i32, tables: i32| {
            let spec = changed(&[("/threads", json!([threads])), ("/workloads/0/sysbench/tables", json!(tables)), ("/parameterTemplates/0/parameters/max_connections", json!(100_000))]);
            problems(&spec).iter().any(|problem| problem.to_string().contains("prepare"))
        };
        if refused(threads, tables) {
            prop_assert!(refused(threads + 1, tables) && refused(threads, tables + 1));
        }
    }
}
