//! How long to wait after a failed reconcile: by object, growing, and short where somebody else merely was faster.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::context::Error;
use crate::lock::lock;

/// The first delay.
const FIRST: Duration = Duration::from_millis(200);
/// The longest delay.
const LONGEST: Duration = Duration::from_secs(30);
/// Delay after a conflict: the object is read again.
const CONFLICT: Duration = Duration::from_millis(20);

/// Failures in a row, by UID.
#[derive(Debug, Default)]
pub struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    /// How long to wait after this failure.
    pub fn delay(&self, uid: &str, error: &Error) -> Duration {
        let mut failures = lock(&self.0);
        let count = failures.entry(uid.to_owned()).or_insert(0);
        *count = count.saturating_add(1);
        match error {
            Error::Conflict(_) => CONFLICT * (*count).min(50),
            _ => delay_after(*count),
        }
    }

    /// Forgets the failures of an object that was reconciled.
    pub fn succeeded(&self, uid: &str) {
        lock(&self.0).remove(uid);
    }
}

fn delay_after(failures: u32) -> Duration {
    FIRST
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_limit_and_start_again() {
        let failures = Failures::default();
        let error = Error::TimedOut("x");
        let delays: Vec<_> = (0..12).map(|_| failures.delay("a", &error)).collect();
        assert_eq!(delays[0], FIRST);
        assert!(delays.windows(2).all(|w| w[0] <= w[1]));
        assert_eq!(delays[11], LONGEST);
        failures.succeeded("a");
        assert_eq!(failures.delay("a", &error), FIRST);
        assert!(failures.delay("b", &Error::Conflict("x")) < FIRST);
    }
}
