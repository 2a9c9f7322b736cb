//! [`Transactions`]: speculative execution. On the leader a service's handlers run before a command enters the stream,
//! and the resulting transaction enters in its place (decision 26).

use crate::sequencer::Sequencer;
use gapless_wire::{FrameHeader, control::TimerFired};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionResult {
    Done,
    /// Cannot run yet; nothing has changed. The command is dropped with all later frames of its session. When
    /// [`Transactions::ready`] names the session, its publisher resends them. Other sessions continue.
    Deferred,
}

/// Makes transactions for an [`Ingress`](crate::Ingress) that leads. Each command is appended before the next is passed
/// in, and none is before [`Transactions::poll`] has returned true.
pub trait Transactions: Send {
    /// Starts leading; handlers need the state at `last_sequence`.
    fn lead(&mut self, term: u64, last_sequence: u64);

    /// Stops leading; the last frame here may be truncated.
    fn follow(&mut self, last_sequence: u64);

    /// Whether handlers can run now, after `last_sequence`; called in each turn of a leader.
    fn poll(&mut self, last_sequence: u64) -> bool;

    /// Answers queries of the state after all appended frames; called after [`Transactions::poll`] has returned true.
    fn answer_queries(&mut self, _last_sequence: u64, _last_timestamp_ns: u64) {}

    /// Runs the command's handler; `header` has sequence and time of the transaction's first frame, and the last
    /// `session_seq` of the command. Appends at most `length_max` bytes to `out`, which is empty. A failing handler has
    /// a transaction, too: it records the refusal.
    fn command(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> ExecutionResult;

    /// A command, or a part, was dropped in a session that waits for [`Transactions::ready`]; it is resent.
    fn dropped(&mut self, _header: &FrameHeader, _payload: &[u8]) {}

    /// A waiting session's publisher has gone, or closed it.
    fn gone(&mut self, _session: u64) {}

    /// Session whose deferred command can run now, each once; called after [`Transactions::poll`].
    fn ready(&mut self) -> Option<u64> {
        None
    }

    /// The service acts as this version from now on.
    fn become_version(&mut self, _version: u32) {}

    /// A cancelled timer must not enter the stream.
    fn is_set(&self, fired: TimerFired) -> bool;

    /// Like [`Transactions::command`], for a set timer.
    fn timer(
        &mut self,
        header: &FrameHeader,
        fired: TimerFired,
        sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    );

    /// `session` has acknowledged its notices up to `number`.
    fn acknowledged(&mut self, session: u64, number: u64);

    fn closed(&mut self, session: u64);
}
