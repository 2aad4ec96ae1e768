//! The run controller: takes node and target, has the server restarted and proved, starts the load, judges the report.
//! While load is applied it does nothing: the end of the runner's container wakes it.

mod act;
mod ended;
mod events;
pub mod job;
mod job_seen;
mod memory;
mod observe;
mod projection;

use std::sync::Arc;
use std::time::Duration;

use campaign::run_planner;
use crds::names::LABEL_RUN;
use crds::run::Step;
use crds::{BenchmarkRun, BenchmarkTarget};
use futures::channel::mpsc;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::runtime::controller::{Action as Requeue, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};

use crate::context::{Context, Error, Result};
use crate::metrics::{Kind, Outcome};
use crate::{Shutdown, backoff, listing, node_lease};

const KIND: Kind = Kind { kind: "BenchmarkRun" };

/// Steps of one reconcile; the longest path (from waiting to the Job) has about ten.
const STEPS: usize = 24;

/// What the reconciler works with.
struct State {
    context: Context,
    runs: Store<BenchmarkRun>,
    targets: Store<BenchmarkTarget>,
    jobs: Store<Job>,
    pods: Store<Pod>,
    memory: Arc<memory::Memory>,
    failures: backoff::Failures,
    /// Something that others may wait for was given up.
    released: mpsc::UnboundedSender<()>,
    /// Runs with which nothing more is done.
    done: mpsc::UnboundedSender<BenchmarkRun>,
}

impl State {
    /// Wakes the runs that wait: nothing that they watch tells them of a lease.
    fn node_was_released(&self) {
        // The receiver lives as long as the controller.
        let _ = self.released.unbounded_send(());
    }

    /// Keeps nothing more of a run that has ended.
    fn done_with(&self, run: &BenchmarkRun) {
        self.memory.forget(&run.uid().unwrap_or_default());
        let _ = self.done.unbounded_send(run.clone());
    }
}

/// Runs the controller until `shutdown` completes.
pub async fn controller(context: Context, shutdown: Shutdown) {
    // A page is whole runs of 17 kB each, before they are cut down; what one page took is not given back.
    let page = watcher::Config::default().page_size(50);
    let ours = page.clone().labels(LABEL_RUN);
    let (runs, run_writer) = reflector::store();
    let (targets, target_writer) = reflector::store();
    let (jobs, job_writer) = reflector::store();
    let (pods, pod_writer) = reflector::store();
    let (released, wake_up) = mpsc::unbounded();
    let (done, leaving) = mpsc::unbounded();
    let (listed, listings) = mpsc::unbounded();

    let memory = Arc::new(memory::Memory::default());
    let gone = released.clone();
    let remembered = memory.clone();
    let (orphan, orphaned) = mpsc::unbounded();
    let run_events = watcher(context.watched::<BenchmarkRun>(), page.clone())
        .default_backoff()
        .modify(projection::of_run)
        .inspect_ok(move |event| {
            if let watcher::Event::Delete(run) = event {
                let facts = remembered.forget(&run.uid().unwrap_or_default());
                if let Some(lease) = facts.and_then(|facts| facts.lease) {
                    let _ = orphan.unbounded_send(lease);
                }
                // What it held counts as free now.
                let _ = gone.unbounded_send(());
            }
        });
    let releasing = give_up_leases(context.clone(), orphaned);
    let run_events = ended::without_the_done(run_events, leaving, runs.clone(), memory.clone())
        .reflect(run_writer)
        .inspect_ok(listing::tell(&listed))
        .applied_objects();
    let target_events = watcher(context.watched::<BenchmarkTarget>(), page)
        .default_backoff()
        .modify(|target| target.managed_fields_mut().clear())
        .reflect(target_writer)
        .inspect_ok(listing::tell(&listed))
        .touched_objects();
    let job_events = watcher(context.watched::<Job>(), ours.clone())
        .default_backoff()
        .modify(projection::of_job)
        .reflect(job_writer)
        .inspect_ok(listing::tell(&listed))
        .touched_objects();
    let pod_events = watcher(context.watched::<Pod>(), ours)
        .default_backoff()
        .modify(projection::of_pod)
        .reflect(pod_writer)
        .inspect_ok(listing::tell(&listed))
        .touched_objects();

    let on_target = runs.clone();
    let waiting = runs.clone();
    let woken = wake_up.flat_map(move |()| {
        let waits = |run: &BenchmarkRun| step(run) == Step::Waiting;
        let refs = waiting
            .state_filter(waits)
            .into_iter()
            .map(|run| ObjectRef::from_obj(run.as_ref()));
        futures::stream::iter(refs.collect::<Vec<_>>())
    });
    let state = Arc::new(State {
        runs: runs.clone(),
        targets,
        jobs,
        pods,
        memory: memory.clone(),
        failures: backoff::Failures::default(),
        released,
        done,
        context,
    });
    let controller = Controller::for_stream(run_events, runs)
        .owns_stream(job_events)
        .watches_stream(pod_events, run_of_pod)
        .watches_stream(target_events, move |target| open_runs_on(&on_target, &target))
        .reconcile_on(woken)
        .reconcile_all_on(listings)
        // Bursts of events become one look; a longer wait would add to the dead time between runs.
        .with_config(
            Config::default()
                .debounce(Duration::from_millis(10))
                .concurrency(64),
        )
        .graceful_shutdown_on(shutdown)
        .run(reconcile, failed, state)
        .for_each(|result| {
            if let Err(error) = result {
                tracing::debug!(%error, "run controller");
            }
            std::future::ready(())
        });
    tokio::select! {
        () = controller => {}
        () = releasing => {}
    }
}

/// Gives up the leases of runs that were deleted while they held one. Where that fails, the next run on the node takes
/// it over, because its holder is gone.
/// Never ends by itself: the controller does.
async fn give_up_leases(context: Context, mut orphaned: mpsc::UnboundedReceiver<Lease>) {
    while let Some(lease) = orphaned.next().await {
        if let Err(error) = node_lease::release(&context, &lease).await {
            tracing::warn!(lease = %lease.name_any(), %error, "kept by a run that is gone");
        }
    }
    std::future::pending::<()>().await;
}

fn step(run: &BenchmarkRun) -> Step {
    run.status.as_ref().map(|status| status.step).unwrap_or_default()
}

#[allow(clippy::needless_pass_by_value)] // kube's signature
fn run_of_pod(pod: Pod) -> Option<ObjectRef<BenchmarkRun>> {
    let name = pod.labels().get(LABEL_RUN)?.clone();
    Some(ObjectRef::new(&name).within(&pod.namespace()?))
}

/// The runs of a target that have not ended.
fn open_runs_on(runs: &Store<BenchmarkRun>, target: &BenchmarkTarget) -> Vec<ObjectRef<BenchmarkRun>> {
    let (name, namespace) = (target.name_any(), target.namespace());
    let concerned = |run: &BenchmarkRun| {
        // One that is being measured is woken by its container's end and by nothing else.
        !matches!(step(run), Step::Finished | Step::Measuring)
            && run.spec.target_ref.name == name
            && run.namespace() == namespace
    };
    runs.state_filter(concerned)
        .iter()
        .map(|run| ObjectRef::from_obj(run.as_ref()))
        .collect()
}

async fn reconcile(run: Arc<BenchmarkRun>, state: Arc<State>) -> Result<Requeue> {
    state.context.metrics.reconciles.get_or_create(&KIND).inc();
    let uid = run.uid().ok_or(Error::Incomplete("the run", "UID"))?;
    let ready = state.targets.wait_until_ready().now_or_never().is_some()
        && state.jobs.wait_until_ready().now_or_never().is_some()
        && state.pods.wait_until_ready().now_or_never().is_some();
    if !ready {
        return Ok(Requeue::requeue(Duration::from_millis(50)));
    }
    let mut seen = Box::pin(observe::observe(&state, &run)).await?;
    for _ in 0..STEPS {
        let plan = run_planner::plan(&seen.view, state.context.clock.now());
        if plan.status != seen.view.run.status {
            let before = seen.view.run.status.step;
            act::write_status(&state, &mut seen, plan.status).await?;
            told(&state, &seen, before);
            continue;
        }
        let Some(action) = plan.action else {
            state.failures.succeeded(&uid);
            if run.has_ended() {
                // The watch has caught up with the end: nothing more is written.
                state.done_with(&run);
            }
            return Ok(plan.requeue.map_or_else(Requeue::await_change, Requeue::requeue));
        };
        tracing::debug!(run = %run.name_any(), action = action_name(&action), "run");
        act::act(&state, &mut seen, action).await?;
    }
    Ok(Requeue::requeue(Duration::from_secs(1)))
}

fn action_name(action: &run_planner::Action) -> &'static str {
    use run_planner::Action;
    match action {
        Action::TakeNode { .. } => "take the node",
        Action::ReleaseNode { .. } => "release the node",
        Action::TakeTarget(_) => "take the target",
        Action::RequestBoot(_) => "request a boot",
        Action::RecordDataset(_) => "record the data",
        Action::ReleaseTarget(_) => "release the target",
        Action::Establish { .. } => "establish",
        Action::CreatePrepareJob { .. } => "create the prepare Job",
        Action::CreateJob { .. } => "create the Job",
    }
}

/// Metrics and events of a step that was reached; the status is written already.
fn told(state: &State, seen: &observe::Observed, before: Step) {
    let status = &seen.view.run.status;
    if status.step == before {
        return;
    }
    let metrics = &state.context.metrics;
    if status.step == Step::Measuring {
        metrics.runs_measuring.inc();
    }
    // A run that was measured when this process began was never counted.
    if before == Step::Measuring && metrics.runs_measuring.get() > 0 {
        metrics.runs_measuring.dec();
    }
    if status.step == Step::Finished {
        let first = status.validity.as_ref().and_then(|v| v.reasons.first());
        let outcome = first.map_or_else(|| "Valid".to_owned(), |finding| finding.reason.clone());
        metrics.runs.get_or_create(&Outcome { outcome }).inc();
    }
    events::publish(&state.context, &seen.run);
}

#[allow(clippy::needless_pass_by_value)] // kube's signature
fn failed(run: Arc<BenchmarkRun>, error: &Error, state: Arc<State>) -> Requeue {
    let uid = run.uid().unwrap_or_default();
    state.context.metrics.reconcile_errors.get_or_create(&KIND).inc();
    let delay = state.failures.delay(&uid, error);
    tracing::warn!(run = %run.name_any(), %error, delay_ms = delay.as_millis(), "will try again");
    Requeue::requeue(delay)
}
