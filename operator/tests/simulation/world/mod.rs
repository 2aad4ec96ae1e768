//! One world: the real controllers, a cluster and databases in memory, faults from a seed; run until everything has
//! ended, with the operator killed and started again wherever the fault plan says so.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use crds::names::{GROUP, VERSION};
use database::DatabaseAccess;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
};
use operator::{Clock, Context, Settings, context::Scope, metrics::Metrics};
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    api_server::{ApiServer, Interposer, kinds::Kind},
    cluster::{self, Kubelet, Node},
    faults::FaultPlan,
    random::Dice,
};

pub(crate) mod broken;
pub(crate) mod containers;
pub(crate) mod databases;
pub(crate) mod invariants;
pub(crate) mod ledger;
pub(crate) mod manifests;
pub(crate) mod meetings;
mod runners;

use containers::{Containers, Disturbances};
use databases::{DatabaseFaults, Databases};

/// Namespace of the campaigns.
pub(crate) const NAMESPACE: &str = "bench";
/// Namespace of the operator.
const OPERATOR_NAMESPACE: &str = "benchmark-system";
/// The operator's name in the record.
pub(crate) const OPERATOR: &str = "operator";

/// Our own kinds, compiled once for all worlds of the process.
static DEFINITIONS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let defined = |definition| {
        let json = serde_json::to_value(definition).expect("a definition is JSON");
        Kind::defined_by(&json).expect("a served version")
    };
    crds::all().iter().map(defined).collect()
});

/// How a world is made.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) faults: FaultPlan,
    pub(crate) database_faults: DatabaseFaults,
    pub(crate) disturbances: Disturbances,
    /// Operators that act at the same time, as if none knew of the others.
    pub(crate) operators: usize,
    /// A step that is broken on purpose.
    pub(crate) interposer: Option<Arc<dyn Interposer>>,
    /// Databases that lie, on purpose.
    pub(crate) proves_nothing: bool,
    /// Operators that change servers without their lock, on purpose.
    pub(crate) ignores_lock: bool,
    /// Runners that claim nothing, on purpose.
    pub(crate) ignores_fence: bool,
    /// A controller that asks the API server every second, on purpose.
    pub(crate) restless: bool,
}

impl Setup {
    /// A world in which everything works.
    pub(crate) fn calm(seed: u64) -> Self {
        Self {
            seed,
            faults: FaultPlan::none(),
            database_faults: DatabaseFaults::default(),
            disturbances: Disturbances::default(),
            operators: 1,
            interposer: None,
            proves_nothing: false,
            ignores_lock: false,
            ignores_fence: false,
            restless: false,
        }
    }

    /// A world whose faults are drawn from its seed.
    pub(crate) fn stormy(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 10);
        Self {
            faults: FaultPlan::from_seed(seed),
            database_faults: DatabaseFaults::draw(&mut dice),
            disturbances: Disturbances {
                busy_node: dice.between(0, 60) as u32,
                lost_runner: dice.between(0, 40) as u32,
                crashed_server: dice.between(0, 40) as u32,
            },
            ..Self::calm(seed)
        }
    }

    /// How often each fault and disturbance happens.
    pub(crate) fn rates(&self) -> Vec<(String, u32)> {
        let shown = [
            format!("{:?}", self.faults.rates()),
            format!("{:?}", self.database_faults),
            format!("{:?}", self.disturbances),
        ];
        let fields = shown.iter().flat_map(|text| {
            let (kind, fields) = text.split_once(" { ").unwrap_or_default();
            fields
                .split([',', '}'])
                .filter_map(|field| field.split_once(": "))
                .map(move |(name, rate)| (format!("{kind} {}", name.trim()), rate.trim().parse().ok()))
        });
        fields.filter_map(|(kind, rate)| Some((kind, rate?))).collect()
    }
}

/// A running world.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) kubelet: Kubelet,
    pub(crate) databases: Databases,
    setup: Setup,
    operators: Vec<JoinHandle<()>>,
    dice: Dice,
    /// Times the operator was killed.
    pub(crate) crashes: u64,
    /// Largest status of a campaign seen, bytes.
    pub(crate) largest_status: usize,
}

impl World {
    /// Makes a world; the operator starts with [`Self::start`].
    pub(crate) async fn new(setup: Setup) -> Self {
        let server = ApiServer::start(setup.seed, setup.faults.clone(), &DEFINITIONS);
        let databases = Databases::new(setup.seed, setup.database_faults);
        databases.lock().ignores_lock = setup.ignores_lock;
        let containers = Containers {
            databases: databases.clone(),
            meetings: meetings::Meetings::default(),
            seed: setup.seed,
            disturbances: setup.disturbances,
            ignores_fence: setup.ignores_fence,
        };
        let nodes = vec![
            Node::named("node-a"),
            Node::named("node-b"),
            Node::named("node-c"),
        ];
        let kubelet = cluster::start(&server, setup.seed, nodes, Arc::new(containers));
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(server.user());
        for name in [NAMESPACE, OPERATOR_NAMESPACE] {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a namespace");
            namespaces
                .create(&PostParams::default(), &namespace)
                .await
                .expect("a namespace is made");
        }
        Self {
            dice: Dice::new(setup.seed, 11),
            server,
            kubelet,
            databases,
            setup,
            operators: Vec::new(),
            crashes: 0,
            largest_status: 0,
        }
    }

    /// Starts the operators.
    pub(crate) fn start(&mut self) {
        for number in 0..self.setup.operators {
            let task = self.spawn_operator(number);
            self.operators.push(task);
        }
    }

    /// What an operator is given here.
    pub(crate) fn context(&self, number: usize) -> Context {
        let client = match &self.setup.interposer {
            Some(interposer) => self.server.broken_operator(OPERATOR, interposer.clone()),
            None => self.server.operator(OPERATOR),
        };
        let database: Arc<dyn DatabaseAccess> = if self.setup.proves_nothing {
            Arc::new(broken::ProvesNothing(self.databases.clone()))
        } else {
            Arc::new(self.databases.clone())
        };
        Context {
            scope: Scope::Cluster,
            client,
            database,
            clock: Clock::starting_at(self.server.lock().now()),
            settings: Arc::new(Settings {
                watch_namespaces: Vec::new(),
                operator_namespace: OPERATOR_NAMESPACE.to_owned(),
                identity: format!("operator-{number}"),
                runner_image: "localhost/runner".to_owned(),
                job_ttl_seconds: 600,
            }),
            metrics: Arc::new(Metrics::default()),
        }
    }

    fn spawn_operator(&self, number: usize) -> JoinHandle<()> {
        let context = self.context(number);
        let restless = self.setup.restless.then(|| self.context(number));
        tokio::spawn(async move {
            let controllers =
                operator::run_controllers(context, operator::shutdown_on(std::future::pending()));
            match restless {
                None => controllers.await,
                Some(context) => {
                    tokio::select! {
                        biased;
                        () = controllers => {}
                        () = broken::ask_every_second(context) => {}
                    }
                }
            }
        })
    }

    /// Objects of ours.
    pub(crate) fn api(&self, client: Client, kind: &str, plural: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: VERSION.to_owned(),
            api_version: format!("{GROUP}/{VERSION}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::namespaced_with(client, NAMESPACE, &resource)
    }

    /// Applies a campaign, as a person would.
    pub(crate) async fn apply(&self, campaign: &Value) {
        let object: DynamicObject = serde_json::from_value(campaign.clone()).expect("a campaign");
        let created = self
            .api(self.server.user(), "BenchmarkCampaign", "benchmarkcampaigns")
            .create(&PostParams::default(), &object)
            .await;
        if let Err(error) = created {
            panic!("the campaign was refused: {error}");
        }
    }

    /// Deletes a campaign, as a person would.
    pub(crate) async fn delete(&self, name: &str) {
        let api = self.api(self.server.user(), "BenchmarkCampaign", "benchmarkcampaigns");
        let _ = api
            .delete(name, &DeleteParams::background())
            .await
            .expect("a campaign to delete");
    }

    /// Lets time pass; kills and restarts the operator when its time has come.
    pub(crate) async fn pass(&mut self, time: Duration) {
        let mut crashes = self.server.crashes();
        crashes.mark_unchanged();
        let end = tokio::time::Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            if timeout(left, crashes.changed()).await.is_err() {
                break;
            }
            self.crash().await;
        }
        self.look();
    }

    /// Kills the first operator and starts another in its place.
    pub(crate) async fn crash(&mut self) {
        self.crashes += 1;
        let task = self.operators.remove(0);
        task.abort();
        let _ = task.await;
        sleep(self.dice.millis(100, 20_000)).await;
        let task = self.spawn_operator(usize::try_from(self.crashes).unwrap_or(0) + 10);
        self.operators.push(task);
    }

    fn look(&mut self) {
        let largest = self.each("benchmarkcampaigns", |campaign| {
            campaign["status"].to_string().len()
        });
        self.largest_status = largest.into_iter().max().unwrap_or(0).max(self.largest_status);
    }

    /// Something of each stored object of ours, in the order of their names.
    fn each<T>(&self, plural: &str, read: impl Fn(&Value) -> T) -> Vec<T> {
        let state = self.server.lock();
        let key = state.key(GROUP, plural, NAMESPACE, "");
        state
            .store
            .list(key.resource, Some(NAMESPACE))
            .map(|(_, version)| read(&version.value))
            .collect()
    }

    /// Stored objects of ours, in the order of their names.
    pub(crate) fn stored(&self, plural: &str) -> Vec<Value> {
        self.each(plural, Value::clone)
    }

    /// Leases of nodes that somebody holds.
    pub(crate) fn held_nodes(&self) -> Vec<String> {
        let state = self.server.lock();
        let key = state.key("coordination.k8s.io", "leases", OPERATOR_NAMESPACE, "");
        state
            .store
            .list(key.resource, Some(OPERATOR_NAMESPACE))
            .filter(|(key, lease)| {
                let holder = lease.value["spec"]["holderIdentity"].as_str().unwrap_or_default();
                key.name.starts_with("benchmark-node-") && !holder.is_empty()
            })
            .map(|(key, _)| key.name.clone())
            .collect()
    }

    /// The last entries of the record, for messages of failed tests.
    pub(crate) fn story(&self, last: usize) -> String {
        let state = self.server.lock();
        let entries = state.record.entries();
        entries[entries.len().saturating_sub(last)..]
            .iter()
            .map(|entry| {
                let fault = entry.fault.unwrap_or_default();
                format!(
                    "{:>10.3} {} {} {} {} {} {fault}\n",
                    entry.at.as_secs_f64(),
                    entry.actor,
                    entry.verb,
                    entry.resource,
                    entry.name,
                    entry.code
                )
            })
            .collect()
    }

    /// Whether every campaign has ended.
    pub(crate) fn finished(&self) -> bool {
        let ended = self.each("benchmarkcampaigns", |campaign| {
            condition(campaign, "Finished") == Some("True")
        });
        !ended.is_empty() && ended.into_iter().all(|ended| ended)
    }

    /// Lets time pass until every campaign has ended, or the limit is reached.
    pub(crate) async fn run_until_finished(&mut self, limit: Duration) {
        let end = tokio::time::Instant::now() + limit;
        while !self.finished() && tokio::time::Instant::now() < end {
            self.pass(Duration::from_secs(5)).await;
        }
    }
}

/// Status of a condition.
pub(crate) fn condition<'a>(object: &'a Value, word: &str) -> Option<&'a str> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == word)?["status"]
        .as_str()
}
