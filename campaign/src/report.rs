//! A campaign for people: what is planned, how far it is, what was found; as text for a terminal, as comma-separated
//! values for a spreadsheet. It shows what the status and the runs say and computes nothing but units.

mod csv;
pub mod layout;
mod plan;
mod table;
#[cfg(test)]
mod tests;
mod units;

use std::fmt::Write as _;

use crds::campaign::{Answer, BenchmarkCampaign, BenchmarkCampaignStatus, Verdict};
use kube::ResourceExt as _;

pub use csv::runs as runs_csv;
pub use plan::plan;

use crate::campaign_planner::percent;
use table::Table;
use units::Unit;

/// Where a campaign is, in one line: `Running: 12 of 38, 1 invalid, 7m left: block 3 of 6: audit-all, 8 threads`.
pub fn line(campaign: &BenchmarkCampaign) -> String {
    let status = campaign.status.clone().unwrap_or_default();
    let mut line = format!("{:?}", status.state);
    if let Some(progress) = &status.progress {
        let _ = write!(line, ": {} of {}", progress.done, progress.total);
        if progress.invalid > 0 {
            let _ = write!(line, ", {} invalid", progress.invalid);
        }
        if let (Some(left), Some(1..)) = (&progress.time_left, progress.seconds_left) {
            let _ = write!(line, ", {left} left");
        }
        if let Some(current) = &progress.current {
            let _ = write!(line, ": {current}");
        }
    } else if let Some(message) = message(&status) {
        let _ = write!(line, ": {message}");
    }
    line
}

fn message(status: &BenchmarkCampaignStatus) -> Option<&str> {
    let ready = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")?;
    (!ready.message.is_empty()).then_some(ready.message.as_str())
}

/// The whole report: state, answers as tables with their sentences, criteria, cells, invalid runs.
pub fn text(campaign: &BenchmarkCampaign) -> String {
    let status = campaign.status.clone().unwrap_or_default();
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", campaign.name_any(), line(campaign));
    if status.iteration > 0 {
        let _ = writeln!(text, "iteration {}", status.iteration);
    }
    for answer in &status.answers {
        text.push('\n');
        text.push_str(&one(answer));
    }
    if status.answers_omitted > 0 {
        let _ = writeln!(
            text,
            "\n{} more answers are not in the status.",
            status.answers_omitted
        );
    }
    for criterion in &status.acceptance {
        let _ = writeln!(text, "\nAccepted {}: {}", criterion.status, criterion.message);
    }
    if status.answers.is_empty() && !status.cells.is_empty() {
        text.push('\n');
        text.push_str(&cells(&status));
    }
    trouble(&status, &mut text);
    text
}

/// One answer: its thread counts and the whole, then the sentence.
pub fn one(answer: &Answer) -> String {
    let unit = Unit::of(answer.metric);
    let confidence = answer
        .confidence_ppm
        .map_or_else(String::new, |ppm| format!("{} % ", trimmed(ppm, 1e4)));
    let mut table = Table::new([
        "threads".to_owned(),
        format!("{} {}", answer.baseline, unit.name),
        format!("{} {}", answer.level, unit.name),
        "effect".to_owned(),
        "interval".to_owned(),
        String::new(),
    ]);
    for at in &answer.per_threads {
        table.row([
            at.threads.to_string(),
            unit.show(at.baseline_milli),
            unit.show(at.level_milli),
            effect(at.effect_ppm),
            interval(at.low_ppm, at.high_ppm),
            verdict(at.verdict),
        ]);
    }
    table.row([
        "all".to_owned(),
        unit.show(answer.baseline_milli),
        unit.show(answer.level_milli),
        effect(answer.effect_ppm),
        format!("{} {confidence}", interval(answer.low_ppm, answer.high_ppm))
            .trim()
            .to_owned(),
        format!("{:?}", answer.verdict),
    ]);
    let mut text = format!(
        "{}: {} against {} ({})\n",
        answer.comparison, answer.level, answer.baseline, answer.context
    );
    text.push_str(&table.render());
    text.push_str(&answer.sentence);
    text.push('\n');
    for other in &answer.exploratory {
        let unit = Unit::of(other.metric);
        let words = match other.effect_ppm {
            Some(ppm) => format!("{} {}", percent(ppm), interval(other.low_ppm, other.high_ppm)),
            None => format!("{} {}", unit.show(other.level_milli), unit.name),
        };
        let _ = writeln!(text, "  exploratory: {:?} {words}", other.metric);
    }
    text
}

/// Means of cells.
fn cells(status: &BenchmarkCampaignStatus) -> String {
    let mut table = Table::new(
        [
            "database", "size", "template", "audit", "workload", "threads", "runs", "QPS", "TPS", "p95 ms",
            "CV",
        ]
        .map(str::to_owned),
    );
    for cell in &status.cells {
        let of = &cell.cell;
        table.row([
            of.database.clone(),
            of.instance_size.clone(),
            of.parameter_template.clone(),
            of.audit_setting.clone(),
            of.workload.clone(),
            of.threads.to_string(),
            cell.runs.to_string(),
            units::thousandths(cell.qps_milli),
            units::thousandths(cell.tps_milli),
            units::milliseconds(cell.latency_p95_micros),
            cell.qps_cv_ppm
                .map_or_else(|| "-".to_owned(), |ppm| format!("{:.1}%", ppm as f64 / 1e4)),
        ]);
    }
    let mut text = table.render();
    if status.cells_omitted > 0 {
        let _ = writeln!(text, "{} more cells are in the runs.", status.cells_omitted);
    }
    text
}

/// Invalid runs and blocks that were repeated or lost.
fn trouble(status: &BenchmarkCampaignStatus, text: &mut String) {
    if !status.invalid.is_empty() {
        let reasons: Vec<String> = status
            .invalid
            .iter()
            .map(|one| format!("{} {}", one.count, one.reason))
            .collect();
        let _ = writeln!(text, "\ninvalid runs: {}", reasons.join(", "));
    }
    for block in &status.blocks {
        let why = block.reasons.first().map_or("", |found| found.message.as_str());
        let _ = writeln!(
            text,
            "  block {} of {}: {:?} after {} attempts: {why}",
            block.block, block.comparison, block.outcome, block.attempts
        );
    }
    if status.blocks_omitted > 0 {
        let _ = writeln!(text, "  and {} more blocks", status.blocks_omitted);
    }
}

fn effect(ppm: Option<i64>) -> String {
    ppm.map_or_else(|| "-".to_owned(), percent)
}

fn interval(low: Option<i64>, high: Option<i64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("[{}, {}]", percent(low), percent(high)),
        _ => "-".to_owned(),
    }
}

/// A thread count has a verdict only if the primary effect is proved.
fn verdict(verdict: Verdict) -> String {
    if verdict == Verdict::Descriptive {
        String::new()
    } else {
        format!("{verdict:?}")
    }
}

fn trimmed(value: i64, divisor: f64) -> String {
    let text = format!("{:.2}", value as f64 / divisor);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
