//! The errors between a client or a node and its stream.
//!
//! Errors from below are wrapped. Three of the transport's have a variant here instead, because programs decide by them
//! and also meet them without a transport: a full ring ([`LogError::Full`]), no answer in time, and another history.

use crate::session_key::{CommandNumber, SessionKey};
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_transport::TransportError;
use gapless_transport::link::ANSWER_LENGTH_MAX;
use gapless_transport::seen::Seen;

/// The errors between a client or a node and its stream.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A window or ring failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The journal failed; the stream takes no more input.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nobody is there, the other side has said no, or the operating system has.
    #[error(transparent)]
    Transport(TransportError),
    /// A stream cannot be controlled, or its state not be asked for.
    #[error("{peer}: {reason}")]
    Control {
        /// The socket's path.
        peer: String,
        /// The status of the other side's answer, if it refused.
        status: Option<crate::control_messages::ControlStatus>,
        /// The reason, and what to do.
        reason: String,
    },
    /// A reader lags so far that the frames it needs are nowhere any more.
    #[error("frame {sequence} is not held: {reason}")]
    Lapped {
        /// The frame that the reader needs.
        sequence: u64,
        /// Why it is not kept.
        reason: String,
    },
    /// An option that makes no sense.
    #[error("{option}: {reason}")]
    Option {
        option: &'static str,
        /// The fault, and the allowed values.
        reason: String,
    },
    /// A stream's file cannot be read.
    #[error("reading {path}: {source}")]
    File {
        path: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A file that describes no stream.
    #[error("{place}: {reason}")]
    Config {
        /// File and line.
        place: String,
        /// The key, the found and the allowed value.
        reason: String,
    },
    /// The member that was asked follows another one of its cluster.
    #[error("this member does not lead; the leader is {}", if leader.is_empty() { "not known" } else { leader })]
    NotLeader {
        /// Where the leader can be reached, one address a line; empty if that is not known.
        leader: String,
    },
    /// The node was closed.
    #[error("the node is closed")]
    Closed,
    /// The session is not open yet, or the node was made to read only.
    #[error("the session is not open; poll until it is")]
    NotOpen,
    /// The stream is halted.
    #[error("the stream is halted; poll until it is resumed")]
    Halted,
    /// More than may be published now.
    #[error("published faster than is allowed; try again in {} µs", wait_ns.div_ceil(1000))]
    Throttled {
        /// After this time there is room, ns.
        wait_ns: u64,
    },
    /// The messages on their way take all the memory that they may.
    #[error("messages on their way take all of {bytes_max} bytes; poll until some have come back")]
    KeptFull { bytes_max: usize },
    /// The stream's session is not the one that this node knows: it expired, or another process uses the token.
    #[error(
        "session {session}: number {expected} is due, the stream expects {found}; it expired or another process uses its token"
    )]
    SessionLost {
        session: u64,
        /// The oldest number that the node may have to send again.
        expected: u64,
        /// The number that the stream expects.
        found: u64,
    },
    /// The stream has closed a publisher's session with messages under way: it had expired before they arrived.
    #[error(
        "session {session} has expired: what was published in it from number {first_lost} on is not in the stream, and never \
         will be; publish that in a new session"
    )]
    SessionExpired {
        session: u64,
        /// The first number that is not in the stream.
        first_lost: u64,
    },
    /// The client or node has seen frames that the stream does not contain: that was put back to an older copy, or has lost
    /// something. Nothing that is in flight is sent again.
    #[error("{}", seen.is_missing_at(peer, *released_sequence))]
    OtherHistory {
        /// The service, the sequencer or the relay.
        peer: String,
        /// The part of the stream seen.
        seen: Seen,
        /// How far its stream is; 0 if that is not known.
        released_sequence: u64,
    },
    /// The stream is another one than it was, or than it should be.
    #[error(
        "{peer} serves stream {:032x} in incarnation {:016x}, not {:032x} in {:016x}",
        found.stream_id, found.incarnation, expected.stream_id, expected.incarnation
    )]
    OtherStream {
        /// The other side's address.
        peer: String,
        expected: gapless_log::StreamIdentity,
        found: gapless_log::StreamIdentity,
    },
    /// The service is gone.
    #[error("{}", describe_gone(peer, reason.as_deref()))]
    Disconnected {
        /// The socket's path, or "this process".
        peer: String,
        /// Reason of its failure, if it is known: in its own process, and over shared memory if it was sent before the process
        /// ended.
        reason: Option<String>,
    },
    /// As many commands are in flight as the session's window allows; poll for replies first.
    #[error("session {session}: {window_messages} commands are in flight, which is its window; poll for replies first")]
    WindowFull { session: u64, window_messages: u32 },
    /// A session cannot be closed while commands have no reply.
    #[error("session {session}: {in_flight} commands have no reply yet; poll for them before closing it")]
    InFlight {
        session: u64,
        /// How many.
        in_flight: u32,
    },
    /// No answer came in time.
    #[error("no answer from {peer} to {request} within {timeout_ms} ms")]
    TimedOut {
        /// The socket's path.
        peer: String,
        request: String,
        timeout_ms: u64,
    },
    /// A key of another client, or of a session that is closed or has expired; its token opens a new one.
    #[error("this client has no such session, or no more: it was closed or has expired, and its token opens a new one")]
    NoSuchSession(SessionKey),
    /// No command of the session has this number: the last frame of none that was sent, or it is that of an acknowledgement
    /// of notices. Nothing was sent.
    #[error("session {session}: no command has the number {session_seq}; the next one gets {next_session_seq}")]
    NotSent {
        session: u64,
        session_seq: u64,
        /// The next that is free.
        next_session_seq: u64,
    },
    /// A number that was kept for a command is of another session than the one in which it was to be sent. Nothing was sent.
    #[error(
        "command {number} cannot be sent in session {session}: whether it had its effect in its own one nobody can say any more"
    )]
    OtherSession {
        number: CommandNumber,
        /// The session in which it was to be sent.
        session: u64,
    },
    /// The message does not fit the ring.
    #[error("a message of {length_bytes} bytes is longer than the limit of {limit_bytes}")]
    TooLong {
        /// The requested length.
        length_bytes: usize,
        limit_bytes: usize,
    },
    /// The service refused the command.
    #[error("refused ({code:?}{}): {reason}", if *detail == 0 { String::new() } else { format!(" {detail}") })]
    Refused {
        /// The kind of refusal.
        code: gapless_wire::control::RefusalCode,
        /// Of a command that the handler has refused, the application's own code; 0 where it has given none.
        detail: u64,
        /// The service's text.
        reason: String,
    },
    /// A command was sent, and its fate is not known: it has its effect once, or will have it, or never. Its reply
    /// comes to a later poll if there is one; [`crate::Client::outcome`] asks for it, also after a restart of this
    /// process.
    #[error("command {session_seq} was sent, and its outcome is not known: {reason}")]
    OutcomeUnknown {
        /// Its number in its session.
        session_seq: u64,
        /// Why not.
        reason: String,
    },
    /// The command is done and has had its effects; its reply is longer than any may be, and nobody has it. Repeating the
    /// command gives the same.
    #[error(
        "the command is done, at sequence {sequence}, but its reply of {length_bytes} bytes is not kept: {ANSWER_LENGTH_MAX} bytes \
         are the most in any stream; ask for less at a time"
    )]
    ReplyTooLong {
        /// The command's place in the total order.
        sequence: u64,
        /// The length that its handler asked for.
        length_bytes: u64,
    },
    /// What came is another message than the one that was asked for, or not what it says.
    #[error("this is no {expected}: {reason}")]
    Decode {
        /// The message's name in its schema.
        expected: &'static str,
        /// What it is, or what is wrong with it.
        reason: String,
    },
    /// The application's encoder failed.
    #[error("encoding the message: {0}")]
    Encode(String),
    /// The service broke the protocol.
    #[error("the service sent {what}")]
    Protocol { what: String },
}

impl From<TransportError> for ClientError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Log(error) => Self::Log(error),
            TransportError::TimedOut { peer, request, timeout_ms } => Self::TimedOut { peer, request, timeout_ms },
            TransportError::OtherHistory { peer, seen, released_sequence } => {
                Self::OtherHistory { peer, seen, released_sequence }
            }
            error @ (TransportError::System { .. } | TransportError::Handshake { .. }) => Self::Transport(error),
        }
    }
}

/// The peer of a client or node in the process of its service: one that is gone is gone for good.
pub(crate) const THIS_PROCESS: &str = "this process";

fn describe_gone(peer: &str, reason: Option<&str>) -> String {
    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    if peer == THIS_PROCESS {
        return format!("the service in this process has stopped{why}; its clients in this process have ended with it");
    }
    let how = if reason.is_some() { "has failed" } else { "is gone" };
    format!("the service at {peer} {how}{why}; reconnect to go on with the same sessions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_reconnect_to_what_was_in_the_same_process() {
        let gone = |peer: &str| ClientError::Disconnected { peer: peer.to_owned(), reason: None }.to_string();
        assert!(gone("data/node.socket").contains("is gone; reconnect"));
        let (peer, reason) = ("data/node.socket".to_owned(), Some("no space left".to_owned()));
        let failed = ClientError::Disconnected { peer, reason }.to_string();
        assert!(failed.contains("data/node.socket has failed: no space left; reconnect"), "{failed}");
        assert!(!gone(THIS_PROCESS).contains("reconnect"), "{}", gone(THIS_PROCESS));
    }
}
