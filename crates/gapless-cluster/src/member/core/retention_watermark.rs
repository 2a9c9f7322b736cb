//! Retention watermark of a witness: the sequence up to which all full members have the frames, so that they may be
//! deleted from its journal. When the primary is lost, the witness may be the only member with a frame that the backup
//! lacks; so the leader reports the progress of the full members to the witnesses (decision 9).
//!
//! ```text
//!  0  u8   version, 1; seven bytes, 0
//!  8  u64  up to this sequence every full member that votes has journaled all frames
//! ```
//!
//! All numbers little-endian.

use super::MemberCore;
use crate::consensus::{MemberId, MemberRole};
use crate::link::MessageContent;
use crate::member::Member;

const SEND_INTERVAL_NS: u64 = 1_000_000_000;

const VERSION: u8 = 1;
const MESSAGE_LENGTH: usize = 16;

fn to_bytes(sequence: u64) -> [u8; MESSAGE_LENGTH] {
    let mut bytes = [0; MESSAGE_LENGTH];
    bytes[0] = VERSION;
    bytes[8..].copy_from_slice(&sequence.to_le_bytes());
    bytes
}

fn from_bytes(bytes: &[u8]) -> Option<u64> {
    let bytes = <&[u8; MESSAGE_LENGTH]>::try_from(bytes).ok()?;
    let sequence = bytes.last_chunk().map(|word| u64::from_le_bytes(*word));
    sequence.filter(|_| bytes[..8] == [VERSION, 0, 0, 0, 0, 0, 0, 0])
}

impl MemberCore {
    /// Used by witnesses alone.
    pub fn receive_retention_watermark(&mut self, from: MemberId, bytes: &[u8]) {
        match from_bytes(bytes) {
            Some(sequence) if self.role.leader == Some(from) => self.raise_retention_watermark(sequence),
            Some(_) => {}
            None => self.warn(from, &"its retention watermark cannot be read"),
        }
    }

    fn raise_retention_watermark(&self, sequence: u64) {
        if let Some(watermark) = &self.retention_watermark {
            watermark.mark_covered(sequence);
        }
    }

    fn replicated_to_full_members(&self) -> u64 {
        let (status, members) = (self.consensus.status(), self.consensus.members());
        let has = |member: MemberId| {
            if member == self.member {
                return self.journal.last_sequence();
            }
            let peer = status.peers.iter().find(|peer| peer.member == member);
            // Before the start of the log the sequence is unknown.
            let peer = peer.filter(|peer| peer.matched_index >= status.start.index.max(1));
            peer.map_or(0, |peer| peer.matched_sequence)
        };
        let full =
            members.all().into_iter().filter(|member| members.is_voter(*member) && !members.witnesses.contains(member));
        full.map(has).min().unwrap_or(0).min(self.released_sequence)
    }
}

impl Member {
    pub(in crate::member) fn send_retention_watermark(&mut self) {
        let core = &mut self.core;
        if core.now.monotonic_ns < core.next_watermark_ns || core.role.role != MemberRole::Leader {
            return;
        }
        core.next_watermark_ns = core.now.monotonic_ns + SEND_INTERVAL_NS;
        let witnesses = core.consensus.members().witnesses.to_vec();
        if witnesses.is_empty() {
            return;
        }
        let sequence = core.replicated_to_full_members();
        core.raise_retention_watermark(sequence);
        for witness in witnesses {
            // A watermark that is not sent is sent the next time.
            let _ = self.links.send(witness.get(), MessageContent::RetentionWatermark, &to_bytes(sequence), &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermark_round_trips() {
        let bytes = to_bytes(1 << 40 | 7);
        assert_eq!(from_bytes(&bytes), Some(1 << 40 | 7));
        assert_eq!(from_bytes(&to_bytes(0)), Some(0));
        assert_eq!(from_bytes(&bytes[..15]), None);
        assert_eq!(from_bytes(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(from_bytes(&[]), None);
        for at in 0..8 {
            let mut other = bytes;
            other[at] ^= 2;
            assert_eq!(from_bytes(&other), None, "byte {at}");
        }
    }
}
