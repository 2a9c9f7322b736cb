//! Time of the stream: the leader sends it to the followers, so that time goes on evenly under another leader whose
//! clock differs (decision 8). Every member that knows it also sends it at a new connection: a restarted member knows
//! it before it can be elected.
//!
//! ```text
//!  0  u8   version, 1; seven bytes, 0
//!  8  u64  time of the stream, ns since the epoch
//! 16  u64  the term of the leader whose time it is, not 0
//! ```
//!
//! All numbers little-endian.

use super::MemberCore;
use crate::consensus::{MemberId, MemberRole};
use crate::link::MessageContent;
use crate::member::Member;

const SEND_INTERVAL_NS: u64 = 1_000_000_000;
/// Offset from which a warning is logged.
const FAR_OFF_NS: u64 = 1_000_000_000;

const VERSION: u8 = 1;
const MESSAGE_LENGTH: usize = 24;

#[derive(Debug, Default)]
pub(in crate::member) struct AnnouncedTime {
    next_ns: u64,
    is_far_off: bool,
    term: u64,
    /// Term whose time this member continued as a new leader; 0 if it had only its own clock and the last frame's time.
    pub from_term: u64,
}

impl AnnouncedTime {
    /// Sends the time at once. `last_term` is that of the last frame: without that leader's time, this member continues
    /// from the last frame's time.
    pub const fn begins_to_lead(&mut self, term: u64, last_term: u64) {
        self.from_term = if self.term < last_term { 0 } else { self.term };
        (self.next_ns, self.term) = (0, term);
    }
}

fn to_bytes(time_ns: u64, term: u64) -> [u8; MESSAGE_LENGTH] {
    let mut bytes = [0; MESSAGE_LENGTH];
    bytes[0] = VERSION;
    bytes[8..16].copy_from_slice(&time_ns.to_le_bytes());
    bytes[16..24].copy_from_slice(&term.to_le_bytes());
    bytes
}

fn from_bytes(bytes: &[u8]) -> Option<(u64, u64)> {
    let bytes = <&[u8; MESSAGE_LENGTH]>::try_from(bytes).ok()?;
    let (head, words) = bytes.split_at(8);
    let word = |at: usize| words[at..].first_chunk().map(|word| u64::from_le_bytes(*word));
    let said = word(0).zip(word(8).filter(|term| *term != 0));
    said.filter(|_| *head == [VERSION, 0, 0, 0, 0, 0, 0, 0])
}

impl MemberCore {
    /// The newest leader's time counts; a leader uses its own.
    pub fn receive_time(&mut self, from: MemberId, bytes: &[u8]) {
        let Some((time_ns, term)) = from_bytes(bytes) else {
            self.warn(from, &"it says no time");
            return;
        };
        if term < self.announced_time.term || !self.ingress.is_following() {
            return;
        }
        if self.ingress.observe_time(time_ns, self.now) {
            self.announced_time.term = term;
            self.warn_of_clock();
        } else {
            self.warn(from, &"it says a time that never is");
        }
    }

    fn warn_of_clock(&mut self) {
        let ahead_ns = self.ingress.time().ahead_ns(self.now).unwrap_or(0);
        let is_far_off = ahead_ns.unsigned_abs() >= FAR_OFF_NS;
        if is_far_off && !self.announced_time.is_far_off {
            tracing::warn!(
                ahead_s = ahead_ns / 1_000_000_000,
                "the stream's time is not that of this machine's clock; it goes on, and is led there slowly"
            );
        }
        self.announced_time.is_far_off = is_far_off;
    }
}

impl Member {
    pub(in crate::member) fn send_time_to(&mut self, member: u64) {
        if let Some(time_ns) = self.core.ingress.time().at(self.core.now) {
            // A member that is not connected is sent the time when it connects.
            let _ =
                self.links.send(member, MessageContent::Time, &to_bytes(time_ns, self.core.announced_time.term), &[]);
        }
    }

    #[inline]
    pub(in crate::member) fn send_time(&mut self) {
        if self.core.now.monotonic_ns >= self.core.announced_time.next_ns && self.core.role.role == MemberRole::Leader {
            self.send_time_to_all();
        }
    }

    #[cold]
    fn send_time_to_all(&mut self) {
        self.core.announced_time.next_ns = self.core.now.monotonic_ns + SEND_INTERVAL_NS;
        self.core.warn_of_clock();
        self.links.peers().collect::<Vec<_>>().into_iter().for_each(|peer| self.send_time_to(peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_round_trips() {
        let bytes = to_bytes(1_700_000_000_000_000_001, 7);
        assert_eq!(from_bytes(&bytes), Some((1_700_000_000_000_000_001, 7)));
        assert_eq!(from_bytes(&to_bytes(u64::MAX, 1)), Some((u64::MAX, 1)));
        assert_eq!(from_bytes(&to_bytes(1, 0)), None);
        assert_eq!(from_bytes(&bytes[..23]), None);
        assert_eq!(from_bytes(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(from_bytes(&[]), None);
        for at in 0..8 {
            let mut other = bytes;
            other[at] ^= 2;
            assert_eq!(from_bytes(&other), None, "byte {at}");
        }
    }
}
