//! The ring, used as a publisher and a consumer in two processes use it: every frame is claimed,
//! written, committed and published, then its length is checked and it is copied out.

use crate::pinned::on_two_cores;
use crate::{CAPACITY, FRAMES, Latency, ROUND_TRIPS};
use gapless_log::{LogError, MemoryKind, RingReader, RingWriter, StreamIdentity, ring};
use std::hint::{black_box, spin_loop};
use std::time::Instant;

fn new_ring() -> (RingWriter, RingReader) {
    ring::create(&MemoryKind::Shared, CAPACITY, StreamIdentity::default()).expect("there is room for a ring")
}

fn new_frame(length: usize) -> Vec<u8> {
    let mut frame = vec![7; length];
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    frame
}

fn write(writer: &mut RingWriter, frame: &[u8]) {
    loop {
        match writer.claim(frame.len()) {
            Ok(space) => {
                space.copy_from_slice(frame);
                break;
            }
            Err(LogError::Full { .. }) => spin_loop(),
            Err(error) => panic!("{error}"),
        }
    }
    writer.commit(frame.len());
}

fn read(reader: &mut RingReader, frame: &mut [u8]) -> bool {
    let Some(length) = reader.next_length().expect("this writer keeps to the protocol") else {
        return false;
    };
    reader.copy(&mut frame[..length]);
    reader.advance(length);
    true
}

/// Million frames of `length` bytes per second, `batch` of them for each publish.
pub fn one_way(length: usize, batch: usize) -> f64 {
    let (mut writer, mut reader) = new_ring();
    let send = move || {
        let frame = new_frame(length);
        for number in 1..=FRAMES {
            write(&mut writer, black_box(&frame));
            if number % batch == 0 {
                assert!(!writer.publish(), "this reader never sleeps");
            }
        }
    };
    let receive = move || {
        let mut frame = vec![0; length];
        let started = Instant::now();
        let mut received = 0;
        while received < FRAMES {
            if read(&mut reader, &mut frame) {
                black_box(&mut frame);
                received += 1;
                if reader.known_bytes() == 0 {
                    reader.release();
                }
            } else {
                spin_loop();
            }
        }
        FRAMES as f64 / started.elapsed().as_secs_f64() / 1e6
    };
    on_two_cores(send, receive)
}

/// Round trips of `length` bytes, copied in and out on both sides.
pub fn ping_pong(length: usize) -> Latency {
    let ((mut ping, mut pinged), (mut pong, mut ponged)) = (new_ring(), new_ring());
    let echo = move || {
        let mut frame = vec![0; length];
        for _ in 0..ROUND_TRIPS {
            wait(&mut pinged, &mut frame);
            send(&mut pong, &frame);
        }
    };
    let measure = move || {
        let mut frame = new_frame(length);
        let mut samples = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let started = Instant::now();
            send(&mut ping, &frame);
            wait(&mut ponged, &mut frame);
            samples.push(started.elapsed().as_nanos() as u64);
        }
        Latency::of(samples)
    };
    on_two_cores(echo, measure)
}

fn send(writer: &mut RingWriter, frame: &[u8]) {
    write(writer, frame);
    assert!(!writer.publish(), "this reader never sleeps");
}

fn wait(reader: &mut RingReader, frame: &mut [u8]) {
    while !read(reader, frame) {
        spin_loop();
    }
    black_box(&mut *frame);
    reader.release();
}
