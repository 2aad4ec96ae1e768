//! `operator drain`, run before an uninstall: nothing new starts, what runs is finished or given up, and borrowed
//! databases have back what they had.

use std::time::Duration;

use crds::run::Step;
use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkTarget};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::context::{Context, Error, Result, timed};

/// Objects of one page of a list.
const PAGE: u32 = 50;

/// Suspends every campaign that is watched, then waits until no run is under way and no original state is left.
pub async fn drain(context: &Context, limit: Duration) -> Result<()> {
    let deadline = tokio::time::Instant::now() + limit;
    let scopes = context.settings.scopes();
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
    let active = of_each(
        "listing campaigns",
        context.watched(),
        |campaign: &BenchmarkCampaign| {
            (!campaign.spec.suspend).then(|| (campaign.namespace().unwrap_or_default(), campaign.name_any()))
        },
    )
    .await?;
    for (namespace, name) in active {
        let campaigns = context.namespaced::<BenchmarkCampaign>(&namespace);
        let patch = Patch::Merge(json!({"spec": {"suspend": true}}));
        let parameters = PatchParams::default();
        timed(
            "suspending a campaign",
            campaigns.patch(&name, &parameters, &patch),
        )
        .await?;
        tracing::info!(namespace, name, "suspended");
    }
    Ok(())
}

/// Runs that have begun and not ended, and targets that still owe their owner something.
async fn under_way(context: &Context) -> Result<Vec<String>> {
    let named = |kind: &str, namespace: Option<String>, name: String| {
        format!("{kind} {}/{name}", namespace.unwrap_or_default())
    };
    let mut left = of_each("listing runs", context.watched(), |run: &BenchmarkRun| {
        let step = run.status.as_ref().map(|s| s.step).unwrap_or_default();
        (!matches!(step, Step::Waiting | Step::Finished))
            .then(|| named("run", run.namespace(), run.name_any()))
    })
    .await?;
    let owing = of_each(
        "listing targets",
        context.watched(),
        |target: &BenchmarkTarget| {
            let owes = target.status.as_ref().is_some_and(|s| s.original_state.is_some());
            owes.then(|| named("target", target.namespace(), target.name_any()))
        },
    );
    left.extend(owing.await?);
    Ok(left)
}

/// What is kept of each object of a kind, page by page: 10,000 runs at once would be more memory than there is.
async fn of_each<K, T>(doing: &'static str, objects: Api<K>, keep: impl Fn(&K) -> Option<T>) -> Result<Vec<T>>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut kept = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = timed(doing, objects.list(&page)).await?;
        kept.extend(list.items.iter().filter_map(&keep));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(kept),
        }
    }
}
