//! What the controller remembers of a campaign between two looks and may lose with a crash: checks of targets (asked
//! for again) and names in the way (found again at the next create).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use campaign::campaign_planner::Obstacle;

/// Remembered facts by the campaign's UID.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<String, Facts>>);

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
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Facts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered; nothing if the spec has changed since.
    pub(super) fn of(&self, uid: &str, generation: i64) -> Facts {
        self.lock()
            .get(uid)
            .filter(|f| f.generation == generation)
            .cloned()
            .unwrap_or_default()
    }

    /// Adds to what is remembered.
    pub(super) fn remember(&self, uid: &str, generation: i64, add: impl FnOnce(&mut Facts)) {
        let mut all = self.lock();
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
        self.lock().remove(uid);
    }
}
