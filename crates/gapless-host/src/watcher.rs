//! [`Watcher`]: a thread that starts a member again after it has fetched another member's state. Other failures are left
//! to [`Running::wait`](crate::Running::wait).

use crate::HostError;
use crate::life::Life;
use crate::started::Started;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

pub(crate) type StartAgain = Box<dyn FnMut() -> Result<Started, HostError> + Send>;

pub(crate) struct Watcher(Option<JoinHandle<()>>);

impl Watcher {
    pub fn start(life: Arc<Life>, start_again: StartAgain) -> Result<Self, HostError> {
        let thread = std::thread::Builder::new().name("gapless-host".to_owned());
        let thread = thread.spawn(move || watch(&life, start_again)).map_err(HostError::Thread)?;
        Ok(Self(Some(thread)))
    }

    /// Returns once the thread has ended; a stop must have been asked for.
    pub fn join(&mut self) {
        if let Some(thread) = self.0.take() {
            // Panics of the application are caught there.
            let _ = thread.join();
        }
    }
}

fn watch(life: &Life, mut start_again: StartAgain) {
    while !life.is_stop_asked_soon() {
        match life.with(Started::must_start_again) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => return,
        }
        tracing::info!("the member has fetched the state of another member, and starts again");
        if !life.begin_start() {
            return;
        }
        // A panic would leave the host starting for ever.
        let next = catch_unwind(AssertUnwindSafe(&mut start_again)).unwrap_or(Err(HostError::Panicked));
        if let Err(error) = &next {
            tracing::error!(%error, "the member does not start again");
        }
        life.end_start(next);
    }
}
