//! A file that is made shorter while a sequencer has it mapped ends the sequencer with the file's name and a code of its own, and its
//! publisher learns that it is gone.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

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
fn a_shortened_segment_or_counters_file_is_named_and_the_process_ends() {
    for cut in ["journal", "counters"] {
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
        assert!(said.contains(name) && said.contains("was made shorter"), "{cut}: {said}");
        drop(input);
        let said = publisher.errors();
        assert!(said.contains("note: waiting for 1 s: no sequencer answers at "), "{cut}: {said}");
    }
}
