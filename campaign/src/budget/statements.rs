//! What sysbench's own scripts send: server-side statements prepared by each thread, and queries in a transaction.
//! Measured on MariaDB 10.11 with sysbench 1.0.20 (`Prepared_stmt_count`), by script and options.

use crds::parameter::ParameterValue;
use crds::workload::{PreparedStatements, Sysbench};

fn option<'a>(settings: &'a Sysbench, name: &str) -> Option<&'a ParameterValue> {
    settings
        .options
        .get(name)
        .or_else(|| settings.options.get(&name.replace('_', "-")))
}

fn flag(settings: &Sysbench, name: &str, default: bool) -> bool {
    option(settings, name).map_or(default, |value| {
        let text = value.to_string();
        text == "1"
            || ["on", "true", "yes"]
                .iter()
                .any(|yes| text.eq_ignore_ascii_case(yes))
    })
}

fn count(settings: &Sysbench, name: &str, default: i64) -> i64 {
    option(settings, name)
        .and_then(ParameterValue::as_integer)
        .unwrap_or(default)
}

/// The bundled script that a workload runs; None for one of its own.
fn bundled(settings: &Sysbench) -> Option<&str> {
    let name = settings.script.strip_suffix(".lua").unwrap_or(&settings.script);
    let own = settings.lua_config_map.is_some() && name != settings.script;
    (!own).then_some(name)
}

/// Statements that each thread prepares; None for a script of the user's own.
pub fn per_thread(settings: &Sysbench) -> Option<i64> {
    if settings.prepared_statements == PreparedStatements::Disabled {
        return Some(0);
    }
    let tables = i64::from(settings.tables);
    let transaction = if flag(settings, "skip_trx", false) { 0 } else { 2 };
    let ranges = if flag(settings, "range_selects", true) {
        4
    } else {
        0
    };
    Some(match bundled(settings)? {
        "oltp_read_write" => (1 + ranges + 4) * tables + transaction,
        "oltp_read_only" => (1 + ranges) * tables + transaction,
        "oltp_write_only" => 4 * tables + transaction,
        "oltp_point_select" | "oltp_update_index" | "oltp_update_non_index" | "oltp_delete" => tables,
        "select_random_points" | "select_random_ranges" => 1,
        "oltp_insert" | "bulk_insert" => 0,
        _ => return None,
    })
}

/// Queries in one transaction; None for a script of the user's own.
pub fn queries_per_transaction(settings: &Sysbench) -> Option<i64> {
    let transaction = if flag(settings, "skip_trx", false) { 0 } else { 2 };
    let points = count(settings, "point_selects", 10);
    let ranges = if flag(settings, "range_selects", true) {
        ["simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"]
            .iter()
            .map(|name| count(settings, name, 1))
            .sum()
    } else {
        0
    };
    let writes = count(settings, "index_updates", 1)
        + count(settings, "non_index_updates", 1)
        + 2 * count(settings, "delete_inserts", 1);
    Some(match bundled(settings)? {
        "oltp_read_write" => points + ranges + writes + transaction,
        "oltp_read_only" => points + ranges + transaction,
        "oltp_write_only" => writes + transaction,
        "oltp_point_select"
        | "oltp_update_index"
        | "oltp_update_non_index"
        | "oltp_delete"
        | "oltp_insert"
        | "select_random_points"
        | "select_random_ranges"
        | "bulk_insert" => 1,
        _ => return None,
    })
}

/// Whether the load only reads; false for a script of the user's own, which may do anything.
pub fn read_only(settings: &Sysbench) -> bool {
    matches!(
        bundled(settings),
        Some("oltp_read_only" | "oltp_point_select" | "select_random_points" | "select_random_ranges")
    )
}
