//! `ReadinessProbe`: polls for the readiness of an instance.

use super::poll_backoff::PollBackoff;
use crate::config::process::Readiness;
use crate::error::is_shortage_here;
use crate::instance_name::InstanceName;
use crate::logs::{LogFollower, LogPiece};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PAUSE_MAX_NS: u64 = 50_000_000;
const CONNECT_TIMEOUT: Duration = Duration::from_millis(10);
const READ_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub struct ReadinessProbe {
    kind: ProbeKind,
    pub backoff: PollBackoff,
}

#[derive(Debug)]
enum ProbeKind {
    Started,
    Address(SocketAddr),
    Socket(PathBuf),
    Line(LogLineProbe),
}

impl ReadinessProbe {
    /// Creates a probe; `log_begin` is the log's length at the start. `None` if the instance or its route reports
    /// readiness.
    pub fn new(readiness: &Readiness, log: &Path, log_begin: u64, now_ns: u64) -> Option<Self> {
        let kind = match readiness {
            Readiness::Started => ProbeKind::Started,
            Readiness::Address(address) => ProbeKind::Address(*address),
            Readiness::Socket(path) => ProbeKind::Socket(path.clone()),
            Readiness::Line(text) => ProbeKind::Line(LogLineProbe::new(log, log_begin, text)),
            Readiness::Notify | Readiness::Route(_) => return None,
        };
        Some(Self { kind, backoff: PollBackoff::new(now_ns, PAUSE_MAX_NS) })
    }

    /// Probes if it is time. Until its launcher has called exec, an answer must come from another process and does not
    /// count.
    ///
    /// # Errors
    /// This process lacks resources for the probe, which says nothing about the instance.
    pub fn poll(&mut self, now_ns: u64, instance: &InstanceName, process_id: u32) -> io::Result<bool> {
        if !self.backoff.is_due(now_ns) || !has_called_exec(instance, process_id)? {
            return Ok(false);
        }
        match &mut self.kind {
            ProbeKind::Started => Ok(true),
            ProbeKind::Address(address) => {
                Ok(unless_shortage(TcpStream::connect_timeout(address, CONNECT_TIMEOUT))?.is_some())
            }
            ProbeKind::Socket(path) => takes_connection(path),
            ProbeKind::Line(line) => line.is_there(),
        }
    }
}

/// Result of a probe: `None` if it failed; an error only if this process lacks resources.
pub fn unless_shortage<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if Errno::from_io_error(&error).is_some_and(is_shortage_here) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether the launcher has called exec.
pub fn has_called_exec(instance: &InstanceName, process_id: u32) -> io::Result<bool> {
    let Some(arguments) = unless_shortage(std::fs::read(format!("/proc/{process_id}/cmdline")))? else {
        return Ok(false);
    };
    let mut words = arguments.split(|byte| *byte == 0);
    let is_launcher = words.any(|word| word == b"launch") && words.any(|word| word == instance.to_string().as_bytes());
    // The command line of a dead process is empty.
    Ok(!arguments.is_empty() && !is_launcher)
}

fn takes_connection(path: &Path) -> io::Result<bool> {
    let Ok(address) = SocketAddrUnix::new(path) else { return Ok(false) };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    for kind in [SocketType::STREAM, SocketType::SEQPACKET] {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None);
        if unless_shortage(socket.map_err(Into::into))?
            .is_some_and(|socket| rustix::net::connect(&socket, &address).is_ok())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Debug)]
struct LogLineProbe {
    log: LogFollower,
    text: Vec<u8>,
}

impl LogLineProbe {
    fn new(log: &Path, begin: u64, text: &str) -> Self {
        Self { log: LogFollower::at(log, begin), text: text.as_bytes().to_vec() }
    }

    fn is_there(&mut self) -> io::Result<bool> {
        let Some(LogPiece { bytes, .. }) = unless_shortage(self.log.read_now(READ_BYTES_MAX))? else {
            return Ok(false);
        };
        if bytes.windows(self.text.len()).any(|part| part == self.text) {
            return Ok(true);
        }
        // The text may begin at the end of this piece.
        let again = (self.text.len() - 1).min(bytes.len());
        self.log.seek(self.log.position() - again as u64);
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wait::until;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn line_in_two_pieces_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut line = LogLineProbe::new(&path, 10, "listening");
        assert!(!line.is_there().unwrap(), "there is no log yet");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"listening\n").unwrap();
        assert!(!line.is_there().unwrap(), "it belongs to the previous start");
        log.write_all(b"now lis").unwrap();
        assert!(!line.is_there().unwrap());
        log.write_all(b"tening").unwrap();
        assert!(line.is_there().unwrap());
    }

    #[test]
    fn accepting_socket_is_ready() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(!takes_connection(&path).unwrap());
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(takes_connection(&path).unwrap());
        drop(listener);
        until("the listener is closed", || !takes_connection(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let packets = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::bind(&packets, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        assert!(!takes_connection(&path).unwrap(), "not listening yet");
        rustix::net::listen(&packets, 1).unwrap();
        assert!(takes_connection(&path).unwrap());
    }
}
