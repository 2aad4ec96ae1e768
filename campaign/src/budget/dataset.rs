//! How large the data is: bytes of a table by its rows, and rows by a share of the instance's memory.

use crds::quantity;
use crds::workload::Workload;

use super::pgbench;
use crate::matrix::{Levels, Matrix};

/// Rows of a table and bytes per row, measured on InnoDB: space is taken in whole extents, so that small tables
/// cost more per row.
const MEASURED: [(f64, f64); 4] = [
    (25_000.0, 545.0),
    (100_000.0, 304.0),
    (500_000.0, 252.0),
    (1_000_000.0, 241.4),
];
/// Bytes of an empty table's file.
const EMPTY: f64 = 131_072.0;

/// Bytes of a table with so many rows.
pub fn table_bytes(rows: i64) -> i64 {
    let rows = rows.max(0) as f64;
    let (mut below, mut bytes_below) = (0.0, EMPTY);
    for (at, per_row) in MEASURED {
        let bytes = at * per_row;
        if rows <= at {
            return (bytes_below + (bytes - bytes_below) * (rows - below) / (at - below)) as i64;
        }
        (below, bytes_below) = (at, bytes);
    }
    let (_, per_row) = MEASURED[MEASURED.len() - 1];
    (rows * per_row) as i64
}

/// Rows per table of a workload on an instance size: as given, or solved from the share of memory, since bytes per
/// row depend on the rows.
pub fn rows_per_table(matrix: &Matrix<'_>, levels: Levels) -> i64 {
    let workload = matrix.workload(levels);
    let memory = quantity::whole(&matrix.size(levels).memory).unwrap_or(0) as f64;
    let wanted = |ratio: Option<i32>| memory * f64::from(ratio.unwrap_or(0)) / 100.0;
    let settings = match (&workload.sysbench, &workload.pgbench) {
        (Some(settings), _) => settings,
        (None, Some(settings)) => {
            return pgbench::rows(settings, wanted(settings.size_to_memory_ratio) as i64);
        }
        (None, None) => return 0,
    };
    if let Some(rows) = settings.table_size {
        return rows;
    }
    let per_table = wanted(settings.size_to_memory_ratio) / f64::from(settings.tables.max(1));
    let (mut low, mut high) = (1_i64, 2_000_000_000_i64);
    while low < high {
        let middle = low + (high - low) / 2;
        if table_bytes(middle) as f64 >= per_table {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Tables of a workload that have so many rows each; pgbench's others are small.
pub fn tables(workload: &Workload) -> i64 {
    match (&workload.sysbench, &workload.pgbench) {
        (Some(settings), _) => i64::from(settings.tables),
        (None, Some(_)) => 1,
        (None, None) => 0,
    }
}

/// Bytes of all tables of a workload.
pub fn bytes(workload: &Workload, rows_per_table: i64) -> i64 {
    if workload.sysbench.is_none() && workload.pgbench.is_some() {
        return pgbench::bytes(rows_per_table);
    }
    table_bytes(rows_per_table).saturating_mul(tables(workload))
}
