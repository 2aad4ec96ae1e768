//! A table as text for a terminal, as Markdown for a page, as comma-separated values for a spreadsheet.

use std::fmt::Write as _;

use super::super::csv::quoted;
use super::sheet::{Column, Entry, Kind, Section, Sheet};

/// Forms of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns of text.
    Text,
    /// Comma-separated values, with the number of runs and what was left out.
    Csv,
    /// Markdown.
    Markdown,
}

impl Sheet {
    /// The table as text of a format.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Text => self.text(),
            Format::Csv => self.csv(),
            Format::Markdown => self.markdown(),
        }
    }

    /// Columns for people: how many runs there are is in marks and notes.
    fn shown(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns
            .iter()
            .enumerate()
            .filter(|(_, column)| matches!(column.kind, Kind::Figure(_) | Kind::Relative))
    }

    fn line(&self, labels: &[String], entries: &[Entry]) -> Vec<String> {
        let shown = self.shown().map(|(place, _)| entries[place].shown());
        labels.iter().cloned().chain(shown).collect()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            if !section.levels.is_empty() {
                let _ = writeln!(text, "{}", section.levels.join(", "));
            }
            let mut lines = Vec::new();
            if self.columns.iter().any(|column| !column.level.is_empty()) {
                // A level stands above the first of its columns only.
                let mut last = "";
                let levels = self.shown().map(|(_, column)| {
                    let again = column.level == last;
                    last = &column.level;
                    if again {
                        String::new()
                    } else {
                        column.level.clone()
                    }
                });
                lines.push(self.labels.iter().map(|_| String::new()).chain(levels).collect());
            }
            lines.push(self.headings(|column| column.heading.clone()));
            lines.extend(
                section
                    .rows
                    .iter()
                    .map(|(labels, entries)| self.line(labels, entries)),
            );
            text.push_str(&aligned(&lines, &self.left(section)));
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    fn headings(&self, words: impl Fn(&Column) -> String) -> Vec<String> {
        let columns = self.shown().map(|(_, column)| words(column));
        self.labels.iter().cloned().chain(columns).collect()
    }

    /// Which columns are set left: labels that are no numbers.
    fn left(&self, section: &Section) -> Vec<bool> {
        let numbers = |label: usize| {
            section
                .rows
                .iter()
                .all(|(labels, _)| labels[label].parse::<f64>().is_ok())
        };
        let labels = (0..self.labels.len()).map(|label| !numbers(label));
        labels.chain(self.shown().map(|_| false)).collect()
    }

    fn markdown(&self) -> String {
        let mut text = String::new();
        let cell = |word: &str| word.replace('|', "\\|");
        let line = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|word| cell(word)).collect();
            format!("| {} |\n", words.join(" | "))
        };
        for section in &self.sections {
            if !section.levels.is_empty() {
                let _ = writeln!(text, "**{}**\n", section.levels.join(", "));
            }
            text.push_str(&line(&self.headings(full_heading)));
            let rule: Vec<&str> = self
                .left(section)
                .iter()
                .map(|left| if *left { "---" } else { "---:" })
                .collect();
            let _ = writeln!(text, "| {} |", rule.join(" | "));
            for (labels, entries) in &section.rows {
                text.push_str(&line(&self.line(labels, entries)));
            }
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "- {}", note.replace('*', "\\*"));
        }
        text
    }

    fn csv(&self) -> String {
        let mut text = String::new();
        let mut line = |words: Vec<String>| {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let _ = writeln!(text, "{}", words.join(","));
        };
        let columns = self.columns.iter().map(full_heading);
        line(
            self.section_labels
                .iter()
                .chain(&self.labels)
                .cloned()
                .chain(columns)
                .collect(),
        );
        for section in &self.sections {
            for (labels, entries) in &section.rows {
                line(
                    section
                        .levels
                        .iter()
                        .chain(labels)
                        .cloned()
                        .chain(entries.iter().map(Entry::plain))
                        .collect(),
                );
            }
        }
        text
    }
}

fn full_heading(column: &Column) -> String {
    if column.level.is_empty() {
        column.heading.clone()
    } else {
        format!("{} {}", column.level, column.heading)
    }
}

impl Entry {
    /// With its marks.
    fn shown(&self) -> String {
        match self {
            Self::Number { marks, .. } => format!("{}{marks}", self.plain()),
            Self::Word(word) => word.clone(),
        }
    }

    /// The number alone.
    fn plain(&self) -> String {
        match self {
            Self::Number {
                value,
                decimals,
                signed: true,
                ..
            } => format!("{value:+.decimals$}"),
            Self::Number { value, decimals, .. } => format!("{value:.decimals$}"),
            Self::Word(word) => word.clone(),
        }
    }
}

fn aligned(lines: &[Vec<String>], left: &[bool]) -> String {
    let widths: Vec<usize> = (0..left.len())
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for line in lines {
        let mut words = String::from("  ");
        for ((word, width), left) in line.iter().zip(&widths).zip(left) {
            let padding = " ".repeat(width - word.chars().count());
            if *left {
                let _ = write!(words, "{word}{padding}  ");
            } else {
                let _ = write!(words, "{padding}{word}  ");
            }
        }
        let _ = writeln!(text, "{}", words.trim_end());
    }
    text
}
