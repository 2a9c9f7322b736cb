//! Records leave in the order of their class, each once, whether they passed the disk or not.

use super::support::*;
use crate::overflow::Priority;
use crate::overflow::{FullReason, OverflowError, PoppedRecord, QueueNotice};
use gapless_testkit::random::{Random, printed_seed};
use gapless_testkit::wait;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn queue_equals_four_simple_queues() {
    let seed = printed_seed();
    for round in 0..gapless_testkit::random::rounds(24, 6) {
        let mut random = Random::new(seed.wrapping_add(round));
        let directory = tempfile::tempdir().unwrap();
        let mut options = tiny(directory.path());
        options.memory_records_max = random.pick(&[1, 5, 40, 1 << 20]);
        options.memory_bytes_max = random.pick(&[4096, 10_000, 70_000]);
        options.disk_bytes_max = random.pick(&[40_000, 1 << 20, 1 << 30]);
        let told = Arc::new(ScriptedDisk::default());
        options.disk = Some(told.clone());
        let length_max = random.pick(&[10, 100, 900, 4001]);
        let queue = NoticedQueue::new(options);
        let mut model = <[VecDeque<(u64, Vec<u8>)>; 4]>::default();
        let (mut record, mut refused) = (Vec::new(), 0);
        for phase in 0..30 {
            let pushes_per_mille = random.pick(&[100, 450, 550, 900]);
            told.tell(if phase % 5 == 4 { DiskBehaviour::Fail } else { DiskBehaviour::Work });
            for _step in 0..300 {
                let class = random.pick(&CLASSES);
                let expected = &mut model[class as usize];
                if random.happens(pushes_per_mille) {
                    let sent = (0..random.below(length_max)).map(|_| random.number() as u8).collect::<Vec<_>>();
                    match queue.queue.push(class, &sent) {
                        Ok(number) => expected.push_back((number, sent)),
                        Err(OverflowError::Full { .. }) => refused += 1,
                        Err(error) => panic!("round {round}: {error}"),
                    }
                } else {
                    let found = queue.pop(class, &mut record).unwrap();
                    let found = found.map(|number| (number, record.clone()));
                    assert_eq!(found, expected.pop_front(), "round {round}, phase {phase}, class {class:?}");
                }
            }
        }
        for class in CLASSES {
            let left = model[class as usize].drain(..).map(|(_, record)| record).collect::<Vec<_>>();
            assert_eq!(queue.drain(class), left, "round {round}");
        }
        let counters = queue.queue.counters();
        assert_eq!((counters.records_in_memory, counters.records_on_disk, counters.memory_bytes), (0, 0, 0));
        assert_eq!((counters.disk_bytes, counters.lost_records, counters.refused_records), (0, 0, refused));
    }
}

#[test]
fn parallel_use_is_exactly_once() {
    const PRODUCERS: u64 = 4;
    const CONSUMERS: u64 = 3;
    let records_each = gapless_testkit::random::rounds(20_000, 4_000);
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny(directory.path());
    options.disk_bytes_max = 1 << 30;
    let queue = crate::overflow::ElasticQueue::new(options).unwrap();
    let popped = AtomicU64::new(0);
    let seen = std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let queue = &queue;
            scope.spawn(move || {
                for number in 0..records_each {
                    let class = CLASSES[(number % 4) as usize];
                    let record = numbered(producer << 32 | number, 16 + (number % 500) as usize);
                    wait::turn_until("there is room", || match queue.push(class, &record) {
                        Ok(_) => true,
                        Err(OverflowError::Full { reason: FullReason::Lagging, .. }) => false,
                        Err(error) => panic!("{error}"),
                    });
                }
            });
        }
        let consumers = (0..CONSUMERS).map(|_| {
            let (queue, popped) = (&queue, &popped);
            scope.spawn(move || {
                let (mut seen, mut record) = (Vec::new(), Vec::new());
                wait::turn_until("records are on disk", || queue.counters().spilled_records > records_each / 2);
                wait::turn_until("all records came", || {
                    for class in CLASSES {
                        while let PoppedRecord::Record(at) = queue.pop(class, &mut record).unwrap() {
                            let number = u64::from_le_bytes(*record.first_chunk().unwrap());
                            assert_eq!(record, numbered(number, 16 + (number as u32 % 500) as usize));
                            seen.push((class, at, number));
                            popped.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                    popped.load(Ordering::SeqCst) == PRODUCERS * records_each
                });
                seen
            })
        });
        let consumers = consumers.collect::<Vec<_>>();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>()
    });
    for consumer in &seen {
        for class in CLASSES {
            let numbers = consumer.iter().filter(|seen| seen.0 == class).map(|seen| seen.1).collect::<Vec<_>>();
            assert!(numbers.is_sorted_by(|a, b| a < b), "class {class:?}");
        }
    }
    let mut all = seen.concat();
    all.sort_unstable();
    assert_eq!(all.len() as u64, PRODUCERS * records_each);
    for class in CLASSES {
        let of_class = all.iter().filter(|seen| seen.0 == class).collect::<Vec<_>>();
        assert!(of_class.iter().zip(0..).all(|(seen, at)| seen.1 == at), "no number of {class:?} is missing");
        for producer in 0..PRODUCERS {
            let sent = of_class.iter().map(|seen| seen.2).filter(|number| number >> 32 == producer);
            assert!(sent.is_sorted_by(|a, b| a < b), "class {class:?}, producer {producer}");
        }
    }
}

#[test]
fn records_of_16_mib_pass_the_disk() {
    const LENGTH: usize = 16 << 20;
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny(directory.path());
    options.record_bytes_max = LENGTH;
    options.burst_bytes_max = 3 * LENGTH;
    options.disk_bytes_max = 1 << 30;
    let queue = NoticedQueue::new(options);
    for number in 0..6 {
        let class = [Priority::High, Priority::Low][number as usize % 2];
        let record = numbered(number, LENGTH - number as usize);
        while queue.queue.push(class, &record).is_err() {
            queue.wait_for(QueueNotice::Room);
        }
    }
    wait::until("what is not in front is on disk", || queue.queue.counters().records_on_disk == 4);
    for (class, first) in [(Priority::High, 0), (Priority::Low, 1)] {
        for (record, number) in queue.drain(class).into_iter().zip([first, first + 2, first + 4]) {
            assert!(record == numbered(number, LENGTH - number as usize), "record {number}");
        }
    }
    assert_eq!(queue.queue.counters().spilled_records, 4);
}

#[test]
fn small_queue_has_no_thread_or_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny(directory.path());
    options.name = "calm".to_owned();
    let queue = NoticedQueue::new(options);
    for number in 0..10_000 {
        queue.queue.push(Priority::Normal, &numbered(number, 100)).unwrap();
        queue.queue.push(Priority::Normal, &numbered(number, 90)).unwrap();
        let mut record = Vec::new();
        assert_eq!(queue.pop(Priority::Normal, &mut record).unwrap(), Some(number * 2));
        assert_eq!(queue.pop(Priority::Normal, &mut record).unwrap(), Some(number * 2 + 1));
    }
    assert!(!has_thread("spill-calm"));
    assert!(open_files(directory.path()).is_empty());
}
