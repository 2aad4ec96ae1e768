//! One real Kubernetes node on this machine, inside one network namespace, shared by all checkouts.
//! It is reused while it is healthy, and made anew when it is not or when what it is made from has changed.

pub mod config;
pub mod daemon;
pub mod network;
pub mod pki;
mod record;
mod start;
mod stop;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binaries::{self, Binaries};
use crate::cache::{Cache, key};
use crate::command::{self, answer};
use crate::error::{Error, Result, at};
use crate::images::Archive;
use crate::progress::step;

pub use record::measuring_lock;
use record::{Record, boot_id};
use start::Start;

/// Cores below which the database cannot have one of its own.
const CORES: usize = 2;

/// The running node.
#[derive(Clone, Debug)]
pub struct Node {
    binaries: Binaries,
    state: PathBuf,
}

/// How the node is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// There is none.
    Absent,
    /// It serves.
    Healthy,
    /// It is there, but this is wrong with it.
    Broken(String),
}

impl Node {
    /// Reuses the healthy node or starts one. `pause` and `volumes_helper` are the images it needs itself.
    pub fn up(cache: &Cache, binaries: &Binaries, pause: &Archive, volumes_helper: &Archive) -> Result<Self> {
        require_root("the local node")?;
        let _lock = record::lock()?;
        let recipe = recipe();
        if let Some(record) = Record::read() {
            let stale = record.recipe != recipe;
            match health_of(&record) {
                Health::Healthy if !stale => {
                    // It may run from another user's cache: then its own programs serve it.
                    return Ok(Self {
                        binaries: binaries.clone(),
                        state: record.state,
                    });
                }
                Health::Healthy => eprintln!("The local node was made from an older recipe: making it anew."),
                Health::Broken(why) => eprintln!("The local node is not healthy ({why}): making it anew."),
                Health::Absent => {}
            }
            step("stopping the old node", || stop::stop(&record))?;
        }
        let state = cache.path("node");
        check_machine(&state)?;
        // Left by a node whose record is gone (a reboot empties /run).
        stop::stop(&empty_record(&state, &recipe, binaries))?;
        let start = Start {
            binaries,
            record: empty_record(&state, &recipe, binaries),
            namespace: network::namespace_file(),
        };
        step("starting the local node", || start.all(pause, volumes_helper))?;
        Ok(Self {
            binaries: binaries.clone(),
            state,
        })
    }

    /// The running node, without starting one.
    pub fn existing(binaries: &Binaries) -> Option<Self> {
        let record = Record::read()?;
        (health_of(&record) == Health::Healthy).then(|| Self {
            binaries: binaries.clone(),
            state: record.state,
        })
    }

    /// Stops the node and removes what it left; whether there was anything.
    pub fn down(cache: &Cache) -> Result<bool> {
        require_root("stopping the local node")?;
        let _lock = record::lock()?;
        let state = cache.path("node");
        let record = match Record::read() {
            Some(record) => record,
            None if state.exists() || network::exists() => Record {
                state,
                ..Record::default()
            },
            None => return Ok(false),
        };
        step("stopping the local node", || stop::stop(&record))?;
        Ok(true)
    }

    /// How the node is.
    pub fn health() -> Health {
        Record::read().map_or(Health::Absent, |record| health_of(&record))
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    /// kubectl for this node.
    pub fn kubectl(&self) -> Command {
        kubectl(&self.binaries, &self.state)
    }

    /// Brings an image into the node unless this very archive is in it already.
    pub fn load(&self, archive: &Archive) -> Result<()> {
        let _lock = record::lock()?;
        let mut record = Record::read()
            .ok_or_else(|| Error::Plain("there is no local node: start it with `node up`".into()))?;
        import(&self.binaries, &mut record, archive)
    }
}

/// The kubeconfig of the machine's node, if one was started, healthy or not.
pub fn recorded_kubeconfig() -> Option<PathBuf> {
    Record::read().map(|record| record.state.join("kubeconfig"))
}

fn import(binaries: &Binaries, record: &mut Record, archive: &Archive) -> Result<()> {
    let file = archive
        .path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if record.images.get(&archive.name) == Some(&file) {
        return Ok(());
    }
    let mut command = ctr(binaries, &record.state);
    command.args(["images", "import"]).arg(&archive.path);
    command::output(&format!("importing {}", archive.name), &mut command)?;
    record.images.insert(archive.name.clone(), file);
    record.write()
}

fn kubectl(binaries: &Binaries, state: &Path) -> Command {
    let mut command = binaries.command("kubectl");
    command
        .arg("--kubeconfig")
        .arg(state.join("kubeconfig"))
        .args(["--request-timeout", "10s"]);
    command
}

fn ctr(binaries: &Binaries, state: &Path) -> Command {
    let mut command = binaries.command("ctr");
    command
        .arg("--address")
        .arg(state.join("containerd/containerd.sock"))
        .arg("--namespace=k8s.io");
    command
}

fn empty_record(state: &Path, recipe: &str, binaries: &Binaries) -> Record {
    Record {
        boot: boot_id(),
        recipe: recipe.into(),
        state: state.into(),
        binaries: binaries.folder().into(),
        made_netns_mount: !network::is_mounted("/run/netns"),
        made_cgroups: stop::pod_groups().is_empty(),
        ..Record::default()
    }
}

fn health_of(record: &Record) -> Health {
    if !record.complete {
        return Health::Broken("it was never started to its end".into());
    }
    if record.boot != boot_id() {
        return Health::Broken("the machine was restarted".into());
    }
    if let Some(dead) = record.daemons.iter().find(|daemon| !daemon.alive()) {
        return Health::Broken(format!("{} has ended", dead.name));
    }
    if !record.all_alive() || !network::exists() {
        return Health::Broken("its network is gone".into());
    }
    let mut kubectl = Command::new(record.binaries.join("kubectl"));
    kubectl
        .arg("--kubeconfig")
        .arg(record.state.join("kubeconfig"))
        .args(["--request-timeout", "10s"]);
    kubectl.args([
        "get",
        "node",
        pki::NODE,
        "-o=jsonpath={.status.conditions[?(@.type=='Ready')].status}",
    ]);
    match answer(&mut kubectl) {
        Some(status) if status == "True" => Health::Healthy,
        Some(status) => Health::Broken(format!("its node object says Ready={status}")),
        None => Health::Broken("its API server does not answer".into()),
    }
}

/// Everything a node is made from, short: another value means that the running one is old.
fn recipe() -> String {
    let nowhere = Path::new("/");
    let texts = [
        binaries::recipe_key(),
        config::containerd(nowhere, nowhere, nowhere, "", ""),
        config::cni(nowhere),
        config::kubelet(nowhere),
        config::kube_proxy(nowhere),
        config::coredns(nowhere),
        config::cluster_objects(nowhere, ""),
    ];
    key(texts.iter().map(String::as_bytes))
}

fn require_root(what: &'static str) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err(Error::NotRoot(what))
    }
}

fn check_machine(state: &Path) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < CORES {
        return Err(Error::Plain(format!(
            "this machine has {cores} core; the local node needs {CORES}: one for the database alone and one for all else"
        )));
    }
    if state.to_string_lossy().contains(char::is_whitespace) {
        return Err(Error::Plain(format!(
            "{}: the cache's path must not hold spaces: set XDG_CACHE_HOME",
            state.display()
        )));
    }
    // A socket's path may have 107 bytes.
    if state.as_os_str().len() > 70 {
        return Err(Error::Plain(format!(
            "{}: the cache's path is too long for sockets: set XDG_CACHE_HOME",
            state.display()
        )));
    }
    if let Some(parent) = state.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    Ok(())
}
