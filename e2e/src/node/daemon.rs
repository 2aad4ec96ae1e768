//! The node's long-lived processes, each known by process id and start time, so that a recycled id is never taken for it.
//! They live on after the command that started them.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::command::system;
use crate::error::{Error, Result, at};

/// A process that was started and recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    /// Our name for it, also that of its log.
    pub name: String,
    /// Process id.
    pub pid: i32,
    /// Clock ticks between the machine's boot and its start (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
}

/// What `/proc/PID/stat` says that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    start_ticks: u64,
}

impl Daemon {
    /// Starts `program` in its own session, inside the network namespace, on core 0, with its output in a log file.
    ///
    /// Core 0 is where everything but the measured database runs; containers get their own cores from the kubelet.
    pub fn spawn(name: &str, program: &Path, args: &[String], place: &Place) -> Result<Self> {
        let log = place.logs.join(format!("{name}.log"));
        let out = File::create(&log).map_err(at(&log))?;
        let err = out.try_clone().map_err(at(&log))?;
        let mut command = system("setsid");
        command
            .arg("taskset")
            .args(["--cpu-list", "0"])
            .arg("nsenter")
            .arg(format!("--net={}", place.namespace.display()))
            .arg(program)
            .args(args)
            .env("PATH", place.search_path())
            .env("POD_NAMESPACE", super::config::VOLUMES_NAMESPACE)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        let child = command.spawn().map_err(at(program))?;
        let pid = child.id() as i32;
        // Each program in the chain replaces the one before it, so the id stays and so does the start time.
        let stat = read_stat(pid)
            .ok_or_else(|| Error::Plain(format!("{name} ended at once; see {}", log.display())))?;
        Ok(Self {
            name: name.into(),
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// Whether this very process still runs.
    pub fn alive(&self) -> bool {
        read_stat(self.pid).is_some_and(|stat| self.is(stat))
    }

    fn is(&self, stat: Stat) -> bool {
        stat.start_ticks == self.start_ticks && !matches!(stat.state, 'Z' | 'X')
    }

    /// Sends a signal to this very process; nothing happens if it is gone.
    pub fn signal(&self, signal: Signal) {
        // The handle is opened before the check: what it refers to cannot change between check and signal.
        if let Some(pid) = Pid::from_raw(self.pid)
            && let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
            && self.alive()
        {
            // The only failure left is that it ended meanwhile, which is what was wanted.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// Whether it ended within the time given.
    pub fn ended_within(&self, limit: Duration) -> bool {
        let start = Instant::now();
        while self.alive() {
            if start.elapsed() > limit {
                return false;
            }
            thread::sleep(Duration::from_millis(30));
        }
        true
    }
}

/// Asks all of them to end, then makes them.
pub fn stop_all(daemons: &[&Daemon], patience: Duration) {
    for daemon in daemons {
        daemon.signal(Signal::TERM);
    }
    for daemon in daemons {
        if !daemon.ended_within(patience) {
            daemon.signal(Signal::KILL);
            daemon.ended_within(Duration::from_secs(5));
        }
    }
}

/// Where daemons run.
#[derive(Debug)]
pub struct Place<'a> {
    /// File of the network namespace.
    pub namespace: &'a Path,
    /// Folder of the log files.
    pub logs: &'a Path,
    /// Folder of the node's programs, first on the search path.
    pub binaries: &'a Path,
}

impl Place<'_> {
    fn search_path(&self) -> String {
        format!("{}:{}", self.binaries.display(), crate::command::SYSTEM_PATH)
    }
}

/// The process with this id, found by scanning, for things a daemon started itself.
pub fn found(pid: i32, name: &str) -> Option<Daemon> {
    read_stat(pid).map(|stat| Daemon {
        name: name.into(),
        pid,
        start_ticks: stat.start_ticks,
    })
}

fn read_stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field is the program's name in brackets and may hold spaces and brackets: count from its last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // `state` is field 3; the start time is field 22, 18 fields further.
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some(Stat { state, start_ticks })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const STAT: &str = "4242 (a (odd) name) S 1 4242 4242 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 9 0 987654 1000 20 18446744073709551615";

    #[test]
    fn stat_is_read_behind_the_last_bracket() {
        assert_eq!(
            parse_stat(STAT),
            Some(Stat {
                state: 'S',
                start_ticks: 987_654
            })
        );
        assert_eq!(parse_stat("4242 (x) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn another_process_with_the_same_id_is_not_it() {
        let daemon = Daemon {
            name: "etcd".into(),
            pid: 4242,
            start_ticks: 987_654,
        };
        assert!(daemon.is(Stat {
            state: 'S',
            start_ticks: 987_654
        }));
        assert!(
            !daemon.is(Stat {
                state: 'S',
                start_ticks: 987_655
            }),
            "a recycled id"
        );
        assert!(
            !daemon.is(Stat {
                state: 'Z',
                start_ticks: 987_654
            }),
            "dead, not yet reaped"
        );
    }

    #[test]
    fn a_wrong_start_time_is_never_signalled_and_the_right_one_is() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let right = found(child.id() as i32, "sleep").unwrap();
        let recycled = Daemon {
            start_ticks: right.start_ticks + 1,
            ..right.clone()
        };
        recycled.signal(Signal::KILL);
        assert!(child.try_wait().unwrap().is_none(), "still runs");
        assert!(!right.ended_within(Duration::from_millis(100)));
        stop_all(&[&right], Duration::from_secs(5));
        assert!(!right.alive());
        child.wait().unwrap();
    }
}
