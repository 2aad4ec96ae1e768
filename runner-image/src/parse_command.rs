//! `runner parse`: reads files, prints the typed result. Exit code 0 whatever the result is; 2 if it could not be read.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use runner::parse::pgbench::log::Log;
use runner::parse::{self, Capture, text};

/// Exit code for what could not be read; clap uses the same for wrong arguments.
const UNREADABLE: u8 = 2;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The tool that wrote the capture: sysbench or pgbench
    #[arg(long)]
    tool: String,
    /// The tool's exit code (128 + signal, or the signal as a negative number)
    #[arg(long, allow_negative_numbers = true)]
    exit_code: i32,
    /// File with the tool's standard error
    #[arg(long, value_name = "FILE")]
    stderr: Option<PathBuf>,
    /// What the tool was asked to do
    #[arg(long, value_enum, default_value = "run")]
    command: CommandName,
    /// pgbench's log file (`-l`, with or without `--aggregate-interval`); may be repeated
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// File with the tool's standard output
    file: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CommandName {
    Run,
    Prepare,
    Prewarm,
    Cleanup,
}

impl From<CommandName> for parse::Command {
    fn from(name: CommandName) -> Self {
        match name {
            CommandName::Run => Self::Run,
            CommandName::Prepare => Self::Prepare,
            CommandName::Prewarm => Self::Prewarm,
            CommandName::Cleanup => Self::Cleanup,
        }
    }
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    match result(arguments) {
        Ok(json) => {
            // A reader that went away (`| head`) is no error of ours.
            let _ = writeln!(std::io::stdout(), "{json}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "runner parse: {message}");
            ExitCode::from(UNREADABLE)
        }
    }
}

fn result(arguments: &Arguments) -> Result<String, String> {
    let tool = parse::tool(&arguments.tool).ok_or_else(|| {
        let known: Vec<&str> = parse::TOOLS.iter().map(|tool| tool.name).collect();
        format!(
            "--tool {:?} is not known; one of: {}",
            arguments.tool,
            known.join(", ")
        )
    })?;
    let stdout = read(&arguments.file)?;
    let stderr = arguments
        .stderr
        .as_deref()
        .map(read)
        .transpose()?
        .unwrap_or_default();
    let mut result = (tool.parse)(&Capture {
        stdout: &stdout,
        stderr: &stderr,
        exit_code: arguments.exit_code,
        command: arguments.command.into(),
    });
    if !arguments.log.is_empty() {
        let mut log = Log::default();
        for file in &arguments.log {
            log.add(&read(file)?);
        }
        log.complete(&mut result);
    }
    serde_json::to_string_pretty(&result)
        .map_err(|error| format!("the result can't be written as JSON: {error}"))
}

fn read(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text::decode(&bytes))
}
