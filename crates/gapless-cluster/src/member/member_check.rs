//! Checks of the small files of a directory, for commands that change nothing; a start refuses the same.

use super::ballot::StoredBallot;
use super::member_files::{Instances, MemberFiles, read_incarnation};
use super::pending_checkpoint::PendingCheckpoint;
use super::snapshot_transfer::base_file;
use super::voting;
use crate::ClusterError;
use std::path::Path;

/// Errors with which a start would refuse the small files of `directory`: `instance`, `incarnation`, `instances`,
/// `ballot`, `voting`, `base`, `checkpoint`. Changes nothing; the member does not run, and has a journal. Without a
/// whole `instance` the others cannot be checked: their seals contain its number.
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
