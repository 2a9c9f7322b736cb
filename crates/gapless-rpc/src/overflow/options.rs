//! Options of an elastic queue, and the sizes derived from them.

use crate::overflow::block::Block;
use crate::overflow::error::OptionsError;
use crate::overflow::priority::Priority;
use gapless_journal::Disk;
use gapless_log::call_table::{HEADERS_ROOM, PAYLOAD_LENGTH_MAX};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Longest record of any queue, bytes: the longest request with its headers.
pub const RECORD_BYTES_LIMIT: usize = PAYLOAD_LENGTH_MAX + HEADERS_ROOM + (4 << 10);

const MEMORY_BYTES_MIN: usize = 4 << 10;

const BLOCK_BYTES_MAX: usize = 64 << 10;

const BLOCKS_IN_TIER: usize = 16;

const WINDOWS_IN_TIER: usize = 8;

/// Sent by the helper thread or by a popping thread, without a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueNotice {
    /// The next record of this class can be popped, after a [`super::PoppedRecord::Later`].
    Readable(Priority),
    /// After [`super::OverflowError::Full`]: there is room for a while, or another reason to refuse.
    Room,
}

/// Must not block, since the helper waits for it, nor own the queue. A panic in it is logged.
pub type NoticeReceiver = Arc<dyn Fn(QueueNotice) + Send + Sync>;

/// Options of an elastic queue.
#[derive(Clone)]
pub struct ElasticQueueOptions {
    /// Name in errors and, with its first 9 bytes, of the thread.
    pub name: String,
    /// Records beyond the memory tier are stored here. It must exist; no file in it ever has a name.
    pub directory: PathBuf,
    /// Memory tier, bytes, at least 4096; default 16 MiB. Each record counts its length and 4 bytes, each block (up to
    /// 64 KiB, or one longer record) 64 more.
    pub memory_bytes_max: usize,
    /// Memory tier, records; the lower of both limits counts. At least 1, default 1,048,576.
    pub memory_records_max: usize,
    /// Bytes allowed in memory beyond the tier until the disk has taken them. At least the longest record, default 32
    /// MiB.
    pub burst_bytes_max: usize,
    /// Limit on disk, bytes, with headers and drained records in segments still in use; default 4 GiB. 0: nothing goes
    /// to disk.
    pub disk_bytes_max: u64,
    /// Longest record, bytes; default and limit [`RECORD_BYTES_LIMIT`], 16 MiB and 68 KiB.
    pub record_bytes_max: usize,
    /// Receiver of notices; `None` if refused producers retry by themselves.
    pub notice: Option<NoticeReceiver>,
    /// Simulated disk that may refuse; `None` for the real one.
    pub disk: Option<Arc<dyn Disk>>,
}

impl ElasticQueueOptions {
    /// Default options of a queue with this name that spills to the file system of `directory`.
    #[must_use]
    pub fn new(name: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            directory: directory.into(),
            memory_bytes_max: 16 << 20,
            memory_records_max: 1 << 20,
            burst_bytes_max: 32 << 20,
            disk_bytes_max: 4 << 30,
            record_bytes_max: RECORD_BYTES_LIMIT,
            notice: None,
            disk: None,
        }
    }
}

impl fmt::Debug for ElasticQueueOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ElasticQueueOptions")
            .field("name", &self.name)
            .field("directory", &self.directory)
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("memory_records_max", &self.memory_records_max)
            .field("burst_bytes_max", &self.burst_bytes_max)
            .field("disk_bytes_max", &self.disk_bytes_max)
            .field("record_bytes_max", &self.record_bytes_max)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSizes {
    pub(crate) memory_bytes_max: usize,
    pub(crate) memory_records_max: usize,
    pub(crate) burst_bytes_max: usize,
    pub(crate) disk_bytes_max: u64,
    pub(crate) record_bytes_max: usize,
    pub(crate) block_bytes: usize,
    pub(crate) block_records: u32,
    pub(crate) window_bytes: usize,
    pub(crate) window_records: usize,
    pub(crate) segment_bytes: u64,
}

impl QueueSizes {
    /// Validates the options.
    ///
    /// # Errors
    /// The first option out of range, or a missing directory.
    pub(crate) fn of(options: &ElasticQueueOptions) -> Result<Self, OptionsError> {
        let refuse = |option, reason| Err(OptionsError::Option { option, reason });
        if options.name.contains('\0') {
            return refuse("name", format!("no name of a thread: {:?}", options.name));
        }
        let memory_bytes_max = options.memory_bytes_max;
        if memory_bytes_max < MEMORY_BYTES_MIN {
            return refuse("memory_bytes_max", format!("at least {MEMORY_BYTES_MIN} bytes, not {memory_bytes_max}"));
        }
        if options.memory_records_max == 0 {
            return refuse("memory_records_max", "at least 1, not 0".to_owned());
        }
        let longest = options.record_bytes_max;
        if longest > RECORD_BYTES_LIMIT {
            return refuse("record_bytes_max", format!("at most {RECORD_BYTES_LIMIT} bytes, not {longest}"));
        }
        let (burst, needed) = (options.burst_bytes_max, Block::length_alone(longest));
        if burst < needed {
            let reason =
                format!("room for a record of {longest} bytes, {needed} or more with its headers, not {burst}");
            return refuse("burst_bytes_max", reason);
        }
        if options.disk_bytes_max > 0 {
            let found = std::fs::metadata(&options.directory)
                .map_err(|source| OptionsError::Directory { path: options.directory.clone(), source })?;
            if !found.is_dir() {
                let reason = format!("a directory is expected, {} is none", options.directory.display());
                return refuse("directory", reason);
            }
        }
        let block_records = (options.memory_records_max / BLOCKS_IN_TIER).clamp(1, u32::MAX as usize) as u32;
        Ok(Self {
            memory_bytes_max,
            memory_records_max: options.memory_records_max,
            burst_bytes_max: burst,
            disk_bytes_max: options.disk_bytes_max,
            record_bytes_max: longest,
            block_bytes: (memory_bytes_max / BLOCKS_IN_TIER).min(BLOCK_BYTES_MAX),
            block_records,
            window_bytes: memory_bytes_max / WINDOWS_IN_TIER,
            window_records: options.memory_records_max / WINDOWS_IN_TIER,
            segment_bytes: (options.disk_bytes_max / BLOCKS_IN_TIER as u64).max(1),
        })
    }
}
