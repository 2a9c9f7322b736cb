//! Final check of the members' journals: the same everywhere, and every published message in them once and in order.

use super::Cluster;
use super::load::{PublishedMessages, PublisherLoad, read_payload};
use gapless_journal::JournalReader;
use gapless_wire::{Frame, Kind};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

pub struct Stream {
    /// Hash of all bytes of each frame.
    hashes: Vec<u64>,
    /// Sequence of the last frame, owner and number of each message.
    pub messages: Vec<(u64, u64, u64)>,
}

impl Stream {
    /// Reads the frames up to `end` of the journal of `member`.
    pub fn read(cluster: &Cluster, member: usize, end: u64) -> Self {
        let mut replay = JournalReader::open(cluster.journal(member)).unwrap().replay(1).unwrap();
        let mut stream = Self { hashes: Vec::new(), messages: Vec::new() };
        let (mut last_ns, mut numbers, mut payload) = (0, HashMap::<u64, u64>::new(), Vec::new());
        for sequence in 1..=end {
            let frame = replay.next_frame().unwrap();
            let frame = frame.unwrap_or_else(|| panic!("member {member} has no frame {sequence} of {end}"));
            assert_eq!(frame.sequence(), sequence);
            assert!(frame.timestamp_ns() > last_ns, "time rises");
            last_ns = frame.timestamp_ns();
            stream.hashes.push(hash(&frame));
            if frame.kind() == Kind::Event {
                let number = numbers.entry(frame.session()).or_default();
                *number += 1;
                assert_eq!(frame.session_seq(), *number, "each number of a session once");
                payload.extend_from_slice(frame.payload());
                if frame.fragment().is_last() {
                    let (owner, number) = read_payload(&payload);
                    stream.messages.push((sequence, owner, number));
                    payload.clear();
                }
            }
        }
        stream
    }
}

fn hash(frame: &Frame<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.bytes().hash(&mut hasher);
    hasher.finish()
}

/// Reads the journal of `member` up to `end`: its first sequence, and a hash of each frame.
fn frames_held(cluster: &Cluster, member: usize, end: u64) -> (u64, Vec<u64>) {
    let reader = JournalReader::open(cluster.journal(member)).unwrap();
    let first = reader.first_sequence();
    let mut replay = reader.replay(first).unwrap();
    let next = |sequence| {
        let frame = replay.next_frame().unwrap();
        let frame = frame.unwrap_or_else(|| panic!("member {member} has no frame {sequence} of {end}"));
        assert_eq!(frame.sequence(), sequence);
        hash(&frame)
    };
    (first, (first..=end).map(next).collect())
}

/// Ends the load, and checks the streams of all members, which all run: they are the same, and each message is in them
/// once and in order. No reader has read anything else. Member 1 must hold the whole stream. Returns the number of
/// messages.
#[track_caller]
pub fn check(cluster: &mut Cluster, load: PublisherLoad) -> usize {
    let published = load.finish();
    check_published(cluster, &published)
}

#[track_caller]
pub fn check_published(cluster: &mut Cluster, published: &[PublishedMessages]) -> usize {
    let met = published.iter().flat_map(|each| each.met.last()).map(|(sequence, ..)| *sequence).max().unwrap_or(0);
    let end = cluster.wait("the same last sequence on all members", |cluster| {
        let ends: Option<Vec<_>> =
            cluster.all().map(|member| Some(cluster.status(member)?.released_sequence)).collect();
        let ends = ends?;
        (ends[0] >= met && ends.iter().all(|end| *end == ends[0])).then_some(ends[0])
    });
    // A member that lagged too far has begun with a state of the others.
    let holds_all = |member: &usize| JournalReader::open(cluster.journal(*member)).unwrap().first_sequence() == 1;
    let whole = cluster.all().find(holds_all).expect("a member holds the whole stream");
    let first = Stream::read(cluster, whole, end);
    for member in cluster.all().filter(|member| *member != whole) {
        let (from, other) = frames_held(cluster, member, end);
        let differs = first.hashes[from as usize - 1..].iter().zip(&other).position(|(one, another)| one != another);
        let differs = differs.map(|at| at as u64 + from);
        assert_eq!(differs, None, "from here on the streams of members {whole} and {member} differ");
    }
    let mut numbers = HashMap::new();
    for (sequence, owner, number) in &first.messages {
        let last = numbers.entry(*owner).or_insert(0);
        assert_eq!(*number, *last + 1, "at {sequence}: a message of {owner} is missing, or is there twice");
        *last = *number;
    }
    for each in published {
        let found = numbers.get(&each.owner).copied().unwrap_or(0);
        assert_eq!(found, each.sent, "messages of {}", each.owner);
        // Messages that a reader has read keep their place; it may have begun in the middle, and ended before the
        // others.
        let mut place = first.messages.iter();
        for met in &each.met {
            assert!(place.any(|message| message == met), "{met:?} was read by {} and is missing", each.owner);
        }
    }
    first.messages.len()
}
