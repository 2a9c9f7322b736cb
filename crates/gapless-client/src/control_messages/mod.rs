//! Messages for controlling a stream: requests and answers over the stream's Unix socket, one message each way,
//! little-endian. A user with permission to open the socket may control the stream.
//!
//! ```text
//!  ControlRequest (40 bytes and a text)     ControlAnswer (56 bytes)
//!   0  u64  magic "GAPCTRL\1"                0  u64  magic "GAPDONE\1"
//!   8  u32  command: 1 halt, 2 resume,       8  u32  status: 0 done, else see ControlStatus
//!           3 roll over, 4 end              12  u32  reserved, 0
//!  12  u32  length of the text, bytes       16  u128 stream id
//!  16  u128 stream id, 0 for any            32  u64  incarnation
//!  32  u64  incarnation, 0 for any          40  u64  sequence where it took effect
//!  40  …    text: of 1 the reason, UTF-8,   48  u64  process id of the sender
//!           up to 200 bytes; of 3 the name
//!           of the feed session, 10 bytes
//!           filled up with spaces; else none
//! ```
//!
//! The last byte of the magic is the version. A peer of another version gets an answer; any other message is counted,
//! and the connection closed.

pub mod nodes;

pub use nodes::{NodeRow, NodesAnswer, NodesRequest, StreamState};

use gapless_log::StreamIdentity;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::fields::{FieldWriter, u32_at, u64_at};
use gapless_wire::mark::REASON_LENGTH_MAX;

pub const REQUEST_MAGIC: u64 = u64::from_le_bytes(*b"GAPCTRL\x01");
pub const ANSWER_MAGIC: u64 = u64::from_le_bytes(*b"GAPDONE\x01");
/// Bytes of a request before its text.
pub const REQUEST_FIXED_LENGTH: usize = 40;
pub const REQUEST_LENGTH_MAX: usize = REQUEST_FIXED_LENGTH + REASON_LENGTH_MAX;
pub const ANSWER_LENGTH: usize = 56;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlCommand {
    /// Takes nothing from publishers from now on; frames not in the stream yet wait.
    Halt {
        /// Truncated to 200 bytes.
        reason: String,
    },
    Resume,
    /// Ends the open feed session and begins another.
    RollOver {
        /// Name that is not blank, and different from all kept ones.
        name: FeedSession,
    },
    /// Publishers' messages wait until another feed session begins.
    End,
}

impl ControlCommand {
    /// Name on the command line.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Halt { .. } => "halt",
            Self::Resume => "resume",
            Self::RollOver { .. } => "roll-over",
            Self::End => "end",
        }
    }
}

/// Fate of a request; the discriminant is the wire value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ControlStatus {
    /// Took effect at the answer's sequence.
    Done = 0,
    /// The stream was halted, or not halted, already; the answer's sequence is the stream's last one.
    Unchanged = 1,
    /// The process is a relay; only the sequencer can be controlled.
    Relay = 2,
    /// A service's stream has no feed sessions to control.
    Service = 3,
    /// The feed session has ended and no other has begun.
    Ended = 4,
    NameTaken = 5,
    OtherStream = 6,
    OtherIncarnation = 7,
    /// Too many requests are waiting.
    Busy = 8,
    OtherVersion = 9,
    /// The member is a follower; only the leader can be controlled.
    Follower = 10,
}

impl ControlStatus {
    pub const ALL: [Self; 11] = [
        Self::Done,
        Self::Unchanged,
        Self::Relay,
        Self::Service,
        Self::Ended,
        Self::NameTaken,
        Self::OtherStream,
        Self::OtherIncarnation,
        Self::Busy,
        Self::OtherVersion,
        Self::Follower,
    ];

    fn from_value(value: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as u32 == value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlOutcome {
    /// Number in the order of submission.
    pub number: u64,
    pub status: ControlStatus,
    /// Sequence at which it took effect, or the last one assigned. The outcome is reported once that frame is released.
    pub sequence: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRequest {
    pub command: ControlCommand,
    /// Addressed stream; zeros for any.
    pub identity: StreamIdentity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlAnswer {
    pub status: ControlStatus,
    pub identity: StreamIdentity,
    /// Sequence at which it took effect; see [`ControlStatus::Unchanged`]. 0 if it was refused.
    pub sequence: u64,
    pub process_id: u64,
}

/// Reason why bytes are not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRequestError {
    OtherVersion,
    Malformed,
}

impl ControlRequest {
    /// Accepts requests of any version.
    #[must_use]
    pub fn is_request_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(&REQUEST_MAGIC.to_le_bytes()[..7])
    }

    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let name;
        let (code, text) = match &self.command {
            ControlCommand::Halt { reason } => {
                (1u32, &reason.as_bytes()[..reason.floor_char_boundary(REASON_LENGTH_MAX)])
            }
            ControlCommand::Resume => (2, &[][..]),
            ControlCommand::RollOver { name: feed_session } => {
                name = feed_session.bytes();
                (3, &name[..])
            }
            ControlCommand::End => (4, &[][..]),
        };
        let mut bytes = Vec::with_capacity(REQUEST_LENGTH_MAX);
        FieldWriter::new(&mut bytes)
            .u64(REQUEST_MAGIC)
            .u32(code)
            .u32(text.len() as u32)
            .u128(self.identity.stream_id)
            .u64(self.identity.incarnation)
            .bytes(text);
        bytes
    }

    /// Parses a message.
    ///
    /// # Errors
    /// [`ControlRequestError`] unless the bytes are a valid request.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ControlRequestError> {
        if !Self::is_request_magic(bytes) {
            return Err(ControlRequestError::Malformed);
        }
        if bytes.get(7).is_some_and(|version| *version != REQUEST_MAGIC.to_le_bytes()[7]) {
            return Err(ControlRequestError::OtherVersion);
        }
        Self::parse_body(bytes).ok_or(ControlRequestError::Malformed)
    }

    fn parse_body(bytes: &[u8]) -> Option<Self> {
        let text = bytes.get(REQUEST_FIXED_LENGTH..)?;
        if text.len() != u32_at(bytes, 12) as usize {
            return None;
        }
        let command = match u32_at(bytes, 8) {
            1 if text.len() <= REASON_LENGTH_MAX => {
                ControlCommand::Halt { reason: std::str::from_utf8(text).ok()?.to_owned() }
            }
            2 if text.is_empty() => ControlCommand::Resume,
            3 => {
                let name = FeedSession::from_bytes(text.try_into().ok()?).filter(|name| !name.is_blank())?;
                ControlCommand::RollOver { name }
            }
            4 if text.is_empty() => ControlCommand::End,
            _ => return None,
        };
        Some(Self { command, identity: StreamIdentity::at(bytes, 16) })
    }
}

impl ControlAnswer {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ANSWER_LENGTH] {
        let mut bytes = [0; ANSWER_LENGTH];
        bytes[..8].copy_from_slice(&ANSWER_MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.status as u32).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.identity.stream_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.identity.incarnation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.process_id.to_le_bytes());
        bytes
    }

    /// `None` if it is malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != ANSWER_LENGTH || u64_at(bytes, 0) != ANSWER_MAGIC || u32_at(bytes, 12) != 0 {
            return None;
        }
        Some(Self {
            status: ControlStatus::from_value(u32_at(bytes, 8))?,
            identity: StreamIdentity::at(bytes, 16),
            sequence: u64_at(bytes, 40),
            process_id: u64_at(bytes, 48),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 7 << 100, incarnation: 9 };

    fn request(command: ControlCommand) -> ControlRequest {
        ControlRequest { command, identity: IDENTITY }
    }

    #[test]
    fn request_round_trip() {
        for command in [
            ControlCommand::Halt { reason: String::new() },
            ControlCommand::Halt { reason: "prices are wrong".to_owned() },
            ControlCommand::Resume,
            ControlCommand::RollOver { name: FeedSession::new("TUESDAY").unwrap() },
            ControlCommand::End,
        ] {
            let request = request(command);
            assert_eq!(ControlRequest::from_bytes(&request.to_bytes()), Ok(request));
        }
        let long = request(ControlCommand::Halt { reason: "é".repeat(150) }).to_bytes();
        assert_eq!(long.len(), REQUEST_LENGTH_MAX, "a longer reason is cut");
        assert!(ControlRequest::from_bytes(&long).is_ok());
    }

    #[test]
    fn malformed_request_is_refused() {
        let good = request(ControlCommand::RollOver { name: FeedSession::new("TUESDAY").unwrap() }).to_bytes();
        let changed = |offset: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[offset] = byte;
            ControlRequest::from_bytes(&bytes)
        };
        assert_eq!(changed(7, 2), Err(ControlRequestError::OtherVersion));
        assert_eq!(changed(0, b'X'), Err(ControlRequestError::Malformed));
        assert_eq!(changed(8, 0), Err(ControlRequestError::Malformed), "no such command");
        assert_eq!(changed(8, 4), Err(ControlRequestError::Malformed), "an end has no text");
        assert_eq!(changed(12, 9), Err(ControlRequestError::Malformed), "the text is longer than it says");
        assert_eq!(changed(40, b' '), Err(ControlRequestError::Malformed), "a name begins with a space");
        for length in 0..good.len() {
            assert!(ControlRequest::from_bytes(&good[..length]).is_err(), "{length} bytes");
        }
        let mut text = request(ControlCommand::Halt { reason: "x".to_owned() }).to_bytes();
        text[REQUEST_FIXED_LENGTH] = 0xff;
        assert_eq!(ControlRequest::from_bytes(&text), Err(ControlRequestError::Malformed), "no text");
    }

    #[test]
    fn answer_round_trip() {
        for status in ControlStatus::ALL {
            let answer = ControlAnswer { status, identity: IDENTITY, sequence: 12, process_id: 3 };
            assert_eq!(ControlAnswer::from_bytes(&answer.to_bytes()), Some(answer));
        }
        let answer = ControlAnswer { status: ControlStatus::Done, identity: IDENTITY, sequence: 12, process_id: 3 };
        for (offset, byte) in [(0, 0), (7, 2), (8, 99), (12, 1)] {
            let mut bytes = answer.to_bytes();
            bytes[offset] = byte;
            assert_eq!(ControlAnswer::from_bytes(&bytes), None, "byte {offset}");
        }
        assert_eq!(ControlAnswer::from_bytes(&answer.to_bytes()[..ANSWER_LENGTH - 1]), None);
    }
}
