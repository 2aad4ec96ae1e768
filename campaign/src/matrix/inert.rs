//! Parameters that cannot matter in a cell. They are still set and read back; a difference between two arms that differ in
//! them only is noise, and the plan says so. Nothing is claimed where a default of the server decides and is not known.

use crds::parameter::ParameterValue;
use crds::target::Engine;

use super::parameters::{in_force, is_off};
use super::{Levels, Matrix};
use crate::budget::{pgbench, statements};

/// Parameters of the MySQL family that matter to commits and writes only.
const WRITES: &[&str] = &[
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_log_at_timeout",
    "innodb_doublewrite",
    "innodb_redo_log_capacity",
    "innodb_log_file_size",
    "innodb_change_buffering",
    "innodb_autoinc_lock_mode",
];
/// Parameters of PostgreSQL that matter to commits and writes only.
const WRITES_POSTGRESQL: &[&str] = &[
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "wal_sync_method",
    "wal_compression",
    "wal_buffers",
    "wal_writer_delay",
    "commit_delay",
    "commit_siblings",
    "max_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
];
/// Parameters of the binary log that do not have its prefix.
const BINARY_LOG: &[&str] = &[
    "sync_binlog",
    "expire_logs_days",
    "max_binlog_size",
    "max_binlog_cache_size",
];

/// Why a parameter cannot matter in the cells of a row: the cells, in the words of the axes it depends on, and why.
pub(super) fn why(matrix: &Matrix<'_>, levels: Levels, name: &str) -> Option<String> {
    let row = Row { matrix, levels };
    let rules: &[fn(&Row<'_, '_>, &str) -> Option<String>] = match matrix.database(levels).engine {
        Engine::PostgreSQL => &[postgresql],
        _ => &[binary_log, writes, query_cache, prepared, switched_off],
    };
    rules.iter().find_map(|rule| rule(&row, name))
}

struct Row<'m, 's> {
    matrix: &'m Matrix<'s>,
    levels: Levels,
}

impl Row<'_, '_> {
    /// The value in force, as far as the spec says it.
    fn said(&self, name: &str) -> Option<ParameterValue> {
        in_force(self.matrix, self.levels, name)
    }

    /// Whether a switch is off; `default` where the spec does not say and the server is ours, None where it is not.
    fn off(&self, name: &str, off_by_default: bool) -> Option<bool> {
        match self.said(name) {
            Some(value) => Some(is_off(&value)),
            None => self.matrix.managed(self.levels).then_some(off_by_default),
        }
    }

    fn database(&self) -> &str {
        &self.matrix.database(self.levels).name
    }

    fn workload(&self) -> &str {
        &self.matrix.workload(self.levels).name
    }

    fn here(&self) -> String {
        format!(
            "with template {} on database {}",
            self.matrix.template(self.levels).name,
            self.database()
        )
    }

    fn only_reads(&self, name: &str) -> Option<String> {
        let workload = self.matrix.workload(self.levels);
        let reads = workload.sysbench.as_ref().is_some_and(statements::read_only)
            || workload.pgbench.as_ref().is_some_and(pgbench::read_only);
        reads.then(|| format!("{name} is inert under workload {}: it only reads", workload.name))
    }
}

fn binary_log(row: &Row<'_, '_>, name: &str) -> Option<String> {
    if !(name.starts_with("binlog_") || BINARY_LOG.contains(&name)) {
        return None;
    }
    // The operator writes skip_log_bin unless it is told otherwise.
    if row.off("log_bin", true) == Some(true) {
        return Some(format!(
            "{name} is inert on database {}: log_bin is off",
            row.database()
        ));
    }
    row.only_reads(name)
}

fn writes(row: &Row<'_, '_>, name: &str) -> Option<String> {
    if !WRITES.contains(&name) {
        return None;
    }
    let always = |value: ParameterValue| value.as_integer() == Some(1);
    let each_commit = row
        .said("innodb_flush_log_at_trx_commit")
        .map_or_else(|| row.matrix.managed(row.levels), always);
    if name == "innodb_flush_log_at_timeout" && each_commit {
        return Some(format!(
            "{name} is inert {}: innodb_flush_log_at_trx_commit is 1",
            row.here()
        ));
    }
    row.only_reads(name)
}

fn query_cache(row: &Row<'_, '_>, name: &str) -> Option<String> {
    if !name.starts_with("query_cache_") || name == "query_cache_type" {
        return None;
    }
    let empty = name != "query_cache_size"
        && row.said("query_cache_size").and_then(|size| size.as_integer()) == Some(0);
    let off = row.off("query_cache_type", true) == Some(true);
    let why = match (off, empty) {
        (true, _) => "query_cache_type is off",
        (false, true) => "query_cache_size is 0",
        (false, false) => return None,
    };
    Some(format!("{name} is inert {}: {why}", row.here()))
}

fn prepared(row: &Row<'_, '_>, name: &str) -> Option<String> {
    let none = row
        .matrix
        .workload(row.levels)
        .sysbench
        .as_ref()
        .and_then(statements::per_thread)
        == Some(0);
    (name == "max_prepared_stmt_count" && none).then(|| {
        format!(
            "{name} is inert under workload {}: it prepares no statements on the server",
            row.workload()
        )
    })
}

/// Parameters of something that another parameter switches on.
fn switched_off(row: &Row<'_, '_>, name: &str) -> Option<String> {
    let pool = || {
        row.said("thread_handling").map_or_else(
            || row.matrix.managed(row.levels),
            |value| !value.to_string().eq_ignore_ascii_case("pool-of-threads"),
        )
    };
    if name.starts_with("thread_pool_") && pool() {
        return Some(format!(
            "{name} is inert {}: thread_handling is not pool-of-threads",
            row.here()
        ));
    }
    let tickets = matches!(name, "innodb_concurrency_tickets" | "innodb_thread_sleep_delay");
    if tickets && row.off("innodb_thread_concurrency", true) == Some(true) {
        return Some(format!(
            "{name} is inert {}: innodb_thread_concurrency is 0",
            row.here()
        ));
    }
    None
}

fn postgresql(row: &Row<'_, '_>, name: &str) -> Option<String> {
    if name == "wal_sync_method" && row.off("fsync", false) == Some(true) {
        return Some(format!("{name} is inert {}: fsync is off", row.here()));
    }
    if name == "commit_siblings" && row.off("commit_delay", true) == Some(true) {
        return Some(format!("{name} is inert {}: commit_delay is 0", row.here()));
    }
    if name.starts_with("autovacuum_") && row.off("autovacuum", false) == Some(true) {
        return Some(format!("{name} is inert {}: autovacuum is off", row.here()));
    }
    if WRITES_POSTGRESQL.contains(&name) {
        return row.only_reads(name);
    }
    None
}
