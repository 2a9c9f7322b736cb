//! `OutputHash`: hash of the handlers' outputs.

use crate::dead_letters::DeadLetter;
use crate::sessions::{SessionEntry, StoredReply};
use gapless_wire::checksum::crc32c;

/// Each output contributes its type and length and the CRC-32C of its payload, which its frame has anyway, folded in by
/// 128-bit multiplications. Another payload of equal length has the same hash with probability 2⁻³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputHash(pub(super) u64);

/// Odd constants without a pattern.
const KEYS: [u64; 3] = [0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB, 0x8EBC_6AF0_9C88_C6E3];

impl OutputHash {
    pub const fn new() -> Self {
        Self(KEYS[0])
    }

    #[inline]
    fn fold(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * u128::from(KEYS[1]);
        self.0 = ((product as u64) ^ (product >> 64) as u64).wrapping_add(KEYS[2]);
    }

    #[inline]
    pub(super) fn add(&mut self, head: u64, length: usize, crc: u32) {
        self.fold(head);
        self.fold((length as u64) << 32 | u64::from(crc));
    }

    #[inline]
    pub fn reply(&mut self, reply: &StoredReply, payload_crc: u32) {
        self.add(u64::from(reply.schema) << 16 | u64::from(reply.flags), reply.payload.len(), payload_crc);
    }

    pub fn notice(&mut self, session: &SessionEntry) {
        if let Some(notice) = session.notices.back() {
            self.fold(session.session);
            let head = u64::from(notice.schema) << 16 | u64::from(notice.encoding.flags());
            self.add(head, notice.payload.len(), crc32c(&notice.payload));
        }
    }

    /// Without the reason, which no one but the operator reads.
    pub fn dead_letter(&mut self, letter: &DeadLetter) {
        self.fold(letter.sequence);
        self.fold(u64::from(letter.code as u32));
    }

    pub fn timer(&mut self, timer: u64, deadline_ns: u64) {
        self.fold(timer);
        self.fold(deadline_ns);
    }
}
