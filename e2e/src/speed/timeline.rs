//! When what happened in a campaign, in milliseconds since 1970: the load's start and end from the runner's own report,
//! the moments between from watches of runs and pods. Folding events into moments is pure; watching is in `watching`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Milliseconds since 1970.
pub type Millis = i64;

/// Label of a pod that applies load or makes data: the run's name.
const LABEL_RUN: &str = "benchmark-campaign.dev/run";
/// Label that says what a pod is for.
const LABEL_ROLE: &str = "benchmark-campaign.dev/role";

/// One event of a watch, as `kubectl get --watch --output-watch-events -o json` prints it.
#[derive(Clone, Debug, Deserialize)]
pub struct Event {
    /// `ADDED`, `MODIFIED` or `DELETED`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The run or pod.
    pub object: Object,
}

/// The parts of a run or pod that tell when something happened.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Object {
    /// `BenchmarkRun` or `Pod`.
    pub kind: String,
    /// Name, UID, labels.
    pub metadata: Metadata,
    /// Of a run: its place and whether it restarts.
    pub spec: Spec,
    /// Of a run or pod.
    pub status: Status,
}

/// Name, UID, labels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// UID: a pod created again has another one.
    pub uid: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<String>,
}

/// Of a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spec {
    /// Whether the run restarts the server first.
    pub restart_before: bool,
}

/// Of a run or pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// Step of a run.
    pub step: String,
    /// How often the data was made for a run.
    pub prepares: Option<i64>,
    /// Conditions of a pod.
    pub conditions: Vec<Condition>,
    /// Containers of a pod.
    pub container_statuses: Vec<Container>,
}

/// A condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

/// A container's state.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Container {
    /// Name.
    pub name: String,
    /// Now.
    pub state: State,
}

/// At most one of them is there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct State {
    /// It runs.
    pub running: Option<serde_json::Value>,
    /// It has ended.
    pub terminated: Option<Terminated>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Terminated {
    /// The runner's report.
    pub message: String,
}

/// The part of the runner's report that tells the time.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    load_started_millis: Option<Millis>,
    load_ended_millis: Option<Millis>,
}

/// What is known of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunMoments {
    /// Whether it restarts the server first.
    pub restarts: bool,
    /// Whether the data was made for it, which no other run waits for.
    pub prepared: bool,
    /// The object was seen.
    pub created: Option<Millis>,
    /// Its settings were proved: the step `Measuring` was seen.
    pub proved: Option<Millis>,
    /// The pod of its Job was seen.
    pub pod_created: Option<Millis>,
    /// Its container was seen running.
    pub pod_running: Option<Millis>,
    /// The load generator's process started, by the runner's clock (that of the node).
    pub load_started: Option<Millis>,
    /// The load generator's process ended.
    pub load_ended: Option<Millis>,
    /// The container's end was seen in the pod's status.
    pub reported: Option<Millis>,
    /// The step `Finished` was seen.
    pub finished: Option<Millis>,
}

/// What happened to a database pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodMoment {
    /// It is being deleted.
    Stopping,
    /// It is gone.
    Gone,
    /// A new one is there.
    Created,
    /// Its server's container runs.
    Running,
    /// It is ready.
    Ready,
}

/// Everything seen of a namespace.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Runs by name.
    pub runs: BTreeMap<String, RunMoments>,
    /// Moments of database pods by UID; the first time each was seen.
    pods: BTreeMap<String, BTreeMap<PodMoment, Millis>>,
}

impl Timeline {
    /// Takes in an event that arrived at a moment.
    pub fn apply(&mut self, at: Millis, event: &Event) {
        let object = &event.object;
        match object.kind.as_str() {
            "BenchmarkRun" => self.run(at, object),
            "Pod" => match object.metadata.labels.get(LABEL_ROLE).map(String::as_str) {
                Some("database") => self.database(at, event),
                Some("run") => self.runner(at, object),
                _ => {}
            },
            _ => {}
        }
    }

    fn run(&mut self, at: Millis, object: &Object) {
        let run = self.runs.entry(object.metadata.name.clone()).or_default();
        run.restarts = object.spec.restart_before;
        run.prepared |= object.status.prepares.is_some_and(|n| n > 0);
        run.created.get_or_insert(at);
        if matches!(object.status.step.as_str(), "Measuring" | "Finished") {
            run.proved.get_or_insert(at);
        }
        if object.status.step == "Finished" {
            run.finished.get_or_insert(at);
        }
    }

    fn runner(&mut self, at: Millis, object: &Object) {
        let Some(name) = object.metadata.labels.get(LABEL_RUN) else {
            return;
        };
        let run = self.runs.entry(name.clone()).or_default();
        run.pod_created.get_or_insert(at);
        for container in &object.status.container_statuses {
            if container.state.running.is_some() {
                run.pod_running.get_or_insert(at);
            }
            if let Some(ended) = &container.state.terminated {
                run.reported.get_or_insert(at);
                if let Ok(report) = serde_json::from_str::<Report>(&ended.message) {
                    run.load_started = report.load_started_millis;
                    run.load_ended = report.load_ended_millis;
                }
            }
        }
    }

    fn database(&mut self, at: Millis, event: &Event) {
        let metadata = &event.object.metadata;
        let pod = self.pods.entry(metadata.uid.clone()).or_default();
        pod.entry(PodMoment::Created).or_insert(at);
        if metadata.deletion_timestamp.is_some() {
            pod.entry(PodMoment::Stopping).or_insert(at);
        }
        if event.type_ == "DELETED" {
            pod.entry(PodMoment::Gone).or_insert(at);
        }
        let mut containers = event.object.status.container_statuses.iter();
        if containers.any(|c| c.name == "database" && c.state.running.is_some()) {
            pod.entry(PodMoment::Running).or_insert(at);
        }
        let conditions = &event.object.status.conditions;
        if conditions
            .iter()
            .any(|c| c.type_ == "Ready" && c.status == "True")
        {
            pod.entry(PodMoment::Ready).or_insert(at);
        }
    }

    /// When something last happened to a database pod within a span of time.
    pub fn pod_moment(&self, what: PodMoment, from: Millis, to: Millis) -> Option<Millis> {
        self.pods
            .values()
            .filter_map(|pod| pod.get(&what).copied())
            .filter(|at| (from..=to).contains(at))
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn event(type_: &str, object: &Value) -> Event {
        serde_json::from_value(json!({"type": type_, "object": object})).unwrap()
    }

    fn pod(role: &str, uid: &str, rest: &Value) -> Value {
        json!({"kind": "Pod", "metadata": {"name": "p", "uid": uid,
            "labels": {LABEL_ROLE: role, LABEL_RUN: "a"}}, "status": rest})
    }

    #[test]
    fn moments_are_the_first_time_that_something_was_seen() {
        let mut timeline = Timeline::default();
        let run = |step: &str| {
            json!({"kind": "BenchmarkRun", "metadata": {"name": "a"}, "spec": {"restartBefore": true},
            "status": {"step": step, "prepares": 1}})
        };
        timeline.apply(
            10,
            &event(
                "ADDED",
                &json!({"kind": "BenchmarkRun", "metadata": {"name": "a"}}),
            ),
        );
        timeline.apply(20, &event("MODIFIED", &run("Measuring")));
        timeline.apply(
            25,
            &event("MODIFIED", &pod("run", "u1", &json!({"containerStatuses": []}))),
        );
        let ended = json!({"containerStatuses": [{"state": {"terminated":
            {"message": "{\"outcome\":\"Completed\",\"loadStartedMillis\":30,\"loadEndedMillis\":40}"}}}]});
        timeline.apply(41, &event("MODIFIED", &pod("run", "u1", &ended)));
        timeline.apply(45, &event("MODIFIED", &pod("run", "u1", &ended)));
        timeline.apply(50, &event("MODIFIED", &run("Finished")));
        timeline.apply(60, &event("MODIFIED", &run("Finished")));
        assert_eq!(
            timeline.runs["a"],
            RunMoments {
                restarts: true,
                prepared: true,
                created: Some(10),
                proved: Some(20),
                pod_created: Some(25),
                pod_running: None,
                load_started: Some(30),
                load_ended: Some(40),
                reported: Some(41),
                finished: Some(50),
            }
        );
    }

    #[test]
    fn a_restart_is_one_pod_gone_and_another_ready() {
        let mut timeline = Timeline::default();
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        timeline.apply(1, &event("ADDED", &pod("database", "old", &ready)));
        let mut stopping = pod("database", "old", &ready);
        stopping["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        timeline.apply(10, &event("MODIFIED", &stopping.clone()));
        timeline.apply(12, &event("DELETED", &stopping));
        timeline.apply(13, &event("ADDED", &pod("database", "new", &json!({}))));
        let running = json!({"containerStatuses": [{"name": "agent", "state": {}}, {"name": "database", "state": {"running": {}}}]});
        timeline.apply(16, &event("MODIFIED", &pod("database", "new", &running)));
        timeline.apply(19, &event("MODIFIED", &pod("database", "new", &ready)));
        let seen = |what| timeline.pod_moment(what, 5, 30);
        assert_eq!(seen(PodMoment::Stopping), Some(10));
        assert_eq!(seen(PodMoment::Gone), Some(12));
        assert_eq!(seen(PodMoment::Created), Some(13));
        assert_eq!(seen(PodMoment::Running), Some(16));
        assert_eq!(seen(PodMoment::Ready), Some(19));
        assert_eq!(timeline.pod_moment(PodMoment::Gone, 20, 30), None);
    }

    #[test]
    fn a_report_that_is_none_gives_no_times() {
        let mut timeline = Timeline::default();
        let ended = json!({"containerStatuses": [{"state": {"terminated": {"message": "Killed"}}}]});
        timeline.apply(5, &event("MODIFIED", &pod("run", "u", &ended)));
        assert_eq!(
            (timeline.runs["a"].reported, timeline.runs["a"].load_ended),
            (Some(5), None)
        );
    }
}
