//! A dropped queue leaves neither file nor thread, in any state.

use super::support::*;
use crate::overflow::Priority;
use crate::overflow::{ElasticQueueOptions, QueueNotice};
use gapless_testkit::wait;
use std::path::Path;
use std::sync::Arc;

fn ends(name: &str, prepare: impl FnOnce(&mut ElasticQueueOptions), reach: impl FnOnce(&NoticedQueue)) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = tiny(directory.path());
    options.name = name.to_owned();
    prepare(&mut options);
    let queue = NoticedQueue::new(options);
    reach(&queue);
    assert_no_names(directory.path());
    drop(queue);
    assert_no_names(directory.path());
    assert_eq!(open_files(directory.path()), <[std::path::PathBuf; 0]>::default());
    let thread = format!("spill-{name}");
    wait::until("the thread has ended", || !has_thread(&thread));
}

#[track_caller]
fn assert_no_names(directory: &Path) {
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "no name ever stands in the directory");
}

fn push(queue: &NoticedQueue, records: u64) {
    for number in 0..records {
        let class = CLASSES[number as usize % 4];
        while queue.queue.push(class, &numbered(number, 100)).is_err() {
            queue.wait_for(QueueNotice::Room);
        }
    }
}

#[test]
fn dropped_in_memory() {
    ends("empty", |_| (), |_| ());
    ends("memory", |_| (), |queue| push(queue, 10));
}

#[test]
fn dropped_while_spilling() {
    for _round in 0..20 {
        ends("spilling", |_| (), |queue| push(queue, 1000));
    }
}

#[test]
fn dropped_while_draining() {
    for popped in [1, 100, 400, 1000] {
        ends(
            "drains",
            |_| (),
            |queue| {
                push(queue, 1000);
                let mut record = Vec::new();
                for number in 0..popped {
                    queue.pop(CLASSES[number % 4], &mut record).unwrap();
                }
                assert!(has_thread("spill-drains"));
            },
        );
    }
}

#[test]
fn dropped_while_disk_refuses() {
    let told = Arc::new(ScriptedDisk::default());
    told.tell(DiskBehaviour::Fail);
    ends(
        "refused",
        |options| options.disk = Some(told),
        |queue| {
            queue.fill(Priority::Low, 100);
        },
    );
}

#[test]
fn dropped_at_disk_limit() {
    ends(
        "limit",
        |options| options.disk_bytes_max = 20_000,
        |queue| {
            queue.fill(Priority::Low, 100);
        },
    );
}
