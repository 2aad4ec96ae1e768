//! Which cells there are: the product of the axes, less what include and exclude leave out.

use crds::BenchmarkCampaignSpec;
use crds::campaign::CellSelector;

use super::supported::MOST_COMBINATIONS;
use super::{Levels, Problem, Row};

/// The rows of the matrix, in the order of the axes; rows without a thread count left are dropped.
pub(super) fn rows(spec: &BenchmarkCampaignSpec) -> Result<Vec<Row>, Problem> {
    let none = Vec::new();
    let own = spec.threads.as_ref().unwrap_or(&none);
    let threads_of = |size: usize| spec.instance_sizes[size].threads.as_ref().unwrap_or(own);
    let combinations = spec.databases.len()
        * spec.workloads.len()
        * spec.parameter_templates.len()
        * spec.audit_settings.len()
        * (0..spec.instance_sizes.len())
            .map(|size| threads_of(size).len())
            .sum::<usize>();
    if combinations > MOST_COMBINATIONS {
        return Err(Problem::new(
            "spec",
            format!("the axes make {combinations} combinations"),
            format!("at most {MOST_COMBINATIONS} can be looked at before include and exclude"),
            "give fewer levels, or make several campaigns",
        ));
    }
    let mut rows = Vec::new();
    for database in 0..spec.databases.len() {
        for size in 0..spec.instance_sizes.len() {
            for workload in 0..spec.workloads.len() {
                for template in 0..spec.parameter_templates.len() {
                    for audit in 0..spec.audit_settings.len() {
                        let levels = Levels {
                            database,
                            size,
                            workload,
                            template,
                            audit,
                        };
                        let threads = threads(spec, levels, threads_of(size));
                        if !threads.is_empty() {
                            rows.push(Row { levels, threads });
                        }
                    }
                }
            }
        }
    }
    if rows.is_empty() && combinations > 0 {
        return Err(Problem::new(
            if spec.include.is_empty() {
                "spec.exclude"
            } else {
                "spec.include"
            },
            format!("of {combinations} cells none is left"),
            "at least one cell must be measured",
            "remove a selector of exclude, or widen one of include",
        ));
    }
    Ok(rows)
}

fn threads(spec: &BenchmarkCampaignSpec, levels: Levels, declared: &[i32]) -> Vec<i32> {
    // Only selectors whose axes fit are asked about each thread count.
    let fitting = |list: &[CellSelector]| -> Vec<CellSelector> {
        list.iter()
            .filter(|selector| fits(spec, levels, selector))
            .cloned()
            .collect()
    };
    let (include, exclude) = (fitting(&spec.include), fitting(&spec.exclude));
    if !spec.include.is_empty() && include.is_empty() {
        return Vec::new();
    }
    let matches = |list: &[CellSelector], threads: i32| {
        list.iter().any(|selector| {
            selector
                .threads
                .as_ref()
                .is_none_or(|list| list.contains(&threads))
        })
    };
    let mut kept = Vec::with_capacity(declared.len());
    for &threads in declared {
        let included = spec.include.is_empty() || matches(&include, threads);
        if included && !matches(&exclude, threads) && !kept.contains(&threads) {
            kept.push(threads);
        }
    }
    kept
}

fn fits(spec: &BenchmarkCampaignSpec, levels: Levels, selector: &CellSelector) -> bool {
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    is(&selector.database, &spec.databases[levels.database].name)
        && is(&selector.instance_size, &spec.instance_sizes[levels.size].name)
        && is(
            &selector.parameter_template,
            &spec.parameter_templates[levels.template].name,
        )
        && is(&selector.audit_setting, &spec.audit_settings[levels.audit].name)
        && is(&selector.workload, &spec.workloads[levels.workload].name)
}
