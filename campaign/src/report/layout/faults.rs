//! What a table of figures can tell against itself: costs that are gains, tables that are copies, queries that are not
//! those of the load, and how far the differences really run.

use std::collections::BTreeMap;

use crds::BenchmarkCampaignSpec;
use crds::audit::AuditType;
use crds::campaign::Metric;

use super::sheet::Means;
use super::{Against, Dimension, Figure, Relative};
use crate::budget::statements;
use crate::inference::{Deltas, Direction, identical_tables};

/// Queries in a transaction may differ so much from the load's own, as a share: deadlocks are tried again.
const QUERIES_APART: f64 = 0.01;

pub(super) fn notes(spec: &BenchmarkCampaignSpec, means: &Means<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(relative), Some(first)) = (&means.layout.relative, means.layout.figures.first()) {
        notes.push(match relative.against {
            Against::PercentOf => format!("% of base: {first} against {}.", relative.baseline),
            Against::Difference => format!("diff %: {first} against {}.", relative.baseline),
        });
        ranges(spec, means, relative, &mut notes);
        gains(spec, means, relative, &mut notes);
    }
    copies(spec, means, &mut notes);
    queries(spec, means, &mut notes);
    if means.layout.figures.contains(&Figure::LogPerDay) {
        notes.push(format!(
            "GiB a day are bytes for each statement times {} statements a day.",
            means.layout.statements_a_day
        ));
    }
    notes
}

/// From where to where each level lies: a text that names one number names one of these.
fn ranges(spec: &BenchmarkCampaignSpec, means: &Means<'_>, relative: &Relative, notes: &mut Vec<String>) {
    let Some(figure) = means.layout.figures.first() else {
        return;
    };
    for level in relative.axis.levels(spec) {
        let ratios: Vec<f64> = means
            .cells
            .iter()
            .filter(|cell| relative.axis.level(&cell.cell) == level)
            .filter_map(|cell| means.ratio(relative, cell))
            .collect();
        if ratios.len() > 1 {
            let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let highest = ratios.iter().copied().fold(0.0, f64::max);
            notes.push(format!(
                "{figure} with {level} is {:.1} % to {:.1} % of that with {} ({} cells).",
                100.0 * lowest,
                100.0 * highest,
                relative.baseline,
                ratios.len()
            ));
        }
    }
}

/// Auditing can only cost: where single runs show gains, they show the noise.
fn gains(spec: &BenchmarkCampaignSpec, means: &Means<'_>, relative: &Relative, notes: &mut Vec<String>) {
    let Some(figure) = means.layout.figures.first() else {
        return;
    };
    let nothing = spec
        .audit_settings
        .iter()
        .any(|audit| audit.name == relative.baseline && audit.type_ == AuditType::None);
    if relative.axis != Dimension::AuditSetting || !nothing || !means.all_single() {
        return;
    }
    let ratios: Vec<f64> = means
        .cells
        .iter()
        .filter_map(|cell| means.ratio(relative, cell))
        .map(f64::ln)
        .collect();
    let direction = if figure.more_is_better() {
        Direction::HigherIsBetter
    } else {
        Direction::LowerIsBetter
    };
    if let Some(deltas) = Deltas::of_a_cost(&ratios, direction).filter(|deltas| deltas.gains > 0) {
        notes.push(deltas.sentence());
    }
}

/// Two levels of an axis with the same figures to the last digit are one table, printed twice.
fn copies(spec: &BenchmarkCampaignSpec, means: &Means<'_>, notes: &mut Vec<String>) {
    let measured = [Metric::Qps, Metric::Tps].map(Figure::Metric);
    for axis in Dimension::ALL {
        let levels = axis.levels(spec);
        let tables: Vec<BTreeMap<String, f64>> = levels
            .iter()
            .map(|level| {
                let mut table = BTreeMap::new();
                for cell in means.cells.iter().filter(|cell| axis.level(&cell.cell) == *level) {
                    let rest: Vec<String> = Dimension::ALL
                        .into_iter()
                        .filter(|other| *other != axis)
                        .map(|other| other.level(&cell.cell))
                        .collect();
                    for figure in measured {
                        if let Some(value) = means.mean(cell, figure) {
                            table.insert(format!("{figure}/{}", rest.join("/")), value);
                        }
                    }
                }
                table
            })
            .collect();
        for (place, one) in tables.iter().enumerate() {
            for (other_place, other) in tables.iter().enumerate().skip(place + 1) {
                let values = |table: &BTreeMap<String, f64>| table.values().copied().collect::<Vec<_>>();
                if one.keys().eq(other.keys()) && identical_tables(&values(one), &values(other)) {
                    notes.push(format!(
                        "{} and {} have the same figures to the last digit ({} of them): two measurements never do, so one is a copy.",
                        levels[place],
                        levels[other_place],
                        one.len()
                    ));
                }
            }
        }
    }
}

/// What a transaction sent against what the script and its options send.
fn queries(spec: &BenchmarkCampaignSpec, means: &Means<'_>, notes: &mut Vec<String>) {
    for workload in &spec.workloads {
        let expected = workload
            .sysbench
            .as_ref()
            .and_then(statements::queries_per_transaction);
        let Some(expected) = expected.map(|count| count as f64) else {
            continue;
        };
        let found: Vec<f64> = means
            .cells
            .iter()
            .filter(|cell| cell.cell.workload == workload.name)
            .filter_map(|cell| means.mean(cell, Figure::QueriesPerTransaction))
            .collect();
        let apart: Vec<&f64> = found
            .iter()
            .filter(|found| (**found / expected - 1.0).abs() > QUERIES_APART)
            .collect();
        if let Some(one) = apart.first() {
            notes.push(format!(
                "{}: {} of {} cells do not have the {expected:.0} queries a transaction that its script and options send; the first has {one:.2}.",
                workload.name,
                apart.len(),
                found.len()
            ));
        }
    }
}
