//! The records of one class: the oldest in memory, those after them on disk, the newest in memory again.

use crate::overflow::block::Block;
use crate::overflow::options::QueueSizes;
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct PlaceOnDisk {
    pub(crate) block: Block,
    pub(crate) segment: u64,
    pub(crate) position: u64,
    pub(crate) first_sequence: u64,
}

#[derive(Debug, Default)]
pub(crate) struct BlockRun {
    blocks: VecDeque<Block>,
    bytes: usize,
    records: usize,
}

impl BlockRun {
    fn count(&mut self, block: &Block) {
        self.bytes += block.length();
        self.records += block.records_left() as usize;
    }

    fn discount(&mut self, block: Option<Block>) -> Option<Block> {
        let block = block?;
        self.bytes -= block.length();
        self.records -= block.records_left() as usize;
        Some(block)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn push_back(&mut self, block: Block) {
        self.count(&block);
        self.blocks.push_back(block);
    }

    fn push_front(&mut self, block: Block) {
        self.count(&block);
        self.blocks.push_front(block);
    }

    fn pop_front(&mut self) -> Option<Block> {
        let block = self.blocks.pop_front();
        self.discount(block)
    }

    fn pop_back(&mut self) -> Option<Block> {
        let block = self.blocks.pop_back();
        self.discount(block)
    }
}

/// Oldest first: `front`, the block being read in, `disk`, the block being written, `tail`. At most one block moves.
#[derive(Debug, Default)]
pub(crate) struct Class {
    front: BlockRun,
    disk: VecDeque<PlaceOnDisk>,
    tail: BlockRun,
    /// Records in the moving block, which is in none of the three.
    moving: Option<u32>,
    /// A consumer was told [`PopOutcome::Later`](super::state::PopOutcome::Later).
    pub(crate) is_wanted: bool,
    pub(crate) next_number: u64,
}

pub(crate) enum Front<'a> {
    Block(&'a mut Block),
    OnDisk,
    Empty,
}

impl Class {
    fn is_in_memory(&self) -> bool {
        self.disk.is_empty() && self.moving.is_none()
    }

    pub(crate) fn waits_for_disk(&self) -> bool {
        self.front.is_empty() && !self.is_in_memory()
    }

    pub(crate) fn open_block(&mut self, record_length: usize, sizes: &QueueSizes) -> Option<&mut Block> {
        let is_behind_front = self.tail.is_empty() && self.is_in_memory();
        let run = if is_behind_front { &mut self.front } else { &mut self.tail };
        let block = run.blocks.back_mut()?;
        if !block.has_room(record_length, sizes.block_bytes, sizes.block_records) {
            return None;
        }
        // The caller pushes the record while the lock is held.
        run.bytes += Block::length_more(record_length);
        run.records += 1;
        Some(block)
    }

    pub(crate) fn push_block(&mut self, block: Block) {
        self.tail.push_back(block);
    }

    pub(crate) fn front(&mut self) -> Front<'_> {
        if self.front.is_empty() && self.is_in_memory() {
            std::mem::swap(&mut self.front, &mut self.tail);
        }
        if self.waits_for_disk() {
            return Front::OnDisk;
        }
        self.front.blocks.front_mut().map_or(Front::Empty, Front::Block)
    }

    pub(crate) fn count_popped(&mut self) {
        self.front.records -= 1;
    }

    pub(crate) fn take_front(&mut self) -> Option<Block> {
        self.front.pop_front()
    }

    pub(crate) fn wants_more(&self, sizes: &QueueSizes) -> bool {
        let is_short = self.front.bytes < sizes.window_bytes && self.front.records < sizes.window_records;
        (is_short || self.front.is_empty()) && !self.disk.is_empty()
    }

    pub(crate) fn next_on_disk(&self) -> Option<&Block> {
        self.disk.front().map(|place| &place.block)
    }

    pub(crate) fn begin_read(&mut self) -> Option<PlaceOnDisk> {
        assert!(self.moving.is_none(), "one block moves at a time");
        let place = self.disk.pop_front()?;
        self.moving = Some(place.block.records_left());
        Some(place)
    }

    pub(crate) fn finish_read(&mut self, block: Block) {
        self.moving = None;
        self.front.push_back(block);
    }

    /// The front block always stays, so a block that was read in does not go back.
    pub(crate) fn begin_write(&mut self, sizes: &QueueSizes, fits: impl FnOnce(&Block) -> bool) -> Option<Block> {
        assert!(self.moving.is_none(), "one block moves at a time");
        if self.disk.is_empty() {
            self.balance(sizes);
        }
        if !fits(self.tail.blocks.front()?) {
            return None;
        }
        let mut block = self.tail.pop_front()?;
        block.seal();
        self.moving = Some(block.records_left());
        Some(block)
    }

    /// The oldest records go to `front`, the others to `tail`.
    fn balance(&mut self, sizes: &QueueSizes) {
        let is_enough = |run: &BlockRun, bytes: usize, records: usize| {
            run.bytes - bytes >= sizes.window_bytes || run.records - records >= sizes.window_records.max(1)
        };
        while self.front.blocks.len() > 1
            && let Some(block) = self.front.blocks.back()
            && is_enough(&self.front, block.length(), block.records_left() as usize)
            && let Some(block) = self.front.pop_back()
        {
            self.tail.push_front(block);
        }
        while (self.front.is_empty() || !is_enough(&self.front, 0, 0))
            && let Some(block) = self.tail.pop_front()
        {
            self.front.push_back(block);
        }
    }

    pub(crate) fn finish_write(&mut self, place: PlaceOnDisk) {
        self.moving = None;
        self.disk.push_back(place);
    }

    pub(crate) fn abandon_write(&mut self, block: Block) {
        self.moving = None;
        self.tail.push_front(block);
    }
}
