//! The data that a workload reads and writes: when it is made again, and how it is told from other data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the data is looked after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DatasetPolicy {
    /// When the data is made again (default WhenGrown).
    pub rebuild: Rebuild,
    /// Keep the benchmark schema of a borrowed database after the campaign (default false).
    pub retain: bool,
}

impl Default for DatasetPolicy {
    fn default() -> Self {
        Self {
            rebuild: Rebuild::WhenGrown,
            retain: false,
        }
    }
}

/// When the data of a workload is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Rebuild {
    /// Only if it is missing or of another shape.
    Never,
    /// When another workload is measured next.
    PerWorkload,
    /// Before every block.
    PerBlock,
    /// Before every run.
    PerRun,
    /// When it has grown by 10 % of its bytes since it was made; a read-only load never grows it.
    #[default]
    WhenGrown,
}

/// What a database holds for us, as its marker table says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DatasetStatus {
    /// Hash of what made it (tool, script, tables, rows, options).
    #[schemars(length(max = 64))]
    pub hash: String,
    /// Number of tables.
    pub tables: i64,
    /// Rows in each table.
    pub rows_per_table: i64,
    /// Bytes of tables and indexes by the server's own statistics, when it was made.
    pub bytes: i64,
}
