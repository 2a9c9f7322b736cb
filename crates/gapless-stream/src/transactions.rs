//! [`Transactions`]: speculative execution of a service. Where it leads, its handlers run before a command enters the
//! stream, and the transaction that they made enters it (decision 26).

use crate::sequencer::Sequencer;
use gapless_wire::{FrameHeader, control::TimerFired};

/// What has become of a command that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Its transaction is made.
    Done,
    /// It cannot be run yet; nothing has changed. It is dropped, and so is what its session sends behind it, until
    /// [`Transactions::ready`] names the session, whose publisher then sends all of it again. Other sessions go on.
    Later,
}

/// Runs handlers for an [`Ingress`](crate::Ingress) that leads, and makes transactions of their changes.
///
/// Everything happens in the order of the stream: each command is appended before the next is handed in, and nothing is
/// handed in before [`Transactions::poll`] has said that it can be run.
pub trait Transactions: Send {
    /// This member leads from now on, in `term`, after the frame `last_sequence`: the state is wanted as it is there.
    fn lead(&mut self, term: u64, last_sequence: u64);

    /// This member leads no more. The last frame that it appended is `last_sequence`; that may be cut.
    fn follow(&mut self, last_sequence: u64);

    /// Called in each turn of one that leads. Whether handlers can be run now, after the frame `last_sequence`.
    fn poll(&mut self, last_sequence: u64) -> bool;

    /// Runs the handler of the command with this `header`: its sequence and time are those of the first frame of the
    /// transaction, its `session_seq` the last of the command. Appends the transaction to `out`, which is empty: at most
    /// `length_max` bytes. `sequencer` knows which sessions are open.
    ///
    /// Of a command that is run there always is a transaction: one whose handler fails says that it was refused, and changes nothing.
    fn command(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> Execution;

    /// A command of a session that waits for [`Transactions::ready`], or a part of it, was dropped; it comes again.
    fn dropped(&mut self, _header: &FrameHeader, _payload: &[u8]) {}

    /// A session that waits does not come any more: its publisher has gone, or it is closed.
    fn gone(&mut self, _session: u64) {}

    /// A session of which a command could not be run before, and can be now; each once. Asked in each turn, behind
    /// [`Transactions::poll`].
    fn ready(&mut self) -> Option<u64> {
        None
    }

    /// The stream has got the mark from which on the service acts as this version.
    fn become_version(&mut self, _version: u32) {}

    /// Whether this timer is still set. One that is not has no place in the stream.
    fn is_set(&self, fired: TimerFired) -> bool;

    /// As [`Transactions::command`], for a timer that is set.
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
