//! Follows a campaign until it ends: one line that renews itself on a terminal, few lines in a log.
//! It watches instead of asking again and again, because every request costs the machine that is being measured.

use std::io::{BufReader, IsTerminal, Write, stderr};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::progress::elapsed;
use crate::view::Campaign;

/// Between two lines of a log, unless the state changes.
const SPARSE: Duration = Duration::from_secs(30);

/// Follows the campaign; returns it as it ended.
pub fn follow(cluster: &Cluster, namespace: &str, name: &str, request: Option<&str>) -> Result<Campaign> {
    let mut screen = Screen::new();
    loop {
        let (sender, receiver) = mpsc::channel();
        let mut watch = Watch(spawn(cluster, namespace, name)?);
        let output = watch
            .0
            .stdout
            .take()
            .ok_or_else(|| Error::Plain("kubectl has no output".into()))?;
        thread::spawn(move || {
            for campaign in
                serde_json::Deserializer::from_reader(BufReader::new(output)).into_iter::<Campaign>()
            {
                let Ok(campaign) = campaign else { break };
                if sender.send(campaign).is_err() {
                    break;
                }
            }
        });
        // A watch ends by itself from time to time; then the outer loop begins another one.
        loop {
            match receiver.recv_timeout(Duration::from_secs(1)) {
                Ok(campaign) => {
                    if campaign.finished(request) {
                        screen.end();
                        return Ok(campaign);
                    }
                    screen.show(&campaign);
                }
                Err(RecvTimeoutError::Timeout) => screen.tick(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        thread::sleep(Duration::from_secs(1));
        screen.lost_contact()?;
    }
}

/// Ends with the loop that reads from it.
struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(cluster: &Cluster, namespace: &str, name: &str) -> Result<Child> {
    let mut kubectl = cluster.kubectl();
    kubectl.args([
        "get",
        "benchmarkcampaign",
        name,
        "--namespace",
        namespace,
        "--watch",
        "--output=json",
    ]);
    kubectl
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    kubectl.spawn().map_err(crate::error::at("kubectl"))
}

struct Screen {
    terminal: bool,
    start: Instant,
    last: Option<Campaign>,
    seen: Instant,
    printed: Option<(String, Instant)>,
}

impl Screen {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            terminal: stderr().is_terminal(),
            start: now,
            last: None,
            seen: now,
            printed: None,
        }
    }

    fn show(&mut self, campaign: &Campaign) {
        self.last = Some(campaign.clone());
        self.seen = Instant::now();
        if self.terminal {
            self.tick();
            return;
        }
        let state = campaign.status.state.clone();
        let due = self
            .printed
            .as_ref()
            .is_none_or(|(printed, when)| *printed != state || when.elapsed() > SPARSE);
        if due {
            eprintln!(
                "  {} {}",
                elapsed(self.start.elapsed()),
                line(campaign, Duration::ZERO)
            );
            self.printed = Some((state, Instant::now()));
        }
    }

    fn tick(&mut self) {
        if let (true, Some(campaign)) = (self.terminal, &self.last) {
            eprint!(
                "\r\x1b[K  {} {}",
                elapsed(self.start.elapsed()),
                line(campaign, self.seen.elapsed())
            );
            let _ = stderr().flush();
        }
    }

    fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }

    /// The watch broke: fine now and then, an error if nothing was heard for long.
    fn lost_contact(&self) -> Result<()> {
        const PATIENCE: Duration = Duration::from_secs(90);
        if self.last.is_none() && self.start.elapsed() > PATIENCE {
            return Err(Error::Plain(
                "the campaign could not be read: is the API server there? (`kubectl get bc -A`)".into(),
            ));
        }
        Ok(())
    }
}

/// What runs now, done of total, time left; `since` is how old the report is.
fn line(campaign: &Campaign, since: Duration) -> String {
    let status = &campaign.status;
    let progress = &status.progress;
    let state = if status.state.is_empty() {
        "Pending"
    } else {
        &status.state
    };
    let mut parts = vec![state.to_owned()];
    if progress.total > 0 {
        parts.push(format!("{}/{} runs", progress.done, progress.total));
    }
    if progress.invalid > 0 {
        parts.push(format!("{} invalid", progress.invalid));
    }
    parts.extend(progress.current.clone());
    if let Some(left) = progress.seconds_left {
        let left = Duration::from_secs(left.unsigned_abs()).saturating_sub(since);
        parts.push(if left < Duration::from_mins(1) {
            "under a minute left".to_owned()
        } else {
            format!("about {} min left", left.as_secs().div_ceil(60))
        });
    }
    if let Some(stalled) = campaign.holds("Stalled") {
        parts.push(format!("{}: {}", stalled.reason, stalled.message));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_runs_how_far_it_is_and_how_long_it_takes() {
        let campaign: Campaign = serde_json::from_value(serde_json::json!({
            "status": {"state": "Running", "progress": {
                "done": 12, "total": 78, "invalid": 1, "current": "block 2, audit-all, 8 threads", "secondsLeft": 400}},
        }))
        .unwrap();
        assert_eq!(
            line(&campaign, Duration::from_secs(10)),
            "Running · 12/78 runs · 1 invalid · block 2, audit-all, 8 threads · about 7 min left"
        );
        assert!(line(&campaign, Duration::from_secs(390)).ends_with("under a minute left"));
        assert_eq!(line(&Campaign::default(), Duration::ZERO), "Pending");
    }
}
