//! Resolves the directory of a command: that of a service, a stream or a member, or the journal in it.

use gapless_client::stream_layout::StreamLayout;
use gapless_journal::inspect::holds_journal;
use std::path::{Path, PathBuf};

/// `directory` itself if it holds segments, else its folder `journal`.
pub(super) fn journal_of(directory: &Path) -> PathBuf {
    let inner = StreamLayout::new(directory).journal();
    if !holds_journal(directory) && inner.is_dir() { inner } else { directory.to_owned() }
}

/// `None` for a journal by itself.
pub(super) fn layout_of(directory: &Path) -> Option<StreamLayout> {
    let canonical = directory.canonicalize().ok()?;
    if journal_of(directory) != directory {
        return Some(StreamLayout::new(canonical));
    }
    [directory, &canonical].into_iter().find_map(|journal| {
        let parent = journal.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let layout = StreamLayout::new(parent.canonicalize().ok()?);
        (layout.journal().canonicalize().ok()? == canonical).then_some(layout)
    })
}

/// Oldest first.
pub(super) fn snapshot_sequences(directory: &Path) -> Result<Vec<u64>, gapless_engine::EngineError> {
    let Some(layout) = layout_of(directory) else { return Ok(Vec::new()) };
    let mut sequences: Vec<u64> =
        gapless_engine::snapshot::list(&layout.snapshots())?.into_iter().map(|(sequence, _)| sequence).collect();
    sequences.sort_unstable();
    Ok(sequences)
}
