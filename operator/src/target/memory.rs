//! What the target controller remembers between two looks and may lose with a crash: which objects around a pod it
//! made or found (after a crash they are made again and found to be there), and what it last wrote.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crds::BenchmarkTarget;

use crate::lock::lock;

/// What is known of a target and of the objects around its pod.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // one an object
pub(super) struct PartsKnown {
    pub(super) secret: bool,
    pub(super) service: bool,
    pub(super) volume: bool,
    pub(super) log_volume: bool,
    /// Hashes of configurations whose ConfigMap is there.
    pub(super) configurations: HashSet<String>,
    /// The target as it was last written.
    pub(super) written: Option<BenchmarkTarget>,
}

/// Remembered facts by the target's UID.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<String, PartsKnown>>);

impl Memory {
    /// What is known of a target.
    pub(super) fn parts(&self, uid: &str) -> PartsKnown {
        lock(&self.0).get(uid).cloned().unwrap_or_default()
    }

    /// Changes what is known.
    pub(super) fn learn(&self, uid: &str, change: impl FnOnce(&mut PartsKnown)) {
        change(lock(&self.0).entry(uid.to_owned()).or_default());
    }

    /// Forgets a target.
    pub(super) fn forget(&self, uid: &str) {
        lock(&self.0).remove(uid);
    }
}
