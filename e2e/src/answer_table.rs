//! Prints a campaign's answers: a table per answer, one row per thread count, then the sentence.
//! Shows what the status says and computes nothing but units.

use std::fmt::Write;

use crate::view::{Answer, Campaign};

/// All answers of a campaign as text.
pub fn render(campaign: &Campaign) -> String {
    let mut text = String::new();
    for answer in &campaign.status.answers {
        let _ = writeln!(
            text,
            "{}: {} against {} ({})",
            answer.comparison, answer.level, answer.baseline, answer.context
        );
        text.push_str(&table(answer));
        let _ = writeln!(text, "{}\n", answer.sentence);
    }
    let progress = &campaign.status.progress;
    let _ = write!(
        text,
        "{} of {} runs measured, {} invalid",
        progress.done, progress.total, progress.invalid
    );
    let reasons: Vec<String> = campaign
        .status
        .invalid
        .iter()
        .map(|reason| format!("{} {}", reason.count, reason.reason))
        .collect();
    if !reasons.is_empty() {
        let _ = write!(text, " ({})", reasons.join(", "));
    }
    text.push('\n');
    text
}

fn table(answer: &Answer) -> String {
    let unit = Unit::of(&answer.metric);
    let confidence = answer
        .confidence_ppm
        .map_or_else(String::new, |ppm| format!("{} % ", decimal(ppm, 10_000, 0)));
    let mut rows = vec![[
        "threads".to_owned(),
        format!("{} {}", answer.baseline, unit.name),
        format!("{} {}", answer.level, unit.name),
        "effect".to_owned(),
        format!("{confidence}interval"),
        "verdict".to_owned(),
    ]];
    for at in &answer.per_threads {
        rows.push([
            at.threads.to_string(),
            unit.show(at.baseline_milli),
            unit.show(at.level_milli),
            percent(at.effect_ppm),
            interval(at.low_ppm, at.high_ppm),
            at.verdict.clone(),
        ]);
    }
    rows.push([
        "all".to_owned(),
        unit.show(answer.baseline_milli),
        unit.show(answer.level_milli),
        percent(answer.effect_ppm),
        interval(answer.low_ppm, answer.high_ppm),
        answer.verdict.clone(),
    ]);
    aligned(&rows)
}

/// Columns set right, the last one left.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| {
                let fill = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                if column + 1 == N {
                    cell.clone()
                } else {
                    format!("{fill}{cell}")
                }
            })
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
    text
}

struct Unit {
    name: &'static str,
    /// Stored units in one shown unit.
    per_shown: i64,
}

impl Unit {
    fn of(metric: &str) -> Self {
        let (name, per_shown) = match metric {
            "Qps" => ("queries/s", 1000),
            "Tps" => ("transactions/s", 1000),
            "Transactions" => ("transactions", 1000),
            "LatencyMean" | "LatencyP95" => ("ms", 1000),
            "CpuPerStatement" => ("CPU µs/statement", 1_000_000),
            "LogBytes" => ("log bytes/1,000 statements", 1000),
            _ => ("", 1000),
        };
        Self { name, per_shown }
    }

    fn show(&self, stored: Option<i64>) -> String {
        stored.map_or_else(|| "-".into(), |stored| decimal(stored, self.per_shown, 1))
    }
}

fn percent(ppm: Option<i64>) -> String {
    ppm.map_or_else(
        || "-".into(),
        |ppm| format!("{}{} %", if ppm > 0 { "+" } else { "" }, decimal(ppm, 10_000, 1)),
    )
}

fn interval(low: Option<i64>, high: Option<i64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{} to {}", percent(Some(low)), percent(Some(high))),
        _ => "-".into(),
    }
}

/// An integer in other units with some decimals, thousands set apart.
fn decimal(value: i64, per_unit: i64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value as f64 / per_unit as f64);
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_rounded_once() {
        assert_eq!(decimal(1_234_567_890, 1000, 1), "1,234,567.9");
        assert_eq!(decimal(-999_950, 1000, 1), "-1,000.0");
        assert_eq!(decimal(950_000, 10_000, 0), "95");
        assert_eq!(percent(Some(-109_000)), "-10.9 %");
        assert_eq!(percent(Some(4_000)), "+0.4 %");
        assert_eq!(interval(Some(-1), None), "-");
    }

    #[test]
    fn an_answer_becomes_a_table_and_its_sentence() {
        let campaign: Campaign = serde_json::from_value(serde_json::json!({"status": {
            "progress": {"done": 78, "total": 78, "invalid": 2},
            "invalid": [{"reason": "Restarted", "count": 2}],
            "answers": [{
                "comparison": "audit", "level": "audit-all", "baseline": "no-audit", "context": "mariadb, 1c1g",
                "metric": "Qps", "verdict": "Worse", "effectPpm": -109_000, "lowPpm": -121_000, "highPpm": -97_000,
                "confidencePpm": 950_000, "baselineMilli": 12_345_600, "levelMilli": 11_000_000,
                "sentence": "audit-all costs 10.9 % of queries/s.",
                "perThreads": [{"threads": 4, "verdict": "Worse", "effectPpm": -100_000, "lowPpm": -110_000,
                                "highPpm": -90_000, "baselineMilli": 10_000_000, "levelMilli": 9_000_000}],
            }],
        }}))
        .unwrap();
        let expected = "\
audit: audit-all against no-audit (mariadb, 1c1g)
  threads  no-audit queries/s  audit-all queries/s   effect      95 % interval  verdict
        4            10,000.0              9,000.0  -10.0 %  -11.0 % to -9.0 %  Worse
      all            12,345.6             11,000.0  -10.9 %  -12.1 % to -9.7 %  Worse
audit-all costs 10.9 % of queries/s.

78 of 78 runs measured, 2 invalid (2 Restarted)
";
        assert_eq!(render(&campaign), expected);
    }
}
