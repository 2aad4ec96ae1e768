//! What pgbench's own scripts send and what its tables take.

use crds::workload::{Pgbench, PgbenchScript};

/// Rows of `pgbench_accounts` for each unit of the scale factor.
pub const ACCOUNTS_PER_SCALE: i64 = 100_000;
/// Bytes for each unit of the scale factor: tables 13.4 MB, keys 2.3 MB, measured at scale 100 (PostgreSQL 15).
const BYTES_PER_SCALE: i64 = 15_700_000;

/// The built-in script that a workload runs; None for scripts of the user's own.
fn builtin(settings: &Pgbench) -> Option<PgbenchScript> {
    let builtin = settings.builtin.unwrap_or(PgbenchScript::TpcbLike);
    settings.script_config_map.is_none().then_some(builtin)
}

/// Queries in one transaction; None for scripts of the user's own.
pub fn queries_per_transaction(settings: &Pgbench) -> Option<i64> {
    builtin(settings).map(|script| match script {
        PgbenchScript::TpcbLike => 7,
        PgbenchScript::SimpleUpdate => 5,
        PgbenchScript::SelectOnly => 1,
    })
}

/// Whether the load only reads; false for scripts of the user's own, which may do anything.
pub fn read_only(settings: &Pgbench) -> bool {
    builtin(settings) == Some(PgbenchScript::SelectOnly)
}

/// Rows of `pgbench_accounts`: by the scale factor as given, or by the smallest that takes so many bytes.
pub(super) fn rows(settings: &Pgbench, wanted_bytes: i64) -> i64 {
    let scale = settings
        .scale
        .map_or_else(|| (wanted_bytes / BYTES_PER_SCALE + 1).max(1), i64::from);
    scale.saturating_mul(ACCOUNTS_PER_SCALE)
}

/// Bytes of all tables.
pub(super) fn bytes(accounts: i64) -> i64 {
    (accounts / ACCOUNTS_PER_SCALE).saturating_mul(BYTES_PER_SCALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole_units_of_scale() {
        let given = Pgbench {
            scale: Some(7),
            ..Pgbench::default()
        };
        assert_eq!(rows(&given, 0), 700_000);
        let solved = Pgbench {
            size_to_memory_ratio: Some(120),
            ..Pgbench::default()
        };
        let wanted = (8_i64 << 30) * 12 / 10;
        let rows = rows(&solved, wanted);
        assert!(rows % ACCOUNTS_PER_SCALE == 0 && bytes(rows) >= wanted);
        assert!(bytes(rows - ACCOUNTS_PER_SCALE) < wanted);
    }

    #[test]
    fn only_built_in_scripts_are_known() {
        let own = Pgbench {
            script_config_map: Some("scripts".to_owned()),
            ..Pgbench::default()
        };
        assert_eq!((queries_per_transaction(&own), read_only(&own)), (None, false));
        assert_eq!(queries_per_transaction(&Pgbench::default()), Some(7));
    }
}
