//! The sequencer ends with the file's name and its own exit code.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use crate::stream_process::{configured, stream_command};
use gapless_testkit::process::Process;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn longest(directory: &Path) -> PathBuf {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let (_, path) = files
        .filter(|entry| !entry.file_name().to_str().unwrap().starts_with("prepared"))
        .map(|entry| (entry.metadata().unwrap().len(), entry.path()))
        .max()
        .unwrap();
    path
}

#[test]
fn truncated_file_ends_the_process() {
    let is_named = |cut: &str| {
        let directory = configured("shared-memory");
        let here = directory.path();
        let mut command = stream_command(here, "sequencer");
        let mut sequencer = Process::start(command.stderr(Stdio::piped()));
        assert!(sequencer.line().starts_with("stream "));
        let mut command = stream_command(here, "publish --timeout 3");
        let mut publisher = Process::start(command.stdin(Stdio::piped()).stderr(Stdio::piped()));
        let mut input = publisher.input();
        input.write_all(b"one\n").unwrap();
        let mut tail = Process::start(&mut stream_command(here, "tail --raw"));
        assert_eq!(tail.line(), "one");
        let path = here.join("stream").join(cut);
        let path = if path.is_dir() { longest(&path) } else { path };
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        input.write_all(b"two\n").unwrap();
        let said = sequencer.errors();
        assert_eq!(sequencer.wait().code(), Some(74), "{cut}: {said}");
        let name = path.file_name().unwrap().to_str().unwrap();
        // Noticed by the kernel at the next store, or by the sequencer's earlier check.
        let is_told = said.contains("was made shorter") || said.contains("was cut from");
        assert!(said.contains(name) && is_told, "{cut}: {said}");
        drop(input);
        let said = publisher.errors();
        assert!(said.contains("note: waiting for 1 s: no sequencer answers at "), "{cut}: {said}");
    };
    std::thread::scope(|scope| {
        for cut in ["journal", "counters"] {
            scope.spawn(move || is_named(cut));
        }
    });
}

type Damage = fn(&Path);

/// Nothing touches the mapping, so the sequencer must check by itself.
#[test]
fn idle_sequencer_checks_its_journal() {
    let damages: [(&str, Damage, &str); 4] = [
        ("cut", |path| writable(path).set_len(0).unwrap(), "was cut from 4194304 to 0 bytes"),
        ("cut and made long again", truncate_and_extend, "was written over"),
        ("removed", |path| std::fs::remove_file(path).unwrap(), "was removed or moved"),
        ("exchanged", replace_by_copy, "was exchanged for another file"),
    ];
    let is_noticed = |settings: &str, (name, deed, expected): (&str, Damage, &str)| {
        let directory = configured("shared-memory");
        let here = directory.path();
        let (table, _) = settings.split_once('\n').unwrap();
        let configuration = here.join("stream.toml");
        let text = std::fs::read_to_string(&configuration).unwrap();
        std::fs::write(&configuration, text.replace(&format!("{table}\n"), settings)).unwrap();
        let mut command = stream_command(here, "sequencer");
        let mut sequencer = Process::start(command.stderr(Stdio::piped()));
        assert!(sequencer.line().starts_with("stream "));
        let mut command = stream_command(here, "publish");
        let mut publisher = Process::start(command.stdin(Stdio::piped()));
        publisher.input().write_all(b"one\n").unwrap();
        assert!(publisher.wait().success(), "{name}");
        let path = longest(&here.join("stream/journal"));
        deed(&path);
        let said = sequencer.errors();
        assert_eq!(sequencer.wait().code(), Some(74), "{name}: {said}");
        let path = path.file_name().unwrap().to_str().unwrap();
        assert!(said.contains(path) && said.contains(expected), "{name}: {said}");
        let states = std::fs::read_dir(here.join("stream/sequencer")).unwrap().count();
        assert_eq!(states, 0, "{name}: a state stands above a journal that is gone");
    };
    for settings in ["[stream]\ntier = \"sync\"\n", "[journal]\nflush = \"write\"\n"] {
        std::thread::scope(|scope| {
            for deed in damages {
                scope.spawn(move || is_noticed(settings, deed));
            }
        });
    }
}

fn writable(path: &Path) -> std::fs::File {
    std::fs::File::options().write(true).open(path).unwrap()
}

fn truncate_and_extend(path: &Path) {
    let file = writable(path);
    let length = file.metadata().unwrap().len();
    file.set_len(0).unwrap();
    file.set_len(length).unwrap();
}

fn replace_by_copy(path: &Path) {
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).unwrap();
    std::fs::rename(copy, path).unwrap();
}

#[test]
fn idle_sequencer_checks_its_counters() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let mut command = stream_command(here, "sequencer");
    let mut sequencer = Process::start(command.stderr(Stdio::piped()));
    assert!(sequencer.line().starts_with("stream "));
    writable(&here.join("stream/counters")).set_len(0).unwrap();
    let said = sequencer.errors();
    assert_eq!(sequencer.wait().code(), Some(74), "{said}");
    assert!(said.contains("stream/counters: nothing is left at byte"), "{said}");
}

#[test]
fn idle_member_checks_its_files() {
    let damages: [(&str, Damage, &str); 2] = [
        ("journal", |path| std::fs::remove_file(path).unwrap(), "was removed or moved"),
        ("counters", |path| writable(path).set_len(0).unwrap(), "nothing is left at byte"),
    ];
    for (file, deed, expected) in damages {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        run(here, &["cluster", "new", "orders", "--members", "1"]).good();
        let mut command = gapless(here, &["cluster", "start", "orders/member-1.toml"]);
        let mut member = Process::start(command.stderr(Stdio::piped()));
        while !member.line().starts_with("leads") {}
        let path = here.join("orders/member-1").join(file);
        let path = if path.is_dir() { longest(&path) } else { path };
        deed(&path);
        let said = member.errors();
        assert_eq!(member.wait().code(), Some(74), "{file}: {said}");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(said.contains(name) && said.contains(expected), "{file}: {said}");
    }
}
