//! What is seen of a campaign: all from watches, nothing is asked of the API server. What acting twice could spoil is
//! guarded where it is done: names made from the plan, resource versions, UIDs.

use std::collections::BTreeSet;
use std::sync::Arc;

use campaign::campaign_planner::{self, CampaignPlan, CampaignView, RunSummary};
use crds::{BenchmarkCampaign, BenchmarkTarget};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::State;
use super::memory::Facts;

/// One moment of a campaign.
pub(super) struct Observed {
    targets: Vec<Arc<BenchmarkTarget>>,
    runs: Vec<Arc<RunSummary>>,
    facts: Facts,
}

/// Looks at a campaign.
pub(super) fn observe(state: &State, campaign: &BenchmarkCampaign) -> Observed {
    let uid = campaign.uid().unwrap_or_default();
    let namespace = campaign.namespace();
    let named: BTreeSet<String> = campaign_planner::target_names(campaign).into_iter().collect();
    let targets = state
        .targets
        .state()
        .into_iter()
        .filter(|target| target.namespace() == namespace)
        .filter(|target| {
            named.contains(&target.name_any()) || target.owner_references().iter().any(|o| o.uid == uid)
        })
        .collect();
    Observed {
        targets,
        runs: state.runs.of(&uid),
        facts: state.memory.of(&uid, campaign.metadata.generation.unwrap_or(0)),
    }
}

impl Observed {
    /// Asks the planner.
    pub(super) fn plan(&self, campaign: &BenchmarkCampaign, now: Timestamp) -> CampaignPlan {
        let targets: Vec<&BenchmarkTarget> = self.targets.iter().map(AsRef::as_ref).collect();
        let runs: Vec<&RunSummary> = self.runs.iter().map(AsRef::as_ref).collect();
        let view = CampaignView {
            campaign,
            targets: &targets,
            runs: &runs,
            checks: &self.facts.checks,
            obstacles: &self.facts.obstacles,
        };
        campaign_planner::plan(&view, now)
    }
}
