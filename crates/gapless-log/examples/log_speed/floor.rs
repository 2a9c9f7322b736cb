//! The floor: the least that moves bytes from one core to another through shared memory. No lengths,
//! no checks, no parking, no wrap inside a slot; it is what any ring can at best be.

use crate::pinned::on_two_cores;
use crate::{CAPACITY, FRAMES, Latency, ROUND_TRIPS};
use std::cell::UnsafeCell;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

#[repr(align(128))]
struct Position(AtomicU64);

struct Slots {
    bytes: Box<[UnsafeCell<u8>]>,
    length: usize,
    count: u64,
    tail: Position,
    head: Position,
}

// SAFETY: a slot is written before the tail passes it and read before the head passes it.
unsafe impl Sync for Slots {}

impl Slots {
    fn new(length: usize) -> Self {
        let count = (CAPACITY / length) as u64;
        Self {
            bytes: (0..CAPACITY).map(|_| UnsafeCell::new(1)).collect(),
            length,
            count,
            tail: Position(AtomicU64::new(0)),
            head: Position(AtomicU64::new(0)),
        }
    }

    fn slot(&self, number: u64) -> *mut u8 {
        self.bytes[(number % self.count) as usize * self.length].get()
    }

    fn write(&self, number: u64, frame: &[u8]) {
        // SAFETY: the slot holds `length` bytes, and is the writer's (see Sync).
        unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), self.slot(number), self.length) }
    }

    fn read(&self, number: u64, frame: &mut [u8]) {
        // SAFETY: the slot holds `length` bytes, and is the reader's (see Sync).
        unsafe { std::ptr::copy_nonoverlapping(self.slot(number), frame.as_mut_ptr(), self.length) }
    }
}

/// Million frames of `length` bytes per second, `batch` of them for each store of the tail.
pub fn one_way(length: usize, batch: usize) -> f64 {
    let slots = Slots::new(length);
    let frames = FRAMES as u64;
    let write = || {
        let frame = vec![7; length];
        let mut head = 0;
        for number in 0..frames {
            while number - head >= slots.count {
                head = slots.head.0.load(Ordering::Acquire);
            }
            slots.write(number, black_box(&frame));
            if (number + 1) % batch as u64 == 0 {
                slots.tail.0.store(number + 1, Ordering::Release);
            }
        }
    };
    let read = || {
        let mut frame = vec![0; length];
        let started = Instant::now();
        let mut number = 0;
        while number < frames {
            let tail = slots.tail.0.load(Ordering::Acquire);
            if tail == number {
                spin_loop();
            }
            while number < tail {
                slots.read(number, &mut frame);
                black_box(&mut frame);
                number += 1;
            }
            slots.head.0.store(number, Ordering::Release);
        }
        frames as f64 / started.elapsed().as_secs_f64() / 1e6
    };
    on_two_cores(write, read)
}

/// Round trips of `length` bytes, copied in and out on both sides.
pub fn ping_pong(length: usize) -> Latency {
    let (there, back) = (Slots::new(length), Slots::new(length));
    let wait = |slots: &Slots, number: u64| {
        while slots.tail.0.load(Ordering::Acquire) <= number {
            spin_loop();
        }
    };
    let echo = || {
        let mut frame = vec![0; length];
        for number in 0..ROUND_TRIPS as u64 {
            wait(&there, number);
            there.read(number, &mut frame);
            black_box(&mut frame);
            back.write(number, &frame);
            back.tail.0.store(number + 1, Ordering::Release);
        }
    };
    let measure = || {
        let mut frame = vec![7; length];
        let mut samples = Vec::with_capacity(ROUND_TRIPS);
        for number in 0..ROUND_TRIPS as u64 {
            let started = Instant::now();
            there.write(number, &frame);
            there.tail.0.store(number + 1, Ordering::Release);
            wait(&back, number);
            back.read(number, &mut frame);
            black_box(&mut frame);
            samples.push(started.elapsed().as_nanos() as u64);
        }
        Latency::of(samples)
    };
    on_two_cores(echo, measure)
}
