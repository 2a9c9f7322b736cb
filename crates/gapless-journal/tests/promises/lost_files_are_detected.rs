//! Files that another process removes, exchanges, truncates or overwrites end the journal: in the helper's check, at a
//! clean stop, and before a state is written.

use crate::support::{append, find_frame, options, segments};
use gapless_journal::{FileLoss, Flush, Journal, JournalError};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

fn opened(directory: &Path, flush: Flush) -> Journal {
    let mut options = options(directory);
    (options.flush, options.marks) = (flush, flush);
    let (mut journal, _) = Journal::open(options).unwrap();
    append(&mut journal, 20, 100, 1);
    journal
}

fn writable(path: &Path) -> File {
    File::options().write(true).open(path).unwrap()
}

fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

fn exchange_for_self_link(path: &Path) {
    remove(path);
    std::os::unix::fs::symlink(path.file_name().unwrap(), path).unwrap();
}

fn exchange_folder_for_file(path: &Path) {
    let folder = path.parent().unwrap();
    std::fs::rename(folder, folder.with_extension("elsewhere")).unwrap();
    File::create(folder).unwrap();
}

fn exchange(path: &Path) {
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).unwrap();
    std::fs::rename(copy, path).unwrap();
}

fn cut(path: &Path) {
    writable(path).set_len(0).unwrap();
}

fn truncate_by_a_byte(path: &Path) {
    let file = writable(path);
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
}

fn truncate_and_extend(path: &Path) {
    let file = writable(path);
    let length = file.metadata().unwrap().len();
    file.set_len(0).unwrap();
    file.set_len(length).unwrap();
}

fn truncate_last_frame_and_extend(path: &Path) {
    let (position, _) = find_frame(path, 20);
    let file = writable(path);
    let length = file.metadata().unwrap().len();
    file.set_len(position).unwrap();
    file.set_len(length).unwrap();
}

type Place = fn(&Path) -> PathBuf;
type Change = fn(&Path);
type Expected = fn(FileLoss) -> bool;

const GONE: Expected = |loss| loss == FileLoss::Removed;
const EXCHANGED: Expected = |loss| loss == FileLoss::Exchanged;
const CUT: Expected = |loss| matches!(loss, FileLoss::Shortened { from_bytes, to_bytes } if from_bytes > to_bytes);
const OVERWRITTEN: Expected = |loss| matches!(loss, FileLoss::Overwritten { .. });

fn assert_lost(error: JournalError, expected: &Path, is_right: Expected, change: &str) {
    let JournalError::FileLost { path, loss } = &error else { panic!("{change}: {error}") };
    assert_eq!(path, expected, "{change}");
    assert!(is_right(*loss), "{change}: {error}");
    assert!(error.to_string().starts_with(&format!("{} was ", path.display())), "{error}");
}

fn newest(directory: &Path) -> PathBuf {
    segments(directory).pop().unwrap()
}

fn history(directory: &Path) -> PathBuf {
    directory.join("history")
}

#[test]
fn every_loss_names_the_file() {
    let changes: [(&str, Place, Change, Expected); 12] = [
        ("segment removed", newest, remove, GONE),
        ("segment exchanged", newest, exchange, EXCHANGED),
        ("segment exchanged for a link", newest, exchange_for_self_link, GONE),
        ("folder exchanged for a file", newest, exchange_folder_for_file, GONE),
        ("segment cut", newest, cut, CUT),
        ("segment cut by a byte", newest, truncate_by_a_byte, CUT),
        ("segment cut and made long again", newest, truncate_and_extend, OVERWRITTEN),
        ("segment cut at its last frame", newest, truncate_last_frame_and_extend, OVERWRITTEN),
        ("history removed", history, remove, GONE),
        ("history exchanged", history, exchange, EXCHANGED),
        ("history cut", history, cut, CUT),
        ("history cut and made long again", history, truncate_and_extend, OVERWRITTEN),
    ];
    for flush in [Flush::Mapped, Flush::Write] {
        for (name, path, change, is_right) in changes {
            let directory = tempfile::tempdir().unwrap();
            let folder = directory.path().join("journal");
            let journal = opened(&folder, flush);
            journal.preparer().check_files().unwrap();
            let path = path(&folder);
            change(&path);
            assert_lost(journal.preparer().check_files().unwrap_err(), &path, is_right, name);
            for refused in [
                journal.check_usable().unwrap_err(),
                journal.preparer().run_once().unwrap_err(),
                journal.syncer().sync_and_check().unwrap_err(),
                journal.close().unwrap_err(),
            ] {
                assert_lost(refused, &path, is_right, name);
            }
        }
    }
}

#[test]
fn stop_and_state_check_files() {
    let directory = tempfile::tempdir().unwrap();
    let journal = opened(directory.path(), Flush::Write);
    let path = newest(directory.path());
    remove(&path);
    assert_lost(journal.close().unwrap_err(), &path, GONE, "at the stop");

    let directory = tempfile::tempdir().unwrap();
    let journal = opened(directory.path(), Flush::Write);
    let path = newest(directory.path());
    exchange(&path);
    assert_lost(journal.syncer().sync_and_check().unwrap_err(), &path, EXCHANGED, "before a state");
}

#[test]
fn idle_helper_checks_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let journal = opened(directory.path(), Flush::Write);
    let (preparer, looks) = (journal.preparer(), std::sync::mpsc::channel());
    let helper = std::thread::spawn(move || preparer.run_with(|| looks.0.send(()).unwrap_or(())));
    for _ in 0..2 {
        looks.1.recv().unwrap();
    }
    // Not truncated: a read of the mapping by the helper would raise a signal.
    let path = newest(directory.path());
    remove(&path);
    assert_lost(helper.join().unwrap().unwrap_err(), &path, GONE, "the helper");
    assert_lost(journal.check_usable().unwrap_err(), &path, GONE, "the writer");
}

/// A segment takes frames before it has its final name.
#[test]
fn lost_prepared_segment_is_found() {
    for (change, is_right) in [(remove as Change, GONE), (exchange, EXCHANGED)] {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = opened(directory.path(), Flush::Write);
        let begun = journal.segments_begun();
        while journal.segments_begun() == begun {
            append(&mut journal, 1, 1000, 1);
        }
        let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let prepared: Vec<PathBuf> =
            names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("prepared")).collect();
        let [path] = &prepared[..] else { panic!("one segment waits for its name: {prepared:?}") };
        change(path);
        assert_lost(journal.preparer().run_once().unwrap_err(), path, is_right, "a prepared segment");
        assert_lost(journal.check_usable().unwrap_err(), path, is_right, "the writer");
    }
}

fn refusal(journal: &Journal) -> JournalError {
    let mut preparer = journal.preparer();
    (0..100).find_map(|_| preparer.run_once().err()).expect("the loss is detected")
}

#[test]
fn sealed_segment_is_rechecked() {
    for flush in [Flush::Mapped, Flush::Write] {
        for (name, change, is_right) in
            [("removed", remove as Change, GONE), ("exchanged", exchange, EXCHANGED), ("cut", truncate_by_a_byte, CUT)]
        {
            let directory = tempfile::tempdir().unwrap();
            let mut journal = opened(directory.path(), flush);
            let (path, begun) = (newest(directory.path()), journal.segments_begun());
            while journal.segments_begun() == begun {
                append(&mut journal, 1, 1000, 1);
            }
            change(&path);
            assert_lost(refusal(&journal), &path, is_right, name);
            assert_lost(journal.check_usable().unwrap_err(), &path, is_right, name);
        }
        // Truncates frames that a check has seen, and extends the file again.
        let directory = tempfile::tempdir().unwrap();
        let mut journal = opened(directory.path(), flush);
        let (path, begun) = (newest(directory.path()), journal.segments_begun());
        journal.preparer().check_files().unwrap();
        while journal.segments_begun() == begun {
            append(&mut journal, 1, 1000, 1);
        }
        truncate_last_frame_and_extend(&path);
        assert_lost(refusal(&journal), &path, OVERWRITTEN, "extended again");
    }
}

#[test]
fn busy_writer_is_no_false_alarm() {
    for flush in [Flush::Mapped, Flush::Write] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, flush);
        options.retention.bytes_max = Some(4 * options.segment_length_bytes);
        let (mut journal, _) = Journal::open(options).unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut preparer = journal.preparer();
                scope.spawn({
                    let is_done = &is_done;
                    move || {
                        while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                            preparer.check_files().unwrap();
                            preparer.run_once().unwrap();
                        }
                    }
                });
            }
            for salt in 1..=40 {
                append(&mut journal, 400, 7, salt);
                let last = journal.last_sequence();
                journal.set_snapshot_sequence(last - 150);
                journal.truncate_after(last - 100).unwrap();
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(journal.first_sequence() > 1, "segments were deleted");
        journal.close().unwrap();
    }
}

#[test]
fn own_changes_are_no_loss() {
    for flush in [Flush::Mapped, Flush::Write] {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = opened(directory.path(), flush);
        let mut preparer = journal.preparer();
        preparer.check_files().unwrap();
        journal.truncate_after(5).unwrap();
        append(&mut journal, 3, 100, 2);
        preparer.check_files().unwrap();
        append(&mut journal, 3_000, 1_000, 2);
        preparer.check_files().unwrap();
        while preparer.run_once().unwrap() {}
        preparer.check_files().unwrap();
        for path in [newest(directory.path()), history(directory.path())] {
            std::fs::rename(&path, path.with_extension("elsewhere")).unwrap();
            std::os::unix::fs::symlink(path.with_extension("elsewhere"), &path).unwrap();
            preparer.check_files().unwrap();
            std::fs::rename(path.with_extension("elsewhere"), &path).unwrap();
        }
        File::create(directory.path().join("another")).unwrap().write_all_at(b"text", 0).unwrap();
        remove(&segments(directory.path())[0]);
        preparer.check_files().unwrap();
        journal.close().unwrap();
    }
}
