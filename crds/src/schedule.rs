//! BenchmarkSchedule: a cron expression, a campaign template, a history and a regression gate.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema, core::Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::campaign::BenchmarkCampaignSpec;
use crate::parameter::Percent;
use crate::target::{HttpHook, LocalReference};

/// Runs a campaign by the clock and watches for regressions.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "benchmark-campaign.dev",
    version = "v1alpha1",
    kind = "BenchmarkSchedule",
    plural = "benchmarkschedules",
    shortname = "bs",
    category = "benchmark",
    namespaced,
    status = "BenchmarkScheduleStatus",
    derive = "PartialEq",
    doc = "A BenchmarkSchedule runs a campaign by the clock, keeps its history and watches for regressions.",
    validation = Rule::new("size(self.metadata.name) <= 29").message("metadata.name: a schedule's name may have at most 29 characters, since names of its campaigns are made from it: choose a shorter one"),
    printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(name = "Suspended", type_ = "boolean", json_path = ".spec.suspend"),
    printcolumn(name = "Active", type_ = "string", json_path = ".status.active.name"),
    printcolumn(name = "Last", type_ = "date", json_path = ".status.lastScheduleTime"),
    printcolumn(name = "Gate", type_ = "string", json_path = ".status.conditions[?(@.type==\"GatePassed\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.schedule.matches('^[^ ]+( [^ ]+){4}$')").message("schedule must have five fields (minute, hour, day of month, month, day of week), such as 0 2 * * *").field_path(".schedule"),
)]
pub struct BenchmarkScheduleSpec {
    /// Cron expression with five fields (minute, hour, day of month, month, day of week), such as `0 2 * * *`.
    #[schemars(length(min = 9, max = 100), regex(pattern = "^[-0-9A-Za-z*,/? ]+$"))]
    pub schedule: String,
    /// Time zone by its IANA name, such as `Europe/Berlin` (default Etc/UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$")
    )]
    pub time_zone: Option<String>,
    /// Seconds after its time at which a missed campaign is no longer started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 604_800))]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens if the last campaign still runs (default Forbid).
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Start nothing new (default false).
    #[serde(default)]
    pub suspend: bool,
    /// The campaign.
    pub campaign_template: CampaignTemplate,
    /// How many campaigns are kept.
    #[serde(default)]
    pub history_limits: HistoryLimits,
    /// What counts as a regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Who is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub notify: Vec<Notification>,
}

/// The campaign of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignTemplate {
    /// Labels and annotations of the campaign.
    #[serde(default)]
    pub metadata: TemplateMetadata,
    /// Spec of the campaign, validated when it is created.
    #[schemars(schema_with = "crate::schema::preserve_unknown")]
    pub spec: BenchmarkCampaignSpec,
}

/// Labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateMetadata {
    /// Labels of the campaign.
    #[schemars(schema_with = "crate::schema::metadata")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the campaign.
    #[schemars(schema_with = "crate::schema::metadata")]
    pub annotations: BTreeMap<String, String>,
}

/// What happens if the last campaign still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// The new one is skipped.
    #[default]
    Forbid,
    /// The old one is deleted.
    Replace,
}

/// How many campaigns are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryLimits {
    /// Succeeded campaigns (default 30).
    #[schemars(range(min = 0, max = 365))]
    pub successful: i32,
    /// Failed campaigns (default 5).
    #[schemars(range(min = 0, max = 365))]
    pub failed: i32,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self {
            successful: 30,
            failed: 5,
        }
    }
}

/// What counts as a regression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "duration(self.confirmAfter) >= duration('6h')", "message": "confirmAfter must be at least 6h: a confirmation in the same hours would share their disturbance", "fieldPath": ".confirmAfter"},
    {"rule": "self.minimumEffect.matches('[1-9]')", "message": "minimumEffect must be above 0%, such as 3%", "fieldPath": ".minimumEffect"}
]))]
pub struct Gate {
    /// `SideBySide` (default: reference and candidate interleaved in one night) or `History` (advises only).
    #[serde(rename = "type", default)]
    pub type_: GateType,
    /// What a night is compared with.
    pub reference: GateReference,
    /// Smallest worsening that counts (default 3%).
    #[serde(default = "three_percent")]
    pub minimum_effect: Percent,
    /// How long after an alarm the confirming campaign may start (default and least 6h).
    #[serde(default = "six_hours")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub confirm_after: Duration,
}

fn three_percent() -> Percent {
    Percent::from_ppm(30_000)
}
fn six_hours() -> Duration {
    crate::load::seconds(6 * 3600)
}

/// Kinds of gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GateType {
    /// Reference and candidate interleaved in one night.
    #[default]
    SideBySide,
    /// Against earlier nights; advises only.
    History,
}

/// What a night is compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GateReference {
    /// A level of the comparison's axis that stays pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub pinned: Option<String>,
    /// A campaign whose result is the reference of gate History.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign_ref: Option<LocalReference>,
}

/// Who is told, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Which events (default Regression).
    #[serde(default)]
    pub on: NotifyOn,
    /// The call.
    pub http: HttpHook,
}

/// Events that are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NotifyOn {
    /// A confirmed regression.
    #[default]
    Regression,
    /// A campaign that failed.
    Failure,
    /// Every campaign.
    Always,
}

/// Where the schedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BenchmarkScheduleStatus {
    /// Generation of the spec that the rest speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The campaign that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<LocalReference>,
    /// When a campaign was last started by the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// When a campaign last succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// Epoch: grows when image, kernel or node change.
    pub epoch: i64,
    /// Last nights, newest last.
    #[schemars(length(max = 400))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Night>,
    /// Conditions: Ready, Reconciling, Stalled, GatePassed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// One night of the history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Night {
    /// Campaign.
    pub campaign: String,
    /// When it was scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Epoch.
    pub epoch: i64,
    /// Estimated effect, parts per million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_ppm: Option<i64>,
    /// Verdict in one word.
    pub verdict: String,
}
