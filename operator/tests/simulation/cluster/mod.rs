//! The parts of a cluster beside its API server: a scheduler, kubelets and the Job controller, with lags as measured
//! on a real node. What a container does is the caller's: a `Behaviour`.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use crate::{api_server::ApiServer, random::Dice};

mod jobs;
mod kubelet;
mod scheduler;

pub(crate) use kubelet::Kubelet;

/// A node: its name and labels.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
}

impl Node {
    /// A node with its host name as the only label.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            labels: vec![("kubernetes.io/hostname".to_owned(), name.to_owned())],
        }
    }
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    /// The termination message.
    pub(crate) message: String,
}

impl Exit {
    /// Exit code 0 with a message.
    pub(crate) fn success(message: impl Into<String>) -> Self {
        Self {
            code: 0,
            message: message.into(),
        }
    }

    /// Another exit code.
    pub(crate) fn failure(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// What containers do.
pub(crate) trait Behaviour: Send + Sync {
    /// The life of one process. It is dropped at once when the container is killed.
    fn run(&self, process: Process) -> BoxFuture<'static, Exit>;
}

/// One process in one container of one pod.
pub(crate) struct Process {
    pub(crate) server: ApiServer,
    /// The pod as it was when the container started.
    pub(crate) pod: Value,
    /// The container's spec.
    pub(crate) container: Value,
    /// Address of the pod.
    pub(crate) address: String,
    /// `containerd://…`, new at each start.
    pub(crate) container_id: String,
    started: watch::Sender<bool>,
    stop: watch::Receiver<bool>,
}

impl Process {
    /// Name of the container.
    pub(crate) fn name(&self) -> &str {
        self.container["name"].as_str().unwrap_or_default()
    }

    /// UID of the pod.
    pub(crate) fn pod_uid(&self) -> &str {
        self.pod["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// Value of an environment variable that is written in the spec.
    pub(crate) fn environment(&self, name: &str) -> Option<&str> {
        self.container["env"]
            .as_array()?
            .iter()
            .find(|variable| variable["name"] == name)?["value"]
            .as_str()
    }

    /// Arguments after the command.
    pub(crate) fn arguments(&self) -> Vec<&str> {
        self.container["args"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// From now on the startup probe succeeds.
    pub(crate) fn started(&self) {
        self.started.send_replace(true);
    }

    /// Waits for SIGTERM.
    pub(crate) async fn stopped(&mut self) {
        if self.stop.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Writes a line to the container's log.
    pub(crate) fn log(&self, line: &str) {
        let key = (self.pod_uid().to_owned(), self.name().to_owned());
        let mut state = self.server.lock();
        let log = state.logs.entry(key).or_default();
        log.push_str(line);
        log.push('\n');
    }
}

/// Starts scheduler, kubelets and Job controller.
pub(crate) fn start(
    server: &ApiServer,
    seed: u64,
    nodes: Vec<Node>,
    behaviour: Arc<dyn Behaviour>,
) -> Kubelet {
    jobs::spawn(server, Dice::new(seed, 5));
    Kubelet::spawn(server, Dice::new(seed, 6), nodes, behaviour)
}

/// Lags of the node, from measurements on a real one.
pub(crate) mod lag {
    use super::{Dice, Duration};

    /// A pod is created until it is bound to a node.
    pub(crate) fn schedule(dice: &mut Dice) -> Duration {
        dice.millis(5, 60)
    }

    /// Bound until its first process runs.
    pub(crate) fn sandbox(dice: &mut Dice) -> Duration {
        dice.millis(300, 600)
    }

    /// A process runs until the pod's status says so.
    pub(crate) fn report_start(dice: &mut Dice) -> Duration {
        dice.millis(50, 1_000)
    }

    /// A process ends until the pod's status says so.
    pub(crate) fn report_end(dice: &mut Dice) -> Duration {
        dice.millis(1_000, 1_500)
    }

    /// A Job or its pods change until the Job controller acts.
    pub(crate) fn job_sync(dice: &mut Dice) -> Duration {
        dice.millis(20, 150)
    }

    /// A Job's last pod has ended until the Job is Complete.
    pub(crate) fn job_finish(dice: &mut Dice) -> Duration {
        dice.millis(800, 1_000)
    }
}
