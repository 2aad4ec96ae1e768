//! The local node with this checkout's operator, used by nobody else meanwhile, and the few things that the benchmark
//! asks of it.

use serde::Deserialize;
use serde_json::Value;

use super::metrics::ApiRequests;
use super::process::Process;
use crate::cache::{Cache, Lock, lock_file};
use crate::cluster::{Choice, Cluster, Consent};
use crate::command::answer;
use crate::error::{Error, Result};
use crate::images;
use crate::install::{self, ImageNames, OPERATOR_NAMESPACE, RELEASE};
use crate::machine;
use crate::node::measuring_lock;
use crate::progress::step;
use crate::view::Campaign;

/// Namespace of campaigns and of the shell loop.
pub const NAMESPACE: &str = "speed";
/// Namespace of the many finished runs.
pub const STORED_NAMESPACE: &str = "speed-stored";
/// The demo's namespace, which the operator watches again afterwards.
const DEMO_NAMESPACE: &str = "bench";
const OPERATOR: &str =
    "app.kubernetes.io/name=benchmark-campaign-operator,app.kubernetes.io/component=operator";
const QUICKSTART: &str = "examples/quickstart.yaml";

/// The node, the operator and the right to use them alone.
#[derive(Debug)]
pub struct Testbed {
    cache: Cache,
    /// The cluster.
    pub cluster: Cluster,
    /// Images in it.
    pub names: ImageNames,
    _alone: [Lock; 2],
}

/// The operator's pod and process.
#[derive(Clone, Debug)]
pub struct Operator {
    pod: String,
    /// The process.
    pub process: Process,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

/// A campaign outside of the benchmark's namespaces that has begun and not finished, as `namespace/name`.
fn running(list: &str) -> Option<String> {
    let list: List<Campaign> = serde_json::from_str(list).ok()?;
    let campaign = list.items.into_iter().find(|campaign| {
        let ours = [NAMESPACE, STORED_NAMESPACE].contains(&campaign.metadata.namespace.as_str());
        !ours && campaign.status.start_time.is_some() && campaign.holds("Finished").is_none()
    })?;
    Some(format!(
        "{}/{}",
        campaign.metadata.namespace, campaign.metadata.name
    ))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Testbed {
    /// Makes everything ready: node, images, operator.
    pub fn ready(cache: &Cache) -> Result<Self> {
        let alone = [lock_file(&cache.path("suite.lock"))?, measuring_lock()?];
        let cluster = Cluster::ready(cache, &Choice::Local, &Consent::default())?;
        let images = machine::project_images(cache)?;
        let names = install::provide_images(cache, &cluster, &images)?;
        let testbed = Self {
            cache: cache.clone(),
            cluster,
            names,
            _alone: alone,
        };
        testbed.nothing_else_runs()?;
        Ok(testbed)
    }

    /// The operator will watch the benchmark's namespace only, which would leave a campaign of somebody else without one.
    fn nothing_else_runs(&self) -> Result<()> {
        let installed = ["get", "crd", "benchmarkcampaigns.benchmark-campaign.dev"];
        if self.try_kubectl(&installed).is_none() {
            return Ok(());
        }
        let text = self.kubectl(&["get", "benchmarkcampaigns", "--all-namespaces", "--output=json"])?;
        match running(&text) {
            Some(campaign) => Err(Error::Plain(format!(
                "the campaign {campaign} has not finished: wait for its end or delete it, then measure"
            ))),
            None => Ok(()),
        }
    }

    /// Installs the operator anew, watching one namespace, as a user of the quickstart has it.
    pub fn install(&self, watched: &str) -> Result<Operator> {
        install::operator(&self.cache, &self.cluster, &self.names, &[watched])?;
        // A new process: what an earlier phase left in its heap is not counted to this one.
        self.scale(0)?;
        self.scale(1)?;
        let operator = self.operator()?;
        self.leads(&operator)?;
        Ok(operator)
    }

    /// Waits until an operator leads: before that it watches nothing. The first operator of a cluster makes the lease.
    fn leads(&self, operator: &Operator) -> Result<()> {
        let lease = format!("lease/{RELEASE}");
        let holder = format!("--for=jsonpath={{.spec.holderIdentity}}={}", operator.pod);
        for condition in ["--for=create", &holder] {
            self.kubectl(&[
                "wait",
                condition,
                &lease,
                "--timeout=60s",
                "--namespace",
                OPERATOR_NAMESPACE,
            ])?;
        }
        Ok(())
    }

    /// Stops or starts the operator and waits for it.
    pub fn scale(&self, replicas: u32) -> Result<()> {
        let deployment = format!("deployment/{RELEASE}");
        let count = format!("--replicas={replicas}");
        self.kubectl(&["scale", &deployment, &count, "--namespace", OPERATOR_NAMESPACE])?;
        self.kubectl(&[
            "rollout",
            "status",
            &deployment,
            "--timeout=120s",
            "--namespace",
            OPERATOR_NAMESPACE,
        ])?;
        if replicas == 0 {
            self.kubectl(&[
                "wait",
                "--for=delete",
                "pod",
                "--selector",
                OPERATOR,
                "--timeout=120s",
                "--namespace",
                OPERATOR_NAMESPACE,
            ])?;
        }
        Ok(())
    }

    /// The running operator.
    pub fn operator(&self) -> Result<Operator> {
        let pods = self.list(
            OPERATOR_NAMESPACE,
            "pods",
            &["--selector", OPERATOR, "--field-selector=status.phase=Running"],
        )?;
        let [pod] = pods.as_slice() else {
            return Err(Error::Plain(format!(
                "{} operator pods run in {OPERATOR_NAMESPACE}, one is needed",
                pods.len()
            )));
        };
        let container = text(&pod["status"]["containerStatuses"][0]["containerID"]);
        Ok(Operator {
            pod: text(&pod["metadata"]["name"]).to_owned(),
            process: Process::of_container(container)?,
        })
    }

    /// The operator's count of API requests.
    pub fn requests(&self, operator: &Operator) -> Result<ApiRequests> {
        let path = format!(
            "/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{}:8080/proxy/metrics",
            operator.pod
        );
        let requests = ApiRequests::parse(&self.kubectl(&["get", "--raw", &path])?);
        if requests.is_empty() {
            return Err(Error::Plain(
                "the operator's metrics count no API requests".into(),
            ));
        }
        Ok(requests)
    }

    /// The quickstart as JSON, to be changed where the benchmark needs it.
    pub fn quickstart(&self) -> Result<Value> {
        let path = images::repository().join(QUICKSTART);
        let path_text = path.to_string_lossy().into_owned();
        let text = self.kubectl(&[
            "create",
            "--dry-run=client",
            "--output=json",
            "--filename",
            &path_text,
        ])?;
        serde_json::from_str(&text).map_err(|error| Error::Plain(format!("{}: {error}", path.display())))
    }

    /// Applies a manifest.
    pub fn apply(&self, what: &str, manifest: &Value) -> Result<()> {
        install::apply(&self.cluster, what, &manifest.to_string())
    }

    /// Runs kubectl.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.cluster
            .ask(&format!("kubectl {}", arguments.join(" ")), arguments)
    }

    /// Runs kubectl where its failure is an answer.
    pub fn try_kubectl(&self, arguments: &[&str]) -> Option<String> {
        answer(self.cluster.kubectl().args(arguments))
    }

    /// Objects of a kind.
    pub fn list(&self, namespace: &str, kind: &str, more: &[&str]) -> Result<Vec<Value>> {
        let mut arguments = vec!["get", kind, "--namespace", namespace, "--output=json"];
        arguments.extend(more);
        let text = self.kubectl(&arguments)?;
        serde_json::from_str(&text)
            .map(|list: List<Value>| list.items)
            .map_err(|error| Error::Plain(format!("the list of {kind}: {error}")))
    }

    /// Removes what the benchmark made, and has the operator watch the demo's namespace again.
    pub fn leave(&self) -> Result<()> {
        self.remove(&[NAMESPACE, STORED_NAMESPACE])?;
        install::operator(&self.cache, &self.cluster, &self.names, &[DEMO_NAMESPACE])
    }

    /// Removes namespaces with all that is in them.
    pub fn remove(&self, namespaces: &[&str]) -> Result<()> {
        step("removing the benchmark's namespaces", || {
            let mut arguments = vec!["delete", "namespace", "--ignore-not-found", "--timeout=300s"];
            arguments.extend(namespaces);
            self.kubectl(&arguments).map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn somebody_elses_campaign_stands_in_the_way_until_it_has_finished() {
        let campaign = |namespace: &str, status: &Value| json!({"metadata": {"name": "audit-cost", "namespace": namespace}, "status": status});
        let list = |items: &[Value]| json!({"items": items}).to_string();
        let begun = json!({"startTime": "2026-01-01T00:00:00Z"});
        let ended = json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Finished", "status": "True"}]});
        let ours = campaign(NAMESPACE, &begun);
        assert_eq!(
            running(&list(&[
                ours.clone(),
                campaign("bench", &ended),
                campaign("bench", &json!({}))
            ])),
            None
        );
        assert_eq!(
            running(&list(&[ours, campaign("bench", &begun)])).as_deref(),
            Some("bench/audit-cost")
        );
    }
}
