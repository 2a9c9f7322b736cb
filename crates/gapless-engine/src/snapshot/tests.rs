//! Tests of snapshots: restoring, older formats, and errors for damaged and foreign files.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use super::*;
use crate::fold::Policy;
use crate::service::{Handlers, Service};
use gapless_message::contract;

#[derive(serde::Serialize, serde::Deserialize, gapless_message::Message)]
struct Remind;

#[derive(Default)]
struct Word([u8; 4]);

impl Service for Word {
    fn versions() -> std::ops::RangeInclusive<u32> {
        1..=3
    }

    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.timer(|_: &mut Self, _: Remind, _| {});
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = state.try_into().map_err(|_| "4 bytes")?;
        Ok(())
    }
}

fn fold(word: [u8; 4]) -> Fold {
    Fold::new(Word(word), Policy::default())
}

#[test]
fn missing_version_is_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let identity = StreamIdentity { stream_id: 7, incarnation: 1 };
    let mut fold_before = fold(*b"word");
    fold_before.become_version(3, 1).unwrap();
    let bytes = encode(&fold_before, identity);
    let restored = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let mut fold = fold([0; 4]);
        restore(&mut fold, &path, identity).map(|()| (fold.service::<Word>().0, fold.version))
    };
    assert_eq!(restored(&bytes).unwrap(), (*b"word", 3));
    // After the version: fault rules, length of the state, state, checksum.
    let version_at = bytes.len() - 4 - 4 - 8 - 4 - 4;
    let with_version =
        |version: &[u8]| [&bytes[..version_at], version, &bytes[version_at + 4..bytes.len() - 4]].concat();
    let with_rules = |rules: &[u8]| {
        let rules_at = version_at + 4;
        [&bytes[..rules_at], rules, &bytes[rules_at + 4..bytes.len() - 4]].concat()
    };
    let mut without_rules = with_rules(&[]);
    without_rules[7] = 3;
    assert_eq!(restored(&with_sum(&without_rules)).unwrap(), (*b"word", 3));
    let mut old = [&bytes[..version_at], &bytes[version_at + 8..bytes.len() - 4]].concat();
    old[7] = 2;
    let old = with_sum(&old);
    assert_eq!(restored(&old).unwrap(), (*b"word", 1));
    std::fs::write(&path, &old).unwrap();
    assert_eq!(identity_of(&path).unwrap(), identity);
    let mut newer = bytes[..bytes.len() - 4].to_vec();
    newer[7] = 6;
    let Err(EngineError::Snapshot { reason, .. }) = restored(&with_sum(&newer)) else {
        panic!("a newer format was accepted")
    };
    assert_eq!(reason, "it has format 6, and this program reads 2 to 5: start the program that has written it");
    for rules in [1, 1 << 31 | 4_u32] {
        let refused = restored(&with_sum(&with_rules(&rules.to_le_bytes())));
        assert!(matches!(refused, Err(EngineError::Snapshot { .. })), "{rules}: {refused:?}");
    }
    let lacks = restored(&with_sum(&with_version(&4_u32.to_le_bytes())));
    assert!(matches!(lacks, Err(EngineError::Version { version: 4, first: 1, last: 3, .. })), "{lacks:?}");
    assert!(matches!(restored(&with_sum(&with_version(&[0; 4]))), Err(EngineError::Snapshot { .. })));
}

const HERE: StreamIdentity = StreamIdentity { stream_id: 7, incarnation: 1 };

fn full_fold(sequence: u64) -> Fold {
    let mut fold = fold(*b"word");
    (fold.last_sequence, fold.last_timestamp_ns, fold.next_published) = (sequence, 1_000 + sequence, 6);
    fold.become_version(2, 1).unwrap();
    let reply = |number: u64| StoredReply {
        session_seq: number,
        sequence: 10 + number,
        timestamp_ns: 20 + number,
        schema: 30,
        flags: 1,
        payload: vec![number as u8; number as usize],
    };
    let entry = fold.sessions.open(900, 1 << 100, 4, 50);
    (entry.last_session_seq, entry.messages) = (3, 2);
    entry.replies = vec![reply(1), StoredReply::default(), reply(3)];
    entry.last_notice = 12;
    entry.notices = (11..=12)
        .map(|number| StoredNotice {
            number,
            sequence: 70 + number,
            timestamp_ns: 80 + number,
            schema: 90,
            encoding: Encoding::Protobuf,
            payload: vec![7; number as usize],
        })
        .collect();
    fold.sessions.open(800, 2, 1, 51);
    fold.timers.restore(5, 5_000);
    fold.timers.restore(4, 6_000);
    fold.timers.restore_numbered(3);
    let mut payload = Vec::new();
    contract::encode_message(&Remind, &mut payload).unwrap();
    let remind = TimerMessage { schema: contract::name_key("Remind"), payload: payload.into() };
    assert!(fold.timers.restore_message(5, remind));
    fold
}

fn with_sum(body: &[u8]) -> Vec<u8> {
    [body, &crc32c(body).to_le_bytes()].concat()
}

fn changed(bytes: &[u8], at: usize, to: &[u8]) -> Vec<u8> {
    let mut body = bytes[..bytes.len() - 4].to_vec();
    body[at..at + to.len()].copy_from_slice(to);
    with_sum(&body)
}

fn restored_of(bytes: &[u8], identity: StreamIdentity) -> Result<Fold, EngineError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    std::fs::write(&path, bytes).unwrap();
    let mut fold = fold([0; 4]);
    restore(&mut fold, &path, identity).map(|()| fold)
}

#[track_caller]
fn reason_of<T>(result: Result<T, EngineError>) -> String {
    match result {
        Err(EngineError::Snapshot { reason, .. }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the snapshot was accepted"),
    }
}

#[test]
fn snapshot_restores_the_fold() {
    let written = full_fold(42);
    let bytes = encode(&written, HERE);
    let read = restored_of(&bytes, HERE).unwrap();
    assert_eq!((read.last_sequence, read.last_timestamp_ns), (42, 1_042));
    assert_eq!((read.next_published, read.version), (6, 2));
    assert_eq!(read.sessions.sorted(), written.sessions.sorted());
    assert!(read.timers.iter().eq([(4, 6_000), (5, 5_000)]));
    assert_eq!(read.timers, written.timers);
    assert_eq!((read.service::<Word>().0, read.state()), (*b"word", b"word".to_vec()));
    assert_eq!(encode(&read, HERE), bytes);
}

#[test]
fn every_damaged_byte_is_found() {
    let bytes = encode(&full_fold(42), HERE);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(reason_of(restored_of(&damaged, HERE)).starts_with("it is damaged"), "byte {at}");
        std::fs::write(&path, damaged).unwrap();
        reason_of(check(&path, HERE, 42));
    }
    for length in [0, 3, 4, 43, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        reason_of(check(&path, HERE, 42));
        reason_of(restored_of(&bytes[..length], HERE));
    }
}

#[test]
fn impossible_value_is_damage() {
    let bytes = encode(&full_fold(42), HERE);
    let sequence_at = 32;
    // After session, token, last number, messages and time.
    let window_at = 52 + 8 + 16 + 8 + 8 + 8;
    assert_eq!(bytes[window_at..window_at + 4], 1_u32.to_le_bytes());
    for (at, value) in [(sequence_at, COUNT_MAX), (sequence_at, 1), (sequence_at, 0)] {
        let read = restored_of(&changed(&bytes, at, &value.to_le_bytes()), HERE).unwrap();
        assert_eq!(read.last_sequence, value);
    }
    let with_window = |window: u32| {
        let mut fold = fold(*b"word");
        fold.sessions.open(1, 1, window, 0);
        encode(&fold, HERE)
    };
    assert_eq!(restored_of(&with_window(WINDOW_COMMANDS_MAX), HERE).unwrap().sessions.len(), 1);
    for refused in [
        with_window(WINDOW_COMMANDS_MAX + 1),
        changed(&bytes, sequence_at, &(COUNT_MAX + 1).to_le_bytes()),
        changed(&bytes, window_at, &0_u32.to_le_bytes()),
        // After the number of the next frame: version, fault rules, length of the state, state, checksum.
        changed(&bytes, bytes.len() - 4 - 4 - 8 - 4 - 4 - 8, &0_u64.to_le_bytes()),
        with_sum(&[&bytes[..bytes.len() - 4], &[0]].concat()),
    ] {
        assert!(reason_of(restored_of(&refused, HERE)).starts_with("it is damaged"));
    }
}

#[test]
fn foreign_snapshot_is_refused() {
    let bytes = encode(&full_fold(42), HERE);
    let reason = reason_of(restored_of(&changed(&bytes, 0, b"RUBBISH!"), HERE));
    assert_eq!(reason, "it does not begin as a snapshot does");
    for other in [StreamIdentity { stream_id: 8, ..HERE }, StreamIdentity { incarnation: 2, ..HERE }] {
        let reason = reason_of(restored_of(&bytes, other));
        assert!(reason.starts_with("it belongs to stream 0000"), "{reason}");
    }
    let mut longer = bytes[..bytes.len() - 4].to_vec();
    let length_at = longer.len() - 12;
    longer[length_at..length_at + 8].copy_from_slice(&5_u64.to_le_bytes());
    longer.push(b'!');
    assert_eq!(reason_of(restored_of(&with_sum(&longer), HERE)), "the service refused it: 4 bytes");
}

#[test]
fn check_reads_whole_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let head = encode(&full_fold(42), HERE)[..HEAD_LENGTH].to_vec();
    for length in [HEAD_LENGTH, HEAD_LENGTH + 1, CHECKED_BYTES, CHECKED_BYTES + 1, 5 * CHECKED_BYTES / 2] {
        let mut body = head.clone();
        body.resize(length, 3);
        let mut bytes = with_sum(&body);
        std::fs::write(&path, &bytes).unwrap();
        check(&path, HERE, 42).unwrap();
        assert_eq!(reason_of(check(&path, HERE, 41)), "it stands at another sequence than is said");
        let other = StreamIdentity { incarnation: 2, ..HERE };
        assert_eq!(reason_of(check(&path, other, 42)), "it belongs to another stream or incarnation");
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(reason_of(check(&path, HERE, 42)), "it is damaged");
    }
}

#[test]
fn newest_two_are_kept_and_listed() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().join("snapshots");
    assert_eq!(list(&here).unwrap(), []);
    std::fs::create_dir_all(&here).unwrap();
    for name in ["7.tmp", "word.snapshot", "8"] {
        std::fs::write(here.join(name), b"not a snapshot").unwrap();
    }
    for sequence in [9, 10, 100] {
        write(&here, sequence, &encode(&full_fold(sequence), HERE)).unwrap();
    }
    let path = |sequence| here.join(file_name(sequence));
    assert_eq!(list(&here).unwrap(), [(10, path(10)), (100, path(100))]);
    let identity = Some((HERE.stream_id, HERE.incarnation));
    let said = |point: &FilePoint| (point.path.clone(), point.identity, point.sequence, point.timestamp_ns);
    let expected = [10, 100].map(|sequence| (path(sequence), identity, sequence, Some(1_000 + sequence)));
    assert_eq!(points(&here).unwrap().iter().map(said).collect::<Vec<_>>(), expected);

    std::fs::copy(path(100), path(101)).unwrap();
    std::fs::write(path(102), &encode(&full_fold(102), HERE)[..HEAD_LENGTH]).unwrap();
    std::fs::File::options().write(true).open(path(10)).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(identity_of(&path(10)).unwrap(), HERE);
    let found = points(&here).unwrap();
    assert_eq!(found.iter().map(|point| point.sequence).collect::<Vec<_>>(), [10, 100, 101, 102]);
    assert!(found[2].identity.is_none() && found[3].identity.is_none(), "{found:?}");

    assert!(list(&path(100)).is_err());
}

#[test]
fn adopt_rewrites_the_identity() {
    let directory = tempfile::tempdir().unwrap();
    let next = StreamIdentity { incarnation: 2, ..HERE };
    for (sequence, identity) in [(10, HERE), (20, next)] {
        write(directory.path(), sequence, &encode(&full_fold(sequence), identity)).unwrap();
    }
    adopt(directory.path(), next).unwrap();
    for sequence in [10, 20] {
        let path = directory.path().join(file_name(sequence));
        assert_eq!(identity_of(&path).unwrap(), next);
        check(&path, next, sequence).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), encode(&full_fold(sequence), next));
    }
    let damaged = directory.path().join(file_name(10));
    let mut bytes = std::fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&damaged, &bytes).unwrap();
    assert_eq!(reason_of(adopt(directory.path(), HERE)), "it is damaged");
    assert_eq!(std::fs::read(&damaged).unwrap(), bytes);
}
