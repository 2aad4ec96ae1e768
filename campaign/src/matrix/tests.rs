//! Specs for tests, laws of the expansion, and every refusal.

use std::collections::BTreeSet;

use crds::parameter::ParameterValue;
use crds::{BenchmarkCampaign, BenchmarkCampaignSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Problem, expand};
use crate::blocks::lay_out;
use crate::budget::{self, Seen};
use crate::order::Seed;

mod refusals;
mod values;

/// The quickstart's manifest.
pub(crate) fn quickstart() -> BenchmarkCampaign {
    serde_yaml::from_str(include_str!("../../../examples/quickstart.yaml")).unwrap()
}

/// The quickstart's spec with parts replaced, by JSON pointer; null removes.
pub(crate) fn changed(changes: &[(&str, Value)]) -> BenchmarkCampaignSpec {
    let mut spec = serde_json::to_value(quickstart().spec).unwrap();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match spec.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent}")) {
            Value::Object(map) if value.is_null() => {
                map.remove(key);
            }
            Value::Object(map) => {
                map.insert(key.to_owned(), value.clone());
            }
            Value::Array(list) if key == "-" => list.push(value.clone()),
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value.clone(),
            other => panic!("{pointer} leads into {other}"),
        }
    }
    serde_json::from_value(spec).unwrap()
}

/// Every problem that planning finds, up to the budgets.
pub(crate) fn problems(spec: &BenchmarkCampaignSpec) -> Vec<Problem> {
    let matrix = match expand(spec) {
        Ok(matrix) => matrix,
        Err(problems) => return problems,
    };
    match lay_out(&matrix, Seed(1)) {
        Ok(plan) => budget::of(&matrix, &plan, &Seen::default()).problems,
        Err(problems) => problems,
    }
}

/// A mechanism that one of two engines lacks is fine where no cell brings them together.
#[test]
fn what_does_not_exist_may_be_excluded() {
    let mysql = json!({"name": "mysql-9", "engine": "MySQL", "type": "Managed", "managed": {"image": "mysql:9", "storage": {"size": "20Gi"}}});
    let both = ("/databases/-", mysql);
    let selectors = [
        json!({"database": "mysql-9", "auditSetting": "audit-all"}),
        json!({"database": "mysql-9"}),
    ];
    let foreign = |spec: &BenchmarkCampaignSpec| {
        let found = problems(spec);
        found
            .iter()
            .any(|problem| problem.field == "spec.auditSettings[1].type")
    };
    assert!(foreign(&changed(std::slice::from_ref(&both))));
    for selector in selectors {
        assert!(!foreign(&changed(&[
            both.clone(),
            ("/exclude", json!([selector]))
        ])));
    }
    // Some of its cells are left.
    let some = json!([{"database": "mysql-9", "auditSetting": "audit-all", "threads": [1]}]);
    assert!(foreign(&changed(&[both.clone(), ("/exclude", some)])));
    let elsewhere =
        json!([{"database": "mysql-9", "auditSetting": "no-audit"}, {"database": "mariadb-10-11"}]);
    assert!(!foreign(&changed(&[both, ("/include", elsewhere)])));
}

#[test]
fn every_problem_is_named_at_once() {
    let spec = changed(&[
        ("/databases/0/engine", json!("PostgreSQL")),
        ("/threads", json!([0])),
        ("/comparisons/0/baseline", json!("nobody")),
    ]);
    let fields: BTreeSet<String> = problems(&spec).into_iter().map(|problem| problem.field).collect();
    for field in [
        "spec.auditSettings[1].type",
        "spec.threads",
        "spec.comparisons[0].baseline",
    ] {
        assert!(fields.contains(field), "{field} is missing from {fields:?}");
    }
}

/// The quickstart's shape on another engine: its mechanisms, its sizes, its own reserved names.
#[test]
fn postgresql_is_planned_with_its_mechanisms() {
    let settings = json!([
        {"name": "no-audit", "type": "None"},
        {"name": "statements", "type": "LogStatement"},
        {"name": "pgaudit-off", "type": "PgAudit", "state": "InstalledOff"},
        {"name": "pgaudit", "type": "PgAudit", "pgAudit": {"classes": ["All"], "logParameter": true}},
    ]);
    let on = |changes: &[(&str, serde_json::Value)]| {
        let mut all = vec![
            ("/databases/0/engine", json!("PostgreSQL")),
            ("/databases/0/managed/image", json!("postgres:17")),
            ("/auditSettings", settings.clone()),
        ];
        all.extend(changes.iter().map(|(at, value)| (*at, value.clone())));
        changed(&all)
    };
    let spec = on(&[]);
    assert_eq!(problems(&spec), []);
    let matrix = expand(&spec).unwrap();
    let plan = lay_out(&matrix, Seed(1)).unwrap();
    let budget = budget::of(&matrix, &plan, &Seen::default());
    let memory = crds::quantity::whole(&spec.instance_sizes[0].memory).unwrap();
    // A quarter, less what the prepared statements take.
    let buffers = budget.instances[&(0, 0)].buffer_pool.unwrap();
    assert!(
        (memory / 4 - (8 << 20)..=memory / 4).contains(&buffers),
        "{buffers}"
    );

    for (field, value, said) in [
        (
            "/parameterTemplates/0/parameters",
            json!({"log_statement": "all"}),
            "LogStatement",
        ),
        (
            "/parameterTemplates/0/parameters",
            json!({"pgaudit.log": "all"}),
            "PgAudit",
        ),
        (
            "/parameterTemplates/0/parameters",
            json!({"shared_buffers": "100GB"}),
            "lower shared_buffers",
        ),
        (
            "/threads",
            json!([95]),
            "max_connections is not set and defaults to 100",
        ),
        ("/auditSettings/1/state", json!("InstalledOff"), "only a plugin"),
    ] {
        let found = problems(&on(&[(field, value.clone())]));
        assert!(
            found.iter().any(|p| p.to_string().contains(said)),
            "{value}: {found:?}"
        );
    }
}

#[test]
fn the_quickstart_is_right() {
    assert_eq!(problems(&quickstart().spec), []);
}

#[test]
fn later_layers_win_and_the_notes_say_so() {
    let spec = changed(&[
        (
            "/databases/0/managed/configuration",
            json!({"max_connections": 100, "innodb_log_file_size": "128M"}),
        ),
        (
            "/parameterTemplates/0/parameters",
            json!({"max_connections": 200, "max_prepared_stmt_count": 1000, "innodb_flush_log_at_trx_commit": 0, "sync_binlog": 1}),
        ),
        (
            "/parameterTemplates/0/perDatabase",
            json!([{"database": "mariadb-10-11", "parameters": {"max_connections": 300}}]),
        ),
        ("/instanceSizes/0/parameters", json!({"max_connections": 400})),
        ("/auditSettings/1/parameters", json!({"max_connections": "500"})),
    ]);
    let matrix = expand(&spec).unwrap();
    let value = |row: usize| matrix.parameters(matrix.rows[row].levels).parameters["max_connections"].clone();
    assert_eq!(value(0), ParameterValue::Integer(400));
    assert_eq!(value(1), ParameterValue::from("500"));
    assert!(
        !matrix
            .parameters(matrix.rows[0].levels)
            .parameters
            .contains_key("innodb_log_file_size")
    );
    insta::assert_yaml_snapshot!(matrix.notes);
}

#[test]
fn sizes_have_their_own_threads_and_selectors_pick_cells() {
    let spec = changed(&[
        (
            "/instanceSizes/-",
            json!({"name": "2u2g", "cpu": 2, "memory": "2Gi", "threads": [16, 32]}),
        ),
        (
            "/exclude",
            json!([{"instanceSize": "2u2g", "threads": [32]}, {"instanceSize": "1u1g", "auditSetting": "audit-all", "threads": [2]}]),
        ),
    ]);
    let matrix = expand(&spec).unwrap();
    let threads: Vec<_> = matrix.rows.iter().map(|row| row.threads.clone()).collect();
    assert_eq!(threads, [vec![2, 4, 8], vec![4, 8], vec![16], vec![16]]);
    assert_eq!(matrix.cells(), 7);
}

proptest! {
    #[test]
    fn a_cell_is_kept_exactly_if_it_is_included_and_not_excluded(
        include in proptest::collection::vec((0_usize..3, proptest::option::of(proptest::sample::subsequence(vec![2, 4, 8], 1..3))), 0..3),
        exclude in proptest::collection::vec((0_usize..3, proptest::option::of(proptest::sample::subsequence(vec![2, 4, 8], 1..3))), 0..3),
    ) {
        let name = |audit: usize| ["no-audit", "audit-all"].get(audit).copied();
        let selector = |(audit, threads): &(usize, Option<Vec<i32>>)| {
            let mut selector = serde_json::Map::new();
            if let Some(name) = name(*audit) { selector.insert("auditSetting".into(), json!(name)); }
            if let Some(threads) = threads { selector.insert("threads".into(), json!(threads)); }
            if selector.is_empty() { selector.insert("workload".into(), json!("read-only")); }
            Value::Object(selector)
        };
        let spec = changed(&[
            ("/include", json!(include.iter().map(selector).collect::<Vec<_>>())),
            ("/exclude", json!(exclude.iter().map(selector).collect::<Vec<_>>())),
        ]);
        let matches = |list: &[(usize, Option<Vec<i32>>)], audit: usize, threads: i32| list.iter().any(|(of, only)| {
            (*of == audit || name(*of).is_none()) && only.as_ref().is_none_or(|only| only.contains(&threads))
        });
        let mut expected = BTreeSet::new();
        for audit in 0..2 {
            for threads in [2, 4, 8] {
                if (include.is_empty() || matches(&include, audit, threads)) && !matches(&exclude, audit, threads) {
                    expected.insert((audit, threads));
                }
            }
        }
        match super::select::rows(&spec) {
            Ok(rows) => {
                let found: BTreeSet<_> = rows.iter().flat_map(|row| row.threads.iter().map(|threads| (row.levels.audit, *threads))).collect();
                prop_assert_eq!(found, expected);
            }
            Err(_) => prop_assert!(expected.is_empty()),
        }
    }
}
