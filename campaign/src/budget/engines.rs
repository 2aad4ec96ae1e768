//! What a server of each engine needs beside the data; a new engine is one line in [`BUDGETS`].

use crds::target::Engine;

/// Sizes of a server that is told nothing.
pub(crate) struct EngineBudget {
    engine: Engine,
    /// Parameter that says the size of the cache.
    pub(crate) pool: &'static str,
    /// The cache is made of whole pieces of this size, bytes.
    pub(super) piece: i64,
    /// Bytes of a server that does nothing, beside its cache.
    pub(super) idle: i64,
    /// Parameter that says the size of the redo log, and its default in bytes.
    pub(super) redo: (&'static str, i64),
}

const BUDGETS: &[EngineBudget] = &[
    EngineBudget {
        engine: Engine::MariaDB,
        pool: "innodb_buffer_pool_size",
        piece: 8 << 20,
        idle: 96 << 20,
        redo: ("innodb_log_file_size", 96 << 20),
    },
    // Version 9 with the Performance Schema as it comes: 550 MiB resident were measured of
    // a server whose pool held next to nothing.
    EngineBudget {
        engine: Engine::MySQL,
        pool: "innodb_buffer_pool_size",
        piece: 128 << 20,
        idle: 560 << 20,
        redo: ("innodb_redo_log_capacity", 100 << 20),
    },
];

/// The sizes of an engine; those of the first for one that is refused anyway.
pub(crate) fn of(engine: Engine) -> &'static EngineBudget {
    BUDGETS
        .iter()
        .find(|budget| budget.engine == engine)
        .unwrap_or(&BUDGETS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_that_is_measured_has_its_sizes() {
        for engine in crate::matrix::supported::ENGINES {
            assert_eq!(of(*engine).engine, *engine);
        }
    }
}
