//! How fast records pass an elastic queue whose rest lies on disk, beside the same queue with all of them in memory:
//! `cargo run --release -p gapless-overflow --example overflow_speed [DIRECTORY]`.
//!
//! - *through*: one producer and one consumer on all cores; the consumer begins when 16 tiers are waiting, so at least
//!   half of the records pass the disk.
//! - *one core*: the same with producer, consumer and helper on one core.
//! - *fill, drain*: everything is pushed, then everything is popped.
//! - *memory*: as fill and drain, and nothing passes the disk.
//!
//! Best of three turns. Every record is checked for its number.

use gapless_overflow::{ElasticQueue, ElasticQueueOptions, FullReason, Notice, OverflowError, Popped, Priority};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::error::Error;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const TURNS: usize = 3;
const MEMORY_BYTES: usize = 4 << 20;
const BURST_BYTES: usize = 32 << 20;
const CLASS: Priority = Priority::Normal;
/// A notice that was given before its receiver waited for it is not missed for longer.
const PAUSE: Duration = Duration::from_millis(1);

fn main() -> Outcome<()> {
    let directory = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    println!("memory tier {} MiB, burst {} MiB, in {}", MEMORY_BYTES >> 20, BURST_BYTES >> 20, directory.display());
    println!("| record B | run | records/s | MB/s | passed the disk |");
    println!("|---:|---|---:|---:|---:|");
    for (length, records) in [(72, 4_000_000), (256, 2_000_000), (4096, 200_000)] {
        for (name, is_through, has_one_core, memory) in [
            ("through", true, false, MEMORY_BYTES),
            ("one core", true, true, MEMORY_BYTES),
            ("fill, drain", false, false, MEMORY_BYTES),
            ("memory", false, false, 2 << 30),
        ] {
            let best = (0..TURNS)
                .map(|_| {
                    on_cores(has_one_core, || {
                        let run = Run { length, records, memory };
                        if is_through { run.through(&directory) } else { run.fill_and_drain(&directory) }
                    })
                })
                .collect::<Outcome<Vec<_>>>()?
                .into_iter()
                .max_by(|a, b| a.rate.total_cmp(&b.rate))
                .ok_or("no turn")?;
            println!(
                "| {length} | {name} | {:.0} | {:.0} | {:.0} % |",
                best.rate,
                best.rate * length as f64 / 1e6,
                best.spilled * 100.0
            );
        }
    }
    Ok(())
}

/// Runs on the first core alone, where that is wanted; threads inherit it.
fn on_cores<T: Send>(has_one_core: bool, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            if has_one_core {
                let allowed = sched_getaffinity(None)?;
                let first = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)).ok_or("no core")?;
                let mut one = CpuSet::new();
                one.set(first);
                sched_setaffinity(None, &one)?;
            }
            work()
        });
        worker.join().map_err(|_| "a turn panicked")?
    })
}

struct Rate {
    rate: f64,
    spilled: f64,
}

#[derive(Clone, Copy)]
struct Run {
    length: usize,
    records: u64,
    memory: usize,
}

/// A queue and its two kinds of notices.
struct Noticed {
    queue: ElasticQueue,
    room: Mutex<Receiver<()>>,
    readable: Mutex<Receiver<()>>,
}

impl Run {
    fn queue(self, directory: &Path) -> Outcome<Noticed> {
        let (give_room, room) = channel();
        let (give_readable, readable) = channel();
        let mut options = ElasticQueueOptions::new("speed", directory);
        options.memory_bytes_max = self.memory;
        options.memory_records_max = usize::MAX;
        options.burst_bytes_max = BURST_BYTES;
        options.disk_bytes_max = 8 << 30;
        options.notice = Some(Arc::new(move |notice| {
            let _nobody_waits = match notice {
                Notice::Room => give_room.send(()),
                Notice::Readable(_) => give_readable.send(()),
            };
        }));
        Ok(Noticed { queue: ElasticQueue::new(options)?, room: Mutex::new(room), readable: Mutex::new(readable) })
    }

    fn through(self, directory: &Path) -> Outcome<Rate> {
        let noticed = self.queue(directory)?;
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let producer = scope.spawn(|| self.produce(&noticed));
            while !producer.is_finished() && noticed.queue.counters().disk_bytes < 16 * MEMORY_BYTES as u64 {
                std::thread::sleep(PAUSE);
            }
            self.consume(&noticed)?;
            producer.join().map_err(|_| "the producer panicked")?
        })?;
        Ok(self.rate(begun, &noticed))
    }

    fn fill_and_drain(self, directory: &Path) -> Outcome<Rate> {
        let noticed = self.queue(directory)?;
        let begun = Instant::now();
        self.produce(&noticed)?;
        self.consume(&noticed)?;
        Ok(self.rate(begun, &noticed))
    }

    fn rate(self, begun: Instant, noticed: &Noticed) -> Rate {
        let rate = self.records as f64 / begun.elapsed().as_secs_f64();
        Rate { rate, spilled: noticed.queue.counters().spilled_records as f64 / self.records as f64 }
    }

    fn produce(self, noticed: &Noticed) -> Outcome<()> {
        let mut record = vec![0u8; self.length];
        let room = noticed.room.lock().map_err(|_| "poisoned")?;
        for number in 0..self.records {
            record[..8].copy_from_slice(&number.to_le_bytes());
            loop {
                match noticed.queue.push(CLASS, &record) {
                    Ok(_) => break,
                    Err(OverflowError::Full { reason: FullReason::Behind, .. }) => {
                        let _paused = room.recv_timeout(PAUSE);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    fn consume(self, noticed: &Noticed) -> Outcome<()> {
        let mut record = Vec::new();
        let readable = noticed.readable.lock().map_err(|_| "poisoned")?;
        let mut expected = 0u64;
        while expected < self.records {
            match noticed.queue.pop(CLASS, &mut record)? {
                Popped::Record(number) => {
                    let is_next = number == expected && record.get(..8) == Some(&expected.to_le_bytes()[..]);
                    if !is_next || record.len() != self.length {
                        return Err(format!("record {expected} expected, {number} found").into());
                    }
                    expected += 1;
                }
                Popped::Later | Popped::Empty => {
                    let _paused = readable.recv_timeout(PAUSE);
                }
            }
        }
        Ok(())
    }
}
