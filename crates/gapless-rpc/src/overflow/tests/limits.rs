//! At each limit and each refusal of the disk, new records are refused with the reason and no accepted record is lost.

use super::support::*;
use crate::overflow::OptionsError;
use crate::overflow::Priority;
use crate::overflow::{ElasticQueue, FullReason, OverflowError, PoppedRecord, QueueNotice, RECORD_BYTES_LIMIT};
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::wait;
use std::sync::Arc;

#[track_caller]
fn assert_holds(queue: &NoticedQueue, class: Priority, records: u64, length: usize) {
    let found = queue.drain(class);
    assert_eq!(found.len() as u64, records);
    assert!(found.iter().zip(0..).all(|(record, number)| *record == numbered(number, length)));
}

#[track_caller]
fn refused(error: &OverflowError) -> &str {
    match error {
        OverflowError::Full { reason: FullReason::Refused { reason }, .. } => reason,
        other => panic!("a refusing disk expected, found {other}"),
    }
}

#[test]
fn panicking_receiver_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut options, (told, is_told)) = (tiny(directory.path()), std::sync::mpsc::channel());
    options.notice = Some(Arc::new(move |notice| {
        let _unheard = told.send(notice);
        panic!("as a receiver does here");
    }));
    let queue = NoticedQueue { queue: ElasticQueue::new(options).unwrap(), notices: is_told };
    let (pushed, _) = queue.fill(Priority::High, 200);
    assert_holds(&queue, Priority::High, pushed, 200);
}

#[test]
fn panicking_receiver_spoils_no_pop() {
    let here = std::thread::current().id();
    wait::turn_until("the consumer gives the notice", || {
        let directory = tempfile::tempdir().unwrap();
        let (mut options, (told, is_told)) = (tiny(directory.path()), std::sync::mpsc::channel());
        options.disk_bytes_max = 20_000;
        let (by, was_by) = std::sync::mpsc::channel();
        options.notice = Some(Arc::new(move |notice| {
            let _unheard = (told.send(notice), by.send(std::thread::current().id()));
            panic!("as a receiver does here");
        }));
        let queue = NoticedQueue { queue: ElasticQueue::new(options).unwrap(), notices: is_told };
        let (pushed, _) = queue.fill(Priority::High, 200);
        assert_holds(&queue, Priority::High, pushed, 200);
        was_by.try_iter().any(|thread| thread == here)
    });
}

#[test]
fn disk_limit_refuses_and_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny(directory.path());
    options.disk_bytes_max = 100_000;
    let queue = NoticedQueue::new(options);
    let (pushed, error) = queue.fill(Priority::High, 200);
    let text = error.to_string();
    assert!(text.contains("tiny is full") && text.contains("limit of 100000 bytes on disk"), "{text}");
    let counters = queue.queue.counters();
    assert!(counters.disk_bytes <= 100_000 && counters.disk_bytes > 90_000, "{counters:?}");
    assert!(counters.memory_bytes <= 4096 + 8192, "{counters:?}");
    let mut record = Vec::new();
    let mut popped = 0;
    loop {
        let is_told = queue.notices.try_recv() == Ok(QueueNotice::Room);
        if is_told && queue.queue.push(Priority::High, &numbered(pushed, 200)).is_ok() {
            break;
        }
        match queue.queue.pop(Priority::High, &mut record).unwrap() {
            PoppedRecord::Record(number) => {
                assert_eq!(number, popped);
                popped += 1;
            }
            PoppedRecord::Later => {}
            PoppedRecord::Empty => panic!("no notice of room was sent"),
        }
    }
    assert!(popped < pushed, "there is room long before the end");
    let rest = queue.drain(Priority::High);
    assert!(rest.iter().zip(popped..=pushed).all(|(record, number)| *record == numbered(number, 200)));
    assert_eq!(rest.len() as u64, pushed + 1 - popped);
}

#[test]
fn memory_tier_is_limit_without_disk() {
    let mut options = tiny("/nowhere/at/all".as_ref());
    options.disk_bytes_max = 0;
    options.memory_records_max = 7;
    let queue = NoticedQueue::new(options);
    let (pushed, error) = queue.fill(Priority::Low, 8);
    assert_eq!(pushed, 7);
    assert!(matches!(error, OverflowError::Full { reason: FullReason::DiskLimit { disk_bytes_max: 0 }, .. }));
    assert_holds(&queue, Priority::Low, 7, 8);
    let (pushed, _) = queue.fill(Priority::High, 1000);
    assert_eq!(pushed, 4 - 1, "4096 bytes hold three with their headers");
}

#[test]
fn too_long_record_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let queue = ElasticQueue::new(tiny(directory.path())).unwrap();
    let error = queue.push(Priority::Normal, &[0; 4001]).unwrap_err();
    assert!(matches!(error, OverflowError::TooLong { length_bytes: 4001, limit_bytes: 4000, .. }), "{error}");
    queue.push(Priority::Normal, &[0; 4000]).unwrap();
}

#[test]
fn options_out_of_range_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let named = |change: &dyn Fn(&mut crate::overflow::ElasticQueueOptions)| {
        let mut options = tiny(directory.path());
        change(&mut options);
        match ElasticQueue::new(options) {
            Err(OptionsError::Option { option, .. }) => option,
            other => panic!("a refused option expected, found {other:?}"),
        }
    };
    assert_eq!(named(&|options| options.memory_bytes_max = 4095), "memory_bytes_max");
    assert_eq!(named(&|options| options.memory_records_max = 0), "memory_records_max");
    assert_eq!(named(&|options| options.record_bytes_max = RECORD_BYTES_LIMIT + 1), "record_bytes_max");
    assert_eq!(named(&|options| options.burst_bytes_max = 4067), "burst_bytes_max");
    assert_eq!(named(&|options| options.name = "a\0b".to_owned()), "name");
    assert_eq!(named(&|options| options.directory = "/proc/self/comm".into()), "directory");
    let error = ElasticQueue::new(tiny("/nowhere/at/all".as_ref())).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[test]
fn hanging_disk_blocks_no_caller() {
    let directory = tempfile::tempdir().unwrap();
    let told = Arc::new(ScriptedDisk::default());
    let mut options = tiny(directory.path());
    options.disk = Some(told.clone());
    let queue = NoticedQueue::new(options);
    told.tell(DiskBehaviour::Hang);
    let mut pushed = 0;
    let error = loop {
        match queue.queue.push(Priority::Normal, &numbered(pushed, 300)) {
            Ok(_) => pushed += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, OverflowError::Full { reason: FullReason::Lagging, .. }), "{error}");
    assert!(pushed > 30, "tier and burst are full: {pushed}");
    wait::until("a block hangs", || queue.queue.counters().records_on_disk > 0);
    let other = NoticedQueue::new(tiny(directory.path()));
    for number in 0..200 {
        while other.queue.push(Priority::Normal, &numbered(number, 300)).is_err() {
            other.wait_for(QueueNotice::Room);
        }
    }
    assert_holds(&other, Priority::Normal, 200, 300);
    let (mut record, mut popped) = (Vec::new(), 0);
    while let PoppedRecord::Record(number) = queue.queue.pop(Priority::Normal, &mut record).unwrap() {
        assert_eq!((number, &record), (popped, &numbered(popped, 300)));
        popped += 1;
    }
    assert_eq!(queue.queue.pop(Priority::Normal, &mut record).unwrap(), PoppedRecord::Later);
    told.tell(DiskBehaviour::Work);
    queue.wait_for(QueueNotice::Readable(Priority::Normal));
    let rest = queue.drain(Priority::Normal);
    assert!(rest.iter().zip(popped..).all(|(record, number)| *record == numbered(number, 300)));
    assert_eq!(rest.len() as u64, pushed - popped);
}

#[test]
fn failing_disk_is_retried() {
    let directory = tempfile::tempdir().unwrap();
    let told = Arc::new(ScriptedDisk::default());
    let mut options = tiny(directory.path());
    options.disk = Some(told.clone());
    let queue = NoticedQueue::new(options);
    told.tell(DiskBehaviour::Fail);
    let (pushed, error) = queue.fill(Priority::Urgent, 100);
    let reason = refused(&error);
    assert!(reason.contains("told to fail") && reason.contains(directory.path().to_str().unwrap()), "{reason}");
    assert_eq!(queue.queue.counters().spilled_records, 0);
    told.tell(DiskBehaviour::Work);
    wait::until("the disk takes records again", || queue.queue.counters().spilled_records > 0);
    let more = 500;
    for number in pushed..pushed + more {
        while queue.queue.push(Priority::Urgent, &numbered(number, 100)).is_err() {
            queue.wait_for(QueueNotice::Room);
        }
    }
    assert_holds(&queue, Priority::Urgent, pushed + more, 100);
}

#[test]
fn full_disk_recovers_without_loss() {
    let Some(disk) = SmallDisk::new(256) else { return };
    let mut options = tiny(&disk.path);
    options.disk_bytes_max = 1 << 30;
    let queue = NoticedQueue::new(options);
    let (pushed, error) = queue.fill(Priority::Normal, 500);
    assert!(refused(&error).contains("No space left on device"), "{error}");
    assert!(queue.queue.counters().disk_bytes > 200 << 10, "{:?}", queue.queue.counters());
    disk.remount("size=1m");
    let spilled = queue.queue.counters().spilled_records;
    wait::until("the disk takes records again", || queue.queue.counters().spilled_records > spilled);
    let more = 100;
    for number in pushed..pushed + more {
        while queue.queue.push(Priority::Normal, &numbered(number, 500)).is_err() {
            queue.wait_for(QueueNotice::Room);
        }
    }
    assert_holds(&queue, Priority::Normal, pushed + more, 500);
}

#[test]
fn missing_directory_refuses() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("spill");
    std::fs::create_dir(&directory).unwrap();
    let queue = NoticedQueue::new(tiny(&directory));
    std::fs::remove_dir(&directory).unwrap();
    let (pushed, error) = queue.fill(Priority::Low, 64);
    assert!(refused(&error).contains(directory.to_str().unwrap()), "{error}");
    std::fs::create_dir(&directory).unwrap();
    wait::until("records go to disk", || queue.queue.counters().spilled_records > 0);
    std::fs::remove_dir(&directory).unwrap();
    assert_holds(&queue, Priority::Low, pushed, 64);
}
