//! What the controller remembers of a campaign between two looks and may lose with a crash: checks of targets (asked
//! for again), names in the way (found again at the next create), and the campaign as it was last written (the watch
//! delivers it later).

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use campaign::campaign_planner::Obstacle;
use crds::BenchmarkCampaign;
use kube::ResourceExt as _;

use crate::lock::lock;
use crate::newer::newer;

/// Remembered facts by the campaign's UID.
#[derive(Debug, Default)]
pub(super) struct Memory {
    facts: Mutex<HashMap<String, Facts>>,
    written: Mutex<HashMap<String, BenchmarkCampaign>>,
}

/// What is remembered of one campaign.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    generation: i64,
    /// Problems found by checks of targets.
    pub(super) checks: BTreeMap<String, Vec<String>>,
    /// Names in the way.
    pub(super) obstacles: Vec<Obstacle>,
}

impl Memory {
    /// Takes in the answer to a write of ours.
    pub(super) fn written(&self, campaign: BenchmarkCampaign) {
        let uid = campaign.uid().unwrap_or_default();
        lock(&self.written).insert(uid, campaign);
    }

    /// The campaign as it is known best. What was written is forgotten once the watch has caught up with it.
    pub(super) fn newest(&self, watched: &BenchmarkCampaign) -> BenchmarkCampaign {
        let uid = watched.uid().unwrap_or_default();
        let mut written = lock(&self.written);
        let newest = newer(watched, written.get(&uid));
        if newest.resource_version() == watched.resource_version() {
            written.remove(&uid);
        }
        newest
    }

    /// What is remembered; nothing if the spec has changed since.
    pub(super) fn of(&self, uid: &str, generation: i64) -> Facts {
        lock(&self.facts)
            .get(uid)
            .filter(|f| f.generation == generation)
            .cloned()
            .unwrap_or_default()
    }

    /// Adds to what is remembered.
    pub(super) fn remember(&self, uid: &str, generation: i64, add: impl FnOnce(&mut Facts)) {
        let mut all = lock(&self.facts);
        let facts = all.entry(uid.to_owned()).or_default();
        if facts.generation != generation {
            *facts = Facts {
                generation,
                ..Facts::default()
            };
        }
        add(facts);
    }

    /// Forgets a campaign.
    pub(super) fn forget(&self, uid: &str) {
        lock(&self.facts).remove(uid);
        lock(&self.written).remove(uid);
    }
}
