//! How fast a journal is on this machine: appending by mapping and by `pwrite`, in batches of 1, 16
//! and 64 frames of 256 bytes, syncing, and replaying with both checksums checked.
//!
//! `cargo run --release -p gapless-journal --example journal_speed [DIRECTORY]`

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use gapless_journal::{Flush, Journal, JournalError, JournalOptions, JournalReader, Zeroing};
use gapless_wire::{FrameHeader, FrameWriter, stamp};
use rustix::time::{ClockId, clock_gettime};

const FRAME_LENGTH: usize = 256;
const FRAMES: u64 = 3_000_000;

fn main() -> Result<(), JournalError> {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let directory = parent.join(format!("gapless-journal-speed-{}", std::process::id()));
    println!(
        "{FRAMES} frames of {FRAME_LENGTH} bytes, tier journal, helper thread beside the writer, in {}",
        directory.display()
    );
    let floor = memcpy_floor();
    println!("floor: copying 256 bytes to fresh places of a present buffer {floor:.1} ns");
    for size in [1, 16, 64] {
        hot_path(JournalOptions::new(&directory, 1), size, floor)?;
    }
    for flush in [Flush::Mapped, Flush::Write] {
        for size in [1, 16, 64] {
            let mut options = JournalOptions::new(&directory, 1);
            options.flush = flush;
            append(options, size, floor)?;
        }
    }
    for flush in [Flush::Mapped, Flush::Write] {
        let mut options = JournalOptions::new(&directory, 1);
        options.flush = flush;
        options.marks = Flush::Write;
        options.zeroing = Zeroing::All;
        options.segment_length_bytes = 64 << 20;
        options.populate_ahead_bytes = 0;
        sync(options)?;
    }
    replay(&directory)?;
    remove(&directory);
    Ok(())
}

/// Batches of `size` frames that are stamped before each append, as a sequencer does.
struct Batch {
    bytes: Vec<u8>,
}

impl Batch {
    fn new(size: u64) -> Self {
        let mut bytes = vec![0; size as usize * FRAME_LENGTH];
        for frame in bytes.chunks_exact_mut(FRAME_LENGTH) {
            let mut writer = FrameWriter::new(frame);
            for (i, byte) in writer.payload_mut().iter_mut().enumerate() {
                *byte = i as u8;
            }
            writer.finish(&FrameHeader::default(), FRAME_LENGTH - 64);
        }
        Self { bytes }
    }

    fn stamp(&mut self, first: u64) {
        for (frame, sequence) in self.bytes.chunks_exact_mut(FRAME_LENGTH).zip(first..) {
            stamp(frame, sequence, sequence, 0);
        }
    }
}

/// Append and commit alone, into pages that are present: the best and the middle of many runs of 100
/// calls.
fn hot_path(mut options: JournalOptions, size: u64, floor_ns: f64) -> Result<(), JournalError> {
    remove(&options.directory);
    options.populate_ahead_bytes = options.segment_length_bytes;
    let (mut journal, _) = Journal::open(options)?;
    while journal.preparer().run_once()? {}
    let mut batch = Batch::new(size);
    let mut times = Vec::new();
    for _ in 0..900_000 / size / 100 {
        let mut spent = Duration::ZERO;
        for _ in 0..100 {
            let first = journal.last_sequence() + 1;
            batch.stamp(first);
            let start = Instant::now();
            journal.append(&batch.bytes, first, first + size - 1)?;
            journal.commit()?;
            spent += start.elapsed();
        }
        times.push(spent.as_nanos() as f64 / 100.0);
    }
    times.sort_unstable_by(f64::total_cmp);
    let clock = clock_floor();
    let (best, middle) = (times[0] - clock, times[times.len() / 2] - clock);
    println!(
        "append + commit, pages present, {size:>2} frames: best {best:6.1} ns, middle {middle:6.1} ns a call; the copies alone {:6.1} ns",
        floor_ns * size as f64
    );
    Ok(())
}

/// The cost of one reading of the clock.
fn clock_floor() -> f64 {
    let start = Instant::now();
    for _ in 0..10_000 {
        black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / 10_000.0
}

fn append(options: JournalOptions, size: u64, floor_ns: f64) -> Result<(), JournalError> {
    remove(&options.directory);
    let flush = options.flush;
    let (mut journal, _) = Journal::open(options)?;
    let preparer = journal.preparer();
    let helper = std::thread::spawn(move || preparer.run());
    // Let the helper make the first pages present.
    std::thread::sleep(Duration::from_millis(50));
    let mut batch = Batch::new(size);
    // Stamping alone, to be taken off.
    let before = Spent::now();
    for call in 0..FRAMES / size {
        batch.stamp(call * size + 1);
        black_box(&batch.bytes);
    }
    let stamping = before.until_now();
    let faults = page_faults();
    let before = Spent::now();
    for _ in 0..FRAMES / size {
        let first = journal.last_sequence() + 1;
        batch.stamp(first);
        journal.append(&batch.bytes, first, first + size - 1)?;
        journal.commit()?;
    }
    let spent = before.until_now();
    let faults = page_faults() - faults;
    let calls = FRAMES / size;
    let per = |total: Duration, part: Duration, count: u64| total.saturating_sub(part).as_nanos() as f64 / count as f64;
    println!(
        "append {flush:?} in batches of {size:>2}: {:6.2} M frames/s; wall {:7.1} ns a call, {:6.1} ns a frame; processor {:7.1} ns a call, {:6.1} ns a frame ({:.1} times the floor); {faults} page faults of the writer for {} pages",
        1e3 / per(spent.wall, stamping.wall, calls * size),
        per(spent.wall, stamping.wall, calls),
        per(spent.wall, stamping.wall, calls * size),
        per(spent.processor, stamping.processor, calls),
        per(spent.processor, stamping.processor, calls * size),
        per(spent.processor, stamping.processor, calls * size) / floor_ns,
        FRAMES as usize * FRAME_LENGTH / 4096,
    );
    drop(journal);
    helper.join().expect("the helper does not panic")?;
    Ok(())
}

fn sync(options: JournalOptions) -> Result<(), JournalError> {
    remove(&options.directory);
    let flush = options.flush;
    let (mut journal, _) = Journal::open(options)?;
    let syncer = journal.syncer();
    let mut batch = Batch::new(16);
    let mut times: Vec<Duration> = (0..500)
        .map(|_| {
            let first = journal.last_sequence() + 1;
            batch.stamp(first);
            let start = Instant::now();
            journal.append(&batch.bytes, first, first + 15)?;
            journal.commit()?;
            syncer.sync()?;
            Ok(start.elapsed())
        })
        .collect::<Result<_, JournalError>>()?;
    times.sort_unstable();
    println!("append 16 + sync {flush:?}, zeroed segments: p50 {:?}, p99 {:?}", times[250], times[495]);
    Ok(())
}

fn replay(directory: &Path) -> Result<(), JournalError> {
    remove(directory);
    let (mut journal, _) = Journal::open(JournalOptions::new(directory, 1))?;
    let mut batch = Batch::new(64);
    for _ in 0..FRAMES / 64 {
        let first = journal.last_sequence() + 1;
        batch.stamp(first);
        journal.append(&batch.bytes, first, first + 63)?;
        journal.commit()?;
    }
    for round in 1..=3 {
        let mut replay = JournalReader::open(directory)?.replay(1)?;
        let before = Spent::now();
        let mut frames = 0u64;
        while let Some(frame) = replay.next_frame()? {
            black_box(frame.sequence());
            frames += 1;
        }
        report("replay, frame by frame", round, frames, before.until_now());
        let mut replay = JournalReader::open(directory)?.replay_until(1, FRAMES)?;
        let before = Spent::now();
        let mut frames = 0u64;
        while let Some(frame) = replay.next_frame()? {
            black_box(frame.sequence());
            frames += 1;
        }
        report("replay, in place      ", round, frames, before.until_now());
        let mut replay = JournalReader::open(directory)?.replay_until(1, FRAMES)?;
        let before = Spent::now();
        let mut frames = 0u64;
        while let Some(batch) = replay.next_batch()? {
            for frame in batch {
                black_box(frame.sequence());
                frames += 1;
            }
        }
        report("replay, in batches    ", round, frames, before.until_now());
    }
    let start = Instant::now();
    drop(journal);
    let (_journal, report) = Journal::open(JournalOptions::new(directory, 1))?;
    println!("reopening: {:?}, {} frames checked", start.elapsed(), report.frames_scanned);
    Ok(())
}

fn report(what: &str, round: u32, frames: u64, spent: Spent) {
    let rate = |time: Duration| frames as f64 / time.as_secs_f64() / 1e6;
    println!(
        "{what} (round {round}): {:5.1} M frames/s, {:4.1} GB/s by the wall clock, {:5.1} M frames/s by processor time; both checksums checked",
        rate(spent.wall),
        rate(spent.wall) * FRAME_LENGTH as f64 / 1e3,
        rate(spent.processor),
    );
}

/// Wall time and the processor time of this thread; on a busy machine only the second says much.
#[derive(Clone, Copy)]
struct Spent {
    wall: Duration,
    processor: Duration,
}

impl Spent {
    fn now() -> Self {
        let read = |clock| {
            let time = clock_gettime(clock);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        Self { wall: read(ClockId::Monotonic), processor: read(ClockId::ThreadCPUTime) }
    }

    fn until_now(self) -> Self {
        let now = Self::now();
        Self { wall: now.wall - self.wall, processor: now.processor - self.processor }
    }
}

/// Page faults of this thread so far, those without I/O.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    // The fields after the program's name, which may contain spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().nth(7).and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn memcpy_floor() -> f64 {
    let source = [7u8; FRAME_LENGTH];
    let mut target = vec![1u8; 64 << 20];
    let before = Spent::now();
    let mut copies = 0u64;
    for _ in 0..4 {
        for place in target.chunks_exact_mut(FRAME_LENGTH) {
            place.copy_from_slice(black_box(&source));
            copies += 1;
        }
        black_box(&mut target);
    }
    before.until_now().processor.as_nanos() as f64 / copies as f64
}

fn remove(directory: &Path) {
    if directory.exists() {
        std::fs::remove_dir_all(directory).expect("the directory is this program's own");
    }
}
