//! Locks of what the controllers remember.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; what a holder that panicked left is used: every entry is whole by itself.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
