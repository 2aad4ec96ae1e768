//! A tool's log, read while it is written, from the pipes that the tool's process makes. Nothing of it is kept here.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::load::LogPipes;

/// What becomes of the lines of a log.
pub trait Lines: Send + Sync {
    /// The tool was started, microseconds since 1970.
    fn begin(&self, started_micros: i64);
    /// A line without its end.
    fn line(&self, line: &[u8]);
}

/// Pause before a pipe is looked for again: it is made within milliseconds of the tool's start.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Bytes that a pipe is asked to hold, so that the tool never waits for us.
const PIPE_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 64 << 10;

/// Reads the pipes of a process until it has ended and they are empty; then they are removed.
pub(super) async fn follow(
    pipes: &LogPipes,
    process: u32,
    lines: &Arc<dyn Lines>,
    ended: &watch::Receiver<bool>,
) -> io::Result<()> {
    let mut readers = JoinSet::new();
    for index in 0..pipes.count {
        let mut name = pipes.prefix.clone().into_os_string();
        name.push(format!(".{process}"));
        if index > 0 {
            name.push(format!(".{index}"));
        }
        readers.spawn(read(PathBuf::from(name), lines.clone(), ended.clone()));
    }
    let mut outcome = Ok(());
    while let Some(read) = readers.join_next().await {
        let read = read.map_err(io::Error::other).and_then(|read| read);
        outcome = outcome.and(read);
    }
    outcome
}

async fn read(path: PathBuf, lines: Arc<dyn Lines>, mut ended: watch::Receiver<bool>) -> io::Result<()> {
    while !path.exists() {
        if *ended.borrow() {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    // Also for writing: the pipe then has no end before the tool has opened it.
    let pipe = OpenOptions::new().read_write(true).open_receiver(&path)?;
    // A smaller one is slower and not wrong.
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_BYTES);
    let mut log = Log {
        rest: Vec::new(),
        lines,
    };
    let mut chunk = vec![0; CHUNK_BYTES];
    while !*ended.borrow() {
        tokio::select! {
            readable = pipe.readable() => readable?,
            // Its sender lives as long as the process.
            _ = ended.changed() => continue,
        }
        match pipe.try_read(&mut chunk) {
            Ok(length) => log.take(&chunk[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    drain(&pipe, &mut chunk, &mut log)?;
    // Best effort: it is in a folder that ends with the pod.
    let _ = std::fs::remove_file(&path);
    Ok(())
}

/// What is left in a pipe whose writer has ended.
fn drain(pipe: &Receiver, chunk: &mut [u8], log: &mut Log) -> io::Result<()> {
    loop {
        match rustix::io::read(pipe, &mut *chunk) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(()),
            Ok(length) => log.take(&chunk[..length]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The lines of one pipe; what follows the last line end waits for the rest of its line.
struct Log {
    rest: Vec<u8>,
    lines: Arc<dyn Lines>,
}

impl Log {
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            if self.rest.is_empty() {
                self.lines.line(&bytes[..end]);
            } else {
                self.rest.extend_from_slice(&bytes[..end]);
                self.lines.line(&self.rest);
                self.rest.clear();
            }
            bytes = &bytes[end + 1..];
        }
        self.rest.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shell;
    use super::*;
    use crate::load::Invocation;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Kept(Mutex<(Option<i64>, Vec<String>)>);

    impl Lines for Kept {
        fn begin(&self, started_micros: i64) {
            self.0.lock().unwrap().0 = Some(started_micros);
        }
        fn line(&self, line: &[u8]) {
            self.0
                .lock()
                .unwrap()
                .1
                .push(String::from_utf8(line.to_vec()).unwrap());
        }
    }

    async fn lines_of(script: &str, count: usize) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("log");
        let invocation = Invocation {
            log: Some(LogPipes { prefix, count }),
            working_directory: folder.path().to_owned(),
            ..shell(script)
        };
        let kept = Arc::new(Kept::default());
        let finished = super::super::run(&invocation, Some(kept.clone()), std::future::pending())
            .await
            .unwrap();
        assert_eq!(finished.exit_code, 0, "{}", finished.stderr);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let (started, mut lines) = kept.0.lock().unwrap().clone();
        assert_eq!(started.unwrap() / 1_000, finished.started_millis);
        lines.sort();
        lines
    }

    #[tokio::test]
    async fn every_line_of_every_pipe_arrives() {
        let script = "mkfifo log.$$ log.$$.1; (i=0; while [ $i -lt 30000 ]; do echo a $i; i=$((i+1)); done) >log.$$; \
                      printf 'b 1\\nb ' >log.$$.1; printf '2\\ncut' >log.$$.1";
        let lines = lines_of(script, 2).await;
        assert_eq!(lines.len(), 30_002);
        assert_eq!(lines[30_000..], ["b 1", "b 2"]);
    }

    #[tokio::test]
    async fn a_tool_that_ends_before_it_logs_is_not_waited_for() {
        assert_eq!(lines_of("true", 2).await, [] as [&str; 0]);
        assert_eq!(lines_of("mkfifo log.$$", 1).await, [] as [&str; 0]);
    }
}
