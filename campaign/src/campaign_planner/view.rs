//! What a decision about a campaign is made from. Gathered by the operator; nothing here reads the cluster.

use std::collections::BTreeMap;

use crds::{BenchmarkCampaign, BenchmarkTarget};

use super::run_summary::RunSummary;

/// A campaign and all that it depends on, as seen at one moment.
#[derive(Clone, Copy, Debug)]
pub struct CampaignView<'a> {
    /// The campaign, with its status.
    pub campaign: &'a BenchmarkCampaign,
    /// Every target that the campaign owns, and every one that [`super::target_names`] names, whoever owns it.
    pub targets: &'a [&'a BenchmarkTarget],
    /// The runs that this campaign (by UID) owns, of every iteration, in any order.
    pub runs: &'a [&'a RunSummary],
    /// Outcomes of [`super::Action::CheckTarget`] for the campaign's generation, by target: the problems found, none
    /// if all is well. Lost with a restart of the operator, and then asked for again; not needed after the start.
    pub checks: &'a BTreeMap<String, Vec<String>>,
    /// Objects whose names are in the way, as a refused create showed. The create is asked for again in each plan, so
    /// that a name which becomes free is found; the caller must not look again at once for an obstacle known already.
    pub obstacles: &'a [Obstacle],
}

/// An object with a name that the campaign needs for its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Whether it is being deleted or its owner is gone: then waiting helps.
    pub leaving: bool,
    /// Its owner, as `Kind/name`, if it has one.
    pub owner: Option<String>,
}
