//! BenchmarkTarget: one database instance, run by the operator (`Managed`) or borrowed from its owner (`External`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema, core::Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::{AuditSetting, AuditType};
use crate::dataset::DatasetStatus;
use crate::parameter::Parameters;
use crate::placement::{NodeSelector, Toleration};

/// One database instance on which runs are measured.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "benchmark-campaign.dev",
    version = "v1alpha1",
    kind = "BenchmarkTarget",
    plural = "benchmarktargets",
    shortname = "bt",
    category = "benchmark",
    namespaced,
    status = "BenchmarkTargetStatus",
    derive = "PartialEq",
    doc = "A BenchmarkTarget is one database instance: run by the operator (Managed) or borrowed (External).",
    printcolumn(name = "Engine", type_ = "string", json_path = ".spec.engine"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Held by", type_ = "string", json_path = ".status.holder.name"),
    printcolumn(name = "Boots", type_ = "integer", json_path = ".status.boot.serial"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.node", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.managed) == (self.type == 'Managed')").message("type Managed needs managed: {image, resources, storage}, and managed is only for type Managed"),
    validation = Rule::new("has(self.external) == (self.type == 'External')").message("type External needs external: {host, credentialsSecretRef}, and external is only for type External"),
    validation = Rule::new("!(self.engine == 'PostgreSQL' && has(self.external) && has(self.external.restart) && self.external.restart.type == 'Statement')").message("no statement restarts a PostgreSQL server: use type Workload, Job or Http").field_path(".external.restart"),
    validation = Rule::new("self.engine == oldSelf.engine && self.type == oldSelf.type").message("engine and type cannot change: make a new BenchmarkTarget"),
)]
pub struct BenchmarkTargetSpec {
    /// Database engine. Flavours (Percona Server, TaurusDB, …) are found, or expected with `expect`.
    pub engine: Engine,
    /// Managed (run by the operator) or External (borrowed).
    #[serde(rename = "type")]
    pub type_: TargetType,
    /// What the server must turn out to be; otherwise the target is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// How a managed instance is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<Managed>,
    /// How a borrowed instance is reached, and what its owner permits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
}

/// Database engines.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Engine {
    /// MySQL and its kin: Oracle, Percona Server, TaurusDB.
    MySQL,
    /// MariaDB.
    #[default]
    MariaDB,
    /// PostgreSQL.
    PostgreSQL,
}

/// Whose instance it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TargetType {
    /// The operator runs it.
    #[default]
    Managed,
    /// It belongs to somebody else.
    External,
}

/// What the server must turn out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Expect {
    /// Flavour, such as `Percona` or `TaurusDB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub flavour: Option<String>,
    /// Version prefix, such as `8.0` or `10.11.6`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub version: Option<String>,
}

/// How a managed instance is run: one Pod, its volumes, a headless Service and a generated Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("quantity(string(self.cpu)).compareTo(quantity('50m')) >= 0").message("cpu must be at least 50m, such as \"4\" or 500m").field_path(".cpu"),
    validation = Rule::new("quantity(string(self.memory)).compareTo(quantity('64Mi')) >= 0").message("memory must be at least 64Mi: give it with its unit, such as 16Gi").field_path(".memory"),
)]
pub struct Managed {
    /// Image with the server's own programs, such as `mariadb:11.8`.
    #[schemars(length(min = 1, max = 512), regex(pattern = "^[^ \\t]+$"))]
    pub image: String,
    /// CPUs; requests equal limits so that the pod is Guaranteed. A whole number can get cores of its own.
    #[schemars(schema_with = "crate::schema::quantity")]
    pub cpu: Quantity,
    /// Memory, bytes; requests equal limits.
    #[schemars(schema_with = "crate::schema::quantity")]
    pub memory: Quantity,
    /// Parameters that are the same in every run (a base below template, instance size and audit setting).
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    #[schemars(extend("maxProperties" = 128))]
    pub configuration: Parameters,
    /// Volume for the data.
    #[serde(default)]
    pub storage: Storage,
    /// Volume for audit logs; beside the data if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_storage: Option<Storage>,
    /// Node labels that the pod requires. After its first start it stays on the node it got.
    #[serde(default, skip_serializing_if = "NodeSelector::is_empty")]
    #[schemars(schema_with = "crate::schema::node_selector")]
    pub node_selector: NodeSelector,
    /// Taints that the pod tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// Whether the server runs while nobody holds the target: `Keep` (default) or `Stop`.
    #[serde(default)]
    pub idle: IdleTargets,
    /// User and group id of the server (default 999, as in the official images).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub run_as_user: Option<i64>,
}

/// Whether idle managed servers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IdleTargets {
    /// They keep running.
    #[default]
    Keep,
    /// They are stopped; the volume stays.
    Stop,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Storage {
    /// Requested size (default 10Gi).
    #[schemars(schema_with = "crate::schema::quantity")]
    pub size: Quantity,
    /// Storage class; the cluster's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            size: Quantity("10Gi".into()),
            storage_class_name: None,
        }
    }
}

/// How a borrowed instance is reached, and what its owner permits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// Host name or address, without scheme, port or login.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = "^[A-Za-z0-9:]([-A-Za-z0-9._:]*[A-Za-z0-9])?$")
    )]
    pub host: String,
    /// Port; the engine's own (3306, 5432) if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Transport security.
    #[serde(default)]
    pub tls: Tls,
    /// Secret in the same namespace with `username` and `password` (and `ca.crt` for TLS); it must carry the label
    /// `benchmark-campaign.dev/credentials: "true"`.
    pub credentials_secret_ref: LocalReference,
    /// What the owner permits; nothing by default.
    #[serde(default)]
    pub permissions: Permissions,
    /// How the server is restarted, if that is permitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartRoute>,
    /// Ways to set what SQL cannot (cloud parameter groups, audit policies).
    #[serde(default)]
    pub hooks: Hooks,
    /// Place in a replication topology, checked before every run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Size of the instance, for budgets: CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::optional_quantity")]
    pub cpu: Option<Quantity>,
    /// Size of the instance, for budgets: memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::optional_quantity")]
    pub memory: Option<Quantity>,
}

/// A reference to an object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalReference {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Transport security of the connection to a borrowed database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tls {
    /// `Verify` (default: certificate and host name), `VerifyCa` or `Disabled`. Logins in clear text need `Verify`.
    pub mode: TlsMode,
    /// Name expected in the certificate; the host if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub server_name: Option<String>,
}

/// How far the server's certificate is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TlsMode {
    /// Certificate and host name.
    #[default]
    Verify,
    /// Certificate only.
    VerifyCa,
    /// No TLS.
    Disabled,
}

/// What the owner of a borrowed database permits. Whatever is not named here is refused when a campaign is planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Permissions {
    /// Parameters that may be changed: names, or globs such as `innodb_*`.
    #[schemars(
        length(max = 64),
        inner(length(min = 1, max = 128), regex(pattern = "^[A-Za-z0-9_.*?-]+$"))
    )]
    pub parameters: Vec<String>,
    /// Audit mechanisms that may be switched.
    #[schemars(length(max = 16))]
    pub audit: Vec<AuditType>,
    /// Whether the server may be restarted (default false).
    pub restart: bool,
    /// The one schema that may be made, filled and dropped; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub dataset_schema: Option<String>,
}

/// How a borrowed server is restarted. A union whose `type` names the member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.workload) == (self.type == 'Workload')").message("type Workload needs workload, and workload is only for type Workload"),
    validation = Rule::new("has(self.job) == (self.type == 'Job')").message("type Job needs job, and job is only for type Job"),
    validation = Rule::new("has(self.http) == (self.type == 'Http')").message("type Http needs http, and http is only for type Http"),
)]
pub struct RestartRoute {
    /// `Statement` (RESTART where supervised, else SHUTDOWN with something that brings the server back), `Workload`, `Job` or `Http`.
    #[serde(rename = "type")]
    pub type_: RouteType,
    /// The workload whose pod is restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadReference>,
    /// A Job of the owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobHook>,
    /// An HTTP call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpHook>,
}

/// Kinds of route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RouteType {
    /// An SQL statement.
    #[default]
    Statement,
    /// A pod of a StatefulSet or Deployment.
    Workload,
    /// A Job.
    Job,
    /// An HTTP call.
    Http,
}

/// A workload in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// `StatefulSet`, `Deployment` or `Pod`.
    pub kind: WorkloadKind,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// `DeletePod` (default) or `Rollout` (as `kubectl rollout restart`).
    #[serde(default)]
    pub method: WorkloadRestart,
}

/// Kinds of workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadKind {
    /// A StatefulSet.
    #[default]
    StatefulSet,
    /// A Deployment.
    Deployment,
    /// A Pod that its own operator recreates.
    Pod,
}

/// How a workload is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadRestart {
    /// Its pod is deleted.
    #[default]
    DeletePod,
    /// Its pod template gets the restart annotation.
    Rollout,
}

/// A Job of the owner's: environment `BENCHMARK_ACTION` and `BENCHMARK_IDEMPOTENCY_KEY` tell it what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobHook {
    /// The pod to run, checked by a dry-run create; its service account must be allowed in the chart's values.
    #[schemars(schema_with = "crate::schema::preserve_unknown")]
    pub template: PodTemplateSpec,
    /// How long it may take (default 15m).
    #[serde(default = "hook_timeout")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub timeout: Duration,
}

/// An HTTP call. Link-local, loopback and the API server's addresses are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpHook {
    /// `PUT`, `POST`, `PATCH`, `DELETE` or `GET`.
    pub method: HttpMethod,
    /// URL; `https` unless the target is in the cluster.
    #[schemars(length(min = 8, max = 2048), regex(pattern = "^https?://"))]
    pub url: String,
    /// Secret in the same namespace whose keys are header names; same label as credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_secret_ref: Option<LocalReference>,
    /// Body, a template in which `{{ action }}`, `{{ parameters }}`, `{{ audit }}` and `{{ idempotencyKey }}` are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub body: Option<String>,
    /// CEL over `status` and `body`: true when the call was accepted. Default: a status from 200 to 299.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub success: Option<String>,
    /// URL polled with GET until `until` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll: Option<HttpPoll>,
    /// How long it may take in all (default 15m).
    #[serde(default = "hook_timeout")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub timeout: Duration,
}

fn hook_timeout() -> Duration {
    crate::load::seconds(900)
}

/// Polling after an HTTP call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpPoll {
    /// URL.
    #[schemars(length(min = 8, max = 2048), regex(pattern = "^https?://"))]
    pub url: String,
    /// CEL over `status` and `body`: true when it is done.
    #[schemars(length(min = 1, max = 1024))]
    pub until: String,
}

/// HTTP methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// GET
    Get,
    /// PUT
    Put,
    /// POST
    Post,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

/// Ways to set what SQL cannot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Hooks {
    /// Sets parameters (cloud parameter groups).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_parameters: Option<Hook>,
    /// Switches audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_audit: Option<Hook>,
}

/// One hook: a Job or an HTTP call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.job) != has(self.http)", "message": "a hook is exactly one of job and http"}
]))]
pub struct Hook {
    /// A Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobHook>,
    /// An HTTP call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpHook>,
}

/// Place in a replication topology.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Topology {
    /// Role that the server must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Replicas that must be connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 64))]
    pub replicas: Option<i32>,
}

/// Replication roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Role {
    /// Takes writes.
    Primary,
    /// Follows a primary.
    Replica,
}

/// What is known of the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BenchmarkTargetStatus {
    /// Generation of the spec that the rest speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Server version as the server says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Flavour found (`MariaDB`, `MySQL`, `Percona`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavour: Option<String>,
    /// Identity of the server's data (`server_uuid`, `@@server_uid` or `system_identifier`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_identity: Option<String>,
    /// The current boot; absent while the server is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    /// What it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// What it holds for us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetStatus>,
    /// Who may use it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Node of a managed instance: it stays there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What a borrowed server had before the first change; put back when the target is let go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_state: Option<OriginalState>,
    /// Why the last boot failed, with the end of the server's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_failure: Option<BootFailure>,
    /// Conditions: Ready, Reconciling, Stalled, OriginalStateRestored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// One life of the server process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Boot {
    /// Which request it answers (`holder.boot.serial`); 0 for a boot that nobody asked for.
    #[serde(default)]
    pub serial: i64,
    /// Identity: pod UID and container ID (managed); server identity, host and start time (borrowed).
    pub identity: String,
    /// Hash of the configuration that it started with.
    #[serde(default)]
    pub configuration_hash: String,
    /// Address of the pod or host.
    #[serde(default)]
    pub address: String,
    /// UID of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// Image digest of the database's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// When the server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Whether the shutdown before it was clean: `Yes`, `No` (recovery was needed) or `Unknown`.
    #[serde(default)]
    pub clean_shutdown: CleanShutdown,
}

/// Whether a shutdown was clean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CleanShutdown {
    /// It was.
    Yes,
    /// The server had to recover.
    No,
    /// Not known.
    #[default]
    Unknown,
}

/// Why a boot failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootFailure {
    /// The boot request that failed.
    pub serial: i64,
    /// CamelCase reason.
    pub reason: String,
    /// What was seen, and what to do; under 512 bytes.
    pub message: String,
}

/// What a server can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// Audit mechanisms that can be used here.
    pub audit: Vec<AuditType>,
    /// Mechanisms whose statements follow the vendor's manual and were not tried on a real server by this project.
    pub unverified: Vec<AuditType>,
    /// Whether parameters can be persisted by SQL (`SET PERSIST`, `ALTER SYSTEM`).
    pub persist: bool,
    /// Whether the server can restart itself by SQL.
    pub restart_statement: bool,
}

/// Who may use the target now. Taken and given up by compare-and-swap of the whole status. After it was given up the
/// names are empty; epoch and boot request stay, since both only ever grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// `BenchmarkCampaign`, or `BenchmarkRun` for a run made by hand.
    pub kind: String,
    /// Name of the holder.
    pub name: String,
    /// UID of the holder.
    pub uid: String,
    /// Run that uses it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReference>,
    /// Grows by one with every run that takes the target; written to the fence row of the database.
    #[serde(default)]
    pub epoch: i64,
    /// The boot that the holder asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootRequest>,
}

/// A run by name and UID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunReference {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

/// A boot that a holder asks for: the server is stopped, if it runs, and started with this configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootRequest {
    /// Grows by one with every request.
    pub serial: i64,
    /// Parameters over the target's own configuration.
    #[serde(default)]
    pub parameters: Parameters,
    /// Audit setting whose persistent part (plugins, paths) belongs into the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditSetting>,
}

/// What a borrowed server had before the first change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OriginalState {
    /// Values of parameters, as read.
    pub parameters: BTreeMap<String, String>,
    /// Values persisted by SQL (`mysqld-auto.cnf`, `postgresql.auto.conf`); null where none was.
    pub persisted: BTreeMap<String, Option<String>>,
    /// Plugins and components that were active.
    pub plugins: Vec<String>,
    /// Schemas that were there.
    pub schemas: Vec<String>,
    /// Whether the schema that we made stays (`dataset.retain` of the runs).
    pub retain: bool,
    /// When it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<Time>,
}

/// Resources of a container of a managed pod, kept here so that crates agree on the agent's share.
pub fn agent_resources() -> ResourceRequirements {
    let quantities = BTreeMap::from([
        ("cpu".to_owned(), Quantity("50m".into())),
        ("memory".to_owned(), Quantity("64Mi".into())),
    ]);
    ResourceRequirements {
        limits: Some(quantities.clone()),
        requests: Some(quantities),
        claims: None,
    }
}
