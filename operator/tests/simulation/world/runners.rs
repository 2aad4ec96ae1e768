//! What runners do in the simulation. The model follows the real one's order: meet, claim, load, evidence, last word.

use std::collections::BTreeMap;
use std::time::Duration;

use crds::{
    audit::AuditType,
    dataset::DatasetStatus,
    run::RunResult,
    runner::{
        EXIT_ALREADY_STARTED, EXIT_FAILED, EXIT_REPORTED, PrepareOrder, RunObservations, RunOrder,
        RunOutcome, RunReport,
    },
    together::{LatencyHistogram, Part},
};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::{
    containers::{Containers, text},
    databases::Claim,
    ledger::{Load, PartOfLoad},
};
use crate::{
    cluster::{Exit, Process},
    random::Dice,
};

const ORDER: &str = "benchmark-campaign.dev/order";
/// How long runners wait for each other.
const MEETING_LIMIT: Duration = Duration::from_mins(4);
const END_LIMIT: Duration = Duration::from_mins(1);

fn order<T: DeserializeOwned>(process: &Process) -> Option<T> {
    let text = process.pod["metadata"]["annotations"][ORDER].as_str()?;
    serde_json::from_str(text).ok()
}

impl Containers {
    pub(super) async fn runner(&self, process: Process, dice: Dice) -> Exit {
        if process.arguments().first() == Some(&"prepare") {
            return self.prepare(process, dice).await;
        }
        let Some(order) = order::<RunOrder>(&process) else {
            return Exit::failure(1, "no order");
        };
        let index = process.environment("JOB_COMPLETION_INDEX");
        match (&order.meeting, index.and_then(|index| index.parse::<i32>().ok())) {
            (Some(_), None) => Exit::failure(1, "no index"),
            (Some(_), Some(index)) if index > 0 => self.assist(process, dice, order, index).await,
            _ => self.measure(process, dice, order).await,
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

    /// A runner beside the first one: it claims nothing and asks the server nothing.
    async fn assist(&self, mut process: Process, mut dice: Dice, order: RunOrder, index: i32) -> Exit {
        sleep(dice.millis(50, 300)).await;
        let Some(meeting) = order.meeting.clone() else {
            return Exit::failure(1, "no meeting");
        };
        let word = |outcome, message: &str| word(&order, index, outcome, message);
        let meet = async {
            let other = loop {
                match self.meetings.other(&process, &meeting.host, index) {
                    Some(other) => break other,
                    None => sleep(Duration::from_millis(250)).await,
                }
            };
            let load = other.started().await;
            (other, load)
        };
        let Ok((other, load)) = tokio::time::timeout(MEETING_LIMIT, meet).await else {
            return report(word(RunOutcome::PartLost, "the first one was not found"));
        };
        let Some(load) = load else {
            return report(word(RunOutcome::PartLost, "the first one called it off"));
        };
        let part = order.part(index);
        let entry = PartOfLoad {
            index,
            threads: part.threads,
            from: self.databases.elapsed(),
            to: None,
            complete: false,
        };
        self.databases.lock().ledger.loads[load].parts.push(entry);
        let length = Duration::from_secs(u64::from(order.warmup_seconds + order.duration_seconds));
        let lost = dice.chance(self.disturbances.lost_runner);
        let interrupted = tokio::select! {
            biased;
            () = other.broken() => Some((RunOutcome::PartLost, "the first one went away")),
            () = process.stopped() => Some((RunOutcome::Interrupted, "told to stop")),
            () = sleep(length.mul_f64(0.5)), if lost => return Exit::failure(137, ""),
            () = sleep(length) => None,
        };
        let now = self.databases.elapsed();
        if let Some(entry) = self.databases.lock().ledger.loads[load]
            .parts
            .iter_mut()
            .find(|part| part.index == index)
        {
            entry.to = Some(now);
            entry.complete = interrupted.is_none();
        }
        if let Some((outcome, message)) = interrupted {
            return report(word(outcome, message));
        }
        other.ended();
        let mut last = word(RunOutcome::Completed, "");
        last.result = Some(self.result(&part, false, &mut dice));
        last.observed = Some(RunObservations {
            generator_cpu_millis: Some(600),
            generator_cpu_available_millis: Some(6_000),
            generator_throttled_millis: Some(0),
            ..RunObservations::default()
        });
        complete_part(&mut last, length);
        report(last)
    }

    async fn measure(&self, mut process: Process, mut dice: Dice, order: RunOrder) -> Exit {
        sleep(dice.millis(50, 300)).await;
        let word = |outcome, message: &str| word(&order, 0, outcome, message);
        let others = order.meeting.as_ref().map(|meeting| meeting.count as usize - 1);
        let first = others.map(|_| self.meetings.first(&process));
        if let (Some(first), Some(others)) = (&first, others) {
            let gathered = tokio::select! {
                () = process.stopped() => return report(word(RunOutcome::Interrupted, "told to stop")),
                gathered = tokio::time::timeout(MEETING_LIMIT, first.gathered(others)) => gathered,
            };
            if !gathered.unwrap_or(false) {
                return report(word(RunOutcome::PartLost, "not all came to the start"));
            }
        }
        let host = &order.connection.host;
        match self.databases.claim(host, &order.run_uid, order.epoch).await {
            None => return report(word(RunOutcome::DatabaseFailed, "connection refused")),
            Some(_) if self.ignores_fence => {}
            Some(Claim::Fenced | Claim::Busy) => return report(word(RunOutcome::Fenced, "another run's")),
            Some(Claim::NotProved) => return report(word(RunOutcome::Fenced, "not proved")),
            Some(Claim::AlreadyStarted) => {
                return report(word(RunOutcome::AlreadyStarted, "another start measures"));
            }
            Some(Claim::Claimed) => {}
        }
        let Some((index, mut ended)) = self.begin_load(&process, &order) else {
            return report(word(RunOutcome::BootChanged, "the server is another one"));
        };
        let broken = async {
            match &first {
                Some(first) => {
                    first.go(index);
                    first.broken().await;
                }
                None => std::future::pending().await,
            }
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
            () = broken => Some((RunOutcome::PartLost, "one was lost under load")),
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
        let interrupted = match (interrupted, &first, others) {
            (None, Some(first), Some(others)) => {
                let ended = tokio::time::timeout(END_LIMIT, first.ended(others)).await;
                (!ended.unwrap_or(false)).then_some((RunOutcome::PartLost, "one did not end"))
            }
            (interrupted, ..) => interrupted,
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
        last.result = Some(self.result(&order.part(0), busy, &mut dice));
        last.observed = Some(self.observations(&order, busy));
        last.client_version = Some("sysbench 1.0.20".to_owned());
        last.load_started_millis = Some(began);
        last.load_ended_millis = Some(ended_at);
        if first.is_some() {
            complete_part(&mut last, load);
        }
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
            runners: order.meeting.as_ref().map_or(1, |meeting| meeting.count),
            parts: Vec::new(),
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

fn word(order: &RunOrder, index: i32, outcome: RunOutcome, message: &str) -> RunReport {
    let part = Part {
        index,
        ..Part::default()
    };
    RunReport {
        outcome,
        message: message.to_owned(),
        run_uid: order.run_uid.clone(),
        epoch: order.epoch,
        part: order.meeting.as_ref().map(|_| part),
        ..RunReport::default()
    }
}

/// What one of several tells besides its figures.
fn complete_part(report: &mut RunReport, load: Duration) {
    if let Some(part) = &mut report.part {
        part.start_uncertainty_micros = (part.index > 0).then_some(120);
        part.load_millis = i64::try_from(load.as_millis()).ok();
        part.histogram = Some(LatencyHistogram::of(&BTreeMap::from([(407, 1_000)]), 1));
    }
}

fn report(report: RunReport) -> Exit {
    let message = serde_json::to_string(&report).expect("a report is JSON");
    let code = match report.outcome {
        RunOutcome::Completed => EXIT_REPORTED,
        RunOutcome::AlreadyStarted => EXIT_ALREADY_STARTED,
        _ => EXIT_FAILED,
    };
    Exit { code, message }
}
