//! Runs that have ended leave the store of the watch: most of what a cluster keeps are such runs, and nothing more is
//! done with them. One is looked at once more if this process may still hold something for it.

use std::sync::Arc;

use crds::BenchmarkRun;
use crds::names::LABEL_CAMPAIGN;
use futures::channel::mpsc;
use futures::{Stream, StreamExt as _, future, stream};
use kube::ResourceExt as _;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};

use super::memory::Memory;

/// Whether nothing is left to do for a run. One that is of no campaign holds its target itself, also after a crash.
fn is_done(run: &BenchmarkRun, memory: &Memory) -> bool {
    run.has_ended()
        && run.labels().contains_key(LABEL_CAMPAIGN)
        && !memory.knows(&run.uid().unwrap_or_default())
}

/// The events of a watch without the runs that are done, and with a removal for each that `leaving` names while it is
/// still the one that the store has.
pub(super) fn without_the_done(
    events: impl Stream<Item = watcher::Result<Event<BenchmarkRun>>> + Send,
    leaving: mpsc::UnboundedReceiver<BenchmarkRun>,
    store: Store<BenchmarkRun>,
    memory: Arc<Memory>,
) -> impl Stream<Item = watcher::Result<Event<BenchmarkRun>>> + Send {
    let arriving = events.map(move |event| {
        event.map(|event| match event {
            Event::InitApply(run) if is_done(&run, &memory) => None,
            Event::Apply(run) if is_done(&run, &memory) => Some(Event::Delete(run)),
            event => Some(event),
        })
    });
    let removed = leaving.map(move |run| {
        let there = store.get(&ObjectRef::from_obj(&run));
        let same = there.is_some_and(|there| there.uid() == run.uid());
        Ok(same.then_some(Event::Delete(run)))
    });
    stream::select(arriving, removed).filter_map(|event| future::ready(event.transpose()))
}
