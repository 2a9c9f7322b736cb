//! Options of an elastic queue, and what follows from them.

use crate::block::Block;
use crate::error::OptionsError;
use crate::priority::Priority;
use gapless_journal::Disk;
use gapless_log::call_table::{HEADERS_ROOM, PAYLOAD_LENGTH_MAX};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The longest record that any queue takes, in bytes: the longest request with its headers.
pub const RECORD_BYTES_LIMIT: usize = PAYLOAD_LENGTH_MAX + HEADERS_ROOM + (4 << 10);

/// The smallest memory tier, in bytes.
const MEMORY_BYTES_MIN: usize = 4 << 10;

/// The longest block of several records, in bytes.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// So many blocks, about, are a tier full.
const BLOCKS_IN_TIER: usize = 16;

/// A class keeps so much of the tier, about, for its oldest records.
const WINDOWS_IN_TIER: usize = 8;

/// What a queue tells those who were sent away; called by its helper thread or by a thread that pops, without a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The next record of this class, for which somebody was told [`super::Popped::Later`], can be popped.
    Readable(Priority),
    /// After an [`super::OverflowError::Full`]: there is room for a while, or there is none for another reason, which the
    /// next `push` says.
    Room,
}

/// Where notices go. It must not block: the helper waits for it. It must not own the queue. Its panic is logged.
pub type NoticeReceiver = Arc<dyn Fn(Notice) + Send + Sync>;

/// Options of an elastic queue. Made by [`ElasticQueueOptions::new`], whose values are the defaults.
#[derive(Clone)]
pub struct ElasticQueueOptions {
    /// What the queue is called in errors and, its first 9 bytes, in the name of its thread.
    pub name: String,
    /// The directory from whose file system records beyond the memory tier take their room. It must exist; no name ever
    /// stands in it.
    pub directory: PathBuf,
    /// The memory tier: beyond so many bytes, records go to disk. Each counts its length and 4 bytes, each block (of up
    /// to 64 KiB, or one longer record) 64 more. At least 4096. Default 16 MiB.
    pub memory_bytes_max: usize,
    /// As well, beyond so many records. At least 1. Default 1,048,576.
    pub memory_records_max: usize,
    /// So many bytes more may lie in memory until the disk has taken them. At least one record of the longest. Default
    /// 32 MiB.
    pub burst_bytes_max: usize,
    /// The limit on disk, in bytes, with headers and with what is read back but shares a segment with what is not. 0:
    /// nothing goes to disk, and the memory tier is the limit. Default 4 GiB.
    pub disk_bytes_max: u64,
    /// The longest record, in bytes; at most 16 MiB and 68 KiB, which is the default: [`RECORD_BYTES_LIMIT`] of `gapless-overflow`.
    pub record_bytes_max: usize,
    /// Where notices go; `None`: nowhere, who was sent away comes back by itself.
    pub notice: Option<NoticeReceiver>,
    /// A disk that may refuse, for simulations; `None` for the machine's own.
    pub disk: Option<Arc<dyn Disk>>,
}

impl ElasticQueueOptions {
    /// The defaults, for a queue with this name whose rest lies in the file system of `directory`.
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

/// Sizes and limits as the queue uses them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) memory_bytes_max: usize,
    pub(crate) memory_records_max: usize,
    pub(crate) burst_bytes_max: usize,
    pub(crate) disk_bytes_max: u64,
    pub(crate) record_bytes_max: usize,
    /// The longest block of several records.
    pub(crate) block_bytes: usize,
    pub(crate) block_records: u32,
    /// The oldest so many bytes or records of a class stay in memory and are read back ahead of need.
    pub(crate) window_bytes: usize,
    pub(crate) window_records: usize,
    /// A segment longer than this is not appended to.
    pub(crate) segment_bytes: u64,
}

impl Sizes {
    /// Checks the options.
    ///
    /// # Errors
    /// The first option that is out of its range, and a directory that is not there.
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
