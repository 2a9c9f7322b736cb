//! Unreadable records are reported as lost, with their place and numbers.

use super::support::*;
use crate::overflow::OverflowError;
use crate::overflow::Priority;
use gapless_testkit::random::Random;
use gapless_testkit::wait;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

const CLASS: Priority = Priority::High;
const LENGTH: usize = 100;
/// One record and a header of 64 bytes: two do not fit the 256 bytes of the smallest tier's block.
const BLOCK_LENGTH: usize = 168;

fn filled(directory: &Path, records: u64) -> (NoticedQueue, Vec<File>) {
    let mut options = tiny(directory);
    options.disk_bytes_max = 64 << 10;
    let queue = NoticedQueue::new(options);
    for number in 0..records {
        while queue.queue.push(CLASS, &numbered(number, LENGTH)).is_err() {
            queue.wait_for(crate::overflow::QueueNotice::Room);
        }
    }
    wait::until("memory is within its tier", || queue.queue.counters().memory_bytes <= 4096);
    let files = open_files(directory).into_iter();
    let files = files.map(|path| OpenOptions::new().read(true).write(true).open(path).unwrap()).collect();
    (queue, files)
}

fn drained(queue: &NoticedQueue, records: u64) -> (u64, Vec<String>) {
    let (mut expected, mut lost, mut errors, mut record) = (0, 0, Vec::new(), Vec::new());
    loop {
        match queue.pop(CLASS, &mut record) {
            Ok(None) => break,
            Ok(Some(number)) => {
                assert_eq!((number, &record), (expected, &numbered(expected, LENGTH)));
                expected += 1;
            }
            Err(error) => {
                let OverflowError::Lost { first_number, records, .. } = error else { panic!("{error}") };
                assert_eq!(first_number, expected);
                expected += records;
                lost += records;
                errors.push(error.to_string());
            }
        }
    }
    assert_eq!(expected, records, "no record is missing without an error");
    assert_eq!(queue.queue.counters().lost_records, lost);
    assert_eq!(queue.queue.counters().records_on_disk + queue.queue.counters().records_in_memory, 0);
    (lost, errors)
}

#[test]
fn flipped_bit_loses_one_block() {
    let mut random = Random::seeded();
    for _round in 0..30 {
        let directory = tempfile::tempdir().unwrap();
        let (queue, files) = filled(directory.path(), 300);
        let file = &files[random.below(files.len() as u64) as usize];
        let at = random.below(file.metadata().unwrap().len());
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << random.below(8)], at).unwrap();
        let (lost, errors) = drained(&queue, 300);
        assert!(lost == 1 && errors.len() == 1, "{lost} lost: {errors:?}");
        assert!(errors[0].contains("damaged at byte") && errors[0].contains("backlog tiny"), "{}", errors[0]);
        assert!(errors[0].contains(directory.path().to_str().unwrap()), "{}", errors[0]);
    }
}

#[test]
fn misplaced_block_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let (queue, files) = filled(directory.path(), 300);
    // Valid checksums, but the second block stands in the place of the third.
    let mut bytes = [0; BLOCK_LENGTH];
    files[0].read_exact_at(&mut bytes, BLOCK_LENGTH as u64).unwrap();
    files[0].write_all_at(&bytes, 2 * BLOCK_LENGTH as u64).unwrap();
    let (lost, errors) = drained(&queue, 300);
    assert!(lost == 1 && errors[0].contains(" expected, "), "{errors:?}");
}

#[test]
fn truncated_files_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let (queue, files) = filled(directory.path(), 300);
    assert!(files.len() > 1, "several segments");
    for file in &files {
        file.set_len(0).unwrap();
    }
    let (lost, errors) = drained(&queue, 300);
    assert!(lost > 200, "{lost}");
    assert!(errors.iter().all(|error| error.contains("the file ends after 0 bytes")), "{errors:?}");
    queue.queue.push(CLASS, b"after").unwrap();
    assert_eq!(queue.drain(CLASS), [b"after"]);
}
