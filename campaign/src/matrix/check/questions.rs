//! Repetitions, comparisons and acceptance criteria.

use std::collections::BTreeSet;

use crds::BenchmarkCampaignSpec;
use crds::audit::AuditType;
use crds::campaign::{Axis, Comparison, Inference, Metric, Order};
use crds::load::LoadType;
use crds::workload::Pgbench;

use super::super::Problem;
use super::axes::unknown;
use super::unique;
use crate::inference::{FEWEST_BOOTS, SMALLEST_PERCENTILE_MARGIN};

pub(super) fn repetitions(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    let repetitions = &spec.repetitions;
    if repetitions.blocks.is_some() && repetitions.looks.is_some() {
        problems.push(Problem::new(
            "spec.repetitions",
            "blocks and looks",
            "exactly one of blocks (a fixed number) and looks (planned sizes)",
            "remove one",
        ));
    }
    if repetitions.looks.is_some() && spec.order == Order::Grouped {
        problems.push(Problem::new(
            "spec.repetitions.looks",
            "set with order Grouped",
            "looks need whole blocks, which Grouped does not have",
            "use blocks, or order: Balanced",
        ));
    }
    if repetitions.looks.is_some() && spec.inference == Inference::Descriptive {
        problems.push(Problem::new(
            "spec.repetitions.looks",
            "set with inference Descriptive",
            "looks stop when a verdict is reached, and descriptive numbers have none",
            "use blocks, or inference: Comparative",
        ));
    }
    if let Some(blocks) = repetitions.blocks {
        let comparative = spec.inference == Inference::Comparative && !spec.comparisons.is_empty();
        if blocks < 1 || (comparative && blocks < FEWEST_BOOTS as i32) {
            problems.push(Problem::new(
                "spec.repetitions.blocks",
                blocks.to_string(),
                format!("at least {FEWEST_BOOTS} blocks support a verdict"),
                format!("set {FEWEST_BOOTS} or more, or inference: Descriptive for numbers without verdicts"),
            ));
        }
    }
}

fn levels(spec: &BenchmarkCampaignSpec, axis: Axis) -> (&'static str, Vec<&str>) {
    match axis {
        Axis::Database => (
            "databases",
            spec.databases.iter().map(|l| l.name.as_str()).collect(),
        ),
        Axis::InstanceSize => (
            "instanceSizes",
            spec.instance_sizes.iter().map(|l| l.name.as_str()).collect(),
        ),
        Axis::ParameterTemplate => (
            "parameterTemplates",
            spec.parameter_templates.iter().map(|l| l.name.as_str()).collect(),
        ),
        Axis::AuditSetting => (
            "auditSettings",
            spec.audit_settings.iter().map(|l| l.name.as_str()).collect(),
        ),
    }
}

pub(super) fn comparisons(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    unique(
        "spec.comparisons",
        spec.comparisons.iter().map(|c| c.name.as_str()),
        problems,
    );
    if spec.comparisons.len() > 8 {
        problems.push(Problem::new(
            "spec.comparisons",
            format!("{} comparisons", spec.comparisons.len()),
            "at most 8",
            "ask fewer questions, or make several campaigns",
        ));
    }
    for (i, comparison) in spec.comparisons.iter().enumerate() {
        let at = format!("spec.comparisons[{i}]");
        let (axis, names) = levels(spec, comparison.axis);
        if names.contains(&comparison.baseline.as_str()) {
            if names.len() < 2 {
                problems.push(Problem::new(
                    format!("{at}.axis"),
                    format!("{:?} has one level only", comparison.axis),
                    "a comparison sets at least one other level against the baseline",
                    format!("add a level to {axis}, or remove the comparison"),
                ));
            }
        } else {
            problems.push(unknown(
                format!("{at}.baseline"),
                &comparison.baseline,
                axis,
                names.iter().copied(),
            ));
        }
        primary(&at, comparison, problems);
        let given = matches!(
            comparison.primary,
            Metric::Qps | Metric::Tps | Metric::Transactions
        );
        if given && spec.run.load.type_ == LoadType::Rate {
            problems.push(Problem::new(
                format!("{at}.primary"),
                format!("{:?} under load of type Rate", comparison.primary),
                "the rate is given, so that arms cannot differ in it",
                "use primary: LatencyMean or LatencyP95, or load: {type: Closed}",
            ));
        }
        if comparison.primary == Metric::Qps
            && let Some(workload) = uncounted(spec)
        {
            problems.push(Problem::new(
                format!("{at}.primary"),
                format!("Qps, and workload {workload} runs scripts of your own"),
                "pgbench counts transactions, not the statements in them",
                "use primary: Tps",
            ));
        }
        own_levels(&at, comparison, axis, &names, problems);
        let asks = |other: &Comparison, level: &&&str| {
            **level != comparison.baseline && other.takes(level) && comparison.takes(level)
        };
        let same = spec.comparisons[..i].iter().find(|other| {
            other.axis == comparison.axis
                && other.baseline == comparison.baseline
                && names.iter().any(|level| asks(other, &level))
        });
        if let Some(same) = same {
            problems.push(Problem::new(
                at,
                format!("the same axis and baseline as {}", same.name),
                "one question is asked once: a second answer to it would be measured and tested twice",
                "remove one; other metrics are reported with each answer anyway",
            ));
        }
    }
}

/// The levels that a comparison names itself.
fn own_levels(at: &str, comparison: &Comparison, axis: &str, names: &[&str], problems: &mut Vec<Problem>) {
    let at = format!("{at}.levels");
    unique(&at, comparison.levels.iter().map(String::as_str), problems);
    for level in &comparison.levels {
        if *level == comparison.baseline {
            problems.push(Problem::new(
                at.clone(),
                format!("{level} is the baseline"),
                "the levels are set against the baseline",
                "remove it from levels",
            ));
        } else if !names.contains(&level.as_str()) {
            problems.push(unknown(at.clone(), level, axis, names.iter().copied()));
        }
    }
}

/// A workload whose queries nobody counts.
fn uncounted(spec: &BenchmarkCampaignSpec) -> Option<&str> {
    let own = |pgbench: &Pgbench| pgbench.script_config_map.is_some();
    let workload = spec
        .workloads
        .iter()
        .find(|w| w.pgbench.as_ref().is_some_and(own))?;
    Some(&workload.name)
}

fn primary(at: &str, comparison: &Comparison, problems: &mut Vec<Problem>) {
    if matches!(comparison.primary, Metric::CpuPerStatement | Metric::LogBytes) {
        problems.push(Problem::new(
            format!("{at}.primary"),
            format!("{:?}", comparison.primary),
            "Qps, Tps, Transactions, LatencyMean or LatencyP95: the others explain and never decide",
            "use primary: Qps; the others are reported with the answer",
        ));
    }
    let margin = comparison.equivalence_margin;
    if comparison.primary == Metric::LatencyP95 && margin.fraction() < SMALLEST_PERCENTILE_MARGIN {
        problems.push(Problem::new(
            format!("{at}.equivalenceMargin"),
            margin.to_string(),
            "at least 4% for LatencyP95: the histogram's steps are 1.8%",
            "raise it, or use primary: LatencyMean",
        ));
    }
}

pub(super) fn acceptance(spec: &BenchmarkCampaignSpec, problems: &mut Vec<Problem>) {
    if !spec.acceptance.is_empty() && spec.inference == Inference::Descriptive {
        problems.push(Problem::new(
            "spec.acceptance",
            "set with inference Descriptive",
            "descriptive numbers support no verdict",
            "remove acceptance, or use inference: Comparative",
        ));
    }
    let mut seen = BTreeSet::new();
    for (i, criterion) in spec.acceptance.iter().enumerate() {
        let at = format!("spec.acceptance[{i}]");
        let Some(comparison) = spec.comparisons.iter().find(|c| c.name == criterion.comparison) else {
            problems.push(unknown(
                format!("{at}.comparison"),
                &criterion.comparison,
                "comparisons",
                spec.comparisons.iter().map(|c| c.name.as_str()),
            ));
            continue;
        };
        let metric = criterion.metric.unwrap_or(comparison.primary);
        if !seen.insert((&criterion.comparison, metric)) {
            problems.push(Problem::new(
                at.clone(),
                format!("a second limit for {metric:?} of {}", criterion.comparison),
                "one limit for each metric of a comparison",
                "keep the stricter one",
            ));
        }
        let silent = comparison.axis == Axis::AuditSetting
            && spec
                .audit_settings
                .iter()
                .any(|audit| audit.name == comparison.baseline && audit.type_ == AuditType::None);
        if metric == Metric::LogBytes && silent {
            problems.push(Problem::new(
                format!("{at}.metric"),
                "LogBytes, and the baseline writes no log",
                "a limit is a share of the baseline's figure, which is 0 here",
                "use another metric, or a baseline that writes a log",
            ));
        }
    }
}

pub(super) fn notes(spec: &BenchmarkCampaignSpec) -> Vec<String> {
    let mut notes = Vec::new();
    for comparison in &spec.comparisons {
        if comparison.equivalence_margin.ppm == 0 {
            notes.push(format!(
                "comparison {}: with a margin of 0% no answer can be Equivalent",
                comparison.name
            ));
        }
        if matches!(comparison.axis, Axis::Database | Axis::InstanceSize) {
            notes.push(format!(
                "comparison {}: its arms are different instances, so an answer holds for this pair of instances only",
                comparison.name
            ));
        }
    }
    if spec.comparisons.is_empty() {
        notes.push("no comparison: cells are measured and no question is answered".to_owned());
    }
    notes
}
