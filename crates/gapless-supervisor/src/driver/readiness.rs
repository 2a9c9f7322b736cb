//! [`Probe`]: polls for the readiness of an instance.

use super::growing_pause::GrowingPause;
use crate::config::process::Readiness;
use crate::copy_name::CopyName;
use crate::error::is_shortage_here;
use crate::logs::{LogFollower, Piece};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest interval between probes, ns.
const PAUSE_MAX_NS: u64 = 50_000_000;
/// Timeout of a connection attempt; it is retried at the next probe.
const CONNECT_WITHIN: Duration = Duration::from_millis(10);
/// Read limit of a log for each probe, bytes.
const READ_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub struct Probe {
    kind: Kind,
    pub pause: GrowingPause,
}

#[derive(Debug)]
enum Kind {
    Runs,
    Address(SocketAddr),
    Socket(PathBuf),
    Line(LineInLog),
}

impl Probe {
    /// Creates a probe; `log_begin` is the length of the log at the start. `None` if readiness is reported by the
    /// instance or its route.
    pub fn new(readiness: &Readiness, log: &Path, log_begin: u64, now_ns: u64) -> Option<Self> {
        let kind = match readiness {
            Readiness::Started => Kind::Runs,
            Readiness::Address(address) => Kind::Address(*address),
            Readiness::Socket(path) => Kind::Socket(path.clone()),
            Readiness::Line(text) => Kind::Line(LineInLog::new(log, log_begin, text)),
            Readiness::Notify | Readiness::Route(_) => return None,
        };
        Some(Self { kind, pause: GrowingPause::new(now_ns, PAUSE_MAX_NS) })
    }

    /// Probes, if it is time, whether the instance is ready. While its launcher has not called exec, an answer must
    /// come from another process and does not count.
    ///
    /// # Errors
    /// This process lacks resources for the probe, which says nothing about the instance.
    pub fn look(&mut self, now_ns: u64, copy: &CopyName, process_id: u32) -> io::Result<bool> {
        if !self.pause.is_over(now_ns) || !has_become_itself(copy, process_id)? {
            return Ok(false);
        }
        match &mut self.kind {
            Kind::Runs => Ok(true),
            Kind::Address(address) => Ok(seen(TcpStream::connect_timeout(address, CONNECT_WITHIN))?.is_some()),
            Kind::Socket(path) => takes_connection(path),
            Kind::Line(line) => line.is_there(),
        }
    }
}

/// Result of a probe: `None` if it failed; an error only if this process lacks resources for it.
pub fn seen<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if Errno::from_io_error(&error).is_some_and(is_shortage_here) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether the launcher has called exec.
pub fn has_become_itself(copy: &CopyName, process_id: u32) -> io::Result<bool> {
    let Some(arguments) = seen(std::fs::read(format!("/proc/{process_id}/cmdline")))? else { return Ok(false) };
    let mut words = arguments.split(|byte| *byte == 0);
    let is_launcher = words.any(|word| word == b"launch") && words.any(|word| word == copy.to_string().as_bytes());
    // The command line of a dead process is empty.
    Ok(!arguments.is_empty() && !is_launcher)
}

fn takes_connection(path: &Path) -> io::Result<bool> {
    let Ok(address) = SocketAddrUnix::new(path) else { return Ok(false) };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    for kind in [SocketType::STREAM, SocketType::SEQPACKET] {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None);
        if seen(socket.map_err(Into::into))?.is_some_and(|socket| rustix::net::connect(&socket, &address).is_ok()) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Debug)]
struct LineInLog {
    log: LogFollower,
    text: Vec<u8>,
}

impl LineInLog {
    fn new(log: &Path, begin: u64, text: &str) -> Self {
        Self { log: LogFollower::at(log, begin), text: text.as_bytes().to_vec() }
    }

    fn is_there(&mut self) -> io::Result<bool> {
        let Some(Piece { bytes, .. }) = seen(self.log.read(READ_BYTES_MAX))? else { return Ok(false) };
        if bytes.windows(self.text.len()).any(|part| part == self.text) {
            return Ok(true);
        }
        // The text may begin at the end of this piece.
        let again = (self.text.len() - 1).min(bytes.len());
        self.log.go_to(self.log.position() - again as u64);
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
        let mut line = LineInLog::new(&path, 10, "listening");
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
        // A child forked by another test holds the descriptor until it calls exec.
        until("the listener is closed", || !takes_connection(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let packets = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::bind(&packets, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        assert!(!takes_connection(&path).unwrap(), "not listening yet");
        rustix::net::listen(&packets, 1).unwrap();
        assert!(takes_connection(&path).unwrap());
    }
}
