//! Runs one tool process: its output in bounded memory, its log as lines, its CPU time, its end by signal.
//! SIGTERM to the runner is passed on; a process that does not end then is killed.

mod log_pipes;

use std::fs::OpenOptions;
use std::future::Future;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::load::Invocation;
use crate::procfs::Kernel;

pub use log_pipes::Lines;

/// Output kept of each stream: a day of interval lines has 12 MB. Of more, the start and the end are kept.
const KEPT_BYTES: usize = 16 << 20;
const HEAD_BYTES: usize = 64 << 10;
/// How long a process may take to end after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A process that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Exit code as a shell reports it: 128 + signal if a signal ended it.
    pub exit_code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Start, milliseconds since 1970.
    pub started_millis: i64,
    /// End, milliseconds since 1970.
    pub ended_millis: i64,
    /// Time between them by a clock that can't be set.
    pub elapsed: Duration,
    /// CPU time of the process and all that it waited for; resolution 10 ms.
    pub cpu_millis: Option<i64>,
    /// Whether `stop` came before its end.
    pub interrupted: bool,
}

/// Starts a command and waits for its end; when `stop` ends first, the command is told to end. The lines of the log that
/// it writes into pipes go to `lines`.
///
/// # Errors
/// If a file can't be written, the program not started, or its log not read.
pub async fn run(
    invocation: &Invocation,
    lines: Option<Arc<dyn Lines>>,
    stop: impl Future<Output = ()>,
) -> io::Result<Finished> {
    for (path, secret) in &invocation.files {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(secret.0.as_bytes())?;
    }
    let kernel = Kernel::default();
    let children_before = kernel.process_stat("self").map(|stat| stat.children_cpu_millis);
    let started_micros = now_micros();
    let start = Instant::now();
    if let Some(lines) = &lines {
        lines.begin(started_micros);
    }
    let mut child = Command::new(invocation.program)
        .args(&invocation.arguments)
        .current_dir(&invocation.working_directory)
        // The tool prints numbers by the locale of the C library in some builds.
        .env("LC_ALL", "C")
        .envs(invocation.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{} can't be started: {error}", invocation.program),
            )
        })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let output = async { tokio::join!(kept(stdout), kept(stderr)) };
    let (tell_end, end) = watch::channel(false);
    let process = child.id().unwrap_or_default();
    let log = async {
        match (&invocation.log, &lines) {
            (Some(pipes), Some(lines)) => log_pipes::follow(pipes, process, lines, &end).await,
            _ => Ok(()),
        }
    };
    let to_the_end = async {
        let ended = until_ended(&mut child, stop).await;
        let at = (start.elapsed(), now_millis());
        // Those who follow the log may have ended already.
        let _ = tell_end.send(true);
        (ended, at)
    };
    let ((ended, (elapsed, ended_millis)), (stdout, stderr), logged) = tokio::join!(to_the_end, output, log);
    let (status, interrupted) = ended?;
    logged?;
    for (path, _) in &invocation.files {
        // Best effort: the folder is in memory and ends with the pod.
        let _ = std::fs::remove_file(path);
    }
    let children_after = kernel.process_stat("self").map(|stat| stat.children_cpu_millis);
    Ok(Finished {
        exit_code: exit_code(status),
        stdout: crate::parse::text::decode(&stdout?),
        stderr: crate::parse::text::decode(&stderr?),
        started_millis: started_micros / 1_000,
        ended_millis,
        elapsed,
        cpu_millis: children_after
            .zip(children_before)
            .map(|(after, before)| after - before),
        interrupted,
    })
}

/// The system clock, milliseconds since 1970.
pub fn now_millis() -> i64 {
    now_micros() / 1_000
}

/// The system clock, microseconds since 1970.
fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(-1)
}

async fn until_ended(child: &mut Child, stop: impl Future<Output = ()>) -> io::Result<(ExitStatus, bool)> {
    tokio::select! {
        status = child.wait() => return Ok((status?, false)),
        () = stop => {}
    }
    if let Some(id) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        // It may have ended by itself meanwhile.
        let _ = kill_process(id, Signal::TERM);
    }
    if let Ok(status) = tokio::time::timeout(END_LIMIT, child.wait()).await {
        return Ok((status?, true));
    }
    child.start_kill()?;
    Ok((child.wait().await?, true))
}

async fn kept(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else { return Ok(kept) };
    let mut buffer = vec![0; 32 << 10];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(kept);
        }
        kept.extend_from_slice(&buffer[..length]);
        bound(&mut kept, HEAD_BYTES, KEPT_BYTES);
    }
}

/// Drops the middle of what is more than `most` bytes: the start names the version, the end holds the report.
fn bound(kept: &mut Vec<u8>, head: usize, most: usize) {
    if kept.len() > most {
        let excess = kept.len() - most / 2;
        kept.drain(head..head + excess.min(kept.len() - head));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Secret;
    use std::path::PathBuf;

    pub(super) fn shell(script: &str) -> Invocation {
        Invocation {
            program: "sh",
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: Vec::new(),
            files: Vec::new(),
            working_directory: PathBuf::from("/"),
            log: None,
        }
    }

    #[tokio::test]
    async fn output_code_and_cpu_time_are_kept() {
        let script = "echo out; echo err >&2; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3";
        let finished = run(&shell(script), None, std::future::pending()).await.unwrap();
        assert_eq!((finished.exit_code, finished.interrupted), (3, false));
        assert_eq!(
            (finished.stdout.as_str(), finished.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert!(finished.cpu_millis.unwrap() > 0);
        assert!(finished.ended_millis >= finished.started_millis);
    }

    #[tokio::test]
    async fn a_signal_is_a_code_above_128() {
        let finished = run(&shell("kill -SEGV $$"), None, std::future::pending())
            .await
            .unwrap();
        assert_eq!(finished.exit_code, 139);
    }

    #[tokio::test]
    async fn told_to_stop_the_process_ends() {
        let finished = run(
            &shell("echo begun; exec sleep 60"),
            None,
            tokio::time::sleep(Duration::from_millis(200)),
        )
        .await
        .unwrap();
        assert_eq!((finished.exit_code, finished.interrupted), (143, true));
        assert!(finished.elapsed < Duration::from_secs(10));
        assert_eq!(finished.stdout, "begun\n");
    }

    #[tokio::test]
    async fn secret_files_are_private_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("login.conf");
        let mut invocation = shell("stat -c %a login.conf; cat login.conf");
        invocation.working_directory = folder.path().to_owned();
        invocation.files = vec![(file.clone(), Secret("x=y".to_owned()))];
        let finished = run(&invocation, None, std::future::pending()).await.unwrap();
        assert_eq!(finished.stdout, "600\nx=y");
        assert!(!file.exists());
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let error = run(
            &Invocation {
                program: "no-such-tool",
                ..shell("")
            },
            None,
            std::future::pending(),
        )
        .await
        .unwrap_err();
        assert!(error.to_string().contains("no-such-tool"), "{error}");
    }

    #[test]
    fn of_too_much_output_start_and_end_are_kept() {
        let mut kept: Vec<u8> = (0..=200).collect();
        bound(&mut kept, 10, 100);
        assert_eq!((kept.len(), kept[0], kept[9], kept[49]), (50, 0, 9, 200));
        bound(&mut kept, 10, 100);
        assert_eq!(kept.len(), 50);
    }
}
