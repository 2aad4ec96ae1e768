//! Before the start: targets are made, started one after another where idle ones are stopped, and asked whether they
//! know and take everything that will be asked of them. Only then is the spec frozen.

use crds::BenchmarkTarget;
use crds::audit::AuditSetting;
use crds::campaign::CampaignState;
use crds::names::condition::{READY, STALLED};
use crds::parameter::Parameters;
use crds::target::{IdleTargets, TargetType};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::{Action, LOOK_AGAIN, Planner, Ready, SOON, permissions, targets};
use crate::target_planner::condition::{is_true, message};

/// How far a target is.
enum Stand {
    /// It was asked, and all is well.
    Checked,
    /// It is on its way; in words.
    Waiting(String),
    /// Somebody else has it; in words.
    Taken(String),
    /// A person must act; reason and words. It may still come right by itself.
    Stalled(&'static str, String),
    /// It cannot be used; the spec is refused.
    Doomed(Vec<String>),
}

impl Planner<'_> {
    pub(super) fn prepare(&mut self, ready: &Ready<'_>) {
        let campaign = self.view.campaign;
        self.status.plan = Some(self.summary(ready));
        if campaign.spec.suspend {
            self.status.state = CampaignState::Suspended;
            self.underway(
                true,
                "Suspended",
                "planned; nothing is started while suspend is true",
                None,
            );
            self.release_all(|_| true);
            return;
        }
        self.remove_others(ready);
        let mut stands = Vec::new();
        for instance in ready.matrix.instances() {
            let stand = self.stand(ready, instance);
            let checked = matches!(stand, Stand::Checked);
            stands.push((targets::name_of(campaign, &ready.matrix, instance), stand));
            if !checked && campaign.spec.idle_targets == IdleTargets::Stop {
                // One node may not hold two of them at once.
                break;
            }
        }
        self.conclude(ready, &stands);
    }

    fn conclude(&mut self, ready: &Ready<'_>, stands: &[(String, Stand)]) {
        let doomed: Vec<String> = stands
            .iter()
            .filter_map(|(name, stand)| match stand {
                Stand::Doomed(problems) => Some(
                    problems
                        .iter()
                        .map(move |problem| format!("target {name}: {problem}")),
                ),
                _ => None,
            })
            .flatten()
            .collect();
        if !doomed.is_empty() {
            self.actions.clear();
            self.refuse(&doomed);
            return;
        }
        self.requeue = Some(LOOK_AGAIN);
        for (name, stand) in stands {
            match stand {
                Stand::Checked | Stand::Doomed(_) => {}
                Stand::Stalled(reason, words) => {
                    self.status.state = CampaignState::Preparing;
                    self.underway(false, reason, words, Some((reason, words)));
                    return;
                }
                Stand::Taken(words) => {
                    self.status.state = CampaignState::Queued;
                    self.underway(true, "Queued", words, None);
                    return;
                }
                Stand::Waiting(words) => {
                    self.status.state = CampaignState::Preparing;
                    self.underway(false, "Preparing", &format!("target {name}: {words}"), None);
                    return;
                }
            }
        }
        // Everything is known to be possible. From here on the spec is frozen; the first run follows once that is
        // written.
        self.status.start_time = Some(Time(self.now));
        self.status.state = CampaignState::Running;
        self.requeue = Some(SOON);
        self.underway(true, "Running", "measuring begins", None);
        self.started(ready);
    }

    /// Targets that an earlier generation of the spec described.
    fn remove_others(&mut self, ready: &Ready<'_>) {
        let campaign = self.view.campaign;
        let wanted: Vec<_> = ready
            .matrix
            .instances()
            .into_iter()
            .filter_map(|instance| targets::managed(campaign, &ready.matrix, &ready.budget, instance))
            .collect();
        for target in self.view.targets {
            let going = target.metadata.deletion_timestamp.is_some();
            if !targets::owned(campaign, target) || going {
                continue;
            }
            let same = wanted
                .iter()
                .any(|wanted| wanted.name_any() == target.name_any() && wanted.spec == target.spec);
            if !same {
                self.actions.push(Action::DeleteTarget {
                    name: target.name_any(),
                    uid: target.uid().unwrap_or_default(),
                });
            }
        }
    }

    fn stand(&mut self, ready: &Ready<'_>, instance: (usize, usize)) -> Stand {
        let campaign = self.view.campaign;
        let name = targets::name_of(campaign, &ready.matrix, instance);
        let managed = targets::managed(campaign, &ready.matrix, &ready.budget, instance);
        let found = self.view.targets.iter().find(|target| target.name_any() == name);
        let Some(&target) = found else {
            let Some(made) = managed else {
                return Stand::Doomed(vec![
                    "not found; create this BenchmarkTarget in the campaign's namespace, or correct targetRef".to_owned(),
                ]);
            };
            // Tried again even while something is in the way: only that shows that it is gone.
            self.actions.push(Action::CreateTarget(Box::new(made)));
            let obstacle = self.obstacle("BenchmarkTarget", &name);
            return obstacle.map_or_else(
                || Stand::Waiting("being made".to_owned()),
                |obstacle| in_the_way(&name, obstacle.leaving, obstacle.owner.as_deref()),
            );
        };
        if managed.is_some() && !targets::owned(campaign, target) {
            let leaving = target.metadata.deletion_timestamp.is_some();
            let owner = target
                .owner_references()
                .first()
                .map(|o| format!("{}/{}", o.kind, o.name));
            return in_the_way(&name, leaving, owner.as_deref());
        }
        if target.metadata.deletion_timestamp.is_some() || self.deletes(&name) {
            return Stand::Waiting("WaitingForCleanup: the one before it is being deleted".to_owned());
        }
        self.ask(ready, instance, &name, target)
    }

    fn deletes(&self, name: &str) -> bool {
        self.actions
            .iter()
            .any(|action| matches!(action, Action::DeleteTarget { name: deleted, .. } if deleted == name))
    }

    /// Holds a target, waits for its server and has it checked.
    fn ask(
        &mut self,
        ready: &Ready<'_>,
        instance: (usize, usize),
        name: &str,
        target: &BenchmarkTarget,
    ) -> Stand {
        let campaign = self.view.campaign;
        if let Some(external) = &target.spec.external {
            let refused = permissions::refused(&ready.matrix, instance, external);
            if !refused.is_empty() {
                return Stand::Doomed(refused);
            }
        }
        let held = targets::holds(campaign, target);
        let checked = self.view.checks.get(name);
        if let Some(problems) = checked {
            if !problems.is_empty() {
                return Stand::Doomed(problems.clone());
            }
            let more_than_one = ready.matrix.instances().len() > 1;
            let ours = target.spec.type_ == TargetType::Managed;
            if held && ours && more_than_one && campaign.spec.idle_targets == IdleTargets::Stop {
                self.actions.push(Action::ReleaseTarget {
                    name: name.to_owned(),
                });
            }
            return Stand::Checked;
        }
        let empty = crds::BenchmarkTargetStatus::default();
        let status = target.status.as_ref().unwrap_or(&empty);
        let holder = status.holder.as_ref().filter(|holder| !holder.uid.is_empty());
        match holder {
            Some(holder) if !held => {
                return Stand::Taken(format!(
                    "target {name} is held by {} {}",
                    holder.kind, holder.name
                ));
            }
            None => {
                self.actions.push(Action::HoldTarget {
                    name: name.to_owned(),
                });
                return Stand::Waiting("its server is being started".to_owned());
            }
            Some(_) => {}
        }
        let serial = holder
            .and_then(|holder| holder.boot.as_ref())
            .map_or(0, |boot| boot.serial);
        if let Some(failure) = status
            .boot_failure
            .as_ref()
            .filter(|failure| failure.serial == serial)
        {
            return Stand::Doomed(vec![format!(
                "its server does not start: {}: {}",
                failure.reason, failure.message
            )]);
        }
        if is_true(&status.conditions, STALLED) {
            let words = message(&status.conditions, STALLED).unwrap_or("a person must act");
            return Stand::Stalled("TargetStalled", format!("target {name}: {words}"));
        }
        let up = status.boot.as_ref().is_some_and(|boot| boot.serial == serial);
        if !up || !is_true(&status.conditions, READY) {
            let words = message(&status.conditions, READY).unwrap_or("its server is being started");
            return Stand::Waiting(words.to_owned());
        }
        let (parameters, audit) = asked_of(ready, instance);
        self.actions.push(Action::CheckTarget {
            name: name.to_owned(),
            parameters,
            audit,
        });
        Stand::Waiting("its server is asked what it knows".to_owned())
    }
}

fn in_the_way(name: &str, leaving: bool, owner: Option<&str>) -> Stand {
    if leaving {
        return Stand::Waiting("WaitingForCleanup: another object with its name is being deleted".to_owned());
    }
    let owner = owner.map_or_else(|| "nobody".to_owned(), |owner| format!("{owner:?}"));
    Stand::Stalled(
        "NameTaken",
        format!(
            "BenchmarkTarget {name} is there already and belongs to {owner}: delete it, or rename the campaign"
        ),
    )
}

/// Every distinct set of parameters and every audit setting that runs will ask of an instance.
fn asked_of(ready: &Ready<'_>, instance: (usize, usize)) -> (Vec<Parameters>, Vec<AuditSetting>) {
    let mut parameters: Vec<Parameters> = Vec::new();
    let mut audit: Vec<AuditSetting> = Vec::new();
    for row in ready
        .matrix
        .rows
        .iter()
        .filter(|row| row.levels.instance() == instance)
    {
        let resolved = ready.matrix.parameters(row.levels).parameters;
        if !parameters.contains(&resolved) {
            parameters.push(resolved);
        }
        let setting = ready.matrix.audit_on(row.levels);
        if !audit.contains(&setting) {
            audit.push(setting);
        }
    }
    (parameters, audit)
}
