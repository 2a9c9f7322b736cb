//! Installation of a completed transfer, before anything else of a start reads the directory. Each step is repeated
//! after a crash, until the completeness mark has become `base`.

use super::{complete_file, incoming, remove};
use crate::ClusterError;
use crate::member::pending_checkpoint::PendingCheckpoint;
use gapless_agent::checked_file;
use gapless_agent::fault::crash_point;
use gapless_agent::private_folder;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::DirectoryLock;
use gapless_journal::durable_file::sync_directory;
use std::path::Path;

fn failed<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> ClusterError + 'a {
    move |source| ClusterError::System { action: format!("{action} {}", path.display()), source }
}

fn sync(directory: &Path) -> Result<(), ClusterError> {
    sync_directory(directory).map_err(failed("syncing", directory))
}

fn rename(from: &Path, to: &Path) -> Result<(), ClusterError> {
    checked_file::rename(from, to).map_err(failed("renaming", from))
}

/// Installs a complete snapshot transfer, and removes an incomplete one.
pub(in crate::member) fn install(layout: &StreamLayout) -> Result<(), ClusterError> {
    let (root, incoming, journal) = (layout.root(), incoming(layout.root()), layout.journal());
    if !incoming.is_dir() {
        return Ok(());
    }
    private_folder::create(&journal).map_err(failed("making", &journal))?;
    let _old = DirectoryLock::take(&journal)?;
    let complete = complete_file(root);
    if complete.exists() {
        tracing::info!("the state that was fetched from another member takes the place of what is here");
        // The pending checkpoint describes the old journal.
        PendingCheckpoint::new(root, 0).remove()?;
        for (from, to) in [("sequencer", layout.state()), ("snapshots", layout.snapshots())] {
            let from = incoming.join(from);
            if from.is_dir() {
                remove(&to)?;
                rename(&from, &to)?;
                sync(root)?;
                crash_point("install_after_state");
            }
        }
        let from = incoming.join("journal");
        if from.is_dir() {
            // Keeps others from opening the directory between the two names.
            let _new = DirectoryLock::take(&from)?;
            let old = incoming.join("old");
            remove(&old)?;
            rename(&journal, &old)?;
            crash_point("install_between_journals");
            rename(&from, &journal)?;
            sync(root)?;
        }
        crash_point("install_after_journal");
        sync(&incoming)?;
        rename(&complete, &root.join("base"))?;
        sync(root)?;
        crash_point("install_before_removal");
    }
    remove(&incoming)?;
    sync(root)
}
