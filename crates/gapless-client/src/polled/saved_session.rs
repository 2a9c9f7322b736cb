//! `SavedSession`: data of a session that a process keeps, so that its successor can resume it.

use super::PolledClient;
use crate::ClientError;
use crate::session_key::SessionKey;
use gapless_agent::fault::mutant;
use gapless_log::StreamIdentity;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{u32_at, u64_at, u128_at};

/// A session as a process saves it with its own state. Possession gives access to the session: treat it as a secret.
///
/// ```text
///  0  u128 token            names the session before it has an identifier
/// 16  u128 stream id        0 before the session was opened
/// 32  u64  incarnation      the same
/// 40  u64  session          its identifier; the same
/// 48  u64  sequence         of the last frame that the client has seen; 0 for none
/// 56  u64  time stamp       of that frame, ns since the epoch
/// 64  u32  window_messages  commands that may be in flight
/// 68  u32  CRC-32C of everything before
/// ```
/// All numbers little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedSession {
    pub token: u128,
    /// Commands that may be in flight, 1..=64.
    pub window_messages: u32,
    /// 0 before the session was opened.
    pub session: u64,
    /// Last frame that the client has seen; zeros before the session was opened.
    pub seen: SeenFrame,
}

impl SavedSession {
    pub const LENGTH: usize = 72;

    /// Save it before opening, and the value of [`PolledClient::saved_session`] afterwards.
    #[must_use]
    pub fn new(token: u128, window_messages: u32) -> Self {
        Self { token, window_messages, session: 0, seen: SeenFrame::default() }
    }

    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..16].copy_from_slice(&self.token.to_le_bytes());
        let SeenFrame { identity, sequence, timestamp_ns } = self.seen;
        bytes[16..32].copy_from_slice(&identity.stream_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&identity.incarnation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.session.to_le_bytes());
        bytes[48..56].copy_from_slice(&sequence.to_le_bytes());
        bytes[56..64].copy_from_slice(&timestamp_ns.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.window_messages.to_le_bytes());
        let sum = crc32c(&bytes[..68]);
        bytes[68..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses the output of [`SavedSession::to_bytes`].
    ///
    /// # Errors
    /// [`ClientError::Option`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ClientError> {
        Self::read(bytes).ok_or_else(|| ClientError::Option {
            option: "saved session",
            reason: format!(
                "{} bytes with a checksum over them are expected; these {} are damaged",
                Self::LENGTH,
                bytes.len()
            ),
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = bytes.try_into().ok()?;
        if crc32c(&bytes[..68]) != u32_at(bytes, 68) {
            return None;
        }
        Some(Self {
            token: u128_at(bytes, 0),
            window_messages: u32_at(bytes, 64),
            session: u64_at(bytes, 40),
            seen: SeenFrame {
                identity: StreamIdentity::at(bytes, 16),
                sequence: u64_at(bytes, 48),
                timestamp_ns: u64_at(bytes, 56),
            },
        })
    }
}

impl PolledClient {
    /// `None` if the session is not open. Save it after each outcome, so that the next process detects a service that
    /// was restored to an earlier state.
    #[must_use]
    pub fn saved_session(&self, key: SessionKey) -> Option<SavedSession> {
        let session = self.sessions.get(key.index()).filter(|session| session.is_open())?;
        Some(SavedSession {
            token: session.token(),
            window_messages: session.window_messages(),
            session: session.id()?,
            seen: self.seen,
        })
    }

    /// A session of this stream that was not opened yet.
    pub(crate) fn unopened_session(&self, token: u128, window_messages: u32) -> SavedSession {
        SavedSession { seen: self.seen, ..SavedSession::new(token, window_messages) }
    }

    /// Resumes the session of a process that has died, or opens it if that process had not. The service takes nothing
    /// more from that process: frames that have not arrived yet never will.
    ///
    /// Before the first [`PolledClient::poll`] and the first new command, resolve each command without a saved outcome.
    ///
    /// # Errors
    /// As for [`PolledClient::open_session`].
    /// - [`ClientError::OtherStream`]: the session belongs to another stream, or to another incarnation of this one:
    ///   after a forced recovery, a restore, or at tier `memory` a restart;
    /// - [`ClientError::OtherHistory`]: the stream was restored and lacks history that the client had seen;
    /// - [`ClientError::NoSuchSession`]: the session has expired, was closed, or has another owner by now.
    ///
    /// In these cases it is unknown which commands are done.
    pub fn resume_session(&mut self, saved: &SavedSession) -> Result<SessionKey, ClientError> {
        let takes_any = mutant("take_any_session_for_its_own");
        let (expected, found) = (saved.seen.identity, self.link.welcome.identity);
        if saved.session != 0 && expected != found && !takes_any {
            return Err(ClientError::OtherStream { peer: self.peer(), expected, found });
        }
        if saved.seen.sequence > self.seen.sequence && expected == found {
            self.seen = saved.seen;
            if self.addresses.is_some() && self.environment.is_none() {
                self.reconnect()?;
            }
        }
        let key = self.open_session(saved.token, saved.window_messages)?;
        let found = self.saved_session(key).ok_or(ClientError::NoSuchSession(key))?;
        if [0, found.session].contains(&saved.session) || takes_any {
            return Ok(key);
        }
        self.by_id.remove(&found.session);
        self.sessions[key.index()].lost();
        Err(ClientError::NoSuchSession(key))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn saved_session_round_trip() {
        let identity = StreamIdentity { stream_id: 3 << 70, incarnation: 4 << 40 };
        let seen = SeenFrame { identity, sequence: 6 << 35, timestamp_ns: 7 << 40 };
        let saved = SavedSession { token: 1 << 100 | 7, window_messages: 16, session: 5 << 33, seen };
        let bytes = saved.to_bytes();
        assert_eq!(SavedSession::from_bytes(&bytes).unwrap(), saved);
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert!(SavedSession::from_bytes(&damaged).is_err(), "byte {at}");
        }
        assert!(SavedSession::from_bytes(&bytes[1..]).is_err());
        assert!(SavedSession::from_bytes(&[]).is_err());
    }
}
