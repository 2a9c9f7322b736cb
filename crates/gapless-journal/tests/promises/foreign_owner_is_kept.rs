//! In a folder that another user can write, a journal follows no link and waits for no pipe, and files of root keep
//! that user as owner.

use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;

use gapless_journal::descriptor::{LOCK_NAME, prepared_name};
use gapless_journal::{
    ArchiveFormat, ArchiveOptions, Journal, JournalEnvironment, JournalOptions, JournalRestore, archive, lock_holder,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{append, assert_holds, boot, options, segments};

const OTHER: u32 = 12_345;

#[test]
fn link_or_pipe_as_lock_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, victim) = (folder.path().join("journal"), folder.path().join("victim"));
    drop(Journal::open(options(&directory)).unwrap());
    std::fs::write(&victim, "process 1 (victim)").unwrap();
    let lock = directory.join(LOCK_NAME);
    let link = || symlink(&victim, &lock);
    let pipe = || Ok(mknodat(CWD, &lock, FileType::Fifo, Mode::RWXU, 0)?);
    let wrong: [(&str, &dyn Fn() -> std::io::Result<()>); 2] = [("it is a link", &link), ("no regular file", &pipe)];
    for (reason, put) in wrong {
        std::fs::remove_file(&lock).unwrap();
        put().unwrap();
        let looked = lock_holder(&directory).unwrap_err().to_string();
        let opened = Journal::open(options(&directory)).err().unwrap().to_string();
        assert!(looked.contains(reason) && opened.contains(reason), "{looked}; {opened}");
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"process 1 (victim)");
}

#[test]
fn new_segment_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, victim) = (folder.path().join("journal"), folder.path().join("victim"));
    std::fs::write(&victim, "kept").unwrap();
    let (mut journal, _) = Journal::open(options(&directory)).unwrap();
    let names = (1..9).map(|number| directory.join(prepared_name(number))).collect::<Vec<_>>();
    for path in &names {
        // Fails for a segment that is prepared already.
        let _there = symlink(&victim, path);
    }
    append(&mut journal, 1_000, 10, 1);
    drop(journal);
    assert!(segments(&directory).len() > 2);
    assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
    for path in names.iter().filter(|path| path.is_symlink()) {
        std::fs::remove_file(path).unwrap();
    }
    assert_holds(&directory, boot(1), 1, 1_000, 1);
}

#[test]
fn root_keeps_file_ownership() {
    let folder = tempfile::tempdir().unwrap();
    let [home, copy, place] = ["home", "copy", "place"].map(|name| folder.path().join(name));
    std::fs::create_dir(&home).unwrap();
    if chown(&home, Some(OTHER), Some(OTHER)).is_err() {
        return println!("SKIPPED: only root can give files away");
    }
    let directory = home.join("journal");
    let write = |directory: &Path| {
        let options = JournalOptions { environment: JournalEnvironment::default(), ..options(directory) };
        let (mut journal, _) = Journal::open(options).unwrap();
        append(&mut journal, 1_000, 10, 1);
        journal.close().unwrap();
    };
    write(&directory);
    write(&directory);
    // Like `cp -al` by that user.
    std::fs::create_dir(&copy).unwrap();
    chown(&copy, Some(OTHER), Some(OTHER)).unwrap();
    for entry in std::fs::read_dir(&directory).unwrap().map(Result::unwrap) {
        std::fs::hard_link(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    write(&copy);
    let mut restore = JournalRestore::begin(&copy).unwrap();
    restore.apply().unwrap();
    restore.finish().unwrap();
    let into = ArchiveOptions { place: place.clone(), form: ArchiveFormat::Plain, before_sequence: None };
    assert!(!archive(&directory, &into, |_| {}).unwrap().archived.is_empty());
    let mut looked_at = 0;
    for folder in [&directory, &copy, &place] {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            looked_at += 1;
            assert_eq!(path.symlink_metadata().unwrap().uid(), OTHER, "{}", path.display());
        }
    }
    assert!(looked_at > 10 && directory.metadata().unwrap().uid() == OTHER, "{looked_at}");
}
