//! Does what the target's planner says: one thing, then what came of it goes into the view. Everything can be
//! repeated after a crash: names are fixed, creations find what is there, deletions carry the UID.

use std::fmt::Debug;

use campaign::target_planner::{ASK_EVERY, Action, Part, ServerAnswer, ServerFound};
use crds::BenchmarkTarget;
use crds::target::{Storage, TargetType};
use database::DatabaseError;
use database::configuration::ConfigurationFile;
use database::engine::{EngineSupport, Layout};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::observe::{Observed, pod_view};
use super::{State, borrow, parts, pod};
use crate::context::{Error, Result, timed};
use crate::login;

/// How long one reconcile goes on asking a server that does not answer yet.
const ASK_FOR: std::time::Duration = std::time::Duration::from_secs(10);

/// Does one thing.
pub(super) async fn act(state: &State, seen: &mut Observed, action: Action) -> Result<()> {
    match action {
        Action::Create(part) => create_part(state, seen, part).await,
        Action::CreatePod {
            serial,
            configuration_hash,
            node,
        } => create_pod(state, seen, serial, &configuration_hash, node.as_deref()).await,
        Action::DeletePod {
            uid,
            newer_than_request,
        } => delete_pod(state, seen, uid, newer_than_request).await,
        Action::Identify { address } => identify(state, seen, &address).await,
        Action::AddFinalizer => borrow::finalizer(state, seen, true).await,
        Action::RemoveFinalizer => borrow::finalizer(state, seen, false).await,
        Action::Capture => borrow::capture(state, seen).await,
        Action::Restore => borrow::restore(state, seen).await,
        Action::RestartBy(route) => borrow::restart(state, seen, route).await,
    }
}

/// Writes the status over the one that was read.
pub(super) async fn write_status(state: &State, seen: &mut Observed) -> Result<()> {
    let mut wanted = seen.target.clone();
    wanted.status = Some(seen.view.status.clone());
    let api = state
        .context
        .namespaced::<BenchmarkTarget>(&namespace(&seen.target));
    let (name, parameters) = (wanted.name_any(), PostParams::default());
    let call = api.replace_status(&name, &parameters, &wanted);
    let written = timed("writing a target's status", call).await?;
    // The time without fractions, as it is stored now: otherwise the next look would write it again.
    seen.view.status = written.status.clone().unwrap_or_default();
    let uid = written.uid().unwrap_or_default();
    state
        .memory
        .learn(&uid, |known| known.written = Some(written.clone()));
    seen.target = written;
    Ok(())
}

pub(super) fn namespace(target: &BenchmarkTarget) -> String {
    target.namespace().unwrap_or_default()
}

/// What a plan needs that asks for a pod or its parts: the planner only asks where they are there.
fn needed(seen: &Observed) -> Result<(&'static dyn EngineSupport, &ConfigurationFile)> {
    let engine = seen
        .engine
        .ok_or(Error::Incomplete("the target", "engine that is known"))?;
    let file = seen
        .configuration
        .as_ref()
        .ok_or(Error::Incomplete("the target", "configuration"))?;
    Ok((engine, file))
}

async fn create_part(state: &State, seen: &mut Observed, part: Part) -> Result<()> {
    let (engine, file) = needed(seen)?;
    let target = &seen.target;
    let name = target.name_any();
    let managed = target
        .spec
        .managed
        .as_ref()
        .ok_or(Error::Incomplete("the target", "managed part"))?;
    let taken = match part {
        Part::Secret => {
            let secret = parts::login_secret(target, |user, password| engine.init_sql(user, password))?;
            create::<Secret>(state, target, &secret).await?
        }
        Part::Service => {
            create::<Service>(state, target, &parts::service(target, engine.default_port())).await?
        }
        Part::Volume => {
            let volume = parts::volume(target, name, &managed.storage);
            create::<PersistentVolumeClaim>(state, target, &volume).await?
        }
        Part::LogVolume => {
            let storage = managed.log_storage.clone().unwrap_or_else(Storage::default);
            let volume = parts::volume(target, parts::log_volume_name(&name), &storage);
            create::<PersistentVolumeClaim>(state, target, &volume).await?
        }
        Part::Configuration => {
            create::<ConfigMap>(state, target, &parts::configuration(target, file)).await?
        }
    };
    if taken.is_some() {
        seen.view.name_taken = taken;
        return Ok(());
    }
    let hash = file.hash.clone();
    let view = &mut seen.view.parts;
    match part {
        Part::Secret => view.secret = true,
        Part::Service => view.service = true,
        Part::Volume => view.volume = true,
        Part::LogVolume => view.log_volume = true,
        Part::Configuration => view.configuration = true,
    }
    state
        .memory
        .learn(&seen.target.uid().unwrap_or_default(), |known| match part {
            Part::Secret => known.secret = true,
            Part::Service => known.service = true,
            Part::Volume => known.volume = true,
            Part::LogVolume => known.log_volume = true,
            Part::Configuration => {
                known.configurations.insert(hash);
            }
        });
    Ok(())
}

/// Creates an object of the target's. `None`: it is there and the target's; else why its name cannot be used.
async fn create<K>(state: &State, target: &BenchmarkTarget, object: &K) -> Result<Option<String>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Serialize
        + DeserializeOwned
        + Debug,
{
    let api = state.context.namespaced::<K>(&namespace(target));
    match timed(
        "creating an object of a target",
        api.create(&PostParams::default(), object),
    )
    .await
    {
        Ok(_) => return Ok(None),
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    let name = object.name_any();
    let there = timed(
        "looking at what has the name of a target's object",
        api.get_metadata_opt(&name),
    )
    .await?;
    let Some(there) = there else {
        return Err(Error::Conflict("an object of a target"));
    };
    let ours = there
        .owner_references()
        .iter()
        .any(|o| Some(&o.uid) == target.uid().as_ref());
    let leaving = there.metadata.deletion_timestamp.is_some();
    Ok(match (ours, leaving) {
        (true, false) => None,
        (_, true) => Some(format!(
            "{} {name} is being deleted; waiting for its end",
            K::kind(&())
        )),
        (false, false) => Some(format!(
            "{} {name} belongs to somebody else: delete it, or give this target another name",
            K::kind(&())
        )),
    })
}

async fn create_pod(
    state: &State,
    seen: &mut Observed,
    serial: i64,
    configuration_hash: &str,
    node: Option<&str>,
) -> Result<()> {
    let (engine, _) = needed(seen)?;
    let server = engine.managed(&Layout::pod(engine.default_port()));
    let managed = seen
        .target
        .spec
        .managed
        .clone()
        .ok_or(Error::Incomplete("the target", "managed part"))?;
    let wanted = pod::build(&pod::Boot {
        target: &seen.target,
        managed: &managed,
        server: &server,
        runner_image: &state.context.settings.runner_image,
        serial,
        configuration_hash,
        node,
    });
    let api = state.context.namespaced::<Pod>(&namespace(&seen.target));
    let made = match timed(
        "creating a server's pod",
        api.create(&PostParams::default(), &wanted),
    )
    .await
    {
        Ok(made) => Some(made),
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 409 => {
            // The watch lags behind, or the name is somebody else's.
            timed("looking at a server's pod", api.get_opt(&wanted.name_any())).await?
        }
        Err(error) => return Err(error),
    };
    let Some(made) = made else {
        return Err(Error::Conflict("a server's pod"));
    };
    if made
        .owner_references()
        .iter()
        .any(|o| Some(&o.uid) == seen.target.uid().as_ref())
    {
        seen.view.pod = Some(pod_view(&made, Some(&managed), Some(configuration_hash)));
    } else {
        let message = format!(
            "Pod {} belongs to somebody else: delete it, or give this target another name",
            made.name_any()
        );
        seen.view.name_taken = Some(message);
    }
    Ok(())
}

async fn delete_pod(state: &State, seen: &mut Observed, uid: String, newer_than_request: bool) -> Result<()> {
    let namespace = namespace(&seen.target);
    let name = seen.target.name_any();
    if newer_than_request {
        // Only a stale picture of the target, or a status that lost its past, makes a pod look newer than its request.
        let api = state.context.namespaced::<BenchmarkTarget>(&namespace);
        let live = timed("reading a target", api.get(&name)).await?;
        if live.resource_version() != seen.target.resource_version() {
            return Err(Error::Conflict("a target"));
        }
    }
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let api = state.context.namespaced::<Pod>(&namespace);
    match timed("deleting a server's pod", api.delete(&name, &parameters)).await {
        Ok(_) => {
            if let Some(pod) = &mut seen.view.pod {
                pod.deleted_at = Some(state.context.clock.now());
            }
        }
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 404 => seen.view.pod = None,
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Asks the server who it is, again and again while it starts: a boot is seen within [`ASK_EVERY`], and the login is
/// read once.
async fn identify(state: &State, seen: &mut Observed, address: &str) -> Result<()> {
    let borrowed = seen.target.spec.type_ == TargetType::External;
    let login = match login::login_at(&state.context, &seen.target, address).await {
        Ok(login) => login,
        // A person can mend it: the target says so.
        Err(Error::Database(error)) if borrowed => {
            seen.view.server = ServerAnswer::Refused(error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let pod_uid = seen.view.pod.as_ref().map(|pod| pod.uid.clone());
    let until = tokio::time::Instant::now() + ASK_FOR;
    seen.view.server = loop {
        match state.context.database.identify(&login).await {
            Ok(found) => {
                break ServerAnswer::Identity(Box::new(ServerFound {
                    version: found.version,
                    flavour: found.flavour,
                    server_identity: found.server_identity,
                    started: found.started,
                    capabilities: found.capabilities,
                    clean_shutdown: found.clean_shutdown,
                }));
            }
            Err(error @ (DatabaseError::Refused { .. } | DatabaseError::Unsupported(_))) => {
                break ServerAnswer::Refused(error.to_string());
            }
            Err(error) => {
                tracing::debug!(target = %seen.target.name_any(), %error, "the server does not answer yet");
            }
        }
        if borrowed
            || tokio::time::Instant::now() >= until
            || !still_there(state, &seen.target, pod_uid.as_deref())
        {
            break ServerAnswer::Silent;
        }
        tokio::time::sleep(ASK_EVERY).await;
    };
    Ok(())
}

/// Whether the pod is the same and its server runs, as far as the watch knows.
fn still_there(state: &State, target: &BenchmarkTarget, pod_uid: Option<&str>) -> bool {
    let key = ObjectRef::<Pod>::new(&target.name_any()).within(&namespace(target));
    state.pods.get(&key).is_some_and(|pod| {
        let view = pod_view(&pod, None, None);
        let runs = matches!(
            view.database,
            campaign::target_planner::ContainerState::Running { .. }
        );
        Some(view.uid.as_str()) == pod_uid && view.deleted_at.is_none() && runs
    })
}
