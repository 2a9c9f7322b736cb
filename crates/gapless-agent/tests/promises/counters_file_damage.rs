use gapless_agent::{Counter, Counters, CountersReader, CountersWriter, Error, WrittenCounters};
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

struct CountersSetup {
    directory: TempDir,
    counters: Counters,
    counter: Counter,
    writer: Arc<CountersWriter>,
    written: WrittenCounters,
}

impl CountersSetup {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let counters = Counters::in_memory(4).unwrap();
        let (counter, writer) = (counters.add("calls").unwrap(), CountersWriter::new(|| {}));
        counters.add("replies").unwrap().set(7);
        let written = writer.write_to(&counters, directory.path().join("counters")).unwrap();
        Self { directory, counters, counter, writer, written }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("counters")
    }

    fn count(&self) {
        self.counter.add(1);
        assert!(self.writer.write());
        assert!(!self.writer.write(), "nothing has changed since");
    }

    #[track_caller]
    fn check(&self) {
        assert_eq!(read(&self.path()).unwrap(), self.counters.values());
        let files = std::fs::read_dir(self.directory.path()).unwrap().count();
        assert_eq!(files, 1, "no draft is left");
    }
}

fn read(path: &Path) -> Result<Vec<(String, u64)>, Error> {
    CountersReader::open(path)?.read()
}

#[test]
fn next_change_repairs_the_file() {
    let counted = CountersSetup::new();
    counted.check();
    let length = File::open(counted.path()).unwrap().metadata().unwrap().len();
    for new_length in [0, 1, 128, length - 1, length + 1, 2 * length] {
        File::options().write(true).open(counted.path()).unwrap().set_len(new_length).unwrap();
        assert!(matches!(read(&counted.path()), Err(Error::CountersDamaged { .. })), "{new_length} bytes");
        counted.count();
        counted.check();
    }
    for _ in 0..3 {
        std::fs::remove_file(counted.path()).unwrap();
        counted.count();
        counted.check();
        assert!(
            matches!(Counters::create(counted.path(), 4), Err(Error::CountersInUse { .. })),
            "the new one is locked, too"
        );
    }
    counted.counters.add("more").unwrap().set(u64::MAX);
    counted.count();
    counted.check();
}

#[test]
fn file_in_its_place_is_kept() {
    let counted = CountersSetup::new();
    let (path, elsewhere) = (counted.path(), counted.directory.path().join("elsewhere"));
    for place in ["directory", "pipe", "file", "link"] {
        std::fs::rename(&path, &elsewhere).unwrap();
        match place {
            "directory" => std::fs::create_dir(&path).unwrap(),
            "pipe" => rustix::fs::mknodat(
                rustix::fs::CWD,
                &path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )
            .unwrap(),
            "file" => std::fs::write(&path, "precious").unwrap(),
            _ => symlink(&elsewhere, &path).unwrap(),
        }
        counted.count();
        counted.count();
        match place {
            "directory" => std::fs::remove_dir(&path).unwrap(),
            "file" => assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious"),
            _ => assert!(!std::fs::symlink_metadata(&path).unwrap().is_file(), "{place}"),
        }
        std::fs::rename(&elsewhere, &path).unwrap_or_else(|error| panic!("{place}: {error}"));
        counted.count();
        counted.check();
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    let CountersSetup { written, directory, .. } = counted;
    drop(written);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    drop(directory);
}

#[test]
fn missing_directory_is_harmless() {
    let counted = CountersSetup::new();
    std::fs::remove_dir_all(counted.directory.path()).unwrap();
    counted.count();
    assert!(!counted.directory.path().exists());
    std::fs::create_dir(counted.directory.path()).unwrap();
    counted.count();
    counted.check();
}

#[test]
fn open_file_gets_the_last_counts() {
    let counted = CountersSetup::new();
    let reader = CountersReader::open(counted.path()).unwrap();
    counted.counter.set(u64::MAX);
    drop(counted.written);
    assert_eq!(reader.read().unwrap(), counted.counters.values());
    assert!(reader.is_removed());
    assert!(!counted.writer.write(), "the file is gone");
    assert_eq!(std::fs::read_dir(counted.directory.path()).unwrap().count(), 0);
}
