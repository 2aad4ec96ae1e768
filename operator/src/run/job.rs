//! The Jobs of a run: the one that applies load, and the one that makes the data. Builders only.
//!
//! The order is an annotation of the pod, mounted as a file; the login is files of the target's Secret. Neither is an
//! argument or an environment variable, and the login is in no object but the Secret.

use std::collections::BTreeMap;

use campaign::run_planner::meeting_service as meeting_name;
use crds::campaign::default_generator_resources;
use crds::names::{
    CONTAINER_RUNNER, LABEL_CAMPAIGN, LABEL_ROLE, LABEL_RUN, LABEL_TARGET, MEETING_PORT, secret,
};
use crds::target::TargetType;
use crds::{BenchmarkRun, BenchmarkTarget};
use database::engine::SECRET_DIRECTORY;
use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, DownwardAPIVolumeFile, DownwardAPIVolumeSource, EmptyDirVolumeSource,
    KeyToPath, ObjectFieldSelector, PodSpec, PodTemplateSpec, SecretVolumeSource, Service, ServicePort,
    ServiceSpec, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};

use crate::login;
use crate::target::parts;
use crate::target::pod::{container_security, pod_security, tolerations};

/// Annotation of a runner's pod: its order, JSON. It holds no secret.
pub const ANNOTATION_ORDER: &str = "benchmark-campaign.dev/order";
/// User of the runner's image.
const RUNNER_USER: i64 = 65532;
/// Where the runner finds its order.
const ORDER_DIRECTORY: &str = "/etc/benchmark/order";
/// Where the runner finds scripts of somebody's own.
const SCRIPTS_DIRECTORY: &str = "/etc/benchmark/scripts";
/// Memory for files that hold the login while the tool runs.
const SCRATCH_LIMIT: &str = "16Mi";

/// What a Job of a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It applies load.
    Run,
    /// It makes the data.
    Prepare,
}

impl Purpose {
    /// Sub-command of the runner, and value of the role label.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Prepare => "prepare",
        }
    }
}

/// What a Job is made from.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// What it is for.
    pub purpose: Purpose,
    /// Name.
    pub name: &'a str,
    /// The run.
    pub run: &'a BenchmarkRun,
    /// Its target.
    pub target: &'a BenchmarkTarget,
    /// The runner's order, JSON.
    pub json: &'a str,
    /// Image with the runner, if the run names none.
    pub runner_image: &'a str,
    /// `activeDeadlineSeconds`.
    pub deadline_seconds: i64,
    /// `ttlSecondsAfterFinished`.
    pub ttl_seconds: i32,
}

impl Order<'_> {
    /// Pods that the Job runs at once.
    pub fn pods(&self) -> i32 {
        match self.purpose {
            Purpose::Run => self.run.spec.load_generator.count.max(1),
            Purpose::Prepare => 1,
        }
    }
}

/// The headless Service that gives the first of several load generators a name: one for all runs of a target, gone with
/// it. Pods have names there as soon as they have addresses.
pub fn meeting_service(target: &BenchmarkTarget) -> Service {
    let selector = BTreeMap::from([
        (LABEL_TARGET.to_owned(), target.name_any()),
        (LABEL_ROLE.to_owned(), Purpose::Run.word().to_owned()),
    ]);
    Service {
        metadata: parts::metadata(target, meeting_name(&target.name_any())),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(selector),
            ports: Some(vec![ServicePort {
                name: Some("meeting".to_owned()),
                port: i32::from(MEETING_PORT),
                ..ServicePort::default()
            }]),
            publish_not_ready_addresses: Some(true),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// The Job.
pub fn build(order: &Order<'_>) -> Job {
    let labels = labels(order);
    let count = order.pods();
    Job {
        metadata: ObjectMeta {
            name: Some(order.name.to_owned()),
            namespace: order.run.namespace(),
            labels: Some(labels.clone()),
            owner_references: order.run.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            // One start: what failed is measured again by another run, if at all. One of several that fails ends all.
            backoff_limit: Some(0),
            completions: Some(count),
            parallelism: Some(count),
            completion_mode: (count > 1).then(|| "Indexed".to_owned()),
            active_deadline_seconds: Some(order.deadline_seconds),
            ttl_seconds_after_finished: Some(order.ttl_seconds),
            // A pod that is still ending is not replaced: there are never two.
            pod_replacement_policy: Some("Failed".to_owned()),
            pod_failure_policy: Some(fail_on_disruption()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    annotations: Some(BTreeMap::from([(
                        ANNOTATION_ORDER.to_owned(),
                        order.json.to_owned(),
                    )])),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(order)),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

fn labels(order: &Order<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        (LABEL_RUN.to_owned(), order.run.name_any()),
        (LABEL_TARGET.to_owned(), order.target.name_any()),
        (LABEL_ROLE.to_owned(), order.purpose.word().to_owned()),
    ]);
    if let Some(campaign) = order.run.labels().get(LABEL_CAMPAIGN) {
        labels.insert(LABEL_CAMPAIGN.to_owned(), campaign.clone());
    }
    labels
}

fn fail_on_disruption() -> PodFailurePolicy {
    PodFailurePolicy {
        rules: vec![PodFailurePolicyRule {
            action: "FailJob".to_owned(),
            on_pod_conditions: Some(vec![PodFailurePolicyOnPodConditionsPattern {
                type_: "DisruptionTarget".to_owned(),
                status: "True".to_owned(),
            }]),
            on_exit_codes: None,
        }],
    }
}

fn pod(order: &Order<'_>) -> PodSpec {
    let generator = &order.run.spec.load_generator;
    PodSpec {
        containers: vec![container(order)],
        volumes: Some(volumes(order)),
        restart_policy: Some("Never".to_owned()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(pod_security(RUNNER_USER)),
        node_selector: Some(generator.node_selector.clone()).filter(|labels| !labels.is_empty()),
        tolerations: tolerations(&generator.tolerations),
        // The Job controller gives each of several a host name of its own.
        subdomain: (order.pods() > 1).then(|| meeting_name(&order.target.name_any())),
        ..PodSpec::default()
    }
}

/// ConfigMap with scripts of somebody's own, if the workload has any.
fn scripts(order: &Order<'_>) -> Option<String> {
    let workload = &order.run.spec.workload;
    let lua = workload.sysbench.as_ref().and_then(|s| s.lua_config_map.clone());
    lua.or_else(|| {
        workload
            .pgbench
            .as_ref()
            .and_then(|p| p.script_config_map.clone())
    })
}

fn container(order: &Order<'_>) -> Container {
    let generator = &order.run.spec.load_generator;
    let image = if generator.image.is_empty() {
        order.runner_image
    } else {
        &generator.image
    };
    let mount = |name: &str, path: &str, read_only: bool| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    };
    let mut mounts = vec![
        mount("order", ORDER_DIRECTORY, true),
        mount("credentials", SECRET_DIRECTORY, true),
        mount("scratch", "/tmp", false),
    ];
    if scripts(order).is_some() {
        mounts.push(mount("scripts", SCRIPTS_DIRECTORY, true));
    }
    Container {
        name: CONTAINER_RUNNER.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(vec!["runner".to_owned()]),
        args: Some(vec![
            order.purpose.word().to_owned(),
            format!("--order={ORDER_DIRECTORY}/order.json"),
            format!("--credentials={SECRET_DIRECTORY}"),
        ]),
        resources: Some(
            generator
                .resources
                .clone()
                .unwrap_or_else(default_generator_resources),
        ),
        security_context: Some(container_security()),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

fn volumes(order: &Order<'_>) -> Vec<Volume> {
    let file = |key: &str| KeyToPath {
        key: key.to_owned(),
        path: key.to_owned(),
        mode: None,
    };
    // A borrowed server has no agent, and a certificate authority only where its owner gives one.
    let borrowed = order.target.spec.type_ == TargetType::External;
    let third = if borrowed { secret::CA } else { secret::AGENT_TOKEN };
    let mut volumes = vec![
        Volume {
            name: "order".to_owned(),
            downward_api: Some(DownwardAPIVolumeSource {
                items: Some(vec![DownwardAPIVolumeFile {
                    path: "order.json".to_owned(),
                    field_ref: Some(ObjectFieldSelector {
                        field_path: format!("metadata.annotations['{ANNOTATION_ORDER}']"),
                        api_version: None,
                    }),
                    ..DownwardAPIVolumeFile::default()
                }]),
                default_mode: None,
            }),
            ..Volume::default()
        },
        Volume {
            name: "credentials".to_owned(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(login::secret_name(order.target)),
                items: Some(vec![file(secret::USERNAME), file(secret::PASSWORD), file(third)]),
                default_mode: Some(0o440),
                optional: borrowed.then_some(true),
            }),
            ..Volume::default()
        },
        Volume {
            name: "scratch".to_owned(),
            empty_dir: Some(EmptyDirVolumeSource {
                medium: Some("Memory".to_owned()),
                size_limit: Some(Quantity(SCRATCH_LIMIT.to_owned())),
            }),
            ..Volume::default()
        },
    ];
    if let Some(name) = scripts(order) {
        volumes.push(Volume {
            name: "scripts".to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name,
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        });
    }
    volumes
}

#[cfg(test)]
mod tests;
