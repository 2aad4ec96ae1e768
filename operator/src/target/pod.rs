//! The pod of a managed server: the server, and beside it the agent that reads what SQL cannot. Builder only.
//!
//! A bare Pod: a restart is a deletion and a creation with the configuration wanted, at a moment of our choosing. It
//! has a startupProbe and no other probe, which would disturb a measurement or kill a saturated server.

use std::collections::BTreeMap;

use crds::BenchmarkTarget;
use crds::names::{
    AGENT_PORT, ANNOTATION_BOOT_SERIAL, ANNOTATION_CONFIGURATION_HASH, CONTAINER_AGENT, CONTAINER_DATABASE,
    LABEL_ROLE, secret,
};
use crds::target::{Managed, agent_resources};
use database::engine::{
    CONFIGURATION_DIRECTORY, DEFAULT_USER, LOG_DIRECTORY, ManagedServer, SECRET_DIRECTORY,
    TEMPORARY_DIRECTORY, VOLUME,
};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EmptyDirVolumeSource, KeyToPath,
    NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolumeClaimVolumeSource,
    Pod, PodSecurityContext, PodSpec, Probe, ResourceRequirements, SeccompProfile, SecretVolumeSource,
    SecurityContext, TCPSocketAction, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;

use super::parts::{ROLE_DATABASE, configuration_name, log_volume_name, metadata};

/// Container that makes the data directory.
pub const CONTAINER_INIT: &str = "init";
/// Mount path of the agent's token.
const TOKEN_DIRECTORY: &str = "/run/benchmark/agent";
/// Seconds that a server may take until it listens.
const START_SECONDS: i32 = 600;

/// What one boot's pod is made from.
#[derive(Clone, Copy, Debug)]
pub struct Boot<'a> {
    /// The target.
    pub target: &'a BenchmarkTarget,
    /// Its managed part.
    pub managed: &'a Managed,
    /// How the engine is run.
    pub server: &'a ManagedServer,
    /// Image with the runner and agent.
    pub runner_image: &'a str,
    /// Boot request that it answers.
    pub serial: i64,
    /// Configuration that it starts with.
    pub configuration_hash: &'a str,
    /// Node that it must run on.
    pub node: Option<&'a str>,
}

/// The pod of one boot.
pub fn build(boot: &Boot<'_>) -> Pod {
    let name = boot.target.name_any();
    let mut metadata = metadata(boot.target, name.clone());
    metadata
        .labels
        .get_or_insert_default()
        .insert(LABEL_ROLE.to_owned(), ROLE_DATABASE.to_owned());
    metadata.annotations = Some(BTreeMap::from([
        (ANNOTATION_BOOT_SERIAL.to_owned(), boot.serial.to_string()),
        (
            ANNOTATION_CONFIGURATION_HASH.to_owned(),
            boot.configuration_hash.to_owned(),
        ),
        // A scale-down of the cluster in the middle of a night's measurements would cost the night.
        (
            "cluster-autoscaler.kubernetes.io/safe-to-evict".to_owned(),
            "false".to_owned(),
        ),
    ]));
    let user = boot.managed.run_as_user.unwrap_or(DEFAULT_USER);
    Pod {
        metadata,
        spec: Some(PodSpec {
            init_containers: Some(vec![init(boot)]),
            containers: vec![database(boot), agent(boot)],
            volumes: Some(volumes(boot, &name)),
            restart_policy: Some("Never".to_owned()),
            share_process_namespace: Some(true),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(boot.server.termination_grace_seconds),
            security_context: Some(PodSecurityContext {
                fs_group_change_policy: Some("OnRootMismatch".to_owned()),
                ..pod_security(user)
            }),
            node_selector: Some(boot.managed.node_selector.clone()).filter(|labels| !labels.is_empty()),
            tolerations: tolerations(&boot.managed.tolerations),
            affinity: boot.node.map(on_node),
            ..PodSpec::default()
        }),
        status: None,
    }
}

/// A pod's security context that the restricted level admits.
pub fn pod_security(user: i64) -> PodSecurityContext {
    PodSecurityContext {
        run_as_user: Some(user),
        run_as_group: Some(user),
        fs_group: Some(user),
        run_as_non_root: Some(true),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

/// A container's security context that the restricted level admits.
pub fn container_security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        ..SecurityContext::default()
    }
}

/// Tolerations as a pod has them.
pub fn tolerations(ours: &[crds::placement::Toleration]) -> Option<Vec<Toleration>> {
    let list: Vec<Toleration> = ours
        .iter()
        .map(|t| Toleration {
            key: t.key.clone(),
            operator: t.operator.map(|o| format!("{o:?}")),
            value: t.value.clone(),
            effect: t.effect.map(|e| format!("{e:?}")),
            toleration_seconds: t.toleration_seconds,
        })
        .collect();
    Some(list).filter(|list| !list.is_empty())
}

fn on_node(node: &str) -> Affinity {
    Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![NodeSelectorTerm {
                    match_fields: Some(vec![NodeSelectorRequirement {
                        key: "metadata.name".to_owned(),
                        operator: "In".to_owned(),
                        values: Some(vec![node.to_owned()]),
                    }]),
                    match_expressions: None,
                }],
            }),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    }
}

/// Requests equal limits, so that the pod is Guaranteed and can get cores of its own.
fn resources(managed: &Managed) -> ResourceRequirements {
    let quantities = BTreeMap::from([
        ("cpu".to_owned(), managed.cpu.clone()),
        ("memory".to_owned(), managed.memory.clone()),
    ]);
    ResourceRequirements {
        limits: Some(quantities.clone()),
        requests: Some(quantities),
        claims: None,
    }
}

fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// Mounts of everything that the server writes.
fn data_mounts(boot: &Boot<'_>) -> Vec<VolumeMount> {
    let mut mounts = vec![mount("data", VOLUME, false)];
    if boot.managed.log_storage.is_some() {
        mounts.push(mount("log", LOG_DIRECTORY, false));
    }
    mounts
}

fn container(name: &str, image: &str) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        security_context: Some(container_security()),
        // The end of the log says why a server gave up, without any right to read logs.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

fn init(boot: &Boot<'_>) -> Container {
    let mut mounts = data_mounts(boot);
    mounts.extend([
        mount("tmp", TEMPORARY_DIRECTORY, false),
        // A server that runs no file at its start has its login made here.
        mount("init-sql", SECRET_DIRECTORY, true),
    ]);
    Container {
        command: Some(boot.server.init_command.clone()),
        resources: Some(resources(boot.managed)),
        volume_mounts: Some(mounts),
        ..container(CONTAINER_INIT, &boot.managed.image)
    }
}

fn database(boot: &Boot<'_>) -> Container {
    let mut mounts = data_mounts(boot);
    mounts.extend([
        mount("tmp", TEMPORARY_DIRECTORY, false),
        mount("configuration", CONFIGURATION_DIRECTORY, true),
        mount("init-sql", SECRET_DIRECTORY, true),
    ]);
    Container {
        command: Some(boot.server.server_command.clone()),
        resources: Some(resources(boot.managed)),
        ports: Some(vec![ContainerPort {
            name: Some("database".to_owned()),
            container_port: i32::from(boot.server.port),
            ..ContainerPort::default()
        }]),
        startup_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction {
                port: IntOrString::Int(i32::from(boot.server.port)),
                host: None,
            }),
            period_seconds: Some(1),
            failure_threshold: Some(START_SECONDS),
            ..Probe::default()
        }),
        volume_mounts: Some(mounts),
        ..container(CONTAINER_DATABASE, &boot.managed.image)
    }
}

fn agent(boot: &Boot<'_>) -> Container {
    let mut mounts = data_mounts(boot);
    mounts.push(mount("token", TOKEN_DIRECTORY, true));
    Container {
        command: Some(vec!["runner".to_owned()]),
        args: Some(vec![
            "agent".to_owned(),
            format!("--listen=0.0.0.0:{AGENT_PORT}"),
            format!("--token-file={TOKEN_DIRECTORY}/{}", secret::AGENT_TOKEN),
            format!("--logs={VOLUME}"),
        ]),
        ports: Some(vec![ContainerPort {
            name: Some("agent".to_owned()),
            container_port: i32::from(AGENT_PORT),
            ..ContainerPort::default()
        }]),
        resources: Some(agent_resources()),
        volume_mounts: Some(mounts),
        ..container(CONTAINER_AGENT, boot.runner_image)
    }
}

/// One key of the target's Secret as a file.
fn secret_file(secret_name: &str, key: &str) -> SecretVolumeSource {
    SecretVolumeSource {
        secret_name: Some(secret_name.to_owned()),
        items: Some(vec![KeyToPath {
            key: key.to_owned(),
            path: key.to_owned(),
            mode: None,
        }]),
        default_mode: Some(0o440),
        optional: None,
    }
}

fn volumes(boot: &Boot<'_>, name: &str) -> Vec<Volume> {
    let claim = |volume: &str, claim: String| Volume {
        name: volume.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim,
            read_only: None,
        }),
        ..Volume::default()
    };
    let mut volumes = vec![
        claim("data", name.to_owned()),
        Volume {
            name: "tmp".to_owned(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Volume::default()
        },
        Volume {
            name: "configuration".to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name: configuration_name(name, boot.configuration_hash),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        },
        Volume {
            name: "init-sql".to_owned(),
            secret: Some(secret_file(name, secret::INIT_SQL)),
            ..Volume::default()
        },
        Volume {
            name: "token".to_owned(),
            secret: Some(secret_file(name, secret::AGENT_TOKEN)),
            ..Volume::default()
        },
    ];
    if boot.managed.log_storage.is_some() {
        volumes.push(claim("log", log_volume_name(name)));
    }
    volumes
}

#[cfg(test)]
pub(crate) mod tests;
