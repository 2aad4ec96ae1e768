//! The Job controller: makes pods, counts their ends once (by the tracking finalizer), and finishes Jobs with the
//! conditions and the lag of the real one. One task; every decision is made from the store, none from memory.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::{kubelet::set_condition, lag};
use crate::{
    api_server::{
        ApiServer, State,
        delete::DeleteOptions,
        store::{Change, ChangeType, Key},
    },
    random::Dice,
};

const ACTOR: &str = "job-controller";
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Starts the controller.
pub(crate) fn spawn(server: &ApiServer, mut dice: Dice) {
    let (jobs, pods) = {
        let state = server.lock();
        (
            state.key("batch", "jobs", "", "").resource,
            state.key("", "pods", "", "").resource,
        )
    };
    let mut changes = server.lock().store.subscribe();
    let server = server.clone();
    tokio::spawn(async move {
        let mut queue: BTreeSet<(Instant, Key)> = BTreeSet::new();
        loop {
            let due = queue.first().map(|(instant, _)| *instant);
            tokio::select! {
                biased;
                change = changes.recv() => {
                    let Some(change) = change else { return };
                    if change.key.resource == jobs {
                        queue.insert((Instant::now() + lag::job_sync(&mut dice), change.key));
                    } else if change.key.resource == pods && let Some(job) = job_of(&change, jobs) {
                        queue.insert((Instant::now() + lag::job_sync(&mut dice), job));
                        untrack_orphan(&mut server.lock(), &change, &job_uid(&change));
                    }
                }
                () = async {
                    match due {
                        Some(due) => sleep_until(due).await,
                        None => std::future::pending().await,
                    }
                } => {
                    let Some((_, key)) = queue.pop_first() else { continue };
                    let again = Sync { state: &mut server.lock(), dice: &mut dice, key: &key }.run();
                    if let Some(delay) = again {
                        queue.insert((Instant::now() + delay, key));
                    }
                }
            }
        }
    });
}

fn controller(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"]
        .as_array()?
        .iter()
        .find(|owner| owner["controller"] == true && owner["kind"] == "Job")
}

fn job_uid(change: &Change) -> String {
    controller(&change.object.value)
        .and_then(|owner| owner["uid"].as_str())
        .unwrap_or_default()
        .to_owned()
}

fn job_of(change: &Change, jobs: usize) -> Option<Key> {
    let owner = controller(&change.object.value)?;
    Some(Key {
        resource: jobs,
        namespace: change.key.namespace.clone(),
        name: owner["name"].as_str()?.to_owned(),
    })
}

/// A pod whose Job is gone is not waited for.
fn untrack_orphan(state: &mut State, change: &Change, job: &str) {
    if change.change != ChangeType::Deleted && state.store.key_of(job).is_none() {
        untrack(state, &change.key);
    }
}

fn untrack(state: &mut State, pod: &Key) {
    state.change(ACTOR, pod, |object| {
        if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| finalizer != TRACKING);
            if finalizers.is_empty()
                && let Some(metadata) = object["metadata"].as_object_mut()
            {
                metadata.remove("finalizers");
            }
        }
    });
}

/// The pods of a Job by what they are to it.
#[derive(Default)]
struct Pods {
    active: Vec<Key>,
    terminating: usize,
    active_indexes: BTreeSet<u64>,
    ready: usize,
    /// Ended and not yet counted: the key, the object.
    uncounted: Vec<(Key, Value)>,
}

/// One look at one Job.
struct Sync<'a> {
    state: &'a mut State,
    dice: &'a mut Dice,
    key: &'a Key,
}

impl Sync<'_> {
    /// Does what is to be done now; how long to wait if it has to look again.
    fn run(&mut self) -> Option<Duration> {
        let job = self.state.store.get(self.key)?.value.clone();
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
        let pods = self.pods_of(uid);
        if finished(&job) {
            for (pod, _) in &pods.uncounted {
                untrack(self.state, pod);
            }
            return self.expire(&job);
        }
        if !job["metadata"]["deletionTimestamp"].is_null() {
            return None;
        }
        let mut status = job["status"].clone();
        if status["startTime"].is_null() && job["spec"]["suspend"] != true {
            status["startTime"] = json!(self.state.now_text());
        }
        let mut verdict = pending_verdict(&status);
        for (pod, object) in &pods.uncounted {
            if verdict.is_none() {
                verdict = self.count(&job, &mut status, object);
            }
            untrack(self.state, pod);
        }
        let spec = &job["spec"];
        let number = |value: &Value, default: u64| value.as_u64().unwrap_or(default);
        let failed = number(&status["failed"], 0);
        let succeeded = number(&status["succeeded"], 0);
        let wanted = number(&spec["completions"], 1);
        let (overdue, wake) = self.deadline(spec, &status);
        if verdict.is_none() {
            if failed > number(&spec["backoffLimit"], 6) {
                verdict = Some(Verdict::failed("BackoffLimitExceeded"));
            } else if overdue {
                verdict = Some(Verdict::failed("DeadlineExceeded"));
            } else if succeeded >= wanted {
                verdict = Some(Verdict::complete());
            }
        }
        let mut again = wake;
        if let Some(verdict) = verdict {
            again = self.finish(&mut status, &verdict, &pods);
        } else if spec["suspend"] == true {
            self.delete_active(&pods);
        } else {
            let limit = number(&spec["parallelism"], 1);
            let held = if spec["podReplacementPolicy"] == "Failed" {
                pods.terminating as u64
            } else {
                0
            };
            let running = pods.active.len() as u64 + held;
            let missing = limit.min(wanted - succeeded).saturating_sub(running);
            match self.backoff(uid, &status) {
                Some(delay) if missing > 0 => again = Some(delay),
                _ => self.create_pods(&job, &status, &pods, missing),
            }
        }
        let pods = self.pods_of(uid);
        status["active"] = json!(pods.active.len());
        status["ready"] = json!(pods.ready);
        status["terminating"] = json!(pods.terminating);
        status["uncountedTerminatedPods"] = json!({});
        if pods.active.is_empty()
            && let Some(fields) = status.as_object_mut()
        {
            fields.remove("active");
        }
        self.state
            .change(ACTOR, self.key, |object| object["status"] = status);
        again
    }

    fn pods_of(&self, uid: &str) -> Pods {
        let mut pods = Pods::default();
        let resource = self.state.key("", "pods", "", "").resource;
        for key in self.state.store.dependents_of(uid) {
            let Some(pod) = self.state.store.get(&key).filter(|_| key.resource == resource) else {
                continue;
            };
            let object = &pod.value;
            let ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            let deleting = !object["metadata"]["deletionTimestamp"].is_null();
            let tracked = object["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|finalizers| finalizers.contains(&json!(TRACKING)));
            let never_ran = deleting && object["spec"]["nodeName"].is_null();
            let removed = deleting && object["metadata"]["deletionGracePeriodSeconds"] == 0;
            if ended || never_ran || removed {
                if tracked {
                    pods.uncounted.push((key, object.clone()));
                }
                continue;
            }
            if deleting {
                pods.terminating += 1;
            } else {
                let ready = object["status"]["conditions"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
                pods.ready += usize::from(ready);
                pods.active.push(key);
            }
            if let Some(index) = index_of(object) {
                pods.active_indexes.insert(index);
            }
        }
        pods
    }

    /// Counts the end of one pod; a verdict if the failure policy asks for one.
    fn count(&mut self, job: &Value, status: &mut Value, pod: &Value) -> Option<Verdict> {
        let add = |status: &mut Value, field: &str| {
            status[field] = json!(status[field].as_u64().unwrap_or(0) + 1);
        };
        if pod["status"]["phase"] == "Succeeded" {
            add(status, "succeeded");
            if let Some(index) = index_of(pod) {
                let mut indexes = completed(status);
                indexes.insert(index);
                let text: Vec<String> = indexes.iter().map(u64::to_string).collect();
                status["completedIndexes"] = json!(text.join(","));
            }
            return None;
        }
        let rules = job["spec"]["podFailurePolicy"]["rules"].as_array();
        let action = rules
            .into_iter()
            .flatten()
            .find(|rule| rule_matches(rule, pod))
            .and_then(|rule| rule["action"].as_str());
        match action {
            Some("Ignore") => None,
            Some("FailJob") => {
                add(status, "failed");
                Some(Verdict::failed("PodFailurePolicy"))
            }
            _ => {
                add(status, "failed");
                None
            }
        }
    }

    /// Whether the Job is too old, and when to look if it is not.
    fn deadline(&self, spec: &Value, status: &Value) -> (bool, Option<Duration>) {
        let Some(seconds) = spec["activeDeadlineSeconds"].as_u64() else {
            return (false, None);
        };
        let Some(start) = status["startTime"]
            .as_str()
            .and_then(|text| text.parse::<jiff::Timestamp>().ok())
        else {
            return (false, None);
        };
        let age = self.state.now().as_second() - start.as_second();
        let left = seconds.saturating_sub(age.max(0) as u64);
        (left == 0, Some(Duration::from_secs(left)))
    }

    /// How long a replacement of a failed pod has to wait; failed pods that are still there tell when they ended.
    fn backoff(&self, uid: &str, status: &Value) -> Option<Duration> {
        let failed = status["failed"].as_u64().unwrap_or(0);
        let latest = self
            .state
            .store
            .dependents_of(uid)
            .iter()
            .filter_map(|key| self.state.store.get(key))
            .filter_map(|pod| {
                let statuses = pod.value["status"]["containerStatuses"].as_array()?.clone();
                statuses
                    .iter()
                    .filter_map(|status| status["state"]["terminated"]["finishedAt"].as_str())
                    .filter_map(|text| text.parse::<jiff::Timestamp>().ok())
                    .max()
            })
            .max()?;
        let wait = 10u64 << failed.saturating_sub(1).min(6);
        let age = (self.state.now().as_second() - latest.as_second()).max(0) as u64;
        (age < wait).then(|| Duration::from_secs(wait - age))
    }

    /// First the announcement, then, when no pod is left and some time has passed, the final condition.
    fn finish(&mut self, status: &mut Value, verdict: &Verdict, pods: &Pods) -> Option<Duration> {
        let now = self.state.now_text();
        let (early, last) = match verdict.failure {
            Some(_) => ("FailureTarget", "Failed"),
            None => ("SuccessCriteriaMet", "Complete"),
        };
        let announced = condition(status, early).is_some();
        let reason = verdict.failure.as_deref().unwrap_or("CompletionsReached");
        set_condition(status, early, "True", reason, &now);
        self.delete_active(pods);
        if !announced {
            return Some(lag::job_finish(self.dice));
        }
        if !pods.active.is_empty() || pods.terminating > 0 {
            return None;
        }
        set_condition(status, last, "True", reason, &now);
        if verdict.failure.is_none() {
            status["completionTime"] = json!(now);
        }
        None
    }

    fn delete_active(&mut self, pods: &Pods) {
        for pod in &pods.active {
            self.state.remove(ACTOR, pod, &DeleteOptions::background());
        }
    }

    fn create_pods(&mut self, job: &Value, status: &Value, pods: &Pods, count: u64) {
        let name = &self.key.name;
        let indexed = job["spec"]["completionMode"] == "Indexed";
        let done = completed(status);
        let mut free = (0..).filter(|index| !done.contains(index) && !pods.active_indexes.contains(index));
        for _ in 0..count {
            let template = &job["spec"]["template"];
            let mut pod = json!({"metadata": template["metadata"], "spec": template["spec"]});
            let mut prefix = name.clone();
            if indexed && let Some(index) = free.next() {
                prefix = format!("{name}-{index}");
                pod["metadata"]["annotations"][INDEX] = json!(index.to_string());
                pod["metadata"]["labels"][INDEX] = json!(index.to_string());
                pod["spec"]["hostname"] = json!(prefix);
                for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
                    if !container["env"].is_array() {
                        container["env"] = json!([]);
                    }
                    if let Some(environment) = container["env"].as_array_mut() {
                        environment.push(json!({"name": "JOB_COMPLETION_INDEX", "value": index.to_string()}));
                    }
                }
            }
            pod["metadata"]["name"] = json!(format!("{prefix}-{}", self.dice.suffix()));
            pod["metadata"]["finalizers"] = json!([TRACKING]);
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }]);
            // A refusal (the namespace is being terminated) leaves the Job without this pod.
            let _ = self
                .state
                .create_by_model(ACTOR, "", "pods", &self.key.namespace, pod);
        }
    }

    /// Deletes a finished Job when its time to live is over.
    fn expire(&mut self, job: &Value) -> Option<Duration> {
        let seconds = job["spec"]["ttlSecondsAfterFinished"].as_u64()?;
        let ended = condition(&job["status"], "Complete")
            .or_else(|| condition(&job["status"], "Failed"))?["lastTransitionTime"]
            .as_str()?
            .parse::<jiff::Timestamp>()
            .ok()?;
        let age = (self.state.now().as_second() - ended.as_second()).max(0) as u64;
        if age < seconds {
            return Some(Duration::from_secs(seconds - age));
        }
        self.state
            .remove("ttl-controller", self.key, &DeleteOptions::background());
        None
    }
}

/// How a Job ends.
struct Verdict {
    failure: Option<String>,
}

impl Verdict {
    fn failed(reason: &str) -> Self {
        Self {
            failure: Some(reason.to_owned()),
        }
    }

    fn complete() -> Self {
        Self { failure: None }
    }
}

/// A verdict that was announced and not yet final.
fn pending_verdict(status: &Value) -> Option<Verdict> {
    if let Some(failure) = condition(status, "FailureTarget") {
        return Some(Verdict::failed(failure["reason"].as_str().unwrap_or_default()));
    }
    condition(status, "SuccessCriteriaMet").map(|_| Verdict::complete())
}

fn condition<'a>(status: &'a Value, word: &str) -> Option<&'a Value> {
    status["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == word && condition["status"] == "True")
}

fn finished(job: &Value) -> bool {
    condition(&job["status"], "Complete").is_some() || condition(&job["status"], "Failed").is_some()
}

fn index_of(pod: &Value) -> Option<u64> {
    pod["metadata"]["annotations"][INDEX].as_str()?.parse().ok()
}

fn completed(status: &Value) -> BTreeSet<u64> {
    status["completedIndexes"]
        .as_str()
        .unwrap_or_default()
        .split(',')
        .filter_map(|text| text.parse().ok())
        .collect()
}

fn rule_matches(rule: &Value, pod: &Value) -> bool {
    let conditions = rule["onPodConditions"].as_array().into_iter().flatten();
    let by_condition = conditions
        .into_iter()
        .any(|wanted| condition(&pod["status"], wanted["type"].as_str().unwrap_or_default()).is_some());
    let codes = &rule["onExitCodes"];
    let by_code = codes.is_object()
        && pod["status"]["containerStatuses"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|status| codes["containerName"].is_null() || codes["containerName"] == status["name"])
            .any(|status| {
                let code = &status["state"]["terminated"]["exitCode"];
                let listed = codes["values"]
                    .as_array()
                    .is_some_and(|values| values.contains(code));
                !code.is_null() && *code != 0 && (codes["operator"] == "In") == listed
            });
    by_condition || by_code
}
