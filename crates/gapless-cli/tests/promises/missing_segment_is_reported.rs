//! No reader takes the rest of a damaged journal for the whole.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, names, run};
use gapless_journal::{Journal, JournalOptions};
use gapless_testkit::folder::copy;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use std::path::Path;
use std::process::Command;

const READERS: [&[&str]; 5] = [
    &["stream", "replay", "--raw", "--directory", "damaged"],
    &["stream", "replay", "--raw", "--directory", "damaged", "--from", "900"],
    &["journal", "dump", "damaged"],
    &["journal", "info", "damaged"],
    &["stream", "status", "--directory", "damaged"],
];

fn written(place: &Path) -> Journal {
    let directory = place.join("journal");
    std::fs::create_dir_all(&directory).unwrap();
    let mut options = JournalOptions::new(directory, 0xabc);
    options.segment_length_bytes = 64 << 10;
    options.frame_length_max = 2048;
    let (mut journal, _report) = Journal::open(options).unwrap();
    for sequence in 1..=1000 {
        let payload = [b'x'; 100];
        let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut()[..payload.len()].copy_from_slice(&payload);
        let (kind, session, session_seq) = (Kind::Event, 7, sequence);
        let timestamp_ns = 1_700_000_000_000_000_000 + sequence;
        let header = FrameHeader { kind, sequence, timestamp_ns, session, session_seq, ..FrameHeader::default() };
        writer.finish(&header, payload.len());
        journal.append(&bytes, sequence, sequence).unwrap();
    }
    journal.commit().unwrap();
    journal
}

fn segments(place: &Path) -> Vec<String> {
    names(&place.join("journal")).into_iter().filter(|name| name.ends_with(".segment")).collect()
}

#[track_caller]
fn is_missed(words: &str, damage: impl Fn(&Path)) {
    for is_running in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let journal = written(&here.join("whole"));
        let _kept = is_running.then_some(journal);
        copy(&here.join("whole"), &here.join("damaged"));
        damage(&here.join("damaged/journal"));
        for reader in READERS {
            let told: ProgramOutput = run(here, reader);
            assert!(told.code == Some(1) && told.stderr.contains(words), "{reader:?}: {told:?}");
        }
    }
}

#[test]
fn newest_segment() {
    is_missed("missing", |journal| {
        std::fs::remove_file(journal.join(segments(journal.parent().unwrap()).pop().unwrap())).unwrap();
    });
}

#[test]
fn newest_segment_without_a_record() {
    is_missed("is missing", |journal| {
        std::fs::remove_file(journal.join(segments(journal.parent().unwrap()).pop().unwrap())).unwrap();
        std::fs::remove_file(journal.join("history")).unwrap();
    });
}

#[test]
fn oldest_segment() {
    is_missed("were not deleted", |journal| {
        std::fs::remove_file(journal.join(&segments(journal.parent().unwrap())[0])).unwrap();
    });
}

#[test]
fn pipe_instead_of_segment() {
    let places: [fn(&Path) -> String; 2] =
        [|_| "history".to_owned(), |journal| segments(journal.parent().unwrap())[1].clone()];
    for place in places {
        is_missed("no regular file", |journal| {
            let path = journal.join(place(journal));
            std::fs::remove_file(&path).unwrap();
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        });
    }
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    drop(written(&here.join("damaged")));
    std::fs::remove_file(here.join("damaged/journal/lock")).unwrap();
    assert!(Command::new("mkfifo").arg(here.join("damaged/journal/lock")).status().unwrap().success());
    let told = run(here, &["journal", "info", "damaged"]);
    assert!(told.code == Some(1) && told.stderr.contains("no regular file"), "{told:?}");
}
