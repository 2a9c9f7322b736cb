//! Contents of the messages, and their account.

use super::protocol::{MessageAccount, Participant};
use gapless_client::node::Message;

/// Two numbers.
pub const PAYLOAD_BYTES_MIN: usize = 16;

/// One in this many messages is compared byte by byte while timed; the others only at both ends.
const MESSAGES_PER_WHOLE_CHECK: u64 = 64;

/// One publisher's bytes, with the message's number in front and, transformed, at the end.
pub struct PayloadPattern {
    template: Vec<u8>,
}

impl PayloadPattern {
    pub fn new(session: u64, payload_bytes: usize) -> Self {
        let mut state = mix(session);
        let template = std::iter::repeat_with(|| {
            state = mix(state);
            state as u8
        });
        Self { template: template.take(payload_bytes.max(PAYLOAD_BYTES_MIN)).collect() }
    }

    pub fn payload_bytes(&self) -> usize {
        self.template.len()
    }

    #[inline]
    pub fn write(&self, number: u64, payload: &mut [u8]) {
        let end = self.template.len() - 8;
        payload[8..end].copy_from_slice(&self.template[8..end]);
        payload[..8].copy_from_slice(&number.to_le_bytes());
        payload[end..].copy_from_slice(&turned(number).to_le_bytes());
    }

    #[inline]
    fn number(payload: &[u8]) -> Option<u64> {
        payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    #[inline]
    fn ends_are_right(&self, number: u64, payload: &[u8]) -> bool {
        payload.len() == self.template.len() && payload.last_chunk() == Some(&turned(number).to_le_bytes())
    }

    pub fn is_right(&self, number: u64, payload: &[u8]) -> bool {
        let end = self.template.len() - 8;
        Self::number(payload) == Some(number)
            && self.ends_are_right(number, payload)
            && payload[8..end] == self.template[8..end]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage<'a> {
    pub sequence: u64,
    pub session: u64,
    pub session_seq: u64,
    /// Checksum of the message's last frame, by its publisher.
    pub payload_crc: u32,
    pub payload: &'a [u8],
}

impl<'a> From<&Message<'a>> for ReceivedMessage<'a> {
    #[inline]
    fn from(message: &Message<'a>) -> Self {
        let Message { sequence, session, session_seq, payload_crc, payload, .. } = *message;
        Self { sequence, session, session_seq, payload_crc, payload }
    }
}

pub struct MessageTally {
    publishers: Vec<(u64, PayloadPattern)>,
    account: MessageAccount,
    latest: usize,
    total: u64,
    last_sequence: u64,
    checks_whole: bool,
}

impl MessageTally {
    /// `checks_whole` compares each message byte by byte, which belongs outside a clock.
    pub fn new(participants: &[Participant], checks_whole: bool) -> Self {
        let publishers: Vec<_> = participants
            .iter()
            .map(|each| (each.session, PayloadPattern::new(each.session, each.payload_bytes)))
            .collect();
        let account = MessageAccount { seen: vec![0; publishers.len()], ..MessageAccount::default() };
        Self { publishers, account, latest: 0, total: 0, last_sequence: 0, checks_whole }
    }

    #[inline]
    pub const fn total(&self) -> u64 {
        self.total
    }

    pub fn has_each(&self, count: u64) -> bool {
        self.account.seen.iter().all(|seen| *seen >= count)
    }

    /// `false` if the message is no participant's. Always inlined: else its parts would pass through memory, at a tenth
    /// of the cost of a message.
    #[inline(always)]
    pub fn take(&mut self, seen: ReceivedMessage<'_>) -> bool {
        if self.publishers.get(self.latest).is_none_or(|(session, _)| *session != seen.session)
            && !self.find(seen.session)
        {
            return false;
        }
        let index = self.latest;
        let pattern = &self.publishers[index].1;
        let due = self.account.seen[index];
        self.total += 1;
        self.account.seen[index] = due + 1;
        let whole = self.checks_whole || self.total.is_multiple_of(MESSAGES_PER_WHOLE_CHECK);
        let is_due = PayloadPattern::number(seen.payload) == Some(due) && seen.sequence > self.last_sequence;
        let ends_are_right = pattern.ends_are_right(due, seen.payload);
        if !is_due || !ends_are_right || (whole && !pattern.is_right(due, seen.payload)) {
            self.take_wrong(index, due, seen.payload);
        }
        self.last_sequence = seen.sequence;
        // Each step includes the sum so far, so the order matters.
        let step = seen.sequence.rotate_left(40) ^ seen.session.rotate_left(20) ^ seen.session_seq;
        let step = step ^ u64::from(seen.payload_crc) << 32;
        self.account.checksum = (self.account.checksum ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        true
    }

    #[inline(never)]
    fn find(&mut self, session: u64) -> bool {
        let found = self.publishers.iter().position(|(each, _)| *each == session);
        self.latest = found.unwrap_or(self.latest);
        found.is_some()
    }

    #[cold]
    fn take_wrong(&mut self, index: usize, due: u64, payload: &[u8]) {
        match PayloadPattern::number(payload) {
            Some(found) if found > due && self.publishers[index].1.is_right(found, payload) => {
                self.account.lost += found - due;
                self.account.seen[index] = found + 1;
            }
            Some(found) if found < due && self.publishers[index].1.is_right(found, payload) => {
                self.account.duplicated += 1;
                self.account.seen[index] = due;
            }
            _ => self.account.wrong += 1,
        }
    }

    pub fn account(&self) -> MessageAccount {
        self.account.clone()
    }
}

/// Differs from the number in front at next to no cost.
#[inline]
const fn turned(number: u64) -> u64 {
    number.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15
}

/// The finalizer of MurmurHash3: a bijection that spreads every bit.
#[inline]
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTICIPANTS: [Participant; 2] =
        [Participant { session: 2, payload_bytes: 64 }, Participant { session: 3, payload_bytes: 16 }];

    fn seen(tally: &mut MessageTally, sequence: u64, session: u64, number: u64, spoil: Option<usize>) -> bool {
        let bytes = PARTICIPANTS.iter().find(|each| each.session == session).map_or(16, |each| each.payload_bytes);
        let mut payload = vec![0; bytes];
        PayloadPattern::new(session, bytes).write(number, &mut payload);
        if let Some(at) = spoil {
            payload[at] ^= 1;
        }
        tally.take(ReceivedMessage { sequence, session, session_seq: number + 1, payload_crc: 7, payload: &payload })
    }

    #[test]
    fn messages_in_order_are_right() {
        let mut tally = MessageTally::new(&PARTICIPANTS, true);
        for number in 0..200 {
            assert!(seen(&mut tally, 10 + 3 * number, 2, number, None));
            assert!(seen(&mut tally, 11 + 3 * number, 3, number, None));
            assert!(!seen(&mut tally, 12 + 3 * number, 4, number, None), "no participant");
        }
        let MessageAccount { seen, lost, duplicated, wrong, .. } = tally.account();
        assert_eq!((seen, lost, duplicated, wrong), (vec![200, 200], 0, 0, 0));
        assert!(tally.has_each(200) && !tally.has_each(201) && tally.total() == 400);
    }

    #[test]
    fn message_faults_are_told_apart() {
        let mut tally = MessageTally::new(&PARTICIPANTS, true);
        for (sequence, number) in [(1, 0), (2, 2), (3, 2), (4, 3)] {
            seen(&mut tally, sequence, 2, number, None);
        }
        for at in [0, 30, 63] {
            seen(&mut tally, 5 + at as u64, 2, 4 + u64::from(at > 0) + u64::from(at > 30), Some(at));
        }
        let MessageAccount { lost, duplicated, wrong, .. } = tally.account();
        assert_eq!((lost, duplicated, wrong), (1, 1, 3));
    }

    #[test]
    fn checksum_depends_on_order() {
        let checksum = |sequences: [u64; 2], sessions: [u64; 2]| {
            let mut tally = MessageTally::new(&PARTICIPANTS, false);
            seen(&mut tally, sequences[0], sessions[0], 0, None);
            seen(&mut tally, sequences[1], sessions[1], 0, None);
            tally.account().checksum
        };
        let all = [checksum([1, 2], [2, 3]), checksum([1, 2], [3, 2]), checksum([1, 3], [2, 3])];
        assert!(all[0] != all[1] && all[0] != all[2] && all[0] == checksum([1, 2], [2, 3]));
    }
}
