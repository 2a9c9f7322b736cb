//! `PeerCredentials` and `PeerProcess`: user and process at the other end of a Unix socket, and whether the process is
//! stopped.

use gapless_agent::counters::descriptor::process_namespace;
use nix::sys::socket::{getsockopt, sockopt};
use rustix::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::{fmt, io};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// In this process's user namespace.
    pub user_id: u32,
    /// `None` in another process namespace, such as a container's.
    pub process: Option<PeerProcess>,
}

impl PeerCredentials {
    /// Credentials of the connecting process, or for a connecting socket, of the listening one.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        // In another namespace the process id is 0, which rustix's type cannot hold.
        let credentials = getsockopt(socket, sockopt::PeerCredentials)?;
        let id = u32::try_from(credentials.pid()).ok().filter(|id| *id != 0);
        Ok(Self { user_id: credentials.uid(), process: id.map(PeerProcess) })
    }

    /// This process's user, or root.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        self.user_id == rustix::process::geteuid().as_raw() || self.user_id == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerProcess(u32);

impl PeerProcess {
    #[must_use]
    pub const fn numbered(id: u32) -> Self {
        Self(id)
    }

    #[must_use]
    pub const fn id(self) -> u32 {
        self.0
    }

    /// Listener of the connected `socket`; `None` if not visible from here, as from another container.
    #[must_use]
    pub fn of(socket: &impl AsFd) -> Option<Self> {
        PeerCredentials::of(socket).ok()?.process
    }

    /// False if that cannot be seen.
    #[must_use]
    pub fn is_of_other_namespace(self) -> bool {
        let found = std::fs::metadata(format!("/proc/{}/ns/pid", self.0));
        found.is_ok_and(|found| found.ino() != process_namespace())
    }

    /// Stopped, according to the kernel. `None` for a process that may run, even if idle, and without `/proc`.
    #[must_use]
    pub fn standstill(self) -> Option<&'static str> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        // After the name, which may contain any characters.
        let (_, state) = stat.rsplit_once(") ")?;
        match state.as_bytes().first()? {
            b'T' => Some("is stopped by a signal; SIGCONT lets it go on"),
            b't' => Some("is held by a debugger"),
            _ => None,
        }
    }
}

impl PeerProcess {
    /// Text for a process that does not answer.
    #[must_use]
    pub fn silence(self) -> String {
        let why = self.standstill().map(|why| format!(": it {why}")).unwrap_or_default();
        format!("process {} is there and does not answer{why}", self.0)
    }
}

impl fmt::Display for PeerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.0)?;
        self.standstill().map_or(Ok(()), |why| write!(f, ", which {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::process::Process;
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    #[test]
    fn peer_process_is_identified() {
        let (here, _there) = UnixStream::pair().unwrap();
        let credentials = PeerCredentials::of(&here).unwrap();
        assert!(credentials.is_trusted() && credentials.process == PeerProcess::of(&here));
        let process = PeerProcess::of(&here).unwrap();
        assert_eq!(process, PeerProcess::numbered(std::process::id()));
        assert!(!process.is_of_other_namespace());
        assert_eq!((process.standstill(), process.to_string()), (None, format!("process {}", std::process::id())));
    }

    #[test]
    fn only_a_stopped_process_is_at_rest() {
        let mut command = Command::new("sleep");
        let sleeper = Process::start(command.arg("300"));
        let process = PeerProcess::numbered(sleeper.pid().as_raw_nonzero().get().unsigned_abs());
        assert_eq!(process.standstill(), None);
        sleeper.stop();
        assert!(process.to_string().ends_with(", which is stopped by a signal; SIGCONT lets it go on"), "{process}");
        sleeper.signal(rustix::process::Signal::CONT);
        gapless_testkit::wait::until("it goes on", || process.standstill().is_none());
    }
}
