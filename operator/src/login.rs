//! How the operator logs in to a target: address from its status, login from its Secret, read when it is needed and
//! kept nowhere.

use crds::BenchmarkTarget;
use crds::names::{AGENT_PORT, LABEL_CREDENTIALS, secret};
use crds::runner::Connection;
use crds::target::TargetType;
use database::{DatabaseError, Login, engine};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;

use crate::context::{Context, Error, Result, timed};

/// Schema in which the tables of a workload are made.
pub const SCHEMA: &str = "sbtest";

/// The connection that operator and runner use to a target that has booted; none to an engine that is not known.
pub fn connection(target: &BenchmarkTarget) -> Option<Connection> {
    let boot = target.status.as_ref()?.boot.as_ref()?;
    connection_at(target, &boot.address)
}

fn connection_at(target: &BenchmarkTarget, address: &str) -> Option<Connection> {
    let support = engine::find(target.spec.engine).ok()?;
    let managed = target.spec.type_ == TargetType::Managed;
    let external = target.spec.external.as_ref();
    Some(Connection {
        engine: support.engine(),
        host: address.to_owned(),
        port: external
            .and_then(|e| e.port)
            .and_then(|p| u16::try_from(p).ok())
            .unwrap_or_else(|| support.default_port()),
        tls: external.map(|e| e.tls.clone()),
        schema: external
            .and_then(|e| e.permissions.dataset_schema.clone())
            .unwrap_or_else(|| SCHEMA.to_owned()),
        agent: managed.then(|| format!("http://{}:{AGENT_PORT}", host_in_url(address))),
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
    read(context, target, connection).await
}

/// The same for a server that has an address and no boot in the status yet.
///
/// # Errors
/// The engine is not known, or the target's Secret lacks a key: the error names it.
pub async fn login_at(context: &Context, target: &BenchmarkTarget, address: &str) -> Result<Login> {
    let connection =
        connection_at(target, address).ok_or(Error::Incomplete("the target", "engine that is known"))?;
    read(context, target, connection).await
}

async fn read(context: &Context, target: &BenchmarkTarget, connection: Connection) -> Result<Login> {
    let namespace = target.namespace().unwrap_or_default();
    let name = secret_name(target);
    let secrets = context.namespaced::<Secret>(&namespace);
    let found = timed("reading the target's Secret", secrets.get_opt(&name)).await?;
    let Some(read) = found else {
        return Err(Error::Database(DatabaseError::Refused {
            host: connection.host.clone(),
            port: connection.port,
            message: format!("there is no Secret `{name}`: make it, with username and password"),
        }));
    };
    let borrowed = target.spec.type_ == TargetType::External;
    let labelled = read.labels().get(LABEL_CREDENTIALS).map(String::as_str) == Some("true");
    if borrowed && !labelled {
        return Err(Error::Database(DatabaseError::Refused {
            host: connection.host.clone(),
            port: connection.port,
            message: format!(
                "Secret `{name}` is not marked as credentials: label it {LABEL_CREDENTIALS}=true if this operator may use it"
            ),
        }));
    }
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
    use crds::target::{Boot, Engine};
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
