//! Every refusal, one line each: what is changed in the quickstart, which field must be named, in which words.

use serde_json::{Value, json};

use super::{changed, problems};
use crate::matrix::Problem;

mod questions;

/// Changes to the quickstart, the field that the refusal must name, and words that it must have.
type Refusal = (Vec<(&'static str, Value)>, &'static str, &'static str);

fn external() -> Value {
    json!({"name": "borrowed", "engine": "MariaDB", "type": "External", "external": {"targets": [
        {"instanceSize": "other", "targetRef": {"name": "t"}}
    ]}})
}

fn pgbench(settings: &Value) -> Value {
    json!({"name": "read-only", "type": "Pgbench", "pgbench": settings})
}

fn of_axes_and_load() -> Vec<Refusal> {
    vec![
        (
            vec![("/databases/0/engine", json!("PostgreSQL"))],
            "spec.auditSettings[1].type",
            "PostgreSQL has None, LogStatement, PgAudit",
        ),
        (
            vec![("/databases/0/engine", json!("MySQL"))],
            "spec.auditSettings[1].type",
            "exclude audit-all for the databases with engine MySQL",
        ),
        (
            vec![("/databases/0/managed", Value::Null)],
            "spec.databases[0].managed",
            "set the image",
        ),
        (
            vec![("/databases/0/managed/image", json!(" "))],
            "spec.databases[0].managed.image",
            "empty",
        ),
        (
            vec![("/databases/0/managed/storage/size", json!("ten"))],
            "spec.databases[0].managed.storage.size",
            "\"ten\"",
        ),
        (
            vec![
                ("/databases/-", external()),
                ("/cache", json!({"state": "Dumped"})),
            ],
            "spec.cache.state",
            "configuration file is not ours",
        ),
        (
            vec![("/databases/-", external())],
            "spec.databases[1].external.targets",
            "no target for instance size 1u1g",
        ),
        (
            vec![("/databases/-", external())],
            "spec.databases[1].external.targets[0].instanceSize",
            "known are 1u1g",
        ),
        (
            vec![(
                "/databases/-",
                json!({"name": "mariadb-10-11", "engine": "MariaDB", "type": "Managed", "managed": {"image": "m"}}),
            )],
            "spec.databases",
            "more than once",
        ),
        (
            vec![("/instanceSizes/0/cpu", json!("0"))],
            "spec.instanceSizes[0].cpu",
            "above 0",
        ),
        (
            vec![("/instanceSizes/0/memory", json!("1gb"))],
            "spec.instanceSizes[0].memory",
            "\"1gb\"",
        ),
        (
            vec![("/instanceSizes/0/parameters", json!({"max-connections": 5}))],
            "spec.instanceSizes[0].parameters.max-connections",
            "write max_connections",
        ),
        (
            vec![("/parameterTemplates/0/parameters/general_log", json!("ON"))],
            "spec.parameterTemplates[0].parameters.general_log",
            "type GeneralLog",
        ),
        (
            vec![(
                "/parameterTemplates/0/parameters/server_audit_logging",
                json!("ON"),
            )],
            "spec.parameterTemplates[0].parameters.server_audit_logging",
            "ServerAudit",
        ),
        (
            vec![("/parameterTemplates/0/parameters/datadir", json!("/x"))],
            "spec.parameterTemplates[0].parameters.datadir",
            "the operator",
        ),
        (
            vec![("/parameterTemplates/0/parameters/sql_mode", json!("a\nb"))],
            "spec.parameterTemplates[0].parameters.sql_mode",
            "one line",
        ),
        (
            vec![(
                "/parameterTemplates/0/perDatabase",
                json!([{"database": "mariadb-10-12", "parameters": {}}]),
            )],
            "spec.parameterTemplates[0].perDatabase[0].database",
            "did you mean mariadb-10-11?",
        ),
        (
            vec![(
                "/auditSettings/1",
                json!({"name": "audit-all", "type": "PgAudit"}),
            )],
            "spec.auditSettings[1].type",
            "PgAudit does not exist for MariaDB",
        ),
        (
            vec![("/auditSettings/1", json!({"name": "audit-all", "type": "Custom"}))],
            "spec.auditSettings[1].type",
            "this release measures None, ServerAudit, GeneralLog, SlowLog",
        ),
        (
            vec![("/auditSettings/1/type", json!("GeneralLog"))],
            "spec.auditSettings[1].serverAudit",
            "another type",
        ),
        (
            vec![(
                "/auditSettings/1",
                json!({"name": "audit-all", "type": "GeneralLog", "state": "InstalledOff"}),
            )],
            "spec.auditSettings[1].state",
            "type: None",
        ),
        (
            vec![(
                "/auditSettings/1",
                json!({"name": "audit-all", "type": "GeneralLog", "generalLog": {"output": "Table"}}),
            )],
            "spec.auditSettings[1].generalLog.output",
            "output: File",
        ),
        (
            vec![("/auditSettings/1/serverAudit/events", json!(["All", "Query"]))],
            "spec.auditSettings[1].serverAudit.events",
            "All is every class",
        ),
        (
            vec![("/auditSettings/1/log/limit", json!("0"))],
            "spec.auditSettings[1].log.limit",
            "above 0",
        ),
        (
            vec![("/auditSettings/0/log", json!({"limit": "1Gi"}))],
            "spec.auditSettings[0].log",
            "no log",
        ),
        (
            vec![(
                "/workloads/0",
                json!({"name": "read-only", "type": "Pgbench", "pgbench": {"scale": 1}}),
            )],
            "spec.workloads[0].type",
            "Pgbench does not speak to MariaDB",
        ),
        (
            vec![("/workloads/0/sysbench", Value::Null)],
            "spec.workloads[0].sysbench",
            "not set",
        ),
        (
            vec![("/workloads/0", json!({"name": "read-only", "type": "Pgbench"}))],
            "spec.workloads[0].pgbench",
            "not set",
        ),
        (
            vec![("/workloads/0", pgbench(&json!({})))],
            "spec.workloads[0].pgbench.scale",
            "exactly one",
        ),
        (
            vec![(
                "/workloads/0",
                pgbench(&json!({"scale": 1, "sizeToMemoryRatio": 120})),
            )],
            "spec.workloads[0].pgbench.sizeToMemoryRatio",
            "remove one",
        ),
        (
            vec![("/workloads/0", pgbench(&json!({"scale": 0, "maxTries": 0})))],
            "spec.workloads[0].pgbench.maxTries",
            "from 1 to 1000",
        ),
        (
            vec![(
                "/workloads/0",
                pgbench(&json!({"scale": 1, "builtin": "SelectOnly", "scriptConfigMap": "own"})),
            )],
            "spec.workloads[0].pgbench.builtin",
            "remove one",
        ),
        (
            vec![(
                "/workloads/0",
                pgbench(&json!({"scale": 1, "scriptConfigMap": "own"})),
            )],
            "spec.comparisons[0].primary",
            "use primary: Tps",
        ),
        (
            vec![("/workloads/0/sysbench/script", json!("oltp_readonly"))],
            "spec.workloads[0].sysbench.script",
            "did you mean oltp_read_only?",
        ),
        (
            vec![("/workloads/0/sysbench/script", json!("my_load.lua"))],
            "spec.workloads[0].sysbench.script",
            "set luaConfigMap",
        ),
        (
            vec![("/workloads/0/sysbench/prepareScript", json!("oltp_commn"))],
            "spec.workloads[0].sysbench.prepareScript",
            "did you mean oltp_common?",
        ),
        (
            vec![("/workloads/0/sysbench/tableSize", Value::Null)],
            "spec.workloads[0].sysbench.tableSize",
            "exactly one",
        ),
        (
            vec![("/workloads/0/sysbench/sizeToMemoryRatio", json!(120))],
            "spec.workloads[0].sysbench.sizeToMemoryRatio",
            "remove one",
        ),
        (vec![("/threads", Value::Null)], "spec.threads", "not set"),
        (
            vec![("/threads", json!([0, 4]))],
            "spec.threads",
            "from 1 to 100000",
        ),
        (
            vec![("/threads", json!([4, 4]))],
            "spec.threads",
            "more than once",
        ),
        (
            vec![
                ("/threads", Value::Null),
                ("/threadSearch", json!({"minimum": 1, "maximum": 8})),
            ],
            "spec.threadSearch",
            "list them",
        ),
        (
            vec![("/exclude", json!([{}]))],
            "spec.exclude[0]",
            "names no axis",
        ),
        (
            vec![("/exclude", json!([{"auditSetting": "audit"}]))],
            "spec.exclude[0].auditSetting",
            "known are no-audit, audit-all",
        ),
        (
            vec![("/include", json!([{"threads": [3]}]))],
            "spec.include[0].threads",
            "known are 2, 4, 8",
        ),
        (
            vec![("/exclude", json!([{"workload": "read-only"}]))],
            "spec.exclude",
            "none is left",
        ),
        (
            vec![("/exclude", json!([{"auditSetting": "no-audit"}]))],
            "spec.comparisons[0].baseline",
            "keep no-audit",
        ),
        (
            vec![("/exclude", json!([{"auditSetting": "audit-all"}]))],
            "spec.comparisons[0]",
            "only no-audit is left",
        ),
        (
            vec![(
                "/exclude",
                json!([{"auditSetting": "no-audit", "threads": [2, 4]}, {"auditSetting": "audit-all", "threads": [8]}]),
            )],
            "spec.comparisons[0].baseline",
            "no thread count in common",
        ),
        (
            vec![("/loadGenerator/count", json!(65))],
            "spec.loadGenerator.count",
            "from 1 to 64",
        ),
        (
            vec![("/loadGenerator/count", json!(3))],
            "spec.loadGenerator.count",
            "2 threads are to be divided among them",
        ),
        (
            vec![("/run/duration", json!("500ms"))],
            "spec.run.duration",
            "whole seconds",
        ),
        (
            vec![("/run/warmup", json!("1500ms"))],
            "spec.run.warmup",
            "whole seconds",
        ),
        (
            vec![("/run/reportInterval", json!("10s"))],
            "spec.run.reportInterval",
            "at most the window",
        ),
        (
            vec![("/run/attempts", json!(0))],
            "spec.run.attempts",
            "from 1 to 10",
        ),
        (
            vec![("/run/load", json!({"type": "Rate"}))],
            "spec.run.load.rate",
            "set rate",
        ),
        (
            vec![("/run/load", json!({"type": "Closed", "rate": 5}))],
            "spec.run.load.rate",
            "type: Rate",
        ),
    ]
}

#[test]
fn everything_wrong_is_refused_with_field_value_and_remedy() {
    let mut cases = of_axes_and_load();
    cases.extend(questions::of_questions_and_budgets());
    assert!(cases.len() >= 40, "{}", cases.len());
    for (changes, field, words) in cases {
        let problems = problems(&changed(&changes));
        let found = problems
            .iter()
            .any(|problem| problem.field == field && problem.to_string().contains(words));
        let all: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert!(found, "{changes:?}\nwanted {field}: {words}\nfound {all:#?}");
        for problem in &problems {
            assert!(
                !problem.allowed.is_empty() && !problem.remedy.is_empty(),
                "{problem}"
            );
        }
    }
}
