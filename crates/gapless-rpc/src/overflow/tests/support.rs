//! Helpers shared by the tests of the queue.

use crate::overflow::Priority;
use crate::overflow::{ElasticQueue, ElasticQueueOptions, OverflowError, PoppedRecord, QueueNotice};
use gapless_journal::{Disk, DiskOperation};
use gapless_testkit::wait::PATIENCE;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};

pub(super) const CLASSES: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Normal, Priority::Low];

/// The smallest tier, so that nearly everything passes the disk.
pub(super) fn tiny(directory: &Path) -> ElasticQueueOptions {
    let mut options = ElasticQueueOptions::new("tiny", directory);
    options.memory_bytes_max = 4096;
    options.burst_bytes_max = 8192;
    options.record_bytes_max = 4000;
    options.disk_bytes_max = 1 << 20;
    options
}

pub(super) struct NoticedQueue {
    pub(super) queue: ElasticQueue,
    pub(super) notices: Receiver<QueueNotice>,
}

impl NoticedQueue {
    pub(super) fn new(mut options: ElasticQueueOptions) -> Self {
        let (give, notices) = channel();
        options.notice = Some(Arc::new(move |notice| {
            let _nobody_listens = give.send(notice);
        }));
        Self { queue: ElasticQueue::new(options).unwrap(), notices }
    }

    #[track_caller]
    pub(super) fn wait_for(&self, expected: QueueNotice) {
        while self.notices.recv_timeout(PATIENCE).expect("a notice comes") != expected {}
    }

    #[track_caller]
    pub(super) fn pop(&self, class: Priority, record: &mut Vec<u8>) -> Result<Option<u64>, OverflowError> {
        loop {
            match self.queue.pop(class, record)? {
                PoppedRecord::Record(number) => return Ok(Some(number)),
                PoppedRecord::Empty => return Ok(None),
                PoppedRecord::Later => self.wait_for(QueueNotice::Readable(class)),
            }
        }
    }

    #[track_caller]
    pub(super) fn drain(&self, class: Priority) -> Vec<Vec<u8>> {
        let (mut all, mut record) = (Vec::new(), Vec::new());
        while self.pop(class, &mut record).unwrap().is_some() {
            all.push(record.clone());
        }
        all
    }

    #[track_caller]
    pub(super) fn fill(&self, class: Priority, length: usize) -> (u64, OverflowError) {
        let mut pushed = 0;
        loop {
            match self.queue.push(class, &numbered(pushed, length)) {
                Ok(number) => assert_eq!(number, pushed),
                Err(OverflowError::Full { reason: super::super::FullReason::Lagging, .. }) => {
                    self.wait_for(QueueNotice::Room);
                    continue;
                }
                Err(error) => return (pushed, error),
            }
            pushed += 1;
        }
    }
}

pub(super) fn numbered(number: u64, length: usize) -> Vec<u8> {
    let mut record = vec![number as u8; length];
    record[..8].copy_from_slice(&number.to_le_bytes());
    record
}

#[derive(Debug, Default)]
pub(super) struct ScriptedDisk {
    told: Mutex<DiskBehaviour>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DiskBehaviour {
    #[default]
    Work,
    Fail,
    Hang,
}

impl ScriptedDisk {
    pub(super) fn tell(&self, told: DiskBehaviour) {
        *self.told.lock().unwrap() = told;
        self.changed.notify_all();
    }
}

impl Disk for ScriptedDisk {
    fn check(&self, _operation: DiskOperation) -> io::Result<()> {
        let told = self.changed.wait_while(self.told.lock().unwrap(), |told| *told == DiskBehaviour::Hang).unwrap();
        if *told == DiskBehaviour::Fail { Err(io::Error::other("the disk was told to fail")) } else { Ok(()) }
    }
}

pub(super) fn open_files(directory: &Path) -> Vec<PathBuf> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = descriptors.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| std::fs::read_link(path).is_ok_and(|target| target.starts_with(directory))).collect()
}

pub(super) fn has_thread(name: &str) -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok());
    names.into_iter().any(|found| found.trim_end() == name)
}
