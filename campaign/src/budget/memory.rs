//! Memory of a managed instance: the buffer pool that it is given, and whether everything fits.

use crds::quantity;

use super::{Refused, engines, gibibytes, named, statements_of};
use crate::matrix::{Matrix, Problem, Row, in_force};

/// A buffer pool below this measures nothing of use.
const SMALLEST_POOL: i64 = 64 << 20;

/// Bytes of prepared statements of the cell of an instance that has most.
fn statements(matrix: &Matrix<'_>, rows: &[&Row]) -> i64 {
    rows.iter()
        .map(|row| {
            let engine = engines::of(matrix.database(row.levels).engine);
            statements_of(matrix, row.levels) * most(row) * engine.statement
        })
        .max()
        .unwrap_or(0)
}

fn most(row: &Row) -> i64 {
    row.threads.iter().max().map_or(0, |&threads| i64::from(threads))
}

/// The buffer pool of an instance, the same in all its arms: its share of the memory, or what an idle server and its connections
/// leave of it, less what prepared statements take at most. None where the base configuration sets one, or the instance is not ours.
pub(super) fn buffer_pool(matrix: &Matrix<'_>, rows: &[&Row]) -> Option<i64> {
    let levels = rows.first()?.levels;
    let database = matrix.database(levels);
    let managed = database.managed.as_ref()?;
    let engine = engines::of(database.engine);
    if managed.configuration.contains_key(engine.pool) {
        return None;
    }
    let memory = quantity::whole(&matrix.size(levels).memory)?;
    let connections = rows
        .iter()
        .map(|row| most(row) * engine.connection)
        .max()
        .unwrap_or(0);
    let share = ((memory as f64 * engine.share) as i64).min(memory - engine.idle - connections);
    let pool = share - statements(matrix, rows);
    Some((pool / engine.piece * engine.piece).max(0))
}

pub(super) fn check(matrix: &Matrix<'_>, rows: &[&Row], given: Option<i64>, refused: &mut Refused) {
    for row in rows {
        let size = matrix.size(row.levels);
        let Some(memory) = quantity::whole(&size.memory) else {
            continue;
        };
        let engine = engines::of(matrix.database(row.levels).engine);
        let set = in_force(matrix, row.levels, engine.pool).and_then(|value| engine.pool_bytes(&value));
        let pool = set.or(given).unwrap_or(0);
        let prepared = statements_of(matrix, row.levels) * most(row) * engine.statement;
        let needed = pool + prepared + engine.idle + most(row) * engine.connection;
        let field = format!("spec.instanceSizes[{}].memory", row.levels.size);
        let problem = if needed > memory {
            Problem::new(
                field,
                format!(
                    "{} holds a buffer pool of {}, {} of prepared statements, {} of connections and {} of server: {}",
                    size.memory.0,
                    gibibytes(pool),
                    gibibytes(prepared),
                    gibibytes(most(row) * engine.connection),
                    gibibytes(engine.idle),
                    gibibytes(needed)
                ),
                format!("at most {}, or the kernel kills the server", gibibytes(memory)),
                format!(
                    "raise memory, lower {}, use preparedStatements: Disabled, or fewer tables or threads",
                    engine.pool
                ),
            )
        } else if set.is_none() && pool < SMALLEST_POOL && given.is_some() {
            Problem::new(
                field,
                format!("{} leaves {} for the buffer pool", size.memory.0, gibibytes(pool)),
                format!("at least {}", gibibytes(SMALLEST_POOL)),
                format!(
                    "raise memory, set {}, or use fewer prepared statements",
                    engine.pool
                ),
            )
        } else {
            continue;
        };
        refused.cell(named(matrix, row.levels), problem);
    }
}
