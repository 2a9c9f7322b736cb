//! [`RouteObserver`]: pings and drains on a thread of its own, which may block; the supervisor's thread never does.

mod drains;
mod pings;
mod protocol;
mod route_offers;
mod watcher;

pub use protocol::{WatchRequest, WatchRequests, WatcherReport};

use crate::error::SupervisorError;
use gapless_agent::wake_fd;
use protocol::WatcherCommand;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use watcher::Watcher;

/// Handle of the thread that watches a domain; dropping it ends the thread.
pub struct RouteObserver {
    domain: PathBuf,
    commands: Sender<WatcherCommand>,
    reports: Receiver<WatcherReport>,
    waker: Arc<OwnedFd>,
    requests: WatchRequests,
    /// Reason for which the domain cannot be watched.
    pub problem: Option<String>,
}

impl RouteObserver {
    /// Starts the thread for the domain in this directory.
    pub fn begin(domain: &Path) -> Result<Self, SupervisorError> {
        let waker = wake_fd::create().map_err(SupervisorError::system("making an eventfd"))?;
        let waker = Arc::new(waker);
        let (commands, heard) = channel();
        let (told, reports) = channel();
        let watcher = Watcher::new(domain.to_owned(), commands.clone(), told, Arc::clone(&waker));
        let thread = std::thread::Builder::new().name("gapless-routes".to_owned());
        thread.spawn(move || watcher.run(&heard)).map_err(SupervisorError::io("starting the thread of the routes"))?;
        Ok(Self { domain: domain.to_owned(), commands, reports, waker, requests: WatchRequests::new(), problem: None })
    }

    pub fn domain(&self) -> &Path {
        &self.domain
    }

    /// Sets the instances to watch.
    pub fn set_requests(&mut self, requests: WatchRequests) {
        if requests != self.requests {
            self.requests = requests;
            // A dead thread is noticed at the next report.
            let _ = self.commands.send(WatcherCommand::Watch(self.requests.clone()));
        }
    }

    /// Next report, if there is one.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn next(&self) -> Result<Option<WatcherReport>, String> {
        match self.reports.try_recv() {
            Ok(report) => Ok(Some(report)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err("the thread of the routes has ended".to_owned()),
        }
    }

    /// Clears the wake-up; call it before taking reports, since later ones wake up again.
    pub fn silence(&self) {
        // Non-blocking; the result does not matter, since all reports are taken.
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
    }
}

impl Drop for RouteObserver {
    fn drop(&mut self) {
        // The thread may have ended.
        let _ = self.commands.send(WatcherCommand::End);
    }
}

impl AsFd for RouteObserver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
