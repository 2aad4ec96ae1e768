//! `kubectl campaign watch`: a line whenever something changes, the report at the end.

use std::time::Duration;

use crds::BenchmarkCampaign;
use crds::names::condition::{FINISHED, SUCCEEDED};

use crate::arguments::Scope;
use crate::{Failure, cluster};

/// One small read each: a watch that outlives days of measuring would have to be renewed all the same.
const EVERY: Duration = Duration::from_secs(2);

pub(crate) async fn command(name: &str, scope: &Scope) -> Result<(), Failure> {
    let (client, namespace) = cluster::connect(scope).await?;
    let mut said = String::new();
    loop {
        let campaign = cluster::campaign(client.clone(), &namespace, name).await?;
        let line = campaign::report::line(&campaign);
        if line != said {
            println!("{line}");
            said = line;
        }
        if is_true(&campaign, FINISHED) {
            print!("\n{}", campaign::report::text(&campaign));
            return if is_true(&campaign, SUCCEEDED) {
                Ok(())
            } else {
                Err(Failure::NotSucceeded(format!(
                    "{name} has ended and did not succeed"
                )))
            };
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Whether a condition holds for the generation that is there now.
fn is_true(campaign: &BenchmarkCampaign, type_: &str) -> bool {
    let Some(status) = &campaign.status else {
        return false;
    };
    status.observed_generation == campaign.metadata.generation
        && status
            .conditions
            .iter()
            .any(|condition| condition.type_ == type_ && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use crds::names::condition::FINISHED;

    use super::is_true;

    #[test]
    fn an_end_of_an_earlier_generation_is_none() {
        let text = include_str!("../../examples/quickstart.yaml");
        let mut campaign = crate::manifest::parse(text).unwrap().remove(0);
        campaign.metadata.generation = Some(2);
        let status = serde_json::json!({"observedGeneration": 1, "conditions": [
            {"type": FINISHED, "status": "True", "reason": "Refused", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ]});
        campaign.status = Some(serde_json::from_value(status).unwrap());
        assert!(!is_true(&campaign, FINISHED));
        campaign.status.as_mut().unwrap().observed_generation = Some(2);
        assert!(is_true(&campaign, FINISHED));
    }
}
