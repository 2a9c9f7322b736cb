//! Errors of lower crates are wrapped. A full ring ([`LogError::Full`]), a timeout, and another history have a variant
//! here, because programs handle them and also meet them without a transport.

use crate::session_key::{CommandNumber, SessionKey};
use gapless_config::ConfigError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_message::NoRefusal;
use gapless_transport::TransportError;
use gapless_transport::link::ANSWER_LENGTH_MAX;
use gapless_transport::seen_frame::SeenFrame;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Shared memory cannot be used, or has no room. After [`LogError::Full`] nothing was sent: poll and retry.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The stream's journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The connection failed: no process listens, the other side refused it, or the operating system did. Start the
    /// service, or correct the address, and retry.
    #[error(transparent)]
    Transport(TransportError),
    /// No process listens at the socket, or it refused the request. Start the stream, or follow the reason.
    #[error("{peer}: {reason}")]
    Control {
        peer: String,
        /// Status in the answer of the other side, if it refused.
        status: Option<crate::control_messages::ControlStatus>,
        reason: String,
    },
    /// The stream has never kept the frames that the reader needs, or keeps them no longer. Read from a later frame on.
    #[error("frame {sequence} is not available: {reason}")]
    Lapped { sequence: u64, reason: String },
    /// A value is out of range, or two options exclude each other. Correct it and retry.
    #[error("{option}: {reason}")]
    Option { option: &'static str, reason: String },
    /// The configuration file cannot be read, or a key of it is refused. Correct the file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Connect to the leader.
    #[error("this member does not lead; the leader is {}", if leader.is_empty() { "not known" } else { leader })]
    NotLeader {
        /// Addresses of the leader, one a line; empty if they are not known.
        leader: String,
    },
    /// The node was closed, or its host has stopped. Open a new node.
    #[error("the node is closed")]
    Closed,
    /// The session is not open yet, or the node is read-only. Nothing was sent.
    #[error("the session is not open; poll until it is")]
    NotOpen,
    /// Nothing was sent. The operator resumes the stream.
    #[error("the stream is halted; poll until it is resumed")]
    Halted,
    /// Nothing was sent: the rate limit of the node is reached.
    #[error("the rate limit is exceeded; retry in {} µs", wait_ns.div_ceil(1000))]
    Throttled {
        /// Time until there is room, ns.
        wait_ns: u64,
    },
    /// Nothing was sent. Allow more memory if this happens often.
    #[error("messages in flight use all of their {bytes_max} bytes; poll until some have returned")]
    KeptFull { bytes_max: usize },
    /// The stream and the node disagree about the session. Messages in flight may be in the stream: read it to find
    /// out, then publish the others in a new session.
    #[error(
        "session {session}: number {expected} is due, the stream expects {found}; it expired or another process uses its token"
    )]
    SessionLost {
        session: u64,
        /// Oldest number that the node may have to resend.
        expected: u64,
        found: u64,
    },
    /// The session had expired before its messages in flight arrived: a retry makes no duplicates.
    #[error(
        "session {session} has expired: its messages from number {first_lost} on are not in the stream and never will \
         be; publish them in a new session"
    )]
    SessionExpired {
        session: u64,
        /// First number that is not in the stream.
        first_lost: u64,
    },
    /// The stream lacks outputs of a service that this instance does not make again, because its snapshot covers them.
    /// Start the instance without its snapshots, or another instance that reads the stream from its first frame.
    #[error(
        "session {session}: the stream waits for number {found}, and this instance begins at {expected}; a snapshot \
         covers the messages in between"
    )]
    DerivedLost {
        session: u64,
        /// First number that this instance may have to send.
        expected: u64,
        found: u64,
    },
    /// The stream lacks frames that the client or node has seen: it was restored from an older copy, or has lost
    /// frames. Messages in flight are not resent; begin with a new client or node.
    #[error("{}", seen.missing_reason(peer, *released_sequence))]
    OtherHistory {
        /// The service, the sequencer or the relay.
        peer: String,
        seen: SeenFrame,
        /// Last released sequence of the peer's stream; 0 if that is not known.
        released_sequence: u64,
    },
    /// The address leads to another stream, or the stream was restored. Check the address; sessions and sequences of
    /// the old stream do not apply to the new one.
    #[error(
        "{peer} serves stream {:032x} in incarnation {:016x}, not {:032x} in {:016x}",
        found.stream_id, found.incarnation, expected.stream_id, expected.incarnation
    )]
    OtherStream { peer: String, expected: gapless_log::StreamIdentity, found: gapless_log::StreamIdentity },
    /// Commands in flight may have taken effect or not; after the reconnection, a poll or [`crate::PolledClient::outcome`]
    /// shows it.
    #[error("{}", describe_disconnect(peer, reason.as_deref()))]
    Disconnected {
        /// Path of the socket, or "this process".
        peer: String,
        /// Reason of its failure, if known: in the same process, or over shared memory if it was sent before the
        /// process ended.
        reason: Option<String>,
    },
    /// Nothing was sent.
    #[error("session {session}: all {window_messages} commands of its window are in flight; poll for replies first")]
    WindowFull { session: u64, window_messages: u32 },
    /// The session stays open.
    #[error("session {session}: {in_flight} commands have no reply yet; poll for them before closing it")]
    InFlight { session: u64, in_flight: u32 },
    /// The peer is stopped, slow or unreachable. A control request may still take effect; a command was not sent.
    #[error("no answer from {peer} to {request} within {timeout_ms} ms")]
    TimedOut { peer: String, request: String, timeout_ms: u64 },
    /// Nothing was sent, or the session was lost while a command waited for its reply: that command may have taken
    /// effect.
    #[error("the session is not known to this client, was closed or has expired; open a new one with its token")]
    NoSuchSession(SessionKey),
    /// The number is not that of the last frame of a sent command, or belongs to an acknowledgement of notices. Nothing
    /// was sent; use a number that was returned for a command.
    #[error("session {session}: no command has the number {session_seq}; the next one gets {next_session_seq}")]
    NotSent { session: u64, session_seq: u64, next_session_seq: u64 },
    /// The number was recorded for another session. Nothing was sent; check in the service whether the command took
    /// effect before you send it under a new number.
    #[error(
        "command {number} cannot be sent in session {session}: it belongs to another session, and it is no longer \
         known whether it took effect there"
    )]
    OtherSession {
        number: CommandNumber,
        /// Session in which it was to be sent.
        session: u64,
    },
    /// Nothing was sent. Send less at a time, or raise the limit.
    #[error("a message of {length_bytes} bytes is longer than the limit of {limit_bytes}")]
    TooLong { length_bytes: usize, limit_bytes: usize },
    /// The service did not execute the command, so that a retry is safe. Exception: after `ReplyExpired` its outcome is
    /// unknown.
    #[error("refused ({code:?}{}): {reason}", if *detail == 0 { String::new() } else { format!(" {detail}") })]
    Refused {
        code: gapless_wire::control::RefusalCode,
        /// Code given by the application's handler, for a command that it has refused; 0 if it gave none.
        detail: u64,
        reason: String,
    },
    /// No effect: the service has no such request, or its types differ from the client's. Build both with the same types,
    /// or start the service's newer program.
    #[error("the service does not handle {name}, which had no effect: {difference}")]
    Mismatch {
        /// Name of the request.
        name: &'static str,
        /// First difference, with the versions of both sides.
        difference: String,
    },
    /// The command has taken effect once, or will, or never will. Do not send it under a new number: its reply may
    /// arrive at a later poll, and [`crate::PolledClient::outcome`] asks for it, also after a restart of this process.
    #[error("command {session_seq} was sent, but its outcome is unknown: {reason}")]
    OutcomeUnknown { session_seq: u64, reason: String },
    /// The reply is lost. Do not send the command under a new number; repeating it under its own number gives the same
    /// error.
    #[error(
        "the command took effect at sequence {sequence}, but its reply of {length_bytes} bytes is not kept: the limit \
         is {ANSWER_LENGTH_MAX} bytes; ask for less at a time"
    )]
    ReplyTooLong {
        /// Position of the command in the total order.
        sequence: u64,
        length_bytes: u64,
    },
    /// The reply is lost: this program's version of it cannot hold it. Do not send the command under a new number; update
    /// this program.
    #[error("the command took effect at sequence {sequence}, but its {reply} has no form in this program's version")]
    ReplyLost {
        /// Position of the command in the total order.
        sequence: u64,
        /// Name of the reply.
        reply: &'static str,
    },
    /// The message has another type than expected, or its sender another schema. Compare the schemas of both programs.
    #[error("the message is not a valid {expected}: {reason}")]
    Decode {
        /// Name of the message in its schema.
        expected: &'static str,
        /// Type found, or the fault.
        reason: String,
    },
    /// Commands cannot be kept, or kept ones cannot be read: the directory is in use, its file is damaged or belongs to
    /// another stream, or the disk refuses a record. Nothing is lost; follow the reason.
    #[error("{path}: {reason}")]
    Outbox {
        /// Path of the file, or of its directory.
        path: String,
        reason: String,
    },
    /// The message does not fit its schema. Nothing was sent.
    #[error("encoding the message: {0}")]
    Encode(String),
    /// The peer has broken the protocol. Reconnect; if the error remains, compare the versions of both programs.
    #[error("the service sent {what}")]
    Protocol { what: String },
}

/// No query changes anything: each may be repeated.
#[derive(Debug, thiserror::Error)]
pub enum QueryError<Refusal = NoRefusal> {
    /// The service has refused the query. Read the refusal.
    #[error("the service refused the query: {0:?}")]
    Refused(Refusal),
    /// The service has not handled the awaited frame in time. Ask again, or wait longer.
    #[error("the query waits for sequence {wanted}, and the service has handled {handled}; ask again")]
    Behind {
        /// Last handled sequence.
        handled: u64,
        /// Sequence that the query waits for.
        wanted: u64,
    },
    /// The connection has as many queries in flight as it may have. Take their answers first.
    #[error("as many queries are in flight as may be; take answers first")]
    Busy,
    /// The service has no such query, or its types differ from the client's. Build both with the same types, or start the
    /// service's newer program.
    #[error("the service does not handle {name}: {difference}")]
    Mismatch {
        /// Name of the query.
        name: &'static str,
        /// First difference, with the versions of both sides.
        difference: String,
    },
    /// No service answers queries there, the service does not say how its types differ, or its answer has no form in the
    /// client's version. Follow the reason.
    #[error("the query is not handled: {reason}")]
    Unhandled { reason: String },
    /// The handler panicked, or its answer cannot be sent. The service and its state are as before; mend the handler.
    #[error("the query failed: {reason}")]
    Failed { reason: String },
    /// No answer in time: the service is gone, or does not answer. Or the query awaits a sequence of an earlier
    /// incarnation of the stream. Follow the reason, and ask again.
    #[error("the query has no answer: {reason}")]
    Unavailable { reason: String },
    /// The query cannot be encoded or sent, or has no readable answer. Follow the reason, and ask again.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl QueryError {
    /// The same error of a query with refusals.
    #[must_use]
    pub fn with_refusal<Refusal>(self) -> QueryError<Refusal> {
        match self {
            Self::Refused(never) => match never {},
            Self::Behind { handled, wanted } => QueryError::Behind { handled, wanted },
            Self::Busy => QueryError::Busy,
            Self::Mismatch { name, difference } => QueryError::Mismatch { name, difference },
            Self::Unhandled { reason } => QueryError::Unhandled { reason },
            Self::Failed { reason } => QueryError::Failed { reason },
            Self::Unavailable { reason } => QueryError::Unavailable { reason },
            Self::Client(error) => QueryError::Client(error),
        }
    }
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
    format!("the service at {peer} {how}{why}; reconnect to continue with the same sessions")
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
