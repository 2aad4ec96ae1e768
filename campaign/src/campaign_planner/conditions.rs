//! Conditions of a campaign: the whole list is made anew in each plan, and what has not changed keeps its transition
//! time.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::target_planner::condition::clip;

/// Longest message in bytes.
const LONGEST: usize = 511;

/// The list being made.
pub(super) struct Conditions<'a> {
    old: &'a [Condition],
    new: Vec<Condition>,
    generation: Option<i64>,
    now: Timestamp,
}

impl<'a> Conditions<'a> {
    pub(super) fn new(old: &'a [Condition], generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            old,
            new: Vec::new(),
            generation,
            now,
        }
    }

    /// Adds a condition with status `True`, `False` or `Unknown`.
    pub(super) fn set(&mut self, type_: &str, status: &str, reason: &str, message: &str) -> &mut Self {
        let since = self
            .old
            .iter()
            .find(|old| old.type_ == type_ && old.status == status)
            .map_or(Time(self.now), |old| old.last_transition_time.clone());
        self.new.push(Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: clip(message, LONGEST),
            observed_generation: self.generation,
            last_transition_time: since,
        });
        self
    }

    pub(super) fn finish(&mut self) -> Vec<Condition> {
        std::mem::take(&mut self.new)
    }
}
