//! [`check_files`]: whether the small files of a member's directory are whole and of one start, for commands that look at a directory
//! and change nothing. A start refuses the same.

use super::ballot::FoundBallot;
use super::member_files::{Instances, MemberFiles};
use super::snapshot_transfer::base_file;
use super::voting;
use crate::ClusterError;
use std::path::Path;

/// What a start of the member in `directory` would refuse of its small files, a file each: `instance`, `incarnation`, `instances`,
/// `voting`, `ballot` and, if there is one, `base`. The directory has a journal.
///
/// Without a whole `instance` nothing can be said about the others, whose seals hold its number.
#[must_use]
pub fn check_files(directory: &Path) -> Vec<ClusterError> {
    let files = match MemberFiles::look(directory) {
        Ok(files) => files,
        Err(error) => return vec![error],
    };
    let incarnation = || {
        let text = files.read("incarnation")?.ok_or_else(|| files.missing("incarnation"))?;
        text.trim().parse::<u64>().map_err(|_| files.damaged("incarnation")).map(|_| ())
    };
    let instances = || Instances::look(&files)?.ok_or_else(|| files.missing("instances")).map(|_| ());
    let votes = || voting::check(&files, &FoundBallot::read(directory, files.instance())?);
    let base = || base_file(&files).map(|_| ());
    [incarnation(), instances(), votes(), base()].into_iter().filter_map(Result::err).collect()
}
