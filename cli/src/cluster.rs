//! The API server, by the kubeconfig that kubectl uses.

use crds::BenchmarkCampaign;
use kube::{Api, Client};

use crate::Failure;
use crate::arguments::Scope;

/// A client and the namespace to look in.
pub(crate) async fn connect(scope: &Scope) -> Result<(Client, String), Failure> {
    let client = Client::try_default().await.map_err(|error| {
        Failure::Cluster(format!(
            "no cluster: {error}; set KUBECONFIG or the current context as for kubectl"
        ))
    })?;
    let namespace = scope
        .namespace
        .clone()
        .unwrap_or_else(|| client.default_namespace().to_owned());
    Ok((client, namespace))
}

/// Campaigns of a namespace.
pub(crate) fn campaigns(client: Client, namespace: &str) -> Api<BenchmarkCampaign> {
    Api::namespaced(client, namespace)
}

/// One campaign, or a sentence why not.
pub(crate) async fn campaign(
    client: Client,
    namespace: &str,
    name: &str,
) -> Result<BenchmarkCampaign, Failure> {
    campaigns(client, namespace)
        .get_opt(name)
        .await
        .map_err(|error| refused(&error))?
        .ok_or_else(|| {
            Failure::Cluster(format!(
                "there is no BenchmarkCampaign {name} in namespace {namespace}; list them with kubectl get bc -A"
            ))
        })
}

/// What the API server says, and what to do.
pub(crate) fn refused(error: &kube::Error) -> Failure {
    let hint = match error {
        kube::Error::Api(status) if status.code == 404 => "; is the operator's chart installed?",
        kube::Error::Api(status) if status.code == 403 => {
            "; you need to get, list and patch benchmarkcampaigns and benchmarkruns"
        }
        _ => "",
    };
    Failure::Cluster(format!("the API server says: {error}{hint}"))
}
