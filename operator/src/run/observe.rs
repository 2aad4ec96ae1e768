//! What is seen of a run: from watches and from answers to our own writes. The API server is asked only where a stale
//! picture would spoil a measurement: whether the last run on a target has ended, and whether a pod is really lost.

use campaign::run_planner::{JobView, NodeLease, RunObject, RunView, TargetSeen};
use campaign::target_planner::holder::{CAMPAIGN, Claimant, RUN};
use crds::parameter::Parameters;
use crds::run::Step;
use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkTarget};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt as _};

use super::State;
use super::job_seen::job_view;
use crate::context::Result;
use crate::newer::newer;
use crate::{login, node_lease};

/// One moment of a run, with what acting on it needs.
pub(super) struct Observed {
    /// The run.
    pub(super) run: BenchmarkRun,
    /// Its target.
    pub(super) target: Option<BenchmarkTarget>,
    /// What the planner is given.
    pub(super) view: RunView,
}

/// Looks at a run.
pub(super) async fn observe(state: &State, watched: &BenchmarkRun) -> Result<Observed> {
    let uid = watched.uid().unwrap_or_default();
    let (run, written_target, lease) = if state.memory.knows(&uid) {
        state.memory.of(&uid, |facts| {
            (
                newer(watched, facts.run.as_ref()),
                facts.target.clone(),
                facts.lease.is_some(),
            )
        })
    } else {
        (watched.clone(), None, false)
    };
    let namespace = run.namespace().unwrap_or_default();
    let key = ObjectRef::<BenchmarkTarget>::new(&run.spec.target_ref.name).within(&namespace);
    let target = state
        .targets
        .get(&key)
        .map(|target| newer(target.as_ref(), written_target.as_ref()));
    let status = run.status.clone().unwrap_or_default();
    let last_run_ended = match &target {
        Some(target) if status.step == Step::Waiting => last_run_ended(state, target, &run).await?,
        _ => false,
    };
    let job = match &status.job_name {
        Some(name) if status.step == Step::Measuring => {
            job_view(state, &run, name, run.spec.load_generator.count).await?
        }
        _ => JobView::Absent,
    };
    let prepare = match &status.prepare_job_name {
        Some(name) if status.step != Step::Finished => job_view(state, &run, name, 1).await?,
        _ => JobView::Absent,
    };
    let engine = target
        .as_ref()
        .map(|target| target.spec.engine)
        .unwrap_or_default();
    let view = RunView {
        last_run_ended,
        node: if lease {
            NodeLease::Ours
        } else {
            NodeLease::Unknown
        },
        // An unknown engine has no boot either: the target's own condition says so.
        cache_parameters: database::configuration::cache_parameters(engine, run.spec.cache.state)
            .unwrap_or_else(|_| Parameters::new()),
        data_shape: database::dataset_hash(engine, &run.spec.workload, run.spec.rows_per_table),
        read_only: database::read_only(&run.spec.workload),
        prepare,
        job,
        established: None,
        target: target.as_ref().map(target_seen),
        run: run_object(&run),
    };
    Ok(Observed { run, target, view })
}

/// A run as the planner sees it.
pub(super) fn run_object(run: &BenchmarkRun) -> RunObject {
    RunObject {
        name: run.name_any(),
        uid: run.uid().unwrap_or_default(),
        generation: run.metadata.generation.unwrap_or_default(),
        terminating: run.metadata.deletion_timestamp.is_some(),
        claimant: claimant(run),
        spec: run.spec.clone(),
        status: run.status.clone().unwrap_or_default(),
    }
}

/// Who takes a target for a run: the campaign that controls it, or the run itself.
fn claimant(run: &BenchmarkRun) -> Claimant {
    let campaign = run
        .owner_references()
        .iter()
        .find(|o| o.controller == Some(true) && o.kind == BenchmarkCampaign::kind(&()));
    match campaign {
        Some(owner) => Claimant {
            kind: CAMPAIGN.to_owned(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        },
        None => Claimant {
            kind: RUN.to_owned(),
            name: run.name_any(),
            uid: run.uid().unwrap_or_default(),
        },
    }
}

/// A target as the planner of its run sees it.
pub(super) fn target_seen(target: &BenchmarkTarget) -> TargetSeen {
    TargetSeen {
        name: target.name_any(),
        terminating: target.metadata.deletion_timestamp.is_some(),
        spec: target.spec.clone(),
        status: target.status.clone().unwrap_or_default(),
        connection: login::connection(target),
    }
}

/// Whether the run that the target's holder names, if it is another one, has finished or is gone.
async fn last_run_ended(state: &State, target: &BenchmarkTarget, run: &BenchmarkRun) -> Result<bool> {
    let holder = target.status.as_ref().and_then(|s| s.holder.as_ref());
    let Some(last) = holder
        .and_then(|h| h.run.as_ref())
        .filter(|last| Some(&last.uid) != run.uid().as_ref())
    else {
        return Ok(true);
    };
    let namespace = target.namespace().unwrap_or_default();
    if state.memory.ended_last(&namespace, &target.name_any(), &last.uid) {
        return Ok(true);
    }
    let key = ObjectRef::<BenchmarkRun>::new(&last.name).within(&namespace);
    let there = state.runs.get(&key);
    if there.is_some_and(|run| run.uid().as_ref() == Some(&last.uid) && !run.has_ended()) {
        return Ok(false);
    }
    // Ended before this process began, or gone.
    let last = node_lease::Holder {
        namespace,
        name: last.name.clone(),
        uid: last.uid.clone(),
    };
    node_lease::ended(&state.context, &last).await
}
