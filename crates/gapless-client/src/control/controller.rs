//! [`Controller`]: controls a stream of this machine from another process, and asks for the connected nodes.

use crate::ClientError;
use crate::control_messages::nodes::{NODES_ANSWER_LENGTH_MAX, NodesAnswer, NodesRequest};
use crate::control_messages::{ANSWER_LENGTH, ControlAnswer, ControlCommand, ControlRequest, ControlStatus};
use crate::stream_layout::StreamLayout;
use gapless_log::StreamIdentity;
use gapless_transport::TransportError;
use gapless_transport::socket_path::socket_address;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controlled {
    /// The sequence where it took effect; if nothing changed, the last one of the stream. It is released.
    pub sequence: u64,
    /// Whether it changed anything: a stream that is halted already is not halted again.
    pub changed: bool,
    pub identity: StreamIdentity,
    /// The sequencer's process.
    pub process_id: u64,
}

/// Controls the stream in a directory of this machine. A user who may open its socket may control it.
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
}

impl Controller {
    /// For the stream that is in `directory`.
    #[must_use]
    pub fn new(directory: impl AsRef<Path>) -> Self {
        Self { socket: StreamLayout::new(directory.as_ref()).socket() }
    }

    /// Asks for `command` and waits, at most `timeout`, until its effect is in the stream and as durable as the stream
    /// promises.
    ///
    /// # Errors
    /// [`ClientError::Control`] if nobody is there or it is refused; [`ClientError::TimedOut`], after which it may still
    /// take effect: asking again tells.
    pub fn command(&self, command: ControlCommand, timeout: Duration) -> Result<Controlled, ClientError> {
        let name = command.name();
        let request = ControlRequest { command, identity: StreamIdentity::default() };
        let mut bytes = [0; ANSWER_LENGTH + 1];
        let asked = format!("a {name}");
        let length = self.ask(&self.dial()?, &request.to_bytes(), &asked, &mut bytes, Instant::now() + timeout)?;
        let answer = ControlAnswer::from_bytes(&bytes[..length])
            .ok_or_else(|| self.refused(None, format!("an answer of {length} bytes that is none to a {name}")))?;
        let changed = match answer.status {
            ControlStatus::Done => true,
            ControlStatus::Unchanged => false,
            status => return Err(self.refused(Some(status), self.reason(status, &answer))),
        };
        let ControlAnswer { sequence, identity, process_id, .. } = answer;
        Ok(Controlled { sequence, changed, identity, process_id })
    }

    /// The connected nodes: every row there is. See [`super::StatusFeed`] for reading it again and again.
    ///
    /// # Errors
    /// [`ClientError::Control`] if nobody is there; [`ClientError::TimedOut`].
    pub fn nodes(&self, timeout: Duration) -> Result<NodesAnswer, ClientError> {
        let (asked, deadline) = ("a question who is connected", Instant::now() + timeout);
        let socket = self.dial()?;
        let mut bytes = vec![0; NODES_ANSWER_LENGTH_MAX + 1];
        let mut all: Option<NodesAnswer> = None;
        loop {
            let behind = all.as_ref().and_then(|all| all.rows.last()).map_or(0, |row| row.connection);
            let length = self.ask(&socket, &NodesRequest { behind }.to_bytes(), asked, &mut bytes, deadline)?;
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

    /// Sends a request and takes the answer, whose length it returns. `name` is the request, for messages.
    fn ask(
        &self,
        socket: &OwnedFd,
        request: &[u8],
        name: &str,
        answer: &mut [u8],
        deadline: Instant,
    ) -> Result<usize, ClientError> {
        let action = || format!("connecting to {}", self.peer());
        let begun = Instant::now();
        match rustix::net::send(socket, request, SendFlags::NOSIGNAL) {
            Ok(_) => {}
            Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => return Err(self.hung_up(name)),
            Err(errno) => return Err(TransportError::system(action())(errno).into()),
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = rustix::time::Timespec {
                tv_sec: left.as_secs().min(i64::MAX as u64) as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&left)) {
                Ok(0) => {
                    let (request, timeout_ms) = (name.to_owned(), (deadline - begun).as_millis() as u64);
                    return Err(ClientError::TimedOut { peer: self.peer(), request, timeout_ms });
                }
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(TransportError::system(action())(errno).into()),
            }
        }
        match rustix::net::recv(socket, answer, RecvFlags::empty()) {
            Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => Err(self.hung_up(name)),
            Ok((length, _)) => Ok(length),
            Err(errno) => Err(TransportError::system(action())(errno).into()),
        }
    }

    fn hung_up(&self, name: &str) -> ClientError {
        self.refused(
            None,
            format!("the sequencer hung up before it answered {name}; it was stopped, or is an older one"),
        )
    }

    fn dial(&self) -> Result<OwnedFd, ClientError> {
        let action = || format!("connecting to {}", self.peer());
        let address =
            socket_address(&self.socket).map_err(|source| TransportError::System { action: action(), source })?;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(TransportError::system(action()))?;
        match rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address)) {
            Ok(()) => Ok(socket),
            Err(errno) => match std::io::Error::from(errno).kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                    Err(self.refused(None, "no sequencer answers there; is it running?".to_owned()))
                }
                ErrorKind::PermissionDenied => {
                    Err(self.refused(None, "only the user who runs the sequencer may control it".to_owned()))
                }
                _ => Err(TransportError::system(action())(errno).into()),
            },
        }
    }
}
