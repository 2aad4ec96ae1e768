//! Tests of the models themselves: the API server against the conformance scripts, the faults, the kubelet and Jobs.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Pod},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    api_server::ApiServer,
    cluster::{self, Behaviour, Exit, Node, Process},
    conformance,
    faults::{FaultPlan, Rates},
};

/// Runs a future on a paused clock, as every simulation does.
///
/// `RUST_LOG` shows what the controllers say.
pub(crate) fn simulate<T>(future: impl Future<Output = T>) -> T {
    // The jitter of kube's back-off draws from here.
    fastrand::seed(7);
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_test_writer()
        .without_time()
        .try_init();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(future)
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object of its kind")
}

fn configmap(name: &str, value: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name}, "data": {"k": value}}))
}

#[test]
fn conformance_scripts_leave_the_transcripts_of_a_real_server() {
    let mut wrong = Vec::new();
    for (number, script) in conformance::SCRIPTS.iter().enumerate() {
        let transcript = simulate(async {
            let server = ApiServer::start(7, FaultPlan::none(), &[]);
            let client = server.user();
            conformance::install_definition(&client).await;
            let namespace = format!("script-{number}");
            let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
            let home = object(json!({"metadata": {"name": namespace}}));
            namespaces
                .create(&PostParams::default(), &home)
                .await
                .expect("a namespace");
            script.run(client, &namespace).await
        });
        if transcript != script.expected {
            wrong.push(format!("{}:\n{transcript:#?}", script.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_lost_response_has_been_applied() {
    simulate(async {
        let rates = Rates {
            lost_response: 1_000,
            ..Rates::default()
        };
        let server = ApiServer::start(1, FaultPlan::new(1, rates), &[]);
        let maps: Api<ConfigMap> = Api::default_namespaced(server.operator("operator"));
        let error = maps
            .create(&PostParams::default(), &configmap("a", "1"))
            .await
            .unwrap_err();
        assert!(matches!(error, kube::Error::Service(_)), "{error}");
        assert!(maps.get("a").await.is_ok());
    });
}

#[test]
fn a_refused_request_has_not_been_applied() {
    for (rates, code) in [
        (
            Rates {
                internal_error: 1_000,
                ..Rates::default()
            },
            500,
        ),
        (
            Rates {
                too_many_requests: 1_000,
                ..Rates::default()
            },
            429,
        ),
        (
            Rates {
                unavailable: 1_000,
                ..Rates::default()
            },
            503,
        ),
    ] {
        simulate(async {
            let server = ApiServer::start(1, FaultPlan::new(1, rates), &[]);
            let maps: Api<ConfigMap> = Api::default_namespaced(server.operator("operator"));
            match maps.create(&PostParams::default(), &configmap("a", "1")).await {
                Err(kube::Error::Api(status)) => assert_eq!(status.code, code),
                other => panic!("{other:?}"),
            }
            server.lock().faults.stop();
            assert!(maps.get_opt("a").await.unwrap().is_none());
        });
    }
}

#[test]
fn a_watcher_survives_every_fault_of_watches() {
    simulate(async {
        let rates = Rates {
            watch_dropped: 200,
            watch_gone: 200,
            watch_duplicated: 200,
            watch_late: 200,
            ..Rates::default()
        };
        let server = ApiServer::start(3, FaultPlan::new(3, rates), &[]);
        let seen: Api<ConfigMap> = Api::default_namespaced(server.operator("operator"));
        let watched = tokio::spawn(async move {
            let mut events = watcher(seen, watcher::Config::default())
                .default_backoff()
                .applied_objects()
                .boxed();
            loop {
                if let Ok(Some(map)) = events.try_next().await
                    && map.data.is_some_and(|data| data["k"] == "50")
                {
                    return;
                }
            }
        });
        let maps: Api<ConfigMap> = Api::default_namespaced(server.user());
        maps.create(&PostParams::default(), &configmap("a", "0"))
            .await
            .unwrap();
        for value in 1..=50 {
            sleep(Duration::from_secs(7)).await;
            let patch = Patch::Merge(json!({"data": {"k": value.to_string()}}));
            maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
        }
        tokio::time::timeout(Duration::from_secs(600), watched)
            .await
            .unwrap()
            .unwrap();
    });
}

#[test]
fn the_crash_comes_after_the_write_and_before_its_answer() {
    simulate(async {
        let server = ApiServer::start(1, FaultPlan::none().crash_after(2), &[]);
        let mut crashes = server.crashes();
        let client = server.operator("operator");
        let operator = tokio::spawn(async move {
            let maps: Api<ConfigMap> = Api::default_namespaced(client);
            for name in ["a", "b", "c"] {
                maps.create(&PostParams::default(), &configmap(name, "1"))
                    .await
                    .unwrap();
            }
        });
        crashes.changed().await.unwrap();
        operator.abort();
        assert!(operator.await.unwrap_err().is_cancelled());
        let maps: Api<ConfigMap> = Api::default_namespaced(server.user());
        let names: Vec<_> = maps
            .list(&ListParams::default())
            .await
            .unwrap()
            .into_iter()
            .filter_map(|map| map.metadata.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(server.lock().faults.writes(), 2);
    });
}

#[test]
fn old_versions_are_gone_after_compaction() {
    simulate(async {
        let server = ApiServer::start(1, FaultPlan::none(), &[]);
        let maps: Api<ConfigMap> = Api::default_namespaced(server.user());
        maps.create(&PostParams::default(), &configmap("a", "1"))
            .await
            .unwrap();
        maps.create(&PostParams::default(), &configmap("b", "1"))
            .await
            .unwrap();
        server.lock().store.compact();
        let mut events = maps
            .watch(&kube::api::WatchParams::default(), "1")
            .await
            .unwrap()
            .boxed();
        match events.next().await {
            Some(Ok(kube::api::WatchEvent::Error(status))) => assert_eq!(status.code, 410),
            other => panic!("{other:?}"),
        }
    });
}

/// Runs for some seconds, then ends with a code; or runs until it is stopped.
struct Script {
    seconds: Option<u64>,
    code: i32,
}

impl Behaviour for Script {
    fn run(&self, mut process: Process) -> BoxFuture<'static, Exit> {
        let (seconds, code) = (self.seconds, self.code);
        async move {
            process.log("begins");
            if let Some(seconds) = seconds {
                sleep(Duration::from_secs(seconds)).await;
                Exit::failure(code, "the end")
            } else {
                sleep(Duration::from_millis(1_200)).await;
                process.started();
                process.stopped().await;
                sleep(Duration::from_secs(2)).await;
                Exit::success("stopped")
            }
        }
        .boxed()
    }
}

fn with_cluster(behaviour: Script) -> (ApiServer, cluster::Kubelet, Client) {
    let server = ApiServer::start(5, FaultPlan::none(), &[]);
    let nodes = vec![Node::named("node-a"), Node::named("node-b")];
    let kubelet = cluster::start(&server, 5, nodes, Arc::new(behaviour));
    let client = server.user();
    (server, kubelet, client)
}

/// Asks every 100 ms until something is so; how long that took.
async fn until<T, F>(mut ask: impl FnMut() -> F) -> (T, Duration)
where
    F: Future<Output = Option<T>>,
{
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(900) {
        if let Some(found) = ask().await {
            return (found, start.elapsed());
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("never became so");
}

fn database_pod() -> Pod {
    object(json!({
        "metadata": {"name": "db"},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 600, "nodeSelector": {"kubernetes.io/hostname": "node-b"},
            "containers": [{"name": "database", "image": "localhost/db", "startupProbe": {"periodSeconds": 1, "exec": {"command": ["true"]}}}]},
    }))
}

fn is_ready(pod: &Pod) -> bool {
    pod.status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[test]
fn a_pod_becomes_ready_by_its_startup_probe_and_goes_with_grace() {
    simulate(async {
        let (_server, _kubelet, client) = with_cluster(Script {
            seconds: None,
            code: 0,
        });
        let pods: Api<Pod> = Api::default_namespaced(client);
        let made = pods
            .create(&PostParams::default(), &database_pod())
            .await
            .unwrap();
        let (pod, took) = until(|| async { pods.get("db").await.ok().filter(is_ready) }).await;
        assert!(
            took > Duration::from_millis(1_500) && took < Duration::from_secs(5),
            "{took:?}"
        );
        assert_eq!(pod.spec.as_ref().unwrap().node_name.as_deref(), Some("node-b"));
        assert!(pod.status.as_ref().unwrap().pod_ip.is_some());
        assert_eq!(
            pods.logs("db", &kube::api::LogParams::default()).await.unwrap(),
            "begins\n"
        );
        pods.delete("db", &DeleteParams::default()).await.unwrap();
        let (pod, _) = until(|| async {
            let pod = pods.get_opt("db").await.unwrap();
            pod.is_none().then_some(pod)
        })
        .await;
        assert!(pod.is_none());
        let again = pods
            .create(&PostParams::default(), &database_pod())
            .await
            .unwrap();
        assert_ne!(again.metadata.uid, made.metadata.uid);
    });
}

#[test]
fn a_killed_process_ends_its_pod() {
    simulate(async {
        let (_server, kubelet, client) = with_cluster(Script {
            seconds: None,
            code: 0,
        });
        let pods: Api<Pod> = Api::default_namespaced(client);
        pods.create(&PostParams::default(), &database_pod())
            .await
            .unwrap();
        until(|| async { pods.get("db").await.ok().filter(is_ready) }).await;
        assert!(kubelet.kill_container("default", "db", "database"));
        let (pod, took) = until(|| async {
            let pod = pods.get("db").await.unwrap();
            (pod.status.as_ref()?.phase.as_deref() == Some("Failed")).then_some(pod)
        })
        .await;
        assert!(
            took >= Duration::from_secs(1) && took < Duration::from_secs(2),
            "{took:?}"
        );
        let statuses = pod.status.unwrap().container_statuses.unwrap();
        let terminated = statuses[0].state.clone().unwrap().terminated.unwrap();
        assert_eq!(terminated.exit_code, 137);
    });
}

fn job(name: &str, more: &Value) -> Job {
    let mut job = json!({
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "podReplacementPolicy": "Failed", "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "runner", "image": "localhost/runner"}],
        }}},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        job["spec"][field] = value.clone();
    }
    object(job)
}

async fn finished(jobs: &Api<Job>, name: &str) -> (Vec<(String, String)>, Job, Duration) {
    let (job, took) = until(|| async {
        let job = jobs.get(name).await.unwrap();
        let ended = job
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten())
            .any(|condition| {
                matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
            });
        ended.then_some(job)
    })
    .await;
    let conditions = job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .map(|condition| {
            (
                condition.type_.clone(),
                condition.reason.clone().unwrap_or_default(),
            )
        })
        .collect();
    (conditions, job, took)
}

#[test]
fn a_job_completes_some_time_after_its_process() {
    simulate(async {
        let (_server, _kubelet, client) = with_cluster(Script {
            seconds: Some(8),
            code: 0,
        });
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        jobs.create(&PostParams::default(), &job("j", &json!({})))
            .await
            .unwrap();
        let (conditions, job, took) = finished(&jobs, "j").await;
        let words: Vec<&str> = conditions.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(words, ["SuccessCriteriaMet", "Complete"]);
        assert!(
            took > Duration::from_millis(9_500) && took < Duration::from_millis(12_500),
            "{took:?}"
        );
        assert_eq!(job.status.unwrap().succeeded, Some(1));
        let pods: Api<Pod> = Api::default_namespaced(client);
        let pods = pods
            .list(&ListParams::default().labels("batch.kubernetes.io/job-name=j"))
            .await
            .unwrap()
            .items;
        assert_eq!(pods.len(), 1);
        assert!(pods[0].metadata.finalizers.is_none());
        let statuses = pods[0].status.clone().unwrap().container_statuses.unwrap();
        let terminated = statuses[0].state.clone().unwrap().terminated.unwrap();
        assert_eq!(terminated.message.as_deref(), Some("the end"));
    });
}

#[test]
fn a_job_without_retries_fails_with_its_pod() {
    simulate(async {
        let (_server, _kubelet, client) = with_cluster(Script {
            seconds: Some(1),
            code: 3,
        });
        let jobs: Api<Job> = Api::default_namespaced(client);
        jobs.create(&PostParams::default(), &job("j", &json!({})))
            .await
            .unwrap();
        let (conditions, job, _) = finished(&jobs, "j").await;
        assert_eq!(
            conditions[1],
            ("Failed".to_owned(), "BackoffLimitExceeded".to_owned())
        );
        assert_eq!(job.status.unwrap().failed, Some(1));
    });
}

#[test]
fn an_indexed_job_runs_each_index_once() {
    simulate(async {
        let (_server, _kubelet, client) = with_cluster(Script {
            seconds: Some(4),
            code: 0,
        });
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let more = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3});
        jobs.create(&PostParams::default(), &job("j", &more))
            .await
            .unwrap();
        let (_, job, _) = finished(&jobs, "j").await;
        assert_eq!(job.status.unwrap().completed_indexes.as_deref(), Some("0,1,2"));
        let pods: Api<Pod> = Api::default_namespaced(client);
        assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 3);
    });
}

#[test]
fn an_evicted_pod_fails_its_job_by_policy() {
    simulate(async {
        let (_server, kubelet, client) = with_cluster(Script {
            seconds: Some(60),
            code: 0,
        });
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let more = json!({"podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}});
        jobs.create(&PostParams::default(), &job("j", &more))
            .await
            .unwrap();
        sleep(Duration::from_secs(10)).await;
        let pods: Api<Pod> = Api::default_namespaced(client);
        let pod = pods.list(&ListParams::default()).await.unwrap().items.remove(0);
        kubelet.evict("default", pod.metadata.name.as_deref().unwrap());
        let (conditions, ..) = finished(&jobs, "j").await;
        assert_eq!(
            conditions[1],
            ("Failed".to_owned(), "PodFailurePolicy".to_owned())
        );
    });
}

#[test]
fn a_deleted_job_takes_its_pods_along_if_told_so() {
    simulate(async {
        let (_server, _kubelet, client) = with_cluster(Script {
            seconds: Some(600),
            code: 0,
        });
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client);
        jobs.create(&PostParams::default(), &job("j", &json!({})))
            .await
            .unwrap();
        sleep(Duration::from_secs(5)).await;
        jobs.delete("j", &DeleteParams::background()).await.unwrap();
        let (_, took) = until(|| async {
            pods.list(&ListParams::default())
                .await
                .unwrap()
                .items
                .is_empty()
                .then_some(())
        })
        .await;
        // The process ignores SIGTERM: it goes at the end of its grace.
        assert!(
            took > Duration::from_secs(29) && took < Duration::from_secs(34),
            "{took:?}"
        );
        jobs.create(&PostParams::default(), &job("k", &json!({})))
            .await
            .unwrap();
        sleep(Duration::from_secs(5)).await;
        jobs.delete("k", &DeleteParams::default()).await.unwrap();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(
            pods.list(&ListParams::default()).await.unwrap().items.len(),
            1,
            "orphaned"
        );
    });
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let history = |seed: u64| {
        simulate(async {
            let server = ApiServer::start(seed, FaultPlan::from_seed(seed), &[]);
            let nodes = vec![Node::named("node-a"), Node::named("node-b")];
            let script = Script {
                seconds: Some(3),
                code: 0,
            };
            cluster::start(&server, seed, nodes, Arc::new(script));
            let jobs: Api<Job> = Api::default_namespaced(server.operator("operator"));
            for number in 0..20 {
                let _ = jobs
                    .create(&PostParams::default(), &job(&format!("j{number}"), &json!({})))
                    .await;
                sleep(Duration::from_secs(5)).await;
            }
            server.lock().record.hash()
        })
    };
    for seed in 0..5 {
        assert_eq!(history(seed), history(seed), "seed {seed}");
    }
    assert_ne!(history(1), history(2));
}
