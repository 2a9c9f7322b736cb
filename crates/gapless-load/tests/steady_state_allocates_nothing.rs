//! No message allocates with direct access, on any thread of driver or host. A separate program, because its allocator
//! counts.

#![allow(clippy::unwrap_used, reason = "a test may fail here")]

use gapless::prelude::*;
use gapless_engine::{ServiceHost, ServiceHostOptions};
use gapless_load::canonical::car::{CarForm, LENGTH_MAX, SCHEMA, SbeSerial};
use gapless_load::canonical::processor::Processor;
use gapless_testkit::random::rounds;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

/// Index: number that a thread gets at its first allocation.
static ALLOCATIONS: [AtomicU64; THREADS_MAX] = [const { AtomicU64::new(0) }; THREADS_MAX];
static THREAD_IDS: [AtomicU64; THREADS_MAX] = [const { AtomicU64::new(0) }; THREADS_MAX];
static THREADS: AtomicU64 = AtomicU64::new(0);
const THREADS_MAX: usize = 256;

thread_local! {
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

fn count() {
    let number = NUMBER.get().unwrap_or_else(|| {
        let number = THREADS.fetch_add(1, Ordering::SeqCst) as usize;
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        THREAD_IDS[number].store(u64::from(id.unsigned_abs()), Ordering::SeqCst);
        NUMBER.set(Some(number));
        number
    });
    ALLOCATIONS[number].fetch_add(1, Ordering::SeqCst);
}

/// Lists living threads.
fn allocations() -> Vec<(String, u64)> {
    // Reading names allocates, so it comes first.
    let ids = THREAD_IDS.iter().map(|id| id.load(Ordering::SeqCst)).enumerate();
    let named: Vec<(usize, String)> = ids
        .filter_map(|(number, id)| Some((number, std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok()?)))
        .collect();
    named
        .into_iter()
        .map(|(number, name)| (name.trim().to_owned(), ALLOCATIONS[number].load(Ordering::SeqCst)))
        .collect()
}

// SAFETY: all calls are passed on to the system's allocator; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, length: usize) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(pointer, layout, length) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const WINDOW: u32 = 32;

fn send_and_take(client: &mut PolledClient, session: SessionKey, messages: u64) {
    let car = MessageType { schema: SCHEMA, encoding: Encoding::Sbe };
    let (mut sent, mut taken) = (0, 0);
    while taken < messages {
        while sent < messages && client.can_send(session) {
            let number = i32::try_from(sent).unwrap();
            client
                .enqueue(session, car, LENGTH_MAX, |buffer| {
                    SbeSerial::write(buffer, Some(number)).map_err(|error| ClientError::Encode(error.to_string()))
                })
                .unwrap();
            sent += 1;
        }
        taken += client.poll(64, |incoming| assert!(matches!(incoming, Incoming::Reply { .. }))).unwrap() as u64;
    }
}

#[test]
fn steady_state_allocates_nothing() {
    let counted = rounds(50_000, 2_000);
    for tier in [Tier::Memory, Tier::Journal, Tier::Sync] {
        let directory = tempfile::tempdir().unwrap();
        let options = ServiceHostOptions {
            tier,
            persistence: Persistence { segment_length_bytes: 64 << 20, ..Persistence::default() },
            snapshot_interval_frames: None,
            ..ServiceHostOptions::in_directory(directory.path())
        };
        let host = ServiceHost::start(Processor::<SbeSerial>::default(), options).unwrap();
        let mut client = host.connect(ClientOptions::default()).unwrap();
        let session = client.open_session(random_token(), WINDOW).unwrap();
        // A thread of its own, so that reading the counts is not counted.
        let (before, after) = std::thread::scope(|scope| {
            let (start, ready) = std::sync::mpsc::sync_channel::<()>(0);
            let (done, end) = std::sync::mpsc::sync_channel::<()>(0);
            let client = &mut client;
            std::thread::Builder::new()
                .name("driver".to_owned())
                .spawn_scoped(scope, move || {
                    send_and_take(client, session, counted / 2);
                    done.send(()).unwrap();
                    ready.recv().unwrap();
                    send_and_take(client, session, counted);
                    done.send(()).unwrap();
                    ready.recv().unwrap();
                })
                .unwrap();
            end.recv().unwrap();
            let before = allocations();
            start.send(()).unwrap();
            end.recv().unwrap();
            let after = allocations();
            start.send(()).unwrap();
            (before, after)
        });
        let own = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
        assert!(after.iter().any(|(name, _)| name == "driver"), "{after:?}");
        for (name, count) in after.iter().filter(|(name, _)| name != own.trim()) {
            let earlier = before.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count);
            // The preparer of segments allocates in its few steps, not per message.
            let allowed = if name == "gapless-prepare" { 100 } else { 0 };
            let allowed = if name == "driver" { 2 } else { allowed };
            let allocated = count - earlier;
            assert!(allocated <= allowed, "{name}: {allocated} allocations for {counted} messages at tier {tier}");
        }
        host.stop().unwrap();
    }
}
