//! The load itself: one process of the tool, and what it left behind.

use std::sync::{Arc, Mutex, PoisonError};

use crds::runner::{RunOrder, RunOutcome};

use super::Told;
use crate::load::{self, Invocation, Site};
use crate::parse::pgbench::window::Window;
use crate::parse::{self, Capture, Command, Tool, ToolResult};
use crate::process::{self, Finished, Lines};
use crate::stop::Stop;

/// A load that can begin.
pub(super) struct Load {
    tool: Tool,
    invocation: Invocation,
    window: Option<Arc<Log>>,
    interval_seconds: u32,
}

/// What a load came to.
pub(super) struct Applied {
    pub(super) result: ToolResult,
    pub(super) finished: Finished,
    /// Seconds between two points of the series.
    pub(super) step_seconds: u32,
}

/// A window that is filled while the tool runs.
struct Log(Mutex<Window>);

impl Log {
    fn with<T>(&self, use_it: impl FnOnce(&mut Window) -> T) -> T {
        // A window is whole after each line, whatever happened to the thread that wrote it.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Lines for Log {
    fn begin(&self, started_micros: i64) {
        self.with(|window| window.begin(started_micros));
    }

    fn line(&self, line: &[u8]) {
        self.with(|window| window.line(line));
    }
}

/// What an order says of its load; refused here if it can't be carried out.
pub(super) fn load(order: &RunOrder, site: &Site<'_>) -> Result<Load, String> {
    let generator = load::generator(order.workload.type_).map_err(|error| error.to_string())?;
    let tool = parse::tool(generator.tool).ok_or_else(|| format!("{} has no parser", generator.tool))?;
    Ok(Load {
        tool,
        invocation: (generator.run)(order, site).map_err(|error| error.to_string())?,
        window: (generator.window)(order).map(|window| Arc::new(Log(Mutex::new(window)))),
        interval_seconds: order.report_interval_seconds,
    })
}

impl Load {
    /// Applies it to its end, or until told to stop.
    pub(super) async fn apply(self, stop: &Stop) -> Result<Applied, Told> {
        tracing::info!(
            program = self.invocation.program,
            arguments = self.invocation.arguments.join(" "),
            "load begins"
        );
        let lines = self.window.clone().map(|log| log as Arc<dyn Lines>);
        let finished = process::run(&self.invocation, lines, stop.requested())
            .await
            .map_err(|error| Told::only(RunOutcome::Failed, error.to_string()))?;
        tracing::info!(
            exit_code = finished.exit_code,
            seconds = finished.elapsed.as_secs(),
            "load ended"
        );
        let result = (self.tool.parse)(&Capture {
            stdout: &finished.stdout,
            stderr: &finished.stderr,
            exit_code: finished.exit_code,
            command: Command::Run,
        });
        let (result, step_seconds) = match &self.window {
            Some(log) => log.with(|window| (window.complete(result), window.step_seconds())),
            None => (result, self.interval_seconds),
        };
        Ok(Applied {
            result,
            finished,
            step_seconds,
        })
    }
}
