//! How large the data is: bytes of a table by its rows, and rows by a share of the instance's memory.

use crds::quantity;

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
    let Some(settings) = &matrix.workload(levels).sysbench else {
        return 0;
    };
    if let Some(rows) = settings.table_size {
        return rows;
    }
    let memory = quantity::whole(&matrix.size(levels).memory).unwrap_or(0) as f64;
    let share = f64::from(settings.size_to_memory_ratio.unwrap_or(0)) / 100.0;
    let per_table = memory * share / f64::from(settings.tables.max(1));
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

/// Bytes of all tables of a workload.
pub fn bytes(matrix: &Matrix<'_>, levels: Levels, rows_per_table: i64) -> i64 {
    let tables = matrix
        .workload(levels)
        .sysbench
        .as_ref()
        .map_or(0, |settings| i64::from(settings.tables));
    table_bytes(rows_per_table).saturating_mul(tables)
}
