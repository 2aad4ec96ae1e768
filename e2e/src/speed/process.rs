//! What the operator's process uses, read from this machine's own /proc and control groups: nothing is asked of the
//! operator, which would wake it. Works on the local node only, whose containers are processes of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::error::{Error, Result, at};

/// The process of a container.
#[derive(Clone, Debug)]
pub struct Process {
    proc: PathBuf,
    cpu: PathBuf,
}

/// Memory of a process, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Resident set.
    pub resident_bytes: u64,
    /// Of it: heap and stacks, which no file backs.
    pub anonymous_bytes: u64,
    /// Largest resident set so far.
    pub peak_bytes: u64,
}

impl Process {
    /// The first process of a container, by the ID that the pod's status gives (`containerd://…`).
    pub fn of_container(id: &str) -> Result<Self> {
        let id = id.rsplit('/').next().unwrap_or(id);
        let found = fs::read_dir("/proc")
            .map_err(at("/proc"))?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
            .filter_map(|pid| {
                let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
                groups.contains(id).then_some((pid, groups))
            })
            .min_by_key(|(pid, _)| *pid);
        let Some((pid, groups)) = found.filter(|_| !id.is_empty()) else {
            return Err(Error::Plain(format!(
                "no process of this machine is in the container `{id}`: the benchmark needs the local node"
            )));
        };
        let cpu = cpu_file(&groups, Path::new("/sys/fs/cgroup")).ok_or_else(|| {
            Error::Plain(format!(
                "the control group of process {pid} counts no CPU time: {groups}"
            ))
        })?;
        Ok(Self {
            proc: PathBuf::from(format!("/proc/{pid}")),
            cpu,
        })
    }

    /// CPU time of the container so far.
    pub fn cpu(&self) -> Result<Duration> {
        let text = fs::read_to_string(&self.cpu).map_err(at(&self.cpu))?;
        cpu_time(&text)
            .ok_or_else(|| Error::Plain(format!("{}: no CPU time in `{text}`", self.cpu.display())))
    }

    /// Its memory now.
    pub fn memory(&self) -> Result<Memory> {
        let path = self.proc.join("status");
        let text = fs::read_to_string(&path).map_err(|error| {
            Error::Plain(format!(
                "{}: {error}: the operator's process has ended; `kubectl -n {} describe pods` says why (OOMKilled?)",
                path.display(),
                crate::install::OPERATOR_NAMESPACE
            ))
        })?;
        memory(&text).ok_or_else(|| Error::Plain(format!("{}: no resident set", path.display())))
    }
}

/// The file that counts the CPU time of a control group, of version 1 or 2.
fn cpu_file(groups: &str, root: &Path) -> Option<PathBuf> {
    let lines = || {
        groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?.trim_start_matches('/')))
        })
    };
    let first = lines()
        .find(|(controllers, _)| controllers.split(',').any(|c| c == "cpuacct"))
        .map(|(controllers, path)| {
            // Usually mounted under the joint name, and linked under each.
            let joint = root.join(controllers);
            let folder = if joint.exists() {
                joint
            } else {
                root.join("cpuacct")
            };
            folder.join(path).join("cpuacct.usage")
        });
    first.or_else(|| {
        lines()
            .find(|(controllers, _)| controllers.is_empty())
            .map(|(_, path)| root.join(path).join("cpu.stat"))
    })
}

/// CPU time in a `cpuacct.usage` (nanoseconds) or a `cpu.stat` (microseconds).
fn cpu_time(text: &str) -> Option<Duration> {
    if let Ok(nanos) = text.trim().parse() {
        return Some(Duration::from_nanos(nanos));
    }
    let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    line.trim().parse().ok().map(Duration::from_micros)
}

fn memory(status: &str) -> Option<Memory> {
    let bytes = |name: &str| {
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    Some(Memory {
        resident_bytes: bytes("VmRSS")?,
        anonymous_bytes: bytes("RssAnon")?,
        peak_bytes: bytes("VmHWM")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_of_either_version_of_control_groups_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = |groups: &str| cpu_file(groups, folder.path()).unwrap();
        let first = "5:memory:/kubepods/pod1/c1\n4:cpu,cpuacct:/kubepods/pod1/c1\n0::/\n";
        assert_eq!(
            file(first),
            folder.path().join("cpuacct/kubepods/pod1/c1/cpuacct.usage")
        );
        fs::create_dir(folder.path().join("cpu,cpuacct")).unwrap();
        assert_eq!(
            file(first),
            folder.path().join("cpu,cpuacct/kubepods/pod1/c1/cpuacct.usage")
        );
        assert_eq!(
            file("0::/kubepods/pod1/c1\n"),
            folder.path().join("kubepods/pod1/c1/cpu.stat")
        );
    }

    #[test]
    fn cpu_time_and_memory_are_read_with_their_units() {
        assert_eq!(cpu_time("1500000\n"), Some(Duration::from_micros(1500)));
        assert_eq!(
            cpu_time("usage_usec 1500\nuser_usec 1000\n"),
            Some(Duration::from_micros(1500))
        );
        assert_eq!(cpu_time("nr_periods 0\n"), None);
        let status = "Name:\toperator\nVmHWM:\t   12000 kB\nVmRSS:\t   10000 kB\nRssAnon:\t    4000 kB\n";
        assert_eq!(
            memory(status),
            Some(Memory {
                resident_bytes: 10_240_000,
                anonymous_bytes: 4_096_000,
                peak_bytes: 12_288_000
            })
        );
        assert_eq!(memory("Name:\tzombie\n"), None);
    }

    #[test]
    fn a_container_that_is_not_here_is_named() {
        let error = Process::of_container("containerd://0000feed0000").unwrap_err();
        assert!(error.to_string().contains("0000feed0000"), "{error}");
    }
}
