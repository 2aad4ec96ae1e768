//! How load is applied and measured: windows, attempts, restarts, cache state, the load generator.

use k8s_openapi::api::core::v1::ResourceRequirements;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::placement::{NodeSelector, Toleration};

/// A span of so many seconds.
pub(crate) fn seconds(s: u64) -> Duration {
    Duration::from(std::time::Duration::from_secs(s))
}

/// Zero as `0s`: the library writes `0ns`, which the API does not take.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn zero_in_seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    if std::time::Duration::from(*duration).is_zero() {
        serializer.serialize_str("0s")
    } else {
        duration.serialize(serializer)
    }
}

/// The same for a duration that may be absent; serde asks only where there is one.
#[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref)] // serde's signature
fn some_zero_in_seconds<S: serde::Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => zero_in_seconds(duration, serializer),
        None => serializer.serialize_none(),
    }
}

/// One measured run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "duration(self.duration) >= duration('1s')", "message": "duration must be at least 1s: the window that is measured", "fieldPath": ".duration"},
    {"rule": "duration(self.duration) <= duration('24h') && duration(self.warmup) <= duration('24h')", "message": "warmup and duration may be at most 24h each"},
    {"rule": "duration(self.reportInterval) >= duration('1s') && duration(self.reportInterval) <= duration(self.duration)", "message": "reportInterval must be at least 1s and at most duration", "fieldPath": ".reportInterval"},
    {"rule": "self.warmup.matches('^([0-9]+[hms])+$')", "message": "warmup must be in whole seconds, such as 90s or 2m", "fieldPath": ".warmup"},
    {"rule": "self.duration.matches('^([0-9]+[hms])+$')", "message": "duration must be in whole seconds, such as 90s or 2m", "fieldPath": ".duration"},
    {"rule": "self.reportInterval.matches('^([0-9]+[hms])+$')", "message": "reportInterval must be in whole seconds, such as 1s", "fieldPath": ".reportInterval"}
]))]
pub struct RunSettings {
    /// Load applied before the window, not counted; whole seconds (default 60s).
    #[serde(serialize_with = "zero_in_seconds")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub warmup: Duration,
    /// The measured window; whole seconds (default 600s).
    #[schemars(schema_with = "crate::schema::duration")]
    pub duration: Duration,
    /// Step of the recorded series; whole seconds (default 1s).
    #[schemars(schema_with = "crate::schema::duration")]
    pub report_interval: Duration,
    /// How often a block is measured at most, invalid attempts included (default 3).
    #[schemars(range(min = 1, max = 10))]
    pub attempts: i32,
    /// Closed loop (default) or a fixed rate.
    pub load: Load,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            warmup: seconds(60),
            duration: seconds(600),
            report_interval: seconds(1),
            attempts: 3,
            load: Load::default(),
        }
    }
}

/// Closed loop or fixed rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.rate) == (self.type == 'Rate')", "message": "type Rate needs rate (transactions per second), and rate is only for type Rate"}
]))]
pub struct Load {
    /// `Closed` (default): each thread sends its next transaction when the last one ends. `Rate`: transactions arrive at `rate`.
    #[serde(rename = "type")]
    pub type_: LoadType,
    /// Transactions per second over all threads and generators.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub rate: Option<i64>,
}

/// Kinds of load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoadType {
    /// Closed loop.
    #[default]
    Closed,
    /// Fixed arrival rate.
    Rate,
}

/// When the database is restarted and how long it may take to come to rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestartPolicy {
    /// When the database is restarted (default BeforeEachArm).
    pub policy: RestartWhen,
    /// How it settles after a boot.
    pub settle: Settle,
}

/// When the database is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestartWhen {
    /// Before each arm of each block: the unit of replication.
    #[default]
    BeforeEachArm,
    /// Before every run, so also between thread counts.
    BeforeEachRun,
    /// Only when a setting needs it.
    WhenRequired,
    /// Never; settings that need a restart are refused.
    Never,
}

/// How the database settles after a boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "duration(self.timeout) <= duration('30m')", "message": "timeout may be at most 30m", "fieldPath": ".timeout"},
    {"rule": "!has(self.fixedSleep) || duration(self.fixedSleep) <= duration('30m')", "message": "fixedSleep may be at most 30m", "fieldPath": ".fixedSleep"}
]))]
pub struct Settle {
    /// How long to wait for the database to come to rest; the run goes on afterwards and records that it had not (default 60s).
    #[serde(serialize_with = "zero_in_seconds")]
    #[schemars(schema_with = "crate::schema::duration")]
    pub timeout: Duration,
    /// Instead of looking: wait so long, as a shell loop does with `sleep 30`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "some_zero_in_seconds"
    )]
    #[schemars(schema_with = "crate::schema::optional_duration")]
    pub fixed_sleep: Option<Duration>,
}

impl Default for Settle {
    fn default() -> Self {
        Self {
            timeout: seconds(60),
            fixed_sleep: None,
        }
    }
}

/// What the buffer pool holds when load starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cache {
    /// State at the start of load (default Prewarmed).
    pub state: CacheState,
}

/// What the buffer pool holds when load starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheState {
    /// Empty.
    Cold,
    /// What it held at shutdown (dumped and loaded whole in all arms).
    Dumped,
    /// The tables, scanned after the boot until reads hit.
    #[default]
    Prewarmed,
}

/// The pods that apply load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadGenerator {
    /// Pods that apply load together from a common start (default 1).
    #[schemars(range(min = 1, max = 64))]
    pub count: i32,
    /// Resources of each pod. Requests and limits of CPU decide whether the generator was the bottleneck. Default: 250m
    /// requested, no CPU limit, 256Mi of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::preserve_unknown")]
    pub resources: Option<ResourceRequirements>,
    /// Node labels that the pods require.
    #[serde(skip_serializing_if = "NodeSelector::is_empty")]
    #[schemars(schema_with = "crate::schema::node_selector")]
    pub node_selector: NodeSelector,
    /// Taints that the pods tolerate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// Image with the load generator and the runner; the chart's runner image if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub image: String,
}

impl Default for LoadGenerator {
    fn default() -> Self {
        Self {
            count: 1,
            resources: None,
            node_selector: NodeSelector::new(),
            tolerations: Vec::new(),
            image: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_warm_up_is_written_as_the_api_takes_it() {
        let settings = RunSettings {
            warmup: seconds(0),
            ..RunSettings::default()
        };
        assert_eq!(serde_json::to_value(&settings).unwrap()["warmup"], "0s");
        let settle = Settle {
            timeout: seconds(0),
            fixed_sleep: Some(seconds(0)),
        };
        assert_eq!(
            serde_json::to_value(&settle).unwrap(),
            serde_json::json!({"timeout": "0s", "fixedSleep": "0s"})
        );
        assert_eq!(
            serde_json::to_value(RunSettings::default()).unwrap()["warmup"],
            "60s"
        );
    }
}
