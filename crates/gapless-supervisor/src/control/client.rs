//! `ControlClient`: connection of a command to a supervisor.

use super::protocol::{InstanceStatus, SupervisorAnswer, SupervisorRequest, SupervisorStatus, VERSION};
use crate::error::SupervisorError;
use crate::packets::{Packets, UNREADABLE_PACKET};
use crate::state_directory::{Holder, RoleLock, StateDirectory, StateSocket, files};
use crate::supervision::event::OperatorCommand;
use gapless_agent::counters::descriptor::process_namespace;
use gapless_agent::folder::Folder;
use gapless_transport::peer_process::PeerProcess;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::net::SocketAddrUnix;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Covers a restart of the supervisor.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// Advice for mismatched versions of command and supervisor.
pub const UPGRADE_ADVICE: &str =
    "use the gapless that has started it, or see \"Upgrading\" in docs/guides/supervising.md";

/// Connection of a command to a supervisor.
#[derive(Debug)]
pub struct ControlClient {
    directory: PathBuf,
    packets: Packets,
    is_understood: bool,
}

/// Status of a supervisor and its instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SupervisionStatus {
    #[serde(flatten)]
    pub supervisor: SupervisorStatus,
    /// In the order of the configuration.
    pub instances: Vec<InstanceStatus>,
}

impl SupervisionStatus {
    /// Whether the process ids belong to another PID namespace.
    #[must_use]
    pub fn is_of_other_namespace(&self) -> bool {
        self.supervisor.process_namespace.is_some_and(|namespace| namespace != process_namespace())
    }

    fn mark_other_namespace(&mut self) {
        let is_other = self.is_of_other_namespace();
        self.instances
            .iter_mut()
            .for_each(|instance| instance.process_in_other_namespace = is_other && instance.process_id.is_some());
    }
}

impl ControlClient {
    /// Connects; `None` if no supervisor listens.
    ///
    /// # Errors
    /// This user may not access the state directory or its socket.
    pub fn connect(directory: &Path) -> Result<Option<Self>, SupervisorError> {
        Self::connect_until(directory, Instant::now() + ANSWER_TIMEOUT)
    }

    pub(super) fn connect_until(directory: &Path, deadline: Instant) -> Result<Option<Self>, SupervisorError> {
        let what = format!("connecting to the supervisor of {}", directory.display());
        let failed = || SupervisorError::system(what.clone());
        // Not by path, which may exceed the length of an address.
        let folder = match Folder::open(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| SupervisorError::System { what: what.clone(), source: error })?,
        };
        let name = format!("/proc/self/fd/{}/{}", folder.as_fd().as_raw_fd(), StateSocket::Control.file());
        let address = SocketAddrUnix::new(name).map_err(failed())?;
        let connected = Packets::connect(&address, deadline).map_err(failed())?;
        Ok(connected.map(|mut packets| {
            // The next call reports a dead supervisor.
            let _ = packets.send(&SupervisorRequest::Hello { version: VERSION });
            Self { directory: directory.to_owned(), packets, is_understood: false }
        }))
    }

    /// Same as [`connect`](Self::connect), but waits for a starting supervisor.
    ///
    /// # Errors
    /// See [`connect`](Self::connect); or no supervisor listens in time.
    pub fn connect_within(directory: &Path, within: Duration) -> Result<Self, SupervisorError> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(client) = Self::connect(directory)? {
                return Ok(client);
            }
            if Instant::now() >= deadline {
                return Err(Self::not_started_in_time(directory, within));
            }
            std::thread::sleep(PAUSE);
        }
    }

    pub(super) fn not_started_in_time(directory: &Path, within: Duration) -> SupervisorError {
        let log = directory.join("guardian.log");
        let log_text = files::read(&log).ok().flatten().unwrap_or_default();
        let log_text = String::from_utf8_lossy(&log_text);
        let last = log_text.lines().next_back().map(|line| format!(", which ends with {line:?}")).unwrap_or_default();
        let reason = format!("none has come within {} s; {} may say why{last}", within.as_secs(), log.display());
        SupervisorError::Supervisor { directory: directory.to_owned(), reason }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The connection is closed; [`SupervisorError::Refused`] if the supervisor refused it.
    pub fn ask(&mut self, request: &SupervisorRequest) -> Result<(), SupervisorError> {
        let sent = self.packets.send(request);
        sent.map_err(|reason| match self.next(Duration::ZERO) {
            Err(refused @ SupervisorError::Refused(_)) => refused,
            _ => self.error(reason),
        })
    }

    /// Next answer; `None` after a timeout.
    ///
    /// # Errors
    /// The connection is closed; [`SupervisorError::Refused`], also from a supervisor with another version of the
    /// protocol.
    pub fn next(&mut self, within: Duration) -> Result<Option<SupervisorAnswer>, SupervisorError> {
        // A signal ends the wait early, so that the caller can react to it.
        match self.packets.next_until(Instant::now() + within) {
            Ok(Some(SupervisorAnswer::Refused { reason }))
                if !self.is_understood && reason.starts_with(UNREADABLE_PACKET) =>
            {
                let directory = self.directory.display();
                Err(SupervisorError::Refused(format!(
                    "the supervisor of {directory} is that of an older gapless, and this command speaks version {VERSION} of its \
                     protocol ({reason}); {UPGRADE_ADVICE}"
                )))
            }
            Ok(Some(SupervisorAnswer::Refused { reason })) => Err(SupervisorError::Refused(reason)),
            next => {
                self.is_understood |= matches!(next, Ok(Some(_)));
                next.map_err(|reason| self.error(reason))
            }
        }
    }

    /// Signals do not end the wait.
    fn answer_until(&mut self, deadline: Instant) -> Result<Option<SupervisorAnswer>, SupervisorError> {
        while Instant::now() < deadline {
            if let Some(answer) = self.next(deadline.saturating_duration_since(Instant::now()))? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    pub(super) fn silence(&self, request: &SupervisorRequest, within: Duration) -> SupervisorError {
        let directory = StateDirectory::open(&self.directory).ok();
        let stopped = [(RoleLock::Supervisor, "it"), (RoleLock::Guardian, "its guardian")].map(|(role_lock, name)| {
            let Holder::Recorded { record, .. } = directory.as_ref()?.role_holder(role_lock).ok()? else { return None };
            let process_id = record.process.process_id;
            let why = PeerProcess::numbered(process_id).standstill()?;
            Some(format!("{name}, process {process_id}, {why}"))
        });
        let may_follow = (!matches!(request, SupervisorRequest::Status))
            .then(|| "what was asked for may still be done, as `gapless ps` shows".to_owned());
        let more = may_follow.into_iter().chain(stopped.into_iter().flatten());
        let more = more.map(|words| format!("; {words}")).collect();
        SupervisorError::Silent { directory: self.directory.clone(), within, more }
    }

    /// Sends a request and waits until it is done or begun.
    ///
    /// # Errors
    /// See [`next`](Self::next); timeout.
    pub fn request(&mut self, request: &SupervisorRequest) -> Result<(), SupervisorError> {
        self.ask(request)?;
        let answer = self.answer_until(Instant::now() + ANSWER_TIMEOUT)?;
        match answer.ok_or_else(|| self.silence(request, ANSWER_TIMEOUT))? {
            SupervisorAnswer::Done => Ok(()),
            other => Err(self.error(format!("it was to say that it is done, and says {other:?}"))),
        }
    }

    /// Sends a command.
    pub fn change(&mut self, command: OperatorCommand) -> Result<(), SupervisorError> {
        self.request(&SupervisorRequest::Change { command })
    }

    /// Requests the status; not allowed after a request for events.
    pub fn status(&mut self) -> Result<SupervisionStatus, SupervisorError> {
        self.status_within(ANSWER_TIMEOUT)?.ok_or_else(|| self.silence(&SupervisorRequest::Status, ANSWER_TIMEOUT))
    }

    /// Same as [`status`](Self::status); `None` if the answer is not complete in time.
    pub fn status_within(&mut self, within: Duration) -> Result<Option<SupervisionStatus>, SupervisorError> {
        let deadline = Instant::now() + within;
        self.ask(&SupervisorRequest::Status)?;
        let mut status = SupervisionStatus::default();
        loop {
            let Some(answer) = self.answer_until(deadline)? else { return Ok(None) };
            match answer {
                SupervisorAnswer::Supervisor { supervisor } => status.supervisor = supervisor,
                SupervisorAnswer::Instance { instance } => status.instances.push(instance),
                SupervisorAnswer::Done => {
                    status.mark_other_namespace();
                    return Ok(Some(status));
                }
                other => return Err(self.error(format!("it was to say how it stands, and says {other:?}"))),
            }
        }
    }

    fn error(&self, reason: impl Into<String>) -> SupervisorError {
        SupervisorError::Supervisor { directory: self.directory.clone(), reason: reason.into() }
    }
}

impl AsFd for ControlClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_quotes_the_guardian_log() {
        let directory = tempfile::tempdir().unwrap();
        let said =
            || ControlClient::connect_within(directory.path(), Duration::from_millis(1)).unwrap_err().to_string();
        assert!(said().ends_with("guardian.log may say why"), "{}", said());
        std::fs::write(directory.path().join("guardian.log"), "first\nno room\n").unwrap();
        assert!(said().ends_with("guardian.log may say why, which ends with \"no room\""), "{}", said());
    }
}
