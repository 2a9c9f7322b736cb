//! Rings, and windows with a free cursor, from both ends. A free cursor can be lapped: with more than one frame in
//! flight, its process reports progress through a small ring, and the writer keeps less than the capacity outstanding.
//! A lapped frame is an error.

use crate::Result;
use crate::components::failed;
use crate::components::peer::PeerProcess;
use gapless_log::{
    FreeCursor, FreeRead, LogError, MemoryKind, Releaser, RingReader, RingWriter, StreamIdentity, Window,
    WindowOptions, WindowWriter, ring,
};
use rustix::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

const CAPACITY_BYTES: usize = 1 << 20;
/// Holds all reports that can be outstanding.
const PROGRESS_CAPACITY_BYTES: usize = 16 << 10;
/// Reports per outstanding capacity.
const REPORTS: u64 = 8;
/// A header.
const PROGRESS_BYTES: usize = 64;

pub trait FrameSink {
    /// Waits for room.
    fn write(&mut self, frame: &[u8], number: u64, other: &mut PeerProcess<'_>) -> Result<()>;
    fn publish(&mut self);
}

pub trait FrameSource {
    /// `frame` has the frame's length already; `false` without a frame.
    fn take(&mut self, frame: &mut Vec<u8>) -> Result<bool>;
    /// Releases frames up to `number`, possibly later.
    fn release(&mut self, number: u64, other: &mut PeerProcess<'_>) -> Result<()>;
}

pub fn new_frame(length: usize) -> Vec<u8> {
    let mut frame = vec![7; length];
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    frame
}

/// A frame's number, which is its sequence in a window.
const NUMBER: std::ops::Range<usize> = 8..16;

pub fn set_number(frame: &mut [u8], number: u64) {
    frame[NUMBER].copy_from_slice(&number.to_le_bytes());
}

pub fn check_number(frame: &[u8], number: u64) -> Result<()> {
    if frame[NUMBER] == number.to_le_bytes() {
        Ok(())
    } else {
        Err(failed("log", format!("frame {number} is not there")))
    }
}

fn of_log(error: LogError) -> crate::BenchError {
    failed("log", error)
}

#[inline]
fn has_room(claimed: std::result::Result<(), LogError>) -> Result<bool> {
    match claimed {
        Ok(()) => Ok(true),
        Err(LogError::Full { .. }) => Ok(false),
        Err(error) => Err(of_log(error)),
    }
}

impl FrameSink for RingWriter {
    #[inline]
    fn write(&mut self, frame: &[u8], _: u64, other: &mut PeerProcess<'_>) -> Result<()> {
        other.wait_until(|| has_room(self.claim(frame.len()).map(|space| space.copy_from_slice(frame))))?;
        self.commit(frame.len());
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {
        // The reader never sleeps, so no wake-up is needed.
        let _ = RingWriter::publish(self);
    }
}

impl FrameSource for RingReader {
    #[inline]
    fn take(&mut self, frame: &mut Vec<u8>) -> Result<bool> {
        let Some(length) = self.next_length().map_err(of_log)? else { return Ok(false) };
        if length != frame.len() {
            return Err(unexpected(length, frame.len()));
        }
        self.copy(frame);
        self.advance(length);
        Ok(true)
    }

    #[inline]
    fn release(&mut self, _: u64, _: &mut PeerProcess<'_>) -> Result<()> {
        if self.known_bytes() == 0 {
            RingReader::release(self);
        }
        Ok(())
    }
}

fn unexpected(length: usize, expected: usize) -> crate::BenchError {
    failed("log", format!("a frame of {length} bytes, expected {expected}"))
}

/// Releases everything at once, because cursors of other processes read only released frames.
pub struct WindowSender {
    writer: WindowWriter,
    releaser: Releaser,
    reader: Option<KnownReader>,
}

struct KnownReader {
    progress: RingReader,
    report: Vec<u8>,
    taken: u64,
    outstanding_max: u64,
}

/// Frames of `length` bytes that cannot lap the reader.
fn outstanding_max(length: usize) -> u64 {
    (CAPACITY_BYTES / 4 * 3 / length) as u64
}

impl KnownReader {
    #[inline]
    fn has_room_for(&mut self, number: u64) -> Result<bool> {
        while number > self.taken + self.outstanding_max {
            if !self.progress.take(&mut self.report)? {
                return Ok(false);
            }
            self.progress.release();
            let word = self.report[NUMBER].first_chunk().expect("the range has eight bytes");
            self.taken = u64::from_le_bytes(*word);
        }
        Ok(true)
    }
}

impl FrameSink for WindowSender {
    #[inline]
    fn write(&mut self, frame: &[u8], number: u64, other: &mut PeerProcess<'_>) -> Result<()> {
        if let Some(reader) = &mut self.reader {
            other.wait_until(|| reader.has_room_for(number))?;
        }
        let writer = &mut self.writer;
        other.wait_until(|| has_room(writer.claim(frame.len()).map(|space| space.copy_from_slice(frame))))?;
        writer.commit(frame.len(), number);
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {
        self.writer.publish();
        self.releaser.release(self.writer.tail(), self.writer.last_sequence());
    }
}

pub struct WindowTaker {
    cursor: FreeCursor,
    /// Ring for reports, and frames between two reports, with more than one frame in flight.
    progress: Option<(RingWriter, u64)>,
}

impl FrameSource for WindowTaker {
    #[inline]
    fn take(&mut self, frame: &mut Vec<u8>) -> Result<bool> {
        let expected = frame.len();
        match self.cursor.read(frame).map_err(of_log)? {
            FreeRead::Frame(length) if length == expected => Ok(true),
            FreeRead::Frame(length) => Err(unexpected(length, expected)),
            FreeRead::Empty => Ok(false),
            FreeRead::Lapped { from_sequence } => {
                Err(failed("log", format!("frame {from_sequence} was written over before it was read")))
            }
        }
    }

    #[inline]
    fn release(&mut self, number: u64, other: &mut PeerProcess<'_>) -> Result<()> {
        match &mut self.progress {
            Some((progress, each)) if number.is_multiple_of(*each) => {
                let mut report = [0; PROGRESS_BYTES];
                report[..4].copy_from_slice(&(PROGRESS_BYTES as u32).to_le_bytes());
                set_number(&mut report, number);
                progress.write(&report, number, other)?;
                FrameSink::publish(progress);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Another process of the same user can open it.
fn path_of(fd: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd()).into()
}

fn open(path: &Path, writable: bool) -> Result<OwnedFd> {
    let file = std::fs::OpenOptions::new().read(true).write(writable).open(path);
    Ok(file.map_err(|source| crate::BenchError::io("open the other process's memory", path, source))?.into())
}

pub fn ring_to_send() -> Result<(RingWriter, PathBuf)> {
    let (writer, reader) = new_ring(CAPACITY_BYTES)?;
    reader.leave_to_peer();
    let path = path_of(writer.fd());
    Ok((writer, path))
}

pub fn ring_to_take() -> Result<(RingReader, PathBuf)> {
    ring_for_reader(CAPACITY_BYTES)
}

fn ring_for_reader(capacity_bytes: usize) -> Result<(RingReader, PathBuf)> {
    let (writer, reader) = new_ring(capacity_bytes)?;
    writer.leave_to_peer();
    let path = path_of(reader.fd());
    Ok((reader, path))
}

fn new_ring(capacity_bytes: usize) -> Result<(RingWriter, RingReader)> {
    ring::create(&MemoryKind::Shared, capacity_bytes, StreamIdentity::default()).map_err(of_log)
}

pub fn open_ring_to_send(path: &Path) -> Result<RingWriter> {
    RingWriter::open(open(path, true)?).map_err(of_log)
}

pub fn open_ring_to_take(path: &Path) -> Result<RingReader> {
    RingReader::open(open(path, true)?).map_err(of_log)
}

/// Window for one frame in flight; the path is for the other process.
pub fn window() -> Result<(WindowSender, PathBuf)> {
    let options = WindowOptions {
        memory: MemoryKind::Shared,
        capacity_bytes: CAPACITY_BYTES,
        index_slots: 16 << 10,
        frame_length_max: 4096,
        identity: StreamIdentity::default(),
    };
    let (writer, releaser) = options.create(1).map_err(of_log)?;
    let path = path_of(writer.window().fd());
    Ok((WindowSender { writer, releaser, reader: None }, path))
}

/// Window for many frames of `length` bytes, and the paths of window and ring for reports.
pub fn window_with_progress(length: usize) -> Result<(WindowSender, PathBuf, PathBuf)> {
    let (mut sender, path) = window()?;
    let (progress, progress_path) = ring_for_reader(PROGRESS_CAPACITY_BYTES)?;
    let report = vec![0; PROGRESS_BYTES];
    sender.reader = Some(KnownReader { progress, report, taken: 0, outstanding_max: outstanding_max(length) });
    Ok((sender, path, progress_path))
}

pub fn open_window(path: &Path) -> Result<WindowTaker> {
    let window = Window::open(open(path, false)?).map_err(of_log)?;
    Ok(WindowTaker { cursor: window.free_cursor(1), progress: None })
}

pub fn open_window_with_progress(path: &Path, progress: &Path, length: usize) -> Result<WindowTaker> {
    let each = (outstanding_max(length) / REPORTS).max(1);
    Ok(WindowTaker { progress: Some((open_ring_to_send(progress)?, each)), ..open_window(path)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn reporting_reader_is_never_lapped() {
        let length = 1088;
        let (mut sender, window, progress) = window_with_progress(length).unwrap();
        let mut taker = open_window_with_progress(&window, &progress, length).unwrap();
        let interrupted = AtomicBool::new(false);
        let mut other = PeerProcess::shell("exec sleep 1000", &interrupted);
        let (mut sent, mut frame, mut copy) = (0, new_frame(length), vec![0; length]);
        for taken in 1..=5_000 {
            while sender.reader.as_mut().unwrap().has_room_for(sent + 1).unwrap() && sent < taken + 4_000 {
                sent += 1;
                set_number(&mut frame, sent);
                sender.write(&frame, sent, &mut other).unwrap();
                sender.publish();
            }
            assert!(taker.take(&mut copy).unwrap(), "frame {taken} of {sent}");
            check_number(&copy, taken).unwrap();
            taker.release(taken, &mut other).unwrap();
        }
    }

    #[test]
    fn overwritten_frame_is_an_error() {
        let (mut sender, window) = window().unwrap();
        let mut taker = open_window(&window).unwrap();
        let interrupted = AtomicBool::new(false);
        let mut other = PeerProcess::shell("exec sleep 1000", &interrupted);
        let (mut frame, mut copy) = (new_frame(1088), vec![0; 1088]);
        for number in 1..=2_000 {
            set_number(&mut frame, number);
            sender.write(&frame, number, &mut other).unwrap();
            sender.publish();
        }
        let error = taker.take(&mut copy).unwrap_err().to_string();
        assert!(error.contains("frame 1 was written over"), "{error}");
    }
}
