//! What is done about one run: a pure function of what the cluster, the database and the load generator show.
//! It does nothing itself: one [`Action`] at a time, then it is asked again with what came of it.
//!
//! Three writes of the status a run (intent, proof, result), each before what it announces. While load is applied the
//! plan is to do nothing until the container ends.

mod dataset;
mod finish;
mod judge;
#[cfg(test)]
mod laws;
mod measure;
mod prove;
#[cfg(test)]
mod tests;
mod together;
mod view;
mod wait;

use std::time::Duration;

use crds::names::condition::READY;
use crds::run::{BenchmarkRunStatus, Step};
use crds::runner::{PrepareOrder, RunOrder};
use crds::target::BenchmarkTargetStatus;
use jiff::Timestamp;

use crate::target_planner::condition;

pub use dataset::{dataset_hash, rebuild_when_grown};
pub use measure::{job_deadline_seconds, load_seconds, meeting_service};
pub use view::{
    EndedPod, Establishment, JobView, NodeLease, PREPARE_ATTEMPTS, Proven, RunObject, RunView, RunnerPod,
    RunnerState, TargetSeen,
};

/// How long a database may not answer, beyond the time for settling, before a run is given up.
pub const UNREACHABLE_FOR: Duration = Duration::from_mins(2);
/// How long to wait before a database that did not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often a run that waits looks again though nothing seems to have changed.
const LOOK_AGAIN: Duration = Duration::from_mins(5);
/// Longest activeDeadlineSeconds of a Job that makes data.
pub const PREPARE_DEADLINE: Duration = Duration::from_hours(24);

/// What to do now: at most one thing, then look again.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Take the lease of the database's node for this run.
    TakeNode {
        /// Name of the node.
        node: String,
    },
    /// Give the lease of the database's node up.
    ReleaseNode {
        /// Name of the node.
        node: String,
    },
    /// Take the target: write this status over the one that was read.
    TakeTarget(Box<BenchmarkTargetStatus>),
    /// Ask for another boot: write this status over the one that was read.
    RequestBoot(Box<BenchmarkTargetStatus>),
    /// Say in the target what data it holds: write this status over the one that was read.
    RecordDataset(Box<BenchmarkTargetStatus>),
    /// Give the target up: write this status over the one that was read.
    ReleaseTarget(Box<BenchmarkTargetStatus>),
    /// Bring everything wanted in force on this boot and prove it.
    Establish {
        /// The boot that the proof will speak of.
        boot_identity: String,
    },
    /// Start the Job that makes the data.
    CreatePrepareJob {
        /// Name of the Job.
        name: String,
        /// The runner's orders.
        order: Box<PrepareOrder>,
    },
    /// Start the Job that applies load.
    CreateJob {
        /// Name of the Job.
        name: String,
        /// The runner's orders.
        order: Box<RunOrder>,
    },
}

/// What follows from a view.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// The one thing to do, after the status is written.
    pub action: Option<Action>,
    /// The status to write first, if it differs from the one stored.
    pub status: BenchmarkRunStatus,
    /// When to look again if nothing changes; `None`: only when something changes.
    pub requeue: Option<Duration>,
}

/// Decides about one run.
pub fn plan(view: &RunView, now: Timestamp) -> RunPlan {
    let mut planner = Planner {
        view,
        now,
        status: view.run.status.clone(),
    };
    let (action, requeue) = planner.decide();
    RunPlan {
        action,
        status: planner.status,
        requeue,
    }
}

type Decision = (Option<Action>, Option<Duration>);

const WAIT_FOR_CHANGE: Decision = (None, None);

fn act(action: Action) -> Decision {
    (Some(action), None)
}

struct Planner<'a> {
    view: &'a RunView,
    now: Timestamp,
    status: BenchmarkRunStatus,
}

impl Planner<'_> {
    fn decide(&mut self) -> Decision {
        if self.status.step == Step::Finished {
            return self.let_go();
        }
        if self.view.run.terminating {
            // Its Job goes with it; the target counts as free once it is gone.
            return WAIT_FOR_CHANGE;
        }
        match self.status.step {
            Step::Waiting => self.waiting(),
            Step::Restarting | Step::Proving => self.proving(),
            Step::PreparingDataset => self.preparing(),
            Step::Measuring => self.measuring(),
            Step::Finished => WAIT_FOR_CHANGE,
        }
    }

    /// Whether the target's status still names this run and its epoch.
    fn holds_target(&self, target: &TargetSeen) -> bool {
        let holder = target.status.holder.as_ref();
        holder.is_some_and(|h| {
            h.run.as_ref().is_some_and(|run| run.uid == self.view.run.uid)
                && Some(h.epoch) == self.status.epoch
        })
    }

    fn set(&mut self, type_: &str, holds: bool, reason: &str, message: &str) {
        let generation = self.view.run.generation;
        condition::set(
            &mut self.status.conditions,
            type_,
            holds,
            reason,
            message,
            generation,
            self.now,
        );
    }

    /// Moves to a step, which the condition `Ready` names too.
    fn step(&mut self, step: Step, message: &str) {
        self.status.step = step;
        self.status.observed_generation = Some(self.view.run.generation);
        self.status.waiting_for = None;
        let reason = match step {
            Step::Waiting => "Waiting",
            Step::Restarting => "Restarting",
            Step::PreparingDataset => "PreparingDataset",
            Step::Proving => "Proving",
            Step::Measuring => "Measuring",
            Step::Finished => "Finished",
        };
        self.set(READY, true, reason, message);
    }
}
