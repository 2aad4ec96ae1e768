//! Which value of a parameter wins: template < its part for one database < instance size < audit setting, all of it
//! over the database's base configuration, and what a reader should know about the outcome.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crds::BenchmarkCampaignSpec;
use crds::load::RestartWhen;
use crds::parameter::{ParameterValue, Parameters};

use super::{Levels, Matrix, Problem, Row, inert, relative};

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
    /// Values of the base configuration that nothing overrides.
    pub base: Parameters,
    /// Shares of the instance that a value was written as, by parameter.
    pub shares: BTreeMap<String, String>,
}

pub(super) fn resolve(matrix: &Matrix<'_>, levels: Levels) -> Resolved {
    let mut resolved = Resolved::default();
    let mut values: BTreeMap<&str, (Layer, ParameterValue)> = BTreeMap::new();
    for (layer, parameters) in layers(matrix.spec, levels) {
        for (name, said) in parameters {
            let value = on(matrix.spec, levels, name, said);
            if layer != Layer::Base {
                resolved.parameters.insert(name.clone(), value.clone());
            }
            if said.relative().is_some() {
                resolved.shares.insert(name.clone(), said.to_string());
            } else {
                resolved.shares.remove(name);
            }
            resolved.layers.insert(name.clone(), layer);
            if let Some((before, lost)) = values.insert(name, (layer, value.clone()))
                && lost != value
            {
                resolved.overridden.push((name.clone(), before, lost));
            }
        }
    }
    resolved.base = values
        .into_iter()
        .filter(|(_, (layer, _))| *layer == Layer::Base)
        .map(|(name, (_, value))| (name.to_owned(), value))
        .collect();
    resolved
}

/// A value on the instance of a row: a share of it as the number that it comes to.
fn on(spec: &BenchmarkCampaignSpec, levels: Levels, name: &str, value: &ParameterValue) -> ParameterValue {
    let (database, size) = (
        &spec.databases[levels.database],
        &spec.instance_sizes[levels.size],
    );
    relative::on_instance(name, value, database, size).map_or_else(|_| value.clone(), Cow::into_owned)
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
        .map(|value| on(matrix.spec, levels, name, value))
}

/// Shares of an instance that come to no number there.
pub(super) fn unresolved(spec: &BenchmarkCampaignSpec, rows: &[Row]) -> Vec<Problem> {
    let mut problems = BTreeSet::new();
    for row in rows {
        let levels = row.levels;
        let (database, size) = (
            &spec.databases[levels.database],
            &spec.instance_sizes[levels.size],
        );
        for (layer, parameters) in layers(spec, levels) {
            for (name, value) in parameters {
                if let Err(why) = relative::on_instance(name, value, database, size) {
                    problems.insert(Problem::new(
                        format!("{}.{name}", field(spec, levels, layer)),
                        why,
                        "a share must come to a number on every instance size",
                        "raise it, or write the number",
                    ));
                }
            }
        }
    }
    problems.into_iter().collect()
}

/// Path of a layer of a row.
fn field(spec: &BenchmarkCampaignSpec, levels: Levels, layer: Layer) -> String {
    match layer {
        Layer::Base => format!("spec.databases[{}].managed.configuration", levels.database),
        Layer::Template => format!("spec.parameterTemplates[{}].parameters", levels.template),
        Layer::TemplatePerDatabase => {
            let database = &spec.databases[levels.database].name;
            let own = &spec.parameter_templates[levels.template].per_database;
            let place = own.iter().position(|own| own.database == *database).unwrap_or(0);
            format!(
                "spec.parameterTemplates[{}].perDatabase[{place}].parameters",
                levels.template
            )
        }
        Layer::InstanceSize => format!("spec.instanceSizes[{}].parameters", levels.size),
        Layer::AuditSetting => format!("spec.auditSettings[{}].parameters", levels.audit),
    }
}

/// What shares of the instance come to: by parameter, share and origin, the value on each database and size.
type Shares = BTreeMap<(String, String, String), BTreeMap<(usize, usize), String>>;

/// What a reader should know about parameters: overrides, inert ones, arms that trade durability.
pub(super) fn notes(matrix: &Matrix<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut said = BTreeSet::new();
    let mut shares = Shares::new();
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
        for (name, share) in &resolved.shares {
            let value = resolved.parameters.get(name).or_else(|| resolved.base.get(name));
            if let (Some(layer), Some(value)) = (resolved.layers.get(name), value) {
                let of = (name.clone(), share.clone(), origin(matrix, levels, *layer));
                let on = (levels.database, levels.size);
                shares.entry(of).or_default().insert(on, value.to_string());
            }
        }
        durability(matrix, levels, &resolved, &mut say);
        for name in resolved.parameters.keys().chain(resolved.base.keys()) {
            if let Some(why) = inert::why(matrix, levels, name) {
                say(why);
            }
        }
    }
    notes.extend(shares.into_iter().map(|((name, share, origin), values)| {
        let one_database = values
            .keys()
            .all(|(database, _)| Some(database) == values.keys().next().map(|(d, _)| d));
        let on: Vec<String> = values
            .into_iter()
            .map(|((database, size), value)| {
                let size = &matrix.spec.instance_sizes[size].name;
                if one_database {
                    format!("{value} on {size}")
                } else {
                    format!("{value} on {} {size}", matrix.spec.databases[database].name)
                }
            })
            .collect();
        format!("{name}: {share} ({origin}) is {}", on.join(", "))
    }));
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

pub(super) fn is_off(value: &ParameterValue) -> bool {
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
