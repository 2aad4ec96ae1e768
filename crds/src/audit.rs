//! An audit setting: which mechanism records what, and where its log goes. A union whose `type` names the member.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameter::Parameters;

/// One level of the audit axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.serverAudit) || self.type == 'ServerAudit'").message("serverAudit is only for type ServerAudit: remove it or change type"),
    validation = Rule::new("!has(self.generalLog) || self.type == 'GeneralLog'").message("generalLog is only for type GeneralLog: remove it or change type"),
    validation = Rule::new("!has(self.slowLog) || self.type == 'SlowLog'").message("slowLog is only for type SlowLog: remove it or change type"),
    validation = Rule::new("!has(self.auditLog) || self.type in ['PerconaAuditLog', 'EnterpriseAuditLog']").message("auditLog is only for type PerconaAuditLog or EnterpriseAuditLog: remove it or change type"),
    validation = Rule::new("!has(self.auditLogFilter) || self.type == 'PerconaAuditLogFilter'").message("auditLogFilter is only for type PerconaAuditLogFilter: remove it or change type"),
    validation = Rule::new("!has(self.mcAfeeAudit) || self.type == 'McAfeeAudit'").message("mcAfeeAudit is only for type McAfeeAudit: remove it or change type"),
    validation = Rule::new("!has(self.logStatement) || self.type == 'LogStatement'").message("logStatement is only for type LogStatement: remove it or change type"),
    validation = Rule::new("!has(self.pgAudit) || self.type == 'PgAudit'").message("pgAudit is only for type PgAudit: remove it or change type"),
    validation = Rule::new("!has(self.taurusSqlAudit) || self.type == 'TaurusSqlAudit'").message("taurusSqlAudit is only for type TaurusSqlAudit: remove it or change type"),
    validation = Rule::new("has(self.custom) == (self.type == 'Custom')").message("type Custom needs custom: {enable, disable, verify}, and custom is only for type Custom"),
    validation = Rule::new("self.type != 'None' || !has(self.state) || self.state == 'On'").message("state InstalledOff needs a mechanism to install: type None is the arm without one"),
)]
pub struct AuditSetting {
    /// Name of this level, unique within the axis.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Which mechanism records statements. `None` is the arm in which none is installed.
    #[serde(rename = "type")]
    pub type_: AuditType,
    /// `On` (default), or `InstalledOff`: the mechanism is installed and records nothing, an arm of its own.
    #[serde(default)]
    pub state: AuditState,
    /// MariaDB's server_audit plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_audit: Option<ServerAudit>,
    /// The general query log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub general_log: Option<LogOutput>,
    /// The slow query log with `long_query_time` 0: every statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_log: Option<LogOutput>,
    /// Percona's or Oracle's audit_log plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_log: Option<AuditLogPlugin>,
    /// Percona's component_audit_log_filter (8.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_log_filter: Option<AuditLogFilter>,
    /// McAfee's (Trellix') AUDIT plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mc_afee_audit: Option<McAfeeAudit>,
    /// PostgreSQL's `log_statement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_statement: Option<LogStatement>,
    /// PostgreSQL's pgaudit extension, session logging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pg_audit: Option<PgAudit>,
    /// TaurusDB's SQL audit, switched over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taurus_sql_audit: Option<TaurusSqlAudit>,
    /// A mechanism of your own, by statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomAudit>,
    /// Where the log is written and how large it may grow in a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<AuditLogVolume>,
    /// Further database parameters of this level; they win over template and instance size.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub parameters: Parameters,
}

/// The mechanisms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum AuditType {
    /// Nothing is installed, nothing is recorded.
    #[default]
    None,
    /// MariaDB server_audit plugin.
    ServerAudit,
    /// General query log.
    GeneralLog,
    /// Slow query log with a threshold of 0.
    SlowLog,
    /// Percona audit_log plugin (5.6 to 8.0).
    PerconaAuditLog,
    /// Percona component_audit_log_filter (8.4).
    PerconaAuditLogFilter,
    /// MySQL Enterprise audit_log plugin.
    EnterpriseAuditLog,
    /// McAfee (Trellix) AUDIT plugin.
    McAfeeAudit,
    /// PostgreSQL log_statement.
    LogStatement,
    /// PostgreSQL pgaudit extension.
    PgAudit,
    /// TaurusDB SQL audit.
    TaurusSqlAudit,
    /// By statements of your own.
    Custom,
}

/// Whether the mechanism records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuditState {
    /// Installed and recording.
    #[default]
    On,
    /// Installed, not recording.
    InstalledOff,
}

/// Settings of MariaDB's server_audit plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.events) || !('All' in self.events) || size(self.events) == 1", "message": "events: All stands for every class: give it alone, or list classes without it", "fieldPath": ".events"}
]))]
pub struct ServerAudit {
    /// What is recorded; `All` (default) sets `server_audit_events` to the empty string.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"))]
    pub events: Vec<ServerAuditEvent>,
    /// Users whose statements are not recorded. Never the load generator's: it would measure nothing.
    #[schemars(length(max = 16), inner(length(min = 1, max = 80)), extend("x-kubernetes-list-type" = "set"))]
    pub exclude_users: Vec<String>,
    /// Length in bytes at which a statement is cut (`server_audit_query_log_limit`); the server's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub query_log_limit: Option<i64>,
}

/// Event classes of server_audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ServerAuditEvent {
    /// Every class.
    All,
    /// Connects, disconnects, failed connects.
    Connect,
    /// Statements.
    Query,
    /// Tables read and written by statements.
    Table,
    /// Data definition statements.
    QueryDdl,
    /// Data manipulation statements.
    QueryDml,
    /// Data manipulation statements other than SELECT.
    QueryDmlNoSelect,
    /// Data control statements.
    QueryDcl,
}

/// Where the general or slow log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LogOutput {
    /// `File` (default) or `Table`; a table costs differently and is an arm of its own.
    pub output: LogDestination,
}

/// Destination of a query log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LogDestination {
    /// A file on the log volume.
    #[default]
    File,
    /// A table of the server.
    Table,
}

/// Settings of Percona's and Oracle's audit_log plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditLogPlugin {
    /// What is recorded (default All).
    pub policy: AuditLogPolicy,
    /// How records reach the disk (default Asynchronous); read-only in the server, so it needs a restart.
    pub strategy: AuditLogStrategy,
    /// Log format (default Json).
    pub format: AuditLogFormat,
    /// Bytes of the memory buffer with strategy Asynchronous or Performance; the server's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4096, max = 4_294_967_296i64))]
    pub buffer_size: Option<i64>,
}

/// `audit_log_policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuditLogPolicy {
    /// Everything.
    #[default]
    All,
    /// Logins only.
    Logins,
    /// Statements only.
    Queries,
}

/// `audit_log_strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuditLogStrategy {
    /// Through a buffer; a full buffer makes the server wait.
    #[default]
    Asynchronous,
    /// Through a buffer; a full buffer drops records.
    Performance,
    /// Straight to the file.
    Semisynchronous,
    /// Straight to the file, with fsync.
    Synchronous,
}

/// `audit_log_format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuditLogFormat {
    /// JSON records.
    #[default]
    Json,
    /// Old-style XML (attributes).
    Old,
    /// New-style XML (elements).
    New,
    /// Comma-separated values.
    Csv,
}

/// Settings of Percona's component_audit_log_filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogFilter {
    /// The filter as JSON, such as `{"filter": {"log": true}}`, given to every user.
    #[schemars(length(min = 2, max = 4096))]
    pub filter: String,
}

/// Settings of McAfee's AUDIT plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct McAfeeAudit {
    /// Commands that are not recorded (`audit_whitelist_cmds`); the plugin's default (BEGIN, COMMIT, PING) if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)))]
    pub whitelist_commands: Option<Vec<String>>,
}

/// PostgreSQL's `log_statement`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LogStatement {
    /// Which statements are logged (default All).
    pub statements: LoggedStatements,
}

/// Values of `log_statement`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoggedStatements {
    /// Every statement.
    #[default]
    All,
    /// Data definition only.
    Ddl,
    /// Data definition and modification.
    Mod,
}

/// Settings of pgaudit's session logging.
#[allow(clippy::struct_excessive_bools)] // as many as the extension has
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.classes) || !('All' in self.classes) || size(self.classes) == 1", "message": "classes: All stands for every class: give it alone, or list classes without it", "fieldPath": ".classes"}
]))]
pub struct PgAudit {
    /// Classes for `pgaudit.log` (default All).
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"))]
    pub classes: Vec<PgAuditClass>,
    /// `pgaudit.log_parameter`: also the parameters of a statement (default false).
    pub log_parameter: bool,
    /// `pgaudit.log_relation`: a record for each relation of a statement (default false).
    pub log_relation: bool,
    /// `pgaudit.log_rows`: also the number of rows (default false).
    pub log_rows: bool,
    /// `pgaudit.log_statement_once`: the text only in a statement's first record (default false).
    pub log_statement_once: bool,
}

/// Classes of `pgaudit.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PgAuditClass {
    /// Every class.
    All,
    /// SELECT and COPY from a relation.
    Read,
    /// INSERT, UPDATE, DELETE, TRUNCATE, COPY to a relation.
    Write,
    /// Function calls and DO blocks.
    Function,
    /// Statements about roles and privileges.
    Role,
    /// Data definition.
    Ddl,
    /// DISCARD, FETCH, CHECKPOINT, VACUUM, SET.
    Misc,
}

/// TaurusDB's SQL audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaurusSqlAudit {
    /// Days that logs are kept (`keep_days`, 1 to 732).
    #[schemars(range(min = 1, max = 732))]
    pub keep_days: i32,
}

/// An audit mechanism by statements; each must be in the allow-list grammar (`SET GLOBAL`, `INSTALL PLUGIN`,
/// `UNINSTALL PLUGIN`, `INSTALL SONAME`, `UNINSTALL SONAME`, `ALTER SYSTEM SET`, `SELECT` for verification).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomAudit {
    /// Statements that enable it, in order.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 1024)))]
    pub enable: Vec<String>,
    /// Statements that disable it, in order.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 1024)))]
    pub disable: Vec<String>,
    /// Query whose first column of the first row must equal `expected` while it is enabled.
    pub verify: VerifyQuery,
}

/// A query and the answer that proves a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyQuery {
    /// A SELECT of one value.
    #[schemars(length(min = 1, max = 1024))]
    pub query: String,
    /// The value expected, as text.
    #[schemars(length(max = 256))]
    pub expected: String,
}

/// Where the audit log is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogVolume {
    /// `Separate` (a volume of its own, default) or `WithData` (beside the tables).
    #[serde(default)]
    pub volume: LogVolume,
    /// Bytes that the log may reach in one run; a cell planned above it is refused. Default 10Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::optional_quantity")]
    pub limit: Option<Quantity>,
}

/// The volume of the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LogVolume {
    /// Its own volume.
    #[default]
    Separate,
    /// The data volume.
    WithData,
}
