//! The close is kept like a message until it comes back. After it was requested, only that session is reopened, by its
//! number: the token could open another session, which would stay open.

use super::PublishingSession;
use crate::ClientError;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseState {
    Open,
    Requested,
    Closed,
}

/// Made by an open that arrived, duplicated or late, after the close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StraySession {
    pub session: u64,
    pub next_session_seq: u64,
}

impl PublishingSession {
    /// Publishes the close, once.
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

    /// Reports it once.
    ///
    /// # Errors
    /// [`ClientError::SessionExpired`] if the session was closed with messages in flight.
    #[inline]
    pub fn check_lost(&mut self) -> Result<(), ClientError> {
        match self.lost.take() {
            None => Ok(()),
            Some((session, first_lost)) => Err(ClientError::SessionExpired { session, first_lost }),
        }
    }

    /// True once the close has come back.
    pub fn is_closed(&self) -> bool {
        self.end == CloseState::Closed
    }

    /// Kept messages other than our close are not in the stream and never will be.
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
