//! What is known of the node, kept in `/run`: one per machine, gone after a reboot as the node is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::daemon::Daemon;
use crate::cache::{Lock, lock_file};
use crate::error::{Error, Result, at};

const FOLDER: &str = "/run/benchmark-campaign";
const FILE: &str = "/run/benchmark-campaign/node.json";

/// The record of the machine's node. One that another version wrote must still name the processes to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// The boot it was started in.
    pub(super) boot: String,
    /// Names programs and configuration it was started from.
    pub(super) recipe: String,
    /// Its state folder.
    pub(super) state: PathBuf,
    /// The folder of its programs.
    pub(super) binaries: PathBuf,
    /// Whether `ip netns add` was the first on this machine, so that its mount is ours to remove.
    pub(super) made_netns_mount: bool,
    /// Control groups of pods were not there before, so they are ours to remove.
    pub(super) made_cgroups: bool,
    /// Every process started, in order.
    pub(super) daemons: Vec<Daemon>,
    /// Images in it: name and the archive's file name.
    pub(super) images: BTreeMap<String, String>,
    /// Whether it ever became ready.
    pub(super) complete: bool,
}

impl Record {
    /// The record, if there is one that can be read.
    pub(super) fn read() -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(FILE).ok()?).ok()
    }

    /// Writes it; a reader sees the old one or the new one.
    pub(super) fn write(&self) -> Result<()> {
        fs::create_dir_all(FOLDER).map_err(at(FOLDER))?;
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Plain(error.to_string()))?;
        let partial = Path::new(FOLDER).join("node.json.partial");
        fs::write(&partial, text).map_err(at(&partial))?;
        fs::rename(&partial, FILE).map_err(at(FILE))
    }

    /// Removes it.
    pub(super) fn remove() -> Result<()> {
        if Path::new(FOLDER).exists() {
            fs::remove_dir_all(FOLDER).map_err(at(FOLDER))?;
        }
        Ok(())
    }

    /// Whether every recorded process runs, in the boot it was recorded in.
    pub(super) fn all_alive(&self) -> bool {
        self.boot == boot_id() && !self.daemons.is_empty() && self.daemons.iter().all(Daemon::alive)
    }

    /// The daemon of that name.
    pub(super) fn daemon(&self, name: &str) -> Option<&Daemon> {
        self.daemons.iter().find(|daemon| daemon.name == name)
    }
}

/// One command at a time starts or stops the node.
pub(super) fn lock() -> Result<Lock> {
    lock_file(Path::new("/run/lock/benchmark-campaign-node.lock"))
}

/// Held by whoever measures on this machine: the suite, a benchmark.
pub fn measuring_lock() -> Result<Lock> {
    lock_file(Path::new("/run/lock/benchmark-campaign-measuring.lock"))
}

/// Identity of the machine's current boot.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(boot: &str, daemons: Vec<Daemon>) -> Record {
        Record {
            boot: boot.into(),
            recipe: "r".into(),
            state: "/s".into(),
            binaries: "/b".into(),
            made_netns_mount: false,
            made_cgroups: true,
            daemons,
            images: BTreeMap::new(),
            complete: true,
        }
    }

    #[test]
    fn a_record_of_another_boot_is_dead_whatever_runs_under_its_ids() {
        let own = super::super::daemon::found(std::process::id() as i32, "self").unwrap();
        assert!(record(&boot_id(), vec![own.clone()]).all_alive());
        assert!(!record("another boot", vec![own]).all_alive());
        assert!(
            !record(&boot_id(), vec![]).all_alive(),
            "killed before its first process"
        );
    }

    #[test]
    fn a_record_of_another_version_still_names_its_processes() {
        let text =
            r#"{"boot": "b", "daemons": [{"name": "etcd", "pid": 1, "start_ticks": 2}], "later": true}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        assert_eq!(record.daemons.len(), 1);
        assert!(!record.complete, "so it is made anew");
    }

    #[test]
    fn a_record_survives_writing_and_reading() {
        let before = record(
            "b",
            vec![Daemon {
                name: "etcd".into(),
                pid: 1,
                start_ticks: 2,
            }],
        );
        let after: Record = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
        assert_eq!(before, after);
    }
}
