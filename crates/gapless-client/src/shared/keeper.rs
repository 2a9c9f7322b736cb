//! The keeper of a [`Channel`]: a thread that sends heartbeats to another machine while no one calls, and reconnects. It
//! ends when there is a helper, and leaves the role of the watcher to threads in blocking calls.

use super::channel::Channel;
use gapless_agent::foreign;
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// Heartbeats are due every second or later.
const PAUSE: Duration = Duration::from_millis(100);

impl Channel {
    pub fn run_keeper(&self) {
        foreign::own_this_thread();
        while !self.is_kept_by_others() {
            let watch = match self.watch.try_lock() {
                Ok(watch) => Some(watch),
                Err(TryLockError::Poisoned(poisoned)) => Some(PoisonError::into_inner(poisoned)),
                // The watcher sends them.
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(mut watch) = watch {
                self.watch_once(&mut watch);
                drop(watch);
                self.blocked.call_next();
            }
            std::thread::park_timeout(PAUSE);
        }
    }
}
