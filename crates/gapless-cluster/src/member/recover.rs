//! [`ForcedRecovery`]: a member whose partners are lost for good becomes a cluster of one, in a new incarnation. Offline:
//! nothing here runs beside the member.
//!
//! It needs the journal alone. What the small files say is about other members (who they are, what they were promised),
//! and there are none any more: those files are written anew, and what was there is kept with `.old` behind its name (all
//! but
//! `incarnation`, which the configuration of before says, too).
//!
//! The new incarnation is kept in the directory first: from then on a file of the old one is refused there, and after a
//! crash the recovery is begun again. Last, the journal says who the members are.

use super::member_files::{Instances, MemberFiles, check_not_removed, keep_incarnation};
use super::pending_checkpoint::PendingCheckpoint;
use super::snapshot_transfer::base_file;
use super::snapshot_transfer::install::install;
use super::start;
use super::voting::Voting;
use crate::ClusterError;
use crate::config::ClusterConfig;
use crate::consensus::{MemberId, Recovered};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{FilePoint, JournalReader};
use gapless_log::StreamIdentity;
use gapless_stream::locked_directory::{LockedDirectory, Owner};
use gapless_stream::member_service::ServiceError;
use gapless_stream::persistence::{Opening, Persistence};
use gapless_stream::sequencer_state_writer;
use gapless_transport::Tier;
use gapless_transport::token::random_token;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// A member's directory, taken, and what it holds.
#[derive(Debug)]
pub struct ForcedRecovery {
    member: MemberId,
    addresses: Vec<String>,
    stream_id: u128,
    tier: Tier,
    persistence: Persistence,
    directory: LockedDirectory,
    found: FoundLog,
}

/// What a journal holds.
#[derive(Debug)]
struct FoundLog {
    recovered: Recovered,
    last_sequence: u64,
    term: u64,
}

/// What a recovery has kept, for who gives the files beside the journal the new incarnation.
#[derive(Debug)]
pub struct KeptJournal<'a> {
    /// The journal, as it is.
    pub journal: &'a JournalReader,
    /// The last frame that is kept.
    pub last_sequence: u64,
    /// Whose the files are from now on.
    pub identity: StreamIdentity,
    /// The directory.
    pub root: &'a Path,
}

impl ForcedRecovery {
    /// Takes a member's directory, and looks at what it holds: at every frame that its next start needs. `snapshots`, given
    /// its directory, says what the snapshots of its service stand at. Nothing is changed but what a start of the member
    /// would have to change first: a state that it had fetched is put into place.
    ///
    /// # Errors
    /// The member runs, its directory holds nothing of a cluster, it was removed from one, or its journal is damaged.
    pub fn open(
        config: &ClusterConfig,
        snapshots: impl FnOnce(&StreamLayout) -> Result<Vec<FilePoint>, ServiceError>,
    ) -> Result<Self, ClusterError> {
        let options = config.event_stream_options();
        let root = options.directory.as_deref().unwrap_or_else(|| Path::new(""));
        if !root.is_dir() {
            return Err(nothing(root));
        }
        let directory = LockedDirectory::lock(StreamLayout::new(root))?;
        let layout = directory.layout();
        directory.check_owner(Owner::Member)?;
        check_not_removed(layout.root(), config.member)?;
        if let Some(files) = MemberFiles::look(root)
            && let Ok(Some(instances)) = Instances::look(&files)
        {
            instances.check_is(config.member)?;
        }
        install(layout)?;
        if !layout.journal().is_dir() {
            return Err(nothing(layout.root()));
        }
        let stream_id = start::stream_id(&config.name);
        let journal = JournalReader::open(layout.journal())?;
        let found = look(&journal, stream_id, layout.root())?;
        let found = found.ok_or_else(|| nothing(layout.root()))?;
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

    /// The last frame that is kept: all that this member acknowledged. What others had beyond it is lost.
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.found.last_sequence
    }

    /// Up to which frame this member knows that a quorum had everything.
    #[must_use]
    pub fn committed_sequence(&self) -> u64 {
        self.found.recovered.committed_sequence()
    }

    /// The term of the last entry.
    #[must_use]
    pub const fn term(&self) -> u64 {
        self.found.term
    }

    /// Makes the member a cluster of one in this incarnation, which nobody else may ever have: a file with it and with
    /// this member alone is what it starts with from now on. `adopt` gives states and snapshots the new incarnation.
    ///
    /// # Errors
    /// The directory cannot be written, or what `adopt` says. To be called again then, on a new [`ForcedRecovery`].
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
        let files = match MemberFiles::open(root, None) {
            Ok(files) => files,
            Err(_) => {
                set_aside(root, "instance")?;
                MemberFiles::begin(root, random_token() as u64)?
            }
        };
        keep_incarnation(&files, incarnation)?;
        let identity = StreamIdentity { stream_id: self.stream_id, incarnation };
        let journal = JournalReader::open(layout.journal())?;
        let last_sequence = self.found.last_sequence;
        adopt(&KeptJournal { journal: &journal, last_sequence, identity, root }).map_err(ClusterError::Service)?;
        let points = sequencer_state_writer::points(&layout.state())?;
        let points = points.into_iter().map(|point| FilePoint { identity: None, ..point }).collect();
        let opening = Opening { points, ..Opening::new(self.tier, FRAME_LENGTH_MAX) };
        let mut opened = self.persistence.open(&layout.journal(), opening)?;
        let journal = &mut opened.journal;
        journal.sync()?;
        let found = look(&JournalReader::open(layout.journal())?, self.stream_id, root)?;
        let FoundLog { recovered, last_sequence, .. } = found.ok_or_else(|| nothing(root))?;
        let checkpoint = recovered.alone(self.member, &self.addresses).expect("there is a state");
        let aside = PendingCheckpoint::new(root, files.instance());
        aside.write(&checkpoint)?;
        journal.truncate_after(last_sequence)?;
        journal.append_checkpoint(&checkpoint)?;
        journal.sync()?;
        aside.remove()?;
        // Nobody else is left whom a ballot could have promised anything, or who could be met again.
        for name in ["ballot", "voting", "instances"] {
            set_aside(root, name)?;
        }
        if base_file(&files).is_err() {
            set_aside(root, "base")?;
        }
        Instances::read(&files)?;
        Voting::begin_alone(&files, self.tier.is_synced())
    }
}

fn nothing(path: &Path) -> ClusterError {
    ClusterError::Foreign { path: path.to_owned(), reason: "there is nothing of a member to recover".to_owned() }
}

/// What opening this journal would find; `None` if a member has never begun there.
fn look(journal: &JournalReader, stream_id: u128, root: &Path) -> Result<Option<FoundLog>, ClusterError> {
    let kept = journal.recoverable_sequence()?;
    // Behind the end stand those of frames that opening it cuts.
    let records: Vec<_> = journal.records()?.take_while(|each| each.behind_sequence <= kept).collect();
    let recover = |aside| start::recover(journal, records.clone(), kept, stream_id, aside);
    let aside = PendingCheckpoint::of_any_instance(root);
    let recovered = recover(Some(&aside)).or_else(|error| {
        if !aside.exists() {
            return Err(error);
        }
        tracing::warn!(%error, "what was written aside for a cut of the journal does not count");
        recover(None)
    })?;
    let end = recovered.end();
    Ok(end.map(|end| FoundLog { recovered, last_sequence: end.sequence, term: end.term }))
}

/// Keeps a small file with `.old` behind its name, if it is there.
fn set_aside(root: &Path, name: &str) -> Result<(), ClusterError> {
    let path = root.join(name);
    // What another recovery has kept stays.
    let names = std::iter::once(format!("{name}.old")).chain((1..).map(|number: u64| format!("{name}.old-{number}")));
    let free = names.map(|name| root.join(name)).find(|path| !path.exists()).expect("a directory has fewer files");
    let renamed = match std::fs::rename(&path, free) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        renamed => renamed,
    };
    renamed
        .and_then(|()| File::open(root)?.sync_all())
        .map_err(|source| ClusterError::System { action: format!("renaming {}", path.display()), source })
}
