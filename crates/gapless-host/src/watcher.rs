//! [`Watcher`]: a thread that starts a member again after it has fetched another member's state. That start waits for an
//! address that another program has, since no one would repeat it. Other failures, and those of a first start, are left
//! to the caller ([`Running::wait`](crate::Running::wait)) and its supervisor.

use crate::HostError;
use crate::life::Life;
use crate::started::Started;
use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait of a next start for its addresses.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(30);
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(500);

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
        let next = next_start(life, &mut start_again);
        if let Err(error) = &next
            && !matches!(error, HostError::Stopped)
        {
            tracing::error!(%error, "the member does not start again");
        }
        life.end_start(next);
    }
}

/// Starts, and tries again while another program has an address, for at most [`ADDRESS_TIMEOUT`].
/// [`HostError::Stopped`] if a stop ends that wait.
fn next_start(life: &Life, start_again: &mut StartAgain) -> Result<Started, HostError> {
    let begun = Instant::now();
    loop {
        // A panic would leave the host starting for ever.
        let next = catch_unwind(AssertUnwindSafe(&mut *start_again)).unwrap_or(Err(HostError::Panicked));
        let Err(error) = &next else { return next };
        if !waits_for_address(error) || begun.elapsed() >= ADDRESS_TIMEOUT {
            return next;
        }
        tracing::warn!(%error, "the member cannot start again yet, and tries once more");
        let waiting = Instant::now();
        while waiting.elapsed() < ATTEMPT_INTERVAL {
            if life.is_stop_asked_soon() {
                return Err(HostError::Stopped);
            }
        }
    }
}

fn waits_for_address(error: &HostError) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(kind, Some(io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)) {
            return true;
        }
        source = error.source();
    }
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::Phase;
    use gapless_cluster::ClusterError;
    use gapless_engine::state::{StateHandlers, StateService};
    use gapless_engine::store::Store;
    use gapless_engine::{EngineError, ServiceHost, ServiceHostOptions};

    struct Nothing;

    impl StateService for Nothing {
        fn handlers(_: &mut StateHandlers<Self>) {}
    }

    fn started() -> Started {
        let host = ServiceHost::start_state(|_: &mut Store| Nothing, ServiceHostOptions::in_memory()).unwrap();
        Started::Service(Box::new(host))
    }

    fn failed(kind: io::ErrorKind) -> HostError {
        EngineError::from(ClusterError::System { action: "a test".to_owned(), source: kind.into() }).into()
    }

    /// Attempts, each of which fails with the next error; then it starts.
    fn attempts(life: &Life, errors: Vec<HostError>) -> (usize, Result<Started, HostError>) {
        let (count, mut errors) = (errors.len(), errors.into_iter());
        let (made, attempts) = std::sync::mpsc::channel();
        let mut start_again: StartAgain = Box::new(move || {
            made.send(()).unwrap();
            errors.next().map_or_else(|| Ok(started()), Err)
        });
        let next = next_start(life, &mut start_again);
        let attempts = attempts.try_iter().count();
        assert!(attempts <= count + 1);
        (attempts, next)
    }

    #[test]
    fn stop_of_waiting_start_is_clean() {
        let life = Life::new(started(), true);
        let released = life.status().released;
        assert!(life.begin_start());
        life.ask_stop();
        life.end_start(attempts(&life, vec![failed(io::ErrorKind::AddrInUse)]).1);
        assert_eq!(life.stop().unwrap(), released);
        assert_eq!(life.status().phase, Phase::Stopped);
    }

    #[test]
    fn next_start_waits_for_its_address() {
        let life = Life::new(started(), true);
        let (count, next) = attempts(&life, vec![failed(io::ErrorKind::AddrInUse)]);
        assert_eq!((count, next.is_ok()), (2, true));
        let (count, next) = attempts(&life, vec![failed(io::ErrorKind::PermissionDenied)]);
        assert_eq!((count, next.is_err()), (1, true), "no wait changes that");
        life.ask_stop();
        let (count, next) = attempts(&life, vec![failed(io::ErrorKind::AddrInUse)]);
        assert!(count == 1 && matches!(next, Err(HostError::Stopped)), "a stop ends the wait");
        life.end();
    }
}
