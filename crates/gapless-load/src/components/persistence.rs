//! Appends to a journal, and replays it.

use super::{failed, named};
use crate::canonical::car::{CarForm, LENGTH_MAX, SCHEMA, SERIAL_NUMBER, SbeSerial};
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use crate::{BenchError, Result};
use gapless_journal::{Flush, Journal, JournalError, JournalOptions, JournalReader, Zeroing};
use gapless_measure::floor::{FloorKind, HEADER_BYTES};
use gapless_measure::statistics::median;
use gapless_measure::{Report, Row};
use gapless_wire::{Encoding, FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length, stamp};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

const BATCH: u64 = 128;
/// The first one warms the page cache; the rate is the median of the others.
const REPLAYS: usize = 6;

fn of_journal(error: JournalError) -> BenchError {
    failed("persistence", error)
}

fn new_journal(parent: &Path, name: &str, flush: Flush, marks: Flush) -> Result<(PathBuf, Journal)> {
    let directory = parent.join(name.replace([' ', ','], "-"));
    std::fs::create_dir(&directory).map_err(|source| BenchError::io("create", &directory, source))?;
    let mut options = JournalOptions::new(&directory, 1);
    options.segment_length_bytes = 128 << 20;
    options.first_segment_length_bytes = options.segment_length_bytes;
    (options.flush, options.marks) = (flush, marks);
    if flush == Flush::Write {
        options.zeroing = Zeroing::All;
        options.segment_length_bytes = 32 << 20;
        options.first_segment_length_bytes = options.segment_length_bytes;
    }
    let (journal, _) = Journal::open(options).map_err(of_journal)?;
    Ok((directory, journal))
}

pub struct CarFrame {
    pub bytes: Vec<u8>,
    length: usize,
}

impl CarFrame {
    pub fn new() -> Result<Self> {
        let mut bytes = vec![0; HEADER_LENGTH + LENGTH_MAX];
        let mut writer = FrameWriter::new(&mut bytes);
        let payload_length = SbeSerial::write(writer.payload_mut(), Some(SERIAL_NUMBER))
            .map_err(|error| failed("persistence", error))?;
        let header = FrameHeader { session: 1, schema: SCHEMA, flags: Encoding::Sbe.flags(), ..FrameHeader::default() };
        let length = writer.finish(&header, payload_length);
        bytes.truncate(length);
        bytes.resize(aligned_length(length), 0);
        Ok(Self { bytes, length })
    }

    pub fn payload_bytes(&self) -> u64 {
        self.length as u64 - HEADER_BYTES
    }

    fn stamped(&mut self, sequence: u64) -> &[u8] {
        stamp(&mut self.bytes, sequence, 1_700_000_000_000_000_000 + sequence, 0);
        &self.bytes
    }
}

pub fn appends(
    parent: &Path,
    name: &str,
    flush: Flush,
    is_synced: bool,
    frame: &mut CarFrame,
    count: u64,
) -> Result<LatencyHistogram> {
    let marks = if is_synced { Flush::Write } else { Flush::Mapped };
    let (directory, mut journal) = new_journal(parent, name, flush, marks)?;
    let syncer = journal.syncer();
    let warm_up = count.div_ceil(10);
    let mut histogram = LatencyHistogram::new();
    for sequence in 1..=warm_up + count {
        let bytes = frame.stamped(sequence);
        let begin = Instant::now();
        journal.append(bytes, sequence, sequence).map_err(of_journal)?;
        journal.commit().map_err(of_journal)?;
        if is_synced {
            syncer.sync().map_err(of_journal)?;
        }
        let elapsed_ns = elapsed_ns(begin);
        if sequence > warm_up {
            histogram.record(elapsed_ns);
        }
    }
    journal.close().map_err(of_journal)?;
    let (frames, _) = replay(&directory)?;
    if frames != warm_up + count {
        return Err(failed("persistence", format!("{frames} frames are there of {}", warm_up + count)));
    }
    Ok(histogram)
}

pub fn batches_and_replay(parent: &Path, frame: &mut CarFrame, frames: u64, report: &Report) -> Result<[Row; 2]> {
    let name = "append in batches, mapped";
    let (directory, mut journal) = new_journal(parent, name, Flush::Mapped, Flush::Mapped)?;
    let frame_bytes = frame.bytes.len() as u64;
    let batches = frames.div_ceil(BATCH);
    let mut rates = Vec::with_capacity(batches as usize);
    let mut buffer = Vec::with_capacity((BATCH * frame_bytes) as usize);
    let mut appending_ns = 0;
    for batch in 0..batches {
        buffer.clear();
        let first = batch * BATCH + 1;
        for sequence in first..first + BATCH {
            buffer.extend_from_slice(frame.stamped(sequence));
        }
        let begin = Instant::now();
        journal.append(&buffer, first, first + BATCH - 1).map_err(of_journal)?;
        journal.commit().map_err(of_journal)?;
        appending_ns += elapsed_ns(begin);
    }
    journal.close().map_err(of_journal)?;
    let appended = batches * BATCH;
    for _ in 0..REPLAYS {
        let (replayed, seconds) = replay(&directory)?;
        if replayed != appended {
            return Err(failed("persistence", format!("{replayed} frames were replayed of {appended}")));
        }
        rates.push(replayed as f64 / seconds.max(1e-9));
    }
    rates.remove(0);
    let mut append = named(name, frame.payload_bytes(), appended);
    append.throughput_per_s = Some((appended as f64 * 1e9 / appending_ns.max(1) as f64).round());
    append.config.extra.insert("batch".to_owned(), BATCH.into());
    compare_bandwidth(&mut append, report, FloorKind::SequentialWrite, frame_bytes);
    let mut again = named("replay, both checksums", frame.payload_bytes(), appended);
    again.throughput_per_s = Some(median(&rates).round());
    compare_bandwidth(&mut again, report, FloorKind::Memcpy, frame_bytes);
    for row in [&mut append, &mut again] {
        row.config.tier = Some("journal".to_owned());
        row.verified = Some(true);
    }
    Ok([append, again])
}

/// Floor's bandwidth as frames a second, by this row's rate.
fn compare_bandwidth(row: &mut Row, report: &Report, floor: FloorKind, frame_bytes: u64) {
    let bandwidth = report.floor_row(floor.name(), 0).and_then(|floor| floor.bytes_per_s);
    if let (Some(bandwidth), Some(rate)) = (bandwidth, row.throughput_per_s.filter(|rate| *rate > 0.0)) {
        row.floor_ratio = Some((bandwidth / frame_bytes as f64 / rate * 100.0).round() / 100.0);
        row.floor_name = Some(floor.name().to_owned());
    }
}

/// Frames and seconds; checks both checksums of each frame.
fn replay(directory: &Path) -> Result<(u64, f64)> {
    let reader = JournalReader::open(directory).map_err(of_journal)?;
    let last = reader.last_sequence().map_err(of_journal)?;
    let mut replay = reader.replay_until(reader.first_sequence(), last).map_err(of_journal)?;
    let begin = Instant::now();
    let mut frames = 0;
    while let Some(batch) = replay.next_batch().map_err(of_journal)? {
        for frame in batch {
            black_box(frame.payload());
            frames += 1;
        }
    }
    Ok((frames, begin.elapsed().as_secs_f64()))
}
