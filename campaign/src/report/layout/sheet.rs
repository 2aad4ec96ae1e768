//! Cells put into a layout: means of the runs that count, words where there are none, notes about what a reader must know.

use std::collections::{BTreeMap, BTreeSet};

use crds::BenchmarkCampaignSpec;
use crds::run::Cell;

use super::faults;
use super::notes::{self, LEFT_OUT, SINGLE, SYMPTOMS, left_out, symptoms};
use super::{Against, Dimension, Figure, Layout, Relative};
use crate::campaign_planner::CellRuns;

/// A table, not yet text.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// Headings of the labels: the axes of the rows.
    pub labels: Vec<String>,
    /// Headings of the columns.
    pub columns: Vec<Column>,
    /// One part for each combination of the levels that are neither rows nor columns.
    pub sections: Vec<Section>,
    /// Axes whose levels tell the sections apart.
    pub section_labels: Vec<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Levels of the columns' axes; empty if there are none.
    pub level: String,
    /// What it holds, with the unit.
    pub heading: String,
    /// What it holds.
    pub kind: Kind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Means of a figure.
    Figure(Figure),
    /// The first figure against its baseline, percent.
    Relative,
    /// Number of runs that count; for CSV.
    Runs,
    /// Runs that do not, by reason; for CSV.
    LeftOut,
}

/// Rows that share the levels of the other axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Those levels.
    pub levels: Vec<String>,
    /// Labels and entries.
    pub rows: Vec<(Vec<String>, Vec<Entry>)>,
}

/// What stands at one place.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A number.
    Number {
        /// In the unit of its heading.
        value: f64,
        /// Decimals shown.
        decimals: usize,
        /// Whether a plus sign is shown.
        signed: bool,
        /// Marks that the notes explain.
        marks: String,
    },
    /// A word: `invalid`, `doubtful`, `-` (not measured, or not known), `base`, or text.
    Word(String),
}

/// The cells with their means, by cell.
pub(super) struct Means<'a> {
    pub(super) layout: &'a Layout,
    pub(super) cells: &'a [CellRuns<'a>],
    places: BTreeMap<&'a Cell, usize>,
}

impl<'a> Means<'a> {
    fn new(layout: &'a Layout, cells: &'a [CellRuns<'a>]) -> Self {
        let places = cells
            .iter()
            .enumerate()
            .map(|(place, cell)| (&cell.cell, place))
            .collect();
        Self {
            layout,
            cells,
            places,
        }
    }

    /// The mean of a figure over the runs that count; None without one that has it.
    pub(super) fn mean(&self, cell: &CellRuns<'_>, figure: Figure) -> Option<f64> {
        let values: Vec<f64> = cell
            .counted
            .iter()
            .filter_map(|run| figure.of(run, self.layout.statements_a_day))
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The baseline's cell of a cell; None for a cell of the baseline itself, or where it was not measured.
    pub(super) fn baseline(&self, relative: &Relative, cell: &Cell) -> Option<&'a CellRuns<'a>> {
        if relative.axis.level(cell) == relative.baseline {
            return None;
        }
        let mut other = cell.clone();
        let level = relative.baseline.clone();
        match relative.axis {
            Dimension::Database => other.database = level,
            Dimension::InstanceSize => other.instance_size = level,
            Dimension::Workload => other.workload = level,
            Dimension::ParameterTemplate => other.parameter_template = level,
            Dimension::AuditSetting => other.audit_setting = level,
            Dimension::Threads => other.threads = level.parse().ok()?,
        }
        self.places.get(&other).map(|place| &self.cells[*place])
    }

    /// The first figure of a cell as a multiple of its baseline's.
    pub(super) fn ratio(&self, relative: &Relative, cell: &CellRuns<'_>) -> Option<f64> {
        let figure = *self.layout.figures.first()?;
        let base = self.mean(self.baseline(relative, &cell.cell)?, figure)?;
        let value = self.mean(cell, figure)?;
        (base > 0.0).then(|| value / base)
    }

    /// Whether every figure is that of one run.
    pub(super) fn all_single(&self) -> bool {
        self.cells.iter().all(|cell| cell.counted.len() <= 1)
            && self.cells.iter().any(|cell| !cell.counted.is_empty())
    }
}

/// Levels of some axes, by their places in the spec, so that they sort as the spec lists them.
type Key = Vec<usize>;

impl Sheet {
    pub(super) fn new(layout: &Layout, spec: &BenchmarkCampaignSpec, cells: &[CellRuns<'_>]) -> Self {
        let means = Means::new(layout, cells);
        let levels: BTreeMap<Dimension, Vec<String>> = Dimension::ALL
            .into_iter()
            .map(|axis| (axis, axis.levels(spec)))
            .collect();
        let others: Vec<Dimension> = Dimension::ALL
            .into_iter()
            .filter(|axis| !layout.rows.contains(axis) && !layout.columns.contains(axis))
            .filter(|axis| levels[axis].len() > 1)
            .collect();
        let key = |axes: &[Dimension], cell: &Cell| -> Key {
            let place = |axis: &Dimension| {
                let level = axis.level(cell);
                levels[axis].iter().position(|known| *known == level).unwrap_or(0)
            };
            axes.iter().map(place).collect()
        };
        let words = |axes: &[Dimension], key: &Key| -> Vec<String> {
            axes.iter()
                .zip(key)
                .map(|(axis, place)| levels[axis][*place].clone())
                .collect()
        };
        let mut keyed: BTreeMap<(Key, Key, Key), &CellRuns<'_>> = BTreeMap::new();
        for cell in cells {
            let at = &cell.cell;
            keyed.insert(
                (key(&others, at), key(&layout.rows, at), key(&layout.columns, at)),
                cell,
            );
        }
        let distinct: BTreeSet<Key> = keyed.keys().map(|(_, _, column)| column.clone()).collect();
        let mut columns = Vec::new();
        let mut keys = Vec::new();
        for column in &distinct {
            let level = words(&layout.columns, column);
            for (heading, kind) in kinds(layout, &level) {
                columns.push(Column {
                    level: level.join(", "),
                    heading,
                    kind,
                });
                keys.push(column);
            }
        }
        let all_single = means.all_single();
        let mut sections: Vec<(Key, Section)> = Vec::new();
        let rows: BTreeSet<(&Key, &Key)> = keyed.keys().map(|(section, row, _)| (section, row)).collect();
        for (section, row) in rows {
            let entries = columns.iter().zip(&keys).map(|(column, key)| {
                keyed
                    .get(&(section.clone(), row.clone(), (*key).clone()))
                    .map_or_else(|| word("-"), |cell| entry(&means, cell, column.kind, all_single))
            });
            let line = (words(&layout.rows, row), entries.collect());
            match sections.last_mut() {
                Some((key, last)) if key == section => last.rows.push(line),
                _ => sections.push((
                    section.clone(),
                    Section {
                        levels: words(&others, section),
                        rows: vec![line],
                    },
                )),
            }
        }
        let mut notes = notes::of_marks(&means);
        notes.extend(faults::notes(spec, &means));
        let named = |axes: &[Dimension]| axes.iter().map(ToString::to_string).collect();
        Self {
            labels: named(&layout.rows),
            columns,
            sections: sections.into_iter().map(|(_, section)| section).collect(),
            section_labels: named(&others),
            notes,
        }
    }
}

/// The columns of one combination of column levels.
fn kinds(layout: &Layout, level: &[String]) -> Vec<(String, Kind)> {
    let mut kinds: Vec<(String, Kind)> = layout
        .figures
        .iter()
        .map(|figure| (figure.heading().0.to_owned(), Kind::Figure(*figure)))
        .collect();
    if let (Some(relative), Some(first)) = (&layout.relative, layout.figures.first()) {
        let is_base = layout
            .columns
            .iter()
            .zip(level)
            .any(|(axis, level)| *axis == relative.axis && *level == relative.baseline);
        if !is_base {
            let words = match relative.against {
                Against::PercentOf => "% of base",
                Against::Difference => "diff %",
            };
            let words = format!("{} {words}", first.heading().0);
            kinds.push((words, Kind::Relative));
        }
    }
    kinds.push(("runs".to_owned(), Kind::Runs));
    kinds.push(("left out".to_owned(), Kind::LeftOut));
    kinds
}

fn word(text: &str) -> Entry {
    Entry::Word(text.to_owned())
}

fn entry(means: &Means<'_>, cell: &CellRuns<'_>, kind: Kind, all_single: bool) -> Entry {
    match kind {
        Kind::Figure(figure) => {
            let Some(value) = means.mean(cell, figure) else {
                return word(missing(cell));
            };
            let mut marks = String::new();
            if cell.counted.len() == 1 && !all_single {
                marks.push(SINGLE);
            }
            if !cell.left_out.is_empty() {
                marks.push(LEFT_OUT);
            }
            if symptoms(cell).next().is_some() {
                marks.push(SYMPTOMS);
            }
            Entry::Number {
                value,
                decimals: figure.heading().1,
                signed: false,
                marks,
            }
        }
        Kind::Relative => {
            let Some(relative) = &means.layout.relative else {
                return word("-");
            };
            if relative.axis.level(&cell.cell) == relative.baseline {
                return word("base");
            }
            means.ratio(relative, cell).map_or_else(
                || word("-"),
                |ratio| match relative.against {
                    Against::PercentOf => number(100.0 * ratio, 1, false),
                    Against::Difference => number(100.0 * (ratio - 1.0), 2, true),
                },
            )
        }
        Kind::Runs => Entry::Word(cell.counted.len().to_string()),
        Kind::LeftOut => Entry::Word(left_out(cell)),
    }
}

fn number(value: f64, decimals: usize, signed: bool) -> Entry {
    Entry::Number {
        value,
        decimals,
        signed,
        marks: String::new(),
    }
}

/// Why there is no figure.
fn missing(cell: &CellRuns<'_>) -> &'static str {
    if !cell.counted.is_empty() || cell.left_out.is_empty() {
        "-"
    } else if cell.left_out.iter().all(|run| run.invalid) {
        "invalid"
    } else {
        "doubtful"
    }
}
