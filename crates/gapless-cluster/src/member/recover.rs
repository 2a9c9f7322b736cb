//! [`ForcedRecovery`]: a member whose partners are lost for good becomes a cluster of one, in a new incarnation,
//! offline.
//!
//! Recovery needs only the journal. The small files describe other members (instances, votes), so they are rewritten;
//! the old ones stay with `.old` after their names (except `incarnation`, which the old configuration holds, too). The
//! new incarnation is stored first: from then on a file of the old one is refused, and after a crash the recovery is
//! restarted. Last, the journal's new checkpoint names the member.

use super::member_files::{Instances, MemberFiles, check_not_removed, store_incarnation};
use super::pending_checkpoint::PendingCheckpoint;
use super::snapshot_transfer::base_file;
use super::snapshot_transfer::install::install;
use super::start;
use super::voting::Voting;
use crate::ClusterError;
use crate::config::ClusterConfig;
use crate::consensus::{MemberId, RecoveredState};
use gapless_agent::checked_file;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::durable_file::sync_directory;
use gapless_journal::{FilePoint, JournalReader};
use gapless_log::StreamIdentity;
use gapless_stream::locked_directory::{DirectoryOwner, LockedDirectory};
use gapless_stream::member_service::ServiceError;
use gapless_stream::persistence::{JournalParameters, Persistence};
use gapless_stream::sequencer_state_writer;
use gapless_transport::Tier;
use gapless_transport::token::random_token;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use std::io::ErrorKind;
use std::path::Path;

/// A member's directory, locked.
#[derive(Debug)]
pub struct ForcedRecovery {
    member: MemberId,
    addresses: Vec<String>,
    stream_id: u128,
    tier: Tier,
    persistence: Persistence,
    directory: LockedDirectory,
    found: LogContent,
}

#[derive(Debug)]
struct LogContent {
    recovered: RecoveredState,
    last_sequence: u64,
    term: u64,
}

/// The kept journal, for the caller that gives the other files the new incarnation.
#[derive(Debug)]
pub struct KeptJournal<'a> {
    /// Unchanged.
    pub journal: &'a JournalReader,
    /// Last kept frame.
    pub last_sequence: u64,
    /// New identity of the files.
    pub identity: StreamIdentity,
    pub root: &'a Path,
}

impl ForcedRecovery {
    /// Locks a directory and reads every frame that its next start needs. `snapshots` returns the points of the
    /// service's snapshots. Changes nothing, except that it installs a completed fetch of a state, as a start would.
    ///
    /// # Errors
    /// The member runs, is of no cluster or removed from it, or its journal is damaged.
    pub fn open(
        config: &ClusterConfig,
        snapshots: impl FnOnce(&StreamLayout) -> Result<Vec<FilePoint>, ServiceError>,
    ) -> Result<Self, ClusterError> {
        let options = config.event_stream_options();
        let root = options.directory.as_deref().unwrap_or_else(|| Path::new(""));
        if !root.is_dir() {
            return Err(no_member(root));
        }
        let mut directory = LockedDirectory::lock(StreamLayout::new(root))?;
        directory.check_owner(DirectoryOwner::Member)?;
        let layout = directory.layout();
        check_not_removed(layout.root(), config.member)?;
        if let Ok(files) = MemberFiles::open_read_only(root)
            && let Ok(Some(instances)) = Instances::read_existing(&files)
        {
            instances.check_member(config.member)?;
        }
        install(layout)?;
        if !layout.journal().is_dir() {
            return Err(no_member(layout.root()));
        }
        let stream_id = start::stream_id(&config.name);
        let journal = JournalReader::open(layout.journal())?;
        let found = read_log_content(&journal, stream_id, layout.root())?;
        let found = found.ok_or_else(|| no_member(layout.root()))?;
        let newest = |points: &[FilePoint]| start::newest_readable(points).min(found.last_sequence);
        let snapshots = snapshots(layout).map_err(ClusterError::Service)?;
        let state_sequence = newest(&sequencer_state_writer::points(&layout.state())?);
        let covered = if snapshots.is_empty() { state_sequence } else { state_sequence.min(newest(&snapshots)) };
        let mut replay = journal.replay_until((covered + 1).max(journal.first_sequence()), found.last_sequence)?;
        while replay.next_batch()?.is_some() {}
        Ok(Self {
            member: start::member_id(config.member),
            addresses: config.own().addresses.clone(),
            stream_id,
            tier: options.tier,
            persistence: options.persistence,
            found,
            directory,
        })
    }

    /// Last kept frame, which includes everything that this member acknowledged. Later frames of others are lost.
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.found.last_sequence
    }

    /// Last frame known here to be committed.
    #[must_use]
    pub fn committed_sequence(&self) -> u64 {
        self.found.recovered.committed_sequence()
    }

    /// Term of the last entry.
    #[must_use]
    pub const fn term(&self) -> u64 {
        self.found.term
    }

    /// Makes the member a cluster of one in this incarnation, which must never be used elsewhere: from then on it
    /// starts only with a file of this incarnation and this member alone. `adopt` gives states and snapshots the new
    /// incarnation.
    ///
    /// # Errors
    /// The directory cannot be written, or `adopt` fails. Retry with a new [`ForcedRecovery`].
    ///
    /// # Panics
    /// If `incarnation` is 0.
    pub fn apply(
        self,
        incarnation: u64,
        adopt: impl FnOnce(&KeptJournal<'_>) -> Result<(), ServiceError>,
    ) -> Result<(), ClusterError> {
        assert_ne!(incarnation, 0, "incarnations are counted from 1");
        let layout = self.directory.layout();
        let root = layout.root();
        let files = MemberFiles::open_read_only(root).or_else(|_| {
            rename_to_old(root, "instance")?;
            MemberFiles::begin(root, random_token() as u64)
        })?;
        store_incarnation(&files, incarnation)?;
        let identity = StreamIdentity { stream_id: self.stream_id, incarnation };
        let journal = JournalReader::open(layout.journal())?;
        let last_sequence = self.found.last_sequence;
        adopt(&KeptJournal { journal: &journal, last_sequence, identity, root }).map_err(ClusterError::Service)?;
        let points = sequencer_state_writer::points(&layout.state())?;
        let points = points.into_iter().map(|point| FilePoint { identity: None, ..point }).collect();
        let opening = JournalParameters { points, ..JournalParameters::new(self.tier, FRAME_LENGTH_MAX) };
        let mut opened = self.persistence.open(&layout.journal(), opening)?;
        let journal = &mut opened.journal;
        journal.sync()?;
        let found = read_log_content(&JournalReader::open(layout.journal())?, self.stream_id, root)?;
        let LogContent { recovered, last_sequence, .. } = found.ok_or_else(|| no_member(root))?;
        let checkpoint = recovered.single_member_checkpoint(self.member, &self.addresses).expect("there is a state");
        let pending = PendingCheckpoint::new(root, files.instance());
        pending.write(&checkpoint)?;
        journal.truncate_after(last_sequence)?;
        journal.append_checkpoint(&checkpoint)?;
        journal.sync()?;
        pending.remove()?;
        // No other member is left that could hold a vote of this one, or reconnect.
        for name in ["ballot", "voting", "instances"] {
            rename_to_old(root, name)?;
        }
        if base_file(&files).is_err() {
            rename_to_old(root, "base")?;
        }
        Instances::read(&files)?;
        Voting::reset_for_recovery(&files, self.tier.is_synced())
    }
}

fn no_member(path: &Path) -> ClusterError {
    ClusterError::Foreign { path: path.to_owned(), reason: "there is nothing of a member to recover".to_owned() }
}

fn read_log_content(journal: &JournalReader, stream_id: u128, root: &Path) -> Result<Option<LogContent>, ClusterError> {
    let last_sequence = journal.recoverable_sequence()?;
    // Later records describe frames that opening the journal cuts.
    let records: Vec<_> = journal.records()?.take_while(|each| each.after_sequence <= last_sequence).collect();
    let recover = |pending| start::recover(journal, records.clone(), last_sequence, stream_id, pending);
    let pending = PendingCheckpoint::of_any_instance(root);
    let recovered = recover(Some(&pending)).or_else(|error| {
        if !pending.exists() {
            return Err(error);
        }
        tracing::warn!(%error, "what was written aside for a cut of the journal does not count");
        recover(None)
    })?;
    let end = recovered.end();
    Ok(end.map(|end| LogContent { recovered, last_sequence: end.sequence, term: end.term }))
}

fn rename_to_old(root: &Path, name: &str) -> Result<(), ClusterError> {
    let path = root.join(name);
    // A file kept by an earlier recovery stays.
    let names = std::iter::once(format!("{name}.old")).chain((1..).map(|number: u64| format!("{name}.old-{number}")));
    let free = names.map(|name| root.join(name)).find(|path| !path.exists()).expect("a directory has fewer files");
    let renamed = match checked_file::rename(&path, free) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        renamed => renamed,
    };
    renamed
        .and_then(|()| sync_directory(root))
        .map_err(|source| ClusterError::System { action: format!("renaming {}", path.display()), source })
}
