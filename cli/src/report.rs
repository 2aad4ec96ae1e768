//! `kubectl campaign report`.

use campaign::report;
use crds::names::LABEL_CAMPAIGN;
use crds::{BenchmarkCampaign, BenchmarkRun};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};

use crate::arguments::{Output, Scope};
use crate::{Failure, cluster};

/// Runs asked for in one request: a run is a few kilobytes.
const PAGE: u32 = 500;

pub(crate) async fn command(name: &str, output: Output, scope: &Scope) -> Result<(), Failure> {
    let (client, namespace) = cluster::connect(scope).await?;
    let campaign = cluster::campaign(client.clone(), &namespace, name).await?;
    match output {
        Output::Text => print!("{}", report::text(&campaign)),
        Output::Json => {
            let json = serde_json::to_string_pretty(&campaign.status)
                .map_err(|error| Failure::Cluster(format!("the status cannot be written: {error}")))?;
            println!("{json}");
        }
        Output::Csv => {
            let runs = runs(client, &namespace, &campaign).await?;
            print!("{}", report::runs_csv(&runs));
        }
    }
    Ok(())
}

/// The runs of a campaign, by pages.
pub(crate) async fn runs(
    client: Client,
    namespace: &str,
    campaign: &BenchmarkCampaign,
) -> Result<Vec<BenchmarkRun>, Failure> {
    let (name, uid) = (campaign.name_any(), campaign.uid().unwrap_or_default());
    let api: Api<BenchmarkRun> = Api::namespaced(client, namespace);
    let mut parameters = ListParams::default()
        .labels(&format!("{LABEL_CAMPAIGN}={name}"))
        .limit(PAGE);
    let mut runs = Vec::new();
    loop {
        let page = api
            .list(&parameters)
            .await
            .map_err(|error| cluster::refused(&error))?;
        let next = page.metadata.continue_.clone().filter(|token| !token.is_empty());
        runs.extend(
            page.items
                .into_iter()
                .filter(|run| run.owner_references().iter().any(|owner| owner.uid == uid)),
        );
        match next {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(runs),
        }
    }
}
