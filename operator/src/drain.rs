//! `operator drain`, run before an uninstall: nothing new starts, what runs is finished or given up, and borrowed
//! databases have back what they had.

use std::time::Duration;

use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkTarget};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::context::{Context, Error, Result, Scope, while_doing};

/// Suspends every campaign that is watched, then waits until no run is under way and no original state is left.
pub async fn drain(context: &Context, limit: Duration) -> Result<()> {
    let deadline = tokio::time::Instant::now() + limit;
    let scopes: Vec<Scope> = if context.settings.watch_namespaces.is_empty() {
        vec![Scope::Cluster]
    } else {
        context
            .settings
            .watch_namespaces
            .iter()
            .cloned()
            .map(Scope::Namespace)
            .collect()
    };
    for scope in scopes {
        let context = Context {
            scope,
            ..context.clone()
        };
        suspend_all(&context).await?;
        loop {
            let left = under_way(&context).await?;
            if left.is_empty() {
                break;
            }
            if tokio::time::Instant::now() >= deadline {
                tracing::error!(left = ?left, "not drained in time: delete these campaigns, or uninstall again later");
                return Err(Error::TimedOut(
                    "waiting for runs to end and for borrowed databases to be restored",
                ));
            }
            tracing::info!(left = ?left, "waiting");
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
    tracing::info!("drained");
    Ok(())
}

async fn suspend_all(context: &Context) -> Result<()> {
    let campaigns = context.watched::<BenchmarkCampaign>();
    for campaign in campaigns
        .list(&ListParams::default())
        .await
        .map_err(while_doing("listing campaigns"))?
    {
        if campaign.spec.suspend {
            continue;
        }
        let namespace = campaign.namespace().unwrap_or_default();
        let patch = Patch::Merge(json!({"spec": {"suspend": true}}));
        context
            .namespaced::<BenchmarkCampaign>(&namespace)
            .patch(&campaign.name_any(), &PatchParams::default(), &patch)
            .await
            .map_err(while_doing("suspending a campaign"))?;
        tracing::info!(namespace, name = campaign.name_any(), "suspended");
    }
    Ok(())
}

/// Runs that have begun and not ended, and targets that still owe their owner something.
async fn under_way(context: &Context) -> Result<Vec<String>> {
    let mut left = Vec::new();
    let parameters = ListParams::default();
    for run in context
        .watched::<BenchmarkRun>()
        .list(&parameters)
        .await
        .map_err(while_doing("listing runs"))?
    {
        let step = run.status.as_ref().map(|s| s.step).unwrap_or_default();
        if !matches!(step, crds::run::Step::Waiting | crds::run::Step::Finished) {
            left.push(format!(
                "run {}/{}",
                run.namespace().unwrap_or_default(),
                run.name_any()
            ));
        }
    }
    for target in context
        .watched::<BenchmarkTarget>()
        .list(&parameters)
        .await
        .map_err(while_doing("listing targets"))?
    {
        if target.status.as_ref().is_some_and(|s| s.original_state.is_some()) {
            left.push(format!(
                "target {}/{}",
                target.namespace().unwrap_or_default(),
                target.name_any()
            ));
        }
    }
    Ok(left)
}
