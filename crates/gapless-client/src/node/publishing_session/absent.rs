//! Derived messages that neither the stream nor this process has, because a snapshot covered them too early or the
//! stream has lost them. Another instance can still publish them; without one, the wait must end.

use super::PublishingSession;
use crate::ClientError;

/// Messages from `number` up to the first one of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AbsentMessages {
    number: u64,
    /// `None` until the clock is read.
    since_ns: Option<u64>,
}

/// Longest wait for another instance to publish absent messages.
const ABSENT_NS_MAX: u64 = 30_000_000_000;

impl PublishingSession {
    /// Handles a request for a frame of a shared session. Returns whether kept frames are worth resending: not for a
    /// repeated request of an absent one, because each resending would cause the next request.
    pub(super) fn note_requested(&mut self, session_seq: u64) -> bool {
        if session_seq >= self.unacknowledged.first_number() {
            self.absent = None;
            return true;
        }
        if self.absent.is_some_and(|absent| absent.number == session_seq) {
            return false;
        }
        self.absent = Some(AbsentMessages { number: session_seq, since_ns: None });
        true
    }

    /// Whether [`PublishingSession::check_absent`] is worth reading the clock.
    #[inline]
    pub const fn has_absent(&self) -> bool {
        self.absent.is_some()
    }

    /// # Errors
    /// [`ClientError::DerivedLost`] if the stream has asked for the same absent message for [`ABSENT_NS_MAX`].
    #[cold]
    pub fn check_absent(&mut self, now_ns: u64) -> Result<(), ClientError> {
        let expected = self.unacknowledged.first_number();
        // Other instances publish them, or the request was late.
        self.absent = self.absent.filter(|absent| absent.number > self.accepted && self.is_attached);
        let (Some(absent), Some(session)) = (&mut self.absent, self.session) else { return Ok(()) };
        if now_ns.saturating_sub(*absent.since_ns.get_or_insert(now_ns)) < ABSENT_NS_MAX {
            return Ok(());
        }
        Err(ClientError::DerivedLost { session, expected, found: absent.number })
    }
}
