//! What every run records of its surroundings, before and after: what a reader needs to judge or repeat it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The surroundings of a run. Absent fields could not be read there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Environment {
    /// Server version as the server says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// Load generator's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// Image digest of the database container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_image_id: Option<String>,
    /// Image digest of the load generator's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_image_id: Option<String>,
    /// Node of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_node: Option<String>,
    /// Node of the load generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_node: Option<String>,
    /// Kernel release of the database's node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// CPU model of the database's node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// CPUs that the server process may use, as the kernel lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_cpus: Option<String>,
    /// CPUs that the load generator may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_cpus: Option<String>,
    /// Transparent huge pages, the mode in brackets of the kernel's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_pages: Option<String>,
    /// Frequency governor of the database's CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_governor: Option<String>,
    /// Swap in use on the database's node, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_used_bytes: Option<i64>,
    /// Replication role of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// `log_bin` (MySQL family) as read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bin: Option<String>,
    /// Size of the redo log, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redo_bytes: Option<i64>,
    /// Age of the last checkpoint, bytes of redo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_age_bytes: Option<i64>,
    /// Buffer pool or shared buffers, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_pool_bytes: Option<i64>,
    /// Bytes of the benchmark's tables and indexes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_bytes: Option<i64>,
    /// Length of the history list (undo not purged).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_list_length: Option<i64>,
}
