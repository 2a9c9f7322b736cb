//! One command and its reply, for callers that have nothing else to do meanwhile.

use super::{Client, Incoming, MessageType, OwnedReply, SessionKey};
use crate::StreamError;
use std::time::{Duration, Instant};

/// A token for a new session: random, so that nobody else has it.
///
/// # Panics
/// If the operating system has no random numbers.
#[must_use]
pub fn random_token() -> u128 {
    let mut bytes = [0u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    assert_eq!(filled, Ok(bytes.len()), "the operating system has random numbers");
    u128::from_le_bytes(bytes).max(1)
}

impl Client {
    /// Sends `payload` and waits for the reply. A service that is restarted meanwhile is connected to
    /// again; the command has its effect once.
    ///
    /// Other messages that arrive meanwhile are dropped: who wants them uses [`Client::send`] and
    /// [`Client::poll`].
    ///
    /// # Errors
    /// [`StreamError::Refused`] if the service refused; no reply within `timeout`; the service is gone
    /// and does not come back.
    pub fn call(
        &mut self,
        key: SessionKey,
        message: MessageType,
        payload: &[u8],
        timeout: Duration,
    ) -> Result<OwnedReply, StreamError> {
        let number = self.send(key, message, payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok(payload.len())
        })?;
        let deadline = Instant::now() + timeout;
        let mut answer = None;
        loop {
            let polled = self.poll(usize::MAX, |incoming| match incoming {
                Incoming::Reply { session, reply, .. } if session == key && reply.session_seq == number => {
                    answer = Some(match reply.refusal {
                        Some(refusal) => {
                            Err(StreamError::Refused { code: refusal.code, reason: refusal.text.to_owned() })
                        }
                        None => Ok(OwnedReply {
                            sequence: reply.sequence,
                            timestamp_ns: reply.timestamp_ns,
                            schema: reply.schema,
                            encoding: reply.encoding,
                            payload: reply.payload.to_vec(),
                        }),
                    });
                }
                Incoming::SessionLost { session } if session == key => {
                    answer = Some(Err(StreamError::NoSuchSession(key)));
                }
                _ => {}
            });
            if let Some(answer) = answer {
                return answer;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let timeout_ms = timeout.as_millis() as u64;
                return Err(StreamError::TimedOut { peer: self.peer(), request: "a command".to_owned(), timeout_ms });
            }
            match polled.and_then(|_| self.wait(left)) {
                Err(StreamError::Disconnected { .. }) => self.reconnect()?,
                other => other?,
            }
        }
    }
}
