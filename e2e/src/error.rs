//! Everything that can go wrong while a machine is made ready, a demo runs or a check fails.
//! Each message says what was tried, what was seen and what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// Result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, worded for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The local node needs root: namespaces, mounts and cgroups.
    #[error(
        "{0} needs root (network namespace, mounts, cgroups): run it as root, or point KUBECONFIG at a cluster"
    )]
    NotRoot(&'static str),
    /// A program that cannot be installed for the user is missing.
    #[error("`{tool}` was not found: {remedy}")]
    Missing {
        /// Name of the program.
        tool: String,
        /// What to do about it.
        remedy: String,
    },
    /// A child process failed.
    #[error("{what} failed ({status}){}{}", indented(tail), log_hint(log.as_deref()))]
    Command {
        /// What the command was for.
        what: String,
        /// Its exit status.
        status: String,
        /// Its last lines of output.
        tail: String,
        /// Where all of its output is.
        log: Option<PathBuf>,
    },
    /// Something did not become ready in time.
    #[error("{what} was not ready after {seconds} s{}{}", indented(tail), log_hint(log.as_deref()))]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long, in seconds.
        seconds: u64,
        /// The last thing seen.
        tail: String,
        /// A log that may say why.
        log: Option<PathBuf>,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason the system gave.
        source: io::Error,
    },
    /// Something else, already worded.
    #[error("{0}")]
    Plain(String),
}

/// Attaches the path to an I/O error.
pub fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
    let path = path.as_ref().to_owned();
    move |source| Error::Io { path, source }
}

fn indented(tail: &str) -> String {
    let lines = tail
        .lines()
        .fold(String::new(), |text, line| text + "\n    " + line);
    if lines.is_empty() {
        lines
    } else {
        format!(":{lines}")
    }
}

fn log_hint(log: Option<&Path>) -> String {
    log.map(|path| format!("\n  all of its output: {}", path.display()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_shows_its_last_lines_and_its_log() {
        let error = Error::Command {
            what: "helm lint".into(),
            status: "exit status: 1".into(),
            tail: "line one\nline two".into(),
            log: Some("/tmp/lint.log".into()),
        };
        assert_eq!(
            error.to_string(),
            "helm lint failed (exit status: 1):\n    line one\n    line two\n  all of its output: /tmp/lint.log"
        );
    }
}
