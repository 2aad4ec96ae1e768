//! `kubectl campaign run`.

use crds::names::ANNOTATION_RUN_REQUEST;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::arguments::Scope;
use crate::{Failure, cluster};

pub(crate) async fn command(name: &str, token: Option<String>, scope: &Scope) -> Result<(), Failure> {
    let (client, namespace) = cluster::connect(scope).await?;
    let campaign = cluster::campaign(client.clone(), &namespace, name).await?;
    let token = token.unwrap_or_else(|| Timestamp::now().to_string());
    let seen = campaign
        .status
        .as_ref()
        .is_some_and(|status| status.run_requests.contains(&token));
    if seen {
        return Err(Failure::Cluster(format!(
            "the token {token} was seen before and never runs again: use another, or none"
        )));
    }
    let patch = json!({"metadata": {"annotations": {ANNOTATION_RUN_REQUEST: token}}});
    cluster::campaigns(client, &namespace)
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(|error| cluster::refused(&error))?;
    println!(
        "{name} is asked to run again ({token}); follow it with kubectl campaign watch {name} -n {namespace}"
    );
    Ok(())
}
