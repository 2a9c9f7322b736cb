//! The folders that a directory means: a node's, or the journal in it.

use gapless_client::stream_layout::StreamLayout;
use gapless_journal::descriptor::LOCK_NAME;
use gapless_journal::inspect::holds_journal;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The journal's folder: `directory` itself if it holds segments, else its folder `journal`.
pub(super) fn journal_of(directory: &Path) -> PathBuf {
    let inner = StreamLayout::new(directory).journal();
    if !holds_journal(directory) && inner.is_dir() { inner } else { directory.to_owned() }
}

/// The directory whose journal this is; `None` if it is one by itself.
pub(super) fn layout_of(journal: &Path) -> Option<StreamLayout> {
    let canonical = journal.canonicalize().ok()?;
    let layout = StreamLayout::new(canonical.parent()?);
    (layout.journal() == canonical).then_some(layout)
}

/// The sequences of the snapshots beside a journal, oldest first; none where nobody keeps them.
pub(super) fn snapshot_sequences(journal: &Path) -> Result<Vec<u64>, gapless_engine::EngineError> {
    let Some(layout) = layout_of(journal) else { return Ok(Vec::new()) };
    let mut sequences: Vec<u64> =
        gapless_engine::snapshot::list(&layout.snapshots())?.into_iter().map(|(sequence, _)| sequence).collect();
    sequences.sort_unstable();
    Ok(sequences)
}

/// Who holds the lock of a journal, as the holder wrote it there; `None` if nobody does.
pub(crate) fn lock_holder(journal: &Path) -> std::io::Result<Option<String>> {
    let mut file = match File::open(journal.join(LOCK_NAME)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !is_locked(&file)? {
        return Ok(None);
    }
    let mut text = Vec::new();
    // A limit, because anybody may have written the file.
    (&mut file).take(256).read_to_end(&mut text)?;
    let text: String = String::from_utf8_lossy(&text).trim().chars().filter(|c| !c.is_control()).collect();
    Ok(Some(if text.is_empty() { "a process that did not leave its name".to_owned() } else { text }))
}

/// Asks the kernel's list of locks, which disturbs nobody; only where it does not name the file, tries
/// the lock, and lets it go at once.
fn is_locked(file: &File) -> std::io::Result<bool> {
    let inode = file.metadata()?.ino().to_string();
    let is_listed = std::fs::read_to_string("/proc/locks").is_ok_and(|list| {
        list.lines().any(|line| {
            line.contains("FLOCK") && line.split_whitespace().any(|word| word.rsplit(':').next() == Some(&*inode))
        })
    });
    if is_listed {
        return Ok(true);
    }
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
