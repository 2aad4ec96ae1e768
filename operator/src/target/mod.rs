//! The target controller: keeps a managed database's pod as its holder asks for it, puts back what a borrowed server had,
//! and says what the server is.
//! It measures nothing and touches no server whose boot it has seen: while load is applied it is silent.

mod act;
mod borrow;
mod memory;
mod observe;
pub mod parts;
pub mod pod;

use std::sync::Arc;
use std::time::Duration;

use campaign::target_planner;
use crds::names::{LABEL_CAMPAIGN, LABEL_ROLE};
use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkTarget};
use futures::channel::mpsc;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{Action as Requeue, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Resource, ResourceExt as _};

use crate::context::{Context, Error, Result};
use crate::metrics::Kind;
use crate::{Shutdown, backoff, listing};

const KIND: Kind = Kind {
    kind: "BenchmarkTarget",
};

/// Steps of one reconcile; the longest path (all parts and the pod are made) has less than ten.
const STEPS: usize = 16;

/// What the reconciler works with.
struct State {
    context: Context,
    pods: Store<Pod>,
    campaigns: Store<PartialObjectMeta<BenchmarkCampaign>>,
    /// Runs made by hand; those of campaigns hold no target for themselves.
    runs: Store<PartialObjectMeta<BenchmarkRun>>,
    memory: memory::Memory,
    failures: backoff::Failures,
}

/// Runs the controller until `shutdown` completes.
pub async fn controller(context: Context, shutdown: Shutdown) {
    let page = watcher::Config::default().page_size(250);
    let (pods, pod_writer) = reflector::store();
    let (campaigns, campaign_writer) = reflector::store();
    let (runs, run_writer) = reflector::store();
    let (listed, listings) = mpsc::unbounded();

    let ours = page
        .clone()
        .labels(&format!("{LABEL_ROLE}={}", parts::ROLE_DATABASE));
    let pod_events = watcher(context.watched::<Pod>(), ours)
        .default_backoff()
        .modify(|pod| {
            pod.managed_fields_mut().clear();
            if let Some(spec) = &mut pod.spec {
                spec.volumes = None;
                spec.init_containers = None;
            }
        })
        .reflect(pod_writer)
        .inspect_ok(listing::tell(&listed))
        .touched_objects();
    let campaign_events = watcher(
        context.watched::<PartialObjectMeta<BenchmarkCampaign>>(),
        page.clone(),
    )
    .default_backoff()
    .modify(only_identity)
    .reflect(campaign_writer)
    .inspect_ok(listing::tell(&listed))
    .touched_objects();
    let by_hand = page.clone().labels(&format!("!{LABEL_CAMPAIGN}"));
    let run_events = watcher(context.watched::<PartialObjectMeta<BenchmarkRun>>(), by_hand)
        .default_backoff()
        .modify(only_identity)
        .reflect(run_writer)
        .inspect_ok(listing::tell(&listed))
        .touched_objects();

    let targets = context.watched::<BenchmarkTarget>();
    let controller = Controller::new(targets, page);
    let of_campaign = controller.store();
    let of_run = controller.store();
    let state = Arc::new(State {
        pods,
        campaigns,
        runs,
        memory: memory::Memory::default(),
        failures: backoff::Failures::default(),
        context,
    });
    controller
        .owns_stream(pod_events)
        .watches_stream(campaign_events, move |campaign| {
            held_by(&of_campaign, campaign.uid())
        })
        .watches_stream(run_events, move |run| held_by(&of_run, run.uid()))
        .reconcile_all_on(listings)
        .with_config(Config::default().debounce(Duration::from_millis(10)))
        .graceful_shutdown_on(shutdown)
        .run(reconcile, failed, state)
        .for_each(|result| {
            if let Err(error) = result {
                tracing::debug!(%error, "target controller");
            }
            std::future::ready(())
        })
        .await;
}

/// All that is asked of a holder is whether it exists.
fn only_identity<K: Resource<DynamicType = ()>>(object: &mut PartialObjectMeta<K>) {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
    object.metadata.labels = None;
    object.metadata.owner_references = None;
}

/// The targets that an object holds.
fn held_by(targets: &Store<BenchmarkTarget>, uid: Option<String>) -> Vec<ObjectRef<BenchmarkTarget>> {
    let Some(uid) = uid else {
        return Vec::new();
    };
    let holds = |target: &BenchmarkTarget| {
        target
            .status
            .as_ref()
            .and_then(|s| s.holder.as_ref())
            .is_some_and(|holder| holder.uid == uid)
    };
    targets
        .state_filter(holds)
        .iter()
        .map(|target| ObjectRef::from_obj(target.as_ref()))
        .collect()
}

async fn reconcile(target: Arc<BenchmarkTarget>, state: Arc<State>) -> Result<Requeue> {
    state.context.metrics.reconciles.get_or_create(&KIND).inc();
    let uid = target.uid().ok_or(Error::Incomplete("the target", "UID"))?;
    let ready = state.pods.wait_until_ready().now_or_never().is_some()
        && state.campaigns.wait_until_ready().now_or_never().is_some()
        && state.runs.wait_until_ready().now_or_never().is_some();
    if !ready {
        return Ok(Requeue::requeue(Duration::from_millis(50)));
    }
    if target.metadata.deletion_timestamp.is_some() && target.finalizers().is_empty() {
        state.memory.forget(&uid);
        return Ok(Requeue::await_change());
    }
    let mut seen = observe::observe(&state, &target).await?;
    for _ in 0..STEPS {
        let plan = target_planner::plan(&seen.view, state.context.clock.now());
        if plan.status != seen.view.status {
            seen.view.status = plan.status;
            act::write_status(&state, &mut seen).await?;
        }
        let Some(action) = plan.action else {
            state.failures.succeeded(&uid);
            return Ok(plan.requeue.map_or_else(Requeue::await_change, Requeue::requeue));
        };
        tracing::debug!(target = %target.name_any(), ?action, "target");
        act::act(&state, &mut seen, action).await?;
    }
    Ok(Requeue::requeue(Duration::from_secs(1)))
}

#[allow(clippy::needless_pass_by_value)] // kube's signature
fn failed(target: Arc<BenchmarkTarget>, error: &Error, state: Arc<State>) -> Requeue {
    let uid = target.uid().unwrap_or_default();
    state.context.metrics.reconcile_errors.get_or_create(&KIND).inc();
    let delay = state.failures.delay(&uid, error);
    tracing::warn!(target = %target.name_any(), %error, delay_ms = delay.as_millis(), "will try again");
    Requeue::requeue(delay)
}
