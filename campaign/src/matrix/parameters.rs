//! Which value of a parameter wins: template < its part for one database < instance size < audit setting, all of it
//! over the database's base configuration, and what a reader should know about the outcome.

use std::collections::{BTreeMap, BTreeSet};

use crds::BenchmarkCampaignSpec;
use crds::load::RestartWhen;
use crds::parameter::{ParameterValue, Parameters};

use super::{Levels, Matrix, Problem, Row};
use crate::budget::{pgbench, statements};

/// Where a value comes from; a later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// `databases[].managed.configuration`.
    Base,
    /// `parameterTemplates[].parameters`.
    Template,
    /// `parameterTemplates[].perDatabase`.
    TemplatePerDatabase,
    /// `instanceSizes[].parameters`.
    InstanceSize,
    /// `auditSettings[].parameters`.
    AuditSetting,
}

/// Parameters of one row of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// What a run asks for; the base configuration is the target's and not among them.
    pub parameters: Parameters,
    /// The layer that each value comes from.
    pub layers: BTreeMap<String, Layer>,
    /// Values that lost, with their layer: (parameter, layer, value).
    pub overridden: Vec<(String, Layer, ParameterValue)>,
}

pub(super) fn resolve(matrix: &Matrix<'_>, levels: Levels) -> Resolved {
    let mut resolved = Resolved::default();
    for (layer, parameters) in layers(matrix.spec, levels) {
        for (name, value) in parameters {
            if layer != Layer::Base {
                resolved.parameters.insert(name.clone(), value.clone());
            }
            if let Some(before) = resolved.layers.insert(name.clone(), layer) {
                let lost = layers(matrix.spec, levels)
                    .into_iter()
                    .find(|(layer, _)| *layer == before)
                    .and_then(|(_, parameters)| parameters.get(name));
                if let Some(lost) = lost
                    && lost != value
                {
                    resolved.overridden.push((name.clone(), before, lost.clone()));
                }
            }
        }
    }
    resolved
}

/// The layers of a row, weakest first.
fn layers(spec: &BenchmarkCampaignSpec, levels: Levels) -> Vec<(Layer, &Parameters)> {
    let database = &spec.databases[levels.database];
    let template = &spec.parameter_templates[levels.template];
    let mut layers = Vec::with_capacity(5);
    if let Some(managed) = &database.managed {
        layers.push((Layer::Base, &managed.configuration));
    }
    layers.push((Layer::Template, &template.parameters));
    if let Some(own) = template
        .per_database
        .iter()
        .find(|own| own.database == database.name)
    {
        layers.push((Layer::TemplatePerDatabase, &own.parameters));
    }
    layers.push((Layer::InstanceSize, &spec.instance_sizes[levels.size].parameters));
    layers.push((Layer::AuditSetting, &spec.audit_settings[levels.audit].parameters));
    layers
}

/// Value of a parameter in force for a row, base configuration included.
pub(crate) fn in_force(matrix: &Matrix<'_>, levels: Levels, name: &str) -> Option<ParameterValue> {
    layers(matrix.spec, levels)
        .into_iter()
        .rev()
        .find_map(|(_, parameters)| parameters.get(name))
        .cloned()
}

/// What a reader should know about parameters: overrides, inert ones, arms that trade durability.
pub(super) fn notes(matrix: &Matrix<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut said = BTreeSet::new();
    let mut say = |note: String| {
        if said.insert(note.clone()) {
            notes.push(note);
        }
    };
    for row in &matrix.rows {
        let levels = row.levels;
        let resolved = resolve(matrix, levels);
        for (name, layer, lost) in &resolved.overridden {
            if let (Some(winner), Some(value)) = (resolved.layers.get(name), resolved.parameters.get(name)) {
                say(format!(
                    "{name}: {value} of {} overrides {lost} of {}",
                    origin(matrix, levels, *winner),
                    origin(matrix, levels, *layer)
                ));
            }
        }
        durability(matrix, levels, &resolved, &mut say);
        inert(matrix, levels, &resolved, &mut say);
    }
    notes
}

fn origin(matrix: &Matrix<'_>, levels: Levels, layer: Layer) -> String {
    match layer {
        Layer::Base => format!("the configuration of database {}", matrix.database(levels).name),
        Layer::Template => format!("template {}", matrix.template(levels).name),
        Layer::TemplatePerDatabase => format!(
            "template {} for database {}",
            matrix.template(levels).name,
            matrix.database(levels).name
        ),
        Layer::InstanceSize => format!("instance size {}", matrix.size(levels).name),
        Layer::AuditSetting => format!("audit setting {}", matrix.audit(levels).name),
    }
}

/// Settings that give up durability for speed: such an arm is not just faster.
fn durability(matrix: &Matrix<'_>, levels: Levels, resolved: &Resolved, say: &mut impl FnMut(String)) {
    for (name, value) in &resolved.parameters {
        let trades = match name.as_str() {
            "innodb_flush_log_at_trx_commit" => value.as_integer().is_some_and(|value| value != 1),
            "innodb_doublewrite" | "fsync" | "full_page_writes" | "synchronous_commit" => is_off(value),
            _ => false,
        };
        if trades && let Some(layer) = resolved.layers.get(name) {
            say(format!(
                "{} trades durability: {name} is {value}, and a crash can lose committed transactions",
                origin(matrix, levels, *layer)
            ));
        }
    }
}

/// Parameters that cannot matter to this load.
fn inert(matrix: &Matrix<'_>, levels: Levels, resolved: &Resolved, say: &mut impl FnMut(String)) {
    let workload = matrix.workload(levels);
    let read_only = workload.sysbench.as_ref().is_some_and(statements::read_only)
        || workload.pgbench.as_ref().is_some_and(pgbench::read_only);
    let binlog = in_force(matrix, levels, "log_bin").is_some_and(|value| !is_off(&value));
    for name in resolved.parameters.keys() {
        if name == "sync_binlog" && !binlog {
            say(format!(
                "sync_binlog is inert on database {}: log_bin is off",
                matrix.database(levels).name
            ));
        } else if matches!(
            name.as_str(),
            "innodb_flush_log_at_trx_commit" | "synchronous_commit" | "fsync" | "full_page_writes"
        ) && read_only
        {
            say(format!(
                "{name} is inert under workload {}: it only reads",
                workload.name
            ));
        }
    }
}

fn is_off(value: &ParameterValue) -> bool {
    let text = value.to_string();
    text == "0" || text.eq_ignore_ascii_case("off") || text.eq_ignore_ascii_case("false")
}

/// Without a restart before every arm, a value set for one arm would still be in force in the next arm if that one
/// says nothing about it.
pub(super) fn carried_over(spec: &BenchmarkCampaignSpec, rows: &[Row]) -> Vec<Problem> {
    let restarts = matches!(
        spec.restart.policy,
        RestartWhen::BeforeEachArm | RestartWhen::BeforeEachRun
    );
    if restarts {
        return Vec::new();
    }
    let names = |row: &Row| -> BTreeSet<String> {
        layers(spec, row.levels)
            .into_iter()
            .filter(|(layer, _)| *layer != Layer::Base)
            .flat_map(|(_, parameters)| parameters.keys().cloned())
            .collect()
    };
    let mut by_instance: BTreeMap<(usize, usize), (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    for row in rows {
        let own = names(row);
        by_instance
            .entry(row.levels.instance())
            .and_modify(|(all, some)| {
                some.extend(all.symmetric_difference(&own).cloned());
                all.retain(|name| own.contains(name));
            })
            .or_insert_with(|| (own, BTreeSet::new()));
    }
    let partial: BTreeSet<String> = by_instance.into_values().flat_map(|(_, some)| some).collect();
    partial
        .into_iter()
        .map(|name| {
            Problem::new(
                "spec.restart.policy",
                format!(
                    "{:?}, and {name} is set in some arms and not in others",
                    spec.restart.policy
                ),
                "without a restart a value stays in force in the next arm",
                format!("set {name} in every template, or use policy BeforeEachArm"),
            )
        })
        .collect()
}
