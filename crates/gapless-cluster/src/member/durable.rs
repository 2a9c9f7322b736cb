//! [`Durable`]: syncs a member's journal to the device at tier `quorum-sync`: on the stream's sync thread, or by the
//! caller.

use crate::ClusterError;
use gapless_agent::{CpuMask, Waker};
use gapless_journal::Syncer;
use gapless_stream::syncer::{SyncRequests, SyncThread};

/// The sync of journaled polls, and the last poll on the device.
pub(crate) enum Durable {
    /// A thread, which blocks in a sync; everything journaled meanwhile is synced as the next group.
    Thread { requests: SyncRequests<u64>, _thread: SyncThread<u64> },
    /// The caller: the request of one turn is on the device at the next one.
    Caller(SyncByHand),
}

/// Syncs without a thread.
pub(crate) struct SyncByHand {
    syncer: Syncer,
    asked: u64,
    /// Poll that was requested before the last look.
    due: u64,
    done: u64,
}

impl Durable {
    /// Starts a thread, on `cpus` if given; it wakes `member` when a sync is done.
    pub fn start(syncer: Syncer, member: Waker, cpus: Option<CpuMask>) -> Result<Self, ClusterError> {
        let started = SyncThread::start(syncer, |_| {}, vec![member], cpus);
        let (thread, requests) = started.map_err(ClusterError::Agent)?;
        Ok(Self::Thread { requests, _thread: thread })
    }

    pub const fn by_hand(syncer: Syncer) -> Self {
        Self::Caller(SyncByHand { syncer, asked: 0, due: 0, done: 0 })
    }

    /// Requests a sync of everything up to the poll `number`, which is journaled.
    pub fn ask(&mut self, number: u64) {
        match self {
            Self::Thread { requests, .. } => requests.journaled(number),
            Self::Caller(by_hand) => by_hand.asked = number,
        }
    }

    /// Returns the poll up to which everything is on the device.
    pub fn done(&mut self) -> Result<u64, ClusterError> {
        match self {
            Self::Thread { requests, .. } => requests.synced().map_err(|reason| ClusterError::Sync { reason }),
            Self::Caller(by_hand) => {
                if by_hand.due > by_hand.done {
                    by_hand.syncer.sync()?;
                    by_hand.done = by_hand.due;
                }
                by_hand.due = by_hand.asked;
                Ok(by_hand.done)
            }
        }
    }
}
