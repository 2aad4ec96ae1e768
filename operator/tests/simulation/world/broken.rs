//! Act steps that are broken on purpose, one for each invariant: if a check does not catch them, it checks nothing.

use std::time::Duration;

use crds::names::LABEL_RUN;
use crds::target::{OriginalState, Permissions};
use crds::{BenchmarkCampaign, audit::AuditSetting, parameter::Parameters, run::Evidence};
use database::{
    Captured, DatabaseAccess, DatabaseError, EstablishOrder, Established, Left, Login, ParameterProblem,
    Proof, ServerIdentity,
};
use futures::{FutureExt, future::BoxFuture};
use kube::{Api, api::ListParams};
use operator::Context;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{NAMESPACE, OPERATOR, databases::Databases};
use crate::api_server::{ApiServer, Interposer};

/// Says that everything is in force and does nothing for it.
pub(crate) struct ProvesNothing(pub(crate) Databases);

impl DatabaseAccess for ProvesNothing {
    fn identify<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<ServerIdentity, DatabaseError>> {
        self.0.identify(login)
    }

    fn check<'a>(
        &'a self,
        login: &'a Login,
        parameters: &'a [Parameters],
        audit: &'a [AuditSetting],
    ) -> BoxFuture<'a, Result<Vec<ParameterProblem>, DatabaseError>> {
        self.0.check(login, parameters, audit)
    }

    fn establish<'a>(
        &'a self,
        login: &'a Login,
        order: &'a EstablishOrder,
    ) -> BoxFuture<'a, Result<Established, DatabaseError>> {
        async move {
            let answer = self.0.establish(login, order).await?;
            if let Established::Ready(_) = &answer
                && let Some(server) = self.0.lock().servers.get_mut(&login.connection.host)
            {
                // As if nothing had been set.
                server.in_force = None;
                server.proved = None;
            }
            Ok(match answer {
                Established::Ready(proof) => Established::Ready(Box::new(Proof {
                    evidence: Evidence {
                        parameters: Vec::new(),
                        ..proof.evidence
                    },
                    ..*proof
                })),
                other => other,
            })
        }
        .boxed()
    }

    fn capture<'a>(
        &'a self,
        login: &'a Login,
        permissions: &'a Permissions,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<Captured, DatabaseError>> {
        self.0.capture(login, permissions, owner)
    }

    fn restore<'a>(
        &'a self,
        login: &'a Login,
        original: Option<&'a OriginalState>,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Left>, DatabaseError>> {
        self.0.restore(login, original, owner)
    }

    fn restart<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<(), DatabaseError>> {
        self.0.restart(login)
    }
}

/// Asks the API server once a second, whatever happens.
pub(crate) async fn ask_every_second(context: Context) {
    let campaigns: Api<BenchmarkCampaign> = context.namespaced(NAMESPACE);
    loop {
        sleep(Duration::from_secs(1)).await;
        if let Ok(list) = campaigns.list(&ListParams::default()).await
            && let Some(name) = list.items.into_iter().find_map(|campaign| campaign.metadata.name)
        {
            let _ = campaigns.get(&name).await;
        }
    }
}

fn ends_with(path: &str, plural: &str) -> bool {
    path.rsplit('/').next() == Some(plural)
}

/// Makes every load's Job twice, under two names.
pub(crate) struct SecondJob;

impl Interposer for SecondJob {
    fn intercept(&self, server: &ApiServer, method: &str, path: &str, body: &mut Value) -> Option<Value> {
        if method == "POST" && ends_with(path, "jobs") {
            let mut second = body.clone();
            second["metadata"]["name"] = json!(format!("{}-2", body["metadata"]["name"].as_str()?));
            let mut state = server.lock();
            let _ = state.create_by_model(OPERATOR, "batch", "jobs", NAMESPACE, second);
        }
        None
    }
}

/// Believes that every Job is made without making it.
pub(crate) struct ForgottenJob;

impl Interposer for ForgottenJob {
    fn intercept(&self, _: &ApiServer, method: &str, path: &str, body: &mut Value) -> Option<Value> {
        (method == "POST" && ends_with(path, "jobs") && !body.is_null()).then(|| body.clone())
    }
}

/// Takes every node for free.
pub(crate) struct FreeNodes;

impl Interposer for FreeNodes {
    fn intercept(&self, server: &ApiServer, method: &str, path: &str, body: &mut Value) -> Option<Value> {
        let lease = path.contains("/leases");
        if !lease || !path.contains("benchmark-node-") && method != "POST" {
            return None;
        }
        if method == "GET" {
            // The lease as it is, held by nobody.
            let state = server.lock();
            let name = path.rsplit('/').next()?;
            let namespace = path.split('/').nth(5)?;
            let key = state.key("coordination.k8s.io", "leases", namespace, name);
            let mut found = state.store.get(&key)?.value.clone();
            found["spec"] = json!({});
            return Some(found);
        }
        let mut answer = body.clone();
        answer["metadata"]["resourceVersion"] = json!("1");
        (method == "PUT").then_some(answer)
    }
}

/// A node that was last taken for a run in a namespace that the operator may not look into any more.
pub(crate) struct HeldOutOfSight;

impl Interposer for HeldOutOfSight {
    fn intercept(&self, _: &ApiServer, method: &str, path: &str, _: &mut Value) -> Option<Value> {
        let name = path.rsplit('/').next()?;
        if method == "GET" && name.starts_with("benchmark-node-") {
            return Some(json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "resourceVersion": "1", "annotations": {LABEL_RUN: "elsewhere/lost"}},
                "spec": {"holderIdentity": "uid-of-lost"},
            }));
        }
        (method == "GET" && path.contains("/namespaces/elsewhere/")).then(|| {
            json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
                "message": "benchmarkruns \"lost\" is forbidden",
            })
        })
    }
}

/// Writes every run down as valid.
pub(crate) struct EverythingValid;

impl Interposer for EverythingValid {
    fn intercept(&self, _: &ApiServer, method: &str, path: &str, body: &mut Value) -> Option<Value> {
        if method == "PUT" && path.contains("/benchmarkruns/") && body["status"]["validity"].is_object() {
            body["status"]["validity"] = json!({"verdict": "Valid"});
        }
        None
    }
}

/// Writes a campaign's status without fitting it into its limit.
pub(crate) struct FatStatus;

impl Interposer for FatStatus {
    fn intercept(&self, _: &ApiServer, method: &str, path: &str, body: &mut Value) -> Option<Value> {
        if method == "PUT" && path.contains("/benchmarkcampaigns/") {
            let words = ["One", "Two", "Three", "Four"].map(|word| {
                json!({
                    "type": word, "status": "True", "reason": "Long", "message": "x".repeat(32_000),
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            });
            if let Some(conditions) = body["status"]["conditions"].as_array_mut() {
                conditions.retain(|condition| condition["reason"] != "Long");
                conditions.extend(words);
            }
        }
        None
    }
}

/// Makes children without an owner.
pub(crate) struct Ownerless;

impl Interposer for Ownerless {
    fn intercept(&self, _: &ApiServer, method: &str, path: &str, body: &mut Value) -> Option<Value> {
        if method == "POST"
            && ends_with(path, "persistentvolumeclaims")
            && let Some(metadata) = body["metadata"].as_object_mut()
        {
            metadata.remove("ownerReferences");
        }
        None
    }
}
