//! `ResendBuffer`: frames that a node has published and not seen in the stream yet, kept for resending.

use std::collections::VecDeque;

/// Numbers are consecutive; the buffer grows up to a limit.
pub(crate) struct ResendBuffer {
    buffer: Vec<u8>,
    bytes_max: usize,
    /// Positions never go back; modulo the buffer's length they are offsets.
    tail: u64,
    entries: VecDeque<BufferedFrame>,
    first_number: u64,
    /// Entries that complete a message.
    messages: usize,
}

#[derive(Clone, Copy)]
struct BufferedFrame {
    position: u64,
    length: u32,
    completes_message: bool,
}

const BUFFER_LENGTH_MIN: usize = 64 << 10;

impl ResendBuffer {
    /// The first frame gets `first_number`.
    pub fn new(bytes_max: usize, first_number: u64) -> Self {
        let bytes_max = bytes_max.next_power_of_two().max(BUFFER_LENGTH_MIN);
        let buffer = vec![0; BUFFER_LENGTH_MIN];
        Self { buffer, bytes_max, tail: 0, entries: VecDeque::new(), first_number, messages: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub const fn messages(&self) -> usize {
        self.messages
    }

    /// Bytes up to the end.
    pub fn bytes(&self) -> u64 {
        self.entries.front().map_or(0, |entry| self.tail - entry.position)
    }

    /// Number of the oldest kept frame, or of the next one.
    #[inline]
    pub const fn first_number(&self) -> u64 {
        self.first_number
    }

    #[inline]
    pub fn next_number(&self) -> u64 {
        self.first_number + self.entries.len() as u64
    }

    /// `None` beyond the limit.
    #[inline]
    pub fn claim(&mut self, length: usize) -> Option<&mut [u8]> {
        let length = length.next_multiple_of(8);
        let position = match self.place(length) {
            Some(position) => position,
            None => self.grow(length)?,
        };
        self.tail = position;
        let start = self.offset(position);
        Some(&mut self.buffer[start..start + length])
    }

    /// Keeps the frame in the last claim, `length` bytes with padding.
    #[inline]
    pub fn commit(&mut self, length: usize, completes_message: bool) -> &[u8] {
        let start = self.offset(self.tail);
        self.entries.push_back(BufferedFrame { position: self.tail, length: length as u32, completes_message });
        self.messages += usize::from(completes_message);
        self.tail += length as u64;
        &self.buffer[start..start + length]
    }

    /// The length is a power of two, because a division would cost as much as a checksum.
    #[inline]
    fn offset(&self, position: u64) -> usize {
        position as usize & (self.buffer.len() - 1)
    }

    #[inline]
    fn place(&self, length: usize) -> Option<u64> {
        let capacity = self.buffer.len() as u64;
        let offset = self.offset(self.tail) as u64;
        let position = if offset + length as u64 > capacity { self.tail + capacity - offset } else { self.tail };
        let head = self.entries.front().map_or(position, |entry| entry.position);
        (position + length as u64 - head <= capacity).then_some(position)
    }

    #[cold]
    fn grow(&mut self, length: usize) -> Option<u64> {
        let mut capacity = self.buffer.len();
        loop {
            capacity *= 2;
            if capacity > self.bytes_max {
                return None;
            }
            let mut grown = Self::new(self.bytes_max, self.first_number);
            grown.buffer = vec![0; capacity];
            let fits = (0..self.entries.len()).all(|index| {
                let number = self.first_number + index as u64;
                let (frame, entry) = (self.get(number), self.entries[index]);
                let Some(position) = grown.place(frame.len()) else { return false };
                grown.tail = position;
                let start = grown.offset(position);
                grown.buffer[start..start + frame.len()].copy_from_slice(frame);
                grown.commit(frame.len(), entry.completes_message);
                true
            });
            if let (true, Some(position)) = (fits, grown.place(length)) {
                *self = grown;
                return Some(position);
            }
        }
    }

    /// Includes the padding.
    ///
    /// # Panics
    /// If the frame is not kept.
    #[inline]
    pub fn get(&self, number: u64) -> &[u8] {
        let entry = self.entries[(number - self.first_number) as usize];
        let start = self.offset(entry.position);
        &self.buffer[start..start + entry.length as usize]
    }

    /// Returns the count of dropped frames.
    #[inline]
    pub fn forget_through(&mut self, number: u64) -> u64 {
        let mut forgotten = 0;
        while self.first_number <= number {
            let Some(entry) = self.entries.pop_front() else { break };
            self.messages -= usize::from(entry.completes_message);
            self.first_number += 1;
            forgotten += 1;
        }
        forgotten
    }

    /// Drops everything; the next frame gets `next_number`.
    pub fn restart(&mut self, next_number: u64) {
        self.entries.clear();
        self.messages = 0;
        self.first_number = next_number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(kept: &mut ResendBuffer, length: usize) -> bool {
        let number = kept.next_number();
        let Some(claim) = kept.claim(length) else { return false };
        claim.fill(number as u8);
        kept.commit(length.next_multiple_of(8), true);
        true
    }

    fn is_intact(kept: &ResendBuffer) -> bool {
        (kept.first_number()..kept.next_number())
            .all(|number| kept.get(number).iter().all(|byte| *byte == number as u8))
    }

    #[test]
    fn frames_survive_wrapping_and_growth() {
        let mut kept = ResendBuffer::new(1 << 20, 1);
        let mut state = 12345u64;
        for round in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let length = (state >> 40) as usize % 3000 + 64;
            while !keep(&mut kept, length) {
                kept.forget_through(kept.first_number() + 100);
            }
            if state >> 60 < 3 {
                kept.forget_through(kept.first_number() + (state >> 50) % 8);
            }
            if round % 500 == 0 {
                assert!(is_intact(&kept), "round {round}");
            }
        }
        assert!(is_intact(&kept));
        assert_eq!(kept.buffer.len(), 1 << 20);
    }

    #[test]
    fn limit_is_never_exceeded() {
        let mut kept = ResendBuffer::new(64 << 10, 7);
        let count = (0..).take_while(|_| keep(&mut kept, 1000)).count();
        assert_eq!((count, kept.messages()), (65, 65));
        assert!(kept.claim(70 << 10).is_none(), "longer than all");
        assert_eq!(kept.forget_through(9), 3);
        assert_eq!((kept.first_number(), kept.next_number(), kept.messages()), (10, 72, 62));
        assert!(keep(&mut kept, 1000) && is_intact(&kept));
        kept.restart(1);
        assert!(kept.is_empty() && kept.next_number() == 1);
    }
}
