//! BenchmarkCampaign: the matrix of what is measured, and the questions asked of it.

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema, core::Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::AuditSetting;
use crate::dataset::DatasetPolicy;
use crate::load::{Cache, LoadGenerator, RestartPolicy, RunSettings};
use crate::parameter::{Parameters, Percent};
use crate::placement::{NodeSelector, Toleration};
use crate::run::{Cell, Finding};
use crate::target::{Engine, Expect, IdleTargets, LocalReference, Storage, TargetType};
use crate::workload::Workload;

/// Fields of the spec that are frozen once work has started.
pub const FROZEN: &[&str] = &[
    "databases",
    "instanceSizes",
    "parameterTemplates",
    "auditSettings",
    "workloads",
    "threads",
    "threadSearch",
    "include",
    "exclude",
    "loadGenerator",
    "run",
    "repetitions",
    "inference",
    "order",
    "seed",
    "restart",
    "cache",
    "dataset",
    "comparisons",
    "acceptance",
    "idleTargets",
    "maximumDuration",
];
/// Fields of the spec that stay free.
pub const FREE: &[&str] = &["suspend", "parallelism"];

/// The matrix of what is measured, and the questions asked of it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "benchmark-campaign.dev",
    version = "v1alpha1",
    kind = "BenchmarkCampaign",
    plural = "benchmarkcampaigns",
    shortname = "bc",
    category = "benchmark",
    namespaced,
    status = "BenchmarkCampaignStatus",
    derive = "PartialEq",
    doc = "A BenchmarkCampaign measures a matrix of databases, sizes, parameters, audit settings, workloads and thread counts, and answers the questions asked of it.",
    validation = Rule::new(crate::schema::immutable_once_started(FROZEN)).message("the campaign has started: only suspend and parallelism may change; to measure something else make a new campaign, to measure again set the annotation benchmark-campaign.dev/run-request").reason(Reason::FieldValueForbidden),
    validation = Rule::new("size(self.metadata.name) <= 40").message("metadata.name: a campaign's name may have at most 40 characters, since names of its runs and targets are made from it: choose a shorter one"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Done", type_ = "integer", json_path = ".status.progress.done"),
    printcolumn(name = "Total", type_ = "integer", json_path = ".status.progress.total"),
    printcolumn(name = "Invalid", type_ = "integer", json_path = ".status.progress.invalid"),
    printcolumn(name = "Now", type_ = "string", json_path = ".status.progress.current"),
    printcolumn(name = "Verdict", type_ = "string", json_path = ".status.verdict"),
    printcolumn(name = "Left", type_ = "string", json_path = ".status.progress.timeLeft", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.threads) != has(self.threadSearch)").message("give exactly one of threads (a list of thread counts) and threadSearch"),
    validation = Rule::new("!has(self.comparisons) || self.comparisons.all(c, c.axis != 'AuditSetting' || self.auditSettings.exists(l, l.name == c.baseline))").message("comparisons: the baseline of a comparison over AuditSetting must be the name of one of auditSettings"),
    validation = Rule::new("!has(self.comparisons) || self.comparisons.all(c, c.axis != 'ParameterTemplate' || self.parameterTemplates.exists(l, l.name == c.baseline))").message("comparisons: the baseline of a comparison over ParameterTemplate must be the name of one of parameterTemplates"),
    validation = Rule::new("!has(self.comparisons) || self.comparisons.all(c, c.axis != 'Database' || self.databases.exists(l, l.name == c.baseline))").message("comparisons: the baseline of a comparison over Database must be the name of one of databases"),
    validation = Rule::new("!has(self.comparisons) || self.comparisons.all(c, c.axis != 'InstanceSize' || self.instanceSizes.exists(l, l.name == c.baseline))").message("comparisons: the baseline of a comparison over InstanceSize must be the name of one of instanceSizes"),
    validation = Rule::new("!has(self.acceptance) || (has(self.comparisons) && self.acceptance.all(a, self.comparisons.exists(c, c.name == a.comparison)))").message("acceptance: comparison must be the name of one of comparisons"),
    validation = Rule::new("!has(self.exclude) || self.exclude.all(e, (!has(e.database) || self.databases.exists(l, l.name == e.database)) && (!has(e.instanceSize) || self.instanceSizes.exists(l, l.name == e.instanceSize)) && (!has(e.parameterTemplate) || self.parameterTemplates.exists(l, l.name == e.parameterTemplate)) && (!has(e.auditSetting) || self.auditSettings.exists(l, l.name == e.auditSetting)) && (!has(e.workload) || self.workloads.exists(l, l.name == e.workload)))").message("exclude: every name must be that of a level of its axis (databases, instanceSizes, parameterTemplates, auditSettings, workloads)").field_path(".exclude"),
    validation = Rule::new("!has(self.include) || self.include.all(e, (!has(e.database) || self.databases.exists(l, l.name == e.database)) && (!has(e.instanceSize) || self.instanceSizes.exists(l, l.name == e.instanceSize)) && (!has(e.parameterTemplate) || self.parameterTemplates.exists(l, l.name == e.parameterTemplate)) && (!has(e.auditSetting) || self.auditSettings.exists(l, l.name == e.auditSetting)) && (!has(e.workload) || self.workloads.exists(l, l.name == e.workload)))").message("include: every name must be that of a level of its axis (databases, instanceSizes, parameterTemplates, auditSettings, workloads)").field_path(".include"),
    validation = Rule::new("self.inference == 'Descriptive' || !has(self.repetitions.blocks) || self.repetitions.blocks >= 6").message("repetitions.blocks must be at least 6 to support a verdict; for fewer set inference: Descriptive, which prints numbers and no verdicts").field_path(".repetitions"),
    validation = Rule::new("self.inference == 'Comparative' || !has(self.acceptance) || size(self.acceptance) == 0").message("acceptance needs inference: Comparative: descriptive numbers support no verdict").field_path(".acceptance"),
    validation = Rule::new("self.inference == 'Comparative' || !has(self.repetitions.looks)").message("repetitions.looks needs inference: Comparative: without verdicts there is nothing to stop for; give repetitions.blocks").field_path(".repetitions"),
    validation = Rule::new("duration(self.maximumDuration) >= duration('1m')").message("maximumDuration must be at least 1m").field_path(".maximumDuration"),
    validation = Rule::new("self.databases.all(d, !has(d.external) || d.external.targets.all(t, self.instanceSizes.exists(l, l.name == t.instanceSize)))").message("databases: external.targets[].instanceSize must be the name of one of instanceSizes").field_path(".databases"),
    validation = Rule::new("self.parameterTemplates.all(t, !has(t.perDatabase) || t.perDatabase.all(p, self.databases.exists(l, l.name == p.database)))").message("parameterTemplates: perDatabase[].database must be the name of one of databases").field_path(".parameterTemplates"),
    validation = Rule::new("!self.workloads.exists(w, w.type == 'Pgbench') || self.databases.exists(d, d.engine == 'PostgreSQL')").message("workloads: type Pgbench needs a database with engine PostgreSQL; use type Sysbench for the others").field_path(".workloads"),
)]
pub struct BenchmarkCampaignSpec {
    /// Axis: the databases.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub databases: Vec<Database>,
    /// Axis: instance sizes of managed databases, and names for the sizes of borrowed ones.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub instance_sizes: Vec<InstanceSize>,
    /// Axis: parameter templates (default: one without parameters).
    #[serde(default = "default_templates")]
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub parameter_templates: Vec<ParameterTemplate>,
    /// Axis: audit settings (default: one of type None).
    #[serde(default = "default_audit_settings")]
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub audit_settings: Vec<AuditSetting>,
    /// Axis: workloads.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub workloads: Vec<Workload>,
    /// Axis: client threads; an instance size may have its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 100_000)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub threads: Option<Vec<i32>>,
    /// Instead of a list: look for the thread count at which throughput stops growing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_search: Option<ThreadSearch>,
    /// Only cells that match one of these; every cell if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub include: Vec<CellSelector>,
    /// No cell that matches one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub exclude: Vec<CellSelector>,
    /// Pods that apply load.
    #[serde(default)]
    pub load_generator: LoadGenerator,
    /// One measured run.
    #[serde(default)]
    pub run: RunSettings,
    /// How often every arm is measured (default: 6 blocks).
    #[serde(default)]
    pub repetitions: Repetitions,
    /// `Comparative` (default): verdicts. `Descriptive`: numbers that support none.
    #[serde(default)]
    pub inference: Inference,
    /// `Balanced` (default) or `Grouped` (as a for-loop does it, to repeat a published study).
    #[serde(default)]
    pub order: Order,
    /// Random seed of orders and load; from the UID and iteration if absent, and shown in the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seed: Option<i64>,
    /// Restarts and settling.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// Cache state at the start of load.
    #[serde(default)]
    pub cache: Cache,
    /// Data policy.
    #[serde(default)]
    pub dataset: DatasetPolicy,
    /// The questions: which axis is compared, against which baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub comparisons: Vec<Comparison>,
    /// What must hold for `AcceptancePassed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub acceptance: Vec<AcceptanceCriterion>,
    /// Runs measured at once, never two on one node (default 1).
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    pub parallelism: i32,
    /// Managed databases that are not being measured: `Stop` (default) or `Keep`.
    #[serde(default = "stop")]
    pub idle_targets: IdleTargets,
    /// A plan estimated to take longer is refused with its estimate (default 4h).
    #[serde(default = "four_hours")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub maximum_duration: Duration,
    /// Start nothing new; what runs is finished (default false).
    #[serde(default)]
    pub suspend: bool,
}

fn default_templates() -> Vec<ParameterTemplate> {
    vec![ParameterTemplate {
        name: "default".into(),
        ..ParameterTemplate::default()
    }]
}
fn default_audit_settings() -> Vec<AuditSetting> {
    vec![AuditSetting {
        name: "no-audit".into(),
        ..AuditSetting::default()
    }]
}
fn one() -> i32 {
    1
}
fn stop() -> IdleTargets {
    IdleTargets::Stop
}
fn four_hours() -> Duration {
    crate::load::seconds(4 * 3600)
}

/// One level of the database axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.managed) == (self.type == 'Managed')").message("type Managed needs managed: {image}, and managed is only for type Managed"),
    validation = Rule::new("has(self.external) == (self.type == 'External')").message("type External needs external: {targets}, and external is only for type External"),
)]
pub struct Database {
    /// Name of this level, unique within the axis.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Database engine.
    pub engine: Engine,
    /// Managed (the operator runs one instance per size) or External (borrowed).
    #[serde(rename = "type")]
    pub type_: TargetType,
    /// What the server must turn out to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// How managed instances are run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<ManagedDatabase>,
    /// The borrowed instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalDatabase>,
}

/// How managed instances are run; CPUs and memory come from the instance size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedDatabase {
    /// Image with the server's own programs, such as `mariadb:11.8`.
    #[schemars(length(min = 1, max = 512), regex(pattern = "^[^ \\t]+$"))]
    pub image: String,
    /// Parameters that are the same in every run; template, instance size and audit setting win over them.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    #[schemars(extend("maxProperties" = 128))]
    pub configuration: Parameters,
    /// Volume for the data.
    #[serde(default)]
    pub storage: Storage,
    /// Node labels that the pods require.
    #[serde(default, skip_serializing_if = "NodeSelector::is_empty")]
    #[schemars(schema_with = "crate::schema::node_selector")]
    pub node_selector: NodeSelector,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
}

/// The borrowed instances of a database, one per size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalDatabase {
    /// Which target stands for which instance size.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["instanceSize".into()]))]
    pub targets: Vec<ExternalTarget>,
}

/// A borrowed instance of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalTarget {
    /// Name of a level of instanceSizes.
    #[schemars(length(min = 1, max = 40))]
    pub instance_size: String,
    /// The BenchmarkTarget.
    pub target_ref: LocalReference,
}

/// One level of the instance size axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("quantity(string(self.cpu)).compareTo(quantity('50m')) >= 0").message("cpu must be at least 50m, such as \"4\" or 500m").field_path(".cpu"),
    validation = Rule::new("quantity(string(self.memory)).compareTo(quantity('64Mi')) >= 0").message("memory must be at least 64Mi: give it with its unit, such as 16Gi").field_path(".memory"),
)]
pub struct InstanceSize {
    /// Name of this level, unique within the axis.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// CPUs of the server, such as `"4"` or `500m`. A whole number can get cores of its own.
    #[schemars(schema_with = "crate::schema::quantity")]
    pub cpu: Quantity,
    /// Memory of the server in bytes, such as `16Gi`.
    #[schemars(schema_with = "crate::schema::quantity")]
    pub memory: Quantity,
    /// Parameters of this size; they win over the template's.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub parameters: Parameters,
    /// Thread counts of this size, instead of the campaign's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 100_000)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub threads: Option<Vec<i32>>,
}

/// One level of the template axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParameterTemplate {
    /// Name of this level, unique within the axis.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Parameters by name.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub parameters: Parameters,
    /// Parameters for one database only; they win over `parameters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["database".into()]))]
    pub per_database: Vec<DatabaseParameters>,
}

/// Parameters for one database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseParameters {
    /// Name of a level of databases.
    #[schemars(length(min = 1, max = 40))]
    pub database: String,
    /// Parameters by name.
    #[schemars(extend("maxProperties" = 64))]
    pub parameters: Parameters,
}

/// Search for the thread count at which throughput stops growing, on the baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.minimum <= self.maximum").message("minimum may not be above maximum"))]
pub struct ThreadSearch {
    /// Smallest thread count.
    #[schemars(range(min = 1, max = 100_000))]
    pub minimum: i32,
    /// Largest thread count; the grid doubles from minimum to here.
    #[schemars(range(min = 1, max = 100_000))]
    pub maximum: i32,
    /// Stop where the 95th percentile of latency is above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::optional_duration")]
    pub latency_limit: Option<Duration>,
}

/// Cells by any of their axes; absent axes match every level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.database) || has(self.instanceSize) || has(self.parameterTemplate) || has(self.auditSetting) || has(self.workload) || has(self.threads)", "message": "name at least one axis: database, instanceSize, parameterTemplate, auditSetting, workload or threads"}
]))]
pub struct CellSelector {
    /// Name of a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub database: Option<String>,
    /// Name of an instance size.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub instance_size: Option<String>,
    /// Name of a parameter template.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub parameter_template: Option<String>,
    /// Name of an audit setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub audit_setting: Option<String>,
    /// Name of a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub workload: Option<String>,
    /// Thread counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 100_000)))]
    pub threads: Option<Vec<i32>>,
}

/// How often every arm is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!(has(self.blocks) && has(self.looks))", "message": "give blocks (a fixed number) or looks (planned sizes), not both"}
]))]
pub struct Repetitions {
    /// Blocks of every comparison (default 6).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub blocks: Option<i32>,
    /// Planned sizes at which the data are looked at; measuring stops at the first that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looks>,
}

/// Planned looks, whose error rates were simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Looks {
    /// Looks after 6, 8 and 10 blocks, each at p < .0247.
    UpTo10,
    /// Looks after 6, 8, 12, 16 and 20 blocks, each at p < .0156.
    UpTo20,
}

/// Whether verdicts are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Inference {
    /// Verdicts, from at least 6 blocks.
    #[default]
    Comparative,
    /// Numbers that support no verdict.
    Descriptive,
}

/// Order of visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Order {
    /// Arms alternate within blocks, balanced over blocks.
    #[default]
    Balanced,
    /// All repetitions of an arm, then the next arm: as a for-loop does.
    Grouped,
}

/// An axis.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Axis {
    /// databases
    Database,
    /// instanceSizes
    InstanceSize,
    /// parameterTemplates
    ParameterTemplate,
    /// auditSettings
    #[default]
    AuditSetting,
}

/// What is compared.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Metric {
    /// Queries per second; more is better.
    #[default]
    Qps,
    /// Transactions per second; more is better.
    Tps,
    /// Transactions in the window; more is better.
    Transactions,
    /// Mean latency; less is better.
    LatencyMean,
    /// 95th percentile of latency; less is better.
    LatencyP95,
    /// Server CPU time per statement; explains, never decides.
    CpuPerStatement,
    /// Bytes of audit log per 1,000 statements.
    LogBytes,
}

/// One question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(self.primary in ['CpuPerStatement', 'LogBytes'])").message("primary must be a metric that can decide: Qps, Tps, Transactions, LatencyMean or LatencyP95").field_path(".primary"),
    validation = Rule::new("self.primary != 'LatencyP95' || self.equivalenceMargin.matches('^0?([4-9]|[1-9][0-9]+)([.][0-9]+)?%$')").message("equivalenceMargin for LatencyP95 must be at least 4%: the histogram's steps are 1.8%").field_path(".equivalenceMargin"),
    validation = Rule::new("self.equivalenceMargin.matches('[1-9]') && !self.equivalenceMargin.startsWith('100')").message("equivalenceMargin must be above 0% and below 100%, such as 5%").field_path(".equivalenceMargin"),
)]
pub struct Comparison {
    /// Name, unique.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Axis whose levels are compared.
    pub axis: Axis,
    /// Level that the others are set against.
    #[schemars(length(min = 1, max = 63))]
    pub baseline: String,
    /// The levels that are set against it (default: all others of the axis). With them, several comparisons over one axis
    /// can have arms and a baseline each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 15), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub levels: Vec<String>,
    /// The metric that decides (default Qps).
    #[serde(default)]
    pub primary: Metric,
    /// Differences within this are called equivalent (default 5%).
    #[serde(default = "five_percent")]
    pub equivalence_margin: Percent,
    /// Measure the baseline twice in every block (an A/A arm): if the two differ, the bench is unstable (default false).
    #[serde(default)]
    pub noise_floor: bool,
}

impl Comparison {
    /// Whether a level of its axis is one of its arms.
    pub fn takes(&self, level: &str) -> bool {
        self.levels.is_empty() || level == self.baseline || self.levels.iter().any(|own| own == level)
    }
}

fn five_percent() -> Percent {
    Percent::from_ppm(50_000)
}

/// One criterion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptanceCriterion {
    /// Name of a comparison.
    #[schemars(length(min = 1, max = 40))]
    pub comparison: String,
    /// Metric (default: the comparison's primary).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Largest worsening against the baseline that is accepted.
    pub maximum_worsening: Percent,
}

/// Where the campaign is, and what it found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BenchmarkCampaignStatus {
    /// Generation of the spec that the rest speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it is, in one word.
    pub state: CampaignState,
    /// How often it was asked to run again.
    pub iteration: i64,
    /// Tokens of run requests already seen, newest last.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub run_requests: Vec<String>,
    /// Random seed in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// When measuring began; from then on the spec is frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// What will be done, computed before anything runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSummary>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Invalid runs by reason.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<ReasonCount>,
    /// Blocks that were repeated or lost.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockStatus>,
    /// Repeated or lost blocks beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub blocks_omitted: i64,
    /// All verdicts in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub verdict: Option<String>,
    /// Answers to the questions, the primary effects first.
    #[schemars(length(max = 32))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// Answers beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub answers_omitted: i64,
    /// Criteria and whether they hold.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<AcceptanceStatus>,
    /// Means of cells, the largest effects first; all data is in the runs.
    #[schemars(length(max = 100))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellResult>,
    /// Cells beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub cells_omitted: i64,
    /// Conditions: Ready, Reconciling, Stalled, Finished, Succeeded, AcceptancePassed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// Where a campaign is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CampaignState {
    /// Not looked at yet.
    #[default]
    Pending,
    /// The plan or a reference was refused; correct the spec.
    Refused,
    /// Targets are being started and asked what they can do.
    Preparing,
    /// Waiting for a target or node that another campaign holds.
    Queued,
    /// Measuring.
    Running,
    /// Held by `suspend`.
    Suspended,
    /// Ended as asked.
    Completed,
    /// Ended with blocks lost, or without an end.
    Failed,
}

/// What will be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanSummary {
    /// Cells of the matrix after include and exclude.
    pub cells: i64,
    /// Blocks, burn-in left out.
    pub blocks: i64,
    /// Visits: boots of a server, burn-in included.
    pub visits: i64,
    /// Measured runs, burn-in included.
    pub runs: i64,
    /// Runs of the burn-in.
    pub burn_in_runs: i64,
    /// Estimated length in all, seconds.
    pub estimated_seconds: i64,
    /// Database instances that are used.
    #[schemars(length(max = 256))]
    pub targets: Vec<String>,
    /// What overrode what, inert parameters, arms that trade durability, and other things worth knowing.
    #[schemars(length(max = 32))]
    pub notes: Vec<String>,
    /// Notes beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub notes_omitted: i64,
    /// Bytes of audit log expected of the largest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_log_bytes: Option<i64>,
    /// Smallest effect that the planned blocks can resolve given the noise seen so far, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_effect_ppm: Option<i64>,
    /// Chance that arms without a difference are called Equivalent given the noise seen so far, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalent_chance_ppm: Option<i64>,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Places of the plan that are measured, burn-in included.
    pub done: i64,
    /// Places of the plan.
    pub total: i64,
    /// Runs that were invalid, all attempts counted.
    pub invalid: i64,
    /// Blocks that were given up.
    pub blocks_lost: i64,
    /// What runs now, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub current: Option<String>,
    /// Estimated time left, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<i64>,
    /// The same in words, such as `7m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub time_left: Option<String>,
}

/// How many runs were invalid for a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonCount {
    /// CamelCase reason.
    pub reason: String,
    /// Number of runs.
    pub count: i64,
}

/// A block that was repeated or lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockStatus {
    /// Comparison, empty for cells in none.
    pub comparison: String,
    /// The axes that are fixed in the block, in words.
    #[serde(default)]
    pub context: String,
    /// Block, from 1.
    pub block: i32,
    /// Attempts made.
    pub attempts: i32,
    /// `Repeating`, `Repeated` (a later attempt counts) or `Lost`.
    pub outcome: BlockOutcome,
    /// Why earlier attempts do not count.
    #[schemars(length(max = 8))]
    pub reasons: Vec<Finding>,
}

/// What became of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BlockOutcome {
    /// It is being measured again.
    #[default]
    Repeating,
    /// A later attempt counts.
    Repeated,
    /// It was given up.
    Lost,
}

/// A verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// The data cannot tell.
    #[default]
    Inconclusive,
    /// Within the margin.
    Equivalent,
    /// Better than the baseline.
    Better,
    /// Worse than the baseline.
    Worse,
    /// Numbers without a verdict.
    Descriptive,
}

/// The answer to one question: one effect of one level against its baseline with the other axes fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    /// Comparison.
    pub comparison: String,
    /// Level.
    pub level: String,
    /// Baseline.
    pub baseline: String,
    /// The axes that are fixed, in words.
    pub context: String,
    /// Metric.
    pub metric: Metric,
    /// Verdict.
    pub verdict: Verdict,
    /// Why, in one CamelCase word (`Noisy`, `NotEnoughRestarts`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is worth knowing (`CarryOver`, `LockBound`, `ThisPairOfInstances`, …).
    #[schemars(length(max = 8))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Estimated effect: the ratio to the baseline less 1, parts per million (-100,000 is 10 % less).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_ppm: Option<i64>,
    /// Lower end of the interval, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_ppm: Option<i64>,
    /// Upper end of the interval, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_ppm: Option<i64>,
    /// Confidence of the interval, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_ppm: Option<i64>,
    /// Two-sided p value adjusted by Holm's method, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjusted_p_ppm: Option<i64>,
    /// Blocks that count.
    pub blocks: i64,
    /// Mean of the baseline in the metric's unit, thousandths (latency: microseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_milli: Option<i64>,
    /// Mean of the level in the metric's unit, thousandths (latency: microseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level_milli: Option<i64>,
    /// The answer in a sentence.
    #[schemars(length(max = 512))]
    pub sentence: String,
    /// The same effect at each thread count.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub per_threads: Vec<ThreadsAnswer>,
    /// Other metrics, exploratory: intervals without verdicts.
    #[schemars(length(max = 8))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exploratory: Vec<ExploratoryEffect>,
}

/// An effect at one thread count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadsAnswer {
    /// Client threads.
    pub threads: i32,
    /// Verdict; given only if the primary effect rejects.
    pub verdict: Verdict,
    /// Estimated effect, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_ppm: Option<i64>,
    /// Lower end, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_ppm: Option<i64>,
    /// Upper end, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_ppm: Option<i64>,
    /// Mean of the baseline, thousandths of the metric's unit (latency: microseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_milli: Option<i64>,
    /// Mean of the level, thousandths of the metric's unit (latency: microseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level_milli: Option<i64>,
}

/// An effect on a metric that does not decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExploratoryEffect {
    /// Metric.
    pub metric: Metric,
    /// Estimated effect, parts per million; absent where the baseline is 0 (no audit log).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_ppm: Option<i64>,
    /// Lower end, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_ppm: Option<i64>,
    /// Upper end, parts per million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_ppm: Option<i64>,
    /// Mean of the level, thousandths of the metric's unit (latency: microseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level_milli: Option<i64>,
}

/// A criterion and whether it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptanceStatus {
    /// Comparison.
    pub comparison: String,
    /// Metric.
    pub metric: Metric,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a sentence.
    #[schemars(length(max = 512))]
    pub message: String,
}

/// Means of one cell over its valid runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellResult {
    /// The cell.
    pub cell: Cell,
    /// Valid runs.
    pub runs: i64,
    /// Mean transactions per second, thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tps_milli: Option<i64>,
    /// Mean queries per second, thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps_milli: Option<i64>,
    /// Coefficient of variation of queries per second over runs, parts per million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps_cv_ppm: Option<i64>,
    /// Mean of the 95th percentiles of latency, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p95_micros: Option<i64>,
    /// Mean bytes of audit log per 1,000 statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes_per_1000_statements: Option<i64>,
}

/// Resources of the runner's container if the load generator names none.
pub fn default_generator_resources() -> ResourceRequirements {
    let quantity = |pairs: &[(&str, &str)]| {
        Some(
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), Quantity((*v).to_owned())))
                .collect(),
        )
    };
    ResourceRequirements {
        requests: quantity(&[("cpu", "250m"), ("memory", "256Mi")]),
        limits: quantity(&[("memory", "512Mi")]),
        claims: None,
    }
}
