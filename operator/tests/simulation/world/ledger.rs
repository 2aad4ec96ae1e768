//! What really happened at the databases, seen by the models and by nobody else: loads, data made, connections.

use std::time::Duration;

/// Load that a runner applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) run_uid: String,
    pub(crate) run: String,
    /// `NAMESPACE/NAME`.
    pub(crate) target: String,
    pub(crate) database_node: String,
    pub(crate) boot: String,
    pub(crate) from: Duration,
    /// `None` while it lasts.
    pub(crate) to: Option<Duration>,
    /// What was wrong when it began or while it was applied, in words; empty if all was as it must be.
    pub(crate) faults: Vec<String>,
    /// It lasted for its whole window and was reported.
    pub(crate) complete: bool,
    /// Runners that apply it together.
    pub(crate) runners: i32,
    /// The shares of the runners beside the first one.
    pub(crate) parts: Vec<PartOfLoad>,
}

/// The share of a load that another runner than the first one applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartOfLoad {
    pub(crate) index: i32,
    pub(crate) threads: i32,
    pub(crate) from: Duration,
    /// `None` while it lasts.
    pub(crate) to: Option<Duration>,
    pub(crate) complete: bool,
}

/// Everything seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) loads: Vec<Load>,
    /// When data was made for which run.
    pub(crate) prepares: Vec<(Duration, String)>,
    /// Connections of the operator: when, and to which target.
    pub(crate) connections: Vec<(Duration, String)>,
}

impl Ledger {
    /// Load is being applied to some target at this time.
    pub(crate) fn measuring_at(&self, at: Duration) -> Option<&Load> {
        self.loads
            .iter()
            .find(|load| load.from < at && load.to.is_none_or(|to| at < to))
    }
}
