//! The planner of a campaign: from what was seen of a campaign, its targets and its runs to what to do now and what
//! to say about it. Pure: it reads no cluster and no clock, and the same view gives the same plan.

mod action;
mod answers;
mod cells;
mod conditions;
mod counted;
mod fit;
mod ledger;
mod measure;
mod permissions;
mod prepare;
mod progress;
mod requests;
mod run_summary;
mod runs;
mod targets;
#[cfg(test)]
mod tests;
mod view;

use std::time::Duration;

use crds::BenchmarkCampaignStatus;
use crds::campaign::CampaignState;
use crds::names::condition::{ACCEPTANCE_PASSED, FINISHED, READY, RECONCILING, STALLED, SUCCEEDED};
use crds::target::TargetType;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use sha2::{Digest, Sha256};

pub use action::{Action, CampaignPlan, EventType};
pub use answers::percent;
pub use counted::{CellRuns, LeftOut, by_cell};
pub use run_summary::{Figures, OpenRun, RunState, RunSummary, SURROUNDINGS};
pub use targets::target_names;
pub use view::{CampaignView, Obstacle};

use crate::blocks::{self, Plan};
use crate::budget::{self, Budget, Seen, time};
use crate::matrix::{self, Matrix, Problem};
use crate::order::Seed;
use crate::target_planner::condition::is_true;
use conditions::Conditions;

/// How often to look again while something outside is waited for: only a safety net, since changes are watched.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// When to look again after a status was written that the next step relies on.
const SOON: Duration = Duration::from_secs(1);
/// Seeds are whole numbers that every JSON reader keeps exact.
const SEED_BITS: u64 = (1 << 53) - 1;

/// Decides what a campaign does now.
pub fn plan(view: &CampaignView<'_>, now: Timestamp) -> CampaignPlan {
    let mut planner = Planner {
        view,
        now,
        status: view.campaign.status.clone().unwrap_or_default(),
        actions: Vec::new(),
        requeue: None,
    };
    planner.decide();
    fit::fit(&mut planner.status);
    CampaignPlan {
        actions: planner.actions,
        status: planner.status,
        requeue: planner.requeue,
    }
}

/// The seed of an iteration: the spec's, or one from the UID.
pub fn seed(uid: &str, given: Option<i64>, iteration: i64) -> Seed {
    match given {
        Some(seed) if iteration == 0 => Seed(seed.unsigned_abs()),
        Some(seed) => Seed(
            Seed(seed.unsigned_abs())
                .derive(&format!("iteration {iteration}"))
                .0
                & SEED_BITS,
        ),
        None => {
            let hash = Sha256::digest(format!("{uid}/{iteration}").as_bytes());
            let bytes = [
                hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7],
            ];
            Seed(u64::from_le_bytes(bytes) & SEED_BITS)
        }
    }
}

struct Planner<'a> {
    view: &'a CampaignView<'a>,
    now: Timestamp,
    status: BenchmarkCampaignStatus,
    actions: Vec<Action>,
    requeue: Option<Duration>,
}

/// A plan that may be carried out.
struct Ready<'a> {
    matrix: Matrix<'a>,
    plan: Plan,
    budget: Budget,
}

impl<'a> Planner<'a> {
    fn decide(&mut self) {
        let campaign = self.view.campaign;
        if campaign.metadata.deletion_timestamp.is_some() {
            // What the campaign owns goes with it. What it borrowed is given back.
            self.release_all(|target| target.spec.type_ == TargetType::External);
            return;
        }
        if requests::take(campaign, &mut self.status) {
            let iteration = self.status.iteration;
            self.event(
                EventType::Normal,
                "RunAgain",
                &format!("iteration {iteration} begins"),
            );
        }
        let generation = campaign.metadata.generation;
        if is_true(&self.status.conditions, FINISHED) {
            let corrected = self.status.start_time.is_none() && self.status.observed_generation != generation;
            if !corrected {
                self.stay_finished();
                return;
            }
        }
        let iteration = self.status.iteration;
        let seed = seed(&campaign.uid().unwrap_or_default(), campaign.spec.seed, iteration);
        let ready = match self.make_ready(seed) {
            Ok(ready) => ready,
            Err(problems) if self.status.start_time.is_some() => {
                self.give_up(&problems);
                return;
            }
            Err(problems) => {
                self.refuse(&problems);
                return;
            }
        };
        self.status.observed_generation = generation;
        self.status.seed = i64::try_from(seed.0).ok();
        if self.status.start_time.is_none() {
            self.prepare(&ready);
        } else {
            self.measure(&ready);
        }
    }

    /// Expands the spec, lays the plan out and computes its budgets.
    fn make_ready(&self, seed: Seed) -> Result<Ready<'a>, Vec<String>> {
        let words = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        let matrix = matrix::expand(&self.view.campaign.spec).map_err(words)?;
        let plan = blocks::lay_out(&matrix, seed).map_err(words)?;
        let budget = budget::of(&matrix, &plan, &Seen::default());
        // Once work has started the estimates have done their duty.
        if self.status.start_time.is_none() && !budget.problems.is_empty() {
            return Err(words(budget.problems));
        }
        Ok(Ready { matrix, plan, budget })
    }

    /// Refuses the spec: terminal until the next generation or run request.
    fn refuse(&mut self, problems: &[String]) {
        let generation = self.view.campaign.metadata.generation;
        let old = std::mem::take(&mut self.status.conditions);
        let count = problems.len();
        let heading = if count == 1 {
            String::new()
        } else {
            format!("{count} problems: ")
        };
        let message = format!("{heading}{}", problems.join(" | "));
        let mut conditions = Conditions::new(&old, generation, self.now);
        conditions
            .set(READY, "False", "Refused", &message)
            .set(STALLED, "True", "Refused", &message)
            .set(FINISHED, "True", "Refused", &message)
            .set(SUCCEEDED, "False", "Refused", &message);
        self.status = BenchmarkCampaignStatus {
            observed_generation: generation,
            state: CampaignState::Refused,
            iteration: self.status.iteration,
            run_requests: std::mem::take(&mut self.status.run_requests),
            conditions: conditions.finish(),
            // A condition's message is short; here is every problem.
            plan: Some(fit::refused(problems)),
            ..BenchmarkCampaignStatus::default()
        };
        self.event(EventType::Warning, "Refused", &message);
        self.release_all(|_| true);
    }

    /// Ends a campaign that was begun by a release which could measure what this one refuses. Its runs stay.
    fn give_up(&mut self, problems: &[String]) {
        let message = format!("this release refuses what was begun: {}", problems.join(" | "));
        let old = std::mem::take(&mut self.status.conditions);
        let mut conditions = Conditions::new(&old, self.view.campaign.metadata.generation, self.now);
        conditions
            .set(READY, "False", "Refused", &message)
            .set(STALLED, "True", "Refused", &message)
            .set(FINISHED, "True", "Refused", &message)
            .set(SUCCEEDED, "False", "Refused", &message);
        self.status.conditions = conditions.finish();
        self.status.state = CampaignState::Failed;
        self.status.completion_time = Some(Time(self.now));
        self.event(EventType::Warning, "Refused", &message);
        self.release_all(|_| true);
    }

    /// It has ended: nothing is done but what a crash may have left undone.
    fn stay_finished(&mut self) {
        let generation = self.view.campaign.metadata.generation;
        if self.status.observed_generation != generation {
            self.status.observed_generation = generation;
            for condition in &mut self.status.conditions {
                condition.observed_generation = generation;
            }
        }
        self.release_all(|_| true);
    }

    /// What is in the way of a child.
    fn obstacle(&self, kind: &str, name: &str) -> Option<&'a Obstacle> {
        self.view
            .obstacles
            .iter()
            .find(|obstacle| obstacle.kind == kind && obstacle.name == name)
    }

    fn release_all(&mut self, which: impl Fn(&crds::BenchmarkTarget) -> bool) {
        for target in self.view.targets {
            if targets::holds(self.view.campaign, target) && which(target) {
                self.actions.push(Action::ReleaseTarget {
                    name: target.name_any(),
                });
            }
        }
    }

    fn event(&mut self, type_: EventType, reason: &'static str, note: &str) {
        let note = crate::target_planner::condition::clip(note, 1000);
        self.actions.push(Action::Event { type_, reason, note });
    }

    /// Sets the conditions of a campaign that has not ended. `stalled`: why a person must act.
    fn underway(&mut self, ready: bool, reason: &str, message: &str, stalled: Option<(&str, &str)>) {
        let old = std::mem::take(&mut self.status.conditions);
        let mut conditions = Conditions::new(&old, self.view.campaign.metadata.generation, self.now);
        conditions.set(READY, if ready { "True" } else { "False" }, reason, message);
        if !ready && stalled.is_none() {
            conditions.set(RECONCILING, "True", reason, message);
        }
        if let Some((reason, message)) = stalled {
            conditions.set(STALLED, "True", reason, message);
        }
        conditions.set(FINISHED, "False", reason, "it has not ended");
        self.status.conditions = conditions.finish();
    }

    /// Ends the campaign.
    fn finish(&mut self, lost: i64, found: &answers::Found) {
        let (succeeded, reason) = if lost > 0 {
            ("False", "BlocksLost")
        } else {
            ("True", "Completed")
        };
        let message = if lost > 0 {
            format!(
                "{lost} blocks were given up after {} attempts each; {}",
                self.view.campaign.spec.run.attempts, found.summary
            )
        } else if found.summary.is_empty() {
            "every cell was measured; no question was asked".to_owned()
        } else {
            found.summary.clone()
        };
        let old = std::mem::take(&mut self.status.conditions);
        let mut conditions = Conditions::new(&old, self.view.campaign.metadata.generation, self.now);
        conditions
            .set(READY, "True", reason, &message)
            .set(FINISHED, "True", reason, &message)
            .set(SUCCEEDED, succeeded, reason, &message);
        if let Some(accepted) = found.accepted {
            let words: Vec<&str> = found.acceptance.iter().map(|one| one.message.as_str()).collect();
            let reason = match accepted {
                "True" => "WithinLimits",
                "False" => "BeyondLimits",
                _ => "NotKnown",
            };
            conditions.set(ACCEPTANCE_PASSED, accepted, reason, &words.join(" "));
        }
        self.status.conditions = conditions.finish();
        self.status.state = if lost > 0 {
            CampaignState::Failed
        } else {
            CampaignState::Completed
        };
        self.status.completion_time = Some(Time(self.now));
        let type_ = if lost > 0 {
            EventType::Warning
        } else {
            EventType::Normal
        };
        self.event(type_, if lost > 0 { "BlocksLost" } else { "Completed" }, &message);
        self.release_all(|_| true);
    }

    /// What the plan is, for the status.
    fn summary(&self, ready: &Ready<'_>) -> crds::campaign::PlanSummary {
        fit::summary(self.view.campaign, &ready.matrix, &ready.plan, &ready.budget)
    }

    /// The story's first line.
    fn started(&mut self, ready: &Ready<'_>) {
        let (runs, blocks) = (ready.plan.places.len(), ready.plan.blocks());
        let length = time::words(ready.budget.estimated_seconds);
        let instances = ready.matrix.instances().len();
        let word = if instances == 1 { "instance" } else { "instances" };
        self.event(
            EventType::Normal,
            "Started",
            &format!("{runs} runs in {blocks} blocks on {instances} database {word}, about {length}"),
        );
    }
}
