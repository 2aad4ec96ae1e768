//! When a server has come to rest after a boot: a pure judgement over samples, and the thin loop that takes them.
//! "No dirty pages" is no measure: it never comes true after writes.

use std::time::Duration;

use crds::load::Settle;
use crds::run::SettleEvidence;
use tokio::time::{Instant, sleep};

use crate::access::Result;
use crate::agent::Agent;
use crate::server::Server;

/// Time between two samples.
pub const INTERVAL: Duration = Duration::from_millis(500);
/// Time between two samples where only a look is asked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Samples that must agree.
const SAMPLES: usize = 3;
/// Bytes a second by which redo and writes may still move.
const QUIET_RATE: f64 = 1_048_576.0;
/// Transactions of undo that may wait to be purged.
const SHORT_HISTORY: i64 = 1_000;
/// Dirty and writeback pages of the node that may be left from the arm before, bytes.
const DIRTY_LIMIT: i64 = 64 << 20;

/// One look at a server. Absent: cannot be read there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When, since the first sample.
    pub at: Duration,
    /// Length of the history list.
    pub history: Option<i64>,
    /// Bytes of redo since the last checkpoint.
    pub checkpoint_age: Option<i64>,
    /// Bytes that the engine has written since the boot: data files and redo.
    pub written: Option<i64>,
    /// How far the dump of the buffer pool has been loaded, as the server says it.
    pub load_status: String,
    /// Work of the server's own that is not finished, in words.
    pub unfinished: Vec<String>,
    /// Dirty and writeback pages of the node, bytes.
    pub node_dirty: Option<i64>,
}

/// Measures that are not met, in words; empty once the server has come to rest.
pub fn unmet(samples: &[Sample]) -> Vec<String> {
    let Some(last) = samples.last() else {
        return vec!["not looked at".to_owned()];
    };
    let mut unmet = last.unfinished.clone();
    if loading(&last.load_status) {
        unmet.push("the buffer pool is being loaded".to_owned());
    }
    if let Some(history) = last.history.filter(|h| *h > SHORT_HISTORY) {
        unmet.push(format!(
            "{history} transactions wait for purge, at most {SHORT_HISTORY} may"
        ));
    }
    if let Some(dirty) = last.node_dirty.filter(|d| *d > DIRTY_LIMIT) {
        unmet.push(format!(
            "{} MiB of the node wait to be written, at most {} may",
            dirty >> 20,
            DIRTY_LIMIT >> 20
        ));
    }
    if samples.len() < SAMPLES {
        unmet.push(format!("fewer than {SAMPLES} samples"));
        return unmet;
    }
    let recent = &samples[samples.len() - SAMPLES..];
    let ages = recent.iter().map(|s| s.checkpoint_age).collect::<Vec<_>>();
    let written = recent.iter().map(|s| s.written).collect::<Vec<_>>();
    for (what, values) in [("the checkpoint's age", ages), ("bytes written", written)] {
        let moving = (1..SAMPLES)
            .filter_map(|i| {
                let change = (values[i]? - values[i - 1]?).unsigned_abs();
                let seconds = recent[i].at.saturating_sub(recent[i - 1].at).as_secs_f64();
                Some(change as f64 / seconds.max(1e-3))
            })
            .fold(0.0, f64::max);
        if moving >= QUIET_RATE {
            unmet.push(format!(
                "{what} move by {:.1} MiB/s, less than 1 is at rest",
                moving / QUIET_RATE
            ));
        }
    }
    unmet
}

/// A dump that is being loaded; a load that ended, failed or was never begun does not count.
fn loading(status: &str) -> bool {
    let status = status.to_ascii_lowercase();
    !(status.is_empty()
        || [
            "completed",
            "not started",
            "aborted",
            "skip",
            "cannot",
            "error",
            "no such file",
        ]
        .iter()
        .any(|word| status.contains(word)))
}

/// Waits until the server has come to rest, or the limit; with `look_only`, says only whether it has.
pub(crate) async fn wait<S: Server>(
    session: &mut S,
    agent: Option<&Agent>,
    settle: &Settle,
    look_only: bool,
) -> Result<SettleEvidence> {
    let start = Instant::now();
    let elapsed = || i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX);
    if let Some(fixed) = settle.fixed_sleep {
        session.keep_while(sleep(fixed.into())).await?;
        return Ok(SettleEvidence {
            met: true,
            waited_millis: elapsed(),
            unmet: Vec::new(),
        });
    }
    let limit: Duration = settle.timeout.into();
    let interval = if look_only { LOOK_INTERVAL } else { INTERVAL };
    let mut samples = Vec::new();
    if !look_only {
        session.calm(limit.max(INTERVAL)).await?;
    }
    loop {
        let mut sample = session.sample().await?;
        sample.at = start.elapsed();
        if let Some(agent) = agent {
            // An agent that does not answer is not the server's unrest.
            sample.node_dirty = agent.usage().await.ok().and_then(|u| u.dirty_bytes);
        }
        samples.push(sample);
        let unmet = unmet(&samples);
        let enough = look_only && samples.len() >= SAMPLES;
        if unmet.is_empty() || enough || (!look_only && start.elapsed() >= limit) {
            return Ok(SettleEvidence {
                met: unmet.is_empty(),
                waited_millis: elapsed(),
                unmet,
            });
        }
        sleep(interval).await;
    }
}

#[cfg(test)]
mod tests;
