//! Databases, instance sizes, parameter templates and the selectors over axes.

use std::collections::BTreeSet;

use crds::BenchmarkCampaignSpec;
use crds::campaign::{CellSelector, Database};
use crds::load::CacheState;
use crds::parameter::{ParameterValue, Parameters};
use crds::quantity;
use crds::target::{Engine, TargetType};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::super::Problem;
use super::super::nearest::nearest;
use super::super::supported::{BORROWED, ENGINES, one_of, reserved};
use super::unique;

pub(super) fn databases(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    if spec.databases.is_empty() {
        problems.push(Problem::new(
            "spec.databases",
            "empty",
            "at least one database",
            "add one",
        ));
    }
    unique(
        "spec.databases",
        spec.databases.iter().map(|d| d.name.as_str()),
        problems,
    );
    for (i, database) in spec.databases.iter().enumerate() {
        let at = format!("spec.databases[{i}]");
        if !ENGINES.contains(&database.engine) {
            problems.push(Problem::new(
                format!("{at}.engine"),
                format!("{:?}", database.engine),
                format!("this release measures {}", one_of(ENGINES)),
                "use one of these, or wait for a release that measures it",
            ));
        }
        match database.type_ {
            TargetType::Managed => managed(&at, database, problems),
            TargetType::External => external(&at, spec, database, problems),
        }
    }
}

fn managed(at: &str, database: &Database, problems: &mut Vec<Problem>) {
    let Some(managed) = &database.managed else {
        problems.push(Problem::new(
            format!("{at}.managed"),
            "not set",
            "type Managed needs managed: {image}",
            "set the image, such as mariadb:11.8",
        ));
        return;
    };
    if managed.image.trim().is_empty() {
        problems.push(Problem::new(
            format!("{at}.managed.image"),
            "empty",
            "an image with the server's own programs",
            "set it, such as mariadb:11.8",
        ));
    }
    if let Some(version) = too_old(database) {
        problems.push(Problem::new(
            format!("{at}.expect.version"),
            version,
            "this release runs MySQL from 5.7 on: an older server cannot make its own data directory",
            "use a newer image",
        ));
    }
    positive(
        &format!("{at}.managed.storage.size"),
        &managed.storage.size,
        "20Gi",
        problems,
    );
    parameters(
        &format!("{at}.managed.configuration"),
        &managed.configuration,
        problems,
    );
}

/// The version expected, if no managed server of it can be started: `mysqld --initialize` came with 5.7.
fn too_old(database: &Database) -> Option<&str> {
    let version = database.expect.as_ref()?.version.as_deref()?;
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next()??, parts.next().flatten());
    let old = major < 5 || (major == 5 && minor.is_some_and(|minor| minor < 7));
    (database.engine == Engine::MySQL && old).then_some(version)
}

fn external(at: &str, spec: &BenchmarkCampaignSpec, database: &Database, problems: &mut Vec<Problem>) {
    let Some(external) = &database.external else {
        problems.push(Problem::new(
            format!("{at}.external"),
            "not set",
            "type External needs external: {targets}",
            "name a BenchmarkTarget for each instance size",
        ));
        return;
    };
    if !BORROWED.contains(&database.engine) {
        problems.push(Problem::new(
            format!("{at}.type"),
            format!("External with engine {:?}", database.engine),
            format!("this release borrows {}", one_of(BORROWED)),
            "use type: Managed with the image of the same version",
        ));
    }
    if spec.cache.state == CacheState::Dumped {
        problems.push(Problem::new(
            "spec.cache.state",
            "Dumped with a borrowed database",
            "its configuration file is not ours: Cold or Prewarmed",
            "use cache: {state: Prewarmed}",
        ));
    }
    for size in &spec.instance_sizes {
        if !external
            .targets
            .iter()
            .any(|target| target.instance_size == size.name)
        {
            problems.push(Problem::new(
                format!("{at}.external.targets"),
                format!("no target for instance size {}", size.name),
                "every instance size needs a target, or its cells must be excluded",
                format!("add {{instanceSize: {}, targetRef: {{name: …}}}}", size.name),
            ));
        }
    }
    for (j, target) in external.targets.iter().enumerate() {
        if !spec
            .instance_sizes
            .iter()
            .any(|size| size.name == target.instance_size)
        {
            problems.push(unknown(
                format!("{at}.external.targets[{j}].instanceSize"),
                &target.instance_size,
                "instanceSizes",
                spec.instance_sizes.iter().map(|size| size.name.as_str()),
            ));
        }
    }
}

pub(super) fn sizes(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    if spec.instance_sizes.is_empty() {
        problems.push(Problem::new(
            "spec.instanceSizes",
            "empty",
            "at least one instance size",
            "add one",
        ));
    }
    unique(
        "spec.instanceSizes",
        spec.instance_sizes.iter().map(|s| s.name.as_str()),
        problems,
    );
    for (i, size) in spec.instance_sizes.iter().enumerate() {
        let at = format!("spec.instanceSizes[{i}]");
        positive(&format!("{at}.cpu"), &size.cpu, "4", problems);
        positive(&format!("{at}.memory"), &size.memory, "16Gi", problems);
        parameters(&format!("{at}.parameters"), &size.parameters, problems);
    }
}

pub(super) fn templates(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    let names = || spec.databases.iter().map(|database| database.name.as_str());
    unique(
        "spec.parameterTemplates",
        spec.parameter_templates.iter().map(|t| t.name.as_str()),
        problems,
    );
    for (i, template) in spec.parameter_templates.iter().enumerate() {
        let at = format!("spec.parameterTemplates[{i}]");
        parameters(&format!("{at}.parameters"), &template.parameters, problems);
        unique(
            &format!("{at}.perDatabase"),
            template.per_database.iter().map(|own| own.database.as_str()),
            problems,
        );
        for (j, own) in template.per_database.iter().enumerate() {
            let at = format!("{at}.perDatabase[{j}]");
            if !names().any(|name| name == own.database) {
                problems.push(unknown(
                    format!("{at}.database"),
                    &own.database,
                    "databases",
                    names(),
                ));
            }
            parameters(&format!("{at}.parameters"), &own.parameters, problems);
        }
    }
}

pub(super) fn parameters(at: &str, parameters: &Parameters, problems: &mut Vec<Problem>) {
    for (name, value) in parameters {
        let field = format!("{at}.{name}");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(plain) {
            let spelled = name.to_ascii_lowercase().replace('-', "_");
            problems.push(Problem::new(
                field,
                format!("the name {name:?}"),
                "names are written as the server lists them: lower case, with underscores",
                format!("write {spelled}"),
            ));
            continue;
        }
        if let Some(instead) = reserved(name) {
            problems.push(Problem::new(
                field,
                format!("{name} is set by the operator"),
                "it may not be set as a parameter",
                format!("use {instead}"),
            ));
            continue;
        }
        if let ParameterValue::Text(text) = value
            && (text.trim().is_empty() || text.contains(['\n', '\r', '\0']))
        {
            problems.push(Problem::new(
                field.clone(),
                format!("the value {text:?}"),
                "an integer or one line of text",
                "set a value, or remove the parameter",
            ));
        }
        if let Some(Err(error)) = value.relative() {
            problems.push(Problem::new(
                field,
                error.to_string(),
                "a share is of the instance's memory or cpu",
                "correct it, or write the number",
            ));
        }
    }
}

pub(super) fn positive(field: &str, value: &Quantity, example: &str, problems: &mut Vec<Problem>) {
    if quantity::millis(value).is_none_or(|millis| millis <= 0) {
        problems.push(Problem::new(
            field,
            format!("{:?}", value.0),
            "a quantity above 0",
            format!("write it as Kubernetes does, such as {example}"),
        ));
    }
}

/// A name that no level of an axis has.
pub(super) fn unknown<'a>(
    field: impl Into<String>,
    name: &str,
    axis: &str,
    levels: impl Iterator<Item = &'a str> + Clone,
) -> Problem {
    let remedy = nearest(name, levels.clone()).map_or_else(
        || format!("use one of these, or add it to {axis}"),
        |near| format!("did you mean {near}?"),
    );
    let known: Vec<&str> = levels.collect();
    Problem::new(
        field,
        format!("{name:?} is not the name of one of {axis}"),
        format!(
            "known are {}",
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        ),
        remedy,
    )
}

pub(super) fn selectors(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    for (list, selectors) in [("include", &spec.include), ("exclude", &spec.exclude)] {
        for (i, selector) in selectors.iter().enumerate() {
            selector_names(&format!("spec.{list}[{i}]"), spec, selector, problems);
        }
    }
}

fn selector_names(
    at: &str,
    spec: &BenchmarkCampaignSpec,
    selector: &CellSelector,
    problems: &mut Vec<Problem>,
) {
    if *selector == CellSelector::default() {
        problems.push(Problem::new(
            at,
            "names no axis",
            "at least one of database, instanceSize, parameterTemplate, auditSetting, workload and threads",
            "name one, or remove the selector",
        ));
    }
    let mut check = |field: &str, name: &Option<String>, axis: &str, levels: Vec<&str>| {
        if let Some(name) = name
            && !levels.contains(&name.as_str())
        {
            problems.push(unknown(
                format!("{at}.{field}"),
                name,
                axis,
                levels.iter().copied(),
            ));
        }
    };
    check(
        "database",
        &selector.database,
        "databases",
        spec.databases.iter().map(|l| l.name.as_str()).collect(),
    );
    check(
        "instanceSize",
        &selector.instance_size,
        "instanceSizes",
        spec.instance_sizes.iter().map(|l| l.name.as_str()).collect(),
    );
    check(
        "parameterTemplate",
        &selector.parameter_template,
        "parameterTemplates",
        spec.parameter_templates.iter().map(|l| l.name.as_str()).collect(),
    );
    check(
        "auditSetting",
        &selector.audit_setting,
        "auditSettings",
        spec.audit_settings.iter().map(|l| l.name.as_str()).collect(),
    );
    check(
        "workload",
        &selector.workload,
        "workloads",
        spec.workloads.iter().map(|l| l.name.as_str()).collect(),
    );
    let known: BTreeSet<i32> = spec
        .threads
        .iter()
        .chain(
            spec.instance_sizes
                .iter()
                .filter_map(|size| size.threads.as_ref()),
        )
        .flatten()
        .copied()
        .collect();
    for count in selector
        .threads
        .iter()
        .flatten()
        .filter(|count| !known.contains(count))
    {
        problems.push(Problem::new(
            format!("{at}.threads"),
            format!("{count} is not one of the thread counts"),
            format!(
                "known are {}",
                known.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
            ),
            "correct it, or add it to threads",
        ));
    }
}
