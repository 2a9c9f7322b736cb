//! `ForegroundSignals`: requests to a command in the foreground by signals, and reaping of orphans as process 1.

use crate::error::SupervisorError;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::process::{WaitOptions, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const INTERRUPTED: i32 = 130;

/// Request to a command in the foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGTERM or SIGINT: shut down.
    End,
    /// SIGHUP: reload the configuration.
    Reload,
}

/// Signal handlers of a command in the foreground, with a descriptor that is readable when there may be a request.
#[derive(Debug)]
pub struct ForegroundSignals {
    woken: UnixStream,
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    is_first_process: bool,
}

impl ForegroundSignals {
    /// Installs handlers for SIGTERM, SIGINT and SIGHUP, and as process 1 for SIGCHLD. A second SIGTERM or SIGINT ends
    /// this process at once, with status 130; the shutdown continues without it.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn install() -> Result<Self, SupervisorError> {
        let failed = || SupervisorError::io("taking over signals");
        let (woken, waker) = UnixStream::pair().map_err(failed())?;
        woken.set_nonblocking(true).map_err(failed())?;
        let is_first_process = std::process::id() == 1;
        let this = Self { woken, end: Arc::default(), reload: Arc::default(), is_first_process };
        // A flag of its own, which is never cleared: it remembers the first signal.
        let was_signalled = Arc::<AtomicBool>::default();
        for signal in [SIGTERM, SIGINT] {
            // The first signal finds the flag unset.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&was_signalled)).map_err(failed())?;
            flag::register(signal, Arc::clone(&was_signalled)).map_err(failed())?;
            flag::register(signal, Arc::clone(&this.end)).map_err(failed())?;
        }
        flag::register(SIGHUP, Arc::clone(&this.reload)).map_err(failed())?;
        let children = is_first_process.then_some(SIGCHLD);
        // Registered after the flags, so that they are set before the wake-up.
        for signal in [SIGTERM, SIGINT, SIGHUP].into_iter().chain(children) {
            low_level::pipe::register(signal, waker.try_clone().map_err(failed())?).map_err(failed())?;
        }
        Ok(this)
    }

    /// Next request; the shutdown takes precedence and stays.
    pub fn take(&mut self) -> Option<SignalRequest> {
        while self.woken.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        if self.end.load(Ordering::SeqCst) {
            return Some(SignalRequest::End);
        }
        self.reload.swap(false, Ordering::SeqCst).then_some(SignalRequest::Reload)
    }

    /// Reaps orphans as process 1, else does nothing. No other thread may wait for a child meanwhile.
    pub fn reap_orphans(&self) {
        while self.is_first_process && matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
    }
}

impl AsFd for ForegroundSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}
