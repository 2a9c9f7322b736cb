//! Errors of lower crates are wrapped. A full ring ([`LogError::Full`]), a timeout, and another history have a variant
//! here, because programs handle them and also meet them without a transport.

use crate::session_key::{CommandNumber, SessionKey};
use gapless_config::ConfigError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_transport::TransportError;
use gapless_transport::link::ANSWER_LENGTH_MAX;
use gapless_transport::seen_frame::SeenFrame;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Log(#[from] LogError),
    /// The journal failed; the stream takes no more input.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No process listens, the other side has refused, or the operating system has.
    #[error(transparent)]
    Transport(TransportError),
    /// A stream cannot be controlled, or its state not be queried.
    #[error("{peer}: {reason}")]
    Control {
        peer: String,
        /// Status in the answer of the other side, if it refused.
        status: Option<crate::control_messages::ControlStatus>,
        reason: String,
    },
    /// A reader lags so far that the frames it needs are no longer kept.
    #[error("frame {sequence} is not held: {reason}")]
    Lapped { sequence: u64, reason: String },
    #[error("{option}: {reason}")]
    Option { option: &'static str, reason: String },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("this member does not lead; the leader is {}", if leader.is_empty() { "not known" } else { leader })]
    NotLeader {
        /// Addresses of the leader, one a line; empty if they are not known.
        leader: String,
    },
    #[error("the node is closed")]
    Closed,
    /// The session is not open yet, or the node is read-only.
    #[error("the session is not open; poll until it is")]
    NotOpen,
    #[error("the stream is halted; poll until it is resumed")]
    Halted,
    #[error("published faster than is allowed; try again in {} µs", wait_ns.div_ceil(1000))]
    Throttled {
        /// Time until there is room, ns.
        wait_ns: u64,
    },
    /// The messages in flight use all the memory that they may.
    #[error("messages on their way take all of {bytes_max} bytes; poll until some have come back")]
    KeptFull { bytes_max: usize },
    /// The stream's session is not the one that this node knows: it expired, or another process uses the token.
    #[error(
        "session {session}: number {expected} is due, the stream expects {found}; it expired or another process uses its token"
    )]
    SessionLost {
        session: u64,
        /// Oldest number that the node may have to resend.
        expected: u64,
        found: u64,
    },
    /// The stream has closed a publisher's session with messages in flight: it had expired before they arrived.
    #[error(
        "session {session} has expired: what was published in it from number {first_lost} on is not in the stream, and never \
         will be; publish that in a new session"
    )]
    SessionExpired {
        session: u64,
        /// First number that is not in the stream.
        first_lost: u64,
    },
    /// The client or node has seen frames that the stream does not contain: it was restored from an older copy, or has
    /// lost frames. Messages in flight are not resent.
    #[error("{}", seen.missing_reason(peer, *released_sequence))]
    OtherHistory {
        /// The service, the sequencer or the relay.
        peer: String,
        seen: SeenFrame,
        /// Last released sequence of the peer's stream; 0 if that is not known.
        released_sequence: u64,
    },
    /// The stream differs from the one seen before, or expected.
    #[error(
        "{peer} serves stream {:032x} in incarnation {:016x}, not {:032x} in {:016x}",
        found.stream_id, found.incarnation, expected.stream_id, expected.incarnation
    )]
    OtherStream { peer: String, expected: gapless_log::StreamIdentity, found: gapless_log::StreamIdentity },
    #[error("{}", describe_disconnect(peer, reason.as_deref()))]
    Disconnected {
        /// Path of the socket, or "this process".
        peer: String,
        /// Reason of its failure, if known: in the same process, or over shared memory if it was sent before the
        /// process ended.
        reason: Option<String>,
    },
    /// The session's window of commands in flight is full; poll for replies first.
    #[error("session {session}: {window_messages} commands are in flight, which is its window; poll for replies first")]
    WindowFull { session: u64, window_messages: u32 },
    /// A session cannot be closed while commands have no reply.
    #[error("session {session}: {in_flight} commands have no reply yet; poll for them before closing it")]
    InFlight { session: u64, in_flight: u32 },
    #[error("no answer from {peer} to {request} within {timeout_ms} ms")]
    TimedOut { peer: String, request: String, timeout_ms: u64 },
    /// A key of another client, or of a session that was closed or has expired; its token opens a new one.
    #[error("this client has no such session, or no more: it was closed or has expired, and its token opens a new one")]
    NoSuchSession(SessionKey),
    /// No command of the session has this number: it is not the last frame of a sent command, or it belongs to an
    /// acknowledgement of notices. Nothing was sent.
    #[error("session {session}: no command has the number {session_seq}; the next one gets {next_session_seq}")]
    NotSent { session: u64, session_seq: u64, next_session_seq: u64 },
    /// A number recorded for a command is of another session than the one in which it was to be sent. Nothing was sent.
    #[error(
        "command {number} cannot be sent in session {session}: whether it had its effect in its own one nobody can say any more"
    )]
    OtherSession {
        number: CommandNumber,
        /// Session in which it was to be sent.
        session: u64,
    },
    /// The message does not fit the ring.
    #[error("a message of {length_bytes} bytes is longer than the limit of {limit_bytes}")]
    TooLong { length_bytes: usize, limit_bytes: usize },
    #[error("refused ({code:?}{}): {reason}", if *detail == 0 { String::new() } else { format!(" {detail}") })]
    Refused {
        code: gapless_wire::control::RefusalCode,
        /// Code given by the application's handler, for a command that it has refused; 0 if it gave none.
        detail: u64,
        reason: String,
    },
    /// A command was sent and its fate is unknown: it has taken effect once, or will, or never will. Its reply, if
    /// there is one, arrives at a later poll; [`crate::Client::outcome`] asks for it, also after a restart of this
    /// process.
    #[error("command {session_seq} was sent, and its outcome is not known: {reason}")]
    OutcomeUnknown { session_seq: u64, reason: String },
    /// The command is done and has taken effect; its reply is longer than allowed and is lost. Repeating the command
    /// gives the same result.
    #[error(
        "the command is done, at sequence {sequence}, but its reply of {length_bytes} bytes is not kept: {ANSWER_LENGTH_MAX} bytes \
         are the most in any stream; ask for less at a time"
    )]
    ReplyTooLong {
        /// Position of the command in the total order.
        sequence: u64,
        length_bytes: u64,
    },
    /// The received message is not of the expected type, or malformed.
    #[error("this is no {expected}: {reason}")]
    Decode {
        /// Name of the message in its schema.
        expected: &'static str,
        /// Type found, or the fault.
        reason: String,
    },
    #[error("encoding the message: {0}")]
    Encode(String),
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

pub(crate) const THIS_PROCESS: &str = "this process";

fn describe_disconnect(peer: &str, reason: Option<&str>) -> String {
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
    fn local_error_suggests_no_reconnect() {
        let gone = |peer: &str| ClientError::Disconnected { peer: peer.to_owned(), reason: None }.to_string();
        assert!(gone("data/node.socket").contains("is gone; reconnect"));
        let (peer, reason) = ("data/node.socket".to_owned(), Some("no space left".to_owned()));
        let failed = ClientError::Disconnected { peer, reason }.to_string();
        assert!(failed.contains("data/node.socket has failed: no space left; reconnect"), "{failed}");
        assert!(!gone(THIS_PROCESS).contains("reconnect"), "{}", gone(THIS_PROCESS));
    }
}
