//! What the run controller remembers between two looks and may lose with a crash: what the API server answered to its
//! own writes (a watch delivers them later), the leases it took, the Jobs it made.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crds::{BenchmarkRun, BenchmarkTarget};
use k8s_openapi::api::coordination::v1::Lease;

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

/// Remembered facts by the run's UID.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<String, Facts>>);

impl Memory {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Facts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes what is remembered of a run.
    pub(super) fn of<T>(&self, uid: &str, use_it: impl FnOnce(&mut Facts) -> T) -> T {
        use_it(self.lock().entry(uid.to_owned()).or_default())
    }

    /// Whether anything is remembered of a run.
    pub(super) fn knows(&self, uid: &str) -> bool {
        self.lock().contains_key(uid)
    }

    /// Whether a Job of this name was made for the run by this process.
    pub(super) fn has_made(&self, uid: &str, job: &str) -> bool {
        self.lock()
            .get(uid)
            .is_some_and(|facts| facts.jobs.iter().any(|made| made == job))
    }

    /// Forgets a Job: if it is not there now, it is gone.
    pub(super) fn forget_job(&self, uid: &str, job: &str) {
        if let Some(facts) = self.lock().get_mut(uid) {
            facts.jobs.retain(|made| made != job);
        }
    }

    /// Forgets a run.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }
}
