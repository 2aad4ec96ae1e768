//! Does what the run's planner says: one thing, then what came of it goes into the view.
//!
//! Requests to the API server for one run of a visit's first arm, apart from leases, events and watches:
//!
//! | # | who | what |
//! |---|---|---|
//! | 1 | campaign | creates the run |
//! | 2 | run | takes the target with a boot request (replaces its status) |
//! | 3 | run | status: intent |
//! | 4 | target | deletes the pod |
//! | 5 | target | creates the ConfigMap, the first time that a configuration is used |
//! | 6 | target | creates the pod |
//! | 7 | target | reads the Secret, to ask the server who it is |
//! | 8 | target | status: the boot |
//! | 9 | run | reads the Secret, to prove the settings |
//! | 10 | run | status: proof |
//! | 11 | run | creates the Job |
//! | 12 | run | status: result |
//!
//! Later runs of the visit need 1, 2, 3 and 9 to 12. Making the data adds its own, and so does, once for a target, the
//! Service at which several load generators meet.

use campaign::run_planner::{
    Action, Establishment, JobView, PREPARE_DEADLINE, Proven, dataset_hash, job_deadline_seconds,
    rebuild_when_grown,
};
use crds::run::{BenchmarkRunStatus, Finding};
use crds::target::BenchmarkTargetStatus;
use crds::{BenchmarkRun, BenchmarkTarget};
use database::{DatabaseError, EstablishOrder, Established};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde::Serialize;

use super::observe::{Observed, run_object, target_seen};
use super::{State, job};
use crate::context::{Error, Result, timed};
use crate::{login, node_lease};

/// Does one thing.
pub(super) async fn act(state: &State, seen: &mut Observed, action: Action) -> Result<()> {
    match action {
        Action::TakeNode { node } => {
            let (lease, taken) =
                node_lease::take(&state.context, &node, &node_lease::Holder::of(&seen.run)).await?;
            if taken.is_some() {
                state.memory.of(&seen.view.run.uid, |facts| facts.lease = taken);
            }
            seen.view.node = lease;
            Ok(())
        }
        Action::ReleaseNode { node: _ } => release_node(state, seen).await,
        Action::TakeTarget(status) => write_target(state, seen, "taking a target", *status).await,
        Action::RequestBoot(status) => write_target(state, seen, "asking for a boot", *status).await,
        Action::RecordDataset(status) => {
            write_target(state, seen, "recording what data a target holds", *status).await
        }
        Action::ReleaseTarget(status) => write_target(state, seen, "giving a target up", *status).await,
        Action::Establish { boot_identity } => establish(state, seen, boot_identity).await,
        Action::CreatePrepareJob { name, order } => {
            let deadline = i64::try_from(PREPARE_DEADLINE.as_secs()).unwrap_or(i64::MAX);
            create_job(
                state,
                seen,
                job::Purpose::Prepare,
                &name,
                order.as_ref(),
                deadline,
            )
            .await?;
            seen.view.prepare = JobView::Active { pod: None };
            Ok(())
        }
        Action::CreateJob { name, order } => {
            let deadline = job_deadline_seconds(&seen.run.spec.run);
            create_job(state, seen, job::Purpose::Run, &name, order.as_ref(), deadline).await?;
            seen.view.job = JobView::Active { pod: None };
            Ok(())
        }
    }
}

/// Writes the status over the one that was read.
pub(super) async fn write_status(
    state: &State,
    seen: &mut Observed,
    status: BenchmarkRunStatus,
) -> Result<()> {
    let mut wanted = seen.run.clone();
    wanted.status = Some(status);
    let api = state.context.namespaced::<BenchmarkRun>(&namespace(&seen.run));
    let (name, parameters) = (wanted.name_any(), PostParams::default());
    let call = api.replace_status(&name, &parameters, &wanted);
    let written = timed("writing a run's status", call).await?;
    seen.run = written.clone();
    seen.view.run = run_object(&written);
    state.memory.written(written);
    Ok(())
}

fn namespace(run: &BenchmarkRun) -> String {
    run.namespace().unwrap_or_default()
}

async fn release_node(state: &State, seen: &mut Observed) -> Result<()> {
    let lease = state.memory.of(&seen.view.run.uid, |facts| facts.lease.clone());
    if let Some(lease) = lease {
        node_lease::release(&state.context, &lease).await?;
    }
    state.memory.of(&seen.view.run.uid, |facts| facts.lease = None);
    seen.view.node = campaign::run_planner::NodeLease::Unknown;
    state.node_was_released();
    Ok(())
}

/// Writes a target's status over the one that was read: a conflict means that somebody else was faster.
async fn write_target(
    state: &State,
    seen: &mut Observed,
    doing: &'static str,
    status: BenchmarkTargetStatus,
) -> Result<()> {
    let mut wanted = seen
        .target
        .clone()
        .ok_or(Error::Incomplete("the run", "target"))?;
    wanted.status = Some(status);
    let api = state.context.namespaced::<BenchmarkTarget>(&namespace(&seen.run));
    let written = timed(
        doing,
        api.replace_status(&wanted.name_any(), &PostParams::default(), &wanted),
    )
    .await?;
    seen.view.target = Some(target_seen(&written));
    seen.target = Some(written.clone());
    state
        .memory
        .of(&seen.view.run.uid, |facts| facts.target = Some(written));
    Ok(())
}

/// Brings everything wanted in force and proves it. The login is read now and kept nowhere.
async fn establish(state: &State, seen: &mut Observed, boot_identity: String) -> Result<()> {
    let target = seen
        .target
        .as_ref()
        .ok_or(Error::Incomplete("the run", "target"))?;
    let login = login::login(&state.context, target).await?;
    let spec = &seen.run.spec;
    let order = EstablishOrder {
        run_uid: seen.view.run.uid.clone(),
        epoch: seen.view.run.status.epoch.unwrap_or_default(),
        parameters: spec.parameters.clone(),
        audit: spec.audit.clone(),
        workload: spec.workload.clone(),
        rows_per_table: spec.rows_per_table,
        dataset_hash: dataset_hash(&seen.view),
        rebuild_when_grown: rebuild_when_grown(&seen.view),
        settle: spec.restart.settle.clone(),
        cache: spec.cache.state,
        fresh_boot: spec.restart_before,
    };
    let begun = tokio::time::Instant::now();
    let answer = state.context.database.establish(&login, &order).await;
    let took_millis = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
    seen.view.established = Some(match answer {
        Ok(established) => establishment(established, boot_identity, took_millis),
        Err(error) => failure(&error),
    });
    // The server may have been restarted meanwhile; the proof counts only for the boot that the target shows now.
    let key = kube::runtime::reflector::ObjectRef::from_obj(target);
    if let Some(watched) = state.targets.get(&key) {
        let newest = crate::newer::newer(watched.as_ref(), Some(target));
        seen.view.target = Some(target_seen(&newest));
        seen.target = Some(newest);
    }
    Ok(())
}

fn establishment(established: Established, boot_identity: String, took_millis: i64) -> Establishment {
    match established {
        Established::Ready(proof) => {
            let mut evidence = proof.evidence;
            evidence.dataset.get_or_insert(proof.dataset);
            Establishment::Ready(Box::new(Proven {
                boot_identity,
                evidence,
                environment: proof.environment,
                audit_log: proof.audit_log,
                took_millis,
            }))
        }
        Established::DatasetNeeded { found } => Establishment::DatasetNeeded { found },
        Established::NotInForce { problems } => Establishment::NotInForce(
            problems
                .into_iter()
                .map(|p| Finding {
                    reason: p.name,
                    message: p.message,
                })
                .collect(),
        ),
        Established::Fenced { holder } => Establishment::Fenced { holder },
        Established::Started => Establishment::Started,
    }
}

/// What may pass by itself is tried again; the rest ends the run.
fn failure(error: &DatabaseError) -> Establishment {
    let message = error.to_string();
    let refused = |reason: &str| {
        Establishment::Refused(Finding {
            reason: reason.to_owned(),
            message: message.clone(),
        })
    };
    match error {
        DatabaseError::Unreachable { .. }
        | DatabaseError::TimedOut { .. }
        | DatabaseError::Busy(_)
        | DatabaseError::Agent(_) => Establishment::Unreachable(message),
        DatabaseError::Refused { .. } => refused("DatabaseRefused"),
        DatabaseError::Statement { .. } => refused("ProofFailed"),
        DatabaseError::Unsupported(_) => refused("Unsupported"),
    }
}

/// Where several load generators meet: made before the first Job of a target that needs it.
async fn meeting_place(state: &State, target: &BenchmarkTarget) -> Result<()> {
    let uid = target.uid().unwrap_or_default();
    if state.memory.has_meeting_place(&uid) {
        return Ok(());
    }
    let wanted = job::meeting_service(target);
    let api = state
        .context
        .namespaced::<Service>(&target.namespace().unwrap_or_default());
    match timed("creating a Service", api.create(&PostParams::default(), &wanted)).await {
        Ok(_) => {}
        // Made for an earlier run: its name is made from the target's and nobody else's.
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    state.memory.made_meeting_place(uid);
    Ok(())
}

async fn create_job(
    state: &State,
    seen: &Observed,
    purpose: job::Purpose,
    name: &str,
    order: &impl Serialize,
    deadline_seconds: i64,
) -> Result<()> {
    let target = seen
        .target
        .as_ref()
        .ok_or(Error::Incomplete("the run", "target"))?;
    let json = serde_json::to_string(order).map_err(|source| Error::Kube {
        doing: "writing a runner's order",
        source: kube::Error::SerdeError(source),
    })?;
    let wanted = job::Order {
        purpose,
        name,
        run: &seen.run,
        target,
        json: &json,
        runner_image: &state.context.settings.runner_image,
        deadline_seconds,
        ttl_seconds: state.context.settings.job_ttl_seconds,
    };
    if wanted.pods() > 1 {
        meeting_place(state, target).await?;
    }
    let api = state.context.namespaced::<Job>(&namespace(&seen.run));
    let job = job::build(&wanted);
    match timed("creating a Job", api.create(&PostParams::default(), &job)).await {
        Ok(_) => {}
        // It was made before a crash, or by an answer that got lost. If the name is somebody else's, the run ends by
        // the Job's deadline; a name made from the plan is nobody else's.
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    state
        .memory
        .of(&seen.view.run.uid, |facts| facts.jobs.push(name.to_owned()));
    Ok(())
}
