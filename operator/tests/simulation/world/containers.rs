//! What containers do in the simulation: the server, the agent beside it, and the runner with its two commands.
//! The runner's model follows the real one's order: claim, load, evidence, last word.

use std::time::Duration;

use crds::{
    audit::AuditType,
    dataset::DatasetStatus,
    names::{CONTAINER_AGENT, CONTAINER_DATABASE, CONTAINER_RUNNER, LABEL_TARGET},
    run::RunResult,
    runner::{
        EXIT_ALREADY_STARTED, EXIT_REPORTED, PrepareOrder, RunObservations, RunOrder, RunOutcome, RunReport,
    },
};
use futures::{FutureExt, future::BoxFuture};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::{
    databases::{Claim, Databases, Server},
    ledger::Load,
};
use crate::{
    cluster::{Behaviour, Exit, Process},
    random::Dice,
    record::hash_of,
};

const ORDER: &str = "benchmark-campaign.dev/order";

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

fn text<'a>(process: &'a Process, pointer: &str) -> &'a str {
    process
        .pod
        .pointer(pointer)
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
}

fn order<T: DeserializeOwned>(process: &Process) -> Option<T> {
    let text = process.pod["metadata"]["annotations"][ORDER].as_str()?;
    serde_json::from_str(text).ok()
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

    async fn runner(&self, process: Process, dice: Dice) -> Exit {
        if process.arguments().first() == Some(&"prepare") {
            self.prepare(process, dice).await
        } else {
            self.measure(process, dice).await
        }
    }

    async fn prepare(&self, mut process: Process, mut dice: Dice) -> Exit {
        let Some(order) = order::<PrepareOrder>(&process) else {
            return Exit::failure(1, "no order");
        };
        sleep(dice.millis(50, 300)).await;
        let told = |outcome, message: &str, dataset| {
            report(RunReport {
                outcome,
                message: message.to_owned(),
                run_uid: order.run_uid.clone(),
                epoch: order.epoch,
                dataset,
                ..RunReport::default()
            })
        };
        let host = &order.connection.host;
        match self
            .databases
            .begin_dataset(host, &order.run_uid, order.epoch)
            .await
        {
            None => return told(RunOutcome::DatabaseFailed, "connection refused", None),
            Some(Claim::Busy) => return told(RunOutcome::DatabaseFailed, "somebody is at it", None),
            Some(Claim::Fenced | Claim::NotProved) => return told(RunOutcome::Fenced, "another run's", None),
            Some(Claim::AlreadyStarted) => return told(RunOutcome::AlreadyStarted, "it measures", None),
            Some(Claim::Claimed) => {}
        }
        tokio::select! {
            biased;
            () = process.stopped() => return told(RunOutcome::Interrupted, "told to stop", None),
            () = sleep(dice.millis(2_000, 9_000)) => {}
        }
        let dataset = DatasetStatus {
            hash: order.dataset_hash.clone(),
            tables: 4,
            rows_per_table: order.rows_per_table,
            bytes: 54_500_000,
        };
        match self
            .databases
            .finish_dataset(host, &order.run_uid, order.epoch, dataset.clone())
        {
            Some(Claim::Claimed) => {}
            Some(_) => return told(RunOutcome::Fenced, "another run's", None),
            None => return told(RunOutcome::DatabaseFailed, "lost connection", None),
        }
        let at = self.databases.elapsed();
        self.databases
            .lock()
            .ledger
            .prepares
            .push((at, order.run_uid.clone()));
        told(RunOutcome::Completed, "", Some(dataset))
    }

    async fn measure(&self, mut process: Process, mut dice: Dice) -> Exit {
        let Some(order) = order::<RunOrder>(&process) else {
            return Exit::failure(1, "no order");
        };
        sleep(dice.millis(50, 300)).await;
        let word = |outcome, message: &str| RunReport {
            outcome,
            message: message.to_owned(),
            run_uid: order.run_uid.clone(),
            epoch: order.epoch,
            ..RunReport::default()
        };
        let host = &order.connection.host;
        match self.databases.claim(host, &order.run_uid, order.epoch).await {
            None => return report(word(RunOutcome::DatabaseFailed, "connection refused")),
            Some(_) if self.ignores_fence => {}
            Some(Claim::Fenced | Claim::Busy) => return report(word(RunOutcome::Fenced, "another run's")),
            Some(Claim::NotProved) => return report(word(RunOutcome::Fenced, "not proved")),
            Some(Claim::AlreadyStarted) => {
                let last = word(RunOutcome::AlreadyStarted, "another start measures");
                return Exit {
                    code: EXIT_ALREADY_STARTED,
                    ..report(last)
                };
            }
            Some(Claim::Claimed) => {}
        }
        let Some((index, mut ended)) = self.begin_load(&process, &order) else {
            return report(word(RunOutcome::BootChanged, "the server is another one"));
        };
        let load = Duration::from_secs(u64::from(order.warmup_seconds + order.duration_seconds));
        let crash = dice.chance(self.disturbances.crashed_server);
        let lost = dice.chance(self.disturbances.lost_runner);
        let cut = load.mul_f64(0.5);
        let began = process.server.lock().now().as_millisecond();
        let interrupted = tokio::select! {
            biased;
            _ = ended.wait_for(|ended| *ended) => Some((RunOutcome::DatabaseFailed, "lost connection during query")),
            () = process.stopped() => Some((RunOutcome::Interrupted, "told to stop")),
            () = sleep(cut), if crash || lost => {
                if crash {
                    let boot = self.databases.lock().servers.get(host).map(|server| server.boot.clone());
                    if let Some(boot) = boot {
                        self.databases.end(host, &boot, false);
                    }
                }
                Some((RunOutcome::DatabaseFailed, "lost connection during query"))
            }
            () = sleep(load) => None,
        };
        let now = self.databases.elapsed();
        {
            let entry = &mut self.databases.lock().ledger.loads[index];
            entry.to = Some(now);
            entry.complete = interrupted.is_none();
        }
        if lost && interrupted.is_some() {
            return Exit::failure(137, "");
        }
        if let Some((outcome, message)) = interrupted {
            return report(word(outcome, message));
        }
        let ended_at = process.server.lock().now().as_millisecond();
        sleep(dice.millis(50, 400)).await;
        let busy = dice.chance(self.disturbances.busy_node);
        let mut last = word(RunOutcome::Completed, "");
        last.result = Some(self.result(&order, busy, &mut dice));
        last.observed = Some(self.observations(&order, busy));
        last.client_version = Some("sysbench 1.0.20".to_owned());
        last.load_started_millis = Some(began);
        last.load_ended_millis = Some(ended_at);
        report(last)
    }

    /// Notes the beginning of load and what is wrong with it. `None` if the server is not the one of the order.
    fn begin_load(
        &self,
        process: &Process,
        order: &RunOrder,
    ) -> Option<(usize, tokio::sync::watch::Receiver<bool>)> {
        let run = process.pod["metadata"]["labels"][crds::names::LABEL_RUN]
            .as_str()
            .unwrap_or_default();
        let namespace = text(process, "/metadata/namespace");
        let status = {
            let state = process.server.lock();
            let key = state.key(crds::names::GROUP, "benchmarkruns", namespace, run);
            state
                .store
                .get(&key)
                .map(|run| run.value["status"].clone())
                .unwrap_or_default()
        };
        let at = self.databases.elapsed();
        let mut inner = self.databases.lock();
        let server = inner.servers.get(&order.connection.host)?;
        if order
            .server_started
            .is_some_and(|started| (started - server.started).abs() > 5)
        {
            return None;
        }
        let mut faults = Vec::new();
        let wanted = (order.parameters.clone(), order.audit.clone());
        if server.in_force.as_ref() != Some(&wanted) {
            faults.push("the settings in force are not those of the run".to_owned());
        }
        if server.proved.as_ref() != Some(&(order.run_uid.clone(), order.epoch)) {
            faults.push("nothing was proved for this run on this boot".to_owned());
        }
        if status["evidence"]["bootIdentity"] != server.boot.as_str() {
            faults.push(format!(
                "the status holds no proof of this boot but {}",
                status["evidence"]["bootIdentity"]
            ));
        }
        let load = Load {
            run_uid: order.run_uid.clone(),
            run: run.to_owned(),
            target: server.target.clone(),
            database_node: server.node.clone(),
            boot: server.boot.clone(),
            from: at,
            to: None,
            faults,
            complete: false,
        };
        let ended = server.ended.subscribe();
        inner.ledger.loads.push(load);
        Some((inner.ledger.loads.len() - 1, ended))
    }

    /// Figures with a cost of auditing of about 20 % and noise of 1 %. A disturbed run's are absurd, so that one that
    /// is averaged nevertheless cannot hide.
    fn result(&self, order: &RunOrder, busy: bool, dice: &mut Dice) -> RunResult {
        let audited = order.audit.type_ != AuditType::None;
        let base = 1_000_000 * i64::from(order.threads.min(8));
        let noise = dice.between(990, 1_010) as i64;
        let mut tps = base / 1_000 * noise;
        if audited {
            tps = tps / 10 * 8;
        }
        if busy {
            tps *= 50;
        }
        let seconds = i64::from(order.duration_seconds);
        RunResult {
            tps_milli: Some(tps),
            qps_milli: Some(tps * 16),
            transactions: Some((tps / 1_000 * seconds).max(1)),
            queries: Some((tps / 1_000 * seconds * 16).max(16)),
            window_micros: Some(seconds * 1_000_000),
            latency_mean_micros: Some(900),
            latency_p95_micros: Some(1_500),
            errors: Some(0),
            stalled_seconds: Some(0),
            ..RunResult::default()
        }
    }

    fn observations(&self, order: &RunOrder, busy: bool) -> RunObservations {
        let window = i64::from(order.duration_seconds) * 1_000;
        RunObservations {
            same_boot: Some(true),
            generator_cpu_millis: Some(window / 10),
            generator_cpu_available_millis: Some(window),
            generator_throttled_millis: Some(0),
            foreign_cpu_millis: Some(if busy { window / 2 } else { 0 }),
            database_cpu_available_millis: Some(window),
            swapped_pages: Some(0),
            oom_kills: Some(0),
            ..RunObservations::default()
        }
    }
}

fn report(report: RunReport) -> Exit {
    let message = serde_json::to_string(&report).expect("a report is JSON");
    Exit {
        code: EXIT_REPORTED,
        message,
    }
}
