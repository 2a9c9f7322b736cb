//! [`Signals`]: what the guardian hears of. A child's end and SIGTERM make a descriptor readable; handlers also undo that
//! SIGCHLD was ignored when it was started, which would lose how its children end.

use crate::error::SupervisorError;
use nix::sys::signal::SigSet;
use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the guardian hears of.
#[derive(Debug)]
pub struct Signals {
    woken: UnixStream,
    terminate: Arc<AtomicBool>,
}

impl Signals {
    /// Hears of SIGCHLD and SIGTERM from now on, and is not disturbed by SIGHUP and SIGINT; process 1, of a container at a
    /// terminal, takes SIGINT for SIGTERM. Blocks none.
    pub fn install() -> Result<Self, SupervisorError> {
        let failed = || SupervisorError::io("taking over signals");
        let (woken, waker) = UnixStream::pair().map_err(failed())?;
        woken.set_nonblocking(true).map_err(failed())?;
        let this = Self { woken, terminate: Arc::new(AtomicBool::new(false)) };
        let ignored = Arc::new(AtomicBool::new(false));
        for signal in [SIGCHLD, SIGHUP, SIGINT, SIGTERM] {
            let is_asked = signal == SIGTERM || (signal == SIGINT && std::process::id() == 1);
            let flag = if is_asked { &this.terminate } else { &ignored };
            // The flag first: it is to be seen by whoever is woken.
            signal_hook::flag::register(signal, Arc::clone(flag)).map_err(failed())?;
            if is_asked || signal == SIGCHLD {
                let waker = waker.try_clone().map_err(failed())?;
                signal_hook::low_level::pipe::register(signal, waker).map_err(failed())?;
            }
        }
        let unblocked = SigSet::empty().thread_set_mask();
        unblocked.map_err(|errno| failed()(errno.into()))?;
        Ok(this)
    }

    /// Sees what has come: whether it was asked to end since the last time.
    pub fn take(&mut self) -> bool {
        while self.woken.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        self.terminate.swap(false, Ordering::SeqCst)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}
