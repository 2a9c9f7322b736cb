//! The helper thread of a queue: only it touches the disk. It ends with the queue.

use crate::overflow::block::Block;
use crate::overflow::class::PlaceOnDisk;
use crate::overflow::options::QueueNotice;
use crate::overflow::priority::Priority;
use crate::overflow::shared::SharedQueue;
use crate::overflow::state::HelperJob;
use gapless_agent::fault::crash_point;
use gapless_agent::foreign;
use gapless_journal::{JournalError, UnlinkedSegment};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

pub(crate) struct Helper {
    shared: Arc<SharedQueue>,
    segments: [Segments; 4],
}

#[derive(Default)]
struct Segments {
    held: VecDeque<HeldSegment>,
    next_number: u64,
    next_sequence: u64,
}

struct HeldSegment {
    segment: UnlinkedSegment,
    number: u64,
    blocks: u64,
}

impl Helper {
    pub(crate) fn new(shared: Arc<SharedQueue>) -> Self {
        Self { shared, segments: Default::default() }
    }

    pub(crate) fn run(mut self) {
        while let Some(job) = self.next_job() {
            match job {
                HelperJob::Write(class, block) => self.write(class, block),
                HelperJob::Read(class, place, buffer) => self.read(class, place, buffer),
                HelperJob::Sleep(_) => {}
            }
            self.give_notice();
        }
        crash_point("overflow_helper_ended");
    }

    fn next_job(&self) -> Option<HelperJob> {
        let mut state = self.shared.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            match state.next_job(&self.shared.sizes, Instant::now()) {
                job @ HelperJob::Sleep(_) if state.is_notice_due(&self.shared.sizes) => return Some(job),
                HelperJob::Sleep(until) => {
                    state.helper_sleeps = true;
                    state = self.shared.wait(state, until);
                    state.helper_sleeps = false;
                }
                job => return Some(job),
            }
        }
    }

    fn write(&mut self, class: Priority, mut block: Block) {
        let segments = &mut self.segments[class as usize];
        let first_sequence = segments.next_sequence + 1;
        let length = block.length_on_disk() as u64;
        let written = segments
            .with_room(length, &self.shared)
            .and_then(|held| Ok((held.number, held.segment.append(block.frames(class, first_sequence))?)));
        match written {
            Ok((segment, position)) => {
                segments.next_sequence += block.frame_count();
                if let Some(held) = segments.held.back_mut() {
                    held.blocks += 1;
                }
                crash_point("overflow_block_written");
                let buffer = block.take_buffer();
                let mut state = self.shared.lock();
                state.keep(buffer, self.shared.sizes.block_bytes);
                state.finish_write(class, PlaceOnDisk { block, segment, position, first_sequence });
            }
            Err(error) => {
                if self.shared.lock().abandon_write(class, block, &error, Instant::now()) {
                    tracing::warn!(queue = %self.shared.name, %error, "a backlog stays in memory");
                }
            }
        }
    }

    fn read(&mut self, class: Priority, place: PlaceOnDisk, mut buffer: Vec<u8>) {
        let PlaceOnDisk { mut block, segment, position, first_sequence } = place;
        let segments = &mut self.segments[class as usize];
        // Stores no zeros over bytes that exist already.
        buffer.resize(block.length_on_disk(), 0);
        let read = segments.oldest(segment).segment.read(position, first_sequence, &mut buffer).map(|_checked| ());
        if let Err(error) = &read {
            tracing::error!(queue = %self.shared.name, %error, "records of a backlog are lost");
        }
        crash_point("overflow_block_read");
        block.restore(read.map(|()| buffer));
        let freed_bytes = segments.release_oldest();
        self.shared.lock().finish_read(class, block, freed_bytes);
    }

    fn give_notice(&self) {
        loop {
            let (readable, has_room) = {
                let mut state = self.shared.lock();
                (state.next_readable(), state.take_room_notice(&self.shared.sizes))
            };
            let Some(receiver) = &self.shared.notice else { return };
            let notice = |notice| foreign::run("a receiver of notices of a queue", || receiver(notice));
            if has_room {
                notice(QueueNotice::Room);
            }
            match readable {
                Some(class) => notice(QueueNotice::Readable(class)),
                None => return,
            }
        }
    }
}

impl Segments {
    fn with_room(&mut self, length: u64, shared: &SharedQueue) -> Result<&mut HeldSegment, JournalError> {
        let has_room = self.held.back().is_some_and(|held| {
            let used = held.segment.length_bytes();
            used == 0 || used + length <= shared.sizes.segment_bytes
        });
        if !has_room {
            let segment = UnlinkedSegment::create(&shared.directory, shared.disk.clone())?;
            crash_point("overflow_segment_made");
            self.next_number += 1;
            self.held.push_back(HeldSegment { segment, number: self.next_number, blocks: 0 });
        }
        Ok(self.held.back_mut().expect("there is one, or one was just put there"))
    }

    fn oldest(&self, number: u64) -> &HeldSegment {
        let held = self.held.front().expect("a block lies on a segment");
        assert_eq!(held.number, number, "blocks are read in the order in which they were written");
        held
    }

    /// Returns the bytes freed.
    fn release_oldest(&mut self) -> u64 {
        let Some(held) = self.held.front_mut() else { return 0 };
        held.blocks -= 1;
        if held.blocks > 0 {
            return 0;
        }
        let freed_bytes = held.segment.length_bytes();
        self.held.pop_front();
        crash_point("overflow_segment_deleted");
        freed_bytes
    }
}
