//! What containers do in the simulation: the server and the agent beside it; runners are in [`super::runners`].

use crds::names::{CONTAINER_AGENT, CONTAINER_DATABASE, CONTAINER_RUNNER, LABEL_TARGET};
use futures::{FutureExt, future::BoxFuture};
use tokio::time::sleep;

use super::{
    databases::{Databases, Server},
    meetings::Meetings,
};
use crate::{
    cluster::{Behaviour, Exit, Process},
    random::Dice,
    record::hash_of,
};

/// Disturbances from outside that make runs invalid, in 1,000 loads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disturbances {
    /// The node was busy with something else.
    pub(crate) busy_node: u32,
    /// The runner ends without a word.
    pub(crate) lost_runner: u32,
    /// The server crashes under load.
    pub(crate) crashed_server: u32,
}

/// The containers of a world.
#[derive(Clone)]
pub(crate) struct Containers {
    pub(crate) databases: Databases,
    pub(crate) meetings: Meetings,
    pub(crate) seed: u64,
    pub(crate) disturbances: Disturbances,
    /// A runner that does not claim the fence row: a broken step that the invariants must catch.
    pub(crate) ignores_fence: bool,
}

impl Behaviour for Containers {
    fn run(&self, process: Process) -> BoxFuture<'static, Exit> {
        let containers = self.clone();
        async move {
            let uid = hash_of(&(process.pod_uid(), process.name()));
            let dice = Dice::new(containers.seed ^ uid, 9);
            match process.name() {
                "init" => containers.initialise(process, dice).await,
                CONTAINER_DATABASE => containers.serve(process, dice).await,
                CONTAINER_AGENT => idle(process).await,
                CONTAINER_RUNNER => containers.runner(process, dice).await,
                other => Exit::failure(127, format!("no model of a container {other}")),
            }
        }
        .boxed()
    }
}

async fn idle(mut process: Process) -> Exit {
    process.stopped().await;
    Exit::success("")
}

pub(super) fn text<'a>(process: &'a Process, pointer: &str) -> &'a str {
    process
        .pod
        .pointer(pointer)
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
}

/// UID of the claim that holds the data.
fn volume(process: &Process) -> String {
    let claim = process.pod["spec"]["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|volume| volume["name"] == "data")
        .and_then(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
        .unwrap_or_default();
    let state = process.server.lock();
    let key = state.key(
        "",
        "persistentvolumeclaims",
        text(process, "/metadata/namespace"),
        claim,
    );
    state
        .store
        .get(&key)
        .map(|claim| claim.uid().to_owned())
        .unwrap_or_default()
}

/// Takes the server away when its process ends, however it ends.
struct Running {
    databases: Databases,
    address: String,
    boot: String,
    clean: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.databases.end(&self.address, &self.boot, self.clean);
    }
}

impl Containers {
    async fn initialise(&self, process: Process, mut dice: Dice) -> Exit {
        sleep(dice.millis(200, 3_000)).await;
        self.databases.initialise(&volume(&process));
        Exit::success("")
    }

    async fn serve(&self, mut process: Process, mut dice: Dice) -> Exit {
        sleep(dice.millis(300, 2_000)).await;
        let boot = format!("{}/{}", process.pod_uid(), process.container_id);
        let target = format!(
            "{}/{}",
            text(&process, "/metadata/namespace"),
            process.pod["metadata"]["labels"][LABEL_TARGET]
                .as_str()
                .unwrap_or_default()
        );
        let node = text(&process, "/spec/nodeName").to_owned();
        let started = process.server.lock().now().as_second();
        let server = Server::fresh(volume(&process), target, node, boot.clone(), started);
        self.databases.boot(&process.address, server);
        let mut running = Running {
            databases: self.databases.clone(),
            address: process.address.clone(),
            boot,
            clean: false,
        };
        process.started();
        process.stopped().await;
        sleep(dice.millis(100, 4_000)).await;
        running.clean = true;
        Exit::success("")
    }
}
