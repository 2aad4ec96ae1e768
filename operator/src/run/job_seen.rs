//! What a run's Job and its pod show. The end of the runner's container counts, which the pod's status tells about two
//! seconds before the Job does.

use campaign::run_planner::{EndedPod, JobView, RunnerPod, RunnerState};
use campaign::target_planner::{Problem, attention};
use crds::BenchmarkRun;
use crds::names::{CONTAINER_RUNNER, LABEL_JOB_INDEX, LABEL_RUN};
use crds::run::Finding;
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;

use super::State;
use crate::context::{Result, timed};

/// A Job of a run's and its pods, of which there are `count`.
pub(super) async fn job_view(state: &State, run: &BenchmarkRun, name: &str, count: i32) -> Result<JobView> {
    let namespace = run.namespace().unwrap_or_default();
    let uid = run.uid().unwrap_or_default();
    let key = ObjectRef::<Job>::new(name).within(&namespace);
    let job = state.jobs.get(&key).filter(|job| owned_by(job.as_ref(), &uid));
    let pods = state.pods.state_filter(|pod| {
        pod.namespace().as_deref() == Some(namespace.as_str())
            && pod.labels().get(LABEL_RUN) == Some(&run.name_any())
            && is_of_job(pod, job.as_deref(), name)
    });
    let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let ended = all_ended(&pods);
    if usize::try_from(count).is_ok_and(|count| ended.len() >= count.max(1)) {
        return Ok(JobView::Ended(ended));
    }
    let active = JobView::Active {
        pod: most_telling(&pods),
    };
    if job.is_some() {
        state.memory.forget_job(&uid, name);
    }
    match job.as_deref() {
        Some(job) => match over(job) {
            Some(condition) => not_seen_to_end(state, run, job, condition).await,
            None => Ok(active),
        },
        // Its pod is there, or it was made so lately that the watch does not know.
        None if !pods.is_empty() || state.memory.has_made(&uid, name) => Ok(active),
        None => Ok(JobView::Absent),
    }
}

/// Of pods that have not all ended: one that a person should look at, else any that is not there yet, else any.
fn most_telling(pods: &[&Pod]) -> Option<RunnerPod> {
    let order = |pod: &RunnerPod| match pod.state {
        RunnerState::Pending(Some(_)) => 0,
        RunnerState::Pending(None) => 1,
        RunnerState::Running => 2,
        RunnerState::Ended => 3,
    };
    pods.iter().map(|pod| runner_pod(pod)).min_by_key(order)
}

fn owned_by(object: &impl ResourceExt, uid: &str) -> bool {
    object.owner_references().iter().any(|owner| owner.uid == uid)
}

fn is_of_job(pod: &Pod, job: Option<&Job>, name: &str) -> bool {
    match job.and_then(ResourceExt::uid) {
        Some(uid) => owned_by(pod, &uid),
        None => pod.owner_references().iter().any(|owner| owner.name == name),
    }
}

/// The condition that says that a Job is over.
fn over(job: &Job) -> Option<&JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|c| matches!(c.type_.as_str(), "Failed" | "Complete") && c.status == "True")
}

/// A Job is over and its pod has not been seen to end: asked live before a measurement is thrown away.
async fn not_seen_to_end(
    state: &State,
    run: &BenchmarkRun,
    job: &Job,
    over: &JobCondition,
) -> Result<JobView> {
    let selector = ListParams::default().labels(&format!("{LABEL_RUN}={}", run.name_any()));
    let api = state
        .context
        .namespaced::<Pod>(&run.namespace().unwrap_or_default());
    let live = timed("looking for a lost pod", api.list(&selector)).await?;
    let uid = job.uid().unwrap_or_default();
    let live: Vec<&Pod> = live.items.iter().filter(|pod| owned_by(*pod, &uid)).collect();
    let still = live
        .iter()
        .find(|pod| runner_pod(pod).state == RunnerState::Running);
    if let Some(pod) = still {
        // Its end is on its way.
        return Ok(JobView::Active {
            pod: Some(runner_pod(pod)),
        });
    }
    let ended = all_ended(&live);
    Ok(if ended.is_empty() {
        lost(over)
    } else {
        // What some of them told may say why the others are gone.
        JobView::Ended(ended)
    })
}

fn lost(over: &JobCondition) -> JobView {
    let late = over.reason.as_deref() == Some("DeadlineExceeded");
    let said = over.message.as_deref().unwrap_or("no reason is given");
    JobView::Lost(Finding {
        reason: if late { "DeadlineExceeded" } else { "PodLost" }.to_owned(),
        message: format!("the load generator's pod is gone without a report: {said}"),
    })
}

/// Those of the pods whose runner's container has ended, by index.
fn all_ended(pods: &[&Pod]) -> Vec<EndedPod> {
    let mut ended: Vec<EndedPod> = pods.iter().filter_map(|pod| ended(pod)).collect();
    ended.sort_by_key(|pod| pod.index);
    ended.dedup_by_key(|pod| pod.index);
    ended
}

/// The end of the runner's container, if it has ended.
fn ended(pod: &Pod) -> Option<EndedPod> {
    let terminated = runner_status(pod)?.state.as_ref()?.terminated.as_ref()?;
    let index = pod.labels().get(LABEL_JOB_INDEX);
    Some(EndedPod {
        index: index.and_then(|index| index.parse().ok()).unwrap_or(0),
        pod: RunnerPod {
            state: RunnerState::Ended,
            ..runner_pod(pod)
        },
        exit_code: terminated.exit_code,
        message: terminated.message.clone().unwrap_or_default(),
        finished_at: terminated.finished_at.as_ref().map(|t| t.0),
    })
}

fn runner_status(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|s| s.name == CONTAINER_RUNNER)
}

fn runner_pod(pod: &Pod) -> RunnerPod {
    let status = runner_status(pod);
    let state = status.and_then(|s| s.state.as_ref());
    RunnerPod {
        node: pod.spec.as_ref().and_then(|s| s.node_name.clone()),
        image_id: status.map(|s| s.image_id.clone()).filter(|id| !id.is_empty()),
        state: match state {
            Some(state) if state.running.is_some() => RunnerState::Running,
            Some(state) if state.terminated.is_some() => RunnerState::Ended,
            _ => RunnerState::Pending(pending(pod, status)),
        },
    }
}

/// Why a pod does not start, if a person should look.
fn pending(pod: &Pod, status: Option<&ContainerStatus>) -> Option<Finding> {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|s| s.conditions.as_deref())
        .unwrap_or_default();
    let unschedulable = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False");
    if let Some(condition) = unschedulable {
        return Some(Finding {
            reason: "Unschedulable".to_owned(),
            message: condition.message.clone().unwrap_or_default(),
        });
    }
    let waiting = status?.state.as_ref()?.waiting.as_ref()?;
    let problem = Problem::new(
        waiting.reason.clone().unwrap_or_default(),
        waiting.message.clone().unwrap_or_default(),
    );
    let problem = attention(&problem)?;
    Some(Finding {
        reason: problem.reason,
        message: problem.message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"nodeName": "node-1", "containers": []}, "status": status}))
            .unwrap()
    }

    fn with_state(state: &serde_json::Value) -> Pod {
        pod(&json!({"phase": "Running", "containerStatuses": [{
            "name": "runner", "image": "runner:1", "imageID": "sha256:abc", "ready": false, "restartCount": 0, "state": state
        }]}))
    }

    #[test]
    fn the_end_of_the_container_counts_and_carries_its_report() {
        let finished =
            json!({"terminated": {"exitCode": 0, "message": "{}", "finishedAt": "2026-11-30T20:00:00Z"}});
        let Some(EndedPod {
            index: 0,
            pod,
            exit_code,
            message,
            finished_at,
        }) = ended(&with_state(&finished))
        else {
            panic!("it has ended");
        };
        assert_eq!((exit_code, message.as_str()), (0, "{}"));
        assert_eq!(finished_at.unwrap().to_string(), "2026-11-30T20:00:00Z");
        assert_eq!(
            (pod.node.as_deref(), pod.image_id.as_deref()),
            (Some("node-1"), Some("sha256:abc"))
        );
        let running = with_state(&json!({"running": {"startedAt": "2026-11-30T20:00:00Z"}}));
        assert_eq!(ended(&running), None);
        assert_eq!(runner_pod(&running).state, RunnerState::Running);
    }

    #[test]
    fn several_pods_end_by_their_index_and_the_one_in_trouble_is_shown() {
        let indexed = |index: i32, state: &serde_json::Value| {
            let mut pod = with_state(state);
            pod.labels_mut().insert(LABEL_JOB_INDEX.into(), index.to_string());
            pod
        };
        let running = json!({"running": {}});
        let over = json!({"terminated": {"exitCode": 0, "message": "{}"}});
        let pods = [indexed(2, &over), indexed(0, &running), indexed(1, &over)];
        let pods: Vec<&Pod> = pods.iter().collect();
        let places: Vec<i32> = all_ended(&pods).iter().map(|pod| pod.index).collect();
        assert_eq!(places, [1, 2]);
        assert_eq!(most_telling(&pods).unwrap().state, RunnerState::Running);
        let broken = indexed(
            3,
            &json!({"waiting": {"reason": "ErrImagePull", "message": "no"}}),
        );
        let with_broken: Vec<&Pod> = pods.into_iter().chain([&broken]).collect();
        let RunnerState::Pending(Some(finding)) = most_telling(&with_broken).unwrap().state else {
            panic!("one does not start");
        };
        assert_eq!(finding.reason, "ImagePullBackOff");
    }

    #[test]
    fn what_keeps_a_pod_from_starting_is_named_if_it_does_not_pass() {
        let creating = with_state(&json!({"waiting": {"reason": "ContainerCreating"}}));
        assert_eq!(runner_pod(&creating).state, RunnerState::Pending(None));
        let broken = with_state(&json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}}));
        let expected = Finding {
            reason: "ImagePullBackOff".into(),
            message: "not found".into(),
        };
        assert_eq!(runner_pod(&broken).state, RunnerState::Pending(Some(expected)));
        let no_node = pod(&json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
        ]}));
        let RunnerState::Pending(Some(finding)) = runner_pod(&no_node).state else {
            panic!("it has no node");
        };
        assert_eq!(
            (finding.reason.as_str(), finding.message.as_str()),
            ("Unschedulable", "0/1 nodes")
        );
    }

    #[test]
    fn a_job_that_is_over_without_a_pod_says_why() {
        let job: Job = serde_json::from_value(json!({"metadata": {"name": "j"}, "status": {"conditions": [
            {"type": "FailureTarget", "status": "True"},
            {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "longer than the deadline"}
        ]}}))
        .unwrap();
        let JobView::Lost(finding) = lost(over(&job).unwrap()) else {
            panic!("it is over");
        };
        assert_eq!(finding.reason, "DeadlineExceeded");
        assert!(finding.message.contains("longer than the deadline"));
        assert!(over(&Job::default()).is_none());
    }
}
