//! [`ForegroundSignals`]: what a command in the foreground is asked to do by signals, and the orphans that process 1 is given.

use crate::error::SupervisorError;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::process::{WaitOptions, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The status of a command that was asked to end twice.
const INTERRUPTED: i32 = 130;

/// What a command in the foreground was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// SIGTERM or SIGINT: everything is to end.
    End,
    /// SIGHUP: the file is to be read anew.
    Reload,
}

/// What a command in the foreground is asked to do. Its descriptor is readable when there may be something.
#[derive(Debug)]
pub struct ForegroundSignals {
    woken: UnixStream,
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    is_first_process: bool,
}

impl ForegroundSignals {
    /// Hears of SIGTERM, SIGINT and SIGHUP from now on; as process 1 also of ends of children. A second SIGTERM or SIGINT ends this
    /// process at once, with status 130; what the first has begun goes on without it.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn install() -> Result<Self, SupervisorError> {
        let failed = || SupervisorError::io("taking over signals");
        let (woken, waker) = UnixStream::pair().map_err(failed())?;
        woken.set_nonblocking(true).map_err(failed())?;
        let is_first_process = std::process::id() == 1;
        let this = Self { woken, end: Arc::default(), reload: Arc::default(), is_first_process };
        // Not the flag that is taken: the first one is remembered.
        let has_come = Arc::<AtomicBool>::default();
        for signal in [SIGTERM, SIGINT] {
            // In this order: the first one finds it unset.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&has_come)).map_err(failed())?;
            flag::register(signal, Arc::clone(&has_come)).map_err(failed())?;
            flag::register(signal, Arc::clone(&this.end)).map_err(failed())?;
        }
        flag::register(SIGHUP, Arc::clone(&this.reload)).map_err(failed())?;
        let children = is_first_process.then_some(SIGCHLD);
        // Behind the flags, which are to be seen by whoever is woken.
        for signal in [SIGTERM, SIGINT, SIGHUP].into_iter().chain(children) {
            low_level::pipe::register(signal, waker.try_clone().map_err(failed())?).map_err(failed())?;
        }
        Ok(this)
    }

    /// What was asked since the last time, the end first.
    pub fn take(&mut self) -> Option<Asked> {
        while self.woken.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        if self.end.load(Ordering::SeqCst) {
            return Some(Asked::End);
        }
        self.reload.swap(false, Ordering::SeqCst).then_some(Asked::Reload)
    }

    /// Takes note of the ends of orphans, which nobody else does for those that process 1 is given. Elsewhere it does nothing. No
    /// other thread may wait for a child of its own meanwhile.
    pub fn reap_orphans(&self) {
        while self.is_first_process && matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
    }
}

impl AsFd for ForegroundSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}
