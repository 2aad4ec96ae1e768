//! Groups of blocks: for each comparison and each combination of the other axes, the arms that are set against each
//! other; and the cells that are in no comparison, one arm each.

use std::collections::{BTreeMap, BTreeSet};

use crds::campaign::{Axis, Comparison};

use crate::matrix::{Levels, Matrix, Problem, Row};
use crate::order::Seed;

/// Name of the second baseline arm of a comparison with a noise floor. No level can have it.
pub const REPEAT: &str = "A/A";

/// One arm of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Name of the level of the comparison's axis; [`REPEAT`] for the second baseline.
    pub name: String,
    /// Levels of all axes.
    pub levels: Levels,
}

/// A comparison with every axis but its own fixed, or one arm in no comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Place in the spec's comparisons; None for cells in none.
    pub comparison: Option<usize>,
    /// The axes that are fixed, in words.
    pub context: String,
    /// The arms, the baseline first, then its repeat if there is one.
    pub arms: Vec<Arm>,
    /// Thread counts of every visit.
    pub threads: Vec<i32>,
    /// Seed of this group's order and load.
    pub seed: Seed,
}

impl Group {
    /// Instances and workload that its visits need: groups with the same are measured together.
    pub fn home(&self) -> (Vec<(usize, usize)>, usize) {
        let instances: BTreeSet<_> = self.arms.iter().map(|arm| arm.levels.instance()).collect();
        let workload = self.arms.first().map_or(0, |arm| arm.levels.workload);
        (instances.into_iter().collect(), workload)
    }

    /// Thread counts as the order module takes them.
    pub(super) fn threads_u32(&self) -> Vec<u32> {
        self.threads
            .iter()
            .map(|&threads| threads.unsigned_abs())
            .collect()
    }
}

/// All groups, those with the same instances and workload side by side.
pub(super) fn groups(matrix: &Matrix<'_>, seed: Seed) -> Result<Vec<Group>, Vec<Problem>> {
    let mut groups = Vec::new();
    let mut problems = Vec::new();
    let mut asked: BTreeSet<(Levels, i32)> = BTreeSet::new();
    for (index, comparison) in matrix.spec.comparisons.iter().enumerate() {
        match of_comparison(matrix, index, comparison, seed) {
            Ok(found) => {
                for group in &found {
                    for arm in &group.arms {
                        asked.extend(group.threads.iter().map(|&threads| (arm.levels, threads)));
                    }
                }
                groups.extend(found);
            }
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    for row in &matrix.rows {
        let threads: Vec<i32> = row
            .threads
            .iter()
            .copied()
            .filter(|threads| !asked.contains(&(row.levels, *threads)))
            .collect();
        if !threads.is_empty() {
            let context = matrix.context(row.levels, None);
            groups.push(Group {
                comparison: None,
                seed: seed.derive(&context),
                context,
                arms: vec![Arm {
                    name: matrix.audit(row.levels).name.clone(),
                    levels: row.levels,
                }],
                threads,
            });
        }
    }
    groups.sort_by_key(Group::home);
    Ok(groups)
}

fn of_comparison(
    matrix: &Matrix<'_>,
    index: usize,
    comparison: &Comparison,
    seed: Seed,
) -> Result<Vec<Group>, Vec<Problem>> {
    let axis = comparison.axis;
    let mut contexts: BTreeMap<Levels, Vec<&Row>> = BTreeMap::new();
    let takes = |row: &&Row| comparison.takes(matrix.level_name(row.levels, axis));
    for row in matrix.rows.iter().filter(takes) {
        contexts.entry(row.levels.with(axis, 0)).or_default().push(row);
    }
    let mut groups = Vec::new();
    let mut problems = Vec::new();
    for rows in contexts.values() {
        match of_context(matrix, index, comparison, rows, seed) {
            Ok(Some(group)) => groups.push(group),
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() && groups.is_empty() {
        problems.push(Problem::new(
            format!("spec.comparisons[{index}]"),
            format!(
                "after include and exclude only {} is left to compare",
                comparison.baseline
            ),
            "at least one other level must be measured beside the baseline",
            "remove a selector, or the comparison",
        ));
    }
    if problems.is_empty() {
        Ok(groups)
    } else {
        Err(problems)
    }
}

/// The group of one context; None where only the baseline is measured.
fn of_context(
    matrix: &Matrix<'_>,
    index: usize,
    comparison: &Comparison,
    rows: &[&Row],
    seed: Seed,
) -> Result<Option<Group>, Problem> {
    let axis: Axis = comparison.axis;
    let name = |row: &Row| matrix.level_name(row.levels, axis).to_owned();
    let is_baseline = |row: &&&Row| matrix.level_name(row.levels, axis) == comparison.baseline;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let context = matrix.context(first.levels, Some(axis));
    let field = format!("spec.comparisons[{index}].baseline");
    let Some(baseline) = rows.iter().find(is_baseline) else {
        return Err(Problem::new(
            field,
            format!(
                "include and exclude leave out {} for {context}, and other levels are left",
                comparison.baseline
            ),
            "every level that is measured needs the baseline beside it",
            format!(
                "keep {} there, or exclude the other levels too",
                comparison.baseline
            ),
        ));
    };
    if rows.len() < 2 {
        return Ok(None);
    }
    // Thread counts are runs of one visit and the same for every arm of a block.
    let shared: Vec<i32> = baseline
        .threads
        .iter()
        .copied()
        .filter(|threads| rows.iter().all(|row| row.threads.contains(threads)))
        .collect();
    if shared.is_empty() {
        return Err(Problem::new(
            field,
            format!("the levels compared for {context} have no thread count in common"),
            "arms are compared at the same thread counts",
            "give them a common thread count, or exclude what should not be compared",
        ));
    }
    let arm = |row: &Row, name: String| Arm {
        name,
        levels: row.levels,
    };
    let mut arms = vec![arm(baseline, name(baseline))];
    if comparison.noise_floor {
        arms.push(arm(baseline, REPEAT.to_owned()));
    }
    arms.extend(
        rows.iter()
            .filter(|row| !is_baseline(row))
            .map(|row| arm(row, name(row))),
    );
    Ok(Some(Group {
        comparison: Some(index),
        seed: seed.derive(&format!("{}: {context}", comparison.name)),
        context,
        arms,
        threads: shared,
    }))
}
