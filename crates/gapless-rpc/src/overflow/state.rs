//! State under the lock of a queue, without files or threads, and the choice of the helper's next job.

use crate::overflow::block::Block;
use crate::overflow::class::{Class, Front, PlaceOnDisk};
use crate::overflow::counters::OverflowCounters;
use crate::overflow::error::FullReason;
use crate::overflow::options::QueueSizes;
use crate::overflow::priority::Priority;
use gapless_journal::JournalError;
use std::time::{Duration, Instant};

const RETRY_INTERVAL: Duration = Duration::from_millis(100);

const SPARES_MAX: usize = 4;

#[derive(Debug)]
pub(crate) enum HelperJob {
    Write(Priority, Block),
    Read(Priority, PlaceOnDisk, Vec<u8>),
    Sleep(Option<Instant>),
}

#[derive(Debug)]
pub(crate) enum PopOutcome {
    /// Number, and whether it was the last of its block.
    Record(u64, bool),
    /// Copied without the lock.
    Block(Block),
    /// First number, count, error.
    Lost(u64, u64, Box<JournalError>),
    Later,
    Empty,
}

#[derive(Debug, Default)]
pub(crate) struct SpillState {
    classes: [Class; 4],
    pub(crate) counters: OverflowCounters,
    refusal: Option<FullReason>,
    retry_at: Option<Instant>,
    /// A record was refused, and no notice of room has been sent since.
    is_room_wanted: bool,
    has_other_reason: bool,
    has_read_last: bool,
    spares: Vec<Vec<u8>>,
    pub(crate) has_helper: bool,
    pub(crate) helper_sleeps: bool,
    pub(crate) is_stopping: bool,
}

impl SpillState {
    pub(crate) fn class_mut(&mut self, class: Priority) -> &mut Class {
        &mut self.classes[class as usize]
    }

    pub(crate) fn check_room(&mut self, needed_bytes: usize, sizes: &QueueSizes) -> Result<(), FullReason> {
        let counters = &self.counters;
        let reason = if sizes.disk_bytes_max == 0 {
            Some(FullReason::DiskLimit { disk_bytes_max: 0 })
        } else {
            let is_over = self.retry_at.is_some_and(|at| Instant::now() >= at);
            if is_over { None } else { self.refusal.clone() }
        };
        let limit = sizes.memory_bytes_max + if reason.is_none() { sizes.burst_bytes_max } else { 0 };
        let has_records_left = reason.is_none() || (counters.records_in_memory as usize) < sizes.memory_records_max;
        if counters.memory_bytes + needed_bytes <= limit && has_records_left {
            return Ok(());
        }
        self.is_room_wanted = true;
        self.counters.refused_records += 1;
        Err(reason.unwrap_or(FullReason::Lagging))
    }

    /// `alone` holds the record if it has its own block. Returns its number, and whether the helper has work.
    pub(crate) fn push(
        &mut self,
        class: Priority,
        record: &[u8],
        alone: Option<Block>,
        sizes: &QueueSizes,
    ) -> (u64, bool) {
        let target = &mut self.classes[class as usize];
        let number = target.next_number;
        target.next_number += 1;
        self.counters.records_in_memory += 1;
        if alone.is_none()
            && let Some(open) = target.open_block(record.len(), sizes)
        {
            open.push(record);
            self.counters.memory_bytes += Block::length_more(record.len());
            return (number, false);
        }
        let mut block = alone.unwrap_or_else(|| {
            let mut block = Block::open(self.spares.pop().unwrap_or_default(), number);
            block.push(record);
            block
        });
        block.set_number(number);
        self.counters.memory_bytes += block.length();
        target.push_block(block);
        (number, self.is_over(sizes) && sizes.disk_bytes_max > 0)
    }

    pub(crate) fn pop(&mut self, class: Priority, record: &mut Vec<u8>, block_bytes: usize) -> PopOutcome {
        let from = &mut self.classes[class as usize];
        let block = match from.front() {
            Front::Block(block) => block,
            Front::OnDisk => {
                from.is_wanted = true;
                return PopOutcome::Later;
            }
            Front::Empty => return PopOutcome::Empty,
        };
        let number = block.next_number();
        if let Some(fault) = block.take_fault() {
            let records = u64::from(block.records_left());
            self.take_front(class);
            self.counters.lost_records += records;
            return PopOutcome::Lost(number, records, fault);
        }
        if block.is_alone() && block.length() > block_bytes {
            return self.take_front(class).map_or(PopOutcome::Empty, PopOutcome::Block);
        }
        block.pop(record);
        let is_drained = block.records_left() == 0;
        from.count_popped();
        self.counters.records_in_memory -= 1;
        if is_drained && let Some(mut block) = self.take_front(class) {
            self.keep(block.take_buffer(), block_bytes);
        }
        PopOutcome::Record(number, is_drained)
    }

    fn take_front(&mut self, class: Priority) -> Option<Block> {
        let block = self.class_mut(class).take_front()?;
        self.counters.memory_bytes -= block.length();
        self.counters.records_in_memory -= u64::from(block.records_left());
        Some(block)
    }

    pub(crate) fn keep(&mut self, buffer: Vec<u8>, block_bytes: usize) {
        if self.spares.len() < SPARES_MAX && buffer.capacity() <= 2 * block_bytes {
            self.spares.push(buffer);
        }
    }

    /// True once: there is room for a block, or a new reason to refuse.
    pub(crate) fn take_room_notice(&mut self, sizes: &QueueSizes) -> bool {
        let is_due = self.is_room_notice_due(sizes);
        if is_due {
            (self.is_room_wanted, self.has_other_reason) = (false, false);
        }
        is_due
    }

    fn is_room_notice_due(&self, sizes: &QueueSizes) -> bool {
        if !self.is_room_wanted || self.has_other_reason {
            return self.is_room_wanted;
        }
        let has_disk = self.refusal.is_none() && sizes.disk_bytes_max > 0;
        let limit = sizes.memory_bytes_max + if has_disk { sizes.burst_bytes_max } else { 0 };
        let has_records = has_disk || (self.counters.records_in_memory as usize) < sizes.memory_records_max;
        self.counters.memory_bytes + sizes.block_bytes <= limit && has_records
    }

    pub(crate) fn is_notice_due(&self, sizes: &QueueSizes) -> bool {
        self.is_room_notice_due(sizes) || Priority::ALL.into_iter().any(|class| self.is_readable_again(class))
    }

    fn is_readable_again(&self, class: Priority) -> bool {
        let class = &self.classes[class as usize];
        class.is_wanted && !class.waits_for_disk()
    }

    pub(crate) fn wants_more(&self, class: Priority, sizes: &QueueSizes) -> bool {
        self.classes[class as usize].wants_more(sizes)
    }

    fn is_over(&self, sizes: &QueueSizes) -> bool {
        self.counters.memory_bytes > sizes.memory_bytes_max
            || self.counters.records_in_memory > sizes.memory_records_max as u64
    }

    /// Reading for a waiting consumer and writing for producers take turns; reading ahead comes last.
    pub(crate) fn next_job(&mut self, sizes: &QueueSizes, now: Instant) -> HelperJob {
        let is_over = self.is_over(sizes);
        if is_over
            && self.has_read_last
            && let Some(job) = self.begin_write(sizes, now)
        {
            return job;
        }
        let needed = Priority::ALL.into_iter().find(|class| {
            let class = &self.classes[*class as usize];
            class.waits_for_disk() && class.wants_more(sizes)
        });
        if let Some(job) = needed.and_then(|class| self.begin_read(class)) {
            return job;
        }
        if is_over && let Some(job) = self.begin_write(sizes, now) {
            return job;
        }
        let ahead = Priority::ALL.into_iter().find(|class| self.classes[*class as usize].wants_more(sizes));
        if let Some(class) = ahead {
            let job = if self.has_room_ahead(class, sizes) {
                self.begin_read(class)
            } else {
                // Newer records make room for older ones.
                self.begin_write(sizes, now)
            };
            if let Some(job) = job {
                return job;
            }
        }
        HelperJob::Sleep(if is_over { self.retry_at } else { None })
    }

    fn has_room_ahead(&self, class: Priority, sizes: &QueueSizes) -> bool {
        self.classes[class as usize].next_on_disk().is_some_and(|block| {
            self.counters.memory_bytes + block.length() <= sizes.memory_bytes_max
                && self.counters.records_in_memory + u64::from(block.records_left()) <= sizes.memory_records_max as u64
        })
    }

    fn begin_read(&mut self, class: Priority) -> Option<HelperJob> {
        let place = self.class_mut(class).begin_read()?;
        self.has_read_last = true;
        self.counters.memory_bytes += place.block.length();
        Some(HelperJob::Read(class, place, self.spares.pop().unwrap_or_default()))
    }

    /// The least urgent class goes first.
    fn begin_write(&mut self, sizes: &QueueSizes, now: Instant) -> Option<HelperJob> {
        if self.retry_at.is_some_and(|at| now < at) {
            return None;
        }
        self.has_read_last = false;
        let room = sizes.disk_bytes_max.saturating_sub(self.counters.disk_bytes);
        let mut has_room = true;
        for class in Priority::ALL.into_iter().rev() {
            let fits = |block: &Block| {
                has_room = block.length_on_disk() as u64 <= room;
                has_room
            };
            if let Some(block) = self.class_mut(class).begin_write(sizes, fits) {
                self.counters.records_in_memory -= u64::from(block.records_left());
                self.counters.records_on_disk += u64::from(block.records_left());
                return Some(HelperJob::Write(class, block));
            }
        }
        if !has_room {
            self.set_refusal(FullReason::DiskLimit { disk_bytes_max: sizes.disk_bytes_max }, None);
        }
        None
    }

    pub(crate) fn finish_write(&mut self, class: Priority, place: PlaceOnDisk) {
        let records = u64::from(place.block.records_left());
        self.counters.memory_bytes -= place.block.length();
        self.counters.disk_bytes += place.block.length_on_disk() as u64;
        self.counters.spilled_records += records;
        self.counters.spilled_bytes += place.block.length_on_disk() as u64;
        (self.refusal, self.retry_at) = (None, None);
        self.class_mut(class).finish_write(place);
    }

    /// The block stays in memory. Returns whether the disk has just begun to refuse.
    pub(crate) fn abandon_write(&mut self, class: Priority, block: Block, reason: &JournalError, now: Instant) -> bool {
        let is_first = !matches!(self.refusal, Some(FullReason::Refused { .. }));
        let records = u64::from(block.records_left());
        self.counters.records_in_memory += records;
        self.counters.records_on_disk -= records;
        self.class_mut(class).abandon_write(block);
        self.refuse(reason.to_string(), now);
        is_first
    }

    pub(crate) fn refuse(&mut self, reason: String, now: Instant) {
        self.set_refusal(FullReason::Refused { reason: reason.into() }, Some(now + RETRY_INTERVAL));
    }

    fn set_refusal(&mut self, reason: FullReason, retry_at: Option<Instant>) {
        self.has_other_reason |= self.refusal.as_ref() != Some(&reason) && self.is_room_wanted;
        (self.refusal, self.retry_at) = (Some(reason), retry_at);
    }

    pub(crate) fn finish_read(&mut self, class: Priority, block: Block, freed_bytes: u64) {
        let records = u64::from(block.records_left());
        self.counters.records_on_disk -= records;
        self.counters.records_in_memory += records;
        self.counters.disk_bytes -= freed_bytes;
        if freed_bytes > 0 && matches!(self.refusal, Some(FullReason::DiskLimit { .. })) {
            self.refusal = None;
        }
        self.class_mut(class).finish_read(block);
    }

    pub(crate) fn next_readable(&mut self) -> Option<Priority> {
        let readable = Priority::ALL.into_iter().find(|class| self.is_readable_again(*class))?;
        self.class_mut(readable).is_wanted = false;
        Some(readable)
    }
}
