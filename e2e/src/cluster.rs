//! The cluster that a demo runs on: the local node, or the one that KUBECONFIG points to, which is used only when the
//! person agreed and its nodes can pull the images.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};
use std::path::PathBuf;
use std::process::Command;

use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::command::output;
use crate::error::{Error, Result};
use crate::images::{self, Archive};
use crate::machine;
use crate::node::{self, Node};

/// What the person said about a cluster that is not ours.
#[derive(Clone, Debug, Default)]
pub struct Consent {
    /// Use it without asking.
    pub yes: bool,
    /// Where its nodes can pull images from, such as `ghcr.io/you`.
    pub image_prefix: Option<String>,
}

/// A cluster and the programs that talk to it.
#[derive(Clone, Debug)]
pub struct Cluster {
    binaries: Binaries,
    kubeconfig: PathBuf,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Local(Node),
    Elsewhere { image_prefix: String },
}

/// Which cluster it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The local node, started if need be.
    Local,
    /// The one in this kubeconfig.
    Elsewhere(PathBuf),
}

impl Cluster {
    /// Makes the chosen cluster ready.
    pub fn ready(cache: &Cache, choice: &Choice, consent: &Consent) -> Result<Self> {
        match choice {
            Choice::Local => {
                let node = machine::local_node(cache)?;
                let binaries = Binaries::ensure(cache)?;
                Ok(Self {
                    binaries,
                    kubeconfig: node.kubeconfig(),
                    place: Place::Local(node),
                })
            }
            Choice::Elsewhere(kubeconfig) => {
                let image_prefix = consent.image_prefix.clone().ok_or_else(|| {
                    Error::Plain(
                        "the cluster in KUBECONFIG cannot pull images that exist on this machine only: give --image-prefix, \
                         a registry you may push to and its nodes may pull from (such as ghcr.io/you), \
                         or unset KUBECONFIG to use the local node"
                            .into(),
                    )
                })?;
                let binaries = Binaries::ensure(cache)?;
                Ok(Self {
                    binaries,
                    kubeconfig: kubeconfig.clone(),
                    place: Place::Elsewhere { image_prefix },
                })
            }
        }
    }

    /// Path of the kubeconfig in use.
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// The programs in use.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// kubectl for this cluster.
    pub fn kubectl(&self) -> Command {
        let mut command = self.binaries.command("kubectl");
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// helm for this cluster.
    pub fn helm(&self) -> Command {
        let mut command = self.binaries.command("helm");
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Makes an image available to the cluster's nodes; the name it has there.
    pub fn provide(&self, cache: &Cache, archive: &Archive) -> Result<String> {
        match &self.place {
            Place::Local(node) => node.load(archive).map(|()| archive.name.clone()),
            Place::Elsewhere { image_prefix } => images::push(cache, archive, image_prefix),
        }
    }

    /// A manifest with the names of local images replaced by those the cluster can pull.
    pub fn localised(&self, manifest: &str) -> String {
        match &self.place {
            Place::Local(_) => manifest.to_owned(),
            Place::Elsewhere { image_prefix } => {
                manifest.replace(images::LOCAL_PREFIX, image_prefix.trim_end_matches('/'))
            }
        }
    }
}

/// Decides from KUBECONFIG, and asks the person if it names a cluster that is not ours.
pub fn choose(consent: &Consent) -> Result<Choice> {
    let kubeconfig = std::env::var_os("KUBECONFIG")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let Some(kubeconfig) = kubeconfig.filter(|path| Some(path) != node::recorded_kubeconfig().as_ref())
    else {
        return Ok(Choice::Local);
    };
    if consent.yes {
        return Ok(Choice::Elsewhere(kubeconfig));
    }
    if !stdin().is_terminal() {
        return Err(Error::Plain(format!(
            "KUBECONFIG={} points to a cluster: say --yes to use it, or unset KUBECONFIG to use the local node",
            kubeconfig.display()
        )));
    }
    eprint!(
        "KUBECONFIG={} points to a cluster. Install the operator and run a benchmark there? [y/N] ",
        kubeconfig.display()
    );
    let _ = stderr().flush();
    let mut answer = String::new();
    stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(crate::error::at("standard input"))?;
    Ok(if agrees(&answer) {
        Choice::Elsewhere(kubeconfig)
    } else {
        Choice::Local
    })
}

fn agrees(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

impl Cluster {
    /// Runs kubectl and returns what it printed.
    pub fn ask(&self, what: &str, args: &[&str]) -> Result<String> {
        output(what, self.kubectl().args(args))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_agrees() {
        assert!(agrees("y\n") && agrees("YES"));
        assert!(!agrees("") && !agrees("\n") && !agrees("no") && !agrees("yeah"));
    }

    #[test]
    fn without_a_prefix_a_cluster_elsewhere_is_refused_before_anything_is_built() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().into()).unwrap();
        let choice = Choice::Elsewhere("/some/config".into());
        let error = Cluster::ready(
            &cache,
            &choice,
            &Consent {
                yes: true,
                image_prefix: None,
            },
        )
        .unwrap_err();
        assert!(error.to_string().contains("--image-prefix"), "{error}");
    }
}
