//! `JournalOptions`: the options of a journal with their defaults, validated once.

use crate::DiskOperation;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gapless_wire::aligned_length;
use gapless_wire::descriptor::{FRAME_LENGTH_MAX, HEADER_LENGTH};

use crate::boot::BootId;
use crate::descriptor::{PAGE_LENGTH, SEGMENT_LENGTH_MAX, frames_offset};
use crate::disk::Disk;
use crate::error::JournalError;

/// Way of the frames to the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Flush {
    /// Stores to a mapping, without a system call.
    #[default]
    Mapped,
    /// A buffer that is written by `pwrite`.
    Write,
}

/// New segments that are filled with zeros and synced before use, at the cost of writing their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Zeroing {
    /// No segment, unless the file system cannot reserve blocks otherwise.
    #[default]
    None,
    /// Pages and blocks then exist before the frames come.
    First,
    /// Makes each later sync cheaper too.
    All,
}

impl Zeroing {
    #[must_use]
    pub const fn of(is_of_all: bool, is_of_first: bool) -> Self {
        match (is_of_all, is_of_first) {
            (true, _) => Self::All,
            (false, true) => Self::First,
            (false, false) => Self::None,
        }
    }

    pub(crate) const fn is_of(self, is_first: bool) -> bool {
        match self {
            Self::None => false,
            Self::First => is_first,
            Self::All => true,
        }
    }
}

/// A segment is deleted only if the newest snapshot covers it *and* it exceeds one of these limits; never without
/// limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Retention {
    /// Total length, bytes.
    pub bytes_max: Option<u64>,
    /// Delete segments whose last frame was appended longer ago than this, ns.
    pub age_max_ns: Option<u64>,
}

/// Vouched frames checked at opening; others are checked when replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RecoveryCheck {
    /// Newest segment, and every frame that no mark vouches for.
    #[default]
    Tail,
    All,
}

/// Replaceable by tests and simulations.
#[derive(Clone, Debug)]
pub struct JournalEnvironment {
    /// `None`: unknown, which counts as another boot.
    pub boot_id: Option<BootId>,
    /// Wall clock, ns since the epoch, for retention by age.
    pub epoch_ns: fn() -> u64,
    /// May refuse requests; `None`: the machine's own.
    pub disk: Option<Arc<dyn Disk>>,
}

impl JournalEnvironment {
    /// Asks the disk for permission.
    ///
    /// # Errors
    /// Error to return instead of doing the work.
    #[inline]
    pub fn check_disk(&self, operation: DiskOperation) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.check(operation))
    }
}

impl Default for JournalEnvironment {
    fn default() -> Self {
        Self { boot_id: BootId::of_this_machine(), epoch_ns: system_epoch_ns, disk: None }
    }
}

fn system_epoch_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Options of a journal. [`JournalOptions::new`] sets the defaults; any field may be changed before
/// [`crate::Journal::open`] validates them.
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// Created if missing; other files in it are ignored.
    pub directory: PathBuf,
    pub stream_id: u128,
    /// File length of new segments in bytes, rounded up to whole pages. Default 256 MiB.
    pub segment_length_bytes: u64,
    /// Each later segment is twice as long, up to `segment_length_bytes`, so that a stream with few frames takes little
    /// space. Default 32 MiB.
    pub first_segment_length_bytes: u64,
    /// Default none.
    pub zeroing: Zeroing,
    /// Default mapped.
    pub flush: Flush,
    /// Way of the marks to the header page, after each commit and sync. Mapped needs no system call. Written needs one,
    /// but then a sync does not write-protect that page, which would make the next store of each processor fault; this
    /// suits tier `sync`. Default mapped.
    pub marks: Flush,
    /// Length of the write buffer in bytes, for [`Flush::Write`]. Default 8192.
    pub write_buffer_bytes: usize,
    /// Empty the buffer at each [`crate::Journal::commit_buffered`]. Default false.
    pub flush_on_commit: bool,
    /// Default never.
    pub retention: Retention,
    /// Bytes, with the header. Default 1 MiB, the layout's limit.
    pub frame_length_max: usize,
    /// Bytes ahead of the writer for which the helper makes pages present, with [`Flush::Mapped`]. 0 suits tier `sync`,
    /// because each sync would write these pages too. Default 16 MiB.
    pub populate_ahead_bytes: u64,
    /// Default the tail.
    pub check: RecoveryCheck,
    /// Sequence of the first frame of a new journal. Default 1.
    pub first_sequence: u64,
    /// Files next to the journal: one of another history is refused without a change. Default none.
    pub points: Vec<FilePoint>,
    pub environment: JournalEnvironment,
}

impl JournalOptions {
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, stream_id: u128) -> Self {
        Self {
            directory: directory.into(),
            stream_id,
            segment_length_bytes: 256 << 20,
            first_segment_length_bytes: 32 << 20,
            zeroing: Zeroing::None,
            flush: Flush::Mapped,
            marks: Flush::Mapped,
            write_buffer_bytes: 8192,
            flush_on_commit: false,
            retention: Retention::default(),
            frame_length_max: FRAME_LENGTH_MAX,
            populate_ahead_bytes: 16 << 20,
            check: RecoveryCheck::Tail,
            first_sequence: 1,
            points: Vec::new(),
            environment: JournalEnvironment::default(),
        }
    }

    /// Rounds the segment's length up to whole pages.
    ///
    /// # Errors
    /// [`JournalError::Options`] names the first option out of range.
    pub fn validate(mut self) -> Result<Self, JournalError> {
        let refuse = |option, reason| Err(JournalError::Options { option, reason });
        if self.directory.as_os_str().is_empty() {
            return refuse("directory", "a path is expected, an empty one was given".to_owned());
        }
        if !(HEADER_LENGTH..=FRAME_LENGTH_MAX).contains(&self.frame_length_max) {
            let found = self.frame_length_max;
            return refuse("frame_length_max", format!("{HEADER_LENGTH}..={FRAME_LENGTH_MAX} bytes, not {found}"));
        }
        let found = self.segment_length_bytes;
        if found > SEGMENT_LENGTH_MAX {
            return refuse("segment_length_bytes", format!("at most {SEGMENT_LENGTH_MAX}, not {found}"));
        }
        self.segment_length_bytes = found.next_multiple_of(PAGE_LENGTH as u64);
        let needed = frames_offset(self.segment_length_bytes) + aligned_length(self.frame_length_max) as u64;
        if self.segment_length_bytes < needed {
            let longest = self.frame_length_max;
            let reason =
                format!("a segment holds at least one frame of {longest} bytes: {needed} or more, not {found}");
            return refuse("segment_length_bytes", reason);
        }
        let shortest = needed.next_multiple_of(PAGE_LENGTH as u64).min(self.segment_length_bytes);
        self.first_segment_length_bytes = self
            .first_segment_length_bytes
            .next_multiple_of(PAGE_LENGTH as u64)
            .clamp(shortest, self.segment_length_bytes);
        if self.flush == Flush::Write && !(1..=1 << 30).contains(&self.write_buffer_bytes) {
            return refuse("write_buffer_bytes", format!("1..={} bytes, not {}", 1 << 30, self.write_buffer_bytes));
        }
        if self.first_sequence == 0 {
            return refuse("first_sequence", "sequences begin with 1".to_owned());
        }
        Ok(self)
    }
}

/// A file written when the journal next to it had the frame of `sequence` on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePoint {
    pub path: PathBuf,
    /// Stream and incarnation. `None` if the file is unreadable; then only its name has the sequence.
    pub identity: Option<(u128, u64)>,
    /// Last frame that the file covers; 0 for none.
    pub sequence: u64,
    /// Time stamp of that frame, ns since the epoch; `None` if the file is unreadable.
    pub timestamp_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut JournalOptions)) -> &'static str {
        let mut options = JournalOptions::new("journal", 1);
        change(&mut options);
        match options.validate() {
            Err(JournalError::Options { option, .. }) => option,
            other => panic!("expected a refusal, found {other:?}"),
        }
    }

    #[test]
    fn defaults_are_valid() {
        JournalOptions::new("journal", 1).validate().unwrap();
    }

    #[test]
    fn option_out_of_range_is_named() {
        assert_eq!(refused(|o| o.directory = PathBuf::new()), "directory");
        assert_eq!(refused(|o| o.frame_length_max = 63), "frame_length_max");
        assert_eq!(refused(|o| o.frame_length_max = FRAME_LENGTH_MAX + 1), "frame_length_max");
        assert_eq!(refused(|o| o.segment_length_bytes = 4096), "segment_length_bytes");
        assert_eq!(refused(|o| o.segment_length_bytes = u64::MAX), "segment_length_bytes");
        assert_eq!(refused(|o| (o.flush, o.write_buffer_bytes) = (Flush::Write, 0)), "write_buffer_bytes");
        assert_eq!(refused(|o| o.first_sequence = 0), "first_sequence");
    }

    #[test]
    fn segment_length_is_whole_pages() {
        let mut options = JournalOptions::new("journal", 1);
        options.segment_length_bytes = (4 << 20) + 1;
        assert_eq!(options.validate().unwrap().segment_length_bytes, (4 << 20) + 4096);
    }
}
