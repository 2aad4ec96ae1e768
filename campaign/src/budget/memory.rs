//! Memory of a managed instance: the buffer pool that it is given, and whether everything fits.

use crds::quantity;

use super::{Refused, gibibytes, named, statements_of};
use crate::matrix::{Matrix, Problem, Row, in_force};

/// Bytes of server memory for each prepared statement, at most (measured 21 to 34 kB).
pub(super) const BYTES_PER_STATEMENT: i64 = 34_000;
/// Share of the instance's memory that the buffer pool gets.
const POOL_SHARE: f64 = 0.6;
/// Bytes of a server that does nothing, beside its buffer pool.
const SERVER: i64 = 96 << 20;
/// Bytes of a connection, beside its statements.
const CONNECTION: i64 = 256 << 10;
/// The buffer pool is made of pieces of this size.
const PIECE: i64 = 8 << 20;
/// A buffer pool below this measures nothing of use.
const SMALLEST_POOL: i64 = 64 << 20;
const POOL: &str = "innodb_buffer_pool_size";

/// Bytes of prepared statements of the cell of an instance that has most.
fn statements(matrix: &Matrix<'_>, rows: &[&Row]) -> i64 {
    rows.iter()
        .map(|row| statements_of(matrix, row.levels) * most(row) * BYTES_PER_STATEMENT)
        .max()
        .unwrap_or(0)
}

fn most(row: &Row) -> i64 {
    row.threads.iter().max().map_or(0, |&threads| i64::from(threads))
}

/// The buffer pool of an instance, the same in all its arms: 0.6 of its memory less what prepared statements take at
/// most. None where the base configuration sets one, or the instance is not ours.
pub(super) fn buffer_pool(matrix: &Matrix<'_>, rows: &[&Row]) -> Option<i64> {
    let levels = rows.first()?.levels;
    let managed = matrix.database(levels).managed.as_ref()?;
    if managed.configuration.contains_key(POOL) {
        return None;
    }
    let memory = quantity::whole(&matrix.size(levels).memory)?;
    let pool = (memory as f64 * POOL_SHARE) as i64 - statements(matrix, rows);
    Some((pool / PIECE * PIECE).max(0))
}

pub(super) fn check(matrix: &Matrix<'_>, rows: &[&Row], given: Option<i64>, refused: &mut Refused) {
    for row in rows {
        let size = matrix.size(row.levels);
        let Some(memory) = quantity::whole(&size.memory) else {
            continue;
        };
        let set = in_force(matrix, row.levels, POOL).and_then(|value| value.as_integer());
        let pool = set.or(given).unwrap_or(0);
        let prepared = statements_of(matrix, row.levels) * most(row) * BYTES_PER_STATEMENT;
        let needed = pool + prepared + SERVER + most(row) * CONNECTION;
        let field = format!("spec.instanceSizes[{}].memory", row.levels.size);
        let problem = if needed > memory {
            Problem::new(
                field,
                format!(
                    "{} holds a buffer pool of {}, {} of prepared statements, {} of connections and {} of server: {}",
                    size.memory.0,
                    gibibytes(pool),
                    gibibytes(prepared),
                    gibibytes(most(row) * CONNECTION),
                    gibibytes(SERVER),
                    gibibytes(needed)
                ),
                format!("at most {}, or the kernel kills the server", gibibytes(memory)),
                "raise memory, lower innodb_buffer_pool_size, use preparedStatements: Disabled, or fewer tables or threads",
            )
        } else if set.is_none() && pool < SMALLEST_POOL && given.is_some() {
            Problem::new(
                field,
                format!("{} leaves {} for the buffer pool", size.memory.0, gibibytes(pool)),
                format!("at least {}", gibibytes(SMALLEST_POOL)),
                "raise memory, set innodb_buffer_pool_size, or use fewer prepared statements",
            )
        } else {
            continue;
        };
        refused.cell(named(matrix, row.levels), problem);
    }
}
