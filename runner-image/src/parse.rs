//! What a load generator printed, turned into one typed result.
//! Pure: text and an exit code in, a [`ToolResult`] out; it never fails and never panics, because a capture that can
//! not be read is a result too (`NoReport`).

pub mod decimal;
pub mod failure;
pub mod histogram;
pub mod pgbench;
pub mod result;
pub mod sysbench;
pub mod text;

pub use result::{Command, Figures, Flag, Reason, ToolResult};

/// Everything that one tool process left behind.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    /// Standard output.
    pub stdout: &'a str,
    /// Standard error; empty when it was not kept or went to the same file.
    pub stderr: &'a str,
    /// The process' exit code as a shell reports it (128 + signal); a negative number is a signal too.
    pub exit_code: i32,
    /// What the tool was asked to do: each command has its own signs of success.
    pub command: Command,
}

/// A load generator whose output can be read.
#[derive(Clone, Copy)]
pub struct Tool {
    /// The name given to `--tool`.
    pub name: &'static str,
    /// Its parser.
    pub parse: fn(&Capture<'_>) -> ToolResult,
}

/// Every tool that can be read; a new load generator is a new module and one line here.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "sysbench",
        parse: sysbench::parse,
    },
    Tool {
        name: "pgbench",
        parse: pgbench::parse,
    },
];

/// The tool of that name.
pub fn tool(name: &str) -> Option<Tool> {
    TOOLS.iter().find(|tool| tool.name == name).copied()
}
