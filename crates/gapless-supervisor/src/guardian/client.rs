//! `GuardianClient`: connection of the supervisor to the guardian.

use super::detached::{self, PAUSE, Starter};
use super::protocol::{ChildReport, GuardianMessage, GuardianRequest, VERSION};
use crate::error::SupervisorError;
use crate::packets::Packets;
use crate::role::RoleCommand;
use crate::state_directory::{StateDirectory, StateSocket};
use gapless_agent::fault::crash_point;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

/// Connection of the supervisor to the guardian, non-blocking unless stated otherwise. Any error closes it: the
/// guardian is dead, or serves another supervisor.
#[derive(Debug)]
pub struct GuardianClient {
    directory: PathBuf,
    packets: Packets,
    guardian_process_id: u32,
    notify: Option<OwnedFd>,
    early: VecDeque<GuardianMessage>,
}

impl GuardianClient {
    /// Connects to the guardian; `None` if none runs.
    ///
    /// # Errors
    /// The guardian does not answer in time, or refuses.
    pub fn connect(directory: &StateDirectory, within: Duration) -> Result<Option<Self>, SupervisorError> {
        Self::connect_until(directory, Instant::now() + within)
    }

    /// Connects to the guardian, and starts one if none runs.
    ///
    /// # Errors
    /// No guardian can be started, or none answers in time.
    pub fn connect_or_start(
        directory: &StateDirectory,
        roles: &RoleCommand,
        within: Duration,
    ) -> Result<Self, SupervisorError> {
        let deadline = Instant::now() + within;
        let mut starter = Starter::new();
        loop {
            // Errors are retried: the next attempt may meet another guardian.
            let failure = match Self::connect_until(directory, deadline) {
                Ok(Some(client)) => return Ok(client),
                Ok(None) => None,
                Err(error) => Some(error),
            };
            if Instant::now() >= deadline {
                return Err(failure.unwrap_or_else(|| detached::late(directory, within)));
            }
            starter.start_if_due(directory, roles, deadline)?;
            std::thread::sleep(if failure.is_some() { PAUSE_AFTER_FAILURE } else { PAUSE });
        }
    }

    fn connect_until(directory: &StateDirectory, deadline: Instant) -> Result<Option<Self>, SupervisorError> {
        let failed =
            || SupervisorError::system(format!("connecting to {}", directory.socket(StateSocket::Guardian).display()));
        let address = directory.socket_address(StateSocket::Guardian.file()).map_err(failed())?;
        let Some(packets) = Packets::connect(&address, deadline).map_err(failed())? else { return Ok(None) };
        let path = directory.path().to_owned();
        let packets = packets.with_descriptors();
        let mut this = Self { directory: path, packets, guardian_process_id: 0, notify: None, early: VecDeque::new() };
        this.ask(&GuardianRequest::Hello { version: VERSION })?;
        match this.wait_until(deadline)? {
            Some(GuardianMessage::Welcome { process_id, .. }) => {
                this.guardian_process_id = process_id;
                this.notify = this.packets.take_descriptor();
            }
            Some(other) => return Err(this.error(format!("it does not welcome, but says {other:?}"))),
            None => return Err(this.error("it does not answer in time")),
        }
        crash_point("supervisor_connected");
        Ok(Some(this))
    }

    #[must_use]
    pub const fn guardian_process_id(&self) -> u32 {
        self.guardian_process_id
    }

    /// Takes the notification socket from the guardian; `None` after the first call.
    pub const fn take_notify_socket(&mut self) -> Option<OwnedFd> {
        self.notify.take()
    }

    /// Sends a request, answered by [`try_next`](Self::try_next).
    pub fn ask(&mut self, ask: &GuardianRequest) -> Result<(), SupervisorError> {
        self.packets.send(ask).map_err(|reason| self.error(reason))
    }

    /// Next message of the guardian, if any; also flushes queued requests.
    pub fn try_next(&mut self) -> Result<Option<GuardianMessage>, SupervisorError> {
        if let Some(message) = self.early.pop_front() {
            return Ok(Some(message));
        }
        let next = self.packets.next();
        self.checked(next)
    }

    fn checked(
        &self,
        next: Result<Option<GuardianMessage>, String>,
    ) -> Result<Option<GuardianMessage>, SupervisorError> {
        match next {
            Ok(Some(GuardianMessage::Refused { reason })) => Err(self.error(format!("it refuses: {reason}"))),
            next => next.map_err(|reason| self.error(reason)),
        }
    }

    /// Waits for the next message; `None` after a timeout.
    pub fn wait(&mut self, within: Duration) -> Result<Option<GuardianMessage>, SupervisorError> {
        match self.early.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.wait_until(Instant::now() + within),
        }
    }

    fn wait_until(&mut self, deadline: Instant) -> Result<Option<GuardianMessage>, SupervisorError> {
        loop {
            let next = self.packets.next_until(deadline);
            let message = self.checked(next)?;
            if message.is_some() || Instant::now() >= deadline {
                return Ok(message);
            }
        }
    }

    /// Requests all children, with ends that were not forgotten, and waits for the answer; other messages stay queued
    /// for [`try_next`](Self::try_next).
    ///
    /// # Errors
    /// The connection is closed, also by a timeout.
    pub fn list(&mut self, within: Duration) -> Result<Vec<ChildReport>, SupervisorError> {
        let deadline = Instant::now() + within;
        self.ask(&GuardianRequest::List)?;
        let mut all = Vec::new();
        loop {
            match self.wait_until(deadline)? {
                Some(GuardianMessage::Children { children, more }) => {
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

    /// Whether requests are queued: poll the connection for writing.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        self.packets.has_queued()
    }

    /// Whether [`try_next`](Self::try_next) has a queued message, which `poll` does not report.
    #[must_use]
    pub fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    fn error(&self, reason: impl Into<String>) -> SupervisorError {
        SupervisorError::Guardian { directory: self.directory.clone(), reason: reason.into() }
    }
}

impl AsFd for GuardianClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }
}
