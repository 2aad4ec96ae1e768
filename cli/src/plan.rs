//! `kubectl campaign plan`.

use std::path::Path;

use crds::BenchmarkCampaign;

use crate::arguments::Scope;
use crate::{Failure, cluster, manifest};

pub(crate) async fn command(name: Option<&str>, file: Option<&Path>, scope: &Scope) -> Result<(), Failure> {
    let campaigns = match (name, file) {
        (_, Some(file)) => manifest::read(file)?,
        (Some(name), None) => {
            let (client, namespace) = cluster::connect(scope).await?;
            vec![cluster::campaign(client, &namespace, name).await?]
        }
        (None, None) => Vec::new(),
    };
    for campaign in &campaigns {
        print(campaign)?;
    }
    Ok(())
}

fn print(campaign: &BenchmarkCampaign) -> Result<(), Failure> {
    let text = campaign::report::plan(campaign).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
        Failure::Refused(lines.join("\n"))
    })?;
    print!("{text}");
    Ok(())
}
