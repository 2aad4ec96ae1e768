//! What a server of each engine needs beside the data; a new engine is one line in [`BUDGETS`].

use crds::parameter::ParameterValue;
use crds::target::Engine;

/// Sizes of a server that is told nothing.
pub(crate) struct EngineBudget {
    engine: Engine,
    /// Parameter that says the size of the cache.
    pub(crate) pool: &'static str,
    /// Share of the instance's memory that the cache gets.
    pub(super) share: f64,
    /// The cache is made of whole pieces of this size, bytes.
    pub(crate) piece: i64,
    /// Bytes that a number without a unit stands for in that parameter.
    pool_unit: i64,
    /// Bytes of a server that does nothing, beside its cache.
    pub(super) idle: i64,
    /// Bytes of a connection, beside its statements.
    pub(super) connection: i64,
    /// Bytes of server memory for each prepared statement, at most.
    pub(super) statement: i64,
    /// Parameter that says the size of the redo log, its default in bytes, and the bytes of a number without a unit.
    redo: (&'static str, i64, i64),
    /// `max_connections` of a server that is told nothing.
    pub(super) connections: i64,
    /// Parameter that limits the prepared statements of all connections, and its default; none where nothing does.
    pub(super) prepared: Option<(&'static str, i64)>,
    /// Parameter that limits the tables that are open at once, and its default; none where nothing does.
    pub(super) tables: Option<(&'static str, i64)>,
}

impl EngineBudget {
    /// A size as a parameter of this engine is written: in bytes, or with a unit where a number alone counts units of the
    /// parameter's own.
    pub(crate) fn size_value(&self, bytes: i64) -> ParameterValue {
        if self.pool_unit == 1 {
            bytes.into()
        } else if bytes % (1 << 20) == 0 {
            format!("{}MB", bytes >> 20).as_str().into()
        } else {
            format!("{}kB", bytes >> 10).as_str().into()
        }
    }

    /// Bytes of the smallest piece that a size of this engine is made of.
    pub(crate) fn smallest_size(&self) -> i64 {
        self.pool_unit.max(1 << 10)
    }

    /// Bytes that a value of the cache's parameter asks for.
    pub(super) fn pool_bytes(&self, value: &ParameterValue) -> Option<i64> {
        bytes(value, self.pool_unit)
    }

    /// Bytes of the redo log under a value of its parameter, or where it has none.
    pub(super) fn redo_bytes(&self, value: impl Fn(&str) -> Option<ParameterValue>) -> i64 {
        let (name, default, unit) = self.redo;
        value(name)
            .and_then(|value| bytes(&value, unit))
            .unwrap_or(default)
    }
}

/// A size in bytes; a number alone counts units.
fn bytes(value: &ParameterValue, unit: i64) -> Option<i64> {
    let number = value.as_integer()?;
    let alone = value.to_string().trim().bytes().all(|b| b.is_ascii_digit());
    Some(if alone {
        number.saturating_mul(unit)
    } else {
        number
    })
}

const BUDGETS: &[EngineBudget] = &[
    EngineBudget {
        engine: Engine::MariaDB,
        pool: "innodb_buffer_pool_size",
        share: 0.6,
        piece: 8 << 20,
        pool_unit: 1,
        idle: 96 << 20,
        connection: 256 << 10,
        // 21 to 34 kB were measured.
        statement: 34_000,
        redo: ("innodb_log_file_size", 96 << 20, 1),
        connections: 151,
        prepared: Some(("max_prepared_stmt_count", 16_382)),
        tables: Some(("table_open_cache", 2_000)),
    },
    // Version 9 with the Performance Schema as it comes: 550 MiB resident were measured of
    // a server whose pool held next to nothing.
    EngineBudget {
        engine: Engine::MySQL,
        pool: "innodb_buffer_pool_size",
        share: 0.6,
        piece: 128 << 20,
        pool_unit: 1,
        idle: 560 << 20,
        connection: 256 << 10,
        statement: 34_000,
        redo: ("innodb_redo_log_capacity", 100 << 20, 1),
        connections: 151,
        prepared: Some(("max_prepared_stmt_count", 16_382)),
        tables: Some(("table_open_cache", 2_000)),
    },
    // A quarter, as its manual advises: the kernel's page cache holds the rest of the data and counts against the same
    // limit. Measured of version 15 with pgaudit: 22 MB beside the buffers, 3.9 MB for a connection, 14 kB for a statement.
    EngineBudget {
        engine: Engine::PostgreSQL,
        pool: "shared_buffers",
        share: 0.25,
        piece: 1 << 20,
        pool_unit: 8 << 10,
        idle: 32 << 20,
        connection: 4 << 20,
        statement: 16_000,
        redo: ("max_wal_size", 1 << 30, 1 << 20),
        connections: 100,
        prepared: None,
        tables: None,
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

    #[test]
    fn sizes_are_read_and_written_in_the_unit_of_their_parameter() {
        let postgresql = of(Engine::PostgreSQL);
        for value in [
            ParameterValue::from(32_768),
            "256MB".into(),
            "32768".into(),
            "256M".into(),
        ] {
            assert_eq!(postgresql.pool_bytes(&value), Some(256 << 20), "{value}");
        }
        assert_eq!(postgresql.size_value(256 << 20).to_string(), "256MB");
        assert_eq!(
            of(Engine::MariaDB).size_value(8 << 20),
            ParameterValue::from(8 << 20)
        );
        assert_eq!(postgresql.redo_bytes(|_| Some(2048.into())), 2 << 30);
        assert_eq!(postgresql.redo_bytes(|_| None), 1 << 30);
    }
}
