//! [`Routes`]: what copies serve in the domain, and whether they answer. A thread of its own looks, asks and waits; the supervisor's never
//! does.
//!
//! | module | what lives there |
//! |---|---|
//! | `watcher` | the thread |
//! | `drains` | which copies have been told to finish, and which have |
//! | `offered` | what is served, by processes and those that they belong to |
//! | `pings` | whether one copy answers; without clocks and processes |
//! | `protocol` | what the supervisor's thread and that one say to each other |

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

/// What copies serve in a domain. Dropping it ends the thread, which leaves the domain.
pub struct Routes {
    domain: PathBuf,
    orders: Sender<Order>,
    reports: Receiver<Report>,
    /// Readable when there are reports.
    bell: Arc<OwnedFd>,
    wishes: Wishes,
    /// Why the domain cannot be looked at, if it cannot.
    pub problem: Option<String>,
}

impl Routes {
    /// Begins to look at the domain of this directory.
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

    /// The directory of its domain.
    pub fn domain(&self) -> &Path {
        &self.domain
    }

    /// What is to be found out from now on.
    pub fn wish(&mut self, wishes: Wishes) {
        if wishes != self.wishes {
            self.wishes = wishes;
            // Whether the thread is there is seen at the next report.
            let _ = self.orders.send(Order::Watch(self.wishes.clone()));
        }
    }

    /// The next report, if there is one.
    ///
    /// # Errors
    /// The thread is dead.
    pub fn next(&self) -> Result<Option<Report>, String> {
        match self.reports.try_recv() {
            Ok(report) => Ok(Some(report)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err("the thread of the routes has ended".to_owned()),
        }
    }

    /// Before the reports are taken: those that come later wake anew.
    pub fn silence(&self) {
        // It does not block; whatever it says, all is looked at.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.orders.send(Order::End);
    }
}

impl AsFd for Routes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
