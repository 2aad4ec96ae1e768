//! Watches runs and pods of one namespace through kubectl and stamps each event with its arrival. Whoever measures with
//! it pays two watches on the API server and a few milliseconds of delay, the same for every event.

use std::io::BufReader;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use super::timeline::{Event, Millis, Timeline};
use crate::cluster::Cluster;
use crate::error::{Error, Result, at};

/// A timeline that fills itself until it is taken.
#[derive(Debug)]
pub struct Watching {
    timeline: Arc<Mutex<Timeline>>,
    watches: Vec<(Child, JoinHandle<()>)>,
}

impl Watching {
    /// Starts to watch.
    pub fn start(cluster: &Cluster, namespace: &str) -> Result<Self> {
        let mut watching = Self {
            timeline: Arc::default(),
            watches: Vec::new(),
        };
        for kind in ["benchmarkruns", "pods"] {
            let mut kubectl = cluster.kubectl();
            kubectl.args([
                "get",
                kind,
                "--namespace",
                namespace,
                "--watch",
                "--output-watch-events",
                "--output=json",
            ]);
            kubectl
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let mut child = kubectl.spawn().map_err(at("kubectl"))?;
            let output = child
                .stdout
                .take()
                .ok_or_else(|| Error::Plain("kubectl has no output".into()))?;
            let timeline = Arc::clone(&watching.timeline);
            let reader = thread::spawn(move || {
                let events =
                    serde_json::Deserializer::from_reader(BufReader::new(output)).into_iter::<Event>();
                for event in events {
                    let Ok(event) = event else { break };
                    lock(&timeline).apply(now(), &event);
                }
            });
            watching.watches.push((child, reader));
        }
        Ok(watching)
    }

    /// A look at what was seen so far.
    pub fn look<T>(&self, look: impl FnOnce(&Timeline) -> T) -> T {
        look(&lock(&self.timeline))
    }

    /// Ends the watches; what was seen.
    pub fn stop(mut self) -> Timeline {
        self.end();
        std::mem::take(&mut *lock(&self.timeline))
    }

    fn end(&mut self) {
        for (mut child, reader) in self.watches.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
            let _ = reader.join();
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(timeline: &Mutex<Timeline>) -> MutexGuard<'_, Timeline> {
    timeline.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Now, milliseconds since 1970.
pub fn now() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
