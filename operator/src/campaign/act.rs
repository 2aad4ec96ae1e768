//! Does what the campaign's planner says: one call an action. Every action can be repeated after a crash.

use std::time::Duration;

use campaign::campaign_planner::{Action, CampaignPlan, EventType as PlannedEvent, Obstacle};
use crds::{BenchmarkCampaign, BenchmarkRun, BenchmarkTarget};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::State;
use crate::context::{Error, Result, timed, while_doing};
use crate::{holder, login};

/// Carries a plan out; returns when to look again without an event.
pub(super) async fn carry_out(
    state: &State,
    campaign: &BenchmarkCampaign,
    plan: CampaignPlan,
) -> Result<Option<Duration>> {
    let before = campaign.status.clone().unwrap_or_default();
    let changed = campaign.status.as_ref() != Some(&plan.status);
    // The start freezes the spec: it is written before anything relies on it. All else is told after it is done,
    // so that the next run does not wait for the telling.
    let starts = before.start_time.is_none() && plan.status.start_time.is_some();
    if changed && starts {
        write_status(state, campaign, &plan).await?;
    }
    let mut again = plan.requeue;
    for action in &plan.actions {
        if carry_out_one(state, campaign, action).await? == Outcome::LookAgain {
            again = Some(Duration::ZERO);
        }
    }
    if changed && !starts {
        write_status(state, campaign, &plan).await?;
    }
    Ok(again)
}

/// Whether something was learnt that only another look can use (nothing in the cluster will tell of it).
#[derive(PartialEq, Eq)]
enum Outcome {
    Done,
    LookAgain,
}

async fn write_status(state: &State, campaign: &BenchmarkCampaign, plan: &CampaignPlan) -> Result<()> {
    let mut wanted = campaign.clone();
    wanted.status = Some(plan.status.clone());
    let api = state
        .context
        .namespaced::<BenchmarkCampaign>(&namespace(campaign));
    let name = campaign.name_any();
    let parameters = PostParams::default();
    let written = timed(
        "writing the campaign's status",
        api.replace_status(&name, &parameters, &wanted),
    )
    .await?;
    state.memory.written(written);
    Ok(())
}

fn namespace(campaign: &BenchmarkCampaign) -> String {
    campaign.namespace().unwrap_or_default()
}

async fn carry_out_one(state: &State, campaign: &BenchmarkCampaign, action: &Action) -> Result<Outcome> {
    let context = &state.context;
    let namespace = namespace(campaign);
    let uid = campaign.uid().unwrap_or_default();
    match action {
        Action::CreateTarget(target) => create(state, campaign, target.as_ref()).await,
        Action::CreateRun(run) => create(state, campaign, run.as_ref()).await,
        Action::DeleteTarget { name, uid } => {
            let parameters = delete_parameters(uid.clone(), None);
            gone_is_done(
                timed(
                    "deleting a target",
                    context
                        .namespaced::<BenchmarkTarget>(&namespace)
                        .delete(name, &parameters),
                )
                .await,
            )
        }
        Action::DeleteRun {
            name,
            uid,
            resource_version,
        } => {
            let parameters = delete_parameters(uid.clone(), Some(resource_version.clone()));
            gone_is_done(
                timed(
                    "deleting a run",
                    context
                        .namespaced::<BenchmarkRun>(&namespace)
                        .delete(name, &parameters),
                )
                .await,
            )
        }
        Action::HoldTarget { name } => {
            let claimant = holder::claimant(campaign);
            holder::change(context, &namespace, name, |type_, status| {
                holder::hold(type_, status, &claimant)
            })
            .await?;
            Ok(Outcome::Done)
        }
        Action::ReleaseTarget { name } => {
            holder::change(context, &namespace, name, |_, status| {
                holder::release(status, &uid)
            })
            .await?;
            Ok(Outcome::Done)
        }
        Action::CheckTarget {
            name,
            parameters,
            audit,
        } => {
            let target = timed(
                "reading a target",
                context.namespaced::<BenchmarkTarget>(&namespace).get(name),
            )
            .await?;
            let login = login::login(context, &target).await?;
            let problems = context.database.check(&login, parameters, audit).await?;
            let problems = problems
                .into_iter()
                .map(|p| format!("{}: {}", p.name, p.message))
                .collect();
            let generation = campaign.metadata.generation.unwrap_or(0);
            state.memory.remember(&uid, generation, |facts| {
                facts.checks.insert(name.clone(), problems);
            });
            Ok(Outcome::LookAgain)
        }
        Action::Event { type_, reason, note } => {
            publish(state, campaign, *type_, reason, note).await;
            Ok(Outcome::Done)
        }
    }
}

fn delete_parameters(uid: String, resource_version: Option<String>) -> DeleteParams {
    DeleteParams::background().preconditions(Preconditions {
        uid: Some(uid),
        resource_version,
    })
}

fn gone_is_done<T>(result: Result<T>) -> Result<Outcome> {
    match result {
        Ok(_) | Err(Error::Conflict(_)) => Ok(Outcome::Done),
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 404 => Ok(Outcome::Done),
        Err(error) => Err(error),
    }
}

/// Creates a child; a name that is taken by our own child means that it is there, by another's that it is in the way.
async fn create<K>(state: &State, campaign: &BenchmarkCampaign, child: &K) -> Result<Outcome>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug,
{
    let context = &state.context;
    let api = context.namespaced::<K>(&namespace(campaign));
    let name = child.name_any();
    let (uid, generation) = (
        campaign.uid().unwrap_or_default(),
        campaign.metadata.generation.unwrap_or(0),
    );
    match timed(
        "creating a child of the campaign",
        api.create(&PostParams::default(), child),
    )
    .await
    {
        Ok(_) => {
            state.memory.remember(&uid, generation, |facts| {
                facts.obstacles.retain(|o| o.name != name);
            });
            return Ok(Outcome::Done);
        }
        Err(Error::Kube {
            source: kube::Error::Api(status),
            ..
        }) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    let Some(there) = timed("reading what has the child's name", api.get_opt(&name)).await? else {
        return Ok(Outcome::LookAgain);
    };
    let controller = there
        .owner_references()
        .iter()
        .find(|o| o.controller == Some(true));
    let ours = controller.is_some_and(|o| o.uid == uid);
    let leaving = there.meta().deletion_timestamp.is_some()
        || !ours && owner_is_gone(state, campaign, controller).await;
    if ours && !leaving {
        return Ok(Outcome::Done);
    }
    let obstacle = Obstacle {
        kind: K::kind(&()).into_owned(),
        name: name.clone(),
        leaving,
        owner: controller.map(|o| format!("{}/{}", o.kind, o.name)),
    };
    // The planner tries again at its own pace; only news is worth another look at once.
    let known = state.memory.of(&uid, generation).obstacles.contains(&obstacle);
    state.memory.remember(&uid, generation, |facts| {
        facts.obstacles.retain(|o| o.name != name);
        facts.obstacles.push(obstacle);
    });
    Ok(if known { Outcome::Done } else { Outcome::LookAgain })
}

/// Whether the campaign that owned an object is gone: then the cluster is about to remove the object.
async fn owner_is_gone(
    state: &State,
    campaign: &BenchmarkCampaign,
    owner: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference>,
) -> bool {
    let Some(owner) = owner.filter(|o| o.kind == BenchmarkCampaign::kind(&())) else {
        return false;
    };
    let api = state
        .context
        .namespaced::<BenchmarkCampaign>(&namespace(campaign));
    match timed(
        "reading the owner of what has the child's name",
        api.get_opt(&owner.name),
    )
    .await
    {
        Ok(found) => found.is_none_or(|c| c.uid().as_deref() != Some(&owner.uid)),
        Err(_) => false,
    }
}

async fn publish(state: &State, campaign: &BenchmarkCampaign, type_: PlannedEvent, reason: &str, note: &str) {
    let reporter = Reporter {
        controller: crds::names::FIELD_MANAGER.into(),
        instance: Some(state.context.settings.identity.clone()),
    };
    let recorder = Recorder::new(state.context.client.clone(), reporter);
    let event = Event {
        type_: match type_ {
            PlannedEvent::Normal => EventType::Normal,
            PlannedEvent::Warning => EventType::Warning,
        },
        reason: reason.to_owned(),
        note: Some(note.to_owned()),
        action: reason.to_owned(),
        secondary: None,
    };
    // An event is a courtesy: the status says the same, and a failure here must not repeat what was done.
    if let Err(source) = recorder.publish(&event, &campaign.object_ref(&())).await {
        tracing::debug!(error = %while_doing("publishing an event")(source), "no event");
    }
}
