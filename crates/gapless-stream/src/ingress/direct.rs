//! Commands of the caller that polls the [`Ingress`], by a call instead of a ring; the transaction is appended when it
//! returns. The session is an ordinary one.

use super::Ingress;
use crate::StreamError;
use crate::transactions::ExecutionResult;
use gapless_agent::Now;
use gapless_transport::link::ConnectionId;
use gapless_transport::token::random_token;
use gapless_wire::control::SessionOpen;
use gapless_wire::{FrameHeader, Kind};

/// The acceptor counts up from 0 and never reaches it.
const DIRECT: ConnectionId = ConnectionId(u32::MAX);

#[derive(Debug)]
pub struct DirectSession {
    session: u64,
    is_deferred: bool,
}

#[derive(Debug)]
pub enum DirectCommand<'a> {
    /// Readers see it after [`Ingress::publish`].
    Appended {
        last_sequence: u64,
        transaction: &'a [u8],
    },
    /// The service is not ready, or the window has no room: retry after a poll.
    NotYet,
    SessionUnknown,
}

impl Ingress {
    /// Time of the commands that follow, up to the next poll.
    #[inline]
    pub fn set_now(&mut self, now: Now) {
        self.now = self.time.lead(now);
    }

    /// Opens a session; `None` while the service is not ready, or the window has no room.
    ///
    /// # Errors
    /// The window is corrupt.
    pub fn open_direct(&mut self) -> Result<Option<DirectSession>, StreamError> {
        if !self.may_append() {
            return Ok(None);
        }
        let open = SessionOpen { token: random_token(), window_messages: 1, shared: false, notices_seen: 0 };
        let session = self.sequencer.last_sequence() + 1;
        let Some(sequence) = self.append_own(Kind::SessionOpen, session, &open.to_bytes())? else { return Ok(None) };
        self.sequencer.open(sequence, &open, DIRECT);
        Ok(Some(DirectSession { session, is_deferred: false }))
    }

    /// Runs the next command and appends its transaction.
    ///
    /// # Errors
    /// The window is corrupt.
    ///
    /// # Panics
    /// Without speculative execution.
    #[inline]
    pub fn direct_command(
        &mut self,
        direct: &mut DirectSession,
        schema: u32,
        payload: &[u8],
    ) -> Result<DirectCommand<'_>, StreamError> {
        if !self.may_append() || !self.has_room_for_transaction()? {
            return Ok(DirectCommand::NotYet);
        }
        let Self { sequencer, window, speculation, now, links, .. } = self;
        let speculation = speculation.as_mut().expect("commands that are handed in have a service to run them");
        let session = direct.session;
        let Ok(session_seq) = sequencer.expected(session, DIRECT) else { return Ok(DirectCommand::SessionUnknown) };
        if direct.is_deferred {
            while let Some(ready) = speculation.transactions.ready() {
                direct.is_deferred &= ready != session;
            }
            if direct.is_deferred {
                return Ok(DirectCommand::NotYet);
            }
        }
        let last_timestamp_ns = sequencer.last_timestamp_ns();
        let (sequence, timestamp_ns) = sequencer.stamp(now.epoch_ns);
        let term = sequencer.term();
        let mut header =
            FrameHeader { sequence, timestamp_ns, session, session_seq, term, schema, ..FrameHeader::default() };
        match speculation.run(&header, payload, sequencer, &links.counters) {
            ExecutionResult::Done => speculation.append(&mut header, window, sequencer, now.epoch_ns)?,
            ExecutionResult::Deferred => {
                sequencer.take_stamp_back(last_timestamp_ns);
                direct.is_deferred = true;
                return Ok(DirectCommand::NotYet);
            }
        }
        sequencer.count_message(session, 1);
        let last_sequence = sequencer.last_sequence();
        Ok(DirectCommand::Appended { last_sequence, transaction: speculation.transaction() })
    }
}
