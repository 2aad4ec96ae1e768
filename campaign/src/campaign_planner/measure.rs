//! From the start to the end: one run after another, blocks repeated as a whole, and the answers once everything that
//! was planned for a look is measured or lost.

use std::collections::BTreeSet;

use crds::campaign::CampaignState;
use crds::target::{IdleTargets, TargetType};
use kube::ResourceExt as _;

use super::answers::{self, Found};
use super::ledger::{Ledger, UnitLog, UnitState};
use super::{Action, EventType, Planner, Ready, RunState, cells, progress, runs, targets};
use crate::blocks::Plan;

impl Planner<'_> {
    pub(super) fn measure(&mut self, ready: &Ready<'_>) {
        let attempts = self.view.campaign.spec.run.attempts;
        let ledger = Ledger::new(self.view.runs, self.status.iteration);
        let logs: Vec<UnitLog<'_>> = ready
            .plan
            .units
            .iter()
            .map(|unit| ledger.unit(&ready.plan, unit, attempts))
            .collect();
        let (stage, found) = reached(ready, &ledger, &logs);
        let lost_before = self
            .status
            .progress
            .as_ref()
            .map_or(0, |progress| progress.blocks_lost);
        let old_plan = self.status.plan.take();
        let mut summary = self.summary(ready);
        progress::noise(ready, &ledger, &logs, &mut summary, old_plan.as_ref());
        self.status.plan = Some(summary);
        self.status.invalid = progress::invalid(&ledger, &logs);
        (self.status.blocks, self.status.blocks_omitted) =
            progress::blocks(&ready.matrix, &ready.plan, &logs);
        (self.status.cells, self.status.cells_omitted) =
            cells::cells(&ready.matrix, &ready.plan, &ledger, &logs);
        let mut progress = progress::progress(ready, &ledger, &logs, stage);
        if progress.blocks_lost > lost_before {
            let note = format!(
                "{} blocks are given up in all; measuring goes on",
                progress.blocks_lost
            );
            self.event(EventType::Warning, "BlockLost", &note);
        }
        if let Some(found) = found {
            progress.current = None;
            progress.seconds_left = Some(0);
            progress.time_left = Some("0s".to_owned());
            let lost = progress.blocks_lost;
            self.status.progress = Some(progress);
            self.conclude_with(&found, lost);
            return;
        }
        let current = self.go_on(ready, &ledger, &logs, stage);
        progress.current = current;
        self.status.progress = Some(progress);
    }

    fn conclude_with(&mut self, found: &Found, lost: i64) {
        self.status.answers.clone_from(&found.answers);
        self.status.answers_omitted = found.omitted;
        self.status.acceptance.clone_from(&found.acceptance);
        self.status.verdict =
            (!found.summary.is_empty()).then(|| crate::target_planner::condition::clip(&found.summary, 512));
        self.finish(lost, found);
    }

    /// Creates what is next; returns what runs, in words.
    fn go_on(
        &mut self,
        ready: &Ready<'_>,
        ledger: &Ledger<'_>,
        logs: &[UnitLog<'_>],
        stage: usize,
    ) -> Option<String> {
        let campaign = self.view.campaign;
        let suspended = campaign.spec.suspend;
        let active = lanes(&ready.plan, logs, stage, campaign.spec.parallelism);
        self.delete_strays(ledger, logs, &active);
        let mut current = Vec::new();
        let mut in_use = BTreeSet::new();
        let mut blocked = None;
        let mut waiting = None;
        for &index in &active {
            match logs[index].state {
                UnitState::Open { place, attempt, run } => {
                    in_use.insert(target_of(ready, campaign, place));
                    current.push(progress::in_words(ready, place, attempt));
                    if suspended && run.state == RunState::Waiting {
                        self.delete(place, attempt, run);
                    }
                    if let Some(open) = &run.open
                        && run.state == RunState::Waiting
                        && let Some(words) = &open.waiting_for
                    {
                        waiting = Some(words.clone());
                    }
                }
                UnitState::Next { place, attempt } if !suspended => {
                    in_use.insert(target_of(ready, campaign, place));
                    match self.create(ready, ledger, place, attempt) {
                        Ok(()) => current.push(progress::in_words(ready, place, attempt)),
                        Err(why) => blocked = Some(why),
                    }
                    let unit = &ready.plan.units[index];
                    if place == unit.places.start && attempt > 1 {
                        self.repeated(ready, place, attempt, &logs[index]);
                    }
                }
                UnitState::Next { place, .. } if place > ready.plan.units[index].places.start => {
                    // Held in the middle of a block: the server stays up for the rest of it.
                    in_use.insert(target_of(ready, campaign, place));
                }
                UnitState::Next { .. } | UnitState::Counts { .. } | UnitState::Lost => {}
            }
        }
        self.release_unused(ledger, &in_use, suspended);
        let first = ready.plan.units.iter().zip(logs).all(|(_, log)| {
            log.failed.is_empty() && !matches!(log.state, UnitState::Counts { .. } | UnitState::Lost)
        });
        let current = (!current.is_empty()).then(|| current.join("; "));
        self.say(suspended, blocked, waiting.filter(|_| first), current.as_deref());
        current
    }

    fn say(
        &mut self,
        suspended: bool,
        blocked: Option<(bool, String)>,
        waiting: Option<String>,
        current: Option<&str>,
    ) {
        if let Some((leaving, words)) = blocked {
            self.requeue = Some(super::LOOK_AGAIN);
            let reason = if leaving { "WaitingForCleanup" } else { "NameTaken" };
            let stalled = (!leaving).then_some((reason, words.as_str()));
            self.status.state = CampaignState::Running;
            self.underway(true, reason, &words, stalled);
        } else if suspended {
            self.status.state = CampaignState::Suspended;
            let words = if current.is_some() {
                "what runs is finished; nothing new is started"
            } else {
                "nothing runs"
            };
            self.underway(true, "Suspended", words, None);
        } else if let Some(words) = waiting {
            self.status.state = CampaignState::Queued;
            self.underway(true, "Queued", &format!("waits for {words}"), None);
        } else {
            self.status.state = CampaignState::Running;
            self.underway(true, "Running", "measuring", None);
        }
    }

    /// Creates a run, or says why it cannot: whether waiting helps, and words.
    fn create(
        &mut self,
        ready: &Ready<'_>,
        ledger: &Ledger<'_>,
        place: usize,
        attempt: i32,
    ) -> Result<(), (bool, String)> {
        let campaign = self.view.campaign;
        let instance = ready.plan.levels(&ready.plan.places[place]).instance();
        let target = targets::name_of(campaign, &ready.matrix, instance);
        match self.view.targets.iter().find(|known| known.name_any() == target) {
            None => {
                // Somebody deleted it; it is made again under the same name, and its data with it.
                if let Some(made) = targets::managed(campaign, &ready.matrix, &ready.budget, instance) {
                    self.actions.push(Action::CreateTarget(Box::new(made)));
                } else {
                    return Err((
                        false,
                        format!("BenchmarkTarget {target} is gone: create it again"),
                    ));
                }
            }
            Some(known) if known.metadata.deletion_timestamp.is_some() => {
                return Err((
                    true,
                    format!("BenchmarkTarget {target} is being deleted and will be made again"),
                ));
            }
            Some(_) => {}
        }
        let iteration = self.status.iteration;
        let name = runs::name(campaign, iteration, place, attempt);
        let ordinal = usize::from(ready.plan.places[place].ordinal);
        let boot = ledger
            .run(place - ordinal, attempt)
            .filter(|_| ordinal > 0)
            .and_then(|first| first.boot.as_deref());
        let run = runs::build(
            campaign,
            &ready.matrix,
            &ready.plan,
            &ready.budget,
            (iteration, place, attempt),
            boot,
        );
        // Tried again even while something is in the way: only that shows that it is gone.
        self.actions.push(Action::CreateRun(Box::new(run)));
        let Some(obstacle) = self.obstacle("BenchmarkRun", &name) else {
            return Ok(());
        };
        let owner = obstacle.owner.as_deref().unwrap_or("nobody");
        Err(if obstacle.leaving {
            (true, format!("BenchmarkRun {name} of {owner} is being deleted"))
        } else {
            (
                false,
                format!("BenchmarkRun {name} is there already and belongs to {owner}: delete it"),
            )
        })
    }

    fn repeated(&mut self, ready: &Ready<'_>, place: usize, attempt: i32, log: &UnitLog<'_>) {
        let reasons: Vec<String> = log
            .failed
            .last()
            .map(|failed| {
                failed
                    .reasons
                    .iter()
                    .map(|found| format!("{}: {}", found.reason, found.message))
                    .collect()
            })
            .unwrap_or_default();
        let note = format!(
            "attempt {attempt} of {}: {}",
            progress::block_in_words(ready, place),
            reasons.join("; ")
        );
        self.event(EventType::Warning, "BlockRepeated", &note);
    }

    /// Runs that have not begun and that the plan no longer has in this place.
    fn delete_strays(&mut self, ledger: &Ledger<'_>, logs: &[UnitLog<'_>], active: &[usize]) {
        let wanted: BTreeSet<(usize, i32)> = active
            .iter()
            .filter_map(|&index| match logs[index].state {
                UnitState::Open { place, attempt, .. } => Some((place, attempt)),
                _ => None,
            })
            .collect();
        let strays: Vec<_> = ledger
            .all()
            .filter(|run| run.state == RunState::Waiting)
            .filter(|run| !wanted.contains(&(run.sequence as usize, run.attempt)))
            .collect();
        for run in strays {
            self.delete(run.sequence as usize, run.attempt, run);
        }
    }

    fn delete(&mut self, place: usize, attempt: i32, run: &super::RunSummary) {
        if let Some(open) = run.open.as_ref().filter(|open| !open.deleting) {
            self.actions.push(Action::DeleteRun {
                name: runs::name(self.view.campaign, self.status.iteration, place, attempt),
                uid: open.uid.clone(),
                resource_version: open.resource_version.clone(),
            });
        }
    }

    /// Servers that stop when idle are let go as soon as the plan moves to another. Others are kept to the end, so
    /// that nobody comes in between.
    fn release_unused(&mut self, ledger: &Ledger<'_>, in_use: &BTreeSet<String>, suspended: bool) {
        let campaign = self.view.campaign;
        if campaign.spec.idle_targets == IdleTargets::Keep && !suspended {
            return;
        }
        let open = ledger.all().any(|run| !run.finished());
        if in_use.is_empty() && open {
            return;
        }
        let first = self
            .actions
            .iter()
            .position(|action| matches!(action, Action::CreateRun(_)))
            .unwrap_or(self.actions.len());
        let mut released = Vec::new();
        for target in self.view.targets {
            let name = target.name_any();
            // A borrowed server is given back once, at the end: each time, its data would go too.
            let kept = target.spec.type_ == TargetType::External && !suspended;
            if targets::holds(campaign, target) && !in_use.contains(&name) && !kept {
                released.push(Action::ReleaseTarget { name });
            }
        }
        // Before the next run: one node may not hold both.
        self.actions.splice(first..first, released);
    }
}

fn target_of(ready: &Ready<'_>, campaign: &crds::BenchmarkCampaign, place: usize) -> String {
    let instance = ready.plan.levels(&ready.plan.places[place]).instance();
    targets::name_of(campaign, &ready.matrix, instance)
}

/// The look being measured for, from 0, and what was found if the campaign ends there.
fn reached(ready: &Ready<'_>, ledger: &Ledger<'_>, logs: &[UnitLog<'_>]) -> (usize, Option<Found>) {
    let plan = &ready.plan;
    let last = plan.looks.sizes().len() - 1;
    let done = |stage: usize| {
        plan.units
            .iter()
            .zip(logs)
            .filter(|(unit, _)| unit.stage == stage)
            .all(|(_, log)| matches!(log.state, UnitState::Counts { .. } | UnitState::Lost))
    };
    // A stage with runs was begun because the look before it did not decide.
    let begun = |stage: usize| {
        plan.units
            .iter()
            .filter(|unit| unit.stage == stage)
            .any(|unit| ledger.run(unit.places.start, 1).is_some())
    };
    let mut stage = 0;
    while stage <= last && done(stage) {
        if stage < last && begun(stage + 1) {
            stage += 1;
            continue;
        }
        let found = answers::assess(&ready.matrix, plan, ledger, logs, stage);
        if stage == last || found.stop {
            return (stage, Some(found));
        }
        stage += 1;
    }
    (stage.min(last), None)
}

/// The units to be measured now: those with a run that has not ended, then the next ones whose instances are free of
/// earlier work, up to the number of lanes.
fn lanes(plan: &Plan, logs: &[UnitLog<'_>], stage: usize, lanes: i32) -> Vec<usize> {
    let lanes = usize::try_from(lanes).unwrap_or(1).max(1);
    let open = |index: &usize| matches!(logs[*index].state, UnitState::Open { .. });
    let mut active: Vec<usize> = (0..plan.units.len()).filter(open).collect();
    let mut taken: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut begun = active.len();
    for (index, unit) in plan.units.iter().enumerate() {
        if unit.stage > stage {
            break;
        }
        if matches!(logs[index].state, UnitState::Counts { .. } | UnitState::Lost) {
            continue;
        }
        let instances: BTreeSet<_> = plan.places[unit.places.clone()]
            .iter()
            .map(|place| plan.levels(place).instance())
            .collect();
        let free = instances.is_disjoint(&taken);
        taken.extend(instances);
        if free && begun < lanes && !open(&index) {
            active.push(index);
            begun += 1;
        }
        if begun >= lanes && lanes == 1 {
            break;
        }
    }
    active.sort_unstable();
    active
}
