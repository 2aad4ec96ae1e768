//! The judgement of a block: reasons that need several runs, and what follows for the block.

use std::collections::BTreeMap;

use super::run::differing;
use super::{Finding, InvalidReason};

/// Largest allowed excess of the farthest arm's network round trip over the nearest arm's.
const ROUND_TRIP_SHARE: f64 = 0.10;
/// And in microseconds. Another node or zone on the way adds more than this; within one node an echo takes 60 to 90 us,
/// all of it the two programs' own work, and follows the speed that the processor happens to have.
const ROUND_TRIP_FLOOR: f64 = 50.0;

/// A finding about a block, with the arm that caused it where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFinding {
    /// What was found.
    pub finding: Finding<InvalidReason>,
    /// The arm whose run does not count: its invalid attempts are compared with those of the other arms.
    pub arm: Option<String>,
}

/// What the judgement of a block needs of one of its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockRun {
    /// Name of the arm.
    pub arm: String,
    /// Thread count.
    pub threads: u32,
    /// Why the run itself does not count; empty: it does.
    pub reasons: Vec<InvalidReason>,
    /// Fastest network round trip, microseconds: small echoes to the agent, or TCP connects to a borrowed server.
    /// Never a statement, because the audit would record it. None: not measured.
    pub round_trip_micros: Option<f64>,
    /// The environment by name, as in the run's snapshots.
    pub environment: BTreeMap<String, String>,
}

/// What follows for a block of which every run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOutcome {
    /// Its runs count.
    Counts,
    /// It is measured again as a whole; the old runs stay visible and are never averaged.
    Repeat {
        /// Number of the next attempt, from 1.
        attempt: u32,
    },
    /// All attempts are used up: the campaign goes on without it.
    Lost,
}

/// Judges a block from its runs in the order in which they ran. Empty: it counts.
pub fn judge_block(runs: &[BlockRun]) -> Vec<BlockFinding> {
    let mut findings = Vec::new();
    for run in runs.iter().filter(|run| !run.reasons.is_empty()) {
        let names: Vec<&str> = run.reasons.iter().map(|reason| reason.as_str()).collect();
        let message = format!("{} at {} threads: {}", run.arm, run.threads, names.join(", "));
        let finding = Finding {
            kind: InvalidReason::RunInvalid,
            message,
        };
        findings.push(BlockFinding {
            finding,
            arm: Some(run.arm.clone()),
        });
    }
    if let Some(message) = round_trips(runs) {
        let finding = Finding {
            kind: InvalidReason::RoundTripDiffers,
            message,
        };
        findings.push(BlockFinding { finding, arm: None });
    }
    let changed = runs
        .windows(2)
        .map(|pair| differing(&pair[0].environment, &pair[1].environment, true))
        .find(|changed| !changed.is_empty());
    if let Some(changed) = changed {
        let message = format!("changed between two runs of the block: {changed}");
        let finding = Finding {
            kind: InvalidReason::EnvironmentChanged,
            message,
        };
        findings.push(BlockFinding { finding, arm: None });
    }
    findings
}

/// What follows from the findings in attempt number `attempt` (from 1) of at most `attempts`.
pub fn block_outcome(findings: &[BlockFinding], attempt: u32, attempts: u32) -> BlockOutcome {
    if findings.is_empty() {
        BlockOutcome::Counts
    } else if attempt < attempts {
        BlockOutcome::Repeat { attempt: attempt + 1 }
    } else {
        BlockOutcome::Lost
    }
}

fn round_trips(runs: &[BlockRun]) -> Option<String> {
    let mut by_arm: BTreeMap<&str, f64> = BTreeMap::new();
    for run in runs {
        if let Some(micros) = run
            .round_trip_micros
            .filter(|micros| micros.is_finite() && *micros > 0.0)
        {
            let fastest = by_arm.entry(&run.arm).or_insert(micros);
            *fastest = fastest.min(micros);
        }
    }
    let (near_arm, near) = by_arm.iter().min_by(|one, two| one.1.total_cmp(two.1))?;
    let (far_arm, far) = by_arm.iter().max_by(|one, two| one.1.total_cmp(two.1))?;
    let allowed = (near * ROUND_TRIP_SHARE).max(ROUND_TRIP_FLOOR);
    (far - near > allowed).then(|| {
        format!(
            "the network round trip is {near:.0} us with {near_arm} and {far:.0} us with {far_arm}; allowed are \
             {allowed:.0} us more"
        )
    })
}
