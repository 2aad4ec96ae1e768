//! The objects around a managed server's pod: Secret, Service, volumes, configuration. Builders only; nothing is sent.

use std::collections::BTreeMap;

use crds::BenchmarkTarget;
use crds::names::{AGENT_PORT, LABEL_ROLE, LABEL_TARGET, secret};
use crds::target::Storage;
use database::configuration::ConfigurationFile;
use database::engine::CONFIGURATION_KEY;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, PersistentVolumeClaimSpec, Secret, Service, ServicePort, ServiceSpec,
    VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};

use crate::context::{Error, Result};

/// Value of the role label on a managed server's pod.
pub const ROLE_DATABASE: &str = "database";
/// Login name of the operator and the runner at a managed server.
pub const USERNAME: &str = "benchmark";
/// Random bytes in a password and in the agent's token.
const RANDOM_BYTES: usize = 24;

/// Labels of everything that a target causes: the target, and the labels of the target itself that are ours.
pub fn labels(target: &BenchmarkTarget) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = target
        .labels()
        .iter()
        .filter(|(key, _)| *key == crds::names::LABEL_CAMPAIGN)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    labels.insert(LABEL_TARGET.to_owned(), target.name_any());
    labels
}

/// Metadata of an object that belongs to a target and goes with it.
pub fn metadata(target: &BenchmarkTarget, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: target.namespace(),
        labels: Some(labels(target)),
        owner_references: target.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// Name of the log volume's claim.
pub fn log_volume_name(target: &str) -> String {
    format!("{target}-log")
}

/// Name of the ConfigMap with a configuration.
pub fn configuration_name(target: &str, hash: &str) -> String {
    format!("{target}-{hash}")
}

/// A fresh login: password and token from the system's randomness; the SQL that makes the login at every boot.
///
/// # Errors
/// The system gives no randomness.
pub fn login_secret(target: &BenchmarkTarget, init_sql: impl Fn(&str, &str) -> String) -> Result<Secret> {
    let password = random_text()?;
    let data = BTreeMap::from([
        (secret::USERNAME.to_owned(), USERNAME.to_owned()),
        (secret::INIT_SQL.to_owned(), init_sql(USERNAME, &password)),
        (secret::PASSWORD.to_owned(), password),
        (secret::AGENT_TOKEN.to_owned(), random_text()?),
    ]);
    Ok(Secret {
        metadata: metadata(target, target.name_any()),
        string_data: Some(data),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    })
}

/// Letters and digits only: the text passes through option files and URLs unquoted.
fn random_text() -> Result<String> {
    let mut bytes = [0_u8; RANDOM_BYTES];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Error::Incomplete("the system", "randomness for a password"))?;
    Ok(bytes
        .iter()
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")))
}

/// A headless Service: a stable name for people; the operator itself uses the pod's address.
pub fn service(target: &BenchmarkTarget, port: u16) -> Service {
    let mut selector = BTreeMap::from([(LABEL_TARGET.to_owned(), target.name_any())]);
    selector.insert(LABEL_ROLE.to_owned(), ROLE_DATABASE.to_owned());
    let named = |name: &str, port: u16| ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(port),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata(target, target.name_any()),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(selector),
            ports: Some(vec![named("database", port), named("agent", AGENT_PORT)]),
            publish_not_ready_addresses: Some(true),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// A volume claim.
pub fn volume(target: &BenchmarkTarget, name: String, storage: &Storage) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: metadata(target, name),
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: storage.storage_class_name.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), storage.size.clone())])),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

/// An immutable ConfigMap, named by its content: it is kept as long as the target, so that every boot that the
/// status or a run speaks of can be looked up.
pub fn configuration(target: &BenchmarkTarget, file: &ConfigurationFile) -> ConfigMap {
    ConfigMap {
        metadata: metadata(target, configuration_name(&target.name_any(), &file.hash)),
        data: Some(BTreeMap::from([(
            CONFIGURATION_KEY.to_owned(),
            file.text.clone(),
        )])),
        immutable: Some(true),
        ..ConfigMap::default()
    }
}
