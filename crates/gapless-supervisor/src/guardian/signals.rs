//! The handlers of SIGCHLD and SIGTERM undo an inherited ignored SIGCHLD, which would lose exit statuses.

use crate::error::SupervisorError;
use nix::sys::signal::SigSet;
use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub struct GuardianSignals {
    woken: UnixStream,
    terminate: Arc<AtomicBool>,
}

impl GuardianSignals {
    /// Handles SIGCHLD and SIGTERM, ignores SIGHUP and SIGINT by handlers without effect, and unblocks all signals. In
    /// process 1, as of a container at a terminal, SIGINT acts as SIGTERM.
    pub fn install() -> Result<Self, SupervisorError> {
        let failed = || SupervisorError::io("taking over signals");
        let (woken, waker) = UnixStream::pair().map_err(failed())?;
        woken.set_nonblocking(true).map_err(failed())?;
        let this = Self { woken, terminate: Arc::new(AtomicBool::new(false)) };
        let ignored = Arc::new(AtomicBool::new(false));
        for signal in [SIGCHLD, SIGHUP, SIGINT, SIGTERM] {
            let is_request = signal == SIGTERM || (signal == SIGINT && std::process::id() == 1);
            let flag = if is_request { &this.terminate } else { &ignored };
            // The flag is registered first, so that it is set before the wake-up.
            signal_hook::flag::register(signal, Arc::clone(flag)).map_err(failed())?;
            if is_request || signal == SIGCHLD {
                let waker = waker.try_clone().map_err(failed())?;
                signal_hook::low_level::pipe::register(signal, waker).map_err(failed())?;
            }
        }
        let unblocked = SigSet::empty().thread_set_mask();
        unblocked.map_err(|errno| failed()(errno.into()))?;
        Ok(this)
    }

    /// Clears the wake-up; true if a shutdown was requested since the last call.
    pub fn take(&mut self) -> bool {
        while self.woken.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        self.terminate.swap(false, Ordering::SeqCst)
    }
}

impl AsFd for GuardianSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}
