//! Workloads: the load generator must speak to the engine, its script must exist, its data must have a size.

use crds::BenchmarkCampaignSpec;
use crds::target::Engine;
use crds::workload::{Pgbench, Sysbench, WorkloadType};

use super::super::Problem;
use super::super::nearest::nearest;
use super::super::supported::{PREPARE_SCRIPTS, SCRIPTS, WORKLOADS, one_of, workloads_of};
use super::{engines_that_meet, unique};

pub(super) fn workloads(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    if spec.workloads.is_empty() {
        problems.push(Problem::new(
            "spec.workloads",
            "empty",
            "at least one workload",
            "add one",
        ));
    }
    unique(
        "spec.workloads",
        spec.workloads.iter().map(|w| w.name.as_str()),
        problems,
    );
    for (i, workload) in spec.workloads.iter().enumerate() {
        let at = format!("spec.workloads[{i}]");
        let engines = engines_that_meet(
            spec,
            |s| s.workload.as_ref().is_none_or(|name| *name == workload.name),
            |s| {
                s.instance_size.is_none()
                    && s.parameter_template.is_none()
                    && s.audit_setting.is_none()
                    && s.threads.is_none()
            },
        );
        let foreign: Vec<Engine> = engines
            .into_iter()
            .filter(|engine| !workloads_of(*engine).contains(&workload.type_))
            .collect();
        if let Some(engine) = foreign.first() {
            problems.push(Problem::new(
                format!("{at}.type"),
                format!("{:?} does not speak to {engine:?}", workload.type_),
                format!("{engine:?} is measured with {}", one_of(workloads_of(*engine))),
                "change type, or exclude the workload for the databases with this engine",
            ));
        } else if !WORKLOADS.contains(&workload.type_) {
            problems.push(Problem::new(
                format!("{at}.type"),
                format!("{:?}", workload.type_),
                format!("this release measures with {}", one_of(WORKLOADS)),
                "use one of these",
            ));
        }
        match (workload.type_, &workload.sysbench, &workload.pgbench) {
            (WorkloadType::Sysbench, Some(settings), None) => {
                sysbench(&format!("{at}.sysbench"), settings, problems);
            }
            (WorkloadType::Sysbench, None, _) => problems.push(Problem::new(
                format!("{at}.sysbench"),
                "not set",
                "type Sysbench needs sysbench: {script, tables, tableSize}",
                "set it",
            )),
            (WorkloadType::Sysbench, Some(_), Some(_)) => problems.push(Problem::new(
                format!("{at}.pgbench"),
                "set with type Sysbench",
                "exactly the member that type names",
                "remove pgbench, or change type",
            )),
            (WorkloadType::Pgbench, None, Some(settings)) => {
                pgbench(&format!("{at}.pgbench"), settings, problems);
            }
            (WorkloadType::Pgbench, _, None) => problems.push(Problem::new(
                format!("{at}.pgbench"),
                "not set",
                "type Pgbench needs pgbench: {scale, builtin}",
                "set it",
            )),
            (WorkloadType::Pgbench, Some(_), Some(_)) => problems.push(Problem::new(
                format!("{at}.sysbench"),
                "set with type Pgbench",
                "exactly the member that type names",
                "remove sysbench, or change type",
            )),
        }
    }
}

fn sysbench(at: &str, settings: &Sysbench, problems: &mut Vec<Problem>) {
    script(at, "script", &settings.script, SCRIPTS, settings, problems);
    if let Some(prepare) = &settings.prepare_script {
        let known: Vec<&str> = SCRIPTS.iter().chain(PREPARE_SCRIPTS).copied().collect();
        script(at, "prepareScript", prepare, &known, settings, problems);
    }
    match (settings.table_size, settings.size_to_memory_ratio) {
        (None, None) => problems.push(Problem::new(
            format!("{at}.tableSize"),
            "neither tableSize nor sizeToMemoryRatio is set",
            "exactly one of them",
            "set tableSize (rows per table), such as 1000000",
        )),
        (Some(_), Some(_)) => problems.push(Problem::new(
            format!("{at}.sizeToMemoryRatio"),
            "set together with tableSize",
            "exactly one of them",
            "remove one",
        )),
        (Some(rows), None) if rows < 1 => problems.push(Problem::new(
            format!("{at}.tableSize"),
            rows.to_string(),
            "at least 1 row per table",
            "correct the number",
        )),
        (None, Some(ratio)) if !(1..=10_000).contains(&ratio) => problems.push(Problem::new(
            format!("{at}.sizeToMemoryRatio"),
            ratio.to_string(),
            "from 1 to 10000 percent of the instance's memory",
            "write 120 for 1.2 times the memory",
        )),
        _ => {}
    }
    if !(1..=10_000).contains(&settings.tables) {
        problems.push(Problem::new(
            format!("{at}.tables"),
            settings.tables.to_string(),
            "from 1 to 10000 tables",
            "correct the number",
        ));
    }
}

fn pgbench(at: &str, settings: &Pgbench, problems: &mut Vec<Problem>) {
    match (settings.scale, settings.size_to_memory_ratio) {
        (None, None) => problems.push(Problem::new(
            format!("{at}.scale"),
            "neither scale nor sizeToMemoryRatio is set",
            "exactly one of them",
            "set scale (100000 accounts each), such as 100",
        )),
        (Some(_), Some(_)) => problems.push(Problem::new(
            format!("{at}.sizeToMemoryRatio"),
            "set together with scale",
            "exactly one of them",
            "remove one",
        )),
        (Some(scale), None) if !(1..=1_000_000).contains(&scale) => problems.push(Problem::new(
            format!("{at}.scale"),
            scale.to_string(),
            "from 1 to 1000000",
            "correct the number",
        )),
        (None, Some(ratio)) if !(1..=10_000).contains(&ratio) => problems.push(Problem::new(
            format!("{at}.sizeToMemoryRatio"),
            ratio.to_string(),
            "from 1 to 10000 percent of the instance's memory",
            "write 120 for 1.2 times the memory",
        )),
        _ => {}
    }
    if settings.builtin.is_some() && settings.script_config_map.is_some() {
        problems.push(Problem::new(
            format!("{at}.builtin"),
            "set together with scriptConfigMap",
            "a built-in script or scripts of your own",
            "remove one",
        ));
    }
    if let Some(tries) = settings.max_tries.filter(|tries| !(1..=1_000).contains(tries)) {
        problems.push(Problem::new(
            format!("{at}.maxTries"),
            tries.to_string(),
            "from 1 to 1000 tries of a transaction",
            "correct the number",
        ));
    }
}

fn script(
    at: &str,
    field: &str,
    name: &str,
    bundled: &[&str],
    settings: &Sysbench,
    problems: &mut Vec<Problem>,
) {
    let plain = name.strip_suffix(".lua").unwrap_or(name);
    let own = settings.lua_config_map.is_some();
    if bundled.contains(&plain) || (own && name != plain) {
        return;
    }
    let remedy = match nearest(plain, bundled.iter().copied()) {
        Some(near) if !own => format!("did you mean {near}?"),
        _ if own => format!("write {plain}.lua if that is a key of the ConfigMap"),
        _ => "for a script of your own set luaConfigMap and name its key, such as my_load.lua".to_owned(),
    };
    problems.push(Problem::new(
        format!("{at}.{field}"),
        format!("{name:?} is not a script that comes with sysbench"),
        format!("{}, or a .lua file of luaConfigMap", bundled.join(", ")),
        remedy,
    ));
}

pub(super) fn notes(spec: &BenchmarkCampaignSpec) -> Vec<String> {
    let mut notes = Vec::new();
    for workload in &spec.workloads {
        if let Some(settings) = &workload.sysbench
            && settings.script.starts_with("oltp_")
            && !settings.options.contains_key("rand-type")
            && !settings.options.contains_key("rand_type")
        {
            notes.push(format!(
                "workload {}: rand-type is not set; sysbench 1.0 takes special and 1.1 takes uniform, so figures of two versions cannot be compared",
                workload.name
            ));
        }
    }
    notes
}
