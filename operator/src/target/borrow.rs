//! What is done at a borrowed server and its target: the finalizer, capturing, putting back, restarting. Every step can be
//! repeated after a crash.

use campaign::target_planner::{CaptureAnswer, RestoreAnswer, ServerAnswer};
use crds::BenchmarkTarget;
use crds::names::{FINALIZER_RESTORE, LABEL_TARGET};
use crds::target::RouteType;
use database::{Captured, DatabaseError, Login};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};

use super::State;
use super::act::namespace;
use super::observe::Observed;
use crate::context::{Error, Result, timed};
use crate::login;

/// How long after a restart was asked for the server is asked whether it is back.
const AFTER_RESTART: std::time::Duration = std::time::Duration::from_millis(500);

/// Adds or removes the finalizer: a compare-and-swap of the whole object, so that nothing is decided from a stale one.
pub(super) async fn finalizer(state: &State, seen: &mut Observed, wanted: bool) -> Result<()> {
    let mut target = seen.target.clone();
    let finalizers = target.finalizers_mut();
    finalizers.retain(|name| name != FINALIZER_RESTORE);
    if wanted {
        finalizers.push(FINALIZER_RESTORE.to_owned());
    }
    let api = state.context.namespaced::<BenchmarkTarget>(&namespace(&target));
    let (name, parameters) = (target.name_any(), PostParams::default());
    let call = api.replace(&name, &parameters, &target);
    let written = match timed("writing a target's finalizer", call).await {
        Ok(written) => written,
        // With its last finalizer it is gone.
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 404 && !wanted => {
            seen.view.borrowed.finalized = false;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let uid = written.uid().unwrap_or_default();
    state
        .memory
        .learn(&uid, |known| known.written = Some(written.clone()));
    seen.view.borrowed.finalized = wanted;
    seen.target = written;
    Ok(())
}

/// The login, or why a person must act.
async fn login(state: &State, seen: &Observed) -> Result<std::result::Result<Login, String>> {
    match login::login(&state.context, &seen.target).await {
        Ok(login) => Ok(Ok(login)),
        Err(Error::Database(error)) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

pub(super) async fn capture(state: &State, seen: &mut Observed) -> Result<()> {
    let permissions = seen
        .target
        .spec
        .external
        .as_ref()
        .map(|external| external.permissions.clone())
        .unwrap_or_default();
    let owner = seen.target.uid().unwrap_or_default();
    let login = match login(state, seen).await? {
        Ok(login) => login,
        Err(message) => {
            seen.view.borrowed.captured = CaptureAnswer::Failed(message);
            return Ok(());
        }
    };
    let answer = state.context.database.capture(&login, &permissions, &owner).await;
    seen.view.borrowed.captured = match answer {
        Ok(Captured::Ours { state, not_permitted }) => CaptureAnswer::Captured(state, not_permitted),
        Ok(Captured::Taken { owner }) => CaptureAnswer::Failed(format!(
            "the BenchmarkTarget with UID {owner}, perhaps of another namespace or cluster, has borrowed this server: waiting \
             until it gives it back. If there is no such target any more, drop the schema benchmark_campaign by hand"
        )),
        Err(error) => CaptureAnswer::Failed(error.to_string()),
    };
    Ok(())
}

pub(super) async fn restore(state: &State, seen: &mut Observed) -> Result<()> {
    if let Some(pod) = load_generator(state, &seen.target).await? {
        seen.view.borrowed.restored = RestoreAnswer::Busy(pod);
        return Ok(());
    }
    let owner = seen.target.uid().unwrap_or_default();
    let login = match login(state, seen).await? {
        Ok(login) => login,
        Err(message) => {
            seen.view.borrowed.restored = RestoreAnswer::Failed(message);
            return Ok(());
        }
    };
    let original = seen.view.status.original_state.clone();
    let answer = state
        .context
        .database
        .restore(&login, original.as_ref(), &owner)
        .await;
    seen.view.borrowed.restored = match answer {
        Ok(left) => RestoreAnswer::Done(left.into_iter().map(|left| (left.what, left.statement)).collect()),
        Err(error) => RestoreAnswer::Failed(error.to_string()),
    };
    Ok(())
}

/// A load generator or a maker of data that has not ended.
async fn load_generator(state: &State, target: &BenchmarkTarget) -> Result<Option<String>> {
    let api = state.context.namespaced::<Pod>(&namespace(target));
    let selector = ListParams::default().labels(&format!("{LABEL_TARGET}={}", target.name_any()));
    let pods = timed("looking for load generators of a target", api.list(&selector)).await?;
    let ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    Ok(pods
        .items
        .iter()
        .find(|pod| !ended(pod))
        .map(kube::ResourceExt::name_any))
}

/// Tells a borrowed server to restart; the planner names only routes that there are.
pub(super) async fn restart(state: &State, seen: &mut Observed, route: RouteType) -> Result<()> {
    match route {
        RouteType::Statement => restart_by_statement(state, seen).await,
        RouteType::Workload | RouteType::Job | RouteType::Http => Err(Error::Incomplete(
            "this release",
            "such a way to restart a server",
        )),
    }
}

async fn restart_by_statement(state: &State, seen: &mut Observed) -> Result<()> {
    let login = match login(state, seen).await? {
        Ok(login) => login,
        Err(message) => {
            seen.view.server = ServerAnswer::Refused(message);
            return Ok(());
        }
    };
    match state.context.database.restart(&login).await {
        // It may have ended before it answered.
        Ok(()) | Err(DatabaseError::Unreachable { .. }) => {
            seen.view.borrowed.restart_sent = true;
            seen.view.server = ServerAnswer::NotAsked;
            tokio::time::sleep(AFTER_RESTART).await;
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
