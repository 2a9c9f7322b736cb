//! The log of kept commands: damage, incomplete writes, refused writes, and rewriting.

use super::*;
use gapless_log::StreamIdentity;
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::random::Random;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::Encoding;
use gapless_wire::control::RefusalCode;
use rustix::fs::{CWD, FileType, mknodat};
use std::collections::BTreeMap;
use tempfile::TempDir;

const TYPE: MessageType = MessageType { schema: 7, encoding: Encoding::Postcard };
const SESSION: u64 = 100;

/// Id, payload, number and its session, ending.
type Kept = (u64, Vec<u8>, Option<(CommandNumber, bool)>, Option<Ending>);

fn open(directory: &Path) -> Result<CommandLog, ClientError> {
    CommandLog::open(directory, Duration::ZERO)
}

fn refusal(directory: &Path) -> String {
    open(directory).err().expect("it is refused").to_string()
}

fn session(token: u128, session: u64, sequence: u64) -> SavedSession {
    let identity = StreamIdentity { stream_id: 5, incarnation: 6 };
    let seen = SeenFrame { identity, sequence, timestamp_ns: sequence * 9 };
    SavedSession { token, window_messages: 64, session, seen }
}

fn number(session_seq: u64) -> CommandNumber {
    CommandNumber { session: SESSION, session_seq }
}

fn reply(payload: &[u8]) -> Ending {
    Ending::Reply { sequence: 9, message: TYPE, payload: payload.to_vec() }
}

fn keep(log: &CommandLog, payload: &[u8]) -> u64 {
    log.keep(TYPE, payload.to_vec(), 1_000).unwrap().id
}

fn content(log: &CommandLog) -> (Option<SavedSession>, Vec<Kept>) {
    let state = log.lock();
    let kept = state.kept.iter().map(|(id, kept)| {
        let ending = kept.command.ending().map(|ending| Ending::clone(&ending));
        let number = kept.number.filter(|_| ending.is_none()).map(|number| (number, kept.is_of_session));
        (*id, kept.command.payload.clone(), number, ending)
    });
    (state.session, kept.collect())
}

/// A log with every kind of record.
fn filled() -> (TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    log.save_session(session(1, 0, 0)).unwrap();
    log.save_session(session(1, SESSION, 3)).unwrap();
    let endings = [
        reply(b"reply"),
        Ending::Refused {
            number: number(2),
            sequence: 7,
            code: RefusalCode::Rejected,
            detail: 8,
            text: "no".to_owned(),
        },
        Ending::Unknown { number: number(3), reason: "gone".to_owned() },
        Ending::Invalid { reason: "long".to_owned() },
    ];
    for (at, ending) in (1..).zip(endings) {
        let id = keep(&log, &[at as u8; 5]);
        log.number(id, number(at)).unwrap();
        log.settle(id, ending).unwrap();
    }
    let (sent, forgotten, _) = (keep(&log, b"sent"), keep(&log, b"forgotten"), keep(&log, b""));
    log.number(sent, number(5)).unwrap();
    log.forget(forgotten).unwrap();
    drop(log);
    let bytes = std::fs::read(folder.path().join(FILE_NAME)).unwrap();
    (folder, bytes)
}

#[test]
fn log_is_read_again() {
    let (folder, bytes) = filled();
    let log = open(folder.path()).unwrap();
    let (session_found, kept) = content(&log);
    assert_eq!(session_found, Some(session(1, SESSION, 3)));
    let settled: Vec<_> = kept.iter().filter_map(|(.., ending)| ending.clone()).collect();
    assert_eq!(settled.len(), 4);
    assert_eq!(settled[0], reply(b"reply"));
    assert_eq!(kept[4], (5, b"sent".to_vec(), Some((number(5), true)), None));
    assert_eq!(kept[5], (7, Vec::new(), None, None));
    assert_eq!(log.unsettled(), [Unsettled { id: 5, number: number(5), is_of_session: true }]);
    assert_eq!(keep(&log, b"next"), 8, "no id comes again");
    drop(log);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(folder.path().join(FILE_NAME)).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert!(std::fs::read(folder.path().join(FILE_NAME)).unwrap().starts_with(&bytes), "it only grows");
}

#[test]
fn damage_is_found_at_each_byte() {
    let (folder, bytes) = filled();
    let path = folder.path().join(FILE_NAME);
    for at in 0..bytes.len() {
        for bit in [0, 3, 7] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            std::fs::write(&path, &damaged).unwrap();
            let reason = refusal(folder.path());
            assert!(reason.contains("outbox: at byte "), "byte {at}: {reason}");
            assert_eq!(std::fs::read(&path).unwrap(), damaged, "byte {at}: it is left as it is");
        }
    }
}

#[test]
fn incomplete_record_is_removed() {
    let (folder, bytes) = filled();
    let path = folder.path().join(FILE_NAME);
    let mut ends = vec![super::super::record::HEADER_LENGTH];
    while let Some((_, length)) = Record::first_of(&bytes[*ends.last().unwrap()..]).unwrap() {
        ends.push(ends.last().unwrap() + length);
    }
    assert_eq!(ends.last(), Some(&bytes.len()));
    let mut whole = BTreeMap::new();
    for end in &ends {
        std::fs::write(&path, &bytes[..*end]).unwrap();
        whole.insert(*end, content(&open(folder.path()).unwrap()));
    }
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let Some((end, expected)) = whole.range(..=length).next_back() else {
            assert!(refusal(folder.path()).contains("at byte 0"), "{length} bytes");
            continue;
        };
        let log = open(folder.path()).unwrap();
        assert_eq!(content(&log), *expected, "{length} bytes");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), *end as u64, "{length} bytes");
        let id = keep(&log, b"after");
        drop(log);
        assert!(content(&open(folder.path()).unwrap()).1.iter().any(|(kept, ..)| *kept == id));
    }
}

#[test]
fn misplaced_records_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Record::Kept { id: 3, message: TYPE, payload: b"one" };
    let opened = Record::Session(session(1, SESSION, 0));
    for (records, reason) in [
        (vec![&kept, &kept], "command 3 is kept after command 3"),
        (vec![&opened, &Record::Numbered { id: 3, number: number(1) }], "command 3, which is not kept"),
        (vec![&kept, &Record::Numbered { id: 3, number: number(1) }], "without a session"),
        (vec![&Record::Settled { id: 4, ending: Cow::Owned(reply(b"")) }], "command 4, which is not kept"),
        (vec![&kept, &Record::Forgotten { id: 3 }, &Record::Forgotten { id: 3 }], "command 3, which is not kept"),
    ] {
        let mut bytes = super::super::record::header().to_vec();
        let last = records.len() - 1;
        records[..last].iter().for_each(|record| _ = record.append_to(&mut bytes));
        let at = bytes.len();
        records[last].append_to(&mut bytes);
        std::fs::write(folder.path().join(FILE_NAME), &bytes).unwrap();
        let found = refusal(folder.path());
        assert!(found.contains(reason) && found.contains(&format!("at byte {at}: ")), "{found}");
    }
}

#[test]
fn later_number_takes_earlier_one() {
    let (folder, _) = filled();
    let log = open(folder.path()).unwrap();
    let (one, other) = (keep(&log, b"one"), keep(&log, b"other"));
    log.number(one, number(9)).unwrap();
    // The first was not sent: a number of the session is used once.
    log.number(other, number(6)).unwrap();
    let expected = [5, other].map(|id| Unsettled { id, number: number(id.min(6)), is_of_session: true });
    assert_eq!(log.unsettled(), expected);
    log.unnumber(other).unwrap();
    assert_eq!(log.unsettled(), expected[..1]);
    log.save_session(session(2, 0, 0)).unwrap();
    let of_lost_session = Unsettled { is_of_session: false, ..expected[0] };
    assert_eq!(log.unsettled(), [of_lost_session]);
    drop(log);
    let log = open(folder.path()).unwrap();
    assert_eq!(log.unsettled(), [of_lost_session]);
    log.number(one, number(1)).unwrap();
    assert_eq!(log.unsettled()[0], of_lost_session, "numbers of two sessions are not compared");
}

#[test]
fn other_kinds_of_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert!(refusal(folder.path()).contains("pipe"), "{}", refusal(folder.path()));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refusal(folder.path());
    std::fs::remove_dir(&path).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, b"").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(refusal(folder.path()).contains("link"), "{}", refusal(folder.path()));
    std::fs::remove_file(&path).unwrap();
    assert!(refusal(&elsewhere).contains("elsewhere"), "the directory is a file");
    open(&folder.path().join("new/directory")).unwrap();
}

#[test]
fn directory_is_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    assert!(refusal(folder.path()).contains("another client uses this directory"));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| CommandLog::open(folder.path(), Duration::from_secs(120)));
        drop(log);
        waits.join().unwrap().unwrap();
    });
    open(folder.path()).unwrap();
}

#[test]
fn bounds_include_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    log.save_session(session(1, SESSION, 0)).unwrap();
    let id = keep(&log, b"one");
    assert!(matches!(log.keep(TYPE, Vec::new(), 1), Err(NotKept::Full { kept: 1 })));
    log.settle(id, reply(&vec![7; crate::shared::WAITING_BYTES_MAX])).unwrap();
    assert!(matches!(log.keep(TYPE, Vec::new(), 1_000), Err(NotKept::Full { kept: 1 })));
    log.forget(id).unwrap();
    let long = keep(&log, &vec![7; crate::shared::WAITING_BYTES_MAX + 1]);
    assert!(matches!(log.keep(TYPE, Vec::new(), 1_000), Err(NotKept::Full { kept: 1 })), "it is kept alone");
    log.forget(long).unwrap();
    keep(&log, b"two");
}

#[test]
fn refused_writes_leave_no_trace() {
    let Some(disk) = SmallDisk::new(256) else { return };
    let log = open(&disk.path).unwrap();
    log.save_session(session(1, SESSION, 0)).unwrap();
    let ids = [keep(&log, b"one"), keep(&log, b"two")];
    log.number(ids[0], number(1)).unwrap();
    let filler = disk.path.join("filler");
    let fill = || _ = std::fs::write(&filler, vec![1; 1 << 20]);
    fill();
    // The last page of the file has room for a few records.
    let mut kept = 0;
    let refused = loop {
        match log.keep(TYPE, vec![7; 100], 1_000) {
            Ok(_) => kept += 1,
            Err(NotKept::Failed(error)) => break error.to_string(),
            Err(other) => panic!("{other:?}"),
        }
    };
    assert!(refused.contains("No space left") && refused.contains("outbox: cannot write at byte "), "{refused}");
    let length = || std::fs::metadata(disk.path.join(FILE_NAME)).unwrap().len();
    let before = length();
    let late = reply(&[7; 5_000]);
    assert!(log.settle(ids[0], late.clone()).is_err() && length() == before);
    assert!(log.keep(TYPE, vec![7; 5_000], 1_000).is_err() && log.forget(ids[1]).is_ok() == (length() > before));
    assert!(log.commands()[0].is_settled(), "its outcome is there nevertheless");
    std::fs::remove_file(&filler).unwrap();
    let next = keep(&log, b"next");
    let expected = content(&log);
    drop(log);
    let log = open(&disk.path).unwrap();
    assert_eq!(content(&log), expected);
    assert_eq!(expected.1[0].3, Some(late), "the outcome was written before the next record");
    assert!(expected.1.len() >= kept + 2 && expected.1.last().unwrap().0 == next);
}

#[test]
fn rewritten_log_has_what_it_needs() {
    let (folder, _) = filled();
    let path = folder.path().join(FILE_NAME);
    let mut random = Random::seeded();
    let mut log = open(folder.path()).unwrap();
    let (mut numbers, mut sessions, mut rewritten) = (5, 1, 0);
    for round in 0..2_000 {
        let before = std::fs::metadata(&path).unwrap().len();
        // Small logs are rewritten, too.
        log.lock().rewrite_above = 8_192;
        let kept = content(&log).1;
        let one = kept.get(random.below(kept.len() as u64 + 1) as usize);
        match (random.below(6), one) {
            (0, _) if kept.len() < 30 => _ = keep(&log, &vec![7; random.below(200) as usize]),
            (1, Some((id, _, _, None))) => {
                numbers += 1 + random.below(2);
                log.number(*id, number(numbers)).unwrap();
            }
            (2, Some((id, _, _, None))) => log.settle(*id, reply(&[1; 20])).unwrap(),
            (3, Some((id, ..))) => log.forget(*id).unwrap(),
            (4, _) if random.happens(100) => {
                sessions += 1;
                log.save_session(session(sessions, SESSION, 0)).unwrap();
            }
            (4, _) => log.see(session(sessions, SESSION, round)),
            (5, _) if random.happens(100) => {
                let expected = content(&log);
                drop(log);
                log = open(folder.path()).unwrap();
                let found = without_lost_sessions(content(&log));
                assert!(found == without_lost_sessions(expected), "round {round}");
            }
            _ => {}
        }
        rewritten += u64::from(std::fs::metadata(&path).unwrap().len() < before);
    }
    assert!(rewritten > 2, "it was rewritten {rewritten} times");
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 2, "nothing but the log and its lock");
}

/// A rewritten log does not name lost sessions.
fn without_lost_sessions((session, mut kept): (Option<SavedSession>, Vec<Kept>)) -> (Option<SavedSession>, Vec<Kept>) {
    for (number, is_of_session) in kept.iter_mut().filter_map(|(_, _, number, _)| number.as_mut()) {
        number.session = if *is_of_session { number.session } else { 0 };
    }
    (session, kept)
}
