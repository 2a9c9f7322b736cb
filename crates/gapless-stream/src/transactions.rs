//! [`Transactions`]: speculative execution of a service. On the leader its handlers run before a command enters the
//! stream, and the resulting transaction enters in its place (decision 26).

use crate::sequencer::Sequencer;
use gapless_wire::{FrameHeader, control::TimerFired};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionResult {
    Done,
    /// Cannot run yet; nothing has changed. The command is dropped with all later frames of its session. When
    /// [`Transactions::ready`] names the session, its publisher resends them. Other sessions continue.
    Deferred,
}

/// Runs handlers for an [`Ingress`](crate::Ingress) that leads, and makes transactions of their changes.
///
/// Calls follow the order of the stream: each command is appended before the next is passed in, and none is passed in
/// before [`Transactions::poll`] has returned true.
pub trait Transactions: Send {
    /// Starts leading in `term`, after the frame `last_sequence`: handlers need the state at that frame.
    fn lead(&mut self, term: u64, last_sequence: u64);

    /// Stops leading. The last frame appended here is `last_sequence`, and may be truncated.
    fn follow(&mut self, last_sequence: u64);

    /// Called in each turn of a leader. Returns whether handlers can run now, after the frame `last_sequence`.
    fn poll(&mut self, last_sequence: u64) -> bool;

    /// Runs the handler of the command with this `header`. Sequence and time are those of the transaction's first
    /// frame; `session_seq` is the last one of the command. Appends at most `length_max` bytes to `out`, which is
    /// empty. `sequencer` knows the open sessions.
    ///
    /// A command that is run always has a transaction: if its handler fails, the transaction records the refusal and
    /// changes nothing.
    fn command(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> ExecutionResult;

    /// Called when a command, or part of one, was dropped in a session that waits for [`Transactions::ready`]; it is
    /// resent.
    fn dropped(&mut self, _header: &FrameHeader, _payload: &[u8]) {}

    /// Called when a waiting session ends: its publisher has gone, or it was closed.
    fn gone(&mut self, _session: u64) {}

    /// Returns a session whose deferred command can run now, each once. Called in each turn, after
    /// [`Transactions::poll`].
    fn ready(&mut self) -> Option<u64> {
        None
    }

    /// Called for the mark from which on the service runs as this version.
    fn become_version(&mut self, _version: u32) {}

    /// Whether this timer is still set; a cancelled one must not enter the stream.
    fn is_set(&self, fired: TimerFired) -> bool;

    /// Like [`Transactions::command`], for a timer that is set.
    fn timer(
        &mut self,
        header: &FrameHeader,
        fired: TimerFired,
        sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    );

    /// Called when `session` has acknowledged its notices up to `number`.
    fn acknowledged(&mut self, session: u64, number: u64);

    fn closed(&mut self, session: u64);
}
