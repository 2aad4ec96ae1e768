//! How much an audit log grows in a run, against the limit of its volume.

use std::time::Duration;

use crds::audit::{AuditSetting, AuditState, AuditType, LogVolume};
use crds::load::LoadType;
use crds::quantity;

use super::{Refused, Seen, at_threads, gibibytes, pgbench, statements};
use crate::matrix::{Matrix, Problem, Row};

/// Bytes of log for each statement: `server_audit` with every event, measured 151 to 160.5.
pub const BYTES_PER_STATEMENT: f64 = 160.0;
/// PostgreSQL writes a statement and, in a record of their own, its parameters: 187 measured of sysbench's.
pub const LOG_STATEMENT_BYTES_PER_STATEMENT: f64 = 240.0;
/// The slow log writes a header of several lines for each statement, the JSON and XML records of the audit plugins name every
/// field.
pub const LONG_RECORD_BYTES_PER_STATEMENT: f64 = 450.0;
/// Statements a second and CPU, assumed until a run has shown its own rate: study 0's read-only loads reach it.
pub const ASSUMED_STATEMENTS_PER_CPU: f64 = 16_000.0;
/// The rate of a later run may be above that of the fastest seen.
const ABOVE_SEEN: f64 = 1.25;
/// Limit of a log in a run if none is given.
pub const DEFAULT_LIMIT: i64 = 10 << 30;

fn records(audit: &AuditSetting) -> bool {
    audit.type_ != AuditType::None && audit.state == AuditState::On
}

fn limit(audit: &AuditSetting) -> i64 {
    audit
        .log
        .as_ref()
        .and_then(|log| log.limit.as_ref())
        .and_then(quantity::whole)
        .unwrap_or(DEFAULT_LIMIT)
}

fn separate(audit: &AuditSetting) -> bool {
    audit
        .log
        .as_ref()
        .is_none_or(|log| log.volume == LogVolume::Separate)
}

/// Bytes of a volume of its own: the largest log beside a tenth for its neighbours. None if no arm needs one.
pub(super) fn separate_volume(matrix: &Matrix<'_>, rows: &[&Row]) -> Option<i64> {
    rows.iter()
        .map(|row| matrix.audit(row.levels))
        .filter(|audit| records(audit) && separate(audit))
        .map(|audit| limit(audit) / 10 * 11)
        .max()
}

/// Bytes that the log may take of the data volume.
pub(super) fn beside_the_data(matrix: &Matrix<'_>, levels: crate::matrix::Levels) -> i64 {
    let audit = matrix.audit(levels);
    if records(audit) && !separate(audit) {
        limit(audit)
    } else {
        0
    }
}

pub(super) fn check(
    matrix: &Matrix<'_>,
    row: &Row,
    seen: &Seen,
    largest: &mut Option<i64>,
    refused: &mut Refused,
) {
    let audit = matrix.audit(row.levels);
    if !records(audit) {
        return;
    }
    let run = &matrix.spec.run;
    let seconds = (Duration::from(run.warmup) + Duration::from(run.duration)).as_secs_f64();
    let (rate, source) = rate(matrix, row, seen);
    let per_statement = match audit.type_ {
        AuditType::ServerAudit | AuditType::GeneralLog | AuditType::PgAudit => BYTES_PER_STATEMENT,
        AuditType::LogStatement => LOG_STATEMENT_BYTES_PER_STATEMENT,
        _ => LONG_RECORD_BYTES_PER_STATEMENT,
    };
    let bytes = (rate * seconds * per_statement) as i64;
    *largest = Some(largest.unwrap_or(0).max(bytes));
    let limit = limit(audit);
    if bytes > limit {
        let threads = row.threads.iter().copied().max().unwrap_or(0);
        let problem = Problem::new(
            format!("spec.auditSettings[{}].log.limit", row.levels.audit),
            format!(
                "a run of {seconds:.0} s writes about {} of log at {rate:.0} statements a second ({source}) and {per_statement:.0} bytes each",
                gibibytes(bytes)
            ),
            format!("the limit is {}", gibibytes(limit)),
            format!(
                "raise log.limit to {} or more, shorten run.duration, or use load: {{type: Rate}}",
                gibibytes(bytes)
            ),
        );
        refused.cell(at_threads(matrix, row, threads), problem);
    }
}

/// Statements a second: the rate asked for, else what was seen, else an assumption by CPU.
fn rate(matrix: &Matrix<'_>, row: &Row, seen: &Seen) -> (f64, &'static str) {
    let load = &matrix.spec.run.load;
    if let (LoadType::Rate, Some(rate)) = (load.type_, load.rate) {
        let workload = matrix.workload(row.levels);
        let queries = match (&workload.sysbench, &workload.pgbench) {
            (Some(settings), _) => statements::queries_per_transaction(settings),
            (None, Some(settings)) => pgbench::queries_per_transaction(settings),
            (None, None) => None,
        };
        let queries = queries.unwrap_or(20);
        return (rate as f64 * queries as f64, "the rate asked for");
    }
    if let Some(seen) = seen.statements_per_second {
        return (seen * ABOVE_SEEN, "a quarter above the fastest run seen");
    }
    let cpus = quantity::millis(&matrix.size(row.levels).cpu).unwrap_or(1000) as f64 / 1000.0;
    (cpus * ASSUMED_STATEMENTS_PER_CPU, "assumed from its CPUs")
}
