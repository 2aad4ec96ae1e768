//! What a managed server's pod must be, whatever the target asks for.

use crds::target::{BenchmarkTargetSpec, Engine, Storage, TargetType};
use database::engine::{Layout, find};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::*;
use crate::target::parts;

fn target(log: bool) -> BenchmarkTarget {
    let managed = Managed {
        image: "mariadb:11.8".into(),
        cpu: Quantity("4".into()),
        memory: Quantity("16Gi".into()),
        log_storage: log.then(Storage::default),
        tolerations: vec![crds::placement::Toleration {
            key: Some("bench".into()),
            operator: Some(crds::placement::TolerationOperator::Exists),
            effect: Some(crds::placement::TaintEffect::NoSchedule),
            ..crds::placement::Toleration::default()
        }],
        ..Managed::default()
    };
    let spec = BenchmarkTargetSpec {
        engine: Engine::MariaDB,
        type_: TargetType::Managed,
        expect: None,
        managed: Some(managed),
        external: None,
    };
    let mut target = BenchmarkTarget::new("audit-db", spec);
    target.metadata.namespace = Some("bench".into());
    target.metadata.uid = Some("target-uid".into());
    target
}

fn pod(target: &BenchmarkTarget, node: Option<&str>) -> Pod {
    let server = find(Engine::MariaDB).unwrap().managed(&Layout::pod(3306));
    build(&Boot {
        target,
        managed: target.spec.managed.as_ref().unwrap(),
        server: &server,
        runner_image: "runner:1",
        serial: 7,
        configuration_hash: "c0ffee",
        node,
    })
}

/// Every rule of the restricted pod security level that a pod without host features can break.
pub(crate) fn assert_restricted(spec: &PodSpec) {
    let pod = spec.security_context.as_ref().unwrap();
    assert_eq!(pod.run_as_non_root, Some(true));
    assert!(pod.run_as_user.unwrap() > 0);
    assert_eq!(pod.seccomp_profile.as_ref().unwrap().type_, "RuntimeDefault");
    assert_eq!(spec.automount_service_account_token, Some(false));
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    for container in containers {
        let security = container.security_context.as_ref().unwrap();
        assert_eq!(
            security.allow_privilege_escalation,
            Some(false),
            "{}",
            container.name
        );
        assert_eq!(
            security.read_only_root_filesystem,
            Some(true),
            "{}",
            container.name
        );
        let dropped = security.capabilities.as_ref().unwrap().drop.clone();
        assert_eq!(dropped, Some(vec!["ALL".to_owned()]), "{}", container.name);
        assert!(
            container.env.is_none() && container.env_from.is_none(),
            "{}",
            container.name
        );
    }
}

#[test]
fn it_is_restricted_guaranteed_and_probed_at_its_start_only() {
    let pod = pod(&target(true), None);
    let spec = pod.spec.unwrap();
    assert_restricted(&spec);
    assert_eq!(spec.share_process_namespace, Some(true));
    assert_eq!(spec.termination_grace_period_seconds, Some(600));
    assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
    for container in spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten())
    {
        let resources = container.resources.as_ref().unwrap();
        assert_eq!(
            resources.requests, resources.limits,
            "{}: Guaranteed",
            container.name
        );
        assert!(container.liveness_probe.is_none() && container.readiness_probe.is_none());
    }
    let database = spec
        .containers
        .iter()
        .find(|c| c.name == CONTAINER_DATABASE)
        .unwrap();
    let probe = database.startup_probe.as_ref().unwrap();
    assert_eq!(
        (probe.period_seconds, probe.failure_threshold),
        (Some(1), Some(600))
    );
    assert_eq!(
        database.termination_message_policy.as_deref(),
        Some("FallbackToLogsOnError")
    );
}

#[test]
fn it_says_which_request_it_answers_and_stays_on_its_node() {
    let pod = pod(&target(false), Some("node-1"));
    assert_eq!(pod.annotations()[ANNOTATION_BOOT_SERIAL], "7");
    assert_eq!(pod.annotations()[ANNOTATION_CONFIGURATION_HASH], "c0ffee");
    assert_eq!(pod.labels()[LABEL_ROLE], ROLE_DATABASE);
    assert_eq!(pod.owner_references()[0].uid, "target-uid");
    let spec = serde_json::to_value(pod.spec.unwrap()).unwrap();
    let term = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        [0]["matchFields"][0];
    assert_eq!(
        term,
        &serde_json::json!({"key": "metadata.name", "operator": "In", "values": ["node-1"]})
    );
    let toleration = serde_json::json!([{"key": "bench", "operator": "Exists", "effect": "NoSchedule"}]);
    assert_eq!(spec["tolerations"], toleration);
}

#[test]
fn each_container_gets_the_part_of_the_secret_that_it_needs() {
    let spec = pod(&target(false), None).spec.unwrap();
    let keys = |volume: &str| -> Vec<String> {
        let volumes = spec.volumes.as_ref().unwrap();
        let secret = volumes
            .iter()
            .find(|v| v.name == volume)
            .unwrap()
            .secret
            .as_ref()
            .unwrap();
        secret
            .items
            .as_ref()
            .unwrap()
            .iter()
            .map(|item| item.key.clone())
            .collect()
    };
    assert_eq!(keys("init-sql"), ["init.sql"]);
    assert_eq!(keys("token"), ["agent-token"]);
    let mounts = |name: &str| -> Vec<String> {
        let containers = spec
            .containers
            .iter()
            .chain(spec.init_containers.iter().flatten());
        let container = containers.clone().find(|c| c.name == name).unwrap();
        container
            .volume_mounts
            .as_ref()
            .unwrap()
            .iter()
            .map(|m| m.name.clone())
            .collect()
    };
    assert_eq!(
        mounts(CONTAINER_DATABASE),
        ["data", "tmp", "configuration", "init-sql"]
    );
    assert_eq!(mounts(CONTAINER_AGENT), ["data", "token"]);
    assert_eq!(mounts(CONTAINER_INIT), ["data", "tmp", "init-sql"]);
}

#[test]
fn every_mount_has_its_volume_with_and_without_a_log_volume() {
    for log in [false, true] {
        let spec = pod(&target(log), None).spec.unwrap();
        let volumes: Vec<String> = spec.volumes.unwrap().into_iter().map(|v| v.name).collect();
        for container in spec
            .containers
            .iter()
            .chain(spec.init_containers.iter().flatten())
        {
            for mount in container.volume_mounts.iter().flatten() {
                assert!(
                    volumes.contains(&mount.name),
                    "{}: {}",
                    container.name,
                    mount.name
                );
            }
        }
        assert_eq!(volumes.contains(&"log".to_owned()), log);
    }
}

#[test]
fn the_login_is_random_and_nowhere_but_in_the_secret() {
    let target = target(true);
    let engine = find(Engine::MariaDB).unwrap();
    let make = || -> Secret {
        parts::login_secret(&target, |user, password| engine.init_sql(user, password)).unwrap()
    };
    let secret = make().string_data.unwrap();
    let password = &secret[secret::PASSWORD];
    assert_eq!(password.len(), 48);
    assert_ne!(password, &secret[secret::AGENT_TOKEN]);
    assert_ne!(password, &make().string_data.unwrap()[secret::PASSWORD]);
    assert!(secret[secret::INIT_SQL].contains(password));
    let file = database::configuration::ConfigurationFile::new("[mariadbd]\n".into());
    let elsewhere = [
        serde_json::to_string(&pod(&target, None)).unwrap(),
        serde_json::to_string(&parts::service(&target, 3306)).unwrap(),
        serde_json::to_string(&parts::configuration(&target, &file)).unwrap(),
        serde_json::to_string(&parts::volume(&target, "audit-db".into(), &Storage::default())).unwrap(),
    ];
    for text in elsewhere {
        assert!(!text.contains(password) && !text.contains(&secret[secret::AGENT_TOKEN]));
        assert!(text.contains("target-uid"), "owned by the target: {text}");
    }
}
