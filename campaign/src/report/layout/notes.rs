//! What a reader must know of the runs behind the figures: marks and what they stand for.

use std::collections::{BTreeMap, BTreeSet};

use super::Dimension;
use super::sheet::Means;
use crate::campaign_planner::CellRuns;

/// Cells named in notes; the rest are counted.
const NAMED: usize = 8;
/// A figure of a single run among figures of several.
pub(super) const SINGLE: char = '¹';
/// A figure beside which runs were left out.
pub(super) const LEFT_OUT: char = '*';
/// A figure of runs with symptoms.
pub(super) const SYMPTOMS: char = '~';

/// Reasons of the symptoms of the runs that count.
pub(super) fn symptoms<'a>(cell: &'a CellRuns<'_>) -> impl Iterator<Item = &'a str> {
    cell.counted
        .iter()
        .filter_map(|run| run.status.as_ref())
        .flat_map(|status| status.symptoms.iter().map(|found| found.reason.as_str()))
}

/// Runs that do not count, by reason: `1 invalid NodeDisturbed, 2 doubtful RoundTrip`.
pub(super) fn left_out(cell: &CellRuns<'_>) -> String {
    let mut reasons: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for run in &cell.left_out {
        *reasons.entry((!run.invalid, &run.reason)).or_default() += 1;
    }
    let words: Vec<String> = reasons
        .into_iter()
        .map(|((doubtful, reason), count)| {
            format!(
                "{count} {} {reason}",
                if doubtful { "doubtful" } else { "invalid" }
            )
        })
        .collect();
    words.join(", ")
}

/// What the marks stand for.
pub(super) fn of_marks(means: &Means<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let singles = means.cells.iter().filter(|cell| cell.counted.len() == 1).count();
    if means.all_single() {
        notes.push(
            "Every figure is a single run: nothing here says how far another run would differ.".to_owned(),
        );
    } else if singles > 0 {
        notes.push(format!("{SINGLE} a single run ({singles} cells)."));
    }
    let name = |cell: &CellRuns<'_>| {
        let several = |axis: &Dimension| {
            let level = axis.level(&cell.cell);
            means.cells.iter().any(|other| axis.level(&other.cell) != level)
        };
        let words: Vec<String> = Dimension::ALL
            .iter()
            .filter(|axis| several(axis))
            .map(|axis| match axis {
                Dimension::Threads => format!("{} threads", cell.cell.threads),
                other => other.level(&cell.cell),
            })
            .collect();
        words.join(", ")
    };
    let mut say = |mark: char, what: &str, cells: Vec<(String, String)>| {
        let more = cells.len().saturating_sub(NAMED);
        for (cell, words) in cells.iter().take(NAMED) {
            notes.push(format!("{mark} {cell}: {what}: {words}."));
        }
        if more > 0 {
            notes.push(format!("{mark} and {more} more cells; the CSV form has all."));
        }
    };
    let without = |cell: &&CellRuns<'_>| !cell.left_out.is_empty();
    let named = |cell: &CellRuns<'_>| (name(cell), left_out(cell));
    say(
        LEFT_OUT,
        "runs left out",
        means.cells.iter().filter(without).map(named).collect(),
    );
    let with: Vec<(String, String)> = means
        .cells
        .iter()
        .filter_map(|cell| {
            let found: BTreeSet<&str> = symptoms(cell).collect();
            let words: Vec<&str> = found.into_iter().collect();
            (!words.is_empty()).then(|| (name(cell), words.join(", ")))
        })
        .collect();
    say(SYMPTOMS, "symptoms", with);
    notes
}
