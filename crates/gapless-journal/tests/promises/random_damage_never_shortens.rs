//! Random damage: never a panic, a log shorter than the good mark vouches for, or a frame that was not appended.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use std::path::Path;

use crate::support::*;
use gapless_journal::{Journal, JournalReader, descriptor as d, inspect};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Damage {
    Flip { bit: u8 },
    Overwrite { bytes: Vec<u8> },
    ZeroPage,
    Cut,
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (0u8..8).prop_map(|bit| Damage::Flip { bit }),
        2 => proptest::collection::vec(any::<u8>(), 1..64).prop_map(|bytes| Damage::Overwrite { bytes }),
        1 => Just(Damage::ZeroPage),
        1 => Just(Damage::Cut),
    ]
}

fn make(damage: &Damage, path: &Path, place: f64) {
    let length = std::fs::metadata(path).unwrap().len();
    let position = ((length - 1) as f64 * place) as u64;
    match damage {
        Damage::Flip { bit } => flip(path, position, 1 << bit),
        Damage::Overwrite { bytes } => {
            overwrite(path, position, &bytes[..bytes.len().min((length - position) as usize)])
        }
        Damage::ZeroPage => overwrite(path, position / 4096 * 4096, &[0; 4096]),
        Damage::Cut => std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(position).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: gapless_testkit::random::rounds(150, 15) as u32, ..ProptestConfig::default() })]

    #[test]
    fn vouched_frames_exist_or_error(
        counts in (1u64..500, 0u64..500, 0u64..30),
        damage in damage(),
        place in (0.0f64..1.0, prop_oneof![0.0f64..1.0, 0.0f64..0.15]),
        is_other_boot in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (synced, committed, uncommitted) = counts;
        let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
        append(&mut journal, synced, 10, 0);
        prop_assert_eq!(journal.syncer().sync().unwrap(), synced);
        append(&mut journal, committed, 10, 0);
        if uncommitted > 0 {
            let first = journal.last_sequence() + 1;
            journal.append(&batch(first, uncommitted, 0), first, first + uncommitted - 1).unwrap();
        }
        drop(journal);
        let paths = segments(directory.path());
        make(&damage, &paths[(paths.len() as f64 * place.0) as usize], place.1);

        let must_hold = if is_other_boot { synced } else { synced + committed };
        let environment = boot(if is_other_boot { 2 } else { 1 });
        let check = |frames: &[(u64, Vec<u8>)]| {
            prop_assert!(frames.len() as u64 >= must_hold, "{} frames, {must_hold} were vouched for", frames.len());
            for ((sequence, found), expected) in frames.iter().zip(1..) {
                prop_assert_eq!(*sequence, expected);
                prop_assert_eq!(found, &payload(expected, 0));
            }
            Ok(())
        };
        // First without the lock, because opening may change the files.
        if let Ok(frames) = read_all(directory.path(), environment.clone(), 1) {
            check(&frames)?;
        }
        let verified = inspect::verify_in(directory.path(), environment.clone());
        if let Ok(report) = &verified && report.problems.is_empty() {
            prop_assert!(report.last_sequence >= must_hold);
        }
        let mut options = options(directory.path());
        options.environment = environment.clone();
        if let Ok((mut journal, report)) = Journal::open(options.clone())
            && let Ok(frames) = read_all(directory.path(), environment.clone(), 1)
        {
            check(&frames)?;
            prop_assert_eq!(frames.len() as u64, report.last_sequence);
            let last = report.last_sequence;
            append(&mut journal, 50, 10, 0);
            drop(journal);
            let (_journal, report) = Journal::open(options).unwrap();
            prop_assert_eq!((report.last_sequence, report.removed_tail.is_none()), (last + 50, true));
        }
    }

    #[test]
    fn random_bytes_are_harmless(
        files in proptest::collection::vec((any::<bool>(), 0u64..5, proptest::collection::vec(any::<u8>(), 0..9000)), 1..4),
    ) {
        let directory = tempfile::tempdir().unwrap();
        for (is_prepared, number, bytes) in &files {
            let name = if *is_prepared { d::prepared_name(*number) } else { d::segment_name(*number) };
            std::fs::write(directory.path().join(name), bytes).unwrap();
        }
        let has_named = files.iter().any(|(is_prepared, ..)| !is_prepared);
        prop_assert!(JournalReader::open_in(directory.path(), boot(1)).is_err());
        prop_assert_eq!(Journal::open(options(directory.path())).is_err(), has_named);
    }

    #[test]
    fn garbage_after_header_is_safe(
        first in any::<u64>(),
        marks in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 10),
        near in any::<bool>(),
        body in proptest::collection::vec(any::<u8>(), 0..12_000),
        has_same_boot in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let length = 16_384;
        let header = d::FixedHeader {
            stream_id: STREAM,
            incarnation: 1,
            number: 1,
            segment_length: length,
            frames_offset: d::frames_offset(length),
            frame_length_max: FRAME_LENGTH_MAX as u32,
        };
        let mut bytes = vec![0; length as usize];
        bytes[..128].copy_from_slice(&header.to_bytes());
        let offsets = [d::BOOT_MARK_OFFSET, d::OPENED_MARK_OFFSET, d::JOURNALED_MARK_OFFSET, d::SYNCED_MARK_OFFSET, d::FAILED_MARK_OFFSET];
        for (i, (mut a, mut b, generation)) in marks.into_iter().enumerate() {
            let offset = offsets[i / 2];
            if near {
                (a, b) = (a % 20_000, b % 1000);
            }
            if offset == d::OPENED_MARK_OFFSET {
                a = first;
            }
            if offset == d::BOOT_MARK_OFFSET && has_same_boot {
                (a, b) = (1, 0);
            }
            let slot: Vec<u8> = [a, b, generation].iter().flat_map(|word| word.to_le_bytes()).collect();
            let sum = 1 << 32 | u64::from(gapless_wire::checksum::crc32c(&slot));
            let at = offset + i % 2 * 32;
            bytes[at..at + 24].copy_from_slice(&slot);
            bytes[at + 24..at + 32].copy_from_slice(&sum.to_le_bytes());
        }
        let end = bytes.len().min(4096 + body.len());
        bytes[4096..end].copy_from_slice(&body[..end - 4096]);
        std::fs::write(directory.path().join(d::segment_name(first)), &bytes).unwrap();
        let read = read_all(directory.path(), boot(1), first);
        prop_assert!(read.map_or(0, |frames| frames.len()) == 0);
        let _verified = inspect::verify_in(directory.path(), boot(1));
        let _opened = Journal::open(options(directory.path()));
    }
}
