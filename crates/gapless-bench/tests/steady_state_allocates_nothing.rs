//! With direct access no message allocates, on any thread of the process: not the driver's, not the
//! node's.

#![allow(clippy::unwrap_used, reason = "a test may fail here")]

use gapless::prelude::*;
use gapless_bench::canonical::car::{CarForm, LENGTH_MAX, SCHEMA, SbeSerial};
use gapless_bench::canonical::processor::Processor;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, length: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, length) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Commands in flight in the one session of the test.
const WINDOW: u32 = 32;

fn send_and_take(client: &mut Client, session: SessionKey, messages: u64) {
    let car = MessageType { schema: SCHEMA, encoding: Encoding::Sbe };
    let (mut sent, mut taken) = (0, 0);
    while taken < messages {
        while sent < messages && client.can_send(session) {
            let number = i32::try_from(sent).unwrap();
            client
                .enqueue(session, car, LENGTH_MAX, |buffer| {
                    SbeSerial::write(buffer, Some(number)).map_err(|error| StreamError::Encode(error.to_string()))
                })
                .unwrap();
            sent += 1;
        }
        taken += client.poll(64, |incoming| assert!(matches!(incoming, Incoming::Reply { .. }))).unwrap() as u64;
    }
}

#[test]
fn steady_state_allocates_nothing() {
    for tier in [Tier::Memory, Tier::Journal, Tier::Sync] {
        let directory = tempfile::tempdir().unwrap();
        let options = NodeOptions {
            tier,
            persistence: Persistence { segment_length_bytes: 64 << 20, ..Persistence::default() },
            snapshot_interval_frames: None,
            ..NodeOptions::in_directory(directory.path())
        };
        let node = Node::start(Processor::<SbeSerial>::default(), options).unwrap();
        let mut client = node.connect(ClientOptions::default()).unwrap();
        let session = client.open_session(random_token(), WINDOW).unwrap();
        // Every buffer grows to its size, every page of the first segment's working set is there.
        send_and_take(&mut client, session, 20_000);
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        send_and_take(&mut client, session, 50_000);
        let allocations = ALLOCATIONS.load(Ordering::SeqCst) - before;
        // Helper threads may allocate for what is not per message, such as a wake-up of the preparer.
        assert!(allocations < 100, "{allocations} allocations for 50,000 messages at tier {tier}");
        node.stop().unwrap();
    }
}
