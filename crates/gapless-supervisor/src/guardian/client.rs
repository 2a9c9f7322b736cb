//! [`Client`]: the supervisor's end of its connection to the guardian.

use super::detached::{self, PAUSE, Starter};
use super::protocol::{Ask, ChildReport, Told, VERSION};
use crate::error::SupervisorError;
use crate::packets::Packets;
use crate::role::RoleCommand;
use crate::state_directory::{Socket, StateDirectory};
use gapless_agent::fault::crash_point;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Between two attempts at one that refuses.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

/// The supervisor's end of its connection to the guardian. Nothing here waits unless it says so. When anything fails, the
/// connection is over: the guardian is dead, or busy with another supervisor.
#[derive(Debug)]
pub struct Client {
    directory: PathBuf,
    packets: Packets,
    guardian_process_id: u32,
    notify: Option<OwnedFd>,
    /// What came while something else was waited for.
    early: VecDeque<Told>,
}

impl Client {
    /// Connects to the guardian; `None` if there is none.
    ///
    /// # Errors
    /// There is one that does not answer within this time, or refuses.
    pub fn connect(directory: &StateDirectory, within: Duration) -> Result<Option<Self>, SupervisorError> {
        Self::connect_until(directory, Instant::now() + within)
    }

    /// Connects to the guardian, and starts one if there is none.
    ///
    /// # Errors
    /// None can be started, or does not answer, within this time.
    pub fn connect_or_start(
        directory: &StateDirectory,
        roles: &RoleCommand,
        within: Duration,
    ) -> Result<Self, SupervisorError> {
        let deadline = Instant::now() + within;
        let mut starter = Starter::new();
        loop {
            // Whatever one says that dies meanwhile: there may be another one next time.
            let failure = match Self::connect_until(directory, deadline) {
                Ok(Some(client)) => return Ok(client),
                Ok(None) => None,
                Err(error) => Some(error),
            };
            if Instant::now() >= deadline {
                return Err(failure.unwrap_or_else(|| detached::late(directory, within)));
            }
            // One that runs and does not listen yet, or no more, is waited for.
            starter.look(directory, roles, deadline)?;
            std::thread::sleep(if failure.is_some() { PAUSE_AFTER_FAILURE } else { PAUSE });
        }
    }

    fn connect_until(directory: &StateDirectory, deadline: Instant) -> Result<Option<Self>, SupervisorError> {
        let failed =
            || SupervisorError::system(format!("connecting to {}", directory.socket(Socket::Guardian).display()));
        let address = directory.socket_address(Socket::Guardian.file()).map_err(failed())?;
        let Some(packets) = Packets::connect(&address, deadline).map_err(failed())? else { return Ok(None) };
        let path = directory.path().to_owned();
        let packets = packets.with_descriptors();
        let mut this = Self { directory: path, packets, guardian_process_id: 0, notify: None, early: VecDeque::new() };
        this.ask(&Ask::Hello { version: VERSION })?;
        match this.wait_until(deadline)? {
            Some(Told::Welcome { process_id, .. }) => {
                this.guardian_process_id = process_id;
                this.notify = this.packets.take_descriptor();
            }
            Some(other) => return Err(this.error(format!("it does not welcome, but says {other:?}"))),
            None => return Err(this.error("it does not answer in time")),
        }
        crash_point("supervisor_connected");
        Ok(Some(this))
    }

    /// The guardian's process.
    #[must_use]
    pub const fn guardian_process_id(&self) -> u32 {
        self.guardian_process_id
    }

    /// The socket on which copies say how far they have come, which the guardian keeps: once.
    pub const fn take_notify_socket(&mut self) -> Option<OwnedFd> {
        self.notify.take()
    }

    /// Asks for something. The answer comes by [`try_next`](Self::try_next).
    ///
    /// # Errors
    /// The connection is over.
    pub fn ask(&mut self, ask: &Ask) -> Result<(), SupervisorError> {
        self.packets.send(ask).map_err(|reason| self.error(reason))
    }

    /// What the guardian has told, if anything; sends what waits, too.
    ///
    /// # Errors
    /// The connection is over.
    pub fn try_next(&mut self) -> Result<Option<Told>, SupervisorError> {
        if let Some(told) = self.early.pop_front() {
            return Ok(Some(told));
        }
        let next = self.packets.next();
        self.heard(next)
    }

    fn heard(&self, next: Result<Option<Told>, String>) -> Result<Option<Told>, SupervisorError> {
        match next {
            Ok(Some(Told::Refused { reason })) => Err(self.error(format!("it refuses: {reason}"))),
            next => next.map_err(|reason| self.error(reason)),
        }
    }

    /// Waits for what it tells next; `None` if nothing comes within this time.
    ///
    /// # Errors
    /// The connection is over.
    pub fn wait(&mut self, within: Duration) -> Result<Option<Told>, SupervisorError> {
        match self.early.pop_front() {
            Some(told) => Ok(Some(told)),
            None => self.wait_until(Instant::now() + within),
        }
    }

    fn wait_until(&mut self, deadline: Instant) -> Result<Option<Told>, SupervisorError> {
        loop {
            let next = self.packets.next_until(deadline);
            let told = self.heard(next)?;
            // Ended by a signal, it looks again.
            if told.is_some() || Instant::now() >= deadline {
                return Ok(told);
            }
        }
    }

    /// All children of the guardian, and how those have ended that were not forgotten. Waits for the answer; what else comes
    /// meanwhile, comes by [`try_next`](Self::try_next) later.
    ///
    /// # Errors
    /// The connection is over, or there is no answer within this time: then it is over, too.
    pub fn list(&mut self, within: Duration) -> Result<Vec<ChildReport>, SupervisorError> {
        let deadline = Instant::now() + within;
        self.ask(&Ask::List)?;
        let mut all = Vec::new();
        loop {
            match self.wait_until(deadline)? {
                Some(Told::Children { children, more }) => {
                    all.extend(children);
                    if !more {
                        return Ok(all);
                    }
                }
                Some(other) => self.early.push_back(other),
                None => return Err(self.error("it does not list its children in time")),
            }
        }
    }

    /// Whether something waits until the guardian has read: then it is to be polled for writing, too.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        self.packets.has_queued()
    }

    /// Whether [`try_next`](Self::try_next) has something that no poll tells of.
    #[must_use]
    pub fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    fn error(&self, reason: impl Into<String>) -> SupervisorError {
        SupervisorError::Guardian { directory: self.directory.clone(), reason: reason.into() }
    }
}

impl AsFd for Client {
    /// To be polled for reading.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }
}
