//! Log positions, members and batches as raft-rs carries them.

use super::details::{put_details, take_details};
use super::fields::{Fields, put_list, put_u64};
use super::members::Members;
use super::types::{Batch, LogPosition};
use raft::eraftpb::{Entry, EntryType, Snapshot};

/// Raft's snapshot, with the parts that raft does not know as data; it stays in this process.
pub(super) fn snapshot_of(position: &LogPosition, members: &Members) -> Snapshot {
    let mut data = Vec::new();
    put_u64(&mut data, position.sequence);
    put_u64(&mut data, position.hash);
    put_list(&mut data, &members.witnesses);
    put_u64(&mut data, members.numbers_used);
    put_details(&mut data, &members.details);
    let mut snapshot = Snapshot::default();
    snapshot.set_data(data.into());
    let metadata = snapshot.mut_metadata();
    metadata.index = position.index;
    metadata.term = position.term;
    metadata.set_conf_state(members.to_conf_state());
    snapshot
}

pub(super) fn position_of(snapshot: &Snapshot) -> Option<(LogPosition, Members)> {
    let mut data = Fields::new(snapshot.get_data());
    let (sequence, hash) = (data.u64("sequence").ok()?, data.u64("hash").ok()?);
    let witnesses = data.list("witnesses").ok()?;
    let numbers_used = data.u64("highest number").ok()?;
    let more = Members { witnesses, numbers_used, details: take_details(&mut data).ok()?, ..Members::default() };
    let metadata = snapshot.get_metadata();
    let position = LogPosition { index: metadata.index, term: metadata.term, sequence, hash };
    Some((position, more.with_conf_state(metadata.get_conf_state())))
}

pub(super) fn batch_in(entry: &Entry) -> Option<Batch> {
    (entry.get_entry_type() == EntryType::EntryNormal).then(|| Batch::from_bytes(entry.get_data())).flatten()
}
