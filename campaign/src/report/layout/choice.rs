//! A layout in words, as far as it is said: from a command line or from a line of the annotation. What is not said
//! follows from the campaign's comparisons.

use crds::BenchmarkCampaignSpec;
use crds::campaign::Comparison;

use super::{Against, Dimension, Figure, Layout, Relative};

/// What is said of a layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    rows: Option<Vec<Dimension>>,
    columns: Option<Vec<Dimension>>,
    figures: Option<Vec<Figure>>,
    /// How, and against what: a level, `AXIS=LEVEL`, or `none`.
    relative: Option<(Against, String)>,
    statements_a_day: Option<u64>,
    /// The comparison whose cells alone are shown.
    comparison: Option<String>,
}

/// The words that a line knows.
const KEYS: &str = "rows, columns, metrics, percent-of, difference-from, statements-a-day, comparison";

impl Choice {
    /// Reads `rows=Threads columns=AuditSetting metrics=Tps,Qps difference-from=no-audit`.
    ///
    /// # Errors
    /// A sentence that names the word and what is known.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut choice = Self::default();
        for word in line.split_whitespace() {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| format!("{word:?} is not KEY=VALUE; the keys are {KEYS}"))?;
            choice.set(key, value)?;
        }
        Ok(choice)
    }

    /// Sets one word of a layout, as a line or an option of the command says it.
    ///
    /// # Errors
    /// A sentence if the key or the value is not known.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let twice = |said: bool| {
            if said {
                Err(format!("{key} is said twice"))
            } else {
                Ok(())
            }
        };
        match key {
            "rows" => {
                twice(self.rows.is_some())?;
                self.rows = Some(names(value, &Dimension::ALL)?);
            }
            "columns" => {
                twice(self.columns.is_some())?;
                self.columns = Some(names(value, &Dimension::ALL)?);
            }
            "metrics" => {
                twice(self.figures.is_some())?;
                let figures = names(value, &Figure::ALL)?;
                if figures.is_empty() {
                    return Err("metrics: name at least one".to_owned());
                }
                self.figures = Some(figures);
            }
            "percent-of" | "difference-from" => {
                if self.relative.is_some() {
                    return Err("give one of percent-of and difference-from, once".to_owned());
                }
                let against = if key == "percent-of" {
                    Against::PercentOf
                } else {
                    Against::Difference
                };
                self.relative = Some((against, value.to_owned()));
            }
            "statements-a-day" => {
                twice(self.statements_a_day.is_some())?;
                let count = value
                    .parse()
                    .map_err(|_| format!("statements-a-day: {value:?} is not a whole number"))?;
                self.statements_a_day = Some(count);
            }
            "comparison" => {
                twice(self.comparison.is_some())?;
                self.comparison = Some(value.to_owned());
            }
            _ => return Err(format!("{key:?} is not a word of a layout; they are {KEYS}")),
        }
        Ok(())
    }

    /// The same layout of the cells of one comparison.
    pub(super) fn of(&self, comparison: &Comparison) -> Self {
        Self {
            comparison: Some(comparison.name.clone()),
            ..self.clone()
        }
    }

    /// Fills in what is not said: the comparison's axis makes the columns, its primary metric is shown and set against its
    /// baseline; sizes and threads make the rows.
    pub(super) fn complete(&self, spec: &BenchmarkCampaignSpec) -> Result<Layout, String> {
        let comparison =
            match &self.comparison {
                Some(name) => Some(spec.comparisons.iter().find(|own| own.name == *name).ok_or_else(
                    || {
                        let known: Vec<&str> = spec.comparisons.iter().map(|own| own.name.as_str()).collect();
                        format!("{name:?} is no comparison; they are {}", known.join(", "))
                    },
                )?),
                None => spec.comparisons.first(),
            };
        let several = |dimension: &Dimension| dimension.levels(spec).len() > 1;
        let named = |list: &Option<Vec<Dimension>>, dimension: Dimension| {
            list.as_ref().is_some_and(|list| list.contains(&dimension))
        };
        let compared = comparison.map(|comparison| Dimension::from(comparison.axis));
        let columns = self.columns.clone().unwrap_or_else(|| {
            compared
                .into_iter()
                .filter(|axis| !named(&self.rows, *axis))
                .collect()
        });
        let rows = self.rows.clone().unwrap_or_else(|| {
            [Dimension::InstanceSize, Dimension::Threads]
                .into_iter()
                .filter(|axis| !columns.contains(axis) && (*axis == Dimension::Threads || several(axis)))
                .collect()
        });
        if let Some(both) = rows.iter().find(|axis| columns.contains(axis)) {
            return Err(format!("{both} is named for rows and for columns: name it once"));
        }
        if let Some(twice) = repeated(&rows).or_else(|| repeated(&columns)) {
            return Err(format!("{twice} is named twice"));
        }
        let figures = self.figures.clone().unwrap_or_else(|| {
            vec![Figure::Metric(
                comparison.map_or_else(Default::default, |comparison| comparison.primary),
            )]
        });
        if figures.contains(&Figure::LogPerDay) && self.statements_a_day.is_none() {
            return Err("LogPerDay needs statements-a-day, such as 100000000".to_owned());
        }
        Ok(Layout {
            relative: self.relative(spec, comparison, &rows, &columns)?,
            rows,
            columns,
            figures,
            statements_a_day: self.statements_a_day.unwrap_or(0),
            comparison: comparison
                .filter(|comparison| self.comparison.is_some() && !comparison.levels.is_empty())
                .map(|comparison| comparison.name.clone()),
        })
    }

    fn relative(
        &self,
        spec: &BenchmarkCampaignSpec,
        comparison: Option<&Comparison>,
        rows: &[Dimension],
        columns: &[Dimension],
    ) -> Result<Option<Relative>, String> {
        let Some((against, level)) = &self.relative else {
            // A question about an axis that is shown comes first.
            let shown = spec.comparisons.iter().find(|comparison| {
                let axis = comparison.axis.into();
                columns.contains(&axis) || rows.contains(&axis)
            });
            let own = comparison.filter(|comparison| {
                let axis = comparison.axis.into();
                columns.contains(&axis) || rows.contains(&axis)
            });
            return Ok(own.or(shown).or(comparison).map(|comparison| Relative {
                against: Against::Difference,
                axis: comparison.axis.into(),
                baseline: comparison.baseline.clone(),
            }));
        };
        if level == "none" {
            return Ok(None);
        }
        let of = |axis: Dimension, baseline: &str| {
            Some(Relative {
                against: *against,
                axis,
                baseline: baseline.to_owned(),
            })
        };
        if let Some((axis, level)) = level.split_once('=') {
            let axis = name(axis, &Dimension::ALL)?;
            let levels = axis.levels(spec);
            if !levels.iter().any(|known| known == level) {
                return Err(format!(
                    "{level:?} is no level of {axis}; they are {}",
                    levels.join(", ")
                ));
            }
            return Ok(of(axis, level));
        }
        let having: Vec<Dimension> = Dimension::ALL
            .into_iter()
            .filter(|axis| axis.levels(spec).contains(level))
            .collect();
        match having.as_slice() {
            [axis] => Ok(of(*axis, level)),
            [] => Err(format!("{level:?} is no level of any axis")),
            several => {
                let words: Vec<String> = several.iter().map(|axis| format!("{axis}={level}")).collect();
                Err(format!(
                    "{level:?} is a level of several axes: write {}",
                    words.join(" or ")
                ))
            }
        }
    }
}

fn repeated(list: &[Dimension]) -> Option<Dimension> {
    list.iter()
        .enumerate()
        .find(|(place, axis)| list[..*place].contains(axis))
        .map(|(_, axis)| *axis)
}

fn name<T: Copy + std::fmt::Display>(text: &str, known: &[T]) -> Result<T, String> {
    known
        .iter()
        .copied()
        .find(|one| one.to_string() == text)
        .ok_or_else(|| {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            format!("{text:?} is not one of {}", known.join(", "))
        })
}

/// Names with commas between them; `none` for none.
fn names<T: Copy + std::fmt::Display>(text: &str, known: &[T]) -> Result<Vec<T>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    text.split(',').map(|one| name(one.trim(), known)).collect()
}
