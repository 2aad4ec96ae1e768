//! Time as the controllers see it: wall-clock time carried by tokio's clock, so that a test that pauses tokio's clock
//! pauses theirs.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

/// A clock that started at a known time.
#[derive(Clone, Debug)]
pub struct Clock {
    base: Timestamp,
    started: Instant,
}

impl Clock {
    /// A clock that shows `base` now.
    pub fn starting_at(base: Timestamp) -> Self {
        Self {
            base,
            started: Instant::now(),
        }
    }

    /// A clock that shows the wall-clock time.
    pub fn wall() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.base.checked_add(self.started.elapsed()).unwrap_or(self.base)
    }

    /// The time now, as Kubernetes objects hold it (whole seconds).
    pub fn now_meta(&self) -> Time {
        Time(self.now())
    }
}
