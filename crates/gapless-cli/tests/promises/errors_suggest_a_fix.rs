#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, run};
use crate::stream_process::{configured, sequencer, some_lines, status_when, stream, stream_command, write_lines};
use gapless_testkit::process::Process;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Signal, kill_process};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn start_is_refused(here: &Path, words: &str) {
    let ended: ProgramOutput = stream_command(here, "sequencer").output().unwrap().into();
    let told = ended.error(1);
    assert!(told.contains(words) && !told.contains("journal restore"), "{told}");
}

#[test]
fn missing_journal() {
    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "a", &some_lines(10));
    let mut running = sequencer(here);
    stream(here, "publish a").good();
    running.kill();
    // Only files made at the start name the journal.
    assert_eq!(std::fs::read_dir(here.join("stream/sequencer")).unwrap().count(), 0);
    std::fs::remove_dir_all(here.join("stream/journal")).unwrap();
    start_is_refused(here, "put the folder `journal` back");

    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "a", &some_lines(10));
    let mut running = sequencer(here);
    stream(here, "publish a").good();
    running.interrupt();
    running.wait();
    std::fs::remove_dir_all(here.join("stream/journal")).unwrap();
    start_is_refused(here, "put the folder `journal` back");
    start_is_refused(here, "no segment of a journal");
}

#[test]
fn position_after_the_end() {
    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "a", &some_lines(10));
    let mut running = sequencer(here);
    stream(here, "publish a").good();
    let told = stream(here, "tail --from 900").error(1);
    assert!(told.contains("the stream ends at 1") && !told.contains("lost"), "{told}");
    let told = stream(here, "replay --from 900").error(1);
    assert!(told.contains("the stream ends at 1"), "{told}");
    running.interrupt();
    running.wait();
    let told = stream(here, "replay --from 900").error(1);
    assert!(told.contains("the stream ends at 1"), "{told}");
}

#[test]
fn stopped_sequencer() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let running = sequencer(here);
    let process = running.pid();
    kill_process(process, Signal::STOP).unwrap();
    let begun = Instant::now();
    let told = stream(here, "tail --timeout 1");
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}: {told:?}", begun.elapsed());
    kill_process(process, Signal::CONT).unwrap();
}

#[test]
fn invalid_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    for words in [&["stream", "sequencer", "--config", "/dev/zero"][..], &["cluster", "start", "/dev/zero"]] {
        let told = run(here, words).error(1);
        assert!(told.contains("no regular file"), "{told}");
    }
    std::fs::write(here.join("long.toml"), vec![b'#'; (1 << 20) + 1]).unwrap();
    let told = run(here, &["stream", "status", "--config", "long.toml"]).error(1);
    assert!(told.contains("more than 1 MiB"), "{told}");
}

#[test]
fn pipes_instead_of_files() {
    let directory = configured("shared-memory");
    let here = directory.path();
    mknodat(CWD, here.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    for (words, code) in [
        (&["cluster", "start", "pipe"][..], 1),
        (&["cluster", "skip", "--sequence", "1", "pipe"], 1),
        (&["up", "pipe"], 1),
        (&["ps", "--at", "pipe"], 2),
        (&["bench", "rpc", "curve", "--compare", "pipe"], 1),
    ] {
        let told = ended(gapless(here, words)).error(code);
        assert!(told.contains("pipe: it is a pipe, no regular file"), "{words:?}: {told}");
    }
    let told = ended(stream_command(here, "publish --username anna --password-file pipe")).error(1);
    assert!(told.contains("the password in pipe: it is empty"), "{told}");

    let _running = sequencer(here);
    let mut publish = Process::start(stream_command(here, "publish pipe").stderr(Stdio::piped()));
    File::options().write(true).open(here.join("pipe")).unwrap().write_all(b"a line\n").unwrap();
    assert!(publish.wait_end("a line is published").success());
    let mut publish = Process::start(stream_command(here, "publish pipe").stderr(Stdio::piped()));
    status_when(here, "a session is open", |status| status["sequencer.sessions"] == 1);
    publish.interrupt();
    assert_eq!(publish.wait_end("Ctrl-C ends it").code(), Some(1));
}

fn ended(mut command: Command) -> ProgramOutput {
    let mut process = Process::start(command.stderr(Stdio::piped()));
    let code = process.wait_end(&format!("{command:?} ends")).code();
    ProgramOutput { code, stdout: process.rest().concat(), stderr: process.errors() }
}

#[test]
fn existing_cluster_and_too_long_path() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    run(here, &["cluster", "new", "trades"]).good();
    let told = run(here, &["cluster", "new", "trades"]).error(1);
    assert!(told.contains("cluster start") && told.contains("another directory"), "{told}");
    let long = "x".repeat(120);
    let told = run(here, &["stream", "sequencer", "--directory", &long]).error(1);
    assert!(told.contains("at most 107") && told.contains("shorter path"), "{told}");
}
