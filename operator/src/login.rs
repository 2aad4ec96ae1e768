//! How the operator logs in to a target: address from its status, login from its Secret, read when it is needed and
//! kept nowhere.

use crds::BenchmarkTarget;
use crds::names::{AGENT_PORT, secret};
use crds::runner::Connection;
use crds::target::{Engine, TargetType};
use database::{DatabaseError, Login};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;

use crate::context::{Context, Error, Result, while_doing};

/// Schema in which the tables of a workload are made.
pub const SCHEMA: &str = "sbtest";

/// Port of an engine's server.
pub const fn default_port(engine: Engine) -> u16 {
    match engine {
        Engine::MySQL | Engine::MariaDB => 3306,
        Engine::PostgreSQL => 5432,
    }
}

/// The connection that operator and runner use to a target that has booted.
pub fn connection(target: &BenchmarkTarget) -> Option<Connection> {
    let boot = target.status.as_ref()?.boot.as_ref()?;
    let engine = target.spec.engine;
    let managed = target.spec.type_ == TargetType::Managed;
    let external = target.spec.external.as_ref();
    Some(Connection {
        engine,
        host: boot.address.clone(),
        port: external
            .and_then(|e| e.port)
            .and_then(|p| u16::try_from(p).ok())
            .unwrap_or_else(|| default_port(engine)),
        tls: external.map(|e| e.tls.clone()),
        schema: external
            .and_then(|e| e.permissions.dataset_schema.clone())
            .unwrap_or_else(|| SCHEMA.to_owned()),
        agent: managed.then(|| format!("http://{}:{AGENT_PORT}", host_in_url(&boot.address))),
    })
}

fn host_in_url(address: &str) -> String {
    if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    }
}

/// Name of the Secret that holds a target's login.
pub fn secret_name(target: &BenchmarkTarget) -> String {
    target
        .spec
        .external
        .as_ref()
        .map_or_else(|| target.name_any(), |e| e.credentials_secret_ref.name.clone())
}

/// Reads the Secret and puts the login together.
///
/// # Errors
/// The target has not booted, or its Secret lacks a key: the error names it.
pub async fn login(context: &Context, target: &BenchmarkTarget) -> Result<Login> {
    let connection = connection(target).ok_or(Error::Incomplete("the target", "boot in its status"))?;
    let namespace = target.namespace().unwrap_or_default();
    let name = secret_name(target);
    let read = context
        .namespaced::<Secret>(&namespace)
        .get(&name)
        .await
        .map_err(while_doing("reading the target's Secret"))?;
    let data = read.data.unwrap_or_default();
    let text = |key: &str| {
        data.get(key)
            .and_then(|bytes| String::from_utf8(bytes.0.clone()).ok())
    };
    let required = |key: &str| {
        text(key).ok_or_else(|| {
            Error::Database(DatabaseError::Refused {
                host: connection.host.clone(),
                port: connection.port,
                message: format!("Secret `{name}` has no key `{key}`: add it"),
            })
        })
    };
    Ok(Login {
        username: required(secret::USERNAME)?,
        password: required(secret::PASSWORD)?,
        certificate_authority: data.get(secret::CA).map(|bytes| bytes.0.clone()),
        agent_token: text(secret::AGENT_TOKEN),
        connection,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::target::Boot;
    use crds::{BenchmarkTargetSpec, BenchmarkTargetStatus};

    #[test]
    fn a_target_that_has_not_booted_has_no_connection_and_ipv6_addresses_are_bracketed() {
        let mut target = BenchmarkTarget::new(
            "t",
            BenchmarkTargetSpec {
                engine: Engine::MariaDB,
                type_: TargetType::Managed,
                expect: None,
                managed: None,
                external: None,
            },
        );
        assert_eq!(connection(&target), None);
        target.status = Some(BenchmarkTargetStatus {
            boot: Some(Boot {
                address: "fd00::7".into(),
                ..Boot::default()
            }),
            ..BenchmarkTargetStatus::default()
        });
        let found = connection(&target).unwrap();
        assert_eq!(found.host, "fd00::7");
        assert_eq!(found.port, 3306);
        assert_eq!(found.agent.as_deref(), Some("http://[fd00::7]:9180"));
    }
}
