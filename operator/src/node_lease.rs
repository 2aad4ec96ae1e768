//! Leases of nodes: never two runs are measured on one node at once, whatever campaign or namespace they are of.
//!
//! One Lease per node in the operator's namespace, held by a run from before it takes its target until it has ended.
//! It is never renewed (a measurement is not to be disturbed); it is taken over only from a run that has finished or
//! is gone.

use std::collections::BTreeMap;

use campaign::run_planner::NodeLease;
use crds::BenchmarkRun;
use crds::names::LABEL_RUN;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use sha2::{Digest as _, Sha256};

use crate::context::{Context, Error, Result, timed};

/// Annotation that names the node for people: a node's name may be longer than the lease's could be.
const ANNOTATION_NODE: &str = "benchmark-campaign.dev/node";

/// Name of the lease of a node.
pub fn lease_name(node: &str) -> String {
    let digest = Sha256::digest(node.as_bytes());
    let hash = digest
        .iter()
        .take(8)
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    format!("benchmark-node-{hash}")
}

/// A run, as a lease names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

impl Holder {
    /// The holder that a run is.
    pub fn of(run: &BenchmarkRun) -> Self {
        Self {
            namespace: run.namespace().unwrap_or_default(),
            name: run.name_any(),
            uid: run.uid().unwrap_or_default(),
        }
    }

    fn from_lease(lease: &Lease) -> Option<Self> {
        let uid = lease
            .spec
            .as_ref()?
            .holder_identity
            .clone()
            .filter(|uid| !uid.is_empty())?;
        let run = lease.annotations().get(LABEL_RUN).cloned().unwrap_or_default();
        let (namespace, name) = run.split_once('/').unwrap_or_default();
        Some(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid,
        })
    }
}

fn api(context: &Context) -> Api<Lease> {
    context.namespaced(&context.settings.operator_namespace)
}

fn claim(context: &Context, node: &str, run: &Holder, current: Option<&Lease>) -> Lease {
    let mut metadata = current.map_or_else(
        || ObjectMeta {
            name: Some(lease_name(node)),
            ..ObjectMeta::default()
        },
        |lease| lease.metadata.clone(),
    );
    metadata.managed_fields = None;
    metadata.annotations = Some(BTreeMap::from([
        (ANNOTATION_NODE.to_owned(), node.to_owned()),
        (LABEL_RUN.to_owned(), format!("{}/{}", run.namespace, run.name)),
    ]));
    Lease {
        metadata,
        spec: Some(LeaseSpec {
            holder_identity: Some(run.uid.clone()),
            acquire_time: Some(MicroTime(context.clock.now())),
            ..LeaseSpec::default()
        }),
    }
}

/// Takes the lease of a node for a run, if it is free or its holder has ended.
///
/// # Errors
/// The API server failed, or another run was faster: look again.
pub async fn take(context: &Context, node: &str, run: &Holder) -> Result<(NodeLease, Option<Lease>)> {
    let api = api(context);
    let parameters = PostParams::default();
    let Some(current) = timed("reading a node's lease", api.get_opt(&lease_name(node))).await? else {
        let made = timed(
            "taking a node's lease",
            api.create(&parameters, &claim(context, node, run, None)),
        )
        .await;
        return match made {
            Ok(lease) => Ok((NodeLease::Ours, Some(lease))),
            Err(Error::Kube {
                source: kube::Error::Api(status),
                ..
            }) if status.code == 409 => Err(Error::Conflict("a node's lease")),
            Err(error) => Err(error),
        };
    };
    if let Some(holder) = Holder::from_lease(&current) {
        if holder.uid == run.uid {
            return Ok((NodeLease::Ours, Some(current)));
        }
        let who = format!("run {} of namespace {}", holder.name, holder.namespace);
        match ended(context, &holder).await {
            Ok(true) => {}
            Ok(false) => return Ok((NodeLease::Other(who), None)),
            Err(Error::Kube {
                source: kube::Error::Api(status),
                ..
            }) if status.code == 403 => {
                return Ok((NodeLease::Other(out_of_sight(context, &who, &current)), None));
            }
            Err(error) => return Err(error),
        }
    }
    let wanted = claim(context, node, run, Some(&current));
    let taken = timed(
        "taking a node's lease",
        api.replace(&lease_name(node), &parameters, &wanted),
    )
    .await?;
    Ok((NodeLease::Ours, Some(taken)))
}

/// What a person can do about a holder in a namespace that was watched once and is no more.
fn out_of_sight(context: &Context, who: &str, lease: &Lease) -> String {
    format!(
        "{who} (which this operator may not look into: if nothing is measured there, delete lease {} of namespace {})",
        lease.name_any(),
        context.settings.operator_namespace
    )
}

/// Gives up a lease that was taken. If somebody took it over since, that is as good.
///
/// # Errors
/// The API server failed.
pub async fn release(context: &Context, lease: &Lease) -> Result<()> {
    let mut free = lease.clone();
    free.metadata.managed_fields = None;
    free.annotations_mut().remove(LABEL_RUN);
    free.spec = Some(LeaseSpec::default());
    let call = api(context);
    match timed(
        "giving up a node's lease",
        call.replace(&lease.name_any(), &PostParams::default(), &free),
    )
    .await
    {
        Ok(_) | Err(Error::Conflict(_)) => Ok(()),
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a run has finished or is gone, by a live read: taking a node from a run that measures would spoil both.
pub async fn ended(context: &Context, run: &Holder) -> Result<bool> {
    if run.name.is_empty() {
        return Ok(true);
    }
    let api = context.namespaced::<BenchmarkRun>(&run.namespace);
    let found = timed("looking whether a run has ended", api.get_opt(&run.name)).await?;
    Ok(found.is_none_or(|found| found.uid().as_deref() != Some(run.uid.as_str()) || found.has_ended()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_named_by_its_node_and_names_its_run() {
        assert_eq!(lease_name("node-1"), lease_name("node-1"));
        assert_ne!(lease_name("node-1"), lease_name("node-2"));
        assert!(lease_name(&"n".repeat(253)).len() <= 63);
        let mut lease = Lease::default();
        assert_eq!(Holder::from_lease(&lease), None);
        lease
            .annotations_mut()
            .insert(LABEL_RUN.into(), "bench/r1".into());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some("u".into()),
            ..LeaseSpec::default()
        });
        let holder = Holder::from_lease(&lease).unwrap();
        assert_eq!(
            (
                holder.namespace.as_str(),
                holder.name.as_str(),
                holder.uid.as_str()
            ),
            ("bench", "r1", "u")
        );
    }
}
