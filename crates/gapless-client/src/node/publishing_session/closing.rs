//! The end of a publisher's session. The close is kept like a message until it comes back, so it enters the stream
//! once, even if packets are lost. After a close was requested, only that session is reopened, by its number. The token
//! alone could open another session if the stream has the close already, and that session would stay open.

use super::PublishingSession;
use crate::ClientError;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseState {
    Open,
    /// The close is kept until it comes back.
    Requested,
    Closed,
}

/// A session made by an open that arrived after the close: the open was duplicated on its way, or late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StraySession {
    pub session: u64,
    pub next_session_seq: u64,
}

impl PublishingSession {
    /// Publishes the session's close, once.
    pub fn close(&mut self, now_ns: u64) -> Result<(), ClientError> {
        if self.end != CloseState::Open {
            return Ok(());
        }
        if self.options.shared {
            let reason = "several processes publish under the session; none of them closes it".to_owned();
            return Err(ClientError::Option { option: "shared", reason });
        }
        let Some(session) = self.session.filter(|_| self.was_opened) else { return Err(ClientError::NotOpen) };
        self.keep_close(session, now_ns)?;
        self.end = CloseState::Requested;
        Ok(())
    }

    fn keep_close(&mut self, session: u64, now_ns: u64) -> Result<(), ClientError> {
        let header = FrameHeader {
            kind: Kind::SessionClose,
            session,
            session_seq: self.unacknowledged.next_number(),
            ..FrameHeader::default()
        };
        if self.unacknowledged.is_empty() {
            self.progress_ns = now_ns;
        }
        let full = ClientError::KeptFull { bytes_max: self.options.kept_bytes_max };
        let claim = self.unacknowledged.claim(HEADER_LENGTH).ok_or(full)?;
        let length = FrameWriter::new(claim).finish(&header, 0);
        self.unacknowledged.commit(aligned_length(length), true);
        Ok(())
    }

    /// Reports once that the session was closed with messages in flight.
    ///
    /// # Errors
    /// [`ClientError::SessionExpired`] in that case.
    #[inline]
    pub fn check_lost(&mut self) -> Result<(), ClientError> {
        match self.lost.take() {
            None => Ok(()),
            Some((session, first_lost)) => Err(ClientError::SessionExpired { session, first_lost }),
        }
    }

    /// Whether the session's close has come back.
    pub fn is_closed(&self) -> bool {
        self.end == CloseState::Closed
    }

    /// Handles the stream's close of the session. Kept messages other than our close have not come back before it, so
    /// they are not in the stream and never will be.
    pub fn closed(&mut self, now_ns: u64) {
        if let Some(session) = self.session.filter(|_| self.in_flight() > 0) {
            self.lost = Some((session, self.unacknowledged.first_number()));
        }
        self.ended = self.session.unwrap_or(self.ended);
        self.session = None;
        (self.is_attached, self.was_opened) = (false, false);
        self.open_sent_ns = None;
        self.unacknowledged.restart(1);
        (self.next_to_send, self.accepted) = (1, 0);
        if self.end != CloseState::Open {
            self.end = CloseState::Closed;
            self.close_stray(now_ns);
        }
    }

    #[cold]
    pub(super) fn close_stray(&mut self, now_ns: u64) {
        let Some(StraySession { session, next_session_seq }) = self.stray.take() else { return };
        self.session = Some(session);
        self.unacknowledged.restart(next_session_seq);
        (self.next_to_send, self.accepted) = (next_session_seq, next_session_seq - 1);
        self.keep_close(session, now_ns).expect("nothing else is kept");
        self.end = CloseState::Requested;
    }
}
