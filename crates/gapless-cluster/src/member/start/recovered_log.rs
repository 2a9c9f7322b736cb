//! `RecoveredLog`: the journal of a member after its start, and the state of consensus.

use super::MemberDirectory;
use super::member_directory::foreign_journal;
use crate::ClusterError;
use crate::config::{ClusterConfig, MemberKind};
use crate::consensus::RecoveredState;
use crate::member::ballot;
use crate::member::ballot::Ballot;
use crate::member::member_environment::MemberEnvironment;
use crate::member::pending_checkpoint::PendingCheckpoint;
use crate::member::voting::Voting;
use gapless_agent::fault::crash_point;
use gapless_journal::{ConsensusRecord, FilePoint, Journal, JournalReader};
use gapless_log::StreamIdentity;
use gapless_stream::member_service::MemberService;
use gapless_stream::options::EventStreamOptions;
use gapless_stream::persistence::{JournalParameters, OpenedJournal};
use gapless_stream::sequencer_state_writer;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;

/// A member's log, without the frames that no other member knows.
pub(super) struct RecoveredLog {
    pub opened: OpenedJournal,
    pub consensus: RecoveredState,
    pub voting: Voting,
    pub ballot: Ballot,
    pub pending_checkpoint: PendingCheckpoint,
    /// Newest state of the sequencer; 0 without one.
    pub state_sequence: u64,
    /// Newest snapshot of the service; 0 without one.
    pub snapshot_sequence: u64,
    /// Known to be committed.
    pub committed: u64,
    /// Last frame of the journal.
    pub last_sequence: u64,
}

impl RecoveredLog {
    /// Cuts the frames that no other member knows, and records the start in the directory.
    pub fn open(
        config: &ClusterConfig,
        options: &EventStreamOptions,
        service: Option<&dyn MemberService>,
        member_directory: &MemberDirectory,
        member_environment: &MemberEnvironment,
    ) -> Result<Self, ClusterError> {
        let MemberDirectory { layout, files, identity, .. } = member_directory;
        let (root, directory) = (layout.root(), layout.journal());
        let environment = || member_environment.journal.clone();
        let voters = config.others().filter(|each| each.kind != MemberKind::Learner).map(|each| each.id);
        // A joining member receives the list from a leader.
        let awaited = if config.joins { Vec::new() } else { voters.collect() };
        let is_synced = options.tier.is_synced();
        let found = ballot::StoredBallot::read(root, files.instance())?;
        let mut voting = Voting::begin(files, &directory, environment(), &found, is_synced, awaited)?;
        let of_state = points_of(*identity, sequencer_state_writer::points(&layout.state())?)?;
        let of_service = match service {
            Some(service) => points_of(*identity, service.points(layout).map_err(ClusterError::Service)?)?,
            None => Vec::new(),
        };
        let (state_sequence, snapshot_sequence) = (newest_readable(&of_state), newest_readable(&of_service));
        let opening = JournalParameters {
            new_stream_id: Some(identity.stream_id),
            points: [of_state, of_service].concat().into_iter().map(without_identity).collect(),
            environment: environment(),
            ..JournalParameters::new(options.tier, FRAME_LENGTH_MAX)
        };
        let mut opened = options.persistence.open(&directory, opening)?;
        let pending_checkpoint = PendingCheckpoint::new(root, files.instance()).on(environment());
        let reader = JournalReader::open_in(&directory, environment())?;
        let records = reader.records()?.collect();
        let last_sequence = opened.journal.last_sequence();
        let mut consensus = recover(&reader, records, last_sequence, identity.stream_id, Some(&pending_checkpoint))?;
        if let Some(voted) = &found.record {
            let path = || root.join("ballot");
            consensus.note_vote(voted).map_err(|source| ClusterError::Recovery { path: path(), source })?;
        }
        let begun = (files.instance(), voting.starts());
        let ballot = Ballot::begin(root, &found, begun, environment())?;
        let behind = voting.recovered(consensus.hard_state().term, ballot.number())?;
        if is_synced {
            opened.journal.sync()?;
            voting.note_synced()?;
        }
        // A state covers only released frames, so it may exceed the records: fetched frames are released before the log
        // reaches them.
        let known_sequence = state_sequence.max(snapshot_sequence);
        cut(&mut opened.journal, &consensus, &pending_checkpoint, known_sequence)?;
        consensus.note_committed(known_sequence);
        if let Some(behind) = behind {
            consensus = consensus.rejoining(behind);
        }
        let committed = consensus.committed_sequence().max(known_sequence);
        let last_sequence = opened.journal.last_sequence();
        Ok(Self {
            opened,
            consensus,
            voting,
            ballot,
            pending_checkpoint,
            state_sequence,
            snapshot_sequence,
            committed,
            last_sequence,
        })
    }
}

/// Cuts the frames that no other member knows, and completes a cut that a crash interrupted.
fn cut(
    journal: &mut Journal,
    consensus: &RecoveredState,
    pending_checkpoint: &PendingCheckpoint,
    known_sequence: u64,
) -> Result<(), ClusterError> {
    let last_sequence = journal.last_sequence();
    let truncate_after = consensus.truncate_after().max(known_sequence);
    let is_longer = last_sequence > truncate_after;
    if is_longer {
        tracing::info!(truncate_after, last_sequence, "frames are cut that nobody was told of");
    }
    if let Some(checkpoint) = consensus.checkpoint().filter(|_| is_longer || pending_checkpoint.exists()) {
        // A cut removes records that must be kept.
        journal.sync()?;
        pending_checkpoint.write(&checkpoint)?;
        crash_point("start_before_truncation");
        journal.truncate_after(truncate_after)?;
        crash_point("start_after_truncation");
        journal.append_checkpoint(&checkpoint)?;
        journal.sync()?;
    }
    pending_checkpoint.remove()
}

fn points_of(identity: StreamIdentity, points: Vec<FilePoint>) -> Result<Vec<FilePoint>, ClusterError> {
    let expected = (identity.stream_id, identity.incarnation);
    match points.iter().find(|point| point.identity.is_some_and(|found| found != expected)) {
        Some(point) => {
            let reason = "it belongs to another cluster, or to another incarnation of this one".to_owned();
            Err(ClusterError::Foreign { path: point.path.clone(), reason })
        }
        None => Ok(points),
    }
}

/// 0 without a readable file.
pub(in crate::member) fn newest_readable(points: &[FilePoint]) -> u64 {
    points.iter().filter(|point| point.timestamp_ns.is_some()).map(|point| point.sequence).max().unwrap_or(0)
}

/// A member's journal has its own incarnation; states and snapshots have the cluster's.
fn without_identity(point: FilePoint) -> FilePoint {
    FilePoint { identity: None, ..point }
}

/// Recovers the state from the records of a journal that ends with the frame `last_sequence`, and from the pending
/// checkpoint of a cut.
pub(in crate::member) fn recover(
    journal: &JournalReader,
    mut records: Vec<ConsensusRecord>,
    last_sequence: u64,
    stream_id: u128,
    pending_checkpoint: Option<&PendingCheckpoint>,
) -> Result<RecoveredState, ClusterError> {
    let path = journal.directory().to_owned();
    let foreign = |reason: &str| Err(ClusterError::Foreign { path: path.clone(), reason: reason.to_owned() });
    if journal.stream_id() != stream_id {
        return Err(foreign_journal(&path));
    }
    if records.is_empty() && last_sequence > 0 {
        return foreign("it holds a stream, and no record of a cluster");
    }
    let written = match pending_checkpoint {
        Some(pending_checkpoint) => pending_checkpoint.read()?,
        None => None,
    };
    if let (Some(pending_checkpoint), Some(payload)) = (pending_checkpoint, written) {
        let of_pending = |source| ClusterError::Recovery { path: pending_checkpoint.path().to_owned(), source };
        let known = records.iter().map(|each| (each.after_sequence, each.is_checkpoint, &each.payload[..]));
        RecoveredState::check_pending(known, &payload).map_err(of_pending)?;
        records.push(ConsensusRecord { after_sequence: last_sequence, is_checkpoint: true, payload });
    }
    let records = records.iter().map(|each| (each.after_sequence, each.is_checkpoint, &each.payload[..]));
    RecoveredState::from_records(records, last_sequence).map_err(|source| ClusterError::Recovery { path, source })
}
