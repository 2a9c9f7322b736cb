//! How a journal is kept: one typed struct, its defaults in one place, checked once.

use crate::DiskWork;
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

/// How frames get into the operating system's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Flush {
    /// Copied into a mapping of the segment: a store is enough, no system call.
    #[default]
    Mapped,
    /// Copied into a buffer that `pwrite` empties.
    Write,
}

/// Which new segments are written full of zeros, and synced, before they are used: that costs their length in writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Zeroing {
    /// None, unless the file system cannot reserve blocks otherwise.
    #[default]
    None,
    /// The first one of a new journal: while it lasts, frames find pages and blocks that are there.
    First,
    /// Every one, which makes each later sync cheaper, too.
    All,
}

impl Zeroing {
    /// Of two settings: every segment, and the first one.
    #[must_use]
    pub const fn of(is_of_all: bool, is_of_first: bool) -> Self {
        match (is_of_all, is_of_first) {
            (true, _) => Self::All,
            (false, true) => Self::First,
            (false, false) => Self::None,
        }
    }

    /// Whether a segment is written full of zeros.
    pub(crate) const fn is_of(self, is_first: bool) -> bool {
        match self {
            Self::None => false,
            Self::First => is_first,
            Self::All => true,
        }
    }
}

/// When old segments are deleted. A segment is deleted only if the newest snapshot covers all of it
/// *and* it is beyond one of these limits; with no limit nothing is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Retention {
    /// Delete the oldest segments while all of them together are longer than this, in bytes.
    pub bytes_max: Option<u64>,
    /// Delete segments whose last frame was appended longer ago than this, in ns.
    pub age_max_ns: Option<u64>,
}

/// How much of the vouched part is checked when a journal is opened. Frames that are not checked then are checked when
/// they are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RecoveryCheck {
    /// Every frame of the newest segment and of all that no mark vouches for.
    #[default]
    Tail,
    /// Every frame of every segment.
    All,
}

/// The machine as a journal uses it; replaceable, so that tests and simulations decide.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The boot that the machine is on; `None` when it is not known, which counts as another boot.
    pub boot_id: Option<BootId>,
    /// The wall clock, ns since the epoch. Read when a segment is opened and for retention by age.
    pub epoch_ns: fn() -> u64,
    /// A disk that may refuse; `None` for the machine's own.
    pub disk: Option<Arc<dyn Disk>>,
}

impl Environment {
    /// Whether the disk does this work.
    ///
    /// # Errors
    /// The error to return instead.
    #[inline]
    pub fn ask(&self, work: DiskWork) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.ask(work))
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self { boot_id: BootId::of_this_machine(), epoch_ns: system_epoch_ns, disk: None }
    }
}

fn system_epoch_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// How a journal is kept. Made by [`JournalOptions::new`], whose values are the defaults; every field
/// may be changed before [`crate::Journal::open`] checks them all.
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// The directory; made if it is missing. Other files in it are left alone.
    pub directory: PathBuf,
    /// The stream whose frames these are.
    pub stream_id: u128,
    /// Length of a new segment's file in bytes; rounded up to whole pages. Default 256 MiB.
    pub segment_length_bytes: u64,
    /// The same of the first segment of a new journal, where it is less; each next one is twice as long as the one before
    /// it, up to `segment_length_bytes`. So a stream that carries little takes little. Default 32 MiB.
    pub first_segment_length_bytes: u64,
    /// Which new segments are written full of zeros, and synced, before they are used. Default none.
    pub zeroing: Zeroing,
    /// How frames get into the operating system's hands. Default mapped.
    pub flush: Flush,
    /// How the marks of the header page follow each commit and each sync. Mapped costs no system call. Written, which
    /// suits tier `sync`, costs one, and spares each sync from taking the right to write that page away from every
    /// processor, whose next store would then fault. Default mapped.
    pub marks: Flush,
    /// Length of the write buffer in bytes, for [`Flush::Write`]. Default 8192.
    pub write_buffer_bytes: usize,
    /// Whether [`crate::Journal::commit_buffered`] empties the write buffer each time. Default false.
    pub flush_on_commit: bool,
    /// When old segments are deleted. Default never.
    pub retention: Retention,
    /// The longest frame of the stream in bytes, header included. Default 1 MiB, the layout's limit.
    pub frame_length_max: usize,
    /// How far ahead of the writer the helper thread makes pages present, in bytes, for
    /// [`Flush::Mapped`]; 0 turns it off, which suits tier `sync`, where each sync would write these
    /// pages too. Default 16 MiB.
    pub populate_ahead_bytes: u64,
    /// How much is checked at opening. Default the tail.
    pub check: RecoveryCheck,
    /// The sequence of the first frame of a new journal. Default 1.
    pub first_sequence: u64,
    /// The points that files beside the journal record of it: a journal that is not of their history is refused, and
    /// nothing is changed. Default none.
    pub points: Vec<FilePoint>,
    pub environment: Environment,
}

impl JournalOptions {
    /// The defaults, for `stream_id` in `directory`.
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
            environment: Environment::default(),
        }
    }

    /// Checks every option and rounds the segment's length up to whole pages.
    ///
    /// # Errors
    /// [`JournalError::Options`] names the first option that is out of its range.
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
        // The same room for a frame.
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

/// A file that was written when the journal beside it contained the frame of a sequence, on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePoint {
    pub path: PathBuf,
    /// The stream and incarnation that it belongs to. `None` if it cannot be read, and only its name says where it
    /// stands.
    pub identity: Option<(u128, u64)>,
    /// The sequence of the last frame that it contains; 0 for none.
    pub sequence: u64,
    /// The time stamp of that frame, ns since the epoch; `None` if the file cannot be read.
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
    fn the_defaults_are_valid() {
        JournalOptions::new("journal", 1).validate().unwrap();
    }

    #[test]
    fn each_option_out_of_range_is_named() {
        assert_eq!(refused(|o| o.directory = PathBuf::new()), "directory");
        assert_eq!(refused(|o| o.frame_length_max = 63), "frame_length_max");
        assert_eq!(refused(|o| o.frame_length_max = FRAME_LENGTH_MAX + 1), "frame_length_max");
        assert_eq!(refused(|o| o.segment_length_bytes = 4096), "segment_length_bytes");
        assert_eq!(refused(|o| o.segment_length_bytes = u64::MAX), "segment_length_bytes");
        assert_eq!(refused(|o| (o.flush, o.write_buffer_bytes) = (Flush::Write, 0)), "write_buffer_bytes");
        assert_eq!(refused(|o| o.first_sequence = 0), "first_sequence");
    }

    #[test]
    fn a_segment_is_whole_pages() {
        let mut options = JournalOptions::new("journal", 1);
        options.segment_length_bytes = (4 << 20) + 1;
        assert_eq!(options.validate().unwrap().segment_length_bytes, (4 << 20) + 4096);
    }
}
