//! Serves transfers: one request and one piece in a turn, so that no other work waits.

use super::wire::{
    JournalBase, OfferedFile, PieceLocation, TransferAnswer, TransferFile, TransferOffer, TransferRequest,
};
use super::{TransferContext, base_file};
use crate::ClusterError;
use crate::consensus::record::RecordContent;
use crate::consensus::types::CONSENSUS_MEMBERS_MAX;
use crate::consensus::{Consensus, LogPosition, MemberId};
use crate::link::{Links, MessageContent};
use gapless_agent::checked_file;
use gapless_journal::JournalReader;
use gapless_stream::sequencer_state_writer;
use gapless_transport::warnings::Warnings;
use gapless_wire::checksum::crc32c;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;

const PIECE_BYTES: usize = 512 << 10;
/// A member that asked twice continues with the first answer.
const TRANSFERS_MAX: usize = 2;

#[derive(Default)]
pub(super) struct TransferSender {
    requests: VecDeque<(MemberId, TransferRequest)>,
    /// Last transfers to each member. Their files stay open, so that newer ones may replace them on disk.
    open_transfers: BTreeMap<MemberId, VecDeque<OpenTransfer>>,
    last_transfer: u64,
    bytes: Vec<u8>,
    /// State and snapshot are older than all consensus records in the journal.
    needs_newer: bool,
    warnings: Warnings,
}

struct OpenTransfer {
    transfer: u64,
    state: (File, u64),
    snapshot: Option<(File, u64)>,
}

impl TransferSender {
    /// Replaces an older request of the same member.
    pub fn queue_request(&mut self, from: MemberId, request: TransferRequest) {
        self.requests.retain(|(other, _)| *other != from);
        if self.requests.len() < CONSENSUS_MEMBERS_MAX {
            self.requests.push_back((from, request));
        }
    }

    /// Whether a member needs a newer state and snapshot; true once for each need.
    pub fn needs_newer(&mut self) -> bool {
        std::mem::take(&mut self.needs_newer)
    }

    pub fn forget(&mut self, member: MemberId) {
        self.requests.retain(|(other, _)| *other != member);
        self.open_transfers.remove(&member);
    }

    /// Answers one request.
    pub fn serve(&mut self, context: &TransferContext, links: &mut Links, consensus: &Consensus, now_ns: u64) {
        let Some((to, request)) = self.requests.pop_front() else { return };
        self.bytes.clear();
        let answer = match request {
            TransferRequest::Offer { with_snapshot } => self
                .pack(context, to, with_snapshot, consensus, now_ns)
                .unwrap_or_else(|error| TransferAnswer::refuse(&format!("this member cannot read it now: {error}"))),
            TransferRequest::Piece(piece) => self.cut(to, piece),
        };
        if let TransferAnswer::Refused(reason) = &answer {
            self.warnings.warn(now_ns, || format!("member {to}, which is too far behind, gets nothing: {reason}"));
        }
        // The receiver asks again if the answer does not arrive.
        let _ = links.send(to.get(), MessageContent::SnapshotTransfer, &answer.to_bytes(), &[&self.bytes]);
    }

    fn pack(
        &mut self,
        context: &TransferContext,
        to: MemberId,
        with_snapshot: bool,
        consensus: &Consensus,
        now_ns: u64,
    ) -> Result<TransferAnswer, ClusterError> {
        let Some((position, members)) = consensus.applied_position() else {
            return Ok(TransferAnswer::refuse("nothing is applied here"));
        };
        let Some((state_at, state)) = sequencer_state_writer::newest_file(&context.layout.state(), position.sequence)?
        else {
            return Ok(TransferAnswer::refuse("no state of the sequencer is written here yet"));
        };
        let snapshot = match (with_snapshot, context.shared.snapshots()) {
            (false, _) => None,
            (true, None) => {
                return Ok(TransferAnswer::refuse("this member runs no service, so it has no snapshot of one"));
            }
            (true, Some(snapshots)) => {
                let found = snapshots.list().map_err(|reason| ClusterError::Service(reason.into()))?;
                let Some(newest) = found.into_iter().rev().find(|(sequence, _)| *sequence <= position.sequence) else {
                    return Ok(TransferAnswer::refuse("the service has no snapshot here yet"));
                };
                Some(newest)
            }
        };
        let least = snapshot.as_ref().map_or(state_at, |(sequence, _)| state_at.min(*sequence));
        let Some(base) = newest_base(context, consensus, least)? else {
            self.needs_newer = true;
            return Ok(TransferAnswer::refuse(
                "no checkpoint in the journal stands before state and snapshot; a newer one will do",
            ));
        };
        let open = |path: &std::path::Path, sequence| -> std::io::Result<(File, OfferedFile)> {
            let file = checked_file::open(path)?;
            let length = file.metadata()?.len();
            Ok((file, OfferedFile { sequence, length }))
        };
        let opened = open(&state, state_at).and_then(|state| {
            let snapshot = snapshot.map(|(sequence, path)| open(&path, sequence)).transpose()?;
            Ok((state, snapshot))
        });
        let ((state_file, state), snapshot) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let reason = format!("state or snapshot has just been replaced, or cannot be opened now: {error}");
                return Ok(TransferAnswer::refuse(&reason));
            }
        };
        // Must differ from the numbers of this process's former life.
        self.last_transfer = now_ns.max(self.last_transfer + 1);
        let transfer = self.last_transfer;
        let offer = TransferOffer {
            transfer,
            base,
            position,
            members,
            state,
            snapshot: snapshot.as_ref().map(|(_, snapshot)| *snapshot),
        };
        tracing::info!(
            member = %to,
            state = state_at,
            snapshot = offer.snapshot.map(|snapshot| snapshot.sequence),
            from = base.sequence + 1,
            to = position.sequence,
            "a member that is too far behind gets a state, and the frames behind it"
        );
        let snapshot = snapshot.map(|(file, snapshot)| (file, snapshot.length));
        let open_transfers = self.open_transfers.entry(to).or_default();
        open_transfers.push_back(OpenTransfer { transfer, state: (state_file, state.length), snapshot });
        if open_transfers.len() > TRANSFERS_MAX {
            open_transfers.pop_front();
        }
        Ok(TransferAnswer::Offer(Box::new(offer)))
    }

    fn cut(&mut self, to: MemberId, piece: PieceLocation) -> TransferAnswer {
        let unknown = || TransferAnswer::refuse("there is no such snapshot transfer; ask anew");
        let mut all = self.open_transfers.get(&to).into_iter().flatten();
        let Some(open_transfers) = all.find(|open_transfers| open_transfers.transfer == piece.transfer) else {
            return unknown();
        };
        let file = match piece.part {
            TransferFile::State => Some(&open_transfers.state),
            TransferFile::Snapshot => open_transfers.snapshot.as_ref(),
        };
        let Some((file, length)) = file.filter(|(_, length)| piece.offset < *length) else { return unknown() };
        self.bytes.resize((length - piece.offset).min(PIECE_BYTES as u64) as usize, 0);
        if let Err(error) = file.read_exact_at(&mut self.bytes, piece.offset) {
            self.bytes.clear();
            self.open_transfers.remove(&to);
            return TransferAnswer::refuse(&format!("state or snapshot cannot be read: {error}"));
        }
        TransferAnswer::Piece(piece, crc32c(&self.bytes))
    }
}

/// Newest base at or before `least`: its chain value is known, and all later frames are held.
fn newest_base(
    context: &TransferContext,
    consensus: &Consensus,
    least: u64,
) -> Result<Option<JournalBase>, ClusterError> {
    let reader = JournalReader::open(context.layout.journal())?;
    let before = reader.first_sequence() - 1;
    let mut found = None;
    // The entry may be uncommitted, but frames before `least` are committed: a cut would have removed the record.
    reader.newest_checkpoint(|record| {
        if let Ok(RecordContent::Checkpoint(checkpoint)) = RecordContent::from_bytes(&record.payload) {
            let end = checkpoint.end();
            let is_right = (before..=least).contains(&end.sequence);
            found = is_right.then_some(JournalBase { sequence: end.sequence, hash: end.hash });
        }
        found.is_some()
    })?;
    if found.is_none() {
        found = base_file(&context.files)?.filter(|base| (before..=least).contains(&base.sequence));
    }
    // All records of consensus may be later than state and snapshot, and nothing newer may be committed without the
    // asking member; but this member knows its applied position.
    let known = || consensus.applied_position_until(least).filter(|position| position.sequence >= before);
    Ok(found.or_else(|| known().map(|LogPosition { sequence, hash, .. }| JournalBase { sequence, hash })))
}
