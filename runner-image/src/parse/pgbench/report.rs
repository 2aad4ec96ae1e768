//! Reads pgbench's report: totals, scripts of a mix, statements of `-r`; wordings of PostgreSQL 9.6 to 19.

use super::super::decimal::{count, micros_of_millis, milli, window_micros};
use super::super::result::{Figures, Reason, Script, Statement, ToolResult};
use super::super::text::{Line, word_after};

/// What a report holds.
#[derive(Debug, Default)]
pub(super) struct Report {
    figures: Figures,
    scripts: Vec<Script>,
    statements: Vec<Statement>,
    /// Any of the report's own lines was seen.
    begun: bool,
    /// Which `tps = …` line the rate is from; it is the last of the totals' lines.
    rate: Option<Rate>,
    in_statements: bool,
}

/// What a rate divides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    /// All the time.
    WithConnecting,
    /// The time after the connections were open.
    WithoutConnecting,
}

impl Report {
    pub(super) fn of(lines: &[Line<'_>]) -> Self {
        let mut report = Self::default();
        for line in lines {
            if line.terminated || line.text.contains("tps = ") {
                report.read(line.text);
            }
        }
        report
    }

    fn read(&mut self, line: &str) {
        let text = line.trim();
        if let Some(name) = text.strip_prefix("SQL script ") {
            let name = name.split_once(": ").map_or(name, |(_, name)| name);
            self.scripts.push(Script {
                name: name.to_owned(),
                ..Script::default()
            });
            self.in_statements = false;
        } else if text.contains("statement latencies in milliseconds") {
            self.in_statements = true;
        } else if let Some(item) = text.strip_prefix("- ") {
            self.in_statements = false;
            if let Some(script) = self.scripts.last_mut() {
                read_script(script, item);
            }
        } else if self.in_statements && line.starts_with(' ') {
            self.statements
                .extend(statement(text, self.scripts.len().saturating_sub(1)));
        } else if text.starts_with("tps = ") {
            self.rate(text);
        } else {
            self.total(text);
        }
    }

    fn rate(&mut self, text: &str) {
        self.begun = true;
        // A line that was cut off within its number has no parenthesis yet.
        if !text.contains('(') {
            return;
        }
        // Before PostgreSQL 14 there are two lines; the one without the time to connect counts.
        let without = text.contains("without") || text.contains("excluding");
        if without || self.rate != Some(Rate::WithoutConnecting) {
            self.figures.tps_milli = word_after(text, "tps = ").and_then(milli);
            self.rate = Some(if without {
                Rate::WithoutConnecting
            } else {
                Rate::WithConnecting
            });
        }
    }

    fn total(&mut self, text: &str) {
        let Some((label, value)) = text.split_once(": ").or_else(|| text.split_once(" = ")) else {
            return;
        };
        let first = value.split([' ', '/']).next().unwrap_or_default();
        let figures = &mut self.figures;
        match label {
            "number of transactions actually processed" => {
                self.begun = true;
                figures.transactions = count(first);
                figures.events = figures.transactions;
            }
            "number of clients" => figures.clients = count(first),
            "number of threads" => figures.threads = count(first),
            "number of failed transactions" => figures.failed_transactions = count(first),
            "number of transactions retried" => figures.retried_transactions = count(first),
            "total number of retries" => figures.retries = count(first),
            "number of transactions skipped" => figures.skipped_transactions = count(first),
            "latency average" => figures.latency_mean_micros = micros_of_millis(first),
            "latency stddev" => figures.latency_stddev_micros = micros_of_millis(first),
            "initial connection time" | "average connection time" => {
                figures.connection_micros = micros_of_millis(first);
            }
            "transaction type" | "scaling factor" | "query mode" => self.begun = true,
            _ => {}
        }
    }

    /// Puts the figures into the result and refuses what is missing.
    pub(super) fn into_result(mut self, result: &mut ToolResult) {
        if !self.begun {
            result.refuse_because(Reason::NoReport, "no report on standard output");
            return;
        }
        match self.figures.transactions {
            Some(0) => result.refuse_because(Reason::NoEvents, "0 transactions processed"),
            Some(_) if self.figures.tps_milli.is_some() => {}
            Some(_) => {
                result.refuse_because(Reason::IncompleteReport, "the tps line is missing or no number");
            }
            None => result.refuse_because(Reason::IncompleteReport, "the number of transactions is missing"),
        }
        if self.figures.transactions.is_some()
            && self.figures.transactions != Some(0)
            && self.figures.latency_mean_micros.is_none()
        {
            result.refuse_because(
                Reason::IncompleteReport,
                "the mean latency is missing or no number",
            );
        }
        self.figures.window_micros = self
            .figures
            .transactions
            .zip(self.figures.tps_milli)
            .and_then(|(done, rate)| window_micros(done, rate));
        result.figures = self.figures;
        result.scripts = self.scripts;
        result.statements = self.statements;
    }
}

fn read_script(script: &mut Script, item: &str) {
    if let Some(weight) = item.strip_prefix("weight: ") {
        script.weight = weight.split_whitespace().next().and_then(count);
    } else if let Some((transactions, _)) = item.split_once(" transactions (") {
        script.transactions = count(transactions);
    } else if let Some(transactions) = item.strip_prefix("number of transactions actually processed: ") {
        script.transactions = transactions.split_whitespace().next().and_then(count);
    } else if let Some(failed) = item.strip_prefix("number of failed transactions: ") {
        script.failed_transactions = failed.split_whitespace().next().and_then(count);
    } else if let Some(mean) = item.strip_prefix("latency average = ") {
        script.latency_mean_micros = mean.split_whitespace().next().and_then(micros_of_millis);
    } else if let Some(deviation) = item.strip_prefix("latency stddev = ") {
        script.latency_stddev_micros = deviation.split_whitespace().next().and_then(micros_of_millis);
    }
    if let Some(rate) = word_after(item, "tps = ") {
        script.tps_milli = milli(rate.trim_end_matches(')'));
    }
}

/// `0.228           6          93  UPDATE …`: mean latency, failures, retries (with `--max-tries`), first line.
fn statement(text: &str, script: usize) -> Option<Statement> {
    let (latency, mut rest) = text.split_once(char::is_whitespace)?;
    let mut counts = Vec::new();
    while counts.len() < 2 {
        let (word, behind) = rest.trim_start().split_once(char::is_whitespace)?;
        let Some(number) = count(word) else { break };
        counts.push(number);
        rest = behind;
    }
    Some(Statement {
        script,
        latency_mean_micros: micros_of_millis(latency)?,
        failures: counts.first().copied(),
        retries: counts.get(1).copied(),
        text: rest.trim().to_owned(),
    })
}
