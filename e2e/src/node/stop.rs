//! Stopping the node so that nothing of it is left: processes, containers, mounts, control groups, namespace, link, files.
//! Only processes that were recorded, or that are provably children of ours, are touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::daemon::{Daemon, found, stop_all};
use super::network;
use super::record::{Record, boot_id};
use crate::command::{answer, system};
use crate::error::{Error, Result, at};

/// The controllers of cgroup v1, or the single hierarchy of v2.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Stops whatever the record names; a record of an earlier boot leaves only files to remove.
pub(super) fn stop(record: &Record) -> Result<()> {
    if record.boot == boot_id() {
        stop_processes(record);
    }
    let state = record.state.to_string_lossy().into_owned();
    for mount in network::mounts_under(&state) {
        if answer(system("umount").arg(&mount)).is_none() {
            // Something still has it open: detach it now, it goes away with its last user.
            let _ = answer(system("umount").arg("--lazy").arg(&mount));
        }
    }
    network::remove(record.made_netns_mount)?;
    if record.made_cgroups {
        remove_cgroups();
        // The kubelet puts it there whatever its settings are; with no other kubelet on the machine it was ours.
        let _ = fs::remove_file("/var/lib/kubelet/device-plugins/kubelet.sock");
    }
    remove_container_log_links(&record.state);
    for folder in ["/run/containerd", "/run/runc", "/var/lib/kubelet", "/var/lib/cni"] {
        remove_if_empty(Path::new(folder));
    }
    if record.state.exists() {
        if let Some(left) = network::mounts_under(&state).first() {
            return Err(Error::Plain(format!(
                "{left} could not be unmounted: see what uses it with `fuser -vm {left}`"
            )));
        }
        fs::remove_dir_all(&record.state).map_err(at(&record.state))?;
    }
    Record::remove()
}

fn stop_processes(record: &Record) {
    let of =
        |names: &[&str]| -> Vec<&Daemon> { names.iter().filter_map(|name| record.daemon(name)).collect() };
    // First those that would start something anew.
    let first = of(&[
        "kubelet",
        "local-path-provisioner",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "coredns",
    ]);
    stop_all(&first, Duration::from_secs(5));
    if record.daemon("containerd").is_some_and(Daemon::alive) {
        remove_containers(record);
    }
    stop_all(&of(&["containerd"]), Duration::from_secs(10));
    // Shims outlive containerd by design; each names our socket on its command line.
    let shims = shims(record);
    stop_all(&shims.iter().collect::<Vec<_>>(), Duration::from_secs(3));
    // Without etcd the API server would wait for it for long; it holds nothing that must be saved.
    if let Some(server) = record.daemon("kube-apiserver") {
        server.signal(rustix::process::Signal::KILL);
        server.ended_within(Duration::from_secs(5));
    }
    stop_all(&of(&["etcd"]), Duration::from_secs(5));
    if record.made_cgroups {
        // Containers whose shim was gone already.
        let left = processes_in_pods();
        stop_all(&left.iter().collect::<Vec<_>>(), Duration::from_secs(2));
    }
}

fn remove_containers(record: &Record) {
    let ctr = || {
        let mut command = std::process::Command::new(record.binaries.join("ctr"));
        command
            .arg("--address")
            .arg(record.state.join("containerd/containerd.sock"))
            .arg("--namespace=k8s.io");
        command
    };
    let tasks = answer(ctr().args(["tasks", "list", "--quiet"])).unwrap_or_default();
    for task in tasks.lines() {
        let _ = answer(ctr().args(["tasks", "kill", "--signal=SIGKILL", task]));
    }
    // Deleting the task ends its shim; what fails here is caught by `shims` below.
    for task in tasks.lines() {
        let _ = answer(ctr().args(["tasks", "delete", "--force", task]));
    }
}

/// Processes of our shim program that were started for our containerd.
fn shims(record: &Record) -> Vec<Daemon> {
    let program = record.binaries.join("containerd-shim-runc-v2");
    let socket = record
        .state
        .join("containerd/containerd.sock")
        .to_string_lossy()
        .into_owned();
    processes()
        .filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
        .filter(|pid| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            arguments
                .split(|byte| *byte == 0)
                .any(|argument| argument.starts_with(socket.as_bytes()))
        })
        .filter_map(|pid| found(pid, "shim"))
        .collect()
}

/// Processes in the control groups that the node's kubelet made.
fn processes_in_pods() -> Vec<Daemon> {
    let mut pids: Vec<i32> = pod_groups()
        .iter()
        .flat_map(|group| groups_below(group))
        .filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok())
        .flat_map(|text| {
            text.lines()
                .filter_map(|line| line.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter()
        .filter_map(|pid| found(pid, "container"))
        .collect()
}

fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The kubelet's root groups: `kubepods` in every hierarchy.
pub(super) fn pod_groups() -> Vec<PathBuf> {
    let mut groups = vec![Path::new(CGROUPS).join("kubepods")];
    let hierarchies = fs::read_dir(CGROUPS)
        .into_iter()
        .flatten()
        .filter_map(std::result::Result::ok);
    groups.extend(hierarchies.map(|entry| entry.path().join("kubepods")));
    groups.retain(|group| group.is_dir());
    groups
}

/// A group and all below it, deepest first.
fn groups_below(group: &Path) -> Vec<PathBuf> {
    let mut groups = Vec::new();
    for entry in fs::read_dir(group)
        .into_iter()
        .flatten()
        .filter_map(std::result::Result::ok)
    {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            groups.extend(groups_below(&entry.path()));
        }
    }
    groups.push(group.to_owned());
    groups
}

fn remove_cgroups() {
    for root in pod_groups() {
        for group in groups_below(&root) {
            // A group with a process left in it stays; `status` after `down` would show that process.
            let _ = fs::remove_dir(group);
        }
    }
}

/// The kubelet links container logs here, whatever its settings are.
fn remove_container_log_links(state: &Path) {
    let folder = Path::new("/var/log/containers");
    for entry in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(std::result::Result::ok)
    {
        if fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(state)) {
            let _ = fs::remove_file(entry.path());
        }
    }
    remove_if_empty(folder);
}

/// Removes a folder tree that holds only folders.
fn remove_if_empty(folder: &Path) {
    for entry in fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(std::result::Result::ok)
    {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_if_empty(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trees_without_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (empty, used) = (folder.path().join("empty"), folder.path().join("used"));
        fs::create_dir_all(empty.join("a/b")).unwrap();
        fs::create_dir_all(used.join("a")).unwrap();
        fs::write(used.join("file"), "x").unwrap();
        remove_if_empty(&empty);
        remove_if_empty(&used);
        assert!(!empty.exists());
        assert!(used.join("file").exists());
    }

    #[test]
    fn groups_come_deepest_first() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("burstable/pod1")).unwrap();
        let groups = groups_below(folder.path());
        assert_eq!(
            groups,
            [
                folder.path().join("burstable/pod1"),
                folder.path().join("burstable"),
                folder.path().into()
            ]
        );
    }
}
