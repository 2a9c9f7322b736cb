//! Model of a journal: frames and records in one order; durable items survive a crash, and a prefix of the others may.

use gapless_cluster::consensus::{Chain, ConsensusRecord, RecoveredState, record::RecordContent};
use gapless_testkit::random::Random;
use gapless_wire::Frame;
use std::rc::Rc;

pub const CHAIN_SEED: u64 = 99;

enum JournalItem {
    Frame,
    Record { is_checkpoint: bool, payload: Vec<u8> },
}

struct KeptFrame {
    bytes: Rc<[u8]>,
    position: usize,
    chain: u64,
}

#[derive(Default)]
pub struct Disk {
    items: Vec<JournalItem>,
    frames: Vec<KeptFrame>,
    /// Items that survive a crash.
    durable: usize,
    /// Items that survive a loss of power.
    synced: usize,
    /// Next to the journal during a cut; always durable.
    pending_checkpoint: Option<Vec<u8>>,
}

impl Disk {
    pub fn last_sequence(&self) -> u64 {
        self.frames.len() as u64
    }

    pub fn length(&self) -> usize {
        self.items.len()
    }

    pub fn chain(&self, sequence: u64) -> Option<u64> {
        match sequence {
            0 => Some(Chain::new(CHAIN_SEED).value()),
            _ => self.frames.get(sequence as usize - 1).map(|kept| kept.chain),
        }
    }

    pub fn frame(&self, sequence: u64) -> Option<&Rc<[u8]>> {
        self.frames.get((sequence as usize).checked_sub(1)?).map(|kept| &kept.bytes)
    }

    pub fn is_durable(&self, sequence: u64) -> bool {
        sequence == 0 || self.frames[sequence as usize - 1].position < self.durable
    }

    pub fn append_frame(&mut self, bytes: Rc<[u8]>) {
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.sequence(), self.last_sequence() + 1, "a journal has no gap and no duplicate");
        let mut chain = Chain::at(self.chain(self.last_sequence()).unwrap());
        chain.extend(&frame);
        self.frames.push(KeptFrame { chain: chain.value(), position: self.items.len(), bytes });
        self.items.push(JournalItem::Frame);
    }

    pub fn append_record(&mut self, record: &ConsensusRecord) {
        assert!(record.after_sequence <= self.last_sequence(), "a record follows its frames");
        match RecordContent::from_bytes(&record.payload).unwrap() {
            RecordContent::Entry(entry, _) => {
                assert_eq!(self.chain(entry.batch.end_sequence), Some(entry.batch.hash), "entry {entry:?}");
            }
            RecordContent::Checkpoint(checkpoint) => {
                assert_eq!(self.chain(checkpoint.start.sequence), Some(checkpoint.start.hash), "{checkpoint:?}");
                for entry in &checkpoint.entries {
                    assert_eq!(self.chain(entry.batch.end_sequence), Some(entry.batch.hash), "entry {entry:?}");
                }
            }
            RecordContent::HardState(_) | RecordContent::Acknowledged(_) => {}
        }
        self.items.push(JournalItem::Record { is_checkpoint: record.is_checkpoint, payload: record.payload.clone() });
    }

    pub fn persist(&mut self, length: usize) {
        self.durable = self.durable.max(length.min(self.items.len()));
    }

    pub fn sync(&mut self) {
        self.durable = self.items.len();
        self.synced = self.items.len();
    }

    pub fn sync_up_to(&mut self, length: usize) {
        self.synced = self.synced.max(length.min(self.items.len()));
    }

    pub fn write_aside(&mut self, checkpoint: &[u8]) {
        self.sync();
        self.pending_checkpoint = Some(checkpoint.to_vec());
    }

    pub fn remove_pending_checkpoint(&mut self) {
        self.pending_checkpoint = None;
    }

    pub fn truncate_after(&mut self, sequence: u64) {
        let length = match sequence {
            0 => 0,
            _ => self.frames[sequence as usize - 1].position + 1,
        };
        self.frames.truncate(sequence as usize);
        self.items.truncate(length);
        self.durable = self.durable.min(length);
        self.synced = self.synced.min(length);
    }

    /// Removes frames that were never proposed and that nothing follows.
    pub fn crash(&mut self, random: &mut Random) {
        self.lose_after(self.durable, random);
    }

    pub fn lose_power(&mut self, random: &mut Random) {
        self.lose_after(self.synced, random);
        self.synced = self.items.len();
    }

    fn lose_after(&mut self, kept: usize, random: &mut Random) {
        let lost_max = (self.items.len() - kept) as u64;
        let length = self.items.len() - random.below(lost_max + 1) as usize;
        self.items.truncate(length);
        let frames = self.frames.partition_point(|kept| kept.position < length);
        self.frames.truncate(frames);
        self.durable = length;
    }

    /// A start before consensus: reads, and cuts the frames that no other member knows.
    pub fn recover(&mut self) -> RecoveredState {
        let mut behind = 0;
        let mut records = Vec::new();
        for item in &self.items {
            match item {
                JournalItem::Frame => behind += 1,
                JournalItem::Record { is_checkpoint, payload } => records.push((behind, *is_checkpoint, &payload[..])),
            }
        }
        if let Some(pending_checkpoint) = &self.pending_checkpoint {
            records.push((behind, true, pending_checkpoint));
        }
        let recovered = RecoveredState::from_records(records, self.last_sequence()).unwrap();
        if let Some(end) = recovered.end() {
            assert_eq!(self.chain(end.sequence), Some(end.hash), "the journal's frames are those of its entries");
        }
        if recovered.truncate_after() < self.last_sequence() {
            if let Some(checkpoint) = recovered.checkpoint() {
                self.write_aside(&checkpoint);
            }
            self.truncate_after(recovered.truncate_after());
        }
        recovered
    }
}
