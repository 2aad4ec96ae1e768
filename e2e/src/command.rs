//! Running other programs: output to a log, its last lines in the error, an environment that does not depend on ours.
//! It decides nothing about what is run.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::error::{Error, Result, at};

/// Lines of output that an error repeats.
const TAIL: usize = 15;

/// Where Debian keeps its programs; `/usr/sbin` is not on every root's search path.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command for a program of the system's own packages.
pub fn system(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", SYSTEM_PATH);
    command
}

/// Runs a command to its end with all output appended to a log file.
pub fn run(what: &str, command: &mut Command, log: &Path) -> Result<()> {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .map_err(at(log))?;
    writeln!(file, "+ {command:?}").map_err(at(log))?;
    let start = file.metadata().map_err(at(log))?.len();
    let second = file.try_clone().map_err(at(log))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(second)
        .status()
        .map_err(|source| not_started(command, &source))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read(log).map_err(at(log))?;
    let text = String::from_utf8_lossy(text.get(start as usize..).unwrap_or_default()).into_owned();
    Err(Error::Command {
        what: what.into(),
        status: status.to_string(),
        tail: last_lines(&text, TAIL),
        log: Some(log.into()),
    })
}

/// Runs a command and returns its standard output.
pub fn output(what: &str, command: &mut Command) -> Result<String> {
    let out = raw_output(command)?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    Err(failure(what, &out))
}

/// Runs a command with text on its standard input and returns its standard output.
pub fn output_with_input(what: &str, command: &mut Command, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| not_started(command, &source))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that stops reading says why on its standard error, which is shown below.
        let _ = stdin.write_all(input.as_bytes());
    }
    let out = child
        .wait_with_output()
        .map_err(|source| not_started(command, &source))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    Err(failure(what, &out))
}

/// Runs a command whose failure is an answer and not an error; `None` when it failed.
pub fn answer(command: &mut Command) -> Option<String> {
    let out = raw_output(command).ok()?;
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

fn raw_output(command: &mut Command) -> Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| not_started(command, &source))
}

fn failure(what: &str, out: &Output) -> Error {
    let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&out.stderr));
    Error::Command {
        what: what.into(),
        status: out.status.to_string(),
        tail: last_lines(&text, TAIL),
        log: None,
    }
}

fn not_started(command: &Command, source: &std::io::Error) -> Error {
    let tool = command.get_program().to_string_lossy().into_owned();
    Error::Missing {
        tool,
        remedy: format!("{source}; install it or add its folder to PATH"),
    }
}

/// The last `count` lines of a text.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_repeats_only_the_output_of_the_failed_command() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        run("first", Command::new("sh").args(["-c", "echo earlier"]), &log).unwrap();
        let error = run(
            "second",
            Command::new("sh").args(["-c", "echo why >&2; exit 3"]),
            &log,
        )
        .unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("second failed (exit status: 3):\n    why\n"),
            "{text}"
        );
        assert!(fs::read_to_string(&log).unwrap().contains("earlier"));
    }

    #[test]
    fn input_reaches_the_child_and_a_missing_program_is_named() {
        assert_eq!(
            output_with_input("cat", &mut Command::new("cat"), "text").unwrap(),
            "text"
        );
        let error = output("x", &mut Command::new("no-such-program"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("`no-such-program` was not found"), "{error}");
    }

    #[test]
    fn last_lines_skips_blank_ones() {
        assert_eq!(last_lines("a\n\nb\nc\n\n", 2), "b\nc");
        assert_eq!(last_lines("a", 5), "a");
    }
}
