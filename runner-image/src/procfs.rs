//! The kernel's files under `/proc` and `/sys`, read by the agent (the server's side) and the runner (its own).
//! Parsing is pure and lenient: a file that is missing or unreadable gives no figure, never a wrong one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Milliseconds of one tick of the kernel's CPU accounting (`USER_HZ` is 100 on every platform that Rust's std runs on
/// under Linux).
const TICK_MILLIS: i64 = 10;
/// Bytes of a page as `/proc/vmstat` counts them; 4 KiB is assumed, only `dirty_bytes` depends on it.
const PAGE_BYTES: i64 = 4_096;

/// Where the files are: `/` outside of tests.
#[derive(Debug, Clone)]
pub struct Kernel {
    root: PathBuf,
}

impl Default for Kernel {
    fn default() -> Self {
        Self {
            root: PathBuf::from("/"),
        }
    }
}

/// CPU time and identity of a process, from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The parent's id.
    pub parent: u32,
    /// User and system time, milliseconds.
    pub cpu_millis: i64,
    /// The same of children that have ended and were waited for, milliseconds.
    pub children_cpu_millis: i64,
}

impl Kernel {
    /// Files below another root, for tests.
    pub fn under(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// A file's text without surrounding whitespace.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Ids of the processes whose name (`comm`) is one of `names`.
    pub fn processes(&self, names: &[&str]) -> Vec<u32> {
        let Ok(entries) = fs::read_dir(self.root.join("proc")) else {
            return Vec::new();
        };
        let mut found: Vec<u32> = entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|id: &u32| {
                self.text(&format!("proc/{id}/comm"))
                    .is_some_and(|name| names.contains(&name.as_str()))
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// Device and inode of every file that a process holds open; needs the same user.
    pub fn open_files(&self, process: u32) -> Vec<(u64, u64)> {
        let Ok(entries) = fs::read_dir(self.root.join(format!("proc/{process}/fd"))) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| {
                let file = fs::metadata(entry.ok()?.path()).ok()?;
                Some((file.dev(), file.ino()))
            })
            .collect()
    }

    /// `/proc/PID/stat`; `process` is an id or `self`.
    pub fn process_stat(&self, process: &str) -> Option<ProcessStat> {
        process_stat(&self.text(&format!("proc/{process}/stat"))?)
    }

    /// Resident memory of a process, bytes.
    pub fn resident_bytes(&self, process: u32) -> Option<i64> {
        let status = self.text(&format!("proc/{process}/status"))?;
        kilobytes(&status, "VmRSS:")
    }

    /// Bytes that a process caused to be written to storage; needs the same user.
    pub fn write_bytes(&self, process: u32) -> Option<i64> {
        let io = self.text(&format!("proc/{process}/io"))?;
        io.lines()
            .find_map(|line| line.strip_prefix("write_bytes:")?.trim().parse().ok())
    }

    /// CPUs that a process may use; `process` is an id or `self`.
    pub fn cpus_allowed(&self, process: &str) -> Option<Vec<u32>> {
        let status = self.text(&format!("proc/{process}/status"))?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        cpu_list(list.trim())
    }

    /// Busy time of each CPU since boot, milliseconds.
    pub fn cpu_busy_millis(&self) -> BTreeMap<u32, i64> {
        self.text("proc/stat")
            .map(|stat| busy_millis(&stat))
            .unwrap_or_default()
    }

    /// A counter of `/proc/vmstat`.
    pub fn vmstat(&self, names: &[&str]) -> Option<i64> {
        let text = self.text("proc/vmstat")?;
        let values: Vec<i64> = text
            .lines()
            .filter_map(|line| {
                let (name, value) = line.split_once(' ')?;
                names.contains(&name).then(|| value.trim().parse().ok()).flatten()
            })
            .collect();
        (values.len() == names.len()).then(|| values.iter().sum())
    }

    /// Dirty and writeback pages, bytes.
    pub fn dirty_bytes(&self) -> Option<i64> {
        self.vmstat(&["nr_dirty", "nr_writeback"])
            .map(|pages| pages * PAGE_BYTES)
    }

    /// Swap in use, bytes.
    pub fn swap_used_bytes(&self) -> Option<i64> {
        let memory = self.text("proc/meminfo")?;
        Some(kilobytes(&memory, "SwapTotal:")? - kilobytes(&memory, "SwapFree:")?)
    }

    /// Kernel release.
    pub fn release(&self) -> Option<String> {
        self.text("proc/sys/kernel/osrelease")
    }

    /// CPU model.
    pub fn cpu_model(&self) -> Option<String> {
        let text = self.text("proc/cpuinfo")?;
        text.lines()
            .find(|line| line.starts_with("model name"))
            .and_then(|line| {
                let (_, model) = line.split_once(':')?;
                Some(model.trim().to_owned())
            })
    }

    /// Mode of transparent huge pages: the word in brackets.
    pub fn transparent_huge_pages(&self) -> Option<String> {
        let text = self.text("sys/kernel/mm/transparent_hugepage/enabled")?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// Frequency governor of a CPU.
    pub fn governor(&self, cpu: u32) -> Option<String> {
        self.text(&format!(
            "sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
        ))
    }

    /// Path of a process' CPU cgroup as its own namespace shows it; version 2 first. `process` is an id or `self`.
    fn cgroup(&self, process: &str, controller: &str) -> Option<String> {
        let text = self.text(&format!("proc/{process}/cgroup"))?;
        text.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            controllers
                .split(',')
                .any(|name| name == controller)
                .then(|| path.trim_start_matches('/').to_owned())
        })
    }

    /// A file of a process' CPU cgroup: version 2 (`/sys/fs/cgroup`), else version 1 (`/sys/fs/cgroup/cpu`). A container
    /// sees its own group at the mount's root, whatever path it is told.
    fn cgroup_file(&self, process: &str, name: &str) -> Option<String> {
        let two = self
            .cgroup(process, "")
            .map(|path| format!("sys/fs/cgroup/{path}/{name}"));
        let one = self.cgroup(process, "cpu").into_iter().flat_map(|path| {
            ["cpu", "cpu,cpuacct"].map(|mount| format!("sys/fs/cgroup/{mount}/{path}/{name}"))
        });
        two.into_iter()
            .chain(one)
            // A path that leaves the mount (`/../x`) belongs to a group that we don't see.
            .filter(|path| !path.contains(".."))
            .find_map(|path| self.text(&path))
            .or_else(|| {
                // Only for ourselves: the root of the mount is our group, never another process'.
                let roots = ["sys/fs/cgroup", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"];
                roots
                    .iter()
                    .filter(|_| process == "self")
                    .find_map(|root| self.text(&format!("{root}/{name}")))
            })
    }

    /// Time for which a process' cgroup was throttled, milliseconds since its creation.
    pub fn throttled_millis(&self, process: &str) -> Option<i64> {
        throttled(&self.cgroup_file(process, "cpu.stat")?)
    }

    /// CPU limit of our own cgroup, thousandths of a CPU; `None` without a limit.
    pub fn cpu_limit_milli(&self) -> Option<i64> {
        if let Some(text) = self.cgroup_file("self", "cpu.max") {
            let (quota, period) = text.split_once(' ')?;
            return limit_milli(quota, period);
        }
        let quota = self.cgroup_file("self", "cpu.cfs_quota_us")?;
        let period = self.cgroup_file("self", "cpu.cfs_period_us")?;
        limit_milli(&quota, &period)
    }
}

fn limit_milli(quota: &str, period: &str) -> Option<i64> {
    let quota: i64 = quota.trim().parse().ok().filter(|quota| *quota > 0)?;
    let period: i64 = period.trim().parse().ok().filter(|period| *period > 0)?;
    Some(quota.saturating_mul(1_000) / period)
}

/// `throttled_usec` (version 2) or `throttled_time` in nanoseconds (version 1).
fn throttled(stat: &str) -> Option<i64> {
    stat.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let value: i64 = value.trim().parse().ok()?;
        match name {
            "throttled_usec" => Some(value / 1_000),
            "throttled_time" => Some(value / 1_000_000),
            _ => None,
        }
    })
}

fn process_stat(stat: &str) -> Option<ProcessStat> {
    // The name may hold spaces and parentheses; fields are counted behind its last parenthesis, from the state (3).
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<i64>().ok());
    Some(ProcessStat {
        parent: fields.get(1)?.parse().ok()?,
        cpu_millis: (ticks(14)? + ticks(15)?) * TICK_MILLIS,
        children_cpu_millis: (ticks(16)? + ticks(17)?) * TICK_MILLIS,
    })
}

/// User, nice, system, irq, softirq and steal time of each `cpuN` line; guest time is part of user time.
fn busy_millis(stat: &str) -> BTreeMap<u32, i64> {
    stat.lines()
        .filter_map(|line| {
            // Not the line of all CPUs together, `cpu  …`.
            let (number, counters) = line.strip_prefix("cpu")?.split_once(' ')?;
            let cpu: u32 = number.parse().ok()?;
            let fields = counters.split_whitespace();
            let ticks: Vec<i64> = fields.filter_map(|field| field.parse().ok()).collect();
            let busy: i64 = [0, 1, 2, 5, 6, 7]
                .iter()
                .filter_map(|index| ticks.get(*index))
                .sum();
            Some((cpu, busy * TICK_MILLIS))
        })
        .collect()
}

/// `0-2,5` as numbers.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // A bound, so that a damaged file can't ask for gigabytes.
        if last < first || last - first > 65_535 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn kilobytes(text: &str, label: &str) -> Option<i64> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(label)?.trim().strip_suffix("kB")?;
        value.trim().parse::<i64>().ok()?.checked_mul(1_024)
    })
}

#[cfg(test)]
mod tests;
