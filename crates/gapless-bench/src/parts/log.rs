//! `gapless bench log`: ring and window between two threads with a core each, one way and there and back.
//!
//! A frame is the payload and a header of 64 bytes, copied in on one side and out on the other; no
//! checksums. The floor moves as many bytes by the least that two cores need.

use super::pair::{Ended, Wait, on_two_cores};
use super::{PartArguments, Unit, compare, failed, is_interrupted, measure_floors, median, named, since};
use crate::Result;
use crate::floor::{FloorKind, HEADER_BYTES};
use crate::histogram::LatencyHistogram;
use crate::report::{Report, Row};
use gapless::log::{
    GatingCursor, LogError, MemoryKind, Releaser, RingReader, RingWriter, Scope, StreamIdentity, WindowOptions,
    WindowWriter, ring,
};
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Frames of each one-way row.
const FRAMES: u64 = 1_000_000;
/// Round trips for so many frames: one costs more.
const FRAMES_PER_ROUND_TRIP: u64 = 10;
const PAYLOADS: [usize; 3] = [64, 256, 1024];
const PING_PONG_PAYLOAD: usize = 256;
const CAPACITY_BYTES: usize = 1 << 20;
/// The run is split into this many parts; the first warms up, the rate is the median of the others.
const PARTS: u64 = 6;

/// Measures; what to print.
///
/// # Errors
/// No memory for the rings, frames that did not arrive as they were sent, a report that cannot be written.
pub fn run(arguments: &PartArguments, interrupted: &AtomicBool) -> Result<String> {
    let frames = arguments.count.unwrap_or(FRAMES);
    let mut report = Report::new("log");
    let mut items: Vec<_> = PAYLOADS.map(|payload| (FloorKind::ShmStream, payload as u64 + HEADER_BYTES)).into();
    items.push((FloorKind::ShmPingPong, PING_PONG_PAYLOAD as u64 + HEADER_BYTES));
    measure_floors(&mut report, Path::new("."), items);
    for (name, batch, one_way) in [
        ("ring, one way, 16 a publish", 16, ring_one_way as fn(usize, u64, u64) -> Result<f64>),
        ("ring, one way, 1 a publish", 1, ring_one_way),
        ("window, one way, 16 a publish", 16, window_one_way),
    ] {
        for payload in PAYLOADS {
            if is_interrupted(&mut report, interrupted) {
                break;
            }
            let mut row = named(name, payload as u64, frames);
            row.throughput_per_s = Some(one_way(payload + HEADER_BYTES as usize, frames, batch)?.round());
            push(row, &mut report, FloorKind::ShmStream);
        }
    }
    let round_trips = (frames / FRAMES_PER_ROUND_TRIP).max(1);
    for (name, ping_pong) in [
        ("ring, there and back", ring_ping_pong as fn(usize, u64) -> Result<LatencyHistogram>),
        ("window, there and back", window_ping_pong),
    ] {
        if is_interrupted(&mut report, interrupted) {
            break;
        }
        let mut row = named(name, PING_PONG_PAYLOAD as u64, round_trips);
        row.latency_ns = ping_pong(PING_PONG_PAYLOAD + HEADER_BYTES as usize, round_trips)?.latency_ns();
        push(row, &mut report, FloorKind::ShmPingPong);
    }
    report.notes.push("no checksums; bytes are those of the payload, the floor moves 64 more, as frames do".to_owned());
    arguments.finish(&report, Unit::Microseconds)
}

fn push(mut row: Row, report: &mut Report, floor: FloorKind) {
    let frame_bytes = row.config.payload_bytes.unwrap_or(0) + HEADER_BYTES;
    compare(&mut row, report, floor, frame_bytes);
    // Every frame's number is compared on its way.
    row.verified = Some(true);
    report.rows.push(row);
}

fn of_log(error: LogError) -> crate::BenchError {
    failed("log", error)
}

fn abandoned() -> crate::BenchError {
    failed("log", "the other side stopped")
}

/// A frame's length and number; the rest is payload.
fn new_frame(length: usize) -> Vec<u8> {
    let mut frame = vec![7; length];
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    frame
}

const NUMBER: std::ops::Range<usize> = 8..16;

fn set_number(frame: &mut [u8], number: u64) {
    frame[NUMBER].copy_from_slice(&number.to_le_bytes());
}

fn check_number(frame: &[u8], number: u64) -> Result<()> {
    if frame[NUMBER] == number.to_le_bytes() {
        Ok(())
    } else {
        Err(failed("log", format!("frame {number} is not there")))
    }
}

/// One side of a connection that takes frames.
trait Sends: Send {
    fn write(&mut self, frame: &[u8], number: u64, ended: &Ended) -> Result<()>;
    fn publish(&mut self);
}

/// The other.
trait Takes: Send {
    /// Copies the next frame out; false when there is none now.
    fn take(&mut self, frame: &mut [u8], number: u64) -> Result<bool>;
    /// Lets the writer have what was taken.
    fn release(&mut self, number: u64);
    /// Whether everything that was known to be there has been taken.
    fn is_drained(&mut self) -> bool;
}

impl Sends for RingWriter {
    #[inline]
    fn write(&mut self, frame: &[u8], _: u64, ended: &Ended) -> Result<()> {
        let mut wait = Wait::default();
        loop {
            match self.claim(frame.len()) {
                Ok(space) => {
                    space.copy_from_slice(frame);
                    break;
                }
                Err(LogError::Full { .. }) if wait.turn(ended) => {}
                Err(LogError::Full { .. }) => return Err(abandoned()),
                Err(error) => return Err(of_log(error)),
            }
        }
        self.commit(frame.len());
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {
        // The reader never sleeps, so nobody has to be woken.
        let _ = RingWriter::publish(self);
    }
}

impl Takes for RingReader {
    #[inline]
    fn take(&mut self, frame: &mut [u8], _: u64) -> Result<bool> {
        let Some(length) = self.next_length().map_err(of_log)? else { return Ok(false) };
        if length != frame.len() {
            return Err(failed("log", format!("a frame of {length} bytes, expected {}", frame.len())));
        }
        self.copy(frame);
        self.advance(length);
        Ok(true)
    }

    #[inline]
    fn release(&mut self, _: u64) {
        RingReader::release(self);
    }

    #[inline]
    fn is_drained(&mut self) -> bool {
        self.known_bytes() == 0
    }
}

impl Sends for WindowWriter {
    #[inline]
    fn write(&mut self, frame: &[u8], number: u64, ended: &Ended) -> Result<()> {
        let mut wait = Wait::default();
        loop {
            match self.claim(frame.len()) {
                Ok(space) => {
                    space.copy_from_slice(frame);
                    break;
                }
                Err(LogError::Full { .. }) if wait.turn(ended) => {}
                Err(LogError::Full { .. }) => return Err(abandoned()),
                Err(error) => return Err(of_log(error)),
            }
        }
        self.commit(frame.len(), number);
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {
        WindowWriter::publish(self);
    }
}

/// Reads as a journaler does, and releases what it has read.
struct WindowReader {
    cursor: GatingCursor,
    releaser: Releaser,
    /// Bytes of the last look that are not taken yet.
    known_bytes: usize,
}

impl Takes for WindowReader {
    #[inline]
    fn take(&mut self, frame: &mut [u8], _: u64) -> Result<bool> {
        let available = self.cursor.available().map_err(of_log)?;
        self.known_bytes = available.len();
        let Some(next) = available.get(..frame.len()) else { return Ok(false) };
        frame.copy_from_slice(next);
        self.cursor.advance_quietly(frame.len());
        self.known_bytes -= frame.len();
        Ok(true)
    }

    #[inline]
    fn release(&mut self, number: u64) {
        self.cursor.advance(0);
        self.releaser.release(self.cursor.position(), number);
    }

    #[inline]
    fn is_drained(&mut self) -> bool {
        self.known_bytes == 0
    }
}

fn new_ring() -> Result<(RingWriter, RingReader)> {
    ring::create(&MemoryKind::Shared, CAPACITY_BYTES, StreamIdentity::default()).map_err(of_log)
}

fn new_window() -> Result<(WindowWriter, WindowReader)> {
    let options = WindowOptions {
        memory: MemoryKind::Shared,
        capacity_bytes: CAPACITY_BYTES,
        index_slots: 16 << 10,
        frame_length_max: 4096,
        identity: StreamIdentity::default(),
    };
    let (mut writer, releaser) = options.create(1).map_err(of_log)?;
    let cursor = writer.gating_cursor(Scope::Appended);
    Ok((writer, WindowReader { cursor, releaser, known_bytes: 0 }))
}

fn ring_one_way(length: usize, frames: u64, batch: u64) -> Result<f64> {
    let (writer, reader) = new_ring()?;
    one_way(writer, reader, length, frames, batch)
}

fn window_one_way(length: usize, frames: u64, batch: u64) -> Result<f64> {
    let (writer, reader) = new_window()?;
    one_way(writer, reader, length, frames, batch)
}

fn ring_ping_pong(length: usize, round_trips: u64) -> Result<LatencyHistogram> {
    ping_pong(new_ring()?, new_ring()?, length, round_trips)
}

fn window_ping_pong(length: usize, round_trips: u64) -> Result<LatencyHistogram> {
    ping_pong(new_window()?, new_window()?, length, round_trips)
}

/// Frames of `length` bytes a second, `batch` of them for each publish.
fn one_way(mut writer: impl Sends, mut reader: impl Takes, length: usize, frames: u64, batch: u64) -> Result<f64> {
    let part = frames.div_ceil(PARTS);
    let send = move |ended: &Ended| {
        let mut frame = new_frame(length);
        for number in 1..=part * PARTS {
            set_number(&mut frame, number);
            writer.write(black_box(&frame), number, ended)?;
            if number % batch == 0 {
                writer.publish();
            }
        }
        writer.publish();
        // The reader has everything before the memory goes.
        let mut wait = Wait::default();
        while wait.turn(ended) {}
        Ok(())
    };
    let receive = move |ended: &Ended| {
        let mut frame = vec![0; length];
        let (mut number, mut rates) = (0, Vec::new());
        for index in 0..PARTS {
            let begin = Instant::now();
            let end = number + part;
            while number < end {
                let mut wait = Wait::default();
                while !reader.take(&mut frame, number + 1)? {
                    if !wait.turn(ended) {
                        return Err(abandoned());
                    }
                }
                number += 1;
                check_number(black_box(&frame), number)?;
                if reader.is_drained() {
                    reader.release(number);
                }
            }
            if index > 0 {
                rates.push(part as f64 / begin.elapsed().as_secs_f64());
            }
        }
        Ok(median(&mut rates))
    };
    on_two_cores("log", send, receive)
}

/// Round trips of `length` bytes, copied in and out on both sides.
fn ping_pong<S: Sends, T: Takes>(
    (mut ping, mut pinged): (S, T),
    (mut pong, mut ponged): (S, T),
    length: usize,
    round_trips: u64,
) -> Result<LatencyHistogram> {
    let warm_up = round_trips.div_ceil(10);
    let last = warm_up + round_trips;
    fn wait(reader: &mut impl Takes, frame: &mut [u8], number: u64, ended: &Ended) -> Result<()> {
        let mut wait = Wait::default();
        while !reader.take(frame, number)? {
            if !wait.turn(ended) {
                return Err(abandoned());
            }
        }
        reader.release(number);
        check_number(frame, number)
    }
    let echo = move |ended: &Ended| {
        let mut frame = vec![0; length];
        for number in 1..=last {
            wait(&mut pinged, &mut frame, number, ended)?;
            pong.write(&frame, number, ended)?;
            pong.publish();
        }
        // The last frame is read before the memory goes.
        let mut patience = Wait::default();
        while patience.turn(ended) {}
        Ok(())
    };
    let measure = move |ended: &Ended| {
        let mut frame = new_frame(length);
        let mut histogram = LatencyHistogram::new();
        for number in 1..=last {
            set_number(&mut frame, number);
            let begin = Instant::now();
            ping.write(&frame, number, ended)?;
            ping.publish();
            wait(&mut ponged, &mut frame, number, ended)?;
            let elapsed_ns = since(begin);
            if number > warm_up {
                histogram.record(elapsed_ns);
            }
        }
        Ok(histogram)
    };
    on_two_cores("log", echo, measure)
}
