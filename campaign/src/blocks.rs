//! The whole plan of a campaign: every run in the order in which it is measured, as a list that follows from the
//! matrix and the seed alone. Which places are done is not known here.

mod groups;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crds::BenchmarkCampaignSpec;
use crds::campaign::{Looks as SpecLooks, Order as SpecOrder};

pub use groups::{Arm, Group, REPEAT};

use crate::inference::Looks;
use crate::matrix::supported::MOST_RUNS;
use crate::matrix::{Levels, Matrix, Problem};
use crate::order::{self, Order, Seed, Visit};

/// Blocks of every group if the spec gives none.
pub const DEFAULT_BLOCKS: u32 = 6;

/// Every run of a campaign, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Groups of blocks: a comparison with every other axis fixed, or one arm that is in no comparison.
    pub groups: Vec<Group>,
    /// The runs; a place's number is its sequence.
    pub places: Vec<Place>,
    /// What is repeated as a whole, in order; together they are all places.
    pub units: Vec<Unit>,
    /// The planned looks.
    pub looks: Looks,
    /// The seed that orders and load follow from.
    pub seed: Seed,
}

/// One run to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Place in [`Plan::groups`].
    pub group: u32,
    /// Block from 1; 0 is the burn-in.
    pub block: u32,
    /// Place of the visit in its block, from 0.
    pub position: u16,
    /// Place of the run in its visit, from 0.
    pub ordinal: u16,
    /// Place in the group's arms.
    pub arm: u16,
    /// Client threads.
    pub threads: i32,
}

/// What is measured again as a whole when a run in it is invalid: a block, or a visit of the burn-in or of a
/// grouped order, whose arms do not lie side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its places.
    pub places: std::ops::Range<usize>,
    /// The look that it belongs to, from 0.
    pub stage: usize,
}

impl Unit {
    /// Whether it is the burn-in, which is not counted.
    pub fn burn_in(&self, plan: &Plan) -> bool {
        plan.places[self.places.start].block == 0
    }
}

impl Plan {
    /// The group of a place.
    pub fn group(&self, place: &Place) -> &Group {
        &self.groups[place.group as usize]
    }
    /// The arm of a place.
    pub fn arm(&self, place: &Place) -> &Arm {
        &self.group(place).arms[place.arm as usize]
    }
    /// The levels of a place.
    pub fn levels(&self, place: &Place) -> Levels {
        self.arm(place).levels
    }
    /// The load generator's seed of a place: the same in all arms of a block.
    pub fn load_seed(&self, place: &Place) -> u32 {
        order::load_seed(self.group(place).seed, place.block)
    }
    /// Number of visits, burn-in included.
    pub fn visits(&self) -> usize {
        self.places.iter().filter(|place| place.ordinal == 0).count()
    }
    /// Number of runs of the burn-in.
    pub fn burn_in_runs(&self) -> usize {
        self.places.iter().filter(|place| place.block == 0).count()
    }
    /// Number of blocks of all groups.
    pub fn blocks(&self) -> usize {
        self.groups.len() * self.looks.last() as usize
    }
}

/// The planned looks of a spec.
pub fn looks(spec: &BenchmarkCampaignSpec) -> Looks {
    let sizes: &[u32] = match spec.repetitions.looks {
        Some(SpecLooks::UpTo10) => &[6, 8, 10],
        Some(SpecLooks::UpTo20) => &[6, 8, 12, 16, 20],
        None => &[],
    };
    Looks::planned(sizes).unwrap_or_else(|_| {
        let blocks = spec
            .repetitions
            .blocks
            .and_then(|blocks| u32::try_from(blocks).ok());
        Looks::fixed(blocks.unwrap_or(DEFAULT_BLOCKS))
    })
}

/// Lays out every run.
///
/// # Errors
/// Comparisons whose arms cannot be compared in some context, and too many runs.
pub fn lay_out(matrix: &Matrix<'_>, seed: Seed) -> Result<Plan, Vec<Problem>> {
    let groups = groups::groups(matrix, seed)?;
    let looks = looks(matrix.spec);
    let a_block: usize = groups
        .iter()
        .map(|group| group.arms.len() * group.threads.len())
        .sum();
    let runs = a_block.saturating_mul(looks.last() as usize);
    if runs > MOST_RUNS {
        return Err(vec![Problem::new(
            "spec",
            format!(
                "{} cells make {a_block} runs a block and {runs} runs in {} blocks",
                matrix.cells(),
                looks.last()
            ),
            format!("at most {MOST_RUNS} runs"),
            "exclude cells, give fewer levels or blocks, or make several campaigns",
        )]);
    }
    let order = match matrix.spec.order {
        SpecOrder::Balanced => Order::Balanced,
        SpecOrder::Grouped => Order::Grouped,
    };
    let mut plan = Plan {
        groups,
        places: Vec::with_capacity(runs),
        units: Vec::new(),
        looks,
        seed,
    };
    fill(&mut plan, order);
    Ok(plan)
}

/// Groups that share instances and data are interleaved block by block, so that each is spread over the whole time;
/// a change of instance or data costs minutes and happens once a stage.
fn fill(plan: &mut Plan, order: Order) {
    let orders: Vec<Vec<Visit>> = plan
        .groups
        .iter()
        .map(|group| {
            order::visits(
                group.arms.len(),
                &group.threads_u32(),
                plan.looks.last(),
                order,
                group.seed,
            )
        })
        .collect();
    let mut segments: Vec<(usize, usize)> = Vec::new();
    for (index, group) in plan.groups.iter().enumerate() {
        match segments.last_mut() {
            Some((first, end)) if plan.groups[*first].home() == group.home() => *end = index + 1,
            _ => segments.push((index, index + 1)),
        }
    }
    let sizes = plan.looks.sizes().to_vec();
    let mut from = 0;
    for (stage, &to) in sizes.iter().enumerate() {
        for &(first, end) in &segments {
            if stage == 0 {
                burn_in(plan, first..end, order);
            }
            match order {
                Order::Balanced => {
                    for block in from..to {
                        for (group, visits) in orders.iter().enumerate().take(end).skip(first) {
                            add_unit(
                                plan,
                                group,
                                visits.iter().filter(|visit| visit.block == block),
                                stage,
                            );
                        }
                    }
                }
                Order::Grouped => {
                    for (group, visits) in orders.iter().enumerate().take(end).skip(first) {
                        for visit in visits {
                            add_unit(plan, group, std::iter::once(visit), stage);
                        }
                    }
                }
            }
        }
        from = to;
    }
}

/// One visit for each arm of the segment, not counted.
fn burn_in(plan: &mut Plan, groups: std::ops::Range<usize>, order: Order) {
    let mut burnt: BTreeSet<Levels> = BTreeSet::new();
    for index in groups {
        let group = &plan.groups[index];
        let visits = order::burn_in(group.arms.len(), &group.threads_u32(), order, group.seed);
        for visit in visits {
            if burnt.insert(plan.groups[index].arms[visit.arm].levels) {
                let first = plan.places.len();
                push_visit(plan, index, &visit, 0);
                plan.units.push(Unit {
                    places: first..plan.places.len(),
                    stage: 0,
                });
            }
        }
    }
}

fn add_unit<'v>(plan: &mut Plan, group: usize, visits: impl Iterator<Item = &'v Visit>, stage: usize) {
    let first = plan.places.len();
    for visit in visits {
        push_visit(plan, group, visit, visit.block + 1);
    }
    if plan.places.len() > first {
        plan.units.push(Unit {
            places: first..plan.places.len(),
            stage,
        });
    }
}

fn push_visit(plan: &mut Plan, group: usize, visit: &Visit, block: u32) {
    for (ordinal, &threads) in visit.threads.iter().enumerate() {
        plan.places.push(Place {
            group: group as u32,
            block,
            position: visit.position as u16,
            ordinal: ordinal as u16,
            arm: visit.arm as u16,
            threads: threads as i32,
        });
    }
}
