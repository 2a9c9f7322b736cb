//! Checks that all files of a directory come from one history ([`verify`], changes nothing), and starts a new history
//! from a restored backup ([`restore`], takes the journal's lock). No process may use the directory.

use crate::{EngineError, skips, snapshot};
use gapless_agent::checked_file;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::inspect::{VerifyReport, VerifyVerdict};
use gapless_journal::{FilePoint, JournalEnvironment, JournalError, JournalReader, JournalRestore, inspect};
use gapless_log::StreamIdentity;
use gapless_stream::directory_record::DirectoryRecord;
use gapless_stream::locked_directory::check_kinds;
use gapless_stream::{StreamError, sequencer_state_writer};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct DirectoryReport {
    pub journal: VerifyReport,
    pub files: Vec<FileReport>,
    /// Skipped commands, each with the sequence of its mark.
    pub skips: Vec<(u64, u64)>,
    /// Newer format that keeps this program from starting an undamaged directory.
    pub foreign: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    pub path: PathBuf,
    pub sequence: u64,
    pub damage: Option<String>,
}

impl DirectoryReport {
    #[must_use]
    pub fn verdict(&self) -> VerifyVerdict {
        let is_damaged = self.files.iter().any(|file| file.damage.is_some());
        if is_damaged { VerifyVerdict::Damaged } else { self.journal.verdict() }
    }
}

/// Reads every frame of the journal in `layout`, and all files next to it.
///
/// # Errors
/// The directory has no readable journal, or as for [`check_kinds`].
pub fn verify(layout: &StreamLayout) -> Result<DirectoryReport, EngineError> {
    check_kinds(layout)?;
    let (states, snapshots) =
        (sequencer_state_writer::points(&layout.state())?, snapshot::points(&layout.snapshots())?);
    let mut files = Vec::new();
    for (point, check) in pair_with_checks(&states, &snapshots) {
        let damage = damage_of(point, check);
        files.push(FileReport { path: point.path.clone(), sequence: point.sequence, damage });
    }
    let mut foreign = None;
    match DirectoryRecord::read(layout) {
        Ok(record) => foreign = record.and_then(|record| record.refusal(&[&record.kind])),
        Err(StreamError::State { path, reason }) => files.push(FileReport { path, sequence: 0, damage: Some(reason) }),
        Err(error) => return Err(error.into()),
    }
    let is_member = is_member(layout);
    // A member's journal has an incarnation of its own; states and snapshots have the cluster's.
    let asked = |point: FilePoint| if is_member { FilePoint { identity: None, ..point } } else { point };
    let points: Vec<FilePoint> = states.into_iter().chain(snapshots).map(asked).collect();
    let covered = points.iter().map(|point| point.sequence).max().unwrap_or(0);
    let mut marks = Vec::new();
    let journal = inspect::verify_with(layout.journal(), JournalEnvironment::default(), &points, &mut |frame| {
        marks.extend(skips::marked(frame).map(|skipped| (skipped, frame.sequence())));
    })?;
    let damage = skips::damage(layout, &marks, (journal.info.first_sequence(), covered));
    let file = |damage| FileReport { path: layout.skips(), sequence: 0, damage: Some(damage) };
    files.extend(damage.map(file));
    Ok(DirectoryReport { journal, files, skips: marks, foreign })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    pub last_sequence: u64,
    pub incarnation_before: u64,
    pub incarnation: u64,
    /// Files of other histories, under their new names.
    pub set_aside: Vec<PathBuf>,
}

/// Starts a new history, in a new incarnation, from the directory of a stream or a service host. Keeps the journal and
/// the files of its history; renames the others. From then on, clients and instances that have seen more of the old
/// incarnation are refused. If interrupted, call it again.
///
/// # Errors
/// The directory is in use, has no intact journal, belongs to a member or a relay, or as for [`check_kinds`].
pub fn restore(layout: &StreamLayout) -> Result<RestoreReport, EngineError> {
    let refuse = |reason: &str| EngineError::Restore { directory: layout.root().to_owned(), reason: reason.to_owned() };
    if is_member(layout) {
        return Err(refuse(
            "it is a member of a cluster, and what it has acknowledged is counted on: never put a copy of a member back, \
             but begin it anew with `gapless cluster add --replace`",
        ));
    }
    if layout.origin().exists() {
        return Err(refuse(
            "it is a relay's, or an archive's: move the directory away, and it fetches again what its stream still holds, which may be less \
             than what is here; to make a stream of what it has kept, copy its folder `journal` into a directory of its own",
        ));
    }
    check_kinds(layout)?;
    let record = DirectoryRecord::read(layout)?;
    if let Some(reason) = record.and_then(|record| record.refusal(&[&record.kind])) {
        return Err(refuse(&reason));
    }
    let mut restoring = JournalRestore::begin(&layout.journal())?;
    let (before, incarnation) = restoring.incarnations();
    let stream_id = restoring.reader().stream_id();
    let last_sequence = restoring.last_sequence();
    let is_ours = |of| [before, incarnation].contains(&of);
    let set_aside = rename_foreign_files(layout, restoring.reader(), last_sequence, (stream_id, &is_ours))?;
    restoring.apply()?;
    give_identity(layout, StreamIdentity { stream_id, incarnation })?;
    restoring.finish()?;
    Ok(RestoreReport { last_sequence, incarnation_before: before, incarnation, set_aside })
}

/// Gives the cluster's new incarnation to the states and snapshots of a member that is recovered by force, if the
/// journal up to `last_sequence` confirms them. Renames the others, and returns their new paths.
///
/// # Errors
/// A file cannot be read or written.
pub fn adopt(
    layout: &StreamLayout,
    journal: &JournalReader,
    last_sequence: u64,
    identity: StreamIdentity,
) -> Result<Vec<PathBuf>, EngineError> {
    let set_aside = rename_foreign_files(layout, journal, last_sequence, (identity.stream_id, &|_| true))?;
    give_identity(layout, identity)?;
    Ok(set_aside)
}

/// Damaged files are renamed too: they cannot take the new incarnation.
fn rename_foreign_files(
    layout: &StreamLayout,
    journal: &JournalReader,
    last_sequence: u64,
    (stream_id, is_ours): (u128, &dyn Fn(u64) -> bool),
) -> Result<Vec<PathBuf>, EngineError> {
    let mut set_aside = Vec::new();
    let (states, snapshots) =
        (sequencer_state_writer::points(&layout.state())?, snapshot::points(&layout.snapshots())?);
    for (point, check) in pair_with_checks(&states, &snapshots) {
        let is_ours = point.identity.is_some_and(|(stream, incarnation)| stream == stream_id && is_ours(incarnation));
        let belongs = is_ours && point.sequence <= last_sequence && damage_of(point, check).is_none() && {
            let timed = FilePoint { identity: None, ..point.clone() };
            // Damage in the journal before that frame is no evidence against the file.
            !matches!(journal.check_point(&timed), Err(JournalError::OtherHistory { .. }))
        };
        if !belongs {
            set_aside.push(rename_foreign_file(&point.path)?);
        }
    }
    Ok(set_aside)
}

fn give_identity(layout: &StreamLayout, identity: StreamIdentity) -> Result<(), EngineError> {
    sequencer_state_writer::adopt(&layout.state(), identity)?;
    snapshot::adopt(&layout.snapshots(), identity)
}

/// Tells whether the directory belongs, or has belonged, to a cluster member: it has a member's small files, or
/// consensus records in its journal.
#[must_use]
pub fn is_member(layout: &StreamLayout) -> bool {
    let has_records =
        || inspect::info(layout.journal()).is_ok_and(|info| info.segments.iter().any(|segment| segment.has_records));
    ["instance", "voting", "ballot"].iter().any(|name| layout.root().join(name).exists()) || has_records()
}

type StateFileCheck = fn(&Path, StreamIdentity, u64) -> Option<String>;

fn pair_with_checks<'a>(
    states: &'a [FilePoint],
    snapshots: &'a [FilePoint],
) -> impl Iterator<Item = (&'a FilePoint, StateFileCheck)> {
    let of_state: StateFileCheck =
        |path, identity, at| sequencer_state_writer::check(path, identity, at).err().map(|it| it.to_string());
    let of_snapshot: StateFileCheck =
        |path, identity, at| snapshot::check(path, identity, at).err().map(|it| it.to_string());
    let (states, snapshots) = (states.iter().map(move |point| (point, of_state)), snapshots.iter());
    states.chain(snapshots.map(move |point| (point, of_snapshot)))
}

fn damage_of(point: &FilePoint, check: StateFileCheck) -> Option<String> {
    match point.identity {
        None => Some("it cannot be read".to_owned()),
        Some((stream_id, incarnation)) => check(&point.path, StreamIdentity { stream_id, incarnation }, point.sequence),
    }
}

fn rename_foreign_file(path: &Path) -> Result<PathBuf, EngineError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let candidates = (1..).map(|number: u64| path.with_file_name(format!("{name}.cut-{number}")));
    let free = candidates.into_iter().find(|candidate| !candidate.exists()).expect("a directory has fewer files");
    checked_file::rename(path, &free).map_err(EngineError::system(format!("renaming {}", path.display())))?;
    Ok(free)
}
