//! The runs of every campaign as summaries, kept current from one watch: 10,000 finished runs are a few megabytes,
//! where the objects themselves would be hundreds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use campaign::campaign_planner::RunSummary;
use crds::BenchmarkRun;
use kube::runtime::watcher::Event;
use kube::{Resource as _, ResourceExt as _};

use crate::lock::lock;

/// Summaries of runs by the campaign's UID and the run's namespace and name.
#[derive(Clone, Debug, Default)]
pub(super) struct RunIndex {
    inner: Arc<Inner>,
}

type Runs = HashMap<String, HashMap<(String, String), Arc<RunSummary>>>;

#[derive(Debug, Default)]
struct Inner {
    runs: Mutex<Runs>,
    /// Filled while a new listing arrives, so that nobody sees half of it.
    arriving: Mutex<Runs>,
    ready: AtomicBool,
}

impl RunIndex {
    /// Whether a first whole listing has arrived.
    pub(super) fn is_ready(&self) -> bool {
        self.inner.ready.load(Ordering::Acquire)
    }

    /// Takes in one event of the watch.
    pub(super) fn apply(&self, event: &Event<BenchmarkRun>) {
        match event {
            Event::Init => lock(&self.inner.arriving).clear(),
            Event::InitApply(run) => put(&mut lock(&self.inner.arriving), run),
            Event::InitDone => {
                *lock(&self.inner.runs) = std::mem::take(&mut *lock(&self.inner.arriving));
                self.inner.ready.store(true, Ordering::Release);
            }
            Event::Apply(run) => put(&mut lock(&self.inner.runs), run),
            Event::Delete(run) => {
                if let Some(owner) = owner(run)
                    && let Some(of_owner) = lock(&self.inner.runs).get_mut(&owner)
                {
                    of_owner.remove(&key(run));
                }
            }
        }
    }

    /// The runs of a campaign.
    pub(super) fn of(&self, campaign_uid: &str) -> Vec<Arc<RunSummary>> {
        lock(&self.inner.runs)
            .get(campaign_uid)
            .map(|runs| runs.values().cloned().collect())
            .unwrap_or_default()
    }
}

fn key(run: &BenchmarkRun) -> (String, String) {
    (run.namespace().unwrap_or_default(), run.name_any())
}

/// UID of the campaign that controls a run; runs made by hand have none and are not indexed.
fn owner(run: &BenchmarkRun) -> Option<String> {
    let reference = run
        .owner_references()
        .iter()
        .find(|o| o.controller == Some(true))?;
    (reference.kind == crds::BenchmarkCampaign::kind(&())).then(|| reference.uid.clone())
}

fn put(runs: &mut Runs, run: &BenchmarkRun) {
    if let Some(owner) = owner(run) {
        runs.entry(owner)
            .or_default()
            .insert(key(run), Arc::new(RunSummary::from(run)));
    }
}
