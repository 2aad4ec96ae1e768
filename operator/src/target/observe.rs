//! What is seen of a target and its pod. From watches; the API server is asked only whether a holder that seems to be
//! gone is gone.

use campaign::target_planner::holder::{self, CAMPAIGN};
use campaign::target_planner::{
    Borrowed, ContainerState, Exit, Parts, PodView, Problem, ServerAnswer, TargetView,
};
use crds::names::{
    ANNOTATION_BOOT_SERIAL, ANNOTATION_CONFIGURATION_HASH, CONTAINER_AGENT, CONTAINER_DATABASE,
    FINALIZER_RESTORE,
};
use crds::quantity;
use crds::target::{Holder, Managed, TargetType};
use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkTarget};
use database::configuration::{self, ConfigurationFile};
use database::engine::{self, EngineSupport};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;

use super::State;
use super::pod::CONTAINER_INIT;
use crate::context::{Result, timed};
use crate::newer::newer;

/// Longest name of a target: it names a Service and is a label's value.
const LONGEST_NAME: usize = 63;

/// One moment of a target, with what acting on it needs.
pub(super) struct Observed {
    /// The target.
    pub(super) target: BenchmarkTarget,
    /// What the planner is given.
    pub(super) view: TargetView,
    /// The configuration wanted, if it can be made.
    pub(super) configuration: Option<ConfigurationFile>,
    /// The engine, if it is known.
    pub(super) engine: Option<&'static dyn EngineSupport>,
}

/// Looks at a target.
pub(super) async fn observe(state: &State, watched: &BenchmarkTarget) -> Result<Observed> {
    let uid = watched.uid().unwrap_or_default();
    let memory = state.memory.parts(&uid);
    let target = &newer(watched, memory.written.as_ref());
    let status = target.status.clone().unwrap_or_default();
    let engine = engine::find(target.spec.engine);
    let refused = refused(target, engine.as_ref().err());
    let configuration = render(target);
    let hash = configuration
        .as_ref()
        .map(|file| file.hash.clone())
        .map_err(Clone::clone);
    let key = ObjectRef::<Pod>::new(&target.name_any()).within(&target.namespace().unwrap_or_default());
    let pod = state
        .pods
        .get(&key)
        .filter(|pod| pod.owner_references().iter().any(|o| o.uid == uid));
    let holder_gone = match status.holder.as_ref().filter(|h| holder::held(Some(h))) {
        Some(holder) => holder_gone(state, target, holder).await?,
        None => false,
    };
    let wants_log = target
        .spec
        .managed
        .as_ref()
        .is_some_and(|m| m.log_storage.is_some());
    let parts = Parts {
        secret: memory.secret,
        service: memory.service,
        volume: memory.volume,
        log_volume: memory.log_volume || !wants_log,
        configuration: hash
            .as_ref()
            .is_ok_and(|hash| memory.configurations.contains(hash)),
    };
    let view = TargetView {
        generation: target.metadata.generation.unwrap_or_default(),
        terminating: target.metadata.deletion_timestamp.is_some(),
        spec: target.spec.clone(),
        status,
        pod: pod
            .as_deref()
            .map(|pod| pod_view(pod, target.spec.managed.as_ref(), hash.as_deref().ok())),
        configuration: hash,
        parts,
        // A name that is in the way is found by the next try to make the object.
        name_taken: None,
        refused,
        server: ServerAnswer::NotAsked,
        holder_gone,
        borrowed: Borrowed {
            finalized: target.finalizers().iter().any(|name| name == FINALIZER_RESTORE),
            ..Borrowed::default()
        },
    };
    Ok(Observed {
        target: target.clone(),
        view,
        configuration: configuration.ok(),
        engine: engine.ok(),
    })
}

fn refused(target: &BenchmarkTarget, unknown_engine: Option<&database::DatabaseError>) -> Option<String> {
    if target.spec.type_ == TargetType::Managed && target.name_any().len() > LONGEST_NAME {
        return Some(format!(
            "the name has {} characters; a managed target's may have {LONGEST_NAME}, because its Service is named after it",
            target.name_any().len()
        ));
    }
    unknown_engine.map(ToString::to_string)
}

/// The configuration wanted now, or why there is none.
fn render(target: &BenchmarkTarget) -> Result<ConfigurationFile, String> {
    let Some(managed) = &target.spec.managed else {
        return Err("the target is not managed".to_owned());
    };
    let memory = quantity::whole(&managed.memory)
        .ok_or_else(|| format!("managed.memory: {} is not a quantity of bytes", managed.memory.0))?;
    let holder = target.status.as_ref().and_then(|status| status.holder.as_ref());
    configuration::render(
        target.spec.engine,
        &managed.configuration,
        holder::request(holder),
        memory,
    )
    .map_err(|error| error.to_string())
}

/// Whether the holder is gone. A watch may lag behind, so what it does not know is asked for.
async fn holder_gone(state: &State, target: &BenchmarkTarget, holder: &Holder) -> Result<bool> {
    let namespace = target.namespace().unwrap_or_default();
    let same = |uid: Option<String>| uid.as_deref() == Some(holder.uid.as_str());
    let doing = "looking whether a target's holder is gone";
    if holder.kind == CAMPAIGN {
        if state.campaigns.find(|c| same(c.uid())).is_some() {
            return Ok(false);
        }
        let api = state.context.namespaced::<BenchmarkCampaign>(&namespace);
        let found = timed(doing, api.get_metadata_opt(&holder.name)).await?;
        return Ok(!found.is_some_and(|c| same(c.uid())));
    }
    if state.runs.find(|r| same(r.uid())).is_some() {
        return Ok(false);
    }
    let api = state.context.namespaced::<BenchmarkRun>(&namespace);
    let found = timed(doing, api.get_metadata_opt(&holder.name)).await?;
    Ok(!found.is_some_and(|r| same(r.uid())))
}

/// A pod as the planner sees it.
pub(super) fn pod_view(pod: &Pod, managed: Option<&Managed>, wanted_hash: Option<&str>) -> PodView {
    let annotation = |name: &str| pod.annotations().get(name).cloned().unwrap_or_default();
    let status = pod.status.as_ref();
    let conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let unschedulable = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False")
        .map(|c| {
            c.message
                .clone()
                .unwrap_or_else(|| "no node was found".to_owned())
        });
    let failed = status
        .filter(|s| matches!(s.phase.as_deref(), Some("Failed" | "Succeeded")))
        .map(|s| {
            Problem::new(
                s.reason.clone().unwrap_or_else(|| "PodEnded".to_owned()),
                s.message
                    .clone()
                    .unwrap_or_else(|| "the pod as a whole has ended".to_owned()),
            )
        });
    let main = status
        .and_then(|s| s.container_statuses.as_deref())
        .unwrap_or_default();
    let init = status
        .and_then(|s| s.init_container_statuses.as_deref())
        .unwrap_or_default();
    let hash = annotation(ANNOTATION_CONFIGURATION_HASH);
    PodView {
        uid: pod.uid().unwrap_or_default(),
        serial: annotation(ANNOTATION_BOOT_SERIAL).parse().unwrap_or(0),
        outdated: wanted_hash.is_some_and(|wanted| wanted != hash)
            || managed.is_some_and(|m| differs(pod, m)),
        configuration_hash: hash,
        created_at: pod
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |t| t.0),
        deleted_at: pod.metadata.deletion_timestamp.as_ref().map(|t| {
            // The timestamp is that of the end of the grace period.
            let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
            t.0.checked_sub(jiff::SignedDuration::from_secs(grace))
                .unwrap_or(t.0)
        }),
        node: pod.spec.as_ref().and_then(|s| s.node_name.clone()),
        address: status.and_then(|s| s.pod_ip.clone()).filter(|ip| !ip.is_empty()),
        unschedulable,
        failed,
        image_id: main
            .iter()
            .find(|s| s.name == CONTAINER_DATABASE)
            .map(|s| s.image_id.clone())
            .filter(|id| !id.is_empty()),
        init: container(init, CONTAINER_INIT),
        database: container(main, CONTAINER_DATABASE),
        agent: container(main, CONTAINER_AGENT),
    }
}

/// Whether a pod made now would have another image or size.
fn differs(pod: &Pod, managed: &Managed) -> bool {
    let containers = pod
        .spec
        .as_ref()
        .map(|s| s.containers.as_slice())
        .unwrap_or_default();
    let Some(database) = containers.iter().find(|c| c.name == CONTAINER_DATABASE) else {
        return false;
    };
    let limits = database.resources.as_ref().and_then(|r| r.limits.as_ref());
    // The API server rewrites quantities (1000m to 1), so they are compared as numbers.
    let same = |name: &str, wanted: &Quantity| {
        limits.and_then(|l| l.get(name)).and_then(quantity::millis) == quantity::millis(wanted)
    };
    database.image.as_deref() != Some(managed.image.as_str())
        || !same("cpu", &managed.cpu)
        || !same("memory", &managed.memory)
}

fn container(statuses: &[ContainerStatus], name: &str) -> ContainerState {
    let Some(status) = statuses.iter().find(|s| s.name == name) else {
        return ContainerState::Waiting(None);
    };
    let Some(state) = &status.state else {
        return ContainerState::Waiting(None);
    };
    if let Some(ended) = &state.terminated {
        return ContainerState::Ended(Exit {
            code: ended.exit_code,
            reason: ended.reason.clone().unwrap_or_default(),
            message: ended.message.clone().unwrap_or_default(),
        });
    }
    if let Some(running) = &state.running {
        return ContainerState::Running {
            id: status.container_id.clone().unwrap_or_default(),
            started_at: running.started_at.as_ref().map(|t| t.0),
        };
    }
    ContainerState::Waiting(state.waiting.as_ref().map(|waiting| {
        Problem::new(
            waiting.reason.clone().unwrap_or_default(),
            waiting.message.clone().unwrap_or_default(),
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": "t", "uid": "u", "creationTimestamp": "2026-11-30T20:00:00Z",
                "annotations": {ANNOTATION_BOOT_SERIAL: "7", ANNOTATION_CONFIGURATION_HASH: "c0ffee"}
            },
            "spec": {"nodeName": "node-1", "containers": [{
                "name": "database", "image": "mariadb:11.8", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}
            }]},
            "status": status
        }))
        .unwrap()
    }

    fn managed(image: &str, cpu: &str) -> Managed {
        Managed {
            image: image.into(),
            cpu: Quantity(cpu.into()),
            memory: Quantity("1024Mi".into()),
            ..Managed::default()
        }
    }

    fn container_status(name: &str, state: &Value) -> Value {
        json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "containerID": "containerd://abc",
            "state": state})
    }

    #[test]
    fn a_running_pod_is_read() {
        let running = json!({"running": {"startedAt": "2026-11-30T20:00:02Z"}});
        let pod = pod(&json!({
            "phase": "Running", "podIP": "198.19.0.7",
            "initContainerStatuses": [container_status("init", &json!({"terminated": {"exitCode": 0}}))],
            "containerStatuses": [container_status("database", &running), container_status("agent", &running)]
        }));
        let view = pod_view(&pod, Some(&managed("mariadb:11.8", "1000m")), Some("c0ffee"));
        assert_eq!(
            (view.serial, view.outdated, view.address.as_deref()),
            (7, false, Some("198.19.0.7"))
        );
        let ContainerState::Running { id, started_at } = view.database else {
            panic!("it runs");
        };
        assert_eq!((id.as_str(), started_at.is_some()), ("containerd://abc", true));
        assert_eq!(view.init, ContainerState::Ended(Exit::default()));
    }

    #[test]
    fn a_pod_is_outdated_when_image_size_or_configuration_would_differ() {
        let pod = pod(&json!({}));
        let outdated = |managed: &Managed, hash| pod_view(&pod, Some(managed), Some(hash)).outdated;
        assert!(!outdated(&managed("mariadb:11.8", "1"), "c0ffee"));
        assert!(outdated(&managed("mariadb:11.4", "1"), "c0ffee"));
        assert!(outdated(&managed("mariadb:11.8", "2"), "c0ffee"));
        assert!(outdated(&managed("mariadb:11.8", "1"), "decaf"));
    }

    #[test]
    fn what_went_wrong_is_read_in_the_clusters_words() {
        let no_node = pod(&json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: Insufficient cpu"}
        ]}));
        assert_eq!(
            pod_view(&no_node, None, None).unschedulable.as_deref(),
            Some("0/1 nodes: Insufficient cpu")
        );
        let ended = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "unknown variable"}});
        let crashed =
            pod(&json!({"phase": "Failed", "containerStatuses": [container_status("database", &ended)]}));
        let view = pod_view(&crashed, None, None);
        let expected = Exit {
            code: 1,
            reason: "Error".into(),
            message: "unknown variable".into(),
        };
        assert_eq!(view.database, ContainerState::Ended(expected));
        assert!(view.failed.is_some());
    }

    #[test]
    fn a_deletion_began_its_grace_period_before_its_timestamp() {
        let mut ending = pod(&json!({}));
        ending.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-30T20:10:00Z")).unwrap();
        ending.metadata.deletion_grace_period_seconds = Some(600);
        let began = pod_view(&ending, None, None).deleted_at.unwrap();
        assert_eq!(began.to_string(), "2026-11-30T20:00:00Z");
    }
}
