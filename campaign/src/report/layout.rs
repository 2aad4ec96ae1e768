//! Tables of a campaign's cells in a layout of one's own: which axes are rows, which are columns, which figures, and
//! against which level they are set. Whatever axis is neither makes a table for each of its levels. A published study is
//! one line of such words; nothing here knows a study.

mod choice;
mod faults;
mod notes;
mod render;
mod sheet;
#[cfg(test)]
mod tests;

use std::fmt;

use crds::BenchmarkRun;
use crds::campaign::{Axis, BenchmarkCampaign, BenchmarkCampaignSpec, Metric};
use crds::names::ANNOTATION_TABLES;
use crds::run::Cell;
use kube::ResourceExt as _;

pub use choice::Choice;
pub use render::Format;
pub use sheet::{Column, Entry, Kind, Section, Sheet};

use crate::campaign_planner::by_cell;

/// An axis of the matrix, threads and workloads included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// databases
    Database,
    /// instanceSizes
    InstanceSize,
    /// workloads
    Workload,
    /// parameterTemplates
    ParameterTemplate,
    /// auditSettings
    AuditSetting,
    /// Client threads.
    Threads,
}

impl Dimension {
    /// All of them, in the order of the axes.
    pub const ALL: [Self; 6] = [
        Self::Database,
        Self::InstanceSize,
        Self::Workload,
        Self::ParameterTemplate,
        Self::AuditSetting,
        Self::Threads,
    ];

    /// The level of a cell.
    pub fn level(self, cell: &Cell) -> String {
        match self {
            Self::Database => cell.database.clone(),
            Self::InstanceSize => cell.instance_size.clone(),
            Self::Workload => cell.workload.clone(),
            Self::ParameterTemplate => cell.parameter_template.clone(),
            Self::AuditSetting => cell.audit_setting.clone(),
            Self::Threads => cell.threads.to_string(),
        }
    }

    /// The levels of a spec, in its own order.
    fn levels(self, spec: &BenchmarkCampaignSpec) -> Vec<String> {
        match self {
            Self::Database => spec.databases.iter().map(|level| level.name.clone()).collect(),
            Self::InstanceSize => spec
                .instance_sizes
                .iter()
                .map(|level| level.name.clone())
                .collect(),
            Self::Workload => spec.workloads.iter().map(|level| level.name.clone()).collect(),
            Self::ParameterTemplate => spec
                .parameter_templates
                .iter()
                .map(|level| level.name.clone())
                .collect(),
            Self::AuditSetting => spec
                .audit_settings
                .iter()
                .map(|level| level.name.clone())
                .collect(),
            Self::Threads => {
                let own = spec
                    .instance_sizes
                    .iter()
                    .flat_map(|size| size.threads.iter().flatten());
                let mut counts: Vec<i32> = spec.threads.iter().flatten().chain(own).copied().collect();
                counts.sort_unstable();
                counts.dedup();
                counts.iter().map(i32::to_string).collect()
            }
        }
    }
}

impl From<Axis> for Dimension {
    fn from(axis: Axis) -> Self {
        match axis {
            Axis::Database => Self::Database,
            Axis::InstanceSize => Self::InstanceSize,
            Axis::ParameterTemplate => Self::ParameterTemplate,
            Axis::AuditSetting => Self::AuditSetting,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// A metric that comparisons know.
    Metric(Metric),
    /// Bytes of audit log for each record.
    LogBytesPerRecord,
    /// GiB of audit log for a stated number of statements a day.
    LogPerDay,
    /// Queries in a transaction: what the load really sent.
    QueriesPerTransaction,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Metric(Metric::Tps),
        Self::Metric(Metric::Qps),
        Self::Metric(Metric::Transactions),
        Self::Metric(Metric::LatencyMean),
        Self::Metric(Metric::LatencyP95),
        Self::Metric(Metric::CpuPerStatement),
        Self::Metric(Metric::LogBytes),
        Self::LogBytesPerRecord,
        Self::LogPerDay,
        Self::QueriesPerTransaction,
    ];

    /// Its heading with the unit, and decimals.
    fn heading(self) -> (&'static str, usize) {
        match self {
            Self::Metric(Metric::Tps) => ("TPS", 2),
            Self::Metric(Metric::Qps) => ("QPS", 2),
            Self::Metric(Metric::Transactions) => ("transactions", 0),
            Self::Metric(Metric::LatencyMean) => ("mean ms", 2),
            Self::Metric(Metric::LatencyP95) => ("p95 ms", 2),
            Self::Metric(Metric::CpuPerStatement) => ("CPU us/statement", 2),
            Self::Metric(Metric::LogBytes) => ("log bytes/statement", 1),
            Self::LogBytesPerRecord => ("log bytes/record", 1),
            Self::LogPerDay => ("log GiB/day", 1),
            Self::QueriesPerTransaction => ("queries/transaction", 2),
        }
    }

    /// Whether more of it is better.
    fn more_is_better(self) -> bool {
        matches!(
            self,
            Self::Metric(Metric::Tps | Metric::Qps | Metric::Transactions)
        )
    }

    /// The figure of a run in the heading's unit.
    fn of(self, run: &BenchmarkRun, statements_a_day: u64) -> Option<f64> {
        let result = run.status.as_ref()?.result.as_ref()?;
        let thousandths = |value: Option<i64>| value.map(|value| value as f64 / 1e3);
        match self {
            Self::Metric(metric) => match metric {
                Metric::Tps => thousandths(result.tps_milli),
                Metric::Qps => thousandths(result.qps_milli),
                Metric::Transactions => result.transactions.map(|count| count as f64),
                Metric::LatencyMean => thousandths(result.latency_mean_micros),
                Metric::LatencyP95 => thousandths(result.latency_p95_micros),
                Metric::CpuPerStatement => thousandths(result.cpu_nanos_per_statement),
                Metric::LogBytes => thousandths(result.log_bytes_per_1000_statements),
            },
            Self::LogBytesPerRecord => thousandths(result.log_bytes_per_1000_records),
            Self::LogPerDay => thousandths(result.log_bytes_per_1000_statements)
                .map(|bytes| bytes * statements_a_day as f64 / f64::from(1 << 30)),
            Self::QueriesPerTransaction => {
                let (queries, transactions) = (result.qps_milli?, result.tps_milli?);
                (transactions > 0).then(|| queries as f64 / transactions as f64)
            }
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric(metric) => fmt::Debug::fmt(metric, f),
            other => fmt::Debug::fmt(other, f),
        }
    }
}

/// How a figure is set against its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The figure as a percentage of the baseline's: 89 for 11 % less.
    PercentOf,
    /// The difference as a percentage of the baseline's: -11 for 11 % less.
    Difference,
}

/// The level that others are set against: the first of a layout's figures gets a column for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relative {
    /// How.
    pub against: Against,
    /// Axis.
    pub axis: Dimension,
    /// Its level.
    pub baseline: String,
}

/// A layout, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Axes whose levels are rows; the last changes fastest.
    pub rows: Vec<Dimension>,
    /// Axes whose levels are columns.
    pub columns: Vec<Dimension>,
    /// Figures, side by side in each column.
    pub figures: Vec<Figure>,
    /// What the first figure is set against.
    pub relative: Option<Relative>,
    /// Statements a day, for [`Figure::LogPerDay`].
    pub statements_a_day: u64,
    /// The comparison whose levels alone are shown; None shows all.
    pub comparison: Option<String>,
}

impl Layout {
    /// Whether a cell is shown.
    fn shows(&self, spec: &BenchmarkCampaignSpec, cell: &Cell) -> bool {
        let comparison = spec
            .comparisons
            .iter()
            .find(|comparison| self.comparison.as_ref() == Some(&comparison.name));
        comparison.is_none_or(|comparison| comparison.takes(&Dimension::from(comparison.axis).level(cell)))
    }
}

/// The layouts of a campaign: the one asked for; else those of its annotation; else one for each comparison.
///
/// # Errors
/// A sentence if a word of a layout is not known, or does not fit the campaign.
pub fn layouts(campaign: &BenchmarkCampaign, asked: &Choice) -> Result<Vec<Layout>, String> {
    let spec = &campaign.spec;
    if *asked != Choice::default() {
        return Ok(vec![asked.complete(spec)?]);
    }
    if let Some(lines) = campaign.annotations().get(ANNOTATION_TABLES) {
        let lines = lines.lines().filter(|line| !line.trim().is_empty());
        let layouts: Result<Vec<Layout>, String> =
            lines.map(|line| Choice::parse(line)?.complete(spec)).collect();
        return layouts.map_err(|why| format!("annotation {ANNOTATION_TABLES}: {why}"));
    }
    if spec.comparisons.is_empty() {
        return Ok(vec![asked.complete(spec)?]);
    }
    spec.comparisons
        .iter()
        .map(|comparison| asked.of(comparison).complete(spec))
        .collect()
}

/// The tables of a campaign.
///
/// # Errors
/// A sentence if a layout does not fit, or the spec cannot be planned.
pub fn sheets(
    campaign: &BenchmarkCampaign,
    runs: &[BenchmarkRun],
    asked: &Choice,
) -> Result<Vec<Sheet>, String> {
    let layouts = layouts(campaign, asked)?;
    let cells = by_cell(campaign, runs).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        format!(
            "which runs count is not known, since the campaign cannot be planned: {}",
            lines.join("; ")
        )
    })?;
    Ok(layouts
        .iter()
        .map(|layout| {
            let shown = cells
                .iter()
                .filter(|cell| layout.shows(&campaign.spec, &cell.cell));
            Sheet::new(layout, &campaign.spec, &shown.cloned().collect::<Vec<_>>())
        })
        .collect())
}

/// The tables of a campaign as text of a format.
///
/// # Errors
/// As for [`sheets`].
pub fn tables(
    campaign: &BenchmarkCampaign,
    runs: &[BenchmarkRun],
    asked: &Choice,
    format: Format,
) -> Result<String, String> {
    let rendered: Vec<String> = sheets(campaign, runs, asked)?
        .iter()
        .map(|sheet| sheet.render(format))
        .collect();
    Ok(rendered.join("\n"))
}
