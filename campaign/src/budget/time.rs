//! How long a campaign takes: windows, restarts, making the data. Estimated before the first run, then from the runs
//! that have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::dataset::Rebuild;
use crds::load::RestartWhen;

use super::{Refused, dataset};
use crate::blocks::{Place, Plan};
use crate::matrix::{Matrix, Problem};

/// Seconds of a run beside its windows: creating the Job, collecting, judging.
const AROUND_A_RUN: f64 = 3.0;
/// Seconds of a boot until its settings are proved.
const BOOT: f64 = 8.0;
/// Seconds until a new managed instance answers for the first time.
const NEW_INSTANCE: f64 = 60.0;
/// Rows a second that are prepared.
const ROWS_PER_SECOND: f64 = 50_000.0;

/// Seconds of one run, by whether it boots the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// A run that boots the server.
    pub booting: f64,
    /// A run on a server that is up.
    pub following: f64,
}

impl Pace {
    /// The pace that a spec makes likely.
    pub fn estimated(matrix: &Matrix<'_>) -> Self {
        let run = &matrix.spec.run;
        let window = (Duration::from(run.warmup) + Duration::from(run.duration)).as_secs_f64();
        let following = window + AROUND_A_RUN;
        let settle = &matrix.spec.restart.settle;
        let boot = settle
            .fixed_sleep
            .map_or(BOOT, |sleep| BOOT + Duration::from(sleep).as_secs_f64());
        let restarts = matrix.spec.restart.policy != RestartWhen::Never;
        Self {
            booting: following + if restarts { boot } else { 0.0 },
            following,
        }
    }

    /// The pace of runs that have ended; where there are none of a kind, the estimate.
    #[must_use]
    pub fn seen(self, runs: impl IntoIterator<Item = (bool, f64)>) -> Self {
        let (mut booting, mut following) = ((0.0, 0.0), (0.0, 0.0));
        for (boots, seconds) in runs {
            let sum = if boots { &mut booting } else { &mut following };
            sum.0 += seconds;
            sum.1 += 1.0;
        }
        let mean = |(sum, count): (f64, f64), estimate: f64| if count > 0.0 { sum / count } else { estimate };
        Self {
            booting: mean(booting, self.booting),
            following: mean(following, self.following),
        }
    }

    /// Seconds of one place.
    pub fn of(&self, place: &Place, policy: RestartWhen) -> f64 {
        if boots(place, policy) {
            self.booting
        } else {
            self.following
        }
    }
}

/// Whether the run of a place boots the server; for `WhenRequired`, whether it may.
pub fn boots(place: &Place, policy: RestartWhen) -> bool {
    match policy {
        RestartWhen::BeforeEachArm | RestartWhen::WhenRequired => place.ordinal == 0,
        RestartWhen::BeforeEachRun => true,
        RestartWhen::Never => false,
    }
}

/// Seconds of the whole plan, to its last look.
pub(super) fn whole(matrix: &Matrix<'_>, plan: &Plan, rows: &BTreeMap<(usize, usize), i64>) -> i64 {
    let pace = Pace::estimated(matrix);
    let policy = matrix.spec.restart.policy;
    let runs: f64 = plan.places.iter().map(|place| pace.of(place, policy)).sum();
    let instances = matrix.instances().len() as f64 * NEW_INSTANCE;
    (runs + instances + prepares(matrix, plan, rows)).ceil() as i64
}

fn prepares(matrix: &Matrix<'_>, plan: &Plan, rows: &BTreeMap<(usize, usize), i64>) -> f64 {
    let mut seen = BTreeSet::new();
    let mut seconds = 0.0;
    for (index, place) in plan.places.iter().enumerate() {
        let levels = plan.levels(place);
        let again = match matrix.spec.dataset.rebuild {
            Rebuild::PerRun => index as u32,
            Rebuild::PerBlock => place.block,
            Rebuild::Never | Rebuild::PerWorkload | Rebuild::WhenGrown => 0,
        };
        if seen.insert((levels.instance(), levels.workload, again)) {
            let tables = dataset::tables(matrix.workload(levels));
            let per_table = rows.get(&(levels.workload, levels.size)).copied().unwrap_or(0);
            seconds += (tables * per_table) as f64 / ROWS_PER_SECOND;
        }
    }
    seconds
}

pub(super) fn check(matrix: &Matrix<'_>, plan: &Plan, estimated: i64, refused: &mut Refused) {
    let allowed = Duration::from(matrix.spec.maximum_duration).as_secs() as i64;
    if estimated > allowed {
        let problem = Problem::new(
            "spec.maximumDuration",
            format!(
                "{} runs on {} boots take about {}",
                plan.places.len(),
                plan.visits(),
                words(estimated)
            ),
            format!("at most {}", words(allowed)),
            format!(
                "set maximumDuration: {}m, measure fewer cells or blocks, or shorten run.duration",
                estimated / 60 + 1
            ),
        );
        refused.cell(
            format!("{} cells in {} blocks", matrix.cells(), plan.blocks()),
            problem,
        );
    }
}

/// Seconds in words: `45s`, `7m`, `2h 5m`, `3d 4h`.
pub fn words(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, 1..=9) if seconds % 60 != 0 => format!("{minutes}m {}s", seconds % 60),
        (0, 0, _) => format!("{minutes}m"),
        (0, ..) if minutes % 60 == 0 => format!("{hours}h"),
        (0, ..) => format!("{hours}h {}m", minutes % 60),
        _ if hours % 24 == 0 => format!("{days}d"),
        _ => format!("{days}d {}h", hours % 24),
    }
}
