//! What the run controller remembers between two looks and may lose with a crash: what the API server answered to its
//! own writes (a watch delivers them later), the leases it took, the Jobs it made, the run that ended last on a target.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crds::{BenchmarkRun, BenchmarkTarget};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;

use crate::lock::lock;

/// What is remembered of one run.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The run as it was last written.
    pub(super) run: Option<BenchmarkRun>,
    /// Its target as it was last written for it.
    pub(super) target: Option<BenchmarkTarget>,
    /// The lease of the database's node.
    pub(super) lease: Option<Lease>,
    /// Jobs that were made and that the watch may not know yet.
    pub(super) jobs: Vec<String>,
}

/// Remembered facts by the run's UID, and UIDs by the target on which a run ended last.
#[derive(Debug, Default)]
pub(super) struct Memory {
    runs: Mutex<HashMap<String, Facts>>,
    ended: Mutex<HashMap<(String, String), String>>,
    meeting_places: Mutex<HashSet<String>>,
}

impl Memory {
    /// Takes in the answer to a write of the run's own.
    pub(super) fn written(&self, run: BenchmarkRun) {
        let uid = run.uid().unwrap_or_default();
        if run.has_ended() {
            lock(&self.ended).insert(target_of(&run), uid.clone());
        }
        self.of(&uid, |facts| facts.run = Some(run));
    }

    /// Whether this process saw a run end, and no later one on the same target.
    pub(super) fn ended_last(&self, namespace: &str, target: &str, uid: &str) -> bool {
        lock(&self.ended)
            .get(&(namespace.to_owned(), target.to_owned()))
            .is_some_and(|last| last == uid)
    }

    /// Reads or changes what is remembered of a run.
    pub(super) fn of<T>(&self, uid: &str, use_it: impl FnOnce(&mut Facts) -> T) -> T {
        use_it(lock(&self.runs).entry(uid.to_owned()).or_default())
    }

    /// Whether anything is remembered of a run.
    pub(super) fn knows(&self, uid: &str) -> bool {
        lock(&self.runs).contains_key(uid)
    }

    /// Whether a Job of this name was made for the run by this process.
    pub(super) fn has_made(&self, uid: &str, job: &str) -> bool {
        lock(&self.runs)
            .get(uid)
            .is_some_and(|facts| facts.jobs.iter().any(|made| made == job))
    }

    /// Whether the Service of a target (by UID) is there at which its load generators meet.
    pub(super) fn has_meeting_place(&self, target_uid: &str) -> bool {
        lock(&self.meeting_places).contains(target_uid)
    }

    /// Remembers that it is.
    pub(super) fn made_meeting_place(&self, target_uid: String) {
        lock(&self.meeting_places).insert(target_uid);
    }

    /// Forgets a Job: if it is not there now, it is gone.
    pub(super) fn forget_job(&self, uid: &str, job: &str) {
        if let Some(facts) = lock(&self.runs).get_mut(uid) {
            facts.jobs.retain(|made| made != job);
        }
    }

    /// Forgets a run; what was remembered of it.
    pub(super) fn forget(&self, uid: &str) -> Option<Facts> {
        lock(&self.runs).remove(uid)
    }
}

fn target_of(run: &BenchmarkRun) -> (String, String) {
    (
        run.namespace().unwrap_or_default(),
        run.spec.target_ref.name.clone(),
    )
}
