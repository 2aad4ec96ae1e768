//! `runner run`: one measured run. Connect, is it the server that was proved, claim the fence row, look at the counters,
//! ONE load generator process, look again, report.
//! Between the first look and the second nothing of ours touches the database. It judges no validity: it reports what it
//! saw.

// What is told is made once a run and handed on as it is, whether it went well or not.
#![allow(clippy::result_large_err)]

mod apply;
mod parts;

use std::time::Duration;

use crds::runner::{AuditLogPosition, Connection, RunObservations, RunOrder, RunOutcome, RunReport};
use database::after::START_TOLERANCE;
use database::{AfterRun, Agent, Claim, Counters, DatabaseError, Databases, Login};
use tokio::net::TcpStream;
use tokio::time::Instant;

use self::apply::{Applied, Load};
use crate::load::Site;
use crate::parse::ToolResult;
use crate::parse::result::Interval;
use crate::process::Finished;
use crate::procfs::Kernel;
use crate::report::{self, Sample, Setting};
use crate::stop::Stop;

/// Echoes whose median is the network's round trip.
const ECHOES: usize = 200;
/// Connects that stand in for echoes at a borrowed database. Few, because a server counts connections that end without a
/// login and blocks a host after 100 in a row (`max_connect_errors`).
const CONNECTS: usize = 20;
/// How long a fresh pod may wait for its network.
const NETWORK_LIMIT: Duration = Duration::from_secs(15);
const NETWORK_PAUSE: Duration = Duration::from_millis(250);

/// A report and the intervals from which its series is thinned.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The report, without its series.
    pub report: RunReport,
    /// Intervals of the window.
    pub intervals: Vec<Interval>,
    /// Length of each, seconds.
    pub step_seconds: u32,
}

impl Told {
    /// A report that holds only an outcome and a sentence.
    pub fn only(outcome: RunOutcome, message: impl Into<String>) -> Self {
        let report = RunReport {
            outcome,
            message: message.into(),
            ..RunReport::default()
        };
        Self {
            report,
            ..Self::default()
        }
    }
}

/// What lies before the load.
struct Before {
    counters: Counters,
    agent: Option<Agent>,
    log: Option<AuditLogPosition>,
    sample: Sample,
    round_trip_nanos: Option<i64>,
}

/// Runs an order to its end; failures are part of what is told. `index` says which of several pods this is.
pub async fn run(order: &RunOrder, index: Option<i32>, login: &Login, site: &Site<'_>, stop: &Stop) -> Told {
    let ended = match &order.meeting {
        None => measured(order, login, site, stop).await,
        Some(meeting) => parts::measured(order, (meeting, index), login, site, stop).await,
    };
    let mut told = match ended {
        Ok(told) | Err(told) => told,
    };
    told.report.run_uid.clone_from(&order.run_uid);
    told.report.epoch = order.epoch;
    told
}

async fn measured(order: &RunOrder, login: &Login, site: &Site<'_>, stop: &Stop) -> Result<Told, Told> {
    let load = loaded(order, site)?;
    let before = tokio::select! {
        before = before(order, login) => before?,
        () = stop.requested() => return Err(Told::only(RunOutcome::Interrupted, "told to stop before the load began")),
    };
    let applied = load.apply(stop).await?;
    if applied.finished.interrupted {
        // The pod is being removed: what could be asked now would be of no use and may take longer than there is time.
        return Err(told(
            &applied,
            RunOutcome::Interrupted,
            "told to stop during the load".to_owned(),
        ));
    }
    Ok(after(order, login, &before, &applied).await)
}

fn loaded(order: &RunOrder, site: &Site<'_>) -> Result<Load, Told> {
    apply::load(order, site).map_err(|message| Told::only(RunOutcome::Failed, message))
}

/// Is it the server that was proved, and is the run ours? Then the counters, the last things asked before the load.
async fn before(order: &RunOrder, login: &Login) -> Result<Before, Told> {
    let unavailable = |error: DatabaseError| Told::only(RunOutcome::DatabaseFailed, error.to_string());
    let found = reached(login).await.map_err(unavailable)?;
    if let Some(proved) = order
        .server_started
        .filter(|proved| (proved - found.started).abs() > START_TOLERANCE)
    {
        let message = format!(
            "the server started at {}, the proof is of one started at {proved}",
            found.started
        );
        return Err(Told::only(RunOutcome::BootChanged, message));
    }
    match Databases
        .claim(login, &order.run_uid, order.epoch)
        .await
        .map_err(unavailable)?
    {
        Claim::Claimed => {}
        Claim::AlreadyStarted => {
            let message = "another start of this run had claimed the fence row: nothing was measured";
            return Err(Told::only(RunOutcome::AlreadyStarted, message));
        }
        Claim::NotProved => {
            let message =
                "what must be in force for this run is not proved on this boot: nothing was measured";
            return Err(Told::only(RunOutcome::Fenced, message));
        }
        Claim::Fenced { holder } => {
            return Err(Told::only(
                RunOutcome::Fenced,
                format!("the fence row belongs to run {holder:?}"),
            ));
        }
    }
    let agent = Agent::of(login);
    let round_trip_nanos = round_trip(agent.as_ref(), &login.connection).await;
    let counters = Databases.counters(login).await.map_err(unavailable)?;
    // From the log's present end on: the proof's statements and ours lie before it.
    let log = match (&agent, &order.audit_log) {
        (Some(agent), Some(position)) => {
            let now = agent
                .audit(position.offset, &position.file, None)
                .await
                .map_err(unavailable)?;
            Some(AuditLogPosition {
                file: position.file.clone(),
                offset: now.size,
            })
        }
        _ => None,
    };
    let sample = sample(agent.as_ref()).await;
    Ok(Before {
        counters,
        agent,
        log,
        sample,
        round_trip_nanos,
    })
}

/// The counters, as soon as there is a network: that of a pod just made may come a moment after its process.
async fn reached(login: &Login) -> Result<Counters, DatabaseError> {
    let start = Instant::now();
    loop {
        match Databases.counters(login).await {
            Err(DatabaseError::Unreachable { .. }) if start.elapsed() < NETWORK_LIMIT => {
                tokio::time::sleep(NETWORK_PAUSE).await;
            }
            answer => return answer,
        }
    }
}

/// Everything that is asked when the load has ended. The agent first: what we ask the server is written to its log too.
async fn after(order: &RunOrder, login: &Login, before: &Before, applied: &Applied) -> Told {
    let Applied { result, finished, .. } = applied;
    let sample = sample(before.agent.as_ref()).await;
    let audit = match (&before.agent, &before.log) {
        (Some(agent), Some(log)) => agent.audit(log.offset, &log.file, None).await.map(Some),
        _ => Ok(None),
    };
    let server = Databases.after_run(login, order, &before.counters).await;

    let mut problems: Vec<String> = Vec::new();
    problems.extend(audit.as_ref().err().map(ToString::to_string));
    problems.extend(server.as_ref().err().map(ToString::to_string));
    let setting = Setting {
        round_trip_nanos: before.round_trip_nanos,
        audit: audit.ok().flatten(),
        statement_classes: database::audit::expected_classes(order.connection.engine, &order.audit),
        ..setting(finished)
    };
    let (figures, mut observed) = report::figures(result, &setting, &before.sample, &sample);
    observe(&mut observed, server.ok());

    let (outcome, message) = if let Err(incomplete) = completeness(result, order) {
        problems.insert(0, incomplete);
        (RunOutcome::ToolFailed, problems.join("; "))
    } else if problems.is_empty() {
        (RunOutcome::Completed, String::new())
    } else {
        (
            RunOutcome::DatabaseFailed,
            format!("after the load: {}", problems.join("; ")),
        )
    };
    let mut told = told(applied, outcome, message);
    told.report.result = result.acceptable.then_some(figures);
    told.report.observed = Some(observed);
    told
}

/// What is known of a load generator's own process.
fn setting(finished: &Finished) -> Setting {
    let kernel = Kernel::default();
    Setting {
        cpus: kernel.cpus_allowed("self").unwrap_or_default(),
        limit_milli: kernel.cpu_limit_milli(),
        generator_cpu_millis: finished.cpu_millis,
        ..Setting::default()
    }
}

/// Whether the tool did what was asked; if not, why.
fn completeness(result: &ToolResult, order: &RunOrder) -> Result<(), String> {
    if !result.acceptable {
        return Err(report::refusal(result));
    }
    short_window(result, order).map_or(Ok(()), Err)
}

/// A script may end its load early, and report it without a fault.
fn short_window(result: &ToolResult, order: &RunOrder) -> Option<String> {
    let wanted = u64::from(order.duration_seconds) * 1_000_000;
    let found = result.figures.window_micros.unwrap_or(0);
    (found < wanted / 10 * 9).then(|| {
        let (found, wanted) = (found / 1_000, wanted / 1_000);
        format!("the window lasted {found} ms of {wanted} ms: the load ended early, or its connections opened late")
    })
}

fn observe(observed: &mut RunObservations, server: Option<AfterRun>) {
    if let Some(server) = server {
        observed.same_boot = Some(server.same_boot);
        observed.changed_settings = server.changed_settings;
        observed.rows_written = Some(server.rows_written);
        observed.audit_lost = server.audit_lost;
    }
}

fn told(applied: &Applied, outcome: RunOutcome, message: String) -> Told {
    let Applied { result, finished, .. } = applied;
    if !result.acceptable {
        // For people who read the log; the report holds the reasons only.
        eprintln!("{}{}", tail(&finished.stdout), tail(&finished.stderr));
    }
    let report = RunReport {
        outcome,
        message,
        client_version: result
            .version
            .as_ref()
            .map(|version| format!("{} {version}", result.tool)),
        load_started_millis: Some(finished.started_millis),
        load_ended_millis: Some(finished.ended_millis),
        ..RunReport::default()
    };
    Told {
        report,
        intervals: result.series.clone(),
        step_seconds: applied.step_seconds,
    }
}

/// The last lines of a tool's output.
pub(crate) fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(4_096);
    let start = (start..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    &text[start..]
}

/// The counters of agent, node and our own container. A figure that can't be read is absent, never a failure.
async fn sample(agent: Option<&Agent>) -> Sample {
    let kernel = Kernel::default();
    let usage = match agent {
        Some(agent) => agent.usage().await.ok(),
        None => None,
    };
    let own = kernel.process_stat("self");
    Sample {
        at_millis: monotonic_millis(),
        usage,
        busy_millis: kernel.cpu_busy_millis(),
        own_cpu_millis: own.map(|stat| stat.cpu_millis + stat.children_cpu_millis),
        throttled_millis: kernel.throttled_millis("self"),
    }
}

/// Milliseconds since the first call, by a clock that can't be set.
fn monotonic_millis() -> i64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    i64::try_from(START.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(i64::MAX)
}

/// The fastest of many round trips to the database's pod; connects where there is no agent. The fastest, because it is
/// the path that is asked for: how long the two ends slept or waited for a core says nothing of it, and an idle
/// processor's sleep alone makes medians of one path differ by half.
async fn round_trip(agent: Option<&Agent>, connection: &Connection) -> Option<i64> {
    let mut fastest = Duration::MAX;
    if let Some(agent) = agent {
        // The first one opens the connection.
        agent.echo().await.ok()?;
        for _ in 0..ECHOES {
            fastest = fastest.min(agent.echo().await.ok()?);
        }
    } else {
        for _ in 0..CONNECTS {
            let start = Instant::now();
            let connected = TcpStream::connect((connection.host.as_str(), connection.port))
                .await
                .ok()?;
            fastest = fastest.min(start.elapsed());
            drop(connected);
        }
    }
    i64::try_from(fastest.as_nanos()).ok()
}

#[cfg(test)]
mod tests;
