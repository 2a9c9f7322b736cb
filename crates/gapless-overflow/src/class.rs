//! The records of one class: the oldest in memory, those after them on disk, the newest in memory again.

use crate::block::Block;
use crate::options::Sizes;
use std::collections::VecDeque;

/// Where a block lies on disk.
#[derive(Debug)]
pub(crate) struct PlaceOnDisk {
    /// The block without its bytes.
    pub(crate) block: Block,
    /// The number of the segment among those of its class.
    pub(crate) segment: u64,
    /// Where in the segment.
    pub(crate) position: u64,
    /// The sequence of its first frame.
    pub(crate) first_sequence: u64,
}

/// Blocks in memory, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Run {
    blocks: VecDeque<Block>,
    bytes: usize,
    records: usize,
}

impl Run {
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

/// The records of one class. From the oldest to the newest: `front`, the block that is being read in, `disk`, the block
/// that is being written, `tail`. There is one helper, so at most one of the two is moving.
#[derive(Debug, Default)]
pub(crate) struct Class {
    front: Run,
    disk: VecDeque<PlaceOnDisk>,
    tail: Run,
    /// The records of the block that is being read in or written; it is not in any of the three.
    moving: Option<u32>,
    /// Somebody was told to come later.
    pub(crate) is_wanted: bool,
    /// The number of the next record that is pushed.
    pub(crate) next_number: u64,
}

/// What the front of a class holds.
pub(crate) enum Front<'a> {
    /// A block with a record to pop.
    Block(&'a mut Block),
    /// Its next record is on disk.
    OnDisk,
    /// Nothing.
    Empty,
}

impl Class {
    /// Whether nothing lies between `front` and `tail`.
    fn is_in_memory(&self) -> bool {
        self.disk.is_empty() && self.moving.is_none()
    }

    /// Whether the next record waits for the disk.
    pub(crate) fn waits_for_disk(&self) -> bool {
        self.front.is_empty() && !self.is_in_memory()
    }

    /// The block that records are pushed to: the newest, if it has room.
    pub(crate) fn open_block(&mut self, record_length: usize, sizes: &Sizes) -> Option<&mut Block> {
        let is_behind_front = self.tail.is_empty() && self.is_in_memory();
        let run = if is_behind_front { &mut self.front } else { &mut self.tail };
        let block = run.blocks.back_mut()?;
        if !block.has_room(record_length, sizes.block_bytes, sizes.block_records) {
            return None;
        }
        // The caller pushes it: the lock is held, and nothing is between.
        run.bytes += Block::length_more(record_length);
        run.records += 1;
        Some(block)
    }

    /// Puts a block behind the newest.
    pub(crate) fn push_block(&mut self, block: Block) {
        self.tail.push_back(block);
    }

    /// What can be popped.
    pub(crate) fn front(&mut self) -> Front<'_> {
        if self.front.is_empty() && self.is_in_memory() {
            std::mem::swap(&mut self.front, &mut self.tail);
        }
        if self.waits_for_disk() {
            return Front::OnDisk;
        }
        self.front.blocks.front_mut().map_or(Front::Empty, Front::Block)
    }

    /// A record was popped from the front block.
    pub(crate) fn count_popped(&mut self) {
        self.front.records -= 1;
    }

    /// Takes the front block out of the queue.
    pub(crate) fn take_front(&mut self) -> Option<Block> {
        self.front.pop_front()
    }

    /// Whether the oldest records in memory are fewer than they should be, while there are more on disk.
    pub(crate) fn wants_more(&self, sizes: &Sizes) -> bool {
        let is_short = self.front.bytes < sizes.window_bytes && self.front.records < sizes.window_records;
        (is_short || self.front.is_empty()) && !self.disk.is_empty()
    }

    /// The block that would be read in next.
    pub(crate) fn next_on_disk(&self) -> Option<&Block> {
        self.disk.front().map(|place| &place.block)
    }

    /// Takes the oldest block on disk, which is then being read in.
    pub(crate) fn begin_read(&mut self) -> Option<PlaceOnDisk> {
        assert!(self.moving.is_none(), "one block moves at a time");
        let place = self.disk.pop_front()?;
        self.moving = Some(place.block.records_left());
        Some(place)
    }

    /// It was read in.
    pub(crate) fn finish_read(&mut self, block: Block) {
        self.moving = None;
        self.front.push_back(block);
    }

    /// Takes the block that goes to disk next: the first behind those that are on disk, or behind the oldest that stay
    /// in memory. The front block stays in any case, so what was read in does not go back.
    pub(crate) fn begin_write(&mut self, sizes: &Sizes, fits: impl FnOnce(&Block) -> bool) -> Option<Block> {
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

    /// With nothing on disk: the oldest that stay in memory in `front`, the others in `tail`.
    fn balance(&mut self, sizes: &Sizes) {
        let is_enough = |run: &Run, bytes: usize, records: usize| {
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

    /// It was written.
    pub(crate) fn finish_write(&mut self, place: PlaceOnDisk) {
        self.moving = None;
        self.disk.push_back(place);
    }

    /// It could not be written and stays in memory.
    pub(crate) fn abandon_write(&mut self, block: Block) {
        self.moving = None;
        self.tail.push_front(block);
    }
}
