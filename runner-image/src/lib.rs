//! The load generator's side of a run: `run`, `prepare`, `agent` and `parse`.
//! Knows databases and tools, not Kubernetes: what it is told comes from files and arguments, what it found leaves
//! as JSON (termination message, log line, HTTP answer).

pub mod agent;
pub mod load;
pub mod login;
pub mod meeting;
pub mod parse;
pub mod prepare;
pub mod process;
pub mod procfs;
pub mod report;
pub mod run;
pub mod stop;
