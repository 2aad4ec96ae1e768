//! What is wrong with a spec, whatever the cells: every problem is named, not only the first. The API server checks
//! most of this too; it is repeated so that a manifest can be planned without one.

mod audit;
mod axes;
mod questions;
mod workload;

use std::collections::BTreeSet;
use std::time::Duration;

use crds::BenchmarkCampaignSpec;
use crds::campaign::{CellSelector, Inference, Order};
use crds::load::LoadType;
use crds::target::Engine;
use crds::together::divides;

use super::Problem;
use super::supported::{GENERATORS, THREAD_SEARCH};

/// Every problem of a spec, in the order of its fields.
pub(super) fn spec(spec: &BenchmarkCampaignSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    axes::databases(spec, &mut problems);
    axes::sizes(spec, &mut problems);
    axes::templates(spec, &mut problems);
    audit::settings(spec, &mut problems);
    workload::workloads(spec, &mut problems);
    threads(spec, &mut problems);
    axes::selectors(spec, &mut problems);
    load(spec, &mut problems);
    questions::repetitions(spec, &mut problems);
    questions::comparisons(spec, &mut problems);
    questions::acceptance(spec, &mut problems);
    limits(spec, &mut problems);
    problems
}

/// What is worth knowing about a spec that is right.
pub(super) fn notes(spec: &BenchmarkCampaignSpec) -> Vec<String> {
    let mut notes = Vec::new();
    if spec.order == Order::Grouped {
        notes.push(
            "order Grouped measures all repetitions of an arm in a row, so what drifts over time looks like an effect of the arm".to_owned(),
        );
    }
    if spec.inference == Inference::Descriptive {
        notes.push("inference Descriptive: the numbers support no verdict".to_owned());
    }
    if spec.parallelism > 1 {
        notes.push(format!(
            "parallelism {}: runs are measured at once on different instances only; simultaneous measurements must not share a node or a disk",
            spec.parallelism
        ));
    }
    notes.extend(workload::notes(spec));
    notes.extend(questions::notes(spec));
    notes
}

/// Engines of the databases that meet a level of another axis: not those for which `include` and `exclude`, by these two
/// axes alone, leave no cell of it. `names` tells whether a selector is one of the level's, `only` whether it says
/// nothing of a third axis.
fn engines_that_meet(
    spec: &BenchmarkCampaignSpec,
    names: impl Fn(&CellSelector) -> bool,
    only: impl Fn(&CellSelector) -> bool,
) -> BTreeSet<Engine> {
    let here = |selector: &CellSelector, database: &str| {
        names(selector) && selector.database.as_deref().is_none_or(|name| name == database)
    };
    spec.databases
        .iter()
        .filter(|database| {
            let included = spec.include.is_empty() || spec.include.iter().any(|s| here(s, &database.name));
            let excluded = spec.exclude.iter().any(|s| only(s) && here(s, &database.name));
            included && !excluded
        })
        .map(|database| database.engine)
        .collect()
}

/// Names that appear more than once.
fn twice<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| !seen.insert(*name)).collect()
}

fn unique<'a>(field: &str, names: impl IntoIterator<Item = &'a str>, problems: &mut Vec<Problem>) {
    for name in twice(names) {
        problems.push(Problem::new(
            field,
            format!("the name {name} appears more than once"),
            "names are unique within an axis",
            "rename one of them",
        ));
    }
}

fn threads(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    if spec.thread_search.is_some() && !THREAD_SEARCH {
        problems.push(Problem::new(
            "spec.threadSearch",
            "set",
            "this release does not search for thread counts",
            "list them: threads: [2, 4, 8, 16]",
        ));
    } else if spec.threads.as_ref().is_none_or(Vec::is_empty)
        && !spec
            .instance_sizes
            .iter()
            .all(|size| size.threads.as_ref().is_some_and(|t| !t.is_empty()))
    {
        problems.push(Problem::new(
            "spec.threads",
            "not set",
            "every instance size needs thread counts",
            "set threads: [2, 4, 8], or threads of each instance size",
        ));
    }
    let own =
        spec.instance_sizes.iter().enumerate().filter_map(|(i, size)| {
            Some((format!("spec.instanceSizes[{i}].threads"), size.threads.as_ref()?))
        });
    let campaign = spec
        .threads
        .as_ref()
        .map(|threads| ("spec.threads".to_owned(), threads));
    for (field, threads) in campaign.into_iter().chain(own) {
        let mut seen = BTreeSet::new();
        for &count in threads {
            if !(1..=100_000).contains(&count) {
                problems.push(Problem::new(
                    field.clone(),
                    count.to_string(),
                    "from 1 to 100000 client threads",
                    "correct the number",
                ));
            } else if !seen.insert(count) {
                problems.push(Problem::new(
                    field.clone(),
                    format!("{count} appears more than once"),
                    "each thread count once",
                    "remove one; repetitions are set with repetitions.blocks",
                ));
            }
        }
    }
}

fn whole_seconds(field: &str, duration: kube::core::Duration, least: u64, problems: &mut Vec<Problem>) {
    let negative = duration.is_negative();
    let duration = Duration::from(duration);
    if negative || duration.subsec_nanos() != 0 || duration.as_secs() < least {
        problems.push(Problem::new(
            field,
            format!("{duration:?}"),
            format!("whole seconds, at least {least}s: the load generator counts in seconds"),
            "round it, such as 60s",
        ));
    }
}

/// Each load generator needs a thread of its own at every thread count, and a transaction a second of a rate.
fn generators(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    let count = spec.load_generator.count;
    if !(1..=GENERATORS).contains(&count) {
        problems.push(Problem::new(
            "spec.loadGenerator.count",
            count.to_string(),
            format!("from 1 to {GENERATORS} pods that apply load together"),
            "correct the number, or remove it",
        ));
        return;
    }
    let sizes = spec
        .instance_sizes
        .iter()
        .filter_map(|size| size.threads.as_ref());
    let too_few = spec
        .threads
        .iter()
        .chain(sizes)
        .flatten()
        .copied()
        .filter(|threads| *threads >= 1)
        .find(|threads| !divides(*threads, spec.run.load.rate, count));
    if let Some(threads) = too_few {
        problems.push(Problem::new(
            "spec.loadGenerator.count",
            format!("{count}, and {threads} threads are to be divided among them"),
            "a thread for each, and a transaction a second of a rate",
            "use fewer load generators, more threads or a higher rate",
        ));
    }
}

fn load(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    generators(spec, problems);
    let run = &spec.run;
    whole_seconds("spec.run.warmup", run.warmup, 0, problems);
    whole_seconds("spec.run.duration", run.duration, 1, problems);
    whole_seconds("spec.run.reportInterval", run.report_interval, 1, problems);
    if Duration::from(run.report_interval) > Duration::from(run.duration) {
        problems.push(Problem::new(
            "spec.run.reportInterval",
            format!("{:?}", Duration::from(run.report_interval)),
            format!("at most the window, {:?}", Duration::from(run.duration)),
            "shorten it, such as 1s",
        ));
    }
    if !(1..=10).contains(&run.attempts) {
        problems.push(Problem::new(
            "spec.run.attempts",
            run.attempts.to_string(),
            "from 1 to 10 attempts of a block",
            "correct the number",
        ));
    }
    match (run.load.type_, run.load.rate) {
        (LoadType::Rate, None) => problems.push(Problem::new(
            "spec.run.load.rate",
            "not set",
            "type Rate needs transactions per second",
            "set rate, such as half of what the baseline reaches at most",
        )),
        (LoadType::Rate, Some(rate)) if rate < 1 => problems.push(Problem::new(
            "spec.run.load.rate",
            rate.to_string(),
            "at least 1 transaction per second",
            "correct the number",
        )),
        (LoadType::Closed, Some(_)) => problems.push(Problem::new(
            "spec.run.load.rate",
            "set with type Closed",
            "a closed loop has no rate",
            "remove rate, or set type: Rate",
        )),
        _ => {}
    }
}

fn limits(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    if let Some(seed) = spec.seed.filter(|seed| *seed < 0) {
        problems.push(Problem::new(
            "spec.seed",
            seed.to_string(),
            "0 or more",
            "drop the sign, or leave it out",
        ));
    }
    if !(1..=64).contains(&spec.parallelism) {
        problems.push(Problem::new(
            "spec.parallelism",
            spec.parallelism.to_string(),
            "from 1 to 64 runs at once",
            "correct the number",
        ));
    }
    if Duration::from(spec.maximum_duration) < Duration::from_mins(1) || spec.maximum_duration.is_negative() {
        problems.push(Problem::new(
            "spec.maximumDuration",
            format!("{:?}", Duration::from(spec.maximum_duration)),
            "at least 1m",
            "raise it",
        ));
    }
    let settle = &spec.restart.settle;
    if Duration::from(settle.timeout) > Duration::from_mins(30) {
        problems.push(Problem::new(
            "spec.restart.settle.timeout",
            format!("{:?}", Duration::from(settle.timeout)),
            "at most 30m",
            "shorten it: a run goes on after it and records that the server had not settled",
        ));
    }
}
