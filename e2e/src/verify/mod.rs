//! The stages of `cargo verify`, cheap ones first. A stage that fails does not stop the others, so all failures are seen
//! at once; what cannot be tried because a stage before it failed counts as skipped.

pub mod openapi;
mod stages;
pub mod tally;

use std::fmt::Write;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::cache::Cache;
use crate::error::Result;
use crate::progress::elapsed;
use stages::Context;
use tally::Tally;

/// One stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// rustfmt would change nothing.
    Format,
    /// No warning of clippy.
    Lint,
    /// Generated files are those in the checkout.
    Generated,
    /// Unit and integration tests of all crates, with the simulation.
    Tests,
    /// Packages, programs and the local node.
    Node,
    /// The chart lints and renders.
    Chart,
    /// The API server accepts the definitions; their rules are within its cost limits.
    Definitions,
    /// Chart and examples satisfy the API's schemas.
    Schemas,
    /// The end-to-end suite, on a machine that does nothing else.
    Suite,
}

impl Stage {
    /// All, in order.
    pub const ALL: [Self; 9] = [
        Self::Format,
        Self::Lint,
        Self::Generated,
        Self::Tests,
        Self::Node,
        Self::Chart,
        Self::Definitions,
        Self::Schemas,
        Self::Suite,
    ];

    /// The stage that must have passed before this one can be tried.
    fn needs(self) -> Option<Self> {
        match self {
            Self::Chart | Self::Definitions | Self::Suite => Some(Self::Node),
            Self::Schemas => Some(Self::Definitions),
            Self::Format | Self::Lint | Self::Generated | Self::Tests | Self::Node => None,
        }
    }

    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The stages to run for a choice: those chosen and what they need; without a choice all.
    pub fn selection(only: &[Self]) -> Vec<Self> {
        if only.is_empty() {
            return Self::ALL.to_vec();
        }
        let mut wanted = only.to_vec();
        while let Some(more) = wanted
            .iter()
            .filter_map(|stage| stage.needs())
            .find(|need| !wanted.contains(need))
        {
            wanted.push(more);
        }
        Self::ALL
            .into_iter()
            .filter(|stage| wanted.contains(stage))
            .collect()
    }
}

/// How a stage ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which.
    pub stage: Stage,
    /// Its counts; a stage that is not made of tests counts as one.
    pub tally: Tally,
    /// How long it took.
    pub took: Duration,
}

/// Runs the stages and prints each as it ends.
pub fn run(cache: &Cache, selection: &[Stage], foreign_cluster: bool) -> Vec<Outcome> {
    let mut context = Context::new(cache, foreign_cluster);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for &stage in selection {
        let blocked = stage.needs().filter(|need| {
            outcomes
                .iter()
                .any(|outcome| outcome.stage == *need && !outcome.tally.good())
        });
        if let Some(need) = blocked {
            println!("== {}: skipped, because {} failed", stage.name(), need.name());
            outcomes.push(Outcome {
                stage,
                tally: Tally::SKIPPED,
                took: Duration::ZERO,
            });
            continue;
        }
        println!("== {}", stage.name());
        let start = Instant::now();
        let tally = report(context.run(stage));
        let took = start.elapsed();
        let word = if tally.good() { "passed" } else { "FAILED" };
        println!("== {}: {word} in {} ({tally})", stage.name(), elapsed(took));
        outcomes.push(Outcome { stage, tally, took });
    }
    outcomes
}

fn report(result: Result<Tally>) -> Tally {
    result.unwrap_or_else(|error| {
        println!("{error}");
        Tally::FAILED
    })
}

/// The minutes of each stage and, as the last line, the counts of all.
pub fn summary(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let word = match outcome.tally {
            Tally::SKIPPED => "skipped",
            tally if tally.good() => "passed",
            _ => "FAILED",
        };
        let _ = writeln!(
            text,
            "{:<12} {:>10}  {word}",
            outcome.stage.name(),
            elapsed(outcome.took)
        );
    }
    text.push_str(&total(outcomes).to_string());
    text
}

/// The counts of all stages together.
pub fn total(outcomes: &[Outcome]) -> Tally {
    outcomes
        .iter()
        .map(|outcome| outcome.tally)
        .fold(Tally::default(), |sum, tally| sum + tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choosing_a_stage_brings_what_it_needs_in_order() {
        assert_eq!(
            Stage::selection(&[Stage::Schemas]),
            [Stage::Node, Stage::Definitions, Stage::Schemas]
        );
        assert_eq!(Stage::selection(&[Stage::Lint]), [Stage::Lint]);
        assert_eq!(Stage::selection(&[]), Stage::ALL);
        assert_eq!(Stage::selection(&[Stage::Suite]), [Stage::Node, Stage::Suite]);
    }

    #[test]
    fn a_needed_stage_comes_before_the_one_that_needs_it() {
        let place = |stage| Stage::ALL.iter().position(|other| *other == stage);
        for stage in Stage::ALL {
            if let Some(need) = stage.needs() {
                assert!(place(need) < place(stage), "{need:?} before {stage:?}");
            }
        }
    }

    #[test]
    fn the_last_line_is_the_sum() {
        let outcome = |stage, passed, failed, skipped| Outcome {
            stage,
            tally: Tally {
                passed,
                failed,
                skipped,
            },
            took: Duration::from_secs(61),
        };
        let outcomes = [outcome(Stage::Format, 1, 0, 0), outcome(Stage::Tests, 40, 2, 3)];
        let text = summary(&outcomes);
        assert_eq!(text.lines().last(), Some("41 passed, 2 failed, 3 skipped"));
        assert!(text.contains("tests              61 s  FAILED"), "{text}");
    }
}
