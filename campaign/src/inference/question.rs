//! What is asked and what was measured: the plain input of the inference. No API types: the planner maps the
//! manifest and the Runs to these.

use std::collections::BTreeMap;

use crate::histogram::PERCENTILE_SE_FLOOR;

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Throughput.
    HigherIsBetter,
    /// Latency, CPU and bytes per statement.
    LowerIsBetter,
}

/// A metric as the inference needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name as in the manifest: `Qps`, `LatencyP95`.
    pub name: String,
    /// Which way is better.
    pub direction: Direction,
    /// Smallest standard error of a log-ratio that the metric's resolution allows; 0: none.
    pub standard_error_floor: f64,
}

impl Metric {
    /// Name of the metric that, with a falling primary, tells waiting from computing ([`super::Flag::LockBound`]).
    pub const CPU_UTILISATION: &'static str = "CpuUtilisation";

    /// A metric of which more is better, with an exact value: `Qps`, `Tps`.
    pub fn higher_is_better(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            direction: Direction::HigherIsBetter,
            standard_error_floor: 0.0,
        }
    }

    /// A metric of which less is better, with an exact value: `LatencyMean`, `CpuPerStatement`.
    pub fn lower_is_better(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            direction: Direction::LowerIsBetter,
            standard_error_floor: 0.0,
        }
    }

    /// A latency percentile read from a histogram: less is better, in steps of 1.8 %.
    pub fn percentile(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            direction: Direction::LowerIsBetter,
            standard_error_floor: PERCENTILE_SE_FLOOR,
        }
    }
}

/// What a verdict may be generalised to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The arms share a server: the verdict is about the setting.
    #[default]
    Setting,
    /// The arms are different servers that were not provisioned anew for each block: the verdict is about these
    /// two instances, with their disks and preparation.
    ThisPairOfInstances,
}

/// One valid, counted run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Block, from 0.
    pub block: u32,
    /// Place of the visit in its block, from 0.
    pub position: u32,
    /// Name of the arm.
    pub arm: String,
    /// Thread count of the run.
    pub threads: u32,
    /// Identity of the boot that the run was measured on.
    pub boot: String,
    /// Figures by metric name, in the metric's own unit: ratios are taken, so that any unit will do.
    pub values: BTreeMap<String, f64>,
}

/// What happened to an arm's attempts, in all its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitCounts {
    /// Runs judged invalid.
    pub invalid_attempts: u32,
    /// Visits made in the blocks that count.
    pub visits: u32,
    /// Of these, visits whose settling met its time limit.
    pub settle_timed_out: u32,
}

/// One group of blocks: a comparison with every axis but its own fixed. Each level other than the baseline is one
/// primary effect of the campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Name of the comparison.
    pub comparison: String,
    /// The axes that are fixed, for people: `mariadb-11-8, 4u16g, default, read-only`. May be empty.
    pub context: String,
    /// Name of the baseline arm.
    pub baseline: String,
    /// Name of the second baseline arm (A/A), if the comparison has one.
    pub baseline_repeat: Option<String>,
    /// Names of the other arms.
    pub levels: Vec<String>,
    /// Thread counts of every visit.
    pub threads: Vec<u32>,
    /// The metrics; the first is the primary one.
    pub metrics: Vec<Metric>,
    /// Equivalence margin as a share: 0.05 is 5 %, taken as ln(1.05) to either side.
    pub margin: f64,
    /// What the verdict may be generalised to.
    pub scope: Scope,
    /// The valid runs. A later one of the same block, arm and thread count replaces an earlier one.
    pub measurements: Vec<Measurement>,
    /// By arm; an arm that is missing has had no invalid attempt and no time-out.
    pub counts: BTreeMap<String, VisitCounts>,
}

/// The readings of one metric in one arm: by block, then by thread count.
pub type Readings = BTreeMap<u32, BTreeMap<u32, f64>>;

impl Question {
    /// The margin to either side, as a log-ratio.
    pub fn log_margin(&self) -> f64 {
        self.margin.max(0.0).ln_1p()
    }

    /// The readings of `metric` in `arm` within the first `blocks` blocks. A figure that is not positive and
    /// finite has no logarithm and counts as missing.
    pub fn readings(&self, arm: &str, metric: &str, blocks: u32) -> Readings {
        let mut readings = Readings::new();
        for run in self
            .measurements
            .iter()
            .filter(|run| run.arm == arm && run.block < blocks)
        {
            if let Some(&value) = run.values.get(metric)
                && value.is_finite()
                && value > 0.0
            {
                readings.entry(run.block).or_default().insert(run.threads, value);
            }
        }
        readings
    }

    pub(super) fn counts_of(&self, arm: &str) -> VisitCounts {
        self.counts.get(arm).copied().unwrap_or_default()
    }
}
