//! `Controller`: controls a stream of this machine from another process, and queries the connected nodes.

use crate::ClientError;
use crate::control_messages::nodes::{NODES_ANSWER_LENGTH_MAX, NodesAnswer, NodesRequest};
use crate::control_messages::{ANSWER_LENGTH, ControlAnswer, ControlCommand, ControlRequest, ControlStatus};
use crate::stream_layout::StreamLayout;
use gapless_agent::monotonic::saturating_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_log::StreamIdentity;
use gapless_transport::TransportError;
use gapless_transport::peer_process::PeerProcess;
use gapless_transport::socket_path::connect_packets;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags};
use rustix::time::Timespec;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlResult {
    /// Released sequence at which it took effect; if nothing changed, the last one of the stream.
    pub sequence: u64,
    /// False if a halted stream is halted again.
    pub changed: bool,
    pub identity: StreamIdentity,
    pub process_id: u64,
}

/// Controls the stream in a directory of this machine. A user with permission to open its socket may control it.
///
/// ```no_run
/// # mod gapless {
/// #     pub mod stream { pub use gapless_client::{control::Controller, control_messages::ControlCommand}; }
/// # }
/// use gapless::stream::{ControlCommand, Controller};
/// use std::time::Duration;
/// let controller = Controller::new("/var/lib/gapless/orders");
/// let reason = "prices are wrong".to_owned();
/// let halted = controller.command(ControlCommand::Halt { reason }, Duration::from_secs(30))?;
/// println!("halted at sequence {}", halted.sequence);
/// # Ok::<(), gapless_client::ClientError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Controller {
    socket: PathBuf,
    report_wait: WaitReporter,
}

/// Receives the time waited, for whom and why.
pub type WaitReporter = fn(Duration, &str);

const LINE_INTERVAL: Duration = Duration::from_millis(5);

impl Controller {
    #[must_use]
    pub fn new(directory: impl AsRef<Path>) -> Self {
        Self { socket: StreamLayout::new(directory.as_ref()).socket(), report_wait: log }
    }

    /// Reports long waits to `report_wait` instead of the log: once a second at first, then less often.
    #[must_use]
    pub fn with_wait_reporter(self, report_wait: WaitReporter) -> Self {
        Self { report_wait, ..self }
    }

    /// Waits, at most `timeout`, until the command's effect is in the stream and as durable as the stream promises.
    ///
    /// # Errors
    /// [`ClientError::Control`] if no process listens or it refuses; [`ClientError::TimedOut`], after which the command
    /// may still take effect: repeating it shows.
    pub fn command(&self, command: ControlCommand, timeout: Duration) -> Result<ControlResult, ClientError> {
        let name = command.name();
        let request = ControlRequest { command, identity: StreamIdentity::default() };
        let mut bytes = [0; ANSWER_LENGTH + 1];
        let asked = format!("a {name}");
        let mut waiting = AnswerWait::within(timeout);
        let socket = self.dial(&asked, &mut waiting)?;
        let length = self.ask(&socket, &request.to_bytes(), &asked, &mut bytes, &mut waiting)?;
        let answer = ControlAnswer::from_bytes(&bytes[..length])
            .ok_or_else(|| self.refused(None, format!("an answer of {length} bytes that is none to a {name}")))?;
        let changed = match answer.status {
            ControlStatus::Done => true,
            ControlStatus::Unchanged => false,
            status => return Err(self.refused(Some(status), self.reason(status, &answer))),
        };
        let ControlAnswer { sequence, identity, process_id, .. } = answer;
        Ok(ControlResult { sequence, changed, identity, process_id })
    }

    /// All connected nodes.
    ///
    /// # Errors
    /// [`ClientError::Control`] if no process listens; [`ClientError::TimedOut`].
    pub fn nodes(&self, timeout: Duration) -> Result<NodesAnswer, ClientError> {
        let (asked, mut waiting) = ("a question who is connected", AnswerWait::within(timeout));
        let socket = self.dial(asked, &mut waiting)?;
        let mut bytes = vec![0; NODES_ANSWER_LENGTH_MAX + 1];
        let mut all: Option<NodesAnswer> = None;
        loop {
            let behind = all.as_ref().and_then(|all| all.rows.last()).map_or(0, |row| row.connection);
            let length = self.ask(&socket, &NodesRequest { behind }.to_bytes(), asked, &mut bytes, &mut waiting)?;
            let page = NodesAnswer::from_bytes(&bytes[..length])
                .filter(|page| page.rows.first().is_none_or(|row| row.connection > behind))
                .ok_or_else(|| self.refused(None, format!("an answer of {length} bytes that is none to {asked}")))?;
            let has_more = page.has_more;
            match &mut all {
                None => all = Some(page),
                Some(all) => all.rows.extend(page.rows),
            }
            if let (Some(mut all), false) = (all.take_if(|_| !has_more), has_more) {
                all.has_more = false;
                return Ok(all);
            }
        }
    }

    fn peer(&self) -> String {
        self.socket.display().to_string()
    }

    fn refused(&self, status: Option<ControlStatus>, reason: String) -> ClientError {
        ClientError::Control { peer: self.peer(), status, reason }
    }

    fn reason(&self, status: ControlStatus, answer: &ControlAnswer) -> String {
        match status {
            ControlStatus::Done | ControlStatus::Unchanged => "it is done".to_owned(),
            ControlStatus::Relay => {
                format!("process {} passes another's stream on; control it where its sequencer runs", answer.process_id)
            }
            ControlStatus::Service => "the stream belongs to a service and has no feed sessions".to_owned(),
            ControlStatus::Ended => "the feed session has ended; roll over to begin another".to_owned(),
            ControlStatus::NameTaken => {
                "the stream holds a feed session of this name already; choose another".to_owned()
            }
            ControlStatus::OtherStream => {
                format!("it is stream {:032x}", answer.identity.stream_id)
            }
            ControlStatus::OtherIncarnation => {
                format!("the stream is in incarnation {:016x}", answer.identity.incarnation)
            }
            ControlStatus::Follower => "this member follows another; ask the leader".to_owned(),
            ControlStatus::Busy => "too many requests wait there already; try again".to_owned(),
            ControlStatus::OtherVersion => "the sequencer speaks another version of the control protocol".to_owned(),
        }
    }

    fn ask(
        &self,
        socket: &OwnedFd,
        request: &[u8],
        name: &str,
        answer: &mut [u8],
        waiting: &mut AnswerWait,
    ) -> Result<usize, ClientError> {
        let action = || format!("connecting to {}", self.peer());
        match rustix::net::send(socket, request, SendFlags::NOSIGNAL) {
            Ok(_) => {}
            Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                return Err(self.closed_by_peer(socket, name));
            }
            Err(errno) => return Err(TransportError::system(action())(errno).into()),
        }
        loop {
            let pause = self.pause(waiting, name, PeerProcess::of(socket))?;
            let pause = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
            match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&pause)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(errno) => return Err(TransportError::system(action())(errno).into()),
            }
        }
        match rustix::net::recv(socket, answer, RecvFlags::empty()) {
            Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => Err(self.closed_by_peer(socket, name)),
            Ok((length, _)) => Ok(length),
            Err(errno) => Err(TransportError::system(action())(errno).into()),
        }
    }

    fn closed_by_peer(&self, socket: &OwnedFd, name: &str) -> ClientError {
        let process = PeerProcess::of(socket).map(|process| format!(" ({process})")).unwrap_or_default();
        let reason =
            format!("the sequencer{process} hung up before it answered {name}; it was stopped, or is an older one");
        self.refused(None, reason)
    }

    fn pause(
        &self,
        waiting: &mut AnswerWait,
        name: &str,
        process: Option<PeerProcess>,
    ) -> Result<Duration, ClientError> {
        let passed = waiting.begun.elapsed();
        if let Some(waited) = waiting.notices.take_due(saturating_ns(passed)) {
            let silence = process.map_or_else(|| "it lets nobody in".to_owned(), PeerProcess::silence);
            (self.report_wait)(waited, &format!("no answer from {} to {name}: {silence}", self.peer()));
        }
        let left = waiting.timeout.saturating_sub(passed);
        if left.is_zero() {
            let process = process.map(|process| format!(" ({process})")).unwrap_or_default();
            let (peer, request) = (self.peer() + &process, name.to_owned());
            return Err(ClientError::TimedOut { peer, request, timeout_ms: waiting.timeout.as_millis() as u64 });
        }
        Ok(left.min(Duration::from_nanos(waiting.notices.next_ns()).saturating_sub(passed)))
    }

    fn dial(&self, name: &str, waiting: &mut AnswerWait) -> Result<OwnedFd, ClientError> {
        loop {
            let source = match connect_packets(&self.socket) {
                Ok(socket) => return Ok(socket),
                Err(error) => error,
            };
            return match source.kind() {
                ErrorKind::WouldBlock => {
                    std::thread::sleep(self.pause(waiting, name, None)?.min(LINE_INTERVAL));
                    continue;
                }
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                    Err(self.refused(None, "no sequencer answers there; is it running?".to_owned()))
                }
                ErrorKind::PermissionDenied => {
                    Err(self.refused(None, "only the user who runs the sequencer may control it".to_owned()))
                }
                _ => Err(TransportError::System { action: format!("connecting to {}", self.peer()), source }.into()),
            };
        }
    }
}

struct AnswerWait {
    begun: Instant,
    timeout: Duration,
    notices: WaitNotices,
}

impl AnswerWait {
    fn within(timeout: Duration) -> Self {
        let mut notices = WaitNotices::after_a_second();
        notices.begin(0);
        Self { begun: Instant::now(), timeout, notices }
    }
}

fn log(waited: Duration, what: &str) {
    tracing::warn!(waited_s = waited.as_secs(), "{what}; it is waited for");
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_transport::socket_path::socket_address;
    use rustix::net::{AddressFamily, SocketType};
    use std::sync::Mutex;

    static TOLD: [Mutex<Vec<String>>; 2] = [const { Mutex::new(Vec::new()) }; 2];

    /// Reports of a wait for a socket that never accepts, with `others` before it in the queue.
    fn is_told(others: usize, report_wait: WaitReporter, told: &Mutex<Vec<String>>) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let controller = Controller::new(directory.path()).with_wait_reporter(report_wait);
        let socket = || rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        let (listener, address) = (socket(), socket_address(&controller.socket).unwrap());
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _others: Vec<_> = std::iter::repeat_with(socket)
            .take(others)
            .inspect(|other| rustix::net::connect(other, &address).unwrap())
            .collect();
        let outcome = controller.nodes(Duration::from_millis(1100));
        assert!(matches!(outcome, Err(ClientError::TimedOut { timeout_ms: 1100, .. })), "{outcome:?}");
        std::mem::take(&mut *told.lock().unwrap())
    }

    #[test]
    fn silent_sequencer_is_reported() {
        let [waiting, refused] = std::thread::scope(|scope| {
            let first = scope.spawn(|| is_told(0, |_, what| TOLD[0].lock().unwrap().push(what.to_owned()), &TOLD[0]));
            let second = scope.spawn(|| is_told(1, |_, what| TOLD[1].lock().unwrap().push(what.to_owned()), &TOLD[1]));
            [first, second].map(|asked| asked.join().unwrap())
        });
        for (told, silence) in [(waiting, "is there and does not answer"), (refused, "it lets nobody in")] {
            assert!(!told.is_empty() && told.iter().all(|what| what.contains(silence)), "{silence}: {told:?}");
        }
    }
}
