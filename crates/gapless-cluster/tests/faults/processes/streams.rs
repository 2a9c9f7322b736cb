use super::Cluster;
use super::load::{PublishedMessages, PublisherLoad, read_payload};
use gapless_journal::JournalReader;
use gapless_wire::{Frame, Kind};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

pub struct Stream {
    hashes: Vec<u64>,
    /// Sequence of the last frame, owner and number.
    pub messages: Vec<(u64, u64, u64)>,
}

impl Stream {
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

/// Ends the load and checks that all members run with one stream, with each message once and in order, and that readers
/// have read nothing else. Member 1 must hold the whole stream.
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
        let mut place = first.messages.iter();
        for met in &each.met {
            assert!(place.any(|message| message == met), "{met:?} was read by {} and is missing", each.owner);
        }
    }
    first.messages.len()
}
