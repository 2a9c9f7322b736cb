//! What can go wrong between publishers and the stream.

use gapless_journal::JournalError;
use gapless_log::LogError;

/// What can go wrong between publishers and the stream.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A window or ring failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The journal failed; the stream takes no more input.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The operating system refused.
    #[error("{action}: {source}")]
    System {
        /// What was being done, with the path where there is one.
        action: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The other side does not speak our handshake, or said no.
    #[error("handshake with {peer}: {reason}")]
    Handshake {
        /// The socket's path.
        peer: String,
        /// What was wrong.
        reason: String,
    },
    /// The service is gone.
    #[error("the service at {peer} is gone; reconnect to go on with the same sessions")]
    Disconnected {
        /// The socket's path, or "this process".
        peer: String,
    },
    /// As many commands are in flight as the session's window allows; poll for replies first.
    #[error("session {session}: {window_messages} commands are in flight, which is its window; poll for replies first")]
    WindowFull {
        /// The session.
        session: u64,
        /// Its window.
        window_messages: u32,
    },
    /// A session cannot be closed while commands have no reply.
    #[error("session {session}: {in_flight} commands have no reply yet; poll for them before closing it")]
    InFlight {
        /// The session.
        session: u64,
        /// How many.
        in_flight: u32,
    },
    /// No answer came in time.
    #[error("no answer from {peer} to {request} within {timeout_ms} ms")]
    TimedOut {
        /// The socket's path.
        peer: String,
        /// What was asked.
        request: String,
        /// The limit.
        timeout_ms: u64,
    },
    /// A key of another client, or of a session that is closed.
    #[error("this client has no session {0:?}")]
    NoSuchSession(crate::client::SessionKey),
    /// The command that was to be repeated is no longer kept.
    #[error("session {session}: command {session_seq} is no longer kept; the last {window_messages} are")]
    NotKept {
        /// The session.
        session: u64,
        /// The command.
        session_seq: u64,
        /// How many are kept.
        window_messages: u32,
    },
    /// The message does not fit the ring.
    #[error("a message of {length_bytes} bytes is longer than the limit of {limit_bytes}")]
    TooLong {
        /// What was asked for.
        length_bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// The service refused the command.
    #[error("refused ({code:?}): {reason}")]
    Refused {
        /// What kind of refusal.
        code: gapless_wire::control::RefusalCode,
        /// The service's text.
        reason: String,
    },
    /// The application's encoder failed.
    #[error("encoding the message: {0}")]
    Encode(String),
    /// The service broke the protocol.
    #[error("the service sent {what}")]
    Protocol {
        /// What it sent.
        what: String,
    },
}

impl StreamError {
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let action = action.into();
        move |errno| Self::System { action, source: errno.into() }
    }
}
