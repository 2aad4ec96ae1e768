//! A workload: which load generator runs what, on how much data. A union whose `type` names the member.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameter::ParameterValue;

/// One level of the workload axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.sysbench) == (self.type == 'Sysbench')").message("type Sysbench needs sysbench: {script, tables, tableSize}, and sysbench is only for type Sysbench"),
    validation = Rule::new("has(self.pgbench) == (self.type == 'Pgbench')").message("type Pgbench needs pgbench: {}, and pgbench is only for type Pgbench"),
)]
pub struct Workload {
    /// Name of this level, unique within the axis.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Which load generator.
    #[serde(rename = "type")]
    pub type_: WorkloadType,
    /// Settings of sysbench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sysbench: Option<Sysbench>,
    /// Settings of pgbench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pgbench: Option<Pgbench>,
}

/// The load generators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadType {
    /// sysbench 1.0 or 1.1.
    #[default]
    Sysbench,
    /// pgbench (PostgreSQL only).
    Pgbench,
}

/// Settings of sysbench.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.luaConfigMap) || self.script in ['oltp_read_write', 'oltp_read_only', 'oltp_write_only', 'oltp_point_select', 'oltp_update_index', 'oltp_update_non_index', 'oltp_insert', 'oltp_delete', 'select_random_points', 'select_random_ranges', 'bulk_insert']").message("script must be a bundled one (oltp_read_write, oltp_read_only, oltp_write_only, oltp_point_select, oltp_update_index, oltp_update_non_index, oltp_insert, oltp_delete, select_random_points, select_random_ranges, bulk_insert), or a .lua file of luaConfigMap, which must then be given").field_path(".script"),
    validation = Rule::new("has(self.tableSize) != has(self.sizeToMemoryRatio)").message("give exactly one of tableSize (rows per table) and sizeToMemoryRatio (data size as a share of the instance's memory)"),
    validation = Rule::new("!has(self.options) || self.options.all(k, !(k in ['threads', 'time', 'events', 'tables', 'table-size', 'table_size', 'report-interval', 'report-checkpoints', 'histogram', 'percentile', 'rate', 'rand-seed', 'db-ps-mode', 'db-driver', 'config-file', 'mysql-password', 'pgsql-password', 'mysql-user', 'pgsql-user', 'mysql-host', 'pgsql-host', 'mysql-port', 'pgsql-port', 'mysql-db', 'pgsql-db', 'warmup-time', 'num-threads', 'max-time', 'max-requests', 'test', 'verbosity', 'debug', 'thread-init-timeout']))").message("options may not name what the operator sets itself: threads, time, tables, tableSize, rate and preparedStatements have fields of their own; connection, seed and report options are the operator's"),
)]
pub struct Sysbench {
    /// A bundled script (`oltp_read_write`, `oltp_read_only`, `oltp_write_only`, `oltp_point_select`, `oltp_update_index`,
    /// `oltp_update_non_index`, `oltp_insert`, `oltp_delete`, `select_random_points`, `select_random_ranges`, `bulk_insert`),
    /// or a `.lua` file of `luaConfigMap`.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"))]
    pub script: String,
    /// Script whose `prepare` makes the data; `script` itself if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"))]
    pub prepare_script: Option<String>,
    /// ConfigMap in the same namespace whose keys are Lua files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub lua_config_map: Option<String>,
    /// Number of tables (default 1).
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000))]
    pub tables: i32,
    /// Rows per table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_000_000_000))]
    pub table_size: Option<i64>,
    /// Data size as a share of the instance's memory, in percent (120 is 1.2 times the memory); rows follow from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub size_to_memory_ratio: Option<i32>,
    /// Server-side prepared statements: `Auto` (default, as the script does) or `Disabled` (`--db-ps-mode=disable`).
    #[serde(default)]
    pub prepared_statements: PreparedStatements,
    /// Further options by name without dashes, such as `rand-type: uniform` (always set it: sysbench 1.0 defaults to
    /// special, 1.1 to uniform), `range_selects: "off"`, `skip_trx: "on"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub options: BTreeMap<String, ParameterValue>,
    /// Threads that prepare the data (default 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub prepare_threads: Option<i32>,
}

fn one() -> i32 {
    1
}

/// Server-side prepared statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PreparedStatements {
    /// As the script does: one set per thread and table.
    #[default]
    Auto,
    /// None: every statement is sent as text.
    Disabled,
}

/// Settings of pgbench.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.scale) != has(self.sizeToMemoryRatio)").message("give exactly one of scale and sizeToMemoryRatio"),
    validation = Rule::new("!(has(self.builtin) && has(self.scriptConfigMap))").message("give builtin or scriptConfigMap, not both"),
)]
pub struct Pgbench {
    /// Scale factor (100,000 rows of pgbench_accounts each).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub scale: Option<i32>,
    /// Data size as a share of the instance's memory, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub size_to_memory_ratio: Option<i32>,
    /// Built-in script; TpcbLike if neither this nor a ConfigMap is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<PgbenchScript>,
    /// ConfigMap in the same namespace whose keys are pgbench scripts; each key is one script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub script_config_map: Option<String>,
    /// Query protocol (default Simple).
    #[serde(default)]
    pub protocol: PgbenchProtocol,
    /// Tries of a transaction that fails with a serialization or deadlock error (`--max-tries`, default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_tries: Option<i32>,
}

/// pgbench's built-in scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PgbenchScript {
    /// TPC-B-like.
    TpcbLike,
    /// TPC-B-like without the contended updates.
    SimpleUpdate,
    /// One SELECT.
    SelectOnly,
}

/// pgbench's query protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PgbenchProtocol {
    /// Simple query protocol.
    #[default]
    Simple,
    /// Extended query protocol.
    Extended,
    /// Extended with prepared statements.
    Prepared,
}
