//! Kubelets: one task a pod, from binding to the end of its last container and its removal. Writes status as the real
//! one does: late, and only as long as the pod is the same.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use futures::{
    StreamExt,
    future::{BoxFuture, FutureExt},
    stream::FuturesUnordered,
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

use super::{Behaviour, Exit, Node, Process, lag, scheduler};
use crate::{
    api_server::{
        ApiServer,
        delete::DeleteOptions,
        store::{Change, ChangeType, Key},
    },
    random::Dice,
};

/// What is asked of a pod's task.
#[derive(Clone, Debug)]
enum Order {
    /// End within this time.
    Terminate(Duration),
    /// End at once, without a word: the object is gone.
    Vanish,
    /// A container's process is killed (exit 137).
    Kill(String),
}

/// Handle to the node's pods, for injected disturbances.
#[derive(Clone)]
pub(crate) struct Kubelet {
    server: ApiServer,
    orders: mpsc::UnboundedSender<(String, Order)>,
}

impl Kubelet {
    /// Starts the kubelets of all nodes.
    pub(crate) fn spawn(
        server: &ApiServer,
        mut dice: Dice,
        nodes: Vec<Node>,
        behaviour: Arc<dyn Behaviour>,
    ) -> Self {
        let (orders, mut inbox) = mpsc::unbounded_channel();
        let kubelet = Self {
            server: server.clone(),
            orders,
        };
        let pods = server.lock().key("", "pods", "", "").resource;
        let mut changes = server.lock().store.subscribe();
        let server = server.clone();
        // Kept in the task, so that the inbox stays open when no test holds the handle.
        let open = kubelet.clone();
        tokio::spawn(async move {
            let _open = open;
            let mut running: BTreeMap<String, mpsc::UnboundedSender<Order>> = BTreeMap::new();
            let mut next_address = 10;
            loop {
                let change = tokio::select! {
                    biased;
                    change = changes.recv() => match change {
                        Some(change) => change,
                        None => return,
                    },
                    order = inbox.recv() => {
                        if let Some((uid, order)) = order
                            && let Some(pod) = running.get(&uid)
                        {
                            let _ = pod.send(order);
                        }
                        continue;
                    }
                };
                if change.key.resource != pods {
                    continue;
                }
                let uid = change.object.uid().to_owned();
                if change.change == ChangeType::Added {
                    let (sender, receiver) = mpsc::unbounded_channel();
                    running.insert(uid, sender);
                    next_address += 1;
                    let pod = Pod {
                        server: server.clone(),
                        key: change.key.clone(),
                        uid: change.object.uid().to_owned(),
                        address: format!("198.19.{}.{}", next_address / 250, next_address % 250 + 1),
                        dice: Dice::new(dice.between(0, u64::MAX - 1), 7),
                        orders: receiver,
                        init_containers: Vec::new(),
                        containers: Vec::new(),
                    };
                    tokio::spawn(pod.live(nodes.clone(), behaviour.clone()));
                } else if let Some(order) = order_of(&change)
                    && let Some(pod) = running.get(&uid)
                {
                    let _ = pod.send(order);
                    if change.change == ChangeType::Deleted {
                        running.remove(&uid);
                    }
                }
            }
        });
        kubelet
    }

    /// Kills a container's process as `kill -9` would; false if the pod is not there.
    pub(crate) fn kill_container(&self, namespace: &str, pod: &str, container: &str) -> bool {
        let state = self.server.lock();
        let key = state.key("", "pods", namespace, pod);
        let Some(version) = state.store.get(&key) else {
            return false;
        };
        let order = Order::Kill(container.to_owned());
        self.orders.send((version.uid().to_owned(), order)).is_ok()
    }

    /// Evicts a pod: the condition `DisruptionTarget`, then a graceful deletion.
    pub(crate) fn evict(&self, namespace: &str, pod: &str) {
        let mut state = self.server.lock();
        let key = state.key("", "pods", namespace, pod);
        let now = state.now_text();
        state.change("eviction", &key, |pod| {
            set_condition(
                &mut pod["status"],
                "DisruptionTarget",
                "True",
                "EvictionByEvictionAPI",
                &now,
            );
        });
        state.remove("eviction", &key, &DeleteOptions::background());
    }
}

fn order_of(change: &Change) -> Option<Order> {
    if change.change == ChangeType::Deleted {
        return Some(Order::Vanish);
    }
    let metadata = &change.object.value["metadata"];
    if metadata["deletionTimestamp"].is_null() {
        return None;
    }
    let seconds = metadata["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
    Some(Order::Terminate(Duration::from_secs(seconds)))
}

/// One container as its kubelet sees it.
struct Container {
    spec: Value,
    id: String,
    restarts: u64,
    state: Value,
    last_state: Value,
    ready: bool,
    started: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    kill: Option<tokio::sync::oneshot::Sender<()>>,
    ended: Option<Exit>,
}

struct Pod {
    server: ApiServer,
    key: Key,
    uid: String,
    address: String,
    dice: Dice,
    orders: mpsc::UnboundedReceiver<Order>,
    init_containers: Vec<Container>,
    containers: Vec<Container>,
}

type Processes = FuturesUnordered<Pin<Box<dyn Future<Output = (usize, Exit)> + Send>>>;

/// The pod ended before its containers did.
struct Gone;

impl Pod {
    async fn live(mut self, nodes: Vec<Node>, behaviour: Arc<dyn Behaviour>) {
        // Gone: its object vanished, and with it everything that could be reported.
        let _ = self.run(nodes, behaviour).await;
    }

    async fn run(&mut self, nodes: Vec<Node>, behaviour: Arc<dyn Behaviour>) -> Result<(), Gone> {
        self.schedule(&nodes).await?;
        let delay = lag::sandbox(&mut self.dice);
        self.pause(delay).await?;
        self.wait_for_references().await?;
        let pod = self.current()?;
        for init in pod["spec"]["initContainers"]
            .as_array()
            .cloned()
            .unwrap_or_default()
        {
            if self.run_to_end(&init, &behaviour).await?.code != 0 {
                self.report(json!({"phase": "Failed"}))?;
                return self.remain_until_deleted().await;
            }
        }
        let mut processes = Processes::new();
        for (index, spec) in pod["spec"]["containers"]
            .as_array()
            .cloned()
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            let container = self.start(index, &spec, &behaviour, &mut processes);
            self.containers.push(container);
        }
        let delay = lag::report_start(&mut self.dice);
        self.supervise(processes, behaviour, Instant::now() + delay).await
    }

    async fn schedule(&mut self, nodes: &[Node]) -> Result<(), Gone> {
        let delay = lag::schedule(&mut self.dice);
        self.pause(delay).await?;
        loop {
            let pod = self.current()?;
            let bound = {
                let mut state = self.server.lock();
                scheduler::bind(&mut state, &mut self.dice, nodes, &self.key, &pod)
            };
            match bound {
                Ok(node) => {
                    let mut state = self.server.lock();
                    let now = state.now_text();
                    state.change("scheduler", &self.key, |pod| {
                        pod["spec"]["nodeName"] = json!(node);
                        set_condition(&mut pod["status"], "PodScheduled", "True", "", &now);
                    });
                    return Ok(());
                }
                Err(reason) => {
                    {
                        let mut state = self.server.lock();
                        let now = state.now_text();
                        state.change("scheduler", &self.key, |pod| {
                            set_condition(&mut pod["status"], "PodScheduled", "False", "Unschedulable", &now);
                            let conditions = pod["status"]["conditions"].as_array_mut();
                            if let Some(condition) = conditions.and_then(|list| list.last_mut()) {
                                condition["message"] = json!(reason);
                            }
                        });
                    }
                    self.pause(Duration::from_secs(1)).await?;
                }
            }
        }
    }

    async fn wait_for_references(&mut self) -> Result<(), Gone> {
        loop {
            let pod = self.current()?;
            let missing = scheduler::missing_references(&self.server.lock(), &self.key, &pod);
            if missing.is_none() {
                return Ok(());
            }
            self.pause(Duration::from_secs(1)).await?;
        }
    }

    /// Sleeps; ends with the pod's deletion.
    async fn pause(&mut self, delay: Duration) -> Result<(), Gone> {
        let until = Instant::now() + delay;
        loop {
            tokio::select! {
                biased;
                order = self.orders.recv() => self.obey_before_the_start(order).await?,
                () = sleep_until(until) => return Ok(()),
            }
        }
    }

    /// An order to a pod whose containers have not started: there is no process to kill, and a deletion is soon done.
    async fn obey_before_the_start(&self, order: Option<Order>) -> Result<(), Gone> {
        match order {
            Some(Order::Kill(_)) => Ok(()),
            Some(Order::Terminate(_)) => {
                sleep(Duration::from_millis(200)).await;
                self.remove();
                Err(Gone)
            }
            Some(Order::Vanish) | None => Err(Gone),
        }
    }

    fn current(&self) -> Result<Value, Gone> {
        let version = self.server.lock().store.get(&self.key).ok_or(Gone)?;
        if version.uid() == self.uid {
            Ok(version.value.clone())
        } else {
            Err(Gone)
        }
    }

    fn start(
        &mut self,
        index: usize,
        spec: &Value,
        behaviour: &Arc<dyn Behaviour>,
        processes: &mut Processes,
    ) -> Container {
        let (started_sender, started) = watch::channel(false);
        let (stop, stop_receiver) = watch::channel(false);
        let (kill, killed) = tokio::sync::oneshot::channel();
        let id = format!("containerd://{}", self.dice.uid().replace('-', ""));
        let pod = self.current().unwrap_or(Value::Null);
        let process = Process {
            server: self.server.clone(),
            pod,
            container: spec.clone(),
            address: self.address.clone(),
            container_id: id.clone(),
            started: started_sender,
            stop: stop_receiver,
        };
        let life: BoxFuture<'static, Exit> = behaviour.run(process);
        let life = async move {
            tokio::select! {
                biased;
                _ = killed => Exit::failure(137, ""),
                exit = life => exit,
            }
        };
        processes.push(life.map(move |exit| (index, exit)).boxed());
        let now = self.server.lock().now_text();
        Container {
            spec: spec.clone(),
            id,
            restarts: 0,
            state: json!({"running": {"startedAt": now}}),
            last_state: json!({}),
            ready: spec["startupProbe"].is_null() && spec["readinessProbe"].is_null(),
            started,
            stop,
            kill: Some(kill),
            ended: None,
        }
    }

    /// Runs an init container; a pod that is deleted meanwhile is gone soon.
    async fn run_to_end(&mut self, spec: &Value, behaviour: &Arc<dyn Behaviour>) -> Result<Exit, Gone> {
        let mut processes = Processes::new();
        let mut container = self.start(0, spec, behaviour, &mut processes);
        loop {
            tokio::select! {
                biased;
                order = self.orders.recv() => self.obey_before_the_start(order).await?,
                Some((_, exit)) = processes.next() => {
                    let now = self.server.lock().now_text();
                    container.end(&exit, &now);
                    container.ready = exit.code == 0;
                    self.init_containers.push(container);
                    return Ok(exit);
                }
            }
        }
    }

    /// Watches over the running containers until all have ended for good.
    async fn supervise(
        &mut self,
        mut processes: Processes,
        behaviour: Arc<dyn Behaviour>,
        first_report: Instant,
    ) -> Result<(), Gone> {
        let policy = self.current()?["spec"]["restartPolicy"]
            .as_str()
            .unwrap_or("Always")
            .to_owned();
        let mut report_at = Some(first_report);
        let mut probe_at: Vec<Option<Instant>> = self.containers.iter().map(next_probe).collect();
        let mut restart_at: Vec<Option<Instant>> = vec![None; self.containers.len()];
        let mut deadline: Option<Instant> = None;
        loop {
            let next_probe_at = probe_at.iter().flatten().min().copied();
            let next_restart_at = restart_at.iter().flatten().min().copied();
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    None | Some(Order::Vanish) => return Err(Gone),
                    Some(Order::Kill(name)) => {
                        for container in &mut self.containers {
                            if container.spec["name"] == name.as_str()
                                && let Some(kill) = container.kill.take()
                            {
                                let _ = kill.send(());
                            }
                        }
                    }
                    Some(Order::Terminate(grace)) => {
                        let end = Instant::now() + grace;
                        deadline = Some(deadline.map_or(end, |earlier| earlier.min(end)));
                        restart_at.fill(None);
                        probe_at.fill(None);
                        for container in &self.containers {
                            container.stop.send_replace(true);
                        }
                    }
                },
                () = at(deadline), if deadline.is_some() && self.living() > 0 => {
                    for container in &mut self.containers {
                        if let Some(kill) = container.kill.take() {
                            let _ = kill.send(());
                        }
                    }
                    deadline = Some(Instant::now() + Duration::from_secs(3_600));
                }
                Some((index, exit)) = processes.next() => {
                    let restart = deadline.is_none() && match policy.as_str() {
                        "Always" => true,
                        "OnFailure" => exit.code != 0,
                        _ => false,
                    };
                    let now = self.server.lock().now_text();
                    let container = &mut self.containers[index];
                    container.end(&exit, &now);
                    probe_at[index] = None;
                    if restart {
                        // The first restart is immediate, as the kubelet's back-off begins with the second.
                        let wait = if container.restarts == 0 { 0 } else { 10 << container.restarts.min(5) };
                        restart_at[index] = Some(Instant::now() + Duration::from_secs(wait.min(300)));
                    } else {
                        container.ended = Some(exit);
                    }
                    let lag = lag::report_end(&mut self.dice);
                    report_at = Some(report_at.map_or(Instant::now() + lag, |earlier| earlier.max(Instant::now() + lag)));
                }
                () = at(next_probe_at), if next_probe_at.is_some() => {
                    for (container, probe) in self.containers.iter_mut().zip(&mut probe_at) {
                        if *probe == next_probe_at {
                            container.ready = *container.started.borrow();
                            *probe = if container.ready { None } else { next_probe(container) };
                            if container.ready {
                                report_at = Some(report_at.unwrap_or_else(Instant::now));
                            }
                        }
                    }
                }
                () = at(next_restart_at), if next_restart_at.is_some() => {
                    for index in 0..restart_at.len() {
                        if restart_at[index] == next_restart_at {
                            restart_at[index] = None;
                            let spec = self.containers[index].spec.clone();
                            let mut container = self.start(index, &spec, &behaviour, &mut processes);
                            container.restarts = self.containers[index].restarts + 1;
                            container.last_state = self.containers[index].state.clone();
                            probe_at[index] = next_probe(&container);
                            self.containers[index] = container;
                            report_at = Some(Instant::now() + lag::report_start(&mut self.dice));
                        }
                    }
                }
                () = at(report_at), if report_at.is_some() => {
                    report_at = None;
                    self.report(json!({}))?;
                    if self.living() == 0 && restart_at.iter().all(Option::is_none) {
                        if deadline.is_some() {
                            sleep(Duration::from_millis(100)).await;
                            self.remove();
                            return Ok(());
                        }
                        return self.remain_until_deleted().await;
                    }
                }
            }
        }
    }

    fn living(&self) -> usize {
        self.containers
            .iter()
            .filter(|container| container.state["running"].is_object())
            .count()
    }

    /// A finished pod stays until someone deletes it; that deletion has no grace, so only the end is seen.
    async fn remain_until_deleted(&mut self) -> Result<(), Gone> {
        loop {
            match self.orders.recv().await {
                Some(Order::Kill(_) | Order::Terminate(_)) => {}
                Some(Order::Vanish) | None => return Err(Gone),
            }
        }
    }

    fn remove(&self) {
        if self.current().is_ok() {
            let mut state = self.server.lock();
            state.remove("kubelet", &self.key, &DeleteOptions::without_grace());
        }
    }

    /// Writes the pod's status.
    fn report(&self, more: Value) -> Result<(), Gone> {
        self.current()?;
        let statuses: Vec<Value> = self.containers.iter().map(Container::status).collect();
        let init_statuses: Vec<Value> = self.init_containers.iter().map(Container::status).collect();
        let all_ended =
            !self.containers.is_empty() && self.containers.iter().all(|container| container.ended.is_some());
        let failed = self
            .containers
            .iter()
            .any(|container| container.ended.as_ref().is_some_and(|exit| exit.code != 0));
        let phase = match (self.containers.is_empty(), all_ended, failed) {
            (true, ..) => "Pending",
            (_, true, true) => "Failed",
            (_, true, false) => "Succeeded",
            _ => "Running",
        };
        let ready = !all_ended && self.containers.iter().all(|container| container.ready);
        let mut state = self.server.lock();
        let now = state.now_text();
        state.change("kubelet", &self.key, |object| {
            let status = &mut object["status"];
            status["phase"] = json!(phase);
            status["podIP"] = json!(self.address);
            status["podIPs"] = json!([{"ip": self.address}]);
            status["hostIP"] = json!("198.18.0.2");
            if status["startTime"].is_null() {
                status["startTime"] = json!(now);
            }
            if !init_statuses.is_empty() {
                status["initContainerStatuses"] = json!(init_statuses);
            }
            if !statuses.is_empty() {
                status["containerStatuses"] = json!(statuses);
            }
            let word = if ready { "True" } else { "False" };
            set_condition(status, "Initialized", "True", "", &now);
            set_condition(status, "ContainersReady", word, "", &now);
            set_condition(
                status,
                "Ready",
                word,
                if all_ended { "PodCompleted" } else { "" },
                &now,
            );
            for (field, value) in more.as_object().into_iter().flatten() {
                status[field] = value.clone();
            }
        });
        Ok(())
    }
}

impl Container {
    fn end(&mut self, exit: &Exit, now: &str) {
        let started = self.state["running"]["startedAt"].clone();
        let reason = if exit.code == 0 { "Completed" } else { "Error" };
        let mut terminated = json!({
            "exitCode": exit.code, "reason": reason, "startedAt": started, "finishedAt": now, "containerID": self.id,
        });
        if !exit.message.is_empty() {
            // The kubelet cuts termination messages at 4,096 bytes.
            let mut message = exit.message.clone();
            message.truncate(4_096);
            terminated["message"] = json!(message);
        }
        self.state = json!({"terminated": terminated});
        self.ready = false;
        self.kill = None;
    }

    fn status(&self) -> Value {
        let image = self.spec["image"].as_str().unwrap_or_default();
        let digest = crate::record::hash_of(&image);
        json!({
            "name": self.spec["name"], "image": image, "imageID": format!("sha256:{digest:064x}"), "containerID": self.id,
            "restartCount": self.restarts, "ready": self.ready, "started": self.ready, "state": self.state,
            "lastState": self.last_state,
        })
    }
}

/// When a container's startup (or readiness) probe looks next; none if it has no probe.
fn next_probe(container: &Container) -> Option<Instant> {
    let probe = [&container.spec["startupProbe"], &container.spec["readinessProbe"]]
        .into_iter()
        .find(|probe| probe.is_object())?;
    let period = probe["periodSeconds"].as_u64().unwrap_or(10).max(1);
    Some(Instant::now() + Duration::from_secs(period))
}

/// Sleeps until an instant; for ever if there is none.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Sets a condition; its transition time moves only with its status.
pub(crate) fn set_condition(status: &mut Value, word: &str, value: &str, reason: &str, now: &str) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    let mut condition = json!({"type": word, "status": value, "lastTransitionTime": now});
    if !reason.is_empty() {
        condition["reason"] = json!(reason);
    }
    match conditions.iter_mut().find(|other| other["type"] == word) {
        Some(other) if other["status"] == value => {}
        Some(other) => *other = condition,
        None => conditions.push(condition),
    }
}
