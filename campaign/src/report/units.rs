//! Units of the status' integers, for people.

use crds::campaign::Metric;

/// How the figures of a metric are shown.
pub(super) struct Unit {
    /// Name of the figure with its unit.
    pub(super) name: &'static str,
    divisor: f64,
    decimals: usize,
}

impl Unit {
    pub(super) fn of(metric: Metric) -> Self {
        let (name, divisor, decimals) = match metric {
            Metric::Qps => ("QPS", 1e3, 1),
            Metric::Tps => ("TPS", 1e3, 1),
            Metric::Transactions => ("transactions", 1e3, 0),
            Metric::LatencyMean => ("mean ms", 1e3, 2),
            Metric::LatencyP95 => ("p95 ms", 1e3, 2),
            Metric::CpuPerStatement => ("CPU us/statement", 1e3, 2),
            Metric::LogBytes => ("log bytes/statement", 1e3, 1),
        };
        Self {
            name,
            divisor,
            decimals,
        }
    }

    pub(super) fn show(&self, value: Option<i64>) -> String {
        shown(value, self.divisor, self.decimals)
    }
}

fn shown(value: Option<i64>, divisor: f64, decimals: usize) -> String {
    value.map_or_else(
        || "-".to_owned(),
        |value| format!("{:.decimals$}", value as f64 / divisor),
    )
}

/// Thousandths as a number with one decimal.
pub(super) fn thousandths(value: Option<i64>) -> String {
    shown(value, 1e3, 1)
}

/// Microseconds as milliseconds.
pub(super) fn milliseconds(value: Option<i64>) -> String {
    shown(value, 1e3, 2)
}
