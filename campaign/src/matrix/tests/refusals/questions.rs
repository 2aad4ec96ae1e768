//! Refusals of questions, repetitions and limits, and those of the budgets.

use serde_json::json;

use super::Refusal;

pub(super) fn of_questions_and_budgets() -> Vec<Refusal> {
    let sysbench = "/workloads/0/sysbench";
    let many: Vec<i32> = (1..=64).collect();
    vec![
        (
            vec![("/repetitions/blocks", json!(5))],
            "spec.repetitions.blocks",
            "inference: Descriptive",
        ),
        (
            vec![("/repetitions/looks", json!("UpTo10"))],
            "spec.repetitions",
            "remove one",
        ),
        (
            vec![
                ("/repetitions", json!({"looks": "UpTo10"})),
                ("/order", json!("Grouped")),
            ],
            "spec.repetitions.looks",
            "Balanced",
        ),
        (
            vec![("/comparisons/0/baseline", json!("none"))],
            "spec.comparisons[0].baseline",
            "known are no-audit, audit-all",
        ),
        (
            vec![
                ("/comparisons/0/axis", json!("InstanceSize")),
                ("/comparisons/0/baseline", json!("1u1g")),
            ],
            "spec.comparisons[0].axis",
            "one level only",
        ),
        (
            vec![("/comparisons/0/primary", json!("LogBytes"))],
            "spec.comparisons[0].primary",
            "never decide",
        ),
        (
            vec![
                ("/comparisons/0/primary", json!("LatencyP95")),
                ("/comparisons/0/equivalenceMargin", json!("3%")),
            ],
            "spec.comparisons[0].equivalenceMargin",
            "at least 4%",
        ),
        (
            vec![(
                "/comparisons/-",
                json!({"name": "again", "axis": "AuditSetting", "baseline": "no-audit"}),
            )],
            "spec.comparisons[1]",
            "same axis and baseline as audit",
        ),
        (
            vec![("/comparisons/0/levels", json!(["no-audit"]))],
            "spec.comparisons[0].levels",
            "is the baseline",
        ),
        (
            vec![("/comparisons/0/levels", json!(["audit-al"]))],
            "spec.comparisons[0].levels",
            "did you mean audit-all?",
        ),
        (
            vec![("/comparisons/0/levels", json!(["audit-all", "audit-all"]))],
            "spec.comparisons[0].levels",
            "more than once",
        ),
        (
            vec![(
                "/comparisons/-",
                json!({"name": "again", "axis": "AuditSetting", "baseline": "no-audit", "levels": ["audit-all"]}),
            )],
            "spec.comparisons[1]",
            "same axis and baseline as audit",
        ),
        (
            vec![(
                "/acceptance",
                json!([{"comparison": "audits", "maximumWorsening": "10%"}]),
            )],
            "spec.acceptance[0].comparison",
            "did you mean audit?",
        ),
        (
            vec![(
                "/acceptance",
                json!([{"comparison": "audit", "metric": "LogBytes", "maximumWorsening": "10%"}]),
            )],
            "spec.acceptance[0].metric",
            "writes no log",
        ),
        (
            vec![
                (
                    "/acceptance",
                    json!([{"comparison": "audit", "maximumWorsening": "10%"}]),
                ),
                ("/inference", json!("Descriptive")),
            ],
            "spec.acceptance",
            "Descriptive",
        ),
        (vec![("/seed", json!(-1))], "spec.seed", "0 or more"),
        (
            vec![("/parallelism", json!(0))],
            "spec.parallelism",
            "from 1 to 64",
        ),
        (
            vec![("/maximumDuration", json!("30s"))],
            "spec.maximumDuration",
            "at least 1m",
        ),
        (
            vec![("/restart/settle/timeout", json!("2h"))],
            "spec.restart.settle.timeout",
            "at most 30m",
        ),
        (
            vec![
                ("/restart/policy", json!("Never")),
                (
                    "/parameterTemplates/-",
                    json!({"name": "b", "parameters": {"sync_binlog": 0, "max_prepared_stmt_count": 1_048_576}}),
                ),
            ],
            "spec.restart.policy",
            "set sync_binlog in every template",
        ),
        // Budgets.
        (
            vec![
                ("/parameterTemplates/0/parameters", json!({})),
                ("/workloads/0/sysbench/tables", json!(500)),
            ],
            "spec.parameterTemplates",
            "max_prepared_stmt_count is not set and defaults to 16382, enough for 6 threads",
        ),
        (
            vec![(
                "/parameterTemplates/0/parameters/max_prepared_stmt_count",
                json!("100"),
            )],
            "spec.parameterTemplates",
            "set max_prepared_stmt_count: 176",
        ),
        (
            vec![("/threads", json!([2, 200]))],
            "spec.parameterTemplates",
            "set max_connections: 210",
        ),
        (
            vec![
                ("/threads", json!([128])),
                ("/workloads/0/sysbench/tables", json!(400)),
                ("/workloads/0/sysbench/tableSize", json!(10)),
            ],
            "spec.workloads",
            "about 26 s",
        ),
        (
            vec![("/workloads/0/sysbench/tableSize", json!(10_000_000))],
            "spec.databases[0].managed.storage.size",
            "of data",
        ),
        (
            vec![("/auditSettings/1/log/limit", json!("3Gi"))],
            "spec.databases[0].managed.storage.size",
            "log: {volume: Separate}",
        ),
        (
            vec![("/instanceSizes/0/memory", json!("128Mi"))],
            "spec.instanceSizes[0].memory",
            "raise memory",
        ),
        (
            vec![(
                "/parameterTemplates/0/parameters/innodb_buffer_pool_size",
                json!("2G"),
            )],
            "spec.instanceSizes[0].memory",
            "the kernel kills the server",
        ),
        (
            vec![
                ("/run/duration", json!("600s")),
                ("/maximumDuration", json!("48h")),
            ],
            "spec.auditSettings[1].log.limit",
            "16000 statements a second (assumed from its CPUs)",
        ),
        (
            vec![("/run/load", json!({"type": "Rate", "rate": 100}))],
            "spec.comparisons[0].primary",
            "use primary: LatencyMean",
        ),
        (
            vec![("/maximumDuration", json!("5m"))],
            "spec.maximumDuration",
            "38 runs on 14 boots take about",
        ),
        (
            vec![("/repetitions/blocks", json!(1000)), ("/threads", json!(many))],
            "spec",
            "at most 10000 runs",
        ),
        (
            vec![(
                sysbench,
                json!({"script": "oltp_read_only", "tables": 0, "tableSize": 0}),
            )],
            "spec.workloads[0].sysbench.tableSize",
            "at least 1 row",
        ),
    ]
}
