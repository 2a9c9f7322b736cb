//! `JournalSync`: syncs a member's journal to the device at tier `quorum-sync`: on the stream's sync thread, or by the
//! caller.

use crate::ClusterError;
use gapless_agent::{CpuMask, Waker};
use gapless_journal::Syncer;
use gapless_stream::syncer::{SyncRequests, SyncThread};

/// Syncs journaled polls at tier `quorum-sync`.
pub(crate) enum JournalSync {
    /// Everything journaled during a sync is the next group.
    Thread { requests: SyncRequests<u64>, _thread: SyncThread<u64> },
    /// The request of one turn is on the device at the next.
    Caller(SyncOnTurn),
}

pub(crate) struct SyncOnTurn {
    syncer: Syncer,
    requested: u64,
    /// Poll that was requested before the last look.
    due: u64,
    done: u64,
}

impl JournalSync {
    /// On `cpus` if given; wakes `member` after a sync.
    pub fn start(syncer: Syncer, member: Waker, cpus: Option<CpuMask>) -> Result<Self, ClusterError> {
        let started = SyncThread::start(syncer, |_| {}, vec![member], cpus);
        let (thread, requests) = started.map_err(ClusterError::Agent)?;
        Ok(Self::Thread { requests, _thread: thread })
    }

    pub const fn by_hand(syncer: Syncer) -> Self {
        Self::Caller(SyncOnTurn { syncer, requested: 0, due: 0, done: 0 })
    }

    /// Syncs everything up to the journaled poll `number`.
    pub fn request(&mut self, number: u64) {
        match self {
            Self::Thread { requests, .. } => requests.journaled(number),
            Self::Caller(on_turn) => on_turn.requested = number,
        }
    }

    /// Returns the poll up to which everything is on the device.
    pub fn synced_number(&mut self) -> Result<u64, ClusterError> {
        match self {
            Self::Thread { requests, .. } => requests.synced().map_err(|reason| ClusterError::Sync { reason }),
            Self::Caller(on_turn) => {
                if on_turn.due > on_turn.done {
                    on_turn.syncer.sync()?;
                    on_turn.done = on_turn.due;
                }
                on_turn.due = on_turn.requested;
                Ok(on_turn.done)
            }
        }
    }
}
