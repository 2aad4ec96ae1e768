//! Where a plan stands: which attempt of which unit counts, which is being measured, what is next. It follows from the
//! plan and the runs alone, so that a restart of the operator changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crds::run::Finding;

use super::run_summary::{OF_GENERATOR, RunState, RunSummary, SURROUNDINGS};
use crate::blocks::{Plan, Unit};
use crate::validity::{BlockRun, judge_block};

/// The runs of one iteration, by place and attempt.
pub(super) struct Ledger<'a> {
    /// Sorted by place, then attempt.
    runs: Vec<&'a RunSummary>,
}

/// Where a unit stands.
#[derive(Clone, Debug)]
pub(super) struct UnitLog<'a> {
    /// What is next.
    pub(super) state: UnitState<'a>,
    /// Attempts that do not count, in order.
    pub(super) failed: Vec<FailedAttempt>,
}

/// What is next in a unit.
#[derive(Clone, Copy, Debug)]
pub(super) enum UnitState<'a> {
    /// The run of this place is to be created.
    Next { place: usize, attempt: i32 },
    /// This run has not ended.
    Open {
        place: usize,
        attempt: i32,
        run: &'a RunSummary,
    },
    /// All runs of this attempt count.
    Counts { attempt: i32 },
    /// All attempts are used up.
    Lost,
}

/// An attempt that does not count.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FailedAttempt {
    /// Arm whose run was invalid; None if the reason needs several runs.
    pub(super) arm: Option<usize>,
    /// Why.
    pub(super) reasons: Vec<Finding>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(runs: &[&'a RunSummary], iteration: i64) -> Self {
        let mut runs: Vec<&RunSummary> = runs
            .iter()
            .copied()
            .filter(|run| run.iteration == iteration)
            .collect();
        runs.sort_by_key(|run| (run.sequence, run.attempt));
        Self { runs }
    }

    /// The run of a place and attempt.
    pub(super) fn run(&self, place: usize, attempt: i32) -> Option<&'a RunSummary> {
        let key = (place as i64, attempt);
        self.runs
            .binary_search_by_key(&key, |run| (i64::from(run.sequence), run.attempt))
            .ok()
            .map(|index| self.runs[index])
    }

    /// All runs of the iteration.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a RunSummary> {
        self.runs.iter().copied()
    }

    /// Judges a unit from its runs.
    pub(super) fn unit(&self, plan: &Plan, unit: &Unit, attempts: i32) -> UnitLog<'a> {
        let mut failed = Vec::new();
        for attempt in 1..=attempts.max(1) {
            match self.attempt(plan, unit, attempt, attempt < attempts) {
                Ok(state) => return UnitLog { state, failed },
                Err(reason) => failed.push(reason),
            }
        }
        UnitLog {
            state: UnitState::Lost,
            failed,
        }
    }

    fn attempt(
        &self,
        plan: &Plan,
        unit: &Unit,
        attempt: i32,
        another: bool,
    ) -> Result<UnitState<'a>, FailedAttempt> {
        let mut valid = Vec::with_capacity(unit.places.len());
        for place in unit.places.clone() {
            let Some(run) = self.run(place, attempt) else {
                // A run that was deleted by hand cannot be measured again in its place: its neighbours are older.
                let later = (place + 1..unit.places.end).any(|later| self.run(later, attempt).is_some());
                if later || (another && self.run(unit.places.start, attempt + 1).is_some()) {
                    return Err(failed(None, "RunDeleted", "a run of the block is gone"));
                }
                return Ok(UnitState::Next { place, attempt });
            };
            match run.state {
                RunState::Waiting | RunState::Working => return Ok(UnitState::Open { place, attempt, run }),
                RunState::Invalid => {
                    return Err(FailedAttempt {
                        arm: Some(usize::from(plan.places[place].arm)),
                        reasons: run.reasons.clone(),
                    });
                }
                RunState::Valid => valid.push((place, run)),
            }
        }
        let reasons = judge(plan, &valid);
        if reasons.is_empty() {
            Ok(UnitState::Counts { attempt })
        } else {
            Err(FailedAttempt { arm: None, reasons })
        }
    }
}

fn failed(arm: Option<usize>, reason: &str, message: &str) -> FailedAttempt {
    FailedAttempt {
        arm,
        reasons: vec![Finding {
            reason: reason.to_owned(),
            message: message.to_owned(),
        }],
    }
}

/// Reasons that need several runs of the block.
fn judge(plan: &Plan, runs: &[(usize, &RunSummary)]) -> Vec<Finding> {
    let block: Vec<BlockRun> = runs
        .iter()
        .map(|(place, run)| BlockRun {
            arm: plan.arm(&plan.places[*place]).name.clone(),
            threads: plan.places[*place].threads.unsigned_abs(),
            round_trip_micros: run.figures.round_trip_nanos.map(|nanos| nanos as f64 / 1000.0),
            ..BlockRun::default()
        })
        .collect();
    let mut findings: Vec<Finding> = judge_block(&block)
        .into_iter()
        .map(|found| Finding {
            reason: found.finding.kind.to_string(),
            message: found.finding.message,
        })
        .collect();
    let changed = changed_surroundings(plan, runs);
    if !changed.is_empty() {
        findings.push(Finding {
            reason: "EnvironmentChanged".to_owned(),
            message: format!("changed between two runs of the block: {}", changed.join(", ")),
        });
    }
    findings
}

/// Surroundings that two runs know and that differ. Arms on different instances (versions, sizes) differ in what belongs
/// to an instance: that is compared between the runs of each.
fn changed_surroundings(plan: &Plan, runs: &[(usize, &RunSummary)]) -> Vec<&'static str> {
    SURROUNDINGS
        .iter()
        .enumerate()
        .filter(|(index, name)| {
            let mut known: BTreeMap<Option<(usize, usize)>, BTreeSet<u32>> = BTreeMap::new();
            for (place, run) in runs {
                let instance = plan.levels(&plan.places[*place]).instance();
                let of = (!OF_GENERATOR.contains(*name)).then_some(instance);
                let fingerprint = run.surroundings[*index];
                if fingerprint != 0 {
                    known.entry(of).or_default().insert(fingerprint);
                }
            }
            known.values().any(|found| found.len() > 1)
        })
        .map(|(_, name)| *name)
        .collect()
}
