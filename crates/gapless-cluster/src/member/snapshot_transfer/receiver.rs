//! Assembles a transfer: files, then frames from the base to the log position, whose chain must give the position's
//! value. Blocking work (checking a whole file, syncing) runs outside the agent's thread.
//!
//! After any error the transfer is given up; the leader offers a log position again, and if it still lacks the frames,
//! the next transfer begins with its files of that time.

use super::wire::{OfferedFile, PieceLocation, TransferAnswer, TransferFile, TransferOffer, TransferRequest};
use super::{TransferContext, base_text, complete_file, remove};
use crate::ClusterError;
use crate::consensus::{Consensus, MemberId};
use crate::link::{Links, MessageContent};
use crate::member::frame_fetch::{FetchedFrames, PieceRequests};
use gapless_agent::fault::crash_point;
use gapless_agent::thread::spawn_helper;
use gapless_agent::{checked_file, private_folder};
use gapless_journal::Journal;
use gapless_journal::durable_file::sync_directory;
use gapless_stream::sequencer_state_writer;
use gapless_wire::checksum::crc32c;
use std::fs::File;
use std::io::Write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub(super) type TransferOutcome = Result<(), String>;

pub(super) struct TransferReceiver {
    stage: TransferStage,
    requests: PieceRequests,
}

enum TransferStage {
    Asking,
    File { offer: Box<TransferOffer>, part: TransferFile, file: File, offset: u64 },
    Checking { offer: Box<TransferOffer>, work: BlockingWork },
    Frames { offer: Box<TransferOffer>, journal: Box<Journal>, frames: FetchedFrames },
    Syncing { offer: Box<TransferOffer>, work: BlockingWork },
}

struct BlockingWork(Arc<OnceLock<Result<(), String>>>);

impl BlockingWork {
    /// On a separate thread, unless the member has no helpers.
    fn begin(
        context: &TransferContext,
        body: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<Self, ClusterError> {
        let outcome = Arc::<OnceLock<_>>::default();
        match &context.waker {
            Some(waker) => {
                let (result, waker) = (Arc::clone(&outcome), waker.clone());
                let run = move || {
                    // Only this thread sets it.
                    let _ = result.set(body());
                    waker.wake();
                };
                spawn_helper("gapless-receive", run).map_err(ClusterError::Agent)?;
            }
            None => outcome.set(body()).expect("nobody else sets it"),
        }
        Ok(Self(outcome))
    }

    fn outcome(&self) -> Option<Result<(), String>> {
        self.0.get().cloned()
    }
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> ClusterError + 'a {
    move |source| ClusterError::System { action: format!("{action} {}", path.display()), source }
}

fn path_of(context: &TransferContext, offer: &TransferOffer, part: TransferFile) -> PathBuf {
    let incoming = context.incoming();
    match (part, offer.snapshot, context.shared.snapshots()) {
        (TransferFile::Snapshot, Some(snapshot), Some(snapshots)) => {
            incoming.join("snapshots").join(snapshots.file_name(snapshot.sequence))
        }
        _ => incoming.join("sequencer").join(sequencer_state_writer::file_name(offer.state.sequence)),
    }
}

fn file_of(offer: &TransferOffer, part: TransferFile) -> Option<OfferedFile> {
    match part {
        TransferFile::State => Some(offer.state),
        TransferFile::Snapshot => offer.snapshot,
    }
}

impl TransferReceiver {
    pub fn begin(context: &TransferContext, leader: MemberId, now_ns: u64) -> Result<Self, ClusterError> {
        tracing::info!(%leader, "the leader's journal does not hold the next frame any more; its state is asked for");
        remove(&context.incoming())?;
        crash_point("snapshot_transfer_begin");
        Ok(Self { stage: TransferStage::Asking, requests: PieceRequests::new(leader, now_ns) })
    }

    pub fn target(&self) -> Option<u64> {
        match &self.stage {
            TransferStage::Asking => None,
            TransferStage::File { offer, .. }
            | TransferStage::Checking { offer, .. }
            | TransferStage::Frames { offer, .. }
            | TransferStage::Syncing { offer, .. } => Some(offer.position.sequence),
        }
    }

    /// The files of another leader differ, but not its frames. Returns whether the transfer continues.
    pub fn follow(&mut self, leader: MemberId) -> bool {
        !self.requests.follow(leader) || !matches!(self.stage, TransferStage::File { .. })
    }

    pub fn peer_disconnected(&mut self, member: MemberId) {
        if member == self.requests.leader() {
            self.requests.end_waiting();
        }
    }

    /// Processes the leader's answer.
    pub fn take(
        &mut self,
        context: &TransferContext,
        from: MemberId,
        answer: TransferAnswer,
        piece: &[u8],
    ) -> Result<TransferOutcome, ClusterError> {
        if from != self.requests.leader() {
            return Ok(Ok(()));
        }
        match (answer, &mut self.stage) {
            (TransferAnswer::Offer(offer), TransferStage::Asking) => {
                if let Err(reason) = is_right(context, &offer) {
                    return Ok(Err(reason));
                }
                self.open(context, offer, TransferFile::State)?;
                crash_point("snapshot_transfer_after_offer");
            }
            (TransferAnswer::Piece(found, crc), TransferStage::File { offer, part, file, offset }) => {
                let expected = PieceLocation { transfer: offer.transfer, part: *part, offset: *offset };
                if found != expected {
                    return Ok(Ok(()));
                }
                let length = file_of(offer, *part).map_or(0, |file| file.length);
                if piece.is_empty() || piece.len() as u64 > length - *offset || crc32c(piece) != crc {
                    return Ok(Err("a piece of its state is damaged, or not as long as it should be".to_owned()));
                }
                file.write_all(piece).map_err(failed("writing", &context.incoming()))?;
                *offset += piece.len() as u64;
                self.requests.end_waiting();
                crash_point("snapshot_transfer_after_piece");
                if *offset == length {
                    self.next_file(context)?;
                }
            }
            (TransferAnswer::Refused(reason), TransferStage::Asking | TransferStage::File { .. }) => {
                return Ok(Err(format!("it has no state for this member: {reason}")));
            }
            (TransferAnswer::Offer(_) | TransferAnswer::Piece(..) | TransferAnswer::Refused(_), _) => {}
        }
        Ok(Ok(()))
    }

    fn open(
        &mut self,
        context: &TransferContext,
        offer: Box<TransferOffer>,
        part: TransferFile,
    ) -> Result<(), ClusterError> {
        let path = path_of(context, &offer, part);
        let directory = path.parent().expect("it stands in a directory");
        private_folder::create(directory).map_err(failed("making", directory))?;
        // The state contains the sessions' tokens: readable by its owner only.
        let file = checked_file::create(&path, 0o600).map_err(failed("making", &path))?;
        self.stage = TransferStage::File { offer, part, file, offset: 0 };
        self.requests.end_waiting();
        Ok(())
    }

    fn next_file(&mut self, context: &TransferContext) -> Result<(), ClusterError> {
        let TransferStage::File { offer, part, .. } = std::mem::replace(&mut self.stage, TransferStage::Asking) else {
            unreachable!("a file has come")
        };
        if part == TransferFile::State && offer.snapshot.is_some() {
            return self.open(context, offer, TransferFile::Snapshot);
        }
        let state = (path_of(context, &offer, TransferFile::State), offer.state.sequence);
        let snapshot =
            offer.snapshot.map(|snapshot| (path_of(context, &offer, TransferFile::Snapshot), snapshot.sequence));
        let (identity, incoming) = (context.identity, context.incoming());
        let snapshots = context.shared.snapshots().cloned();
        let check = move || {
            let sync = |path: &Path| {
                let synced = checked_file::open(path).and_then(|file| file.sync_all());
                synced.map_err(|error| format!("syncing {}: {error}", path.display()))?;
                sync_directory(path.parent().expect("it is in a directory")).map_err(|error| error.to_string())
            };
            sequencer_state_writer::check(&state.0, identity, state.1).map_err(|error| error.to_string())?;
            sync(&state.0)?;
            if let (Some((path, sequence)), Some(snapshots)) = (snapshot, snapshots) {
                snapshots.check(&path, sequence)?;
                sync(&path)?;
            }
            sync_directory(&incoming).map_err(|error| error.to_string())
        };
        let work = BlockingWork::begin(context, check)?;
        self.stage = TransferStage::Checking { offer, work };
        Ok(())
    }

    /// Frames requested from `first` on.
    pub fn take_frames(&mut self, from: MemberId, first: u64, piece: &[u8]) -> Result<TransferOutcome, ClusterError> {
        let TransferStage::Frames { journal, frames, .. } = &mut self.stage else { return Ok(Ok(())) };
        if from != self.requests.leader() || first != frames.last_sequence + 1 {
            return Ok(Ok(()));
        }
        if piece.is_empty() {
            return Ok(Err(format!("frame {first} has gone from its journal meanwhile")));
        }
        let fetched = match frames.checked(piece, |_, _| ()) {
            Ok(fetched) => fetched,
            Err(error) => return Ok(Err(error.to_string())),
        };
        journal.append(piece, first, fetched.last_sequence)?;
        journal.commit()?;
        *frames = fetched;
        self.requests.end_waiting();
        crash_point("snapshot_transfer_after_frames");
        Ok(Ok(()))
    }

    /// Does the work that needs no answer, and requests the next piece.
    pub fn turn(
        &mut self,
        context: &TransferContext,
        links: &mut Links,
        consensus: &Consensus,
        now_ns: u64,
    ) -> Result<TransferOutcome, ClusterError> {
        let (is_checked, is_here, outcome) = match &self.stage {
            TransferStage::Checking { work, .. } => (true, false, work.outcome()),
            TransferStage::Syncing { work, .. } => (false, false, work.outcome()),
            TransferStage::Frames { frames, .. } => (false, frames.is_complete(), None),
            TransferStage::Asking | TransferStage::File { .. } => (false, false, None),
        };
        match outcome {
            Some(Err(reason)) if is_checked => return Ok(Err(format!("its state cannot be used: {reason}"))),
            Some(Err(reason)) => return Err(ClusterError::Sync { reason }),
            Some(Ok(())) if is_checked => self.begin_journal(context)?,
            Some(Ok(())) => return self.complete(context, consensus),
            None if is_here => return self.sync_journal(context, consensus),
            None => {}
        }
        self.ask(context, links, now_ns);
        Ok(Ok(()))
    }

    fn ask(&mut self, context: &TransferContext, links: &mut Links, now_ns: u64) {
        let (content, bytes) = match &self.stage {
            TransferStage::Asking => (
                MessageContent::SnapshotTransferRequest,
                TransferRequest::Offer { with_snapshot: context.with_snapshot }.to_bytes(),
            ),
            TransferStage::File { offer, part, offset, .. } => {
                let piece = PieceLocation { transfer: offer.transfer, part: *part, offset: *offset };
                (MessageContent::SnapshotTransferRequest, TransferRequest::Piece(piece).to_bytes())
            }
            TransferStage::Frames { frames, .. } => (MessageContent::CatchUpRequest, frames.request().to_vec()),
            TransferStage::Checking { .. } | TransferStage::Syncing { .. } => return,
        };
        if !self.requests.begin_waiting(now_ns) {
            return;
        }
        // If it is not connected, it is asked again later.
        let _ = links.send(self.requests.leader().get(), content, &bytes, &[]);
    }

    fn begin_journal(&mut self, context: &TransferContext) -> Result<(), ClusterError> {
        let TransferStage::Checking { offer, .. } = std::mem::replace(&mut self.stage, TransferStage::Asking) else {
            unreachable!("the files are checked")
        };
        crash_point("snapshot_transfer_after_files");
        let base = offer.base;
        let journal = (context.open_journal)(&context.incoming().join("journal"), base.sequence + 1)?;
        let frames = FetchedFrames::after(base.sequence, base.hash, offer.position);
        self.stage = TransferStage::Frames { offer, journal: Box::new(journal), frames };
        self.requests.end_waiting();
        Ok(())
    }

    fn sync_journal(
        &mut self,
        context: &TransferContext,
        consensus: &Consensus,
    ) -> Result<TransferOutcome, ClusterError> {
        let TransferStage::Frames { offer, mut journal, .. } =
            std::mem::replace(&mut self.stage, TransferStage::Asking)
        else {
            unreachable!("the frames are here")
        };
        let Some(checkpoint) = consensus.checkpoint_at(offer.position, &offer.members) else {
            return Ok(further(&offer));
        };
        journal.append_checkpoint(&checkpoint)?;
        journal.commit()?;
        crash_point("snapshot_transfer_before_sync");
        let incoming = context.incoming();
        let sync = move || {
            journal.sync().map_err(|error| error.to_string())?;
            drop(journal);
            sync_directory(&incoming).map_err(|error| error.to_string())
        };
        let work = BlockingWork::begin(context, sync)?;
        self.stage = TransferStage::Syncing { offer, work };
        Ok(Ok(()))
    }

    /// The member stops with this turn, so it acknowledges nothing after this check of its log's end; its votes since
    /// then are in its ballot.
    fn complete(&self, context: &TransferContext, consensus: &Consensus) -> Result<TransferOutcome, ClusterError> {
        let TransferStage::Syncing { offer, .. } = &self.stage else { unreachable!("the journal is synced") };
        if consensus.checkpoint_at(offer.position, &offer.members).is_none() {
            return Ok(further(offer));
        }
        crash_point("snapshot_transfer_before_complete");
        context.files.write_at(&complete_file(context.layout.root()), "base", &base_text(offer.base))?;
        crash_point("snapshot_transfer_complete");
        Err(ClusterError::StartAgain { member: context.member.get(), sequence: offer.position.sequence })
    }
}

/// Refuses a transfer that ends before this member's log: it would forget entries that it acknowledged.
fn further(offer: &TransferOffer) -> TransferOutcome {
    Err(format!("the log here has come further than entry {}, where its state stands", offer.position.index))
}

fn is_right(context: &TransferContext, offer: &TransferOffer) -> Result<(), String> {
    if offer.snapshot.is_some() != context.with_snapshot {
        return Err("it offers a snapshot to who runs no service, or none to who does".to_owned());
    }
    if !offer.members.contains(context.member) {
        return Err("its state is of members among whom this one is not".to_owned());
    }
    Ok(())
}
