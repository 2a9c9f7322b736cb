//! Commands of the caller that polls the [`Ingress`] itself: they come by a call and through no ring, and their transaction is there when
//! it returns. Its session is one like others, in the stream and out of it.

use super::Ingress;
use crate::StreamError;
use crate::transactions::Execution;
use gapless_agent::Now;
use gapless_transport::link::ConnectionId;
use gapless_transport::token::random_token;
use gapless_wire::control::SessionOpen;
use gapless_wire::{FrameHeader, Kind};

/// The acceptor counts up from 0, and never comes here.
const DIRECT: ConnectionId = ConnectionId(u32::MAX);

/// The session of the caller that polls.
#[derive(Debug)]
pub struct DirectSession {
    session: u64,
    /// Its last command could not be run, and it has not been named since.
    is_deferred: bool,
}

/// What has become of a command that was handed in by a call.
#[derive(Debug)]
pub enum DirectCommand<'a> {
    /// Its transaction is appended. Readers see it after [`Ingress::publish`].
    Appended {
        /// Of the transaction's last frame.
        last_sequence: u64,
        transaction: &'a [u8],
    },
    /// It cannot be run yet: the service is not ready for it, or the window has no room. Nothing has changed; it may after a poll.
    NotYet,
    /// The session has expired, or was never opened.
    SessionUnknown,
}

impl Ingress {
    /// Commands that follow, up to the next poll, come at this time.
    #[inline]
    pub fn turn_to(&mut self, now: Now) {
        self.now = self.time.lead(now);
    }

    /// Opens a session for commands that are handed in by calls. `None` while the service is not ready, or the window has no room.
    ///
    /// # Errors
    /// A corrupt window.
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

    /// Has the next command of `direct` run, and appends its transaction. `schema` is that of the command.
    ///
    /// # Errors
    /// A corrupt window.
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
            Execution::Done => speculation.append(&mut header, window, sequencer, now.epoch_ns)?,
            Execution::Later => {
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
