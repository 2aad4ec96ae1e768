//! What a plan will cost before anything runs: prepared statements, connections, start of threads, disk, memory, audit
//! log, time. A cell that cannot end well is refused here, with the numbers and what to do. It estimates; it measures
//! nothing.

pub mod audit_log;
pub mod dataset;
pub(crate) mod engines;
mod memory;
pub mod pgbench;
pub mod statements;
#[cfg(test)]
mod tests;
pub mod time;

use std::collections::{BTreeMap, BTreeSet};

use crds::parameter::ParameterValue;
use crds::quantity;

use crate::blocks::Plan;
use crate::matrix::{Levels, Matrix, Problem, Row, in_force};

/// Connections beside those of the load: the operator's, the agent's, a person's.
pub const OTHER_CONNECTIONS: i64 = 10;
/// Prepares a second, until measured at the proof.
pub const PREPARES_PER_SECOND: f64 = 10_000.0;
/// The load generator's limit for the start of its threads is 30 s; refused above this estimate.
pub const LONGEST_START_SECONDS: f64 = 20.0;

/// What earlier runs showed; nothing before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Most statements a second of any run.
    pub statements_per_second: Option<f64>,
}

/// The budgets of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budget {
    /// What is refused.
    pub problems: Vec<Problem>,
    /// What is worth knowing.
    pub notes: Vec<String>,
    /// By instance (place in databases, place in instanceSizes).
    pub instances: BTreeMap<(usize, usize), InstanceBudget>,
    /// Rows per table, by place in workloads and in instanceSizes.
    pub rows: BTreeMap<(usize, usize), i64>,
    /// Estimated length of the campaign, seconds.
    pub estimated_seconds: i64,
    /// Bytes of audit log expected of the largest run; None without auditing.
    pub audit_log_bytes: Option<i64>,
}

/// What a managed instance is given beside what the spec says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceBudget {
    /// Buffer pool in bytes, one value for all arms; None where the configuration sets one.
    pub buffer_pool: Option<i64>,
    /// Size of a volume of its own for audit logs, bytes; None if every log lies beside the data.
    pub log_storage: Option<i64>,
}

/// Computes the budgets of a plan.
pub fn of(matrix: &Matrix<'_>, plan: &Plan, seen: &Seen) -> Budget {
    let mut budget = Budget::default();
    let mut refused = Refused::default();
    let mut noted = BTreeSet::new();
    for row in &matrix.rows {
        let levels = row.levels;
        budget
            .rows
            .entry((levels.workload, levels.size))
            .or_insert_with(|| dataset::rows_per_table(matrix, levels));
        prepared_statements(matrix, row, &mut refused);
        connections(matrix, row, &mut refused);
        start(matrix, row, &mut refused);
        table_cache(matrix, row, &mut noted);
        audit_log::check(matrix, row, seen, &mut budget.audit_log_bytes, &mut refused);
        if let Some(settings) = &matrix.workload(levels).sysbench
            && statements::per_thread(settings).is_none()
        {
            noted.insert(format!(
                "workload {}: its own script's prepared statements are not known and not budgeted",
                matrix.workload(levels).name
            ));
        }
    }
    for instance in matrix.instances() {
        let rows: Vec<&Row> = matrix
            .rows
            .iter()
            .filter(|row| row.levels.instance() == instance)
            .collect();
        let given = InstanceBudget {
            buffer_pool: memory::buffer_pool(matrix, &rows),
            log_storage: audit_log::separate_volume(matrix, &rows),
        };
        memory::check(matrix, &rows, given.buffer_pool, &mut refused);
        disk(matrix, &rows, &budget.rows, &mut refused);
        budget.instances.insert(instance, given);
    }
    budget.estimated_seconds = time::whole(matrix, plan, &budget.rows);
    time::check(matrix, plan, budget.estimated_seconds, &mut refused);
    budget.notes = noted.into_iter().collect();
    budget.problems = refused.into_problems();
    budget
}

/// Refusals of cells, gathered so that one cause is told once with all the cells that it dooms.
#[derive(Default)]
pub(crate) struct Refused {
    by_cause: Vec<(Problem, Vec<String>)>,
}

/// Cells named in one refusal; the rest are counted.
const NAMED: usize = 3;

impl Refused {
    pub(crate) fn cell(&mut self, cell: String, problem: Problem) {
        match self.by_cause.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, cells)) => cells.push(cell),
            None => self.by_cause.push((problem, vec![cell])),
        }
    }

    fn into_problems(self) -> Vec<Problem> {
        self.by_cause
            .into_iter()
            .map(|(mut problem, cells)| {
                let named = cells.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
                let more = cells.len().saturating_sub(NAMED);
                let cells = if more > 0 {
                    format!("{named}; and {more} more cells")
                } else {
                    named
                };
                problem.found = format!("{} ({cells})", problem.found);
                problem
            })
            .collect()
    }
}

/// A row in words: `mariadb-11-8, 4u16g, default, no-audit, read-only`.
pub(crate) fn named(matrix: &Matrix<'_>, levels: Levels) -> String {
    matrix.context(levels, None)
}

fn at_threads(matrix: &Matrix<'_>, row: &Row, threads: i32) -> String {
    format!("{} at {threads} threads", named(matrix, row.levels))
}

fn integer(matrix: &Matrix<'_>, levels: Levels, name: &str, default: i64) -> i64 {
    in_force(matrix, levels, name)
        .as_ref()
        .and_then(ParameterValue::as_integer)
        .unwrap_or(default)
}

/// Server-side statements that one thread of a row prepares; 0 where that is not known.
pub(crate) fn statements_of(matrix: &Matrix<'_>, levels: Levels) -> i64 {
    let settings = matrix.workload(levels).sysbench.as_ref();
    settings.and_then(statements::per_thread).unwrap_or(0)
}

fn prepared_statements(matrix: &Matrix<'_>, row: &Row, refused: &mut Refused) {
    let each = statements_of(matrix, row.levels);
    let Some((name, default)) = engines::of(matrix.database(row.levels).engine).prepared else {
        return;
    };
    let limit = integer(matrix, row.levels, name, default);
    let set = in_force(matrix, row.levels, name).is_some();
    let doomed: Vec<i32> = row
        .threads
        .iter()
        .copied()
        .filter(|&threads| each * i64::from(threads) > limit)
        .collect();
    let Some(&most) = doomed.iter().max() else { return };
    let needed = each * i64::from(most);
    let problem = Problem::new(
        "spec.parameterTemplates",
        format!("{most} threads prepare {needed} statements ({each} each)"),
        format!(
            "{name} {} {limit}, enough for {} threads",
            if set { "is" } else { "is not set and defaults to" },
            limit / each.max(1)
        ),
        format!("set {name}: {needed} or more, use preparedStatements: Disabled, or fewer tables or threads"),
    );
    refused.cell(at_threads(matrix, row, most), problem);
}

fn connections(matrix: &Matrix<'_>, row: &Row, refused: &mut Refused) {
    let name = "max_connections";
    let default = engines::of(matrix.database(row.levels).engine).connections;
    let limit = integer(matrix, row.levels, name, default);
    let set = in_force(matrix, row.levels, name).is_some();
    let Some(&most) = row.threads.iter().max() else {
        return;
    };
    let needed = i64::from(most) + OTHER_CONNECTIONS;
    if needed > limit {
        let problem = Problem::new(
            "spec.parameterTemplates",
            format!("{most} threads and {OTHER_CONNECTIONS} other connections need {needed}"),
            format!(
                "{name} {} {limit}",
                if set { "is" } else { "is not set and defaults to" }
            ),
            format!("set {name}: {needed} or more, or use fewer threads"),
        );
        refused.cell(at_threads(matrix, row, most), problem);
    }
}

fn start(matrix: &Matrix<'_>, row: &Row, refused: &mut Refused) {
    let each = statements_of(matrix, row.levels);
    let Some(&most) = row.threads.iter().max() else {
        return;
    };
    let seconds = each as f64 * f64::from(most) / PREPARES_PER_SECOND;
    if seconds > LONGEST_START_SECONDS {
        let problem = Problem::new(
            "spec.workloads",
            format!(
                "{most} threads prepare {} statements, about {seconds:.0} s at {PREPARES_PER_SECOND:.0} a second",
                each * i64::from(most)
            ),
            format!("at most {LONGEST_START_SECONDS:.0} s: sysbench gives up after 30 s"),
            "use preparedStatements: Disabled, fewer tables or threads, or a build of sysbench whose limit can be set",
        );
        refused.cell(at_threads(matrix, row, most), problem);
    }
}

fn table_cache(matrix: &Matrix<'_>, row: &Row, noted: &mut BTreeSet<String>) {
    let Some((name, default)) = engines::of(matrix.database(row.levels).engine).tables else {
        return;
    };
    let tables = matrix
        .workload(row.levels)
        .sysbench
        .as_ref()
        .map_or(0, |s| i64::from(s.tables));
    let most = row.threads.iter().max().map_or(0, |&threads| i64::from(threads));
    let cache = integer(matrix, row.levels, name, default);
    if tables * most > cache {
        noted.insert(format!(
            "workload {}: {most} threads on {tables} tables want {} open tables and {name} is {cache}: tables are opened again and again",
            matrix.workload(row.levels).name,
            tables * most
        ));
    }
}

fn disk(
    matrix: &Matrix<'_>,
    rows: &[&Row],
    rows_per_table: &BTreeMap<(usize, usize), i64>,
    refused: &mut Refused,
) {
    let need = |row: &&&Row| -> (i64, i64, i64, i64) {
        let levels = row.levels;
        let per_table = rows_per_table
            .get(&(levels.workload, levels.size))
            .copied()
            .unwrap_or(0);
        let data = dataset::bytes(matrix.workload(levels), per_table);
        let engine = engines::of(matrix.database(levels).engine);
        let redo = engine.redo_bytes(|name| in_force(matrix, levels, name));
        let log = audit_log::beside_the_data(matrix, levels);
        ((data as f64 * 1.5).ceil() as i64 + redo + log, data, redo, log)
    };
    let Some(row) = rows.iter().max_by_key(need) else {
        return;
    };
    let (needed, data, redo, log) = need(&row);
    let Some(managed) = &matrix.database(row.levels).managed else {
        return;
    };
    let size = quantity::whole(&managed.storage.size).unwrap_or(0);
    if needed > size {
        let problem = Problem::new(
            format!("spec.databases[{}].managed.storage.size", row.levels.database),
            format!(
                "{} holds {} of data: {} in all with half as much again, {} of redo log and {} of audit log",
                managed.storage.size.0,
                gibibytes(data),
                gibibytes(needed),
                gibibytes(redo),
                gibibytes(log)
            ),
            format!("at least {}", gibibytes(needed)),
            "enlarge the volume, use fewer or smaller tables, or log: {volume: Separate}",
        );
        refused.cell(named(matrix, row.levels), problem);
    }
}

/// Bytes in words: `1.5 GiB`, `96 MiB`.
pub fn gibibytes(bytes: i64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes >= 1024.0 {
        format!("{:.1} GiB", mebibytes / 1024.0)
    } else {
        format!("{mebibytes:.0} MiB")
    }
}
