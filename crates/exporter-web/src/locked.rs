//! Access to what a mutex guards.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The content of a mutex; no thread leaves it half changed when it panics.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
