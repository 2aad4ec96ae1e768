//! Waiting for the node and the target, in this order, and never holding the node for a target that is not free.

use crds::names::condition::READY;
use crds::run::Step;
use crds::target::RunReference;
use crds::together;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Action, Decision, LOOK_AGAIN, NodeLease, Planner, TargetSeen, act};
use crate::target_planner::condition;
use crate::target_planner::holder::{self, BootWanted};

/// Longest name of a run: its Jobs' names are labels of their pods, which may have 63 characters.
const LONGEST_NAME: usize = 52;

impl Planner<'_> {
    pub(super) fn waiting(&mut self) -> Decision {
        let view = self.view;
        let name = &view.run.spec.target_ref.name;
        let spec = &view.run.spec;
        let count = spec.load_generator.count;
        if count > 1 && !together::divides(spec.threads, spec.run.load.rate, count) {
            let message = format!(
                "loadGenerator.count is {count}: each needs a thread of its own, and a transaction a second of a rate"
            );
            return self.invalid("Unsupported", &message);
        }
        if view.run.name.len() > LONGEST_NAME {
            let message = format!(
                "a run's name may have at most {LONGEST_NAME} characters: its Jobs are named after it"
            );
            return self.invalid("NameTooLong", &message);
        }
        let Some(target) = &view.target else {
            return self.wait_for(&format!("BenchmarkTarget {name}, which does not exist"));
        };
        let ours = target
            .status
            .holder
            .as_ref()
            .and_then(|h| h.run.as_ref())
            .is_some_and(|r| r.uid == view.run.uid);
        if ours {
            return self.begin(target);
        }
        let obstacle = obstacle(target);
        let free = holder::may_take(
            target.status.holder.as_ref(),
            &view.run.claimant,
            view.last_run_ended,
        );
        if obstacle.is_some() || !free {
            if let (NodeLease::Ours, Some(node)) = (&view.node, target.place()) {
                return act(Action::ReleaseNode { node });
            }
            return match obstacle {
                Some(obstacle) => self.wait_for(&obstacle),
                None => self.wait_for(&holder_in_words(target)),
            };
        }
        let Some(node) = target.place() else {
            return self.wait_for(&format!("BenchmarkTarget {name} to boot for the first time"));
        };
        match &view.node {
            NodeLease::Unknown => act(Action::TakeNode { node }),
            NodeLease::Other(who) => {
                let message = format!("{}, on which {who} is being measured", in_words(&node));
                self.wait_for(&message)
            }
            NodeLease::Ours => {
                let mut status = target.status.clone();
                let run = RunReference {
                    name: view.run.name.clone(),
                    uid: view.run.uid.clone(),
                };
                let boot = view.run.spec.restart_before.then(|| self.boot_wanted());
                holder::take(&mut status, &view.run.claimant, run, boot);
                if let Some(original) = &mut status.original_state {
                    original.retain |= view.run.spec.dataset.retain;
                }
                act(Action::TakeTarget(Box::new(status)))
            }
        }
    }

    /// The boot that this run needs: its parameters over what the cache state needs.
    pub(super) fn boot_wanted(&self) -> BootWanted {
        let mut parameters = self.view.cache_parameters.clone();
        parameters.extend(self.view.run.spec.parameters.clone());
        BootWanted {
            parameters,
            audit: self.view.run.spec.audit.clone(),
        }
    }

    /// The target is ours: what was taken becomes the run's own record, before anything is done with it.
    fn begin(&mut self, target: &TargetSeen) -> Decision {
        let Some(holder) = &target.status.holder else {
            return super::WAIT_FOR_CHANGE;
        };
        self.status.start_time = Some(Time(self.now));
        self.status.epoch = Some(holder.epoch);
        if self.view.run.spec.restart_before {
            self.status.boot_serial = holder.boot.as_ref().map(|b| b.serial);
            self.step(
                Step::Restarting,
                "the server is being restarted with the configuration wanted",
            );
        } else {
            self.status.boot_serial = target.status.boot.as_ref().map(|b| b.serial);
            self.step(Step::Proving, "settings are brought in force and proved");
        }
        // Written first; the next look does the next thing.
        super::WAIT_FOR_CHANGE
    }

    fn wait_for(&mut self, what: &str) -> Decision {
        let what = condition::clip(what, 256);
        self.status.observed_generation = Some(self.view.run.generation);
        self.set(READY, true, "Waiting", &format!("waiting for {what}"));
        self.status.waiting_for = Some(what);
        (None, Some(LOOK_AGAIN))
    }
}

/// Why a target cannot be used by anybody now.
fn obstacle(target: &TargetSeen) -> Option<String> {
    let name = &target.name;
    if target.terminating {
        return Some(format!("BenchmarkTarget {name}, which is being deleted"));
    }
    let conditions = &target.status.conditions;
    // A failed boot is no obstacle: the next one may have another configuration.
    let stalled = condition::is_true(conditions, crds::names::condition::STALLED)
        && condition::reason(conditions, crds::names::condition::STALLED) != Some("BootFailed");
    let message = condition::message(conditions, crds::names::condition::STALLED).unwrap_or_default();
    stalled.then(|| format!("BenchmarkTarget {name}, which needs attention: {message}"))
}

/// A place as [`TargetSeen::place`] names it.
fn in_words(place: &str) -> String {
    if place.starts_with("server ") {
        place.to_owned()
    } else {
        format!("node {place}")
    }
}

fn holder_in_words(target: &TargetSeen) -> String {
    let name = &target.name;
    let Some(holder) = &target.status.holder else {
        return format!("BenchmarkTarget {name}");
    };
    let who = format!("{} {}", holder.kind, holder.name);
    match &holder.run {
        Some(run) if run.uid != holder.uid => {
            format!("{who} (run {}) to let go of BenchmarkTarget {name}", run.name)
        }
        _ => format!("{who} to let go of BenchmarkTarget {name}"),
    }
}
