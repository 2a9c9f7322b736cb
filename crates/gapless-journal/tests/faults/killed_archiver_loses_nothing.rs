//! No frame is lost or duplicated at any named crash point, and a concurrent reader sees every frame.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::{self, append, assert_holds};
use gapless_agent::fault::ARCHIVE_CRASH_POINTS;
use gapless_journal::{ArchiveFormat, ArchiveOptions, Journal, JournalEnvironment, JournalOptions, archive};
use gapless_testkit::scenarios::Module;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const FRAMES: u64 = 1500;

pub fn module() -> Module {
    let module = Module::new(module_path!());
    if cfg!(debug_assertions) { module.scenario("kills_at_every_point", kills_at_every_point) } else { module }
}

const ARCHIVER: &str = "killed_archiver_loses_nothing::archiver";

pub fn run_as_archiver_if_requested() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, journal, place, form] = &arguments[..]
        && role == ARCHIVER
    {
        run(
            Path::new(journal),
            Path::new(place),
            if form == "lz4" { ArchiveFormat::Lz4 } else { ArchiveFormat::Plain },
        );
        std::process::exit(3);
    }
}

fn options(directory: &Path) -> JournalOptions {
    JournalOptions { environment: JournalEnvironment::default(), ..support::options(directory) }
}

fn run(journal: &Path, place: &Path, form: ArchiveFormat) {
    let options = ArchiveOptions { place: place.to_owned(), form, before_sequence: None };
    archive(journal, &options, |_| ()).unwrap();
}

fn files(directory: &Path, ending: &str) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).count()
}

fn kills_at_every_point() {
    for point in ARCHIVE_CRASH_POINTS {
        let mut hits = 0;
        for (form, word, ending) in [(ArchiveFormat::Plain, "plain", ".segment"), (ArchiveFormat::Lz4, "lz4", ".lz4")] {
            for pass in [1, 3] {
                let directory = tempfile::tempdir().unwrap();
                let (journal, place) = (directory.path().join("journal"), directory.path().join("archive"));
                let (mut writer, _) = Journal::open(options(&journal)).unwrap();
                append(&mut writer, FRAMES, 10, 0);
                writer.close().unwrap();
                let segments = support::segments(&journal).len();
                let mut archiver = Command::new(std::env::current_exe().unwrap());
                archiver.arg(ARCHIVER).args([&journal, &place]).arg(word);
                let killed = archiver.env("GAPLESS_CRASH_POINT", format!("{point}:{pass}")).output().unwrap();
                assert_eq!(killed.status.signal(), Some(9), "{point}: {killed:?}");
                hits += 1;
                assert_holds(&journal, JournalEnvironment::default(), 1, FRAMES, 0);
                let (mut writer, report) = Journal::open(options(&journal)).unwrap();
                assert_eq!((report.first_sequence, report.last_sequence), (1, FRAMES), "{point}");
                append(&mut writer, 10, 10, 0);
                writer.close().unwrap();
                run(&journal, &place, form);
                assert_holds(&journal, JournalEnvironment::default(), 1, FRAMES + 10, 0);
                assert_eq!(files(&journal, ".archived"), segments - 1, "{point}");
                assert_eq!(files(&place, ending), segments - 1, "{point}");
                assert!(files(&journal, ".segment") <= 2, "{point}: at most the newest and the prepared segment stay");
            }
        }
        println!("{point}: {hits} hits, nothing lost, nothing doubled");
        assert!(hits > 0);
    }
}
