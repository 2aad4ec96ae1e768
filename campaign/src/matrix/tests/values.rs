//! Values of parameters: shares of the instance, what overrides them, and what cannot matter.

use crds::parameter::ParameterValue;
use serde_json::{Value, json};

use super::{changed, problems};
use crate::blocks::lay_out;
use crate::budget::{self, Seen};
use crate::matrix::expand;
use crate::order::Seed;

const MYSQL_9: &str = "mysql-9";

fn two_sizes(more: &[(&str, Value)]) -> crds::BenchmarkCampaignSpec {
    let mut changes = vec![
        ("/databases/0/managed/storage/size", json!("100Gi")),
        (
            "/instanceSizes/0",
            json!({"name": "4u8g", "cpu": "4", "memory": "8Gi"}),
        ),
        (
            "/instanceSizes/-",
            json!({"name": "8u32g", "cpu": "8", "memory": "32Gi"}),
        ),
    ];
    changes.extend(more.iter().map(|(at, value)| (*at, value.clone())));
    changed(&changes)
}

#[test]
fn a_share_of_the_instance_is_resolved_for_each_size_wherever_it_is_written() {
    let spec = two_sizes(&[
        (
            "/databases/0/managed/configuration",
            json!({"key_buffer_size": "1% of memory"}),
        ),
        (
            "/parameterTemplates/0/parameters",
            json!({"innodb_buffer_pool_size": "50% of memory", "innodb_read_io_threads": "50% of cpu", "innodb_log_file_size": "10% of memory"}),
        ),
        (
            "/parameterTemplates/0/perDatabase",
            json!([{"database": "mariadb-10-11", "parameters": {"innodb_log_file_size": "5% of memory"}}]),
        ),
        (
            "/instanceSizes/1/parameters",
            json!({"innodb_buffer_pool_size": "60% of memory"}),
        ),
        (
            "/auditSettings/1/parameters",
            json!({"innodb_write_io_threads": "25% of cpu"}),
        ),
    ]);
    assert_eq!(problems(&spec), []);
    let matrix = expand(&spec).unwrap();
    let rows: Vec<_> = matrix
        .rows
        .iter()
        .map(|row| matrix.parameters(row.levels))
        .collect();
    let value = |row: usize, name: &str| rows[row].parameters.get(name).cloned();
    for (row, name, expected) in [
        (0, "innodb_buffer_pool_size", Some(4_i64 << 30)),
        (0, "innodb_read_io_threads", Some(2)),
        (0, "innodb_log_file_size", Some(409 << 20)),
        (0, "innodb_write_io_threads", None),
        (1, "innodb_write_io_threads", Some(1)),
        // 60 % of 32 GiB in whole pieces of 8 MiB.
        (2, "innodb_buffer_pool_size", Some(19_656 << 20)),
        (2, "innodb_read_io_threads", Some(4)),
        (3, "innodb_write_io_threads", Some(2)),
    ] {
        assert_eq!(
            value(row, name),
            expected.map(ParameterValue::Integer),
            "{row} {name}"
        );
    }
    // The base configuration is the target's, and an audit setting takes its own along.
    assert_eq!(rows[0].base["key_buffer_size"], ParameterValue::Integer(81 << 20));
    let audit = matrix.audit_on(matrix.rows[3].levels);
    assert_eq!(
        audit.parameters["innodb_write_io_threads"],
        ParameterValue::Integer(2)
    );
    insta::assert_yaml_snapshot!(matrix.notes);
}

/// The budgets see the number, not the words.
#[test]
fn a_share_counts_against_the_memory() {
    let with = |value: &str| {
        problems(&two_sizes(&[(
            "/parameterTemplates/0/parameters",
            json!({"innodb_buffer_pool_size": value}),
        )]))
    };
    assert_eq!(with("80% of memory"), []);
    let found = with("100% of memory");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].found.contains("a buffer pool of 8.0 GiB"),
        "{}",
        found[0]
    );
}

#[test]
fn postgresql_gets_its_own_units() {
    let spec = two_sizes(&[
        ("/databases/0/engine", json!("PostgreSQL")),
        ("/databases/0/managed/image", json!("postgres:17")),
        (
            "/auditSettings/1",
            json!({"name": "audit-all", "type": "LogStatement"}),
        ),
        (
            "/parameterTemplates/0/parameters",
            json!({"shared_buffers": "25% of memory", "max_parallel_workers": "100% of cpu"}),
        ),
    ]);
    assert_eq!(problems(&spec), []);
    let matrix = expand(&spec).unwrap();
    let of = |row: usize, name: &str| matrix.parameters(matrix.rows[row].levels).parameters[name].to_string();
    assert_eq!(
        (of(0, "shared_buffers"), of(2, "shared_buffers")),
        ("2048MB".into(), "8192MB".into())
    );
    assert_eq!(
        (of(0, "max_parallel_workers"), of(2, "max_parallel_workers")),
        ("4".into(), "8".into())
    );
}

#[test]
fn a_share_that_is_none_is_refused_where_it_is_written() {
    for (at, value, field, said) in [
        (
            "/parameterTemplates/0/parameters",
            json!({"innodb_buffer_pool_size": "75%"}),
            "spec.parameterTemplates[0].parameters.innodb_buffer_pool_size",
            "what it is a share of",
        ),
        (
            "/instanceSizes/0/parameters",
            json!({"innodb_buffer_pool_size": "175% of memory"}),
            "spec.instanceSizes[0].parameters.innodb_buffer_pool_size",
            "at most 100%",
        ),
        (
            "/databases/0/managed/configuration",
            json!({"key_buffer_size": "75 of memory"}),
            "spec.databases[0].managed.configuration.key_buffer_size",
            "percent sign",
        ),
        (
            "/auditSettings/1/parameters",
            json!({"key_buffer_size": "0.001% of disk"}),
            "spec.auditSettings[1].parameters.key_buffer_size",
            "what it is a share of",
        ),
    ] {
        let found = problems(&changed(&[(at, value)]));
        assert!(
            found.len() == 1 && found[0].field == field && found[0].to_string().contains(said),
            "{found:?}"
        );
    }
    let tiny = json!([{"database": "mariadb-10-11", "parameters": {"key_buffer_size": "0.001% of memory"}}]);
    let found = problems(&changed(&[
        ("/parameterTemplates/0/perDatabase", tiny),
        ("/instanceSizes/0/memory", json!("64Mi")),
    ]));
    assert_eq!(
        found[0].field,
        "spec.parameterTemplates[0].perDatabase[0].parameters.key_buffer_size"
    );
    assert!(found[0].found.contains("comes to nothing"), "{found:?}");
}

/// What a run of a campaign asks for holds numbers only, whatever the plan was written with.
#[test]
fn a_buffer_pool_that_the_base_says_in_words_is_not_given_again() {
    let spec = two_sizes(&[(
        "/databases/0/managed/configuration",
        json!({"innodb_buffer_pool_size": "50% of memory"}),
    )]);
    let matrix = expand(&spec).unwrap();
    let plan = lay_out(&matrix, Seed(1)).unwrap();
    let budget = budget::of(&matrix, &plan, &Seen::default());
    assert_eq!(budget.problems, []);
    assert!(budget.instances.values().all(|given| given.buffer_pool.is_none()));
}

#[test]
fn what_cannot_matter_is_named() {
    const WRITES: &str = "oltp_read_write";
    const READS: &str = "oltp_read_only";
    let mysql = |log_bin: &str| {
        json!({"name": MYSQL_9, "engine": "MySQL", "type": "Managed",
            "managed": {"image": "mysql:9", "storage": {"size": "20Gi"}, "configuration": {"log_bin": log_bin}}})
    };
    let external = json!({"name": MYSQL_9, "engine": "MySQL", "type": "External",
        "external": {"targets": [{"instanceSize": "1u1g", "targetRef": {"name": "mine"}}]}});
    let on = |database: Option<Value>, workload: &str, parameters: Value, prepared: &str| {
        let mut changes = vec![
            ("/auditSettings", json!([{"name": "no-audit", "type": "None"}])),
            ("/comparisons", json!([])),
            ("/parameterTemplates/0/parameters", parameters),
            ("/workloads/0/sysbench/script", json!(workload)),
            ("/workloads/0/sysbench/preparedStatements", json!(prepared)),
            ("/instanceSizes/0/memory", json!("4Gi")),
        ];
        changes.extend(database.map(|database| ("/databases/0", database)));
        let spec = changed(&changes);
        let matrix = expand(&spec).unwrap();
        let inert = matrix.notes.iter().filter(|note| note.contains("is inert"));
        inert.cloned().collect::<Vec<_>>()
    };
    for (database, workload, parameters, said) in [
        (None, WRITES, json!({"sync_binlog": 1}), Some("log_bin is off")),
        (
            None,
            WRITES,
            json!({"binlog_row_image": "MINIMAL"}),
            Some("log_bin is off"),
        ),
        (None, WRITES, json!({"sync_binlog": 1, "log_bin": "ON"}), None),
        (Some(mysql("ON")), WRITES, json!({"sync_binlog": 1}), None),
        (
            Some(mysql("ON")),
            READS,
            json!({"sync_binlog": 1}),
            Some("it only reads"),
        ),
        // What a borrowed server is set to is not known.
        (Some(external.clone()), WRITES, json!({"sync_binlog": 1}), None),
        (
            Some(external.clone()),
            READS,
            json!({"sync_binlog": 1}),
            Some("it only reads"),
        ),
        (
            Some(external),
            WRITES,
            json!({"innodb_flush_log_at_timeout": 5}),
            None,
        ),
        (
            None,
            READS,
            json!({"innodb_flush_log_at_trx_commit": 2}),
            Some("it only reads"),
        ),
        (None, WRITES, json!({"innodb_flush_log_at_trx_commit": 2}), None),
        (
            None,
            WRITES,
            json!({"innodb_flush_log_at_timeout": 5}),
            Some("innodb_flush_log_at_trx_commit is 1"),
        ),
        (
            None,
            READS,
            json!({"query_cache_size": "64M"}),
            Some("query_cache_type is off"),
        ),
        (
            None,
            READS,
            json!({"query_cache_size": "64M", "query_cache_type": "ON"}),
            None,
        ),
        (
            None,
            READS,
            json!({"query_cache_limit": "1M", "query_cache_size": 0, "query_cache_type": "ON"}),
            Some("query_cache_size is 0"),
        ),
        (
            None,
            WRITES,
            json!({"thread_pool_size": "100% of cpu"}),
            Some("not pool-of-threads"),
        ),
        (
            None,
            WRITES,
            json!({"thread_pool_size": 4, "thread_handling": "pool-of-threads"}),
            None,
        ),
        (None, WRITES, json!({"innodb_io_capacity": 2000}), None),
    ] {
        let notes = on(database, workload, parameters.clone(), "Auto");
        match said {
            Some(said) => assert!(
                notes.len() == 1 && notes[0].contains(said),
                "{parameters}: {notes:?}"
            ),
            None => assert_eq!(notes, Vec::<String>::new(), "{parameters}"),
        }
    }
    let limit = json!({"max_prepared_stmt_count": 100_000});
    assert_eq!(on(None, READS, limit.clone(), "Auto"), Vec::<String>::new());
    assert!(on(None, READS, limit, "Disabled")[0].contains("prepares no statements on the server"));
}

#[test]
fn what_cannot_matter_to_postgresql_is_named() {
    let on = |script: &str, parameters: Value| {
        let spec = changed(&[
            ("/databases/0/engine", json!("PostgreSQL")),
            ("/databases/0/managed/image", json!("postgres:17")),
            ("/auditSettings", json!([{"name": "no-audit", "type": "None"}])),
            ("/comparisons", json!([])),
            ("/parameterTemplates/0/parameters", parameters),
            ("/workloads/0/sysbench/script", json!(script)),
        ]);
        let matrix = expand(&spec).unwrap();
        let inert = matrix.notes.iter().filter(|note| note.contains("is inert"));
        inert.cloned().collect::<Vec<_>>()
    };
    let none = Vec::<String>::new();
    assert!(on("oltp_read_only", json!({"synchronous_commit": "off"}))[0].contains("it only reads"));
    assert_eq!(on("oltp_write_only", json!({"synchronous_commit": "off"})), none);
    assert!(
        on(
            "oltp_write_only",
            json!({"wal_sync_method": "fsync", "fsync": "off"})
        )[0]
        .contains("fsync is off")
    );
    assert_eq!(on("oltp_write_only", json!({"wal_sync_method": "fsync"})), none);
    assert!(on("oltp_write_only", json!({"commit_siblings": 3}))[0].contains("commit_delay is 0"));
    assert_eq!(
        on(
            "oltp_write_only",
            json!({"commit_siblings": 3, "commit_delay": 10})
        ),
        none
    );
    assert!(
        on(
            "oltp_write_only",
            json!({"autovacuum_naptime": 3, "autovacuum": "off"})
        )[0]
        .contains("autovacuum is off")
    );
}
