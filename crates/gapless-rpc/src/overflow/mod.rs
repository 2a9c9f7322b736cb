//! [`ElasticQueue`]: a queue of byte records in four classes that spills to disk. It is the backlog of one caller, or
//! of one route in this process, and ends with its process: nothing is synced, nothing is recovered.
//!
//! # The walk of a record
//!
//! ```text
//! push → newest block of its class ── the class is short ────────────────────────────→ front → pop
//!           │ beyond the memory tier                                                     ↑
//!           └→ helper: frame, checksums, pwrite → unlinked segment → pread, checksums ───┘
//! ```
//!
//! Beyond the memory tier the helper takes whole blocks, of the least urgent class first, makes each a frame
//! (`gapless-wire`: two checksums and a sequence) in place, and appends it to an unlinked segment of this class
//! (`gapless-journal`). A class keeps its oldest records in memory, an eighth of the tier; when they become fewer, the
//! helper reads the next blocks ahead of need.
//!
//! # States of a class
//! | state | front (memory) | disk | tail (memory) | left by |
//! |---|---|---|---|---|
//! | in memory | all | – | – | the tier is full: the helper writes the blocks after the oldest eighth |
//! | spilling | the oldest | those after them | the newest | tail → disk beyond the tier, disk → front when front becomes short |
//! | draining | the oldest | fewer and fewer | the newest | the last block was read: in memory |
//!
//! A block moves only from the head of `tail` to the end of `disk`, and from the head of `disk` to the end of `front`,
//! one at a time; the moving block stands between the two. So nothing overtakes in its class.
//!
//! # Limits
//! - Memory: the tier and the burst (blocks that wait for the disk); beyond both, [`FullReason::Lagging`]. On top of
//!   that, one block or one long record for each class, because the front block never goes to disk, 4 spare buffers,
//!   and about 100 bytes for each block on disk.
//! - Disk: `disk_bytes_max`. The segments of a class are as long as a sixteenth of it and are freed one by one as they
//!   are drained, so up to a sixteenth for each class may be drained and not yet freed. About 24 descriptors at most.
//!   When the limit is reached, memory fills up to the tier, then [`FullReason::DiskLimit`].
//! - A record: [`RECORD_BYTES_LIMIT`].
//! - One thread for each queue that has ever exceeded its tier, so that a slow disk under one queue does not delay
//!   another.
//!
//! # Failures
//! | failure | consequence |
//! |---|---|
//! | disk full, failed write, directory gone | the block stays in memory; beyond the tier [`FullReason::Refused`] with the system's message; retried each 100 ms |
//! | no thread can be started | the same |
//! | bytes that cannot be read back, or differ from those written | [`OverflowError::Lost`] in their place, with their numbers and the place on disk; the queue continues after them |
//! | the process ends, also by SIGKILL | the kernel frees the unnamed files |
//! | the queue is dropped | the helper ends after the block that it moves; records are dropped with it |

mod block;
mod class;
pub(crate) mod classes;
mod counters;
mod error;
mod helper;
mod options;
mod priority;
mod shared;
mod state;
#[cfg(all(test, not(loom)))]
mod tests;

pub use counters::OverflowCounters;
pub use error::{FullReason, OptionsError, OverflowError};
pub use options::{ElasticQueueOptions, NoticeReceiver, QueueNotice, RECORD_BYTES_LIMIT};
pub use priority::Priority;

use block::Block;
use gapless_agent::foreign;
use helper::Helper;
use options::QueueSizes;
use shared::SharedQueue;
use state::{PopOutcome, SpillState};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Result of [`ElasticQueue::pop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoppedRecord {
    /// Number of the record in its class, counted from 0.
    Record(u64),
    /// The next record is on disk and is being read in. [`QueueNotice::Readable`] follows.
    Later,
    Empty,
}

/// Queue of byte records in four classes that spills to disk. Any number of threads push and pop; neither waits for the
/// disk.
///
/// ```
/// use gapless_rpc::overflow::Priority;
/// use gapless_rpc::overflow::{ElasticQueue, ElasticQueueOptions, PoppedRecord};
/// let queue = ElasticQueue::new(ElasticQueueOptions::new("orders", std::env::temp_dir()))?;
/// queue.push(Priority::Normal, b"one")?;
/// queue.push(Priority::Normal, b"two")?;
/// let mut record = Vec::new();
/// assert_eq!(queue.pop(Priority::Normal, &mut record)?, PoppedRecord::Record(0));
/// assert_eq!(record, b"one");
/// assert_eq!(queue.pop(Priority::Urgent, &mut record)?, PoppedRecord::Empty);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ElasticQueue {
    shared: Arc<SharedQueue>,
    helper: Mutex<Option<JoinHandle<()>>>,
}

impl ElasticQueue {
    /// Creates an empty queue. It uses neither disk nor thread until the memory tier is full.
    ///
    /// # Errors
    /// An option out of range, or a missing directory.
    pub fn new(options: ElasticQueueOptions) -> Result<Self, OptionsError> {
        let sizes = QueueSizes::of(&options)?;
        let ElasticQueueOptions { name, directory, notice, disk, .. } = options;
        let shared = SharedQueue::new(name.into(), directory, sizes, notice, disk);
        Ok(Self { shared: Arc::new(shared), helper: Mutex::new(None) })
    }

    /// Appends a record to its class, and returns its number there, from 0.
    ///
    /// # Errors
    /// [`OverflowError::Full`] and [`OverflowError::TooLong`]; the record was not taken.
    pub fn push(&self, class: Priority, record: &[u8]) -> Result<u64, OverflowError> {
        let sizes = &self.shared.sizes;
        if record.len() > sizes.record_bytes_max {
            return Err(OverflowError::TooLong {
                queue: self.shared.name.clone(),
                length_bytes: record.len(),
                limit_bytes: sizes.record_bytes_max,
            });
        }
        let needed_bytes = Block::length_alone(record.len());
        let mut state = self.shared.lock();
        self.check_room(&mut state, needed_bytes)?;
        let alone = if needed_bytes > sizes.block_bytes {
            // Copies a long record without the lock. Meanwhile the room may be taken.
            drop(state);
            let block = Block::alone(record);
            state = self.shared.lock();
            self.check_room(&mut state, needed_bytes)?;
            Some(block)
        } else {
            None
        };
        let (number, is_work) = state.push(class, record, alone, sizes);
        if is_work && state.helper_sleeps {
            self.shared.wake(state);
        } else if is_work && !state.has_helper {
            state.has_helper = true;
            drop(state);
            self.start_helper();
        }
        Ok(number)
    }

    /// Removes the oldest record of a class and replaces the content of `record`.
    ///
    /// # Errors
    /// [`OverflowError::Lost`], once for each run of lost records; the next call returns the record after them.
    pub fn pop(&self, class: Priority, record: &mut Vec<u8>) -> Result<PoppedRecord, OverflowError> {
        let sizes = &self.shared.sizes;
        let mut state = self.shared.lock();
        let taken = state.pop(class, record, sizes.block_bytes);
        if matches!(taken, PopOutcome::Record(_, false) | PopOutcome::Empty) {
            return Ok(if let PopOutcome::Record(number, _) = taken {
                PoppedRecord::Record(number)
            } else {
                PoppedRecord::Empty
            });
        }
        let has_room = state.take_room_notice(sizes);
        if state.helper_sleeps && state.wants_more(class, sizes) {
            self.shared.wake(state);
        } else {
            drop(state);
        }
        if has_room && let Some(notice) = &self.shared.notice {
            foreign::run("a receiver of notices of a queue", || notice(QueueNotice::Room));
        }
        match taken {
            PopOutcome::Record(number, _) => Ok(PoppedRecord::Record(number)),
            PopOutcome::Block(mut block) => {
                let number = block.next_number();
                block.pop(record);
                Ok(PoppedRecord::Record(number))
            }
            PopOutcome::Later => Ok(PoppedRecord::Later),
            PopOutcome::Empty => Ok(PoppedRecord::Empty),
            PopOutcome::Lost(first_number, records, source) => {
                Err(OverflowError::Lost { queue: self.shared.name.clone(), class, first_number, records, source })
            }
        }
    }

    #[must_use]
    pub fn counters(&self) -> OverflowCounters {
        self.shared.lock().counters
    }

    fn check_room(&self, state: &mut SpillState, needed_bytes: usize) -> Result<(), OverflowError> {
        state.check_room(needed_bytes, &self.shared.sizes).map_err(|reason| OverflowError::Full {
            queue: self.shared.name.clone(),
            memory_bytes: state.counters.memory_bytes,
            disk_bytes: state.counters.disk_bytes,
            reason,
        })
    }

    #[cold]
    fn start_helper(&self) {
        let helper = Helper::new(self.shared.clone());
        let name = format!("spill-{}", self.shared.name);
        match std::thread::Builder::new().name(name).spawn(move || {
            foreign::own_this_thread();
            helper.run();
        }) {
            Ok(handle) => *self.handle() = Some(handle),
            Err(error) => {
                let reason = format!("cannot start the thread that writes records to disk: {error}");
                let mut state = self.shared.lock();
                state.has_helper = false;
                state.refuse(reason, Instant::now());
            }
        }
    }

    fn handle(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ElasticQueue {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_stopping = true;
        self.shared.wake(state);
        let handle = self.handle().take();
        if let Some(handle) = handle
            && handle.thread().id() != std::thread::current().id()
        {
            // Only a panic of the helper is an error here, and the panic has been reported.
            let _ended = handle.join();
        }
    }
}

impl fmt::Debug for ElasticQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ElasticQueue")
            .field("name", &self.shared.name)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
