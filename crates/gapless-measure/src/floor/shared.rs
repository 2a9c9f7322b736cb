//! Raw shared memory between two threads or processes: a ping-pong and a ring, as small as they can be.
//!
//! The only `unsafe` of this crate. Both types keep the protocol that makes the plain copies sound
//! themselves: a ping-pong by turns, the ring by its two positions.
//!
//! ```text
//! ping-pong  0 word: messages from A   128 word: messages from B   256 payload from A   256 + P payload from B
//! ring       0 word: tail              128 word: head              256 slots
//! ```
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::{BenchError, Result};

/// Two cache lines apart: the hardware prefetches pairs.
const SECOND_WORD: usize = 128;
const DATA: usize = 256;

#[derive(Debug)]
struct FloorMapping(MmapRaw);

impl FloorMapping {
    fn new(data_length: usize) -> Result<Self> {
        let length = (DATA + data_length).next_multiple_of(4096);
        let file = memfd_create("gapless-floor", MemfdFlags::CLOEXEC)
            .map_err(|source| BenchError::system("create shared memory", source))?;
        ftruncate(&file, length as u64).map_err(|source| BenchError::system("size shared memory", source))?;
        let map = MmapOptions::new().len(length).populate().map_raw(&file);
        map.map(Self).map_err(|source| BenchError::system("map shared memory", source))
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset == 0 || offset == SECOND_WORD);
        // SAFETY: both offsets are inside the mapping, which is at least one page, and aligned to 8;
        // the words are only ever accessed as atomics; the mapping lives as long as the reference.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().add(offset).cast()) }
    }

    /// Copies `bytes` to the data area at `offset`.
    ///
    /// # Safety
    /// No other thread or process reads or writes these bytes at the same time.
    #[inline]
    unsafe fn copy_in(&self, offset: usize, bytes: &[u8]) {
        debug_assert!(DATA + offset + bytes.len() <= self.0.len());
        // SAFETY: in bounds by the constructors of the two users below; `bytes` is ordinary memory and
        // so does not overlap the mapping; exclusive by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.as_mut_ptr().add(DATA + offset), bytes.len()) }
    }

    /// Copies from the data area at `offset`.
    ///
    /// # Safety
    /// No thread or process writes these bytes at the same time.
    #[inline]
    unsafe fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        debug_assert!(DATA + offset + bytes.len() <= self.0.len());
        // SAFETY: as in `copy_in`.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr().add(DATA + offset), bytes.as_mut_ptr(), bytes.len()) }
    }
}

/// A side sends only when it has received the answer.
#[derive(Debug)]
pub(super) struct PingPongSide {
    mapping: Arc<FloorMapping>,
    own_word: usize,
    other_word: usize,
    own_data: usize,
    other_data: usize,
    payload: usize,
    sent: u64,
    received: u64,
    my_turn: bool,
}

/// `payload` is fixed; the first side begins.
pub(super) fn ping_pong(payload: usize) -> Result<(PingPongSide, PingPongSide)> {
    let area = payload.next_multiple_of(128);
    let mapping = Arc::new(FloorMapping::new(2 * area)?);
    let second = PingPongSide {
        mapping: Arc::clone(&mapping),
        own_word: SECOND_WORD,
        other_word: 0,
        own_data: area,
        other_data: 0,
        payload,
        sent: 0,
        received: 0,
        my_turn: false,
    };
    let first = PingPongSide {
        mapping,
        own_word: 0,
        other_word: SECOND_WORD,
        own_data: 0,
        other_data: area,
        my_turn: true,
        ..second
    };
    Ok((first, second))
}

impl PingPongSide {
    /// Copies the payload in and tells the other side.
    ///
    /// # Panics
    /// When it is the other side's turn, or the payload has another size.
    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8]) {
        assert!(self.my_turn && bytes.len() == self.payload);
        // SAFETY: it is our turn, so the other side has finished reading our last payload (it sent
        // after reading) and reads the next one only after the store below.
        unsafe { self.mapping.copy_in(self.own_data, bytes) };
        self.my_turn = false;
        self.sent += 1;
        // Release: pairs with the Acquire in `try_receive` of the other side; the payload is visible before the word.
        self.mapping.word(self.own_word).store(self.sent, Ordering::Release);
    }

    #[inline]
    pub(super) fn try_receive(&mut self, bytes: &mut [u8]) -> bool {
        // Acquire: pairs with the Release in `send` of the other side.
        if self.my_turn || self.mapping.word(self.other_word).load(Ordering::Acquire) == self.received {
            return false;
        }
        assert!(bytes.len() == self.payload);
        // SAFETY: the other side has sent and writes again only after our next `send`.
        unsafe { self.mapping.copy_out(self.other_data, bytes) };
        self.received += 1;
        self.my_turn = true;
        true
    }
}

/// Slots of one size.
#[derive(Debug)]
pub(super) struct SlotProducer {
    mapping: Arc<FloorMapping>,
    slots: SlotLayout,
    tail: u64,
    published: u64,
    known_head: u64,
}

#[derive(Debug)]
pub(super) struct SlotConsumer {
    mapping: Arc<FloorMapping>,
    slots: SlotLayout,
    head: u64,
    known_tail: u64,
}

#[derive(Debug, Clone, Copy)]
struct SlotLayout {
    payload: usize,
    size: usize,
    mask: u64,
}

impl SlotLayout {
    #[inline]
    fn offset(self, position: u64) -> usize {
        (position & self.mask) as usize * self.size
    }

    fn count(self) -> u64 {
        self.mask + 1
    }
}

/// Larger batches gain nothing.
const BATCH: u64 = 32;

/// Stays in the second-level cache, unless two batches need more.
const RING_BYTES: usize = 1 << 18;

pub(super) fn ring(payload: usize) -> Result<(SlotProducer, SlotConsumer)> {
    let size = payload.next_multiple_of(8).max(8);
    let count = (RING_BYTES / size).max(2 * BATCH as usize).next_power_of_two();
    let mapping = Arc::new(FloorMapping::new(size * count)?);
    let slots = SlotLayout { payload, size, mask: count as u64 - 1 };
    let consumer = SlotConsumer { mapping: Arc::clone(&mapping), slots, head: 0, known_tail: 0 };
    Ok((SlotProducer { mapping, slots, tail: 0, published: 0, known_head: 0 }, consumer))
}

impl SlotProducer {
    /// `false` when the ring is full.
    ///
    /// # Panics
    /// When the payload has another size.
    #[inline]
    pub(super) fn try_push(&mut self, bytes: &[u8]) -> bool {
        assert!(bytes.len() == self.slots.payload);
        if self.tail - self.known_head == self.slots.count() {
            self.publish();
            // Acquire: pairs with the Release in `SlotConsumer::release`; the slots before the head have been read.
            self.known_head = self.mapping.word(SECOND_WORD).load(Ordering::Acquire);
            if self.tail - self.known_head == self.slots.count() {
                return false;
            }
        }
        // SAFETY: the slot is free: the consumer has released it and looks at it again only after `publish`.
        unsafe { self.mapping.copy_in(self.slots.offset(self.tail), bytes) };
        self.tail += 1;
        if self.tail - self.published == BATCH {
            self.publish();
        }
        true
    }

    #[inline]
    pub(super) fn publish(&mut self) {
        self.published = self.tail;
        // Release: pairs with the Acquire in `SlotConsumer::try_pop`; the messages are visible before the tail.
        self.mapping.word(0).store(self.tail, Ordering::Release);
    }
}

impl SlotConsumer {
    /// `false` without a message.
    ///
    /// # Panics
    /// When the payload has another size.
    #[inline]
    pub(super) fn try_pop(&mut self, bytes: &mut [u8]) -> bool {
        assert!(bytes.len() == self.slots.payload);
        if self.head == self.known_tail {
            self.release();
            // Acquire: pairs with the Release in `SlotProducer::publish`.
            self.known_tail = self.mapping.word(0).load(Ordering::Acquire);
            if self.head == self.known_tail {
                return false;
            }
        }
        // SAFETY: the message was published and its slot is not written before we release it.
        unsafe { self.mapping.copy_out(self.slots.offset(self.head), bytes) };
        self.head += 1;
        if self.head.is_multiple_of(BATCH) {
            self.release();
        }
        true
    }

    #[inline]
    fn release(&self) {
        // Release: pairs with the Acquire in `SlotProducer::try_push`; our reads are done before the slots are free.
        self.mapping.word(SECOND_WORD).store(self.head, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ping_pong_carries_the_payload() {
        let (mut first, mut second) = ping_pong(5).unwrap();
        let mut bytes = [0; 5];
        for _ in 0..3 {
            assert!(!second.try_receive(&mut bytes));
            first.send(b"there");
            assert!(!first.try_receive(&mut bytes));
            assert!(second.try_receive(&mut bytes));
            assert_eq!(&bytes, b"there");
            second.send(b"back!");
            assert!(first.try_receive(&mut bytes));
            assert_eq!(&bytes, b"back!");
        }
    }

    #[test]
    #[should_panic(expected = "my_turn")]
    fn send_out_of_turn_panics() {
        ping_pong(0).unwrap().1.send(&[]);
    }

    #[test]
    fn ring_wraps_in_order() {
        let (mut producer, mut consumer) = ring(12).unwrap();
        let count = producer.slots.count() * 3 + 7;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..count {
                    let mut bytes = [0; 12];
                    bytes[4..].copy_from_slice(&number.to_le_bytes());
                    while !producer.try_push(&bytes) {
                        std::thread::yield_now();
                    }
                }
                producer.publish();
            });
            let mut bytes = [0; 12];
            for number in 0..count {
                while !consumer.try_pop(&mut bytes) {
                    std::thread::yield_now();
                }
                assert_eq!(bytes[4..], number.to_le_bytes());
            }
        });
    }

    #[test]
    fn full_ring_refuses_until_read() {
        let (mut producer, mut consumer) = ring(8).unwrap();
        let count = producer.slots.count();
        assert!((0..count).all(|_| producer.try_push(&[1; 8])));
        assert!(!producer.try_push(&[1; 8]));
        let mut bytes = [0; 8];
        assert!((0..count).all(|_| consumer.try_pop(&mut bytes)));
        assert!(!consumer.try_pop(&mut bytes));
        assert!(producer.try_push(&[1; 8]));
    }

    #[test]
    fn ring_holds_two_large_batches() {
        let (producer, _) = ring(1 << 20).unwrap();
        assert_eq!(producer.slots.count(), 2 * BATCH);
    }
}
