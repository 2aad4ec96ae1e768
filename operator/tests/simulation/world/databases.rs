//! Database servers in memory: data volumes that outlive them, boots, settings in force, the fence row, the lock under
//! which a server is changed and the dataset's marker, behind the operator's own `DatabaseAccess`. Effects of a call come
//! one after another with time between them, so that a crash in the middle leaves a prefix.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use crds::{
    audit::{AuditSetting, AuditType},
    dataset::DatasetStatus,
    environment::Environment,
    parameter::Parameters,
    run::{AuditEvidence, CacheEvidence, Evidence, EvidenceLevel, ReadBack, SettleEvidence},
    runner::AuditLogPosition,
    target::{Capabilities, CleanShutdown, OriginalState, Permissions},
};
use database::{
    Captured, DatabaseAccess, DatabaseError, EstablishOrder, Established, Left, Login, ParameterProblem,
    Proof, ServerIdentity,
};
use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::ledger::{Ledger, Load};
use crate::random::Dice;

/// How long a runner waits for whoever is at the server.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);
/// How long `prepare` waits for whoever is at the server for the same run.
const PREPARE_PATIENCE: Duration = Duration::from_secs(10);
/// How often a wait for the lock looks again.
const POLL: Duration = Duration::from_millis(100);

/// How often the network to databases fails, in 1,000 calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DatabaseFaults {
    /// The connection is refused.
    pub(crate) refused: u32,
    /// The call takes up to 20 s longer.
    pub(crate) slow: u32,
    /// The connection breaks in the middle of the call.
    pub(crate) broken: u32,
}

impl DatabaseFaults {
    /// Rates drawn from a seed.
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let mut rate = || {
            if dice.chance(500) {
                dice.between(1, 80) as u32
            } else {
                0
            }
        };
        Self {
            refused: rate(),
            slow: rate(),
            broken: rate(),
        }
    }
}

/// What stays on a volume when its server goes.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    identity: String,
    pub(crate) fence: Fence,
    pub(crate) dataset: Option<DatasetStatus>,
    clean: bool,
}

/// The fence row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fence {
    pub(crate) holder: String,
    pub(crate) epoch: i64,
    pub(crate) progress: Progress,
}

/// How far the holder of the fence row has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    #[default]
    Establishing,
    Proved,
    Started,
}

impl Fence {
    fn is_of(&self, run: &str, epoch: i64) -> bool {
        self.holder == run && self.epoch == epoch
    }

    fn admits(&self, run: &str, epoch: i64) -> bool {
        epoch > self.epoch || self.is_of(run, epoch)
    }

    fn has_started(&self, run: &str, epoch: i64) -> bool {
        self.is_of(run, epoch) && self.progress == Progress::Started
    }

    /// Written before anything is changed: what was proved counts no more, a start is never undone.
    fn take(&mut self, run: &str, epoch: i64) {
        if self.admits(run, epoch) && !self.has_started(run, epoch) {
            *self = Self {
                holder: run.to_owned(),
                epoch,
                progress: Progress::Establishing,
            };
        }
    }
}

/// What a claim of the fence row came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Claimed,
    AlreadyStarted,
    NotProved,
    Fenced,
    /// Somebody else is at the server for the same run.
    Busy,
}

/// The session that holds a server's lock.
#[derive(Clone, Copy, Debug)]
struct Lock {
    session: u64,
    /// The server notices then that its other end has gone.
    until: Option<Instant>,
}

/// A session that holds a server's lock; the lock goes with it, however it ends.
struct Changing {
    databases: Databases,
    host: String,
    boot: String,
    session: u64,
    /// It said goodbye.
    closed: bool,
}

impl Changing {
    /// Whether the session is alive: its server is, and nobody ended it.
    fn lives(&self) -> bool {
        let inner = self.databases.lock();
        inner.servers.get(&self.host).is_some_and(|server| {
            let holds = server.lock.is_some_and(|lock| lock.session == self.session);
            server.boot == self.boot && (holds || inner.ignores_lock)
        })
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        if !self.lives() {
            return;
        }
        let mut inner = self.databases.lock();
        // A server learns at once of a process that ended, and later of one that was cut off.
        let after = if inner.dice.chance(100) { 30_000 } else { 50 };
        let until = Instant::now() + inner.dice.millis(0, after);
        if let Some(server) = inner.servers.get_mut(&self.host) {
            server.lock = (!self.closed).then_some(Lock {
                session: self.session,
                until: Some(until),
            });
        }
    }
}

/// What asking for a server's lock came to.
enum Right {
    Granted(Changing),
    Fenced(String),
    Busy,
    Gone,
}

/// One boot of a server.
pub(crate) struct Server {
    pub(crate) volume: String,
    pub(crate) target: String,
    pub(crate) node: String,
    /// `POD UID/CONTAINER ID`, as the operator names boots.
    pub(crate) boot: String,
    /// Seconds since 1970.
    pub(crate) started: i64,
    clean_before: bool,
    /// Parameters and audit setting in force.
    pub(crate) in_force: Option<(Parameters, AuditSetting)>,
    /// Run and epoch for which they were proved.
    pub(crate) proved: Option<(String, i64)>,
    /// Who changes it now.
    lock: Option<Lock>,
    /// True when it has ended.
    pub(crate) ended: watch::Sender<bool>,
}

pub(crate) struct Inner {
    dice: Dice,
    sessions: u64,
    /// Servers are changed without the lock: a broken step that the invariants must catch.
    pub(crate) ignores_lock: bool,
    pub(crate) faults: DatabaseFaults,
    pub(crate) volumes: BTreeMap<String, Volume>,
    /// By address.
    pub(crate) servers: BTreeMap<String, Server>,
    pub(crate) ledger: Ledger,
}

/// All database servers of a world.
#[derive(Clone)]
pub(crate) struct Databases {
    inner: Arc<Mutex<Inner>>,
    start: Instant,
}

impl Databases {
    pub(crate) fn new(seed: u64, faults: DatabaseFaults) -> Self {
        let inner = Inner {
            dice: Dice::new(seed, 8),
            sessions: 0,
            ignores_lock: false,
            faults,
            volumes: BTreeMap::new(),
            servers: BTreeMap::new(),
            ledger: Ledger::default(),
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            start: Instant::now(),
        }
    }

    /// The state; never held across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .expect("no panic while the databases are locked")
    }

    /// Since the start of the simulation.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Makes the data directory on a volume, once.
    pub(crate) fn initialise(&self, volume: &str) {
        let mut inner = self.lock();
        let identity = inner.dice.uid();
        inner.volumes.entry(volume.to_owned()).or_insert(Volume {
            identity,
            fence: Fence::default(),
            dataset: None,
            clean: true,
        });
    }

    /// A server starts to accept connections on an address.
    pub(crate) fn boot(&self, address: &str, mut server: Server) -> watch::Receiver<bool> {
        let mut inner = self.lock();
        let volume = inner
            .volumes
            .get_mut(&server.volume)
            .expect("the data directory was made");
        server.clean_before = volume.clean;
        volume.clean = false;
        // The init file: what was proved, was proved on the boot before.
        if volume.fence.progress == Progress::Proved {
            volume.fence.progress = Progress::Establishing;
        }
        let ended = server.ended.subscribe();
        inner.servers.insert(address.to_owned(), server);
        ended
    }

    /// A server ends; `clean` if it was told to.
    pub(crate) fn end(&self, address: &str, boot: &str, clean: bool) {
        let mut inner = self.lock();
        if inner
            .servers
            .get(address)
            .is_some_and(|server| server.boot == boot)
            && let Some(server) = inner.servers.remove(address)
        {
            if let Some(volume) = inner.volumes.get_mut(&server.volume) {
                volume.clean = clean;
            }
            server.ended.send_replace(true);
        }
    }

    /// Asks for the lock of the server at an address, as soon as may be: a session of a lower epoch is ended, one of the
    /// same epoch is waited for.
    async fn acquire(&self, host: &str, run: &str, epoch: i64, patience: Duration) -> Right {
        let begun = Instant::now();
        loop {
            match self.try_lock(host, run, epoch) {
                Right::Busy if begun.elapsed() < patience => sleep(POLL).await,
                answer => return answer,
            }
        }
    }

    fn try_lock(&self, host: &str, run: &str, epoch: i64) -> Right {
        let mut inner = self.lock();
        inner.sessions += 1;
        let session = inner.sessions;
        let inner = &mut *inner;
        let Some(server) = inner.servers.get_mut(host) else {
            return Right::Gone;
        };
        if server.locked() && !inner.ignores_lock {
            let fence = &inner.volumes[&server.volume].fence;
            if !fence.admits(run, epoch) {
                return Right::Fenced(fence.holder.clone());
            }
            if epoch == fence.epoch {
                return Right::Busy;
            }
        }
        server.lock = Some(Lock { session, until: None });
        Right::Granted(Changing {
            databases: self.clone(),
            host: host.to_owned(),
            boot: server.boot.clone(),
            session,
            closed: false,
        })
    }

    /// The runner's claim of the fence row: it waits a moment for whoever is at the server.
    pub(crate) async fn claim(&self, address: &str, run: &str, epoch: i64) -> Option<Claim> {
        let begun = Instant::now();
        while self.lock().servers.get(address)?.locked() && begun.elapsed() < CLAIM_PATIENCE {
            sleep(POLL).await;
        }
        let mut inner = self.lock();
        let volume = inner.servers.get(address)?.volume.clone();
        let fence = &mut inner.volumes.get_mut(&volume)?.fence;
        Some(match (fence.is_of(run, epoch), fence.progress) {
            (false, _) => Claim::Fenced,
            (true, Progress::Started) => Claim::AlreadyStarted,
            (true, Progress::Establishing) => Claim::NotProved,
            (true, Progress::Proved) => {
                fence.progress = Progress::Started;
                Claim::Claimed
            }
        })
    }

    /// `prepare` takes the fence row for its run and drops what was there.
    pub(crate) async fn begin_dataset(&self, address: &str, run: &str, epoch: i64) -> Option<Claim> {
        let mut changing = match self.acquire(address, run, epoch, PREPARE_PATIENCE).await {
            Right::Granted(changing) => changing,
            Right::Fenced(_) => return Some(Claim::Fenced),
            Right::Busy => return Some(Claim::Busy),
            Right::Gone => return None,
        };
        let time = self.lock().dice.millis(1, 20);
        sleep(time).await;
        if !changing.lives() {
            return None;
        }
        changing.closed = true;
        let mut inner = self.lock();
        let volume = inner.servers.get(address)?.volume.clone();
        let volume = inner.volumes.get_mut(&volume)?;
        volume.fence.take(run, epoch);
        Some(if volume.fence.has_started(run, epoch) {
            Claim::AlreadyStarted
        } else if volume.fence.is_of(run, epoch) {
            volume.dataset = None;
            Claim::Claimed
        } else {
            Claim::Fenced
        })
    }

    /// `prepare` has made and counted the data; it counts if the fence row still is its run's.
    pub(crate) fn finish_dataset(
        &self,
        address: &str,
        run: &str,
        epoch: i64,
        dataset: DatasetStatus,
    ) -> Option<Claim> {
        let mut inner = self.lock();
        let volume = inner.servers.get(address)?.volume.clone();
        let volume = inner.volumes.get_mut(&volume)?;
        if !volume.fence.is_of(run, epoch) {
            return Some(Claim::Fenced);
        }
        volume.dataset = Some(dataset);
        Some(Claim::Claimed)
    }

    fn unreachable(login: &Login, message: &str) -> DatabaseError {
        DatabaseError::Unreachable {
            host: login.connection.host.clone(),
            port: login.connection.port,
            message: message.to_owned(),
        }
    }

    /// Opens a connection: time passes, or it is refused. Every one is noted.
    async fn connect(&self, login: &Login) -> Result<(), DatabaseError> {
        let (delay, refused) = {
            let mut inner = self.lock();
            let faults = inner.faults;
            let mut delay = inner.dice.millis(1, 10);
            if inner.dice.chance(faults.slow) {
                delay += inner.dice.millis(100, 20_000);
            }
            let refused = inner.dice.chance(faults.refused);
            let target = inner
                .servers
                .get(&login.connection.host)
                .map(|server| server.target.clone());
            let at = self.elapsed();
            inner.ledger.connections.push((at, target.unwrap_or_default()));
            (delay, refused)
        };
        sleep(delay).await;
        if refused || !self.lock().servers.contains_key(&login.connection.host) {
            return Err(Self::unreachable(login, "connection refused"));
        }
        Ok(())
    }

    /// Time for one statement; the connection may break or have been ended, or the server may have gone meanwhile.
    async fn statement(
        &self,
        login: &Login,
        low: u64,
        high: u64,
        changing: &Changing,
    ) -> Result<(), DatabaseError> {
        let (delay, broken) = {
            let mut inner = self.lock();
            let faults = inner.faults;
            let mut delay = inner.dice.millis(low, high);
            if inner.dice.chance(faults.slow / 4) {
                delay += inner.dice.millis(100, 20_000);
            }
            (delay, inner.dice.chance(faults.broken / 4))
        };
        sleep(delay).await;
        if broken || !changing.lives() {
            return Err(Self::unreachable(login, "lost connection during query"));
        }
        Ok(())
    }

    async fn identify_now(&self, login: &Login) -> Result<ServerIdentity, DatabaseError> {
        self.connect(login).await?;
        let inner = self.lock();
        let server = inner
            .servers
            .get(&login.connection.host)
            .ok_or_else(|| Self::unreachable(login, "connection refused"))?;
        Ok(ServerIdentity {
            version: "10.11.14-MariaDB".to_owned(),
            flavour: "MariaDB".to_owned(),
            server_identity: inner.volumes[&server.volume].identity.clone(),
            host_name: server.target.clone(),
            started: server.started,
            capabilities: Capabilities {
                audit: vec![
                    AuditType::None,
                    AuditType::ServerAudit,
                    AuditType::GeneralLog,
                    AuditType::SlowLog,
                ],
                ..Capabilities::default()
            },
            clean_shutdown: if server.clean_before {
                CleanShutdown::Yes
            } else {
                CleanShutdown::No
            },
        })
    }

    async fn establish_now(
        &self,
        login: &Login,
        order: &EstablishOrder,
    ) -> Result<Established, DatabaseError> {
        self.connect(login).await?;
        let host = &login.connection.host;
        let (run, epoch) = (order.run_uid.as_str(), order.epoch);
        let mut changing = match self.acquire(host, run, epoch, Duration::ZERO).await {
            Right::Granted(changing) => changing,
            Right::Fenced(holder) => return Ok(Established::Fenced { holder }),
            Right::Gone => return Err(Self::unreachable(login, "connection refused")),
            Right::Busy => {
                let message = "another operator is establishing this run";
                return Err(DatabaseError::Busy(message.to_owned()));
            }
        };
        let answer = self.under_lock(login, order, &changing).await;
        // The session is closed after any answer, and breaks where the connection did.
        changing.closed = answer.is_ok();
        answer
    }

    async fn under_lock(
        &self,
        login: &Login,
        order: &EstablishOrder,
        changing: &Changing,
    ) -> Result<Established, DatabaseError> {
        let host = &login.connection.host;
        let (run, epoch) = (order.run_uid.as_str(), order.epoch);
        // Looking only.
        self.statement(login, 1, 5, changing).await?;
        let volume = self
            .lock()
            .servers
            .get(host)
            .map(|server| server.volume.clone())
            .unwrap_or_default();
        let found = self.lock().volumes[&volume].clone();
        if found.fence.has_started(run, epoch) {
            return Ok(Established::Started);
        }
        if !found.fence.admits(run, epoch) {
            return Ok(Established::Fenced {
                holder: found.fence.holder,
            });
        }
        let Some(dataset) = found.dataset.filter(|dataset| dataset.hash == order.dataset_hash) else {
            return Ok(Established::DatasetNeeded {
                found: "no data".to_owned(),
            });
        };
        // From here on the server is changed, the fence first.
        self.statement(login, 1, 5, changing).await?;
        let fence = {
            let mut inner = self.lock();
            let volume = inner.volumes.get_mut(&volume).expect("volumes stay");
            volume.fence.take(run, epoch);
            volume.fence.clone()
        };
        if fence.has_started(run, epoch) {
            return Ok(Established::Started);
        }
        if !fence.is_of(run, epoch) {
            return Ok(Established::Fenced { holder: fence.holder });
        }
        // Neither the old settings nor the new ones, then the new ones.
        for in_force in [None, Some((order.parameters.clone(), order.audit.clone()))] {
            self.statement(login, 2, 25, changing).await?;
            self.lock().set_in_force(host, in_force);
        }
        // Settling and warming.
        let (low, high) = if order.fresh_boot { (200, 1_500) } else { (10, 50) };
        self.statement(login, low, high, changing).await?;
        let mut inner = self.lock();
        let inner = &mut *inner;
        let fence = &mut inner.volumes.get_mut(&volume).expect("volumes stay").fence;
        if !fence.is_of(run, epoch) || fence.progress != Progress::Establishing {
            return Ok(Established::Fenced {
                holder: fence.holder.clone(),
            });
        }
        fence.progress = Progress::Proved;
        let server = inner
            .servers
            .get_mut(host)
            .ok_or_else(|| Self::unreachable(login, "gone"))?;
        server.proved = Some((order.run_uid.clone(), order.epoch));
        let started = server.started;
        Ok(Established::Ready(Box::new(proof(order, started, dataset))))
    }
}

fn proof(order: &EstablishOrder, started: i64, dataset: DatasetStatus) -> Proof {
    let recording = order.audit.type_ != AuditType::None;
    let parameters = order
        .parameters
        .iter()
        .map(|(name, value)| ReadBack {
            name: name.clone(),
            wanted: value.to_string(),
            found: value.to_string(),
            inert: false,
        })
        .collect();
    let log = recording.then(|| AuditLogPosition {
        file: "server_audit.log".to_owned(),
        offset: 0,
    });
    Proof {
        evidence: Evidence {
            level: EvidenceLevel::Proved,
            parameters,
            audit: AuditEvidence {
                installed: recording,
                recording,
                canary_found: Some(recording),
                ..AuditEvidence::default()
            },
            settle: SettleEvidence {
                met: true,
                waited_millis: 400,
                unmet: Vec::new(),
            },
            cache: CacheEvidence {
                reached: true,
                ..CacheEvidence::default()
            },
            dataset: Some(dataset.clone()),
            ..Evidence::default()
        },
        environment: Environment {
            server_version: Some("10.11.14-MariaDB".to_owned()),
            kernel: Some("6.12".to_owned()),
            ..Environment::default()
        },
        started,
        audit_log: log,
        dataset,
    }
}

impl DatabaseAccess for Databases {
    fn identify<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<ServerIdentity, DatabaseError>> {
        self.identify_now(login).boxed()
    }

    fn check<'a>(
        &'a self,
        login: &'a Login,
        _parameters: &'a [Parameters],
        _audit: &'a [AuditSetting],
    ) -> BoxFuture<'a, Result<Vec<ParameterProblem>, DatabaseError>> {
        async move {
            self.connect(login).await?;
            Ok(Vec::new())
        }
        .boxed()
    }

    fn establish<'a>(
        &'a self,
        login: &'a Login,
        order: &'a EstablishOrder,
    ) -> BoxFuture<'a, Result<Established, DatabaseError>> {
        self.establish_now(login, order).boxed()
    }

    fn capture<'a>(
        &'a self,
        login: &'a Login,
        _permissions: &'a Permissions,
        _owner: &'a str,
    ) -> BoxFuture<'a, Result<Captured, DatabaseError>> {
        async move {
            self.connect(login).await?;
            let host = &login.connection.host;
            let inner = self.lock();
            let set = inner.servers.get(host).and_then(|server| server.in_force.clone());
            let parameters = set.map(|(parameters, _)| parameters).unwrap_or_default();
            Ok(Captured::Ours {
                state: Box::new(OriginalState {
                    parameters: parameters
                        .into_iter()
                        .map(|(name, value)| (name, value.to_string()))
                        .collect(),
                    ..OriginalState::default()
                }),
                not_permitted: Vec::new(),
            })
        }
        .boxed()
    }

    fn restore<'a>(
        &'a self,
        login: &'a Login,
        original: Option<&'a OriginalState>,
        _owner: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Left>, DatabaseError>> {
        async move {
            self.connect(login).await?;
            let host = &login.connection.host;
            let parameters: Parameters = original
                .into_iter()
                .flat_map(|original| &original.parameters)
                .map(|(name, value)| (name.clone(), value.as_str().into()))
                .collect();
            let set = (!parameters.is_empty()).then(|| (parameters, AuditSetting::default()));
            self.lock().set_in_force(host, set);
            Ok(Vec::new())
        }
        .boxed()
    }

    fn restart<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<(), DatabaseError>> {
        async move { self.connect(login).await.map(drop) }.boxed()
    }
}

impl Inner {
    /// Settings change, which nobody may do to a load that is being applied.
    fn set_in_force(&mut self, host: &str, in_force: Option<(Parameters, AuditSetting)>) {
        let Some(server) = self.servers.get_mut(host) else {
            return;
        };
        server.in_force = in_force;
        let running = |load: &&mut Load| load.to.is_none() && load.boot == server.boot;
        for load in self.ledger.loads.iter_mut().filter(running) {
            load.faults
                .push("settings were changed while it was applied".to_owned());
        }
    }
}

impl Server {
    /// Whether a session holds the lock now.
    fn locked(&self) -> bool {
        self.lock
            .is_some_and(|lock| lock.until.is_none_or(|until| Instant::now() < until))
    }

    /// A boot without any setting in force yet.
    pub(crate) fn fresh(volume: String, target: String, node: String, boot: String, started: i64) -> Self {
        Self {
            volume,
            target,
            node,
            boot,
            started,
            clean_before: true,
            in_force: None,
            proved: None,
            lock: None,
            ended: watch::Sender::new(false),
        }
    }
}
