//! The figures beside their targets, the shell loop and what others reach, as a table for people. Pure. What was not
//! measured in this run says so in its column's head.

use std::fmt::Write as _;

use serde::Serialize;

use super::Report;
use super::gaps::DeadTime;
use super::metrics::RequestCount;
use super::process::Memory;

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// What it is.
    pub figure: String,
    /// Measured now, in the unit.
    pub ours: Option<f64>,
    /// At most this.
    pub target: Option<f64>,
    /// Unit of both.
    pub unit: &'static str,
    /// The shell loop, measured now.
    pub shell_loop: Option<f64>,
    /// From domain.md and the design: not measured here.
    pub reference: &'static str,
}

impl Figure {
    /// Whether the target is met; `None` without a figure or target.
    pub fn met(&self) -> Option<bool> {
        Some(self.ours? <= self.target?)
    }
}

fn seconds(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The lines of the table.
pub fn figures(report: &Report) -> Vec<Figure> {
    let between = report.between.as_ref();
    let figure = |figure: &str, ours, target, unit, reference| Figure {
        figure: figure.into(),
        ours,
        target,
        unit,
        shell_loop: None,
        reference,
    };
    let stored_runs = report.stored.as_ref().map_or(10_000, |stored| stored.runs);
    vec![
        Figure {
            shell_loop: report.shell_loop.as_ref().map(|l| seconds(l.median_millis)),
            ..figure(
                "dead time with restart, settings, settling, proof",
                between.and_then(|b| Some(seconds(b.with_restart.as_ref()?.median_millis))),
                Some(8.0),
                "s",
                "restart + `sleep 30` 31.2 s; server restarted by hand + predicates 1.4 s",
            )
        },
        figure(
            "dead time between runs of one visit",
            between.and_then(|b| Some(seconds(b.within_visit.as_ref()?.median_millis))),
            Some(2.0),
            "s",
            "acting on the container's end 1.0 s, on Job Complete 3.0 s",
        ),
        figure(
            "API requests a run",
            between.map(|b| b.requests_per_run_milli as f64 / 1000.0),
            Some(12.0),
            "",
            "other benchmark operators 10 to 41",
        ),
        figure(
            "operator CPU a second of a measured window",
            report.quiet.as_ref().map(|q| q.cpu_micros_per_second / 1000.0),
            Some(0.2),
            "ms",
            "other benchmark operators 1.1 to 4.0 ms",
        ),
        figure(
            "operator memory, idle",
            report.idle.map(|m| megabytes(m.resident_bytes)),
            Some(12.0),
            "MB",
            "other benchmark operators 35 to 57 MB",
        ),
        figure(
            &format!("operator memory, {stored_runs} finished runs"),
            report.stored.as_ref().map(|s| megabytes(s.memory.resident_bytes)),
            Some(30.0),
            "MB",
            "whole objects in a cache: 175 MiB at 10,000",
        ),
    ]
}

/// The whole output for people.
pub fn render(report: &Report) -> String {
    let rows: Vec<[String; 6]> = figures(report)
        .into_iter()
        .map(|f| {
            let value = |value: Option<f64>| {
                value.map_or_else(
                    || "-".into(),
                    |v| format!("{} {}", decimals(v), f.unit).trim_end().to_owned(),
                )
            };
            let met = match f.met() {
                None => "",
                Some(true) => "met",
                Some(false) => "MISSED",
            };
            let target = f
                .target
                .map_or_else(String::new, |t| format!("at most {t} {}", f.unit));
            [
                f.figure.clone(),
                value(f.ours),
                target.trim_end().to_owned(),
                met.to_owned(),
                value(f.shell_loop),
                f.reference.to_owned(),
            ]
        })
        .collect();
    let mut text = aligned(
        &[
            "figure",
            "ours",
            "target",
            "",
            "shell loop",
            "reference, not measured here",
        ],
        &rows,
    );
    if let Some(between) = &report.between {
        if between.invalid_runs > 0 {
            let _ = writeln!(
                text,
                "\n{} of {} runs did not count (`kubectl get br` says why): this machine was not quiet, and slower than it can be.",
                between.invalid_runs, between.runs
            );
        }
        let kinds = [
            ("Where the dead time with a restart goes", &between.with_restart),
            ("Where the dead time within a visit goes", &between.within_visit),
        ];
        for (title, dead_time) in kinds {
            if let Some(dead_time) = dead_time {
                steps(&mut text, title, dead_time, STEP_REFERENCES);
            }
        }
        requests(
            &mut text,
            &format!(
                "API requests of {} runs (* leases, events and watches are not counted)",
                between.runs
            ),
            &between.requests,
        );
    }
    if let Some(quiet) = &report.quiet {
        requests(
            &mut text,
            &format!(
                "API requests in {:.0} s of a measured window",
                quiet.seconds.round()
            ),
            &quiet.requests,
        );
    }
    memories(&mut text, report);
    text
}

/// What single steps cost at least, from domain.md.
const STEP_REFERENCES: &[(&str, &str)] = &[
    ("end of load to the kubelet's report", "1.5 s"),
    (
        "container to the start of load",
        "Job created to process running 0.5 s",
    ),
];

fn steps(text: &mut String, title: &str, dead_time: &DeadTime, references: &[(&str, &str)]) {
    let _ = writeln!(
        text,
        "\n{title}: {} gaps, {} to {} s, median {} s",
        dead_time.gaps,
        decimals(seconds(dead_time.shortest_millis)),
        decimals(seconds(dead_time.longest_millis)),
        decimals(seconds(dead_time.median_millis)),
    );
    let rows: Vec<[String; 3]> = dead_time
        .steps
        .iter()
        .map(|step| {
            let reference = references
                .iter()
                .find(|(name, _)| *name == step.step)
                .map_or("", |(_, reference)| reference);
            [
                step.step.to_owned(),
                format!("{:.3} s", seconds(step.millis)),
                reference.to_owned(),
            ]
        })
        .collect();
    text.push_str(&aligned(
        &["step", "median", "reference, not measured here"],
        &rows,
    ));
}

fn requests(text: &mut String, title: &str, counts: &[RequestCount]) {
    let _ = writeln!(text, "\n{title}");
    let rows: Vec<[String; 3]> = counts
        .iter()
        .map(|count| {
            let mark = if count.counted { "" } else { " *" };
            [
                count.verb.clone(),
                format!("{}{mark}", count.resource),
                count.count.to_string(),
            ]
        })
        .collect();
    text.push_str(&aligned(&["verb", "resource", "number"], &rows));
}

fn memories(text: &mut String, report: &Report) {
    let all = [
        ("idle, just started", report.idle),
        (
            "after the small campaign",
            report.between.as_ref().map(|b| b.memory),
        ),
        ("beside stored runs", report.stored.as_ref().map(|s| s.memory)),
    ];
    let rows: Vec<[String; 4]> = all
        .into_iter()
        .filter_map(|(when, memory)| {
            let Memory {
                resident_bytes,
                anonymous_bytes,
                peak_bytes,
            } = memory?;
            let megabytes = |bytes| format!("{:.1} MB", megabytes(bytes));
            Some([
                when.to_owned(),
                megabytes(resident_bytes),
                megabytes(anonymous_bytes),
                megabytes(peak_bytes),
            ])
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    text.push_str("\nThe operator's memory\n");
    text.push_str(&aligned(&["when", "resident", "of it no file's", "peak"], &rows));
    if let Some(stored) = &report.stored {
        let _ = writeln!(
            text,
            "({} runs of {} bytes as JSON)",
            stored.runs, stored.run_bytes
        );
    }
}

/// Three significant digits or so.
fn decimals(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{v:.3}"),
        v if v < 10.0 => format!("{v:.2}"),
        v => format!("{v:.1}"),
    }
}

fn aligned<const N: usize>(head: &[&str; N], rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .chain([head[column].len()])
            .max()
            .unwrap_or(0)
    });
    let mut text = String::new();
    let mut line = |cells: [&str; N]| {
        let mut row = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(row, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{}", row.trim_end());
    };
    line(*head);
    for row in rows {
        line(std::array::from_fn(|column| row[column].as_str()));
    }
    text
}

#[cfg(test)]
mod tests;
