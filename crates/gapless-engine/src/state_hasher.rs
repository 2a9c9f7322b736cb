//! [`StateHasher`]: hashes the state after every n-th sequence. A cluster member whose hash differs is no longer a fold
//! over the stream.

use crate::fold::Fold;
use crate::snapshot;
use crate::store::hash::content_hash;
use gapless_log::StreamIdentity;
use gapless_stream::member_service::StateHash;
use gapless_transport::mailbox::Mailbox;
use std::num::NonZero;

pub struct StateHasher {
    interval_frames: NonZero<u64>,
    identity: StreamIdentity,
    member: Mailbox<StateHash>,
}

impl StateHasher {
    /// Hashes after each multiple of `interval_frames`; `None` for 0.
    #[must_use]
    pub fn new(interval_frames: u64, identity: StreamIdentity, member: Mailbox<StateHash>) -> Option<Self> {
        Some(Self { interval_frames: NonZero::new(interval_frames)?, identity, member })
    }

    #[inline]
    pub fn after_frame(&self, fold: &Fold) {
        if fold.last_sequence() % self.interval_frames == 0 {
            self.hash(fold);
        }
    }

    #[cold]
    fn hash(&self, fold: &Fold) {
        // Exactly the contents of a snapshot, all that recovery restores.
        let (snapshot, form) = snapshot::encode_with_form(fold, self.identity);
        let hash = content_hash(&snapshot);
        // A member with a full mailbox compares the next hash.
        let _ = self.member.push(StateHash { sequence: fold.last_sequence(), form, hash });
    }
}
