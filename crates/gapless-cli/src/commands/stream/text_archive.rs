//! Survives a full disk: the file is opened again and continued after its last whole line.

use super::text_file::{BoxedError, FRAMES_PER_POLL, TextFile};
use super::waiting::print_wait_note;
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_stream::event_stream::EventStream;
use std::path::{Path, PathBuf};

const PAUSE_NS: u64 = 1_000_000_000;

pub(super) struct TextArchive {
    path: PathBuf,
    file: Option<TextFile>,
    next_attempt_ns: u64,
    notices: WaitNotices,
    is_behind: bool,
}

impl TextArchive {
    pub(super) fn open(path: &Path) -> Result<Self, BoxedError> {
        let file = Some(TextFile::open(path)?);
        Ok(Self { path: path.to_owned(), file, next_attempt_ns: 0, notices: WaitNotices::at_once(), is_behind: false })
    }

    /// A failed write is reported and retried. Returns whether there may be more frames.
    pub(super) fn follow(&mut self, stream: &EventStream) -> bool {
        let now_ns = monotonic_ns();
        if now_ns < self.next_attempt_ns {
            return false;
        }
        self.attempt(stream).unwrap_or_else(|error| {
            (self.next_attempt_ns, self.is_behind) = (now_ns + PAUSE_NS, true);
            if let Some(waited) = self.notices.take_due(now_ns) {
                let last = stream.released_sequence();
                print_wait_note(waited, &format!("{error}; the text is behind the stream, which is at {last}"));
            }
            false
        })
    }

    pub(super) fn attempt(&mut self, stream: &EventStream) -> Result<bool, BoxedError> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => TextFile::open(&self.path)?,
        };
        match file.follow(stream) {
            Ok(count) => {
                self.file = Some(file);
                if count > 0 && std::mem::take(&mut self.is_behind) {
                    self.notices.end();
                    crate::commands::to_stderr!("note: {} is written again", self.path.display());
                }
                Ok(count == FRAMES_PER_POLL)
            }
            Err(error) => {
                file.discard();
                Err(error)
            }
        }
    }
}
