//! The end of a run: validity and conditions, then what it held is let go. A result once written never changes.

use crds::names::condition::{FINISHED, READY, SUCCEEDED};
use crds::run::{Finding, Step, Validity, ValidityVerdict};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Action, Decision, NodeLease, Planner, WAIT_FOR_CHANGE, act};
use crate::target_planner::condition::clip;
use crate::target_planner::holder;

/// Findings that a status may list.
const LISTED: usize = 16;

/// What was judged of a run, in the words of the status.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Judged {
    /// Why it does not count; empty: it counts.
    pub(super) reasons: Vec<Finding>,
    /// What a reader must know.
    pub(super) symptoms: Vec<Finding>,
}

/// A finding of the status, within its bounds.
pub(super) fn finding(reason: &str, message: &str) -> Finding {
    Finding {
        reason: clip(reason, 64),
        message: clip(message, 512),
    }
}

impl Planner<'_> {
    /// Ends the run without a result that counts.
    pub(super) fn invalid(&mut self, reason: &str, message: &str) -> Decision {
        self.finish(Judged {
            reasons: vec![finding(reason, message)],
            symptoms: Vec::new(),
        })
    }

    /// Ends the run.
    pub(super) fn finish(&mut self, judged: Judged) -> Decision {
        let Judged {
            mut reasons,
            mut symptoms,
        } = judged;
        reasons.truncate(LISTED);
        symptoms.truncate(LISTED);
        let verdict = if reasons.is_empty() {
            ValidityVerdict::Valid
        } else {
            ValidityVerdict::Invalid
        };
        let (reason, message) = match reasons.first() {
            None => ("Measured".to_owned(), "the run is valid".to_owned()),
            Some(first) => (first.reason.clone(), first.message.clone()),
        };
        let valid = reasons.is_empty();
        self.status.validity = Some(Validity { verdict, reasons });
        self.status.symptoms = symptoms;
        self.status.completion_time = Some(Time(self.now));
        self.step(Step::Finished, "the run has ended");
        self.set(READY, true, "Finished", "the run has ended");
        self.set(FINISHED, true, &reason, &message);
        self.set(SUCCEEDED, valid, &reason, &message);
        WAIT_FOR_CHANGE
    }

    /// After the end: the node's lease, and the target if the run holds it for itself. A campaign keeps its target
    /// for the next run.
    pub(super) fn let_go(&mut self) -> Decision {
        let Some(target) = &self.view.target else {
            return WAIT_FOR_CHANGE;
        };
        if let (NodeLease::Ours, Some(node)) = (&self.view.node, target.place()) {
            return act(Action::ReleaseNode { node });
        }
        let run = &self.view.run;
        let holds_for_itself = target.status.holder.as_ref().is_some_and(|h| h.uid == run.uid);
        if holds_for_itself && run.claimant.uid == run.uid {
            let mut status = target.status.clone();
            holder::release(&mut status);
            return act(Action::ReleaseTarget(Box::new(status)));
        }
        WAIT_FOR_CHANGE
    }
}
