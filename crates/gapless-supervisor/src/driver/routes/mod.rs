//! [`Routes`]: routes that instances serve in the domain, with pings and drains. Runs on a thread of its own, which may
//! block; the thread of the supervisor never does.
//!
//! | module | what lives there |
//! |---|---|
//! | `watcher` | the thread |
//! | `drains` | instances that are being drained |
//! | `offered` | served routes, by instance |
//! | `pings` | liveness of one instance, as a state machine without clock or processes |
//! | `protocol` | messages between the two threads |

mod drains;
mod offered;
mod pings;
mod protocol;
mod watcher;

pub use protocol::{Report, Wish, Wishes};

use crate::error::SupervisorError;
use gapless_agent::wake_fd;
use protocol::Order;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use watcher::Watcher;

/// Handle of the thread that watches a domain. Dropping it ends the thread, which leaves the domain.
pub struct Routes {
    domain: PathBuf,
    orders: Sender<Order>,
    reports: Receiver<Report>,
    /// Readable when there are reports.
    bell: Arc<OwnedFd>,
    wishes: Wishes,
    /// Reason for which the domain cannot be watched.
    pub problem: Option<String>,
}

impl Routes {
    /// Starts the thread for the domain in this directory.
    pub fn begin(domain: &Path) -> Result<Self, SupervisorError> {
        let bell = wake_fd::create().map_err(SupervisorError::system("making an eventfd"))?;
        let bell = Arc::new(bell);
        let (orders, heard) = channel();
        let (told, reports) = channel();
        let watcher = Watcher::new(domain.to_owned(), orders.clone(), told, Arc::clone(&bell));
        let thread = std::thread::Builder::new().name("gapless-routes".to_owned());
        thread.spawn(move || watcher.run(&heard)).map_err(SupervisorError::io("starting the thread of the routes"))?;
        Ok(Self { domain: domain.to_owned(), orders, reports, bell, wishes: Wishes::new(), problem: None })
    }

    pub fn domain(&self) -> &Path {
        &self.domain
    }

    /// Sets the instances to watch.
    pub fn wish(&mut self, wishes: Wishes) {
        if wishes != self.wishes {
            self.wishes = wishes;
            // A dead thread is noticed at the next report.
            let _ = self.orders.send(Order::Watch(self.wishes.clone()));
        }
    }

    /// Next report, if there is one.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn next(&self) -> Result<Option<Report>, String> {
        match self.reports.try_recv() {
            Ok(report) => Ok(Some(report)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err("the thread of the routes has ended".to_owned()),
        }
    }

    /// Clears the wake-up. Call it before taking reports: later reports wake up again.
    pub fn silence(&self) {
        // Non-blocking; the result does not matter, since all reports are taken.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        // The thread may have ended.
        let _ = self.orders.send(Order::End);
    }
}

impl AsFd for Routes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
