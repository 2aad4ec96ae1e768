//! The campaign controller: sees a campaign, its targets and its runs; asks the planner; does what it says.

mod act;
mod index;
mod memory;
mod observe;

use std::sync::Arc;
use std::time::Duration;

use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkTarget};
use futures::channel::mpsc;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::runtime::controller::{Action as Requeue, Config, Controller};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};

use crate::context::{Context, Error, Result};
use crate::metrics::Kind;
use crate::{Shutdown, backoff, listing};

use index::RunIndex;
use memory::Memory;

const KIND: Kind = Kind {
    kind: "BenchmarkCampaign",
};

/// What the reconciler works with.
struct State {
    context: Context,
    runs: RunIndex,
    targets: reflector::Store<BenchmarkTarget>,
    memory: Memory,
    failures: backoff::Failures,
}

/// Runs the controller until `shutdown` completes.
pub async fn controller(context: Context, shutdown: Shutdown) {
    let runs = RunIndex::default();
    let (targets, writer) = reflector::store();
    let (listed, listings) = mpsc::unbounded();
    // A page is whole runs of 17 kB each, before they are cut down; what one page took is not given back.
    let page = watcher::Config::default().page_size(50);

    let indexed = runs.clone();
    let run_events = watcher(context.watched::<BenchmarkRun>(), page.clone())
        .default_backoff()
        .inspect_ok(move |event| indexed.apply(event))
        .inspect_ok(listing::tell(&listed))
        .touched_objects();
    let target_events = watcher(context.watched::<BenchmarkTarget>(), page.clone())
        .default_backoff()
        .modify(|target| target.managed_fields_mut().clear())
        .reflect(writer)
        .inspect_ok(listing::tell(&listed))
        .touched_objects();
    let campaign_events = context.watched::<BenchmarkCampaign>();

    let state = Arc::new(State {
        failures: backoff::Failures::default(),
        memory: Memory::default(),
        runs,
        targets,
        context,
    });
    Controller::new(campaign_events, page)
        .owns_stream(run_events)
        .owns_stream(target_events)
        .reconcile_all_on(listings)
        // Bursts of events become one look; a longer wait would add to the dead time between runs.
        .with_config(
            Config::default()
                .debounce(Duration::from_millis(10))
                .concurrency(16),
        )
        .graceful_shutdown_on(shutdown)
        .run(reconcile, failed, state)
        .for_each(|result| {
            if let Err(error) = result {
                tracing::debug!(%error, "campaign controller");
            }
            std::future::ready(())
        })
        .await;
}

async fn reconcile(campaign: Arc<BenchmarkCampaign>, state: Arc<State>) -> Result<Requeue> {
    state.context.metrics.reconciles.get_or_create(&KIND).inc();
    let uid = campaign.uid().ok_or(Error::Incomplete("the campaign", "UID"))?;
    if !state.runs.is_ready() || state.targets.wait_until_ready().now_or_never().is_none() {
        // Deciding on half a picture could count a run as missing.
        return Ok(Requeue::requeue(Duration::from_millis(50)));
    }
    if campaign.metadata.deletion_timestamp.is_some() {
        // Everything below is owned, and goes with it.
        state.memory.forget(&uid);
        return Ok(Requeue::await_change());
    }
    let campaign = state.memory.newest(&campaign);
    let now = state.context.clock.now();
    let observed = observe::observe(&state, &campaign);
    let plan = observed.plan(&campaign, now);
    let outcome = act::carry_out(&state, &campaign, plan).await?;
    state.failures.succeeded(&uid);
    Ok(outcome.map_or_else(Requeue::await_change, Requeue::requeue))
}

#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
fn failed(campaign: Arc<BenchmarkCampaign>, error: &Error, state: Arc<State>) -> Requeue {
    let uid = campaign.uid().unwrap_or_default();
    state.context.metrics.reconcile_errors.get_or_create(&KIND).inc();
    let delay = state.failures.delay(&uid, error);
    tracing::warn!(campaign = %campaign.name_any(), %error, delay_ms = delay.as_millis(), "will try again");
    Requeue::requeue(delay)
}
