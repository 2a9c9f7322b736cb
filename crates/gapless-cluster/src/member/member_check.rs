//! [`check_member_files`]: checks that the small files of a member's directory are whole and of one start, for commands
//! that inspect a directory and change nothing. A start refuses the same.

use super::ballot::StoredBallot;
use super::member_files::{Instances, MemberFiles, read_incarnation};
use super::pending_checkpoint::PendingCheckpoint;
use super::snapshot_transfer::base_file;
use super::voting;
use crate::ClusterError;
use std::path::Path;

/// Returns the errors with which a start of the member in `directory` would refuse its small files: `instance`,
/// `incarnation`, `instances`, `ballot`, `voting` and, if they exist, `base` and `checkpoint`. The directory has a
/// journal, and the member does not run.
///
/// Without a whole `instance` the others cannot be checked, because their seals contain its number.
#[must_use]
pub fn check_member_files(directory: &Path) -> Vec<ClusterError> {
    let files = match MemberFiles::open_read_only(directory) {
        Ok(files) => files,
        Err(error) => return vec![error],
    };
    let incarnation = read_incarnation(&files).and_then(|found| found.ok_or_else(|| files.missing("incarnation")));
    let instances = Instances::read_existing(&files).and_then(|found| found.ok_or_else(|| files.missing("instances")));
    let ballot = StoredBallot::read(directory, files.instance());
    let voting = voting::check(&files, ballot.as_ref().ok());
    let results = [
        incarnation.map(drop),
        instances.map(drop),
        ballot.map(drop),
        voting,
        base_file(&files).map(drop),
        PendingCheckpoint::new(directory, files.instance()).read().map(drop),
    ];
    results.into_iter().filter_map(Result::err).collect()
}
