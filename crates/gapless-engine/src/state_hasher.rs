//! [`StateHasher`]: a hash of the state after each sequence that is a multiple of an interval. The members of a cluster
//! compare theirs: a state that differs is no fold of the stream any more.

use crate::fold::Fold;
use crate::snapshot;
use crate::store::hash::content_hash;
use gapless_log::StreamIdentity;
use gapless_stream::member_service::StateHash;
use gapless_transport::mailbox::Mailbox;
use std::num::NonZero;

/// Hashes the state at intervals, and hands the hash to the member.
pub struct StateHasher {
    interval_frames: NonZero<u64>,
    identity: StreamIdentity,
    member: Mailbox<StateHash>,
}

impl StateHasher {
    /// Hashes for `member`, after each multiple of `interval_frames`; none for 0.
    #[must_use]
    pub fn new(interval_frames: u64, identity: StreamIdentity, member: Mailbox<StateHash>) -> Option<Self> {
        Some(Self { interval_frames: NonZero::new(interval_frames)?, identity, member })
    }

    /// The fold has applied a frame.
    #[inline]
    pub fn after_frame(&self, fold: &Fold) {
        if fold.last_sequence() % self.interval_frames == 0 {
            self.hash(fold);
        }
    }

    #[cold]
    fn hash(&self, fold: &Fold) {
        // Everything that a snapshot holds: what a recovery does not restore need not be compared.
        let hash = content_hash(&snapshot::encode(fold, self.identity));
        // A member whose mailbox is full is busy; it compares the next hash.
        let _ = self.member.push(StateHash { sequence: fold.last_sequence(), hash });
    }
}
