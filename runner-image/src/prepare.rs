//! `runner prepare`: makes a workload's data. The tool's word is not taken (a parallel prepare of sysbench exits 0 when
//! it failed): its output is read and the rows are counted before the marker says that the data is there.
//! What is half made is dropped by the next start, because the schema is made again before anything is put into it.

use crds::runner::{PrepareOrder, RunOutcome, RunReport};
use database::{Claim, DatabaseError, Databases, Login};

use crate::load::{self, Site};
use crate::parse::result::Reason;
use crate::parse::{self, Capture, Command, ToolResult};
use crate::process::{self, Finished};
use crate::report;
use crate::run::{Told, tail};
use crate::stop::Stop;

/// Carries an order out; failures are part of what is told.
pub async fn prepare(order: &PrepareOrder, login: &Login, site: &Site<'_>, stop: &Stop) -> Told {
    let mut told = match prepared(order, login, site, stop).await {
        Ok(report) | Err(report) => Told {
            report,
            ..Told::default()
        },
    };
    told.report.run_uid.clone_from(&order.run_uid);
    told.report.epoch = order.epoch;
    told
}

fn ended(outcome: RunOutcome, message: impl Into<String>) -> RunReport {
    RunReport {
        outcome,
        message: message.into(),
        ..RunReport::default()
    }
}

async fn prepared(
    order: &PrepareOrder,
    login: &Login,
    site: &Site<'_>,
    stop: &Stop,
) -> Result<RunReport, RunReport> {
    let failed = |error: &dyn std::fmt::Display| ended(RunOutcome::Failed, error.to_string());
    let unavailable = |error: DatabaseError| ended(RunOutcome::DatabaseFailed, error.to_string());
    let generator = load::generator(order.workload.type_).map_err(|error| failed(&error))?;
    let tool =
        parse::tool(generator.tool).ok_or_else(|| failed(&format!("{} has no parser", generator.tool)))?;
    let invocation = (generator.prepare)(order, site).map_err(|error| failed(&error))?;
    let expected = (generator.tables)(order).map_err(|error| failed(&error))?;

    match Databases
        .begin_dataset(login, &order.run_uid, order.epoch)
        .await
        .map_err(unavailable)?
    {
        Claim::Claimed => {}
        Claim::NotProved => return Err(ended(RunOutcome::Failed, "a claim to measure makes no data")),
        Claim::AlreadyStarted => {
            return Err(ended(
                RunOutcome::AlreadyStarted,
                "this run had begun to measure: its data was left alone",
            ));
        }
        Claim::Fenced { holder } => {
            return Err(ended(
                RunOutcome::Fenced,
                format!("the fence row belongs to run {holder:?}"),
            ));
        }
    }
    tracing::info!(
        program = invocation.program,
        arguments = invocation.arguments.join(" "),
        "prepare begins"
    );
    let finished = process::run(&invocation, None, stop.requested())
        .await
        .map_err(|error| failed(&error))?;
    let result = (tool.parse)(&Capture {
        stdout: &finished.stdout,
        stderr: &finished.stderr,
        exit_code: finished.exit_code,
        command: Command::Prepare,
    });
    let with_tool = |report| with_tool(report, &result, &finished);
    if finished.interrupted {
        return Err(with_tool(ended(
            RunOutcome::Interrupted,
            "told to stop while the data was made",
        )));
    }
    if !is_done(&result, !expected.is_empty()) {
        eprintln!("{}{}", tail(&finished.stdout), tail(&finished.stderr));
        return Err(with_tool(ended(RunOutcome::ToolFailed, report::refusal(&result))));
    }
    let tables: Vec<String> = expected.iter().map(|(table, _)| table.clone()).collect();
    let counts = Databases.row_counts(login, &tables).await;
    let counts = counts.map_err(|error| with_tool(ended(RunOutcome::DatabaseFailed, error.to_string())))?;
    if let Some(message) = wrong_count(&expected, &counts) {
        return Err(with_tool(ended(
            RunOutcome::ToolFailed,
            format!("{} reported success, but {message}", result.tool),
        )));
    }
    let dataset = Databases
        .finish_dataset(
            login,
            (&order.run_uid, order.epoch),
            &order.dataset_hash,
            &tables,
            order.rows_per_table,
        )
        .await;
    let dataset = dataset.map_err(|error| with_tool(ended(RunOutcome::DatabaseFailed, error.to_string())))?;
    let Some(dataset) = dataset else {
        let message = "another run took the fence row while the data was made";
        return Err(with_tool(ended(RunOutcome::Fenced, message)));
    };
    let mut report = with_tool(ended(RunOutcome::Completed, String::new()));
    report.dataset = Some(dataset);
    Ok(report)
}

/// A script of the workload's own may name its tables as it likes and print what it likes: then only exit code and
/// messages count.
fn is_done(result: &ToolResult, tables_known: bool) -> bool {
    result.acceptable || (!tables_known && result.reasons == [Reason::IncompleteTables])
}

fn wrong_count(expected: &[(String, i64)], counts: &[i64]) -> Option<String> {
    if expected.len() != counts.len() {
        return Some(format!(
            "{} of {} tables could be counted",
            counts.len(),
            expected.len()
        ));
    }
    let wrong = |((table, rows), count): (&(String, i64), &i64)| {
        (rows != count).then(|| format!("{table} has {count} rows, wanted {rows}"))
    };
    expected.iter().zip(counts).find_map(wrong)
}

fn with_tool(mut report: RunReport, result: &ToolResult, finished: &Finished) -> RunReport {
    report.client_version = result
        .version
        .as_ref()
        .map(|version| format!("{} {version}", result.tool));
    report.load_started_millis = Some(finished.started_millis);
    report.load_ended_millis = Some(finished.ended_millis);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(stdout: &str, exit_code: i32) -> ToolResult {
        parse::sysbench::parse(&Capture {
            stdout,
            stderr: "",
            exit_code,
            command: Command::Prepare,
        })
    }

    #[test]
    fn only_an_unknown_script_may_print_what_it_likes() {
        let silent = "sysbench 1.0.20 (using x)\n\nmade everything\n";
        assert!(is_done(&result(silent, 0), false) && !is_done(&result(silent, 0), true));
        assert!(!is_done(&result(&format!("{silent}FATAL: no\n"), 0), false));
        assert!(!is_done(&result(silent, 1), false));
    }

    #[test]
    fn a_table_with_other_rows_is_named() {
        let expected = [("sbtest1".to_owned(), 10), ("sbtest2".to_owned(), 10)];
        assert_eq!(wrong_count(&expected, &[10, 10]), None);
        assert_eq!(
            wrong_count(&expected, &[10, 9]).as_deref(),
            Some("sbtest2 has 9 rows, wanted 10")
        );
        assert!(wrong_count(&expected, &[10]).is_some());
    }
}
