use super::{Cluster, PATIENCE};
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_wire::Encoding;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const IN_FLIGHT_MAX: u64 = 200;

/// Owner, number, and as many more bytes as the number gives.
pub fn payload(owner: u64, number: u64) -> Vec<u8> {
    let length = [16, 100, 1_000, 3_000][number as usize % 4];
    let mut bytes = vec![(owner ^ number) as u8; length];
    bytes[..8].copy_from_slice(&owner.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[track_caller]
pub fn read_payload(bytes: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (owner, number) = (word(0), word(8));
    assert!(bytes == payload(owner, number), "a byte is changed in message {number} of {owner}");
    (owner, number)
}

#[derive(Default)]
struct LoadState {
    is_over: AtomicBool,
    is_paused: AtomicBool,
    interval_us: AtomicU64,
    in_flight_max: AtomicU64,
    came: AtomicU64,
}

pub struct PublishedMessages {
    pub owner: u64,
    pub sent: u64,
    /// Sequence of the last frame, owner and number.
    pub met: Vec<(u64, u64, u64)>,
}

pub struct PublisherLoad {
    shared: Arc<LoadState>,
    threads: Vec<JoinHandle<PublishedMessages>>,
}

impl PublisherLoad {
    /// Each at about a thousand messages a second.
    pub fn start(cluster: &Cluster, publishers: u64) -> Self {
        Self::start_as(cluster, 1..=publishers)
    }

    /// The owners must not have published before.
    pub fn start_as(cluster: &Cluster, owners: RangeInclusive<u64>) -> Self {
        let shared = Arc::<LoadState>::default();
        shared.interval_us.store(1000, Ordering::SeqCst);
        shared.in_flight_max.store(IN_FLIGHT_MAX, Ordering::SeqCst);
        let thread = |owner| {
            let (shared, directories) = (Arc::clone(&shared), cluster.directories());
            std::thread::spawn(move || publish(owner, &directories, &shared))
        };
        let threads = owners.map(thread).collect();
        Self { shared, threads }
    }

    #[track_caller]
    pub fn came(&self) -> u64 {
        assert!(self.threads.iter().all(|thread| !thread.is_finished()), "a publisher has ended");
        self.shared.came.load(Ordering::SeqCst)
    }

    /// Fails after [`PATIENCE`] without progress.
    #[track_caller]
    pub fn wait_more(&self, count: u64) {
        let (mut came, mut moved) = (self.came(), Instant::now());
        let end = came + count;
        while came < end {
            assert!(moved.elapsed() < PATIENCE, "{came} messages were read back, {end} are expected");
            std::thread::sleep(Duration::from_millis(2));
            let now = self.came();
            if now > came {
                (came, moved) = (now, Instant::now());
            }
        }
    }

    /// At the full rate, until `count` more are read back.
    #[track_caller]
    pub fn wait_more_fast(&self, count: u64) {
        let interval_us = self.shared.interval_us.swap(0, Ordering::SeqCst);
        self.wait_more(count);
        self.shared.interval_us.store(interval_us, Ordering::SeqCst);
    }

    /// One message at a time, so that each is an entry.
    #[track_caller]
    pub fn wait_more_singly(&self, count: u64) {
        let interval_us = self.shared.interval_us.swap(0, Ordering::SeqCst);
        self.shared.in_flight_max.store(1, Ordering::SeqCst);
        self.wait_more(count);
        self.shared.in_flight_max.store(IN_FLIGHT_MAX, Ordering::SeqCst);
        self.shared.interval_us.store(interval_us, Ordering::SeqCst);
    }

    pub fn pause(&self, is_paused: bool) {
        self.shared.is_paused.store(is_paused, Ordering::SeqCst);
    }

    /// Waits until every message is read back.
    pub fn finish(self) -> Vec<PublishedMessages> {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

fn publish(owner: u64, directories: &[PathBuf], shared: &LoadState) -> PublishedMessages {
    let link = SharedMemoryLink::any(directories, SharedMemoryOptions::default());
    let mut node = StreamNode::new(link, StreamNodeOptions::with_token(u128::from(owner)));
    let mut published = PublishedMessages { owner, sent: 0, met: Vec::new() };
    let (mut own, mut next, mut over) = (0, Instant::now(), None);
    loop {
        let now = Instant::now();
        let is_over = shared.is_over.load(Ordering::SeqCst);
        if is_over {
            let since = *over.get_or_insert(now);
            if own == published.sent {
                return published;
            }
            assert!(now - since < PATIENCE, "{own} of {} messages were read back", published.sent);
        }
        let may_publish = !is_over && !shared.is_paused.load(Ordering::SeqCst) && now >= next;
        if may_publish && node.can_publish() && (node.in_flight() as u64) < shared.in_flight_max.load(Ordering::SeqCst)
        {
            let number = published.sent + 1;
            if node.publish(TYPE, &payload(owner, number)).is_ok() {
                published.sent = number;
                next = now + Duration::from_micros(shared.interval_us.load(Ordering::SeqCst));
            }
        }
        let count = node.poll(256, |event| {
            let NodeEvent::Message(message) = event else { return };
            let (from, number) = read_payload(message.payload);
            assert_eq!(message.own, from == owner);
            if message.own {
                assert_eq!(number, own + 1, "own messages are read back once and in order");
                own = number;
                shared.came.fetch_add(1, Ordering::SeqCst);
            }
            published.met.push((message.sequence, from, number));
        });
        if count.unwrap_or_else(|error| panic!("publisher {owner}: {error}")) == 0 {
            node.wait(Duration::from_micros(500)).unwrap();
        }
    }
}
