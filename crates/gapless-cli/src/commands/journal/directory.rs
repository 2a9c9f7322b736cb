//! The folders that a directory means: that of a service, a stream or a member, or the journal in it.

use gapless_client::stream_layout::StreamLayout;
use gapless_journal::inspect::holds_journal;
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
