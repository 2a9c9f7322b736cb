//! Snapshot transfers, for a member that needs frames which its leader's journal no longer holds (decision 29). It
//! receives the sequencer's state, and the service's snapshot if it runs one. It also receives the frames from a *base*
//! after which its new journal begins, up to a *log position* to which everything is committed.
//!
//! The transfer is assembled in the directory `incoming`, next to the member's own files, while the member follows and
//! votes with those. Then the member stops, and its next start installs the transfer. After a crash an incomplete
//! transfer is restarted, and the installation of a complete one continues.
//!
//! ```text
//! incoming/sequencer   the state          a file marks completeness:
//! incoming/snapshots   the snapshot       incoming/complete   the base: its sequence, and the chain's value after it as 16
//! incoming/journal     the frames                             hexadecimal digits; it becomes `base` in the directory, and
//!                                             is sealed as that (see `member_files`)
//! ```

pub(super) mod install;
mod receiver;
mod sender;
pub mod wire;

use super::member_files::MemberFiles;
use super::shared::MemberShared;
use crate::ClusterError;
use crate::consensus::{Consensus, MemberId};
use crate::link::Links;
use gapless_agent::checked_file;
use gapless_agent::{Now, Waker};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::Journal;
use gapless_log::StreamIdentity;
use receiver::{TransferOutcome, TransferReceiver};
use sender::TransferSender;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::{JournalBase, SnapshotTransferError, TransferAnswer, TransferRequest};

/// The new journal begins with the frame of this sequence.
pub(super) type OpenJournal = Box<dyn Fn(&Path, u64) -> Result<Journal, ClusterError> + Send>;

pub(super) struct TransferContext {
    pub member: MemberId,
    pub layout: StreamLayout,
    pub files: MemberFiles,
    pub identity: StreamIdentity,
    pub shared: Arc<MemberShared>,
    /// Runs a service, whose snapshot it needs.
    pub with_snapshot: bool,
    pub open_journal: OpenJournal,
    /// Waker of the agent for completed blocking work; `None` if the agent does it in its turn.
    pub waker: Option<Waker>,
}

impl TransferContext {
    fn incoming(&self) -> PathBuf {
        incoming(self.layout.root())
    }
}

pub(super) struct SnapshotTransfers {
    context: TransferContext,
    sender: TransferSender,
    receiver: Option<TransferReceiver>,
}

impl SnapshotTransfers {
    pub fn new(context: TransferContext) -> Self {
        Self { context, sender: TransferSender::default(), receiver: None }
    }

    /// Asks the leader for a transfer, unless one is in progress.
    pub fn begin(&mut self, leader: MemberId, now_ns: u64) -> Result<(), ClusterError> {
        if self.receiver.is_none() {
            self.receiver = Some(TransferReceiver::begin(&self.context, leader, now_ns)?);
        }
        Ok(())
    }

    /// Whether a transfer is being received.
    pub const fn is_receiving(&self) -> bool {
        self.receiver.is_some()
    }

    /// Last sequence to receive.
    pub fn target(&self) -> Option<u64> {
        self.receiver.as_ref().and_then(TransferReceiver::target)
    }

    /// Gives up the transfer being received.
    pub fn give_up(&mut self) {
        if self.receiver.take().is_some()
            && let Err(error) = remove(&self.context.incoming())
        {
            // A thread may still be syncing there; the next transfer and a start remove the files.
            tracing::debug!(%error, "the files of a snapshot transfer are still there");
        }
    }

    /// Notes another leader; returns whether the transfer continues.
    pub fn follow(&mut self, leader: MemberId) -> bool {
        self.receiver.as_mut().is_none_or(|receiver| receiver.follow(leader))
    }

    /// Stops waiting for a piece from a disconnected leader.
    pub fn peer_disconnected(&mut self, member: MemberId) {
        if let Some(receiver) = &mut self.receiver {
            receiver.peer_disconnected(member);
        }
    }

    pub fn forget(&mut self, member: MemberId) {
        self.sender.forget(member);
    }

    /// Whether a newer snapshot should be taken, which nothing else may ever trigger.
    pub fn needs_newer(&mut self) -> bool {
        let needs = self.sender.needs_newer();
        if needs && let Some(snapshots) = self.context.shared.snapshots() {
            snapshots.expedite();
        }
        needs
    }

    pub fn queue_request(&mut self, from: MemberId, bytes: &[u8]) -> Result<(), SnapshotTransferError> {
        self.sender.queue_request(from, TransferRequest::from_bytes(bytes)?);
        Ok(())
    }

    pub fn receive_answer(
        &mut self,
        from: MemberId,
        bytes: &[u8],
        piece: &[u8],
    ) -> Result<TransferOutcome, ClusterError> {
        let Some(receiver) = &mut self.receiver else { return Ok(Ok(())) };
        match TransferAnswer::from_bytes(bytes) {
            Ok(answer) => receiver.take(&self.context, from, answer, piece),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Frames requested from `first` on.
    pub fn take_frames(&mut self, from: MemberId, first: u64, frames: &[u8]) -> Result<TransferOutcome, ClusterError> {
        match &mut self.receiver {
            Some(receiver) => receiver.take_frames(from, first, frames),
            None => Ok(Ok(())),
        }
    }

    /// Serves one piece, and requests the next. The member must stop when its transfer is complete.
    pub fn turn(
        &mut self,
        links: &mut Links,
        consensus: &Consensus,
        now: Now,
    ) -> Result<TransferOutcome, ClusterError> {
        self.sender.serve(&self.context, links, consensus, now.epoch_ns);
        match &mut self.receiver {
            Some(receiver) => receiver.turn(&self.context, links, consensus, now.monotonic_ns),
            None => Ok(Ok(())),
        }
    }
}

fn incoming(root: &Path) -> PathBuf {
    root.join("incoming")
}

fn complete_file(root: &Path) -> PathBuf {
    incoming(root).join("complete")
}

/// Whether a start here first installs a transfer.
pub(super) fn is_complete(root: &Path) -> bool {
    complete_file(root).exists()
}

fn remove(directory: &Path) -> Result<(), ClusterError> {
    match checked_file::remove_tree(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ClusterError::System { action: format!("removing {}", directory.display()), source: error })
        }
        _ => Ok(()),
    }
}

fn base_text(base: JournalBase) -> String {
    format!("{} {:016x}\n", base.sequence, base.hash)
}

/// Frame before this journal, if a transfer was installed.
pub(super) fn base_file(files: &MemberFiles) -> Result<Option<JournalBase>, ClusterError> {
    let Some(found) = files.read("base")? else { return Ok(None) };
    let parse = || {
        let (sequence, hash) = found.trim().split_once(' ')?;
        Some(JournalBase { sequence: sequence.parse().ok()?, hash: u64::from_str_radix(hash, 16).ok()? })
    };
    parse().map(Some).ok_or_else(|| files.damaged("base"))
}
