#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use crate::stream_process::{configured, sequencer, some_lines, started, stream, write_lines};
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn archive(here: &Path) -> Process {
    let words = ["stream", "archive", "--config", "stream.toml", "--to", "copy", "--text", "copy.log"];
    let mut process = started(here, &words);
    assert!(process.line().starts_with("looking for the stream at "));
    assert!(process.line().contains(" passed on: "));
    process
}

#[track_caller]
fn wait_for_text(here: &Path, expected: &str) {
    until("the text is that of the stream", || {
        std::fs::read_to_string(here.join("copy.log")).unwrap_or_default() == expected
    });
}

fn is_archived_over(transport: &str) {
    let directory = configured(transport);
    let here = directory.path();
    let mut running = sequencer(here);
    let lines = some_lines(900);
    write_lines(here, "first", &lines[..400]);
    write_lines(here, "second", &lines[400..600]);
    write_lines(here, "third", &lines[600..]);

    stream(here, "publish first").good();
    let mut archiving = archive(here);
    stream(here, "publish second").good();
    wait_for_text(here, &stream(here, "replay").good());
    archiving.kill();
    let mut torn = std::fs::read(here.join("copy.log")).unwrap();
    torn.truncate(torn.len() - 7);
    std::fs::write(here.join("copy.log"), torn).unwrap();
    stream(here, "publish third").good();
    let mut archiving = archive(here);
    let text = stream(here, "replay").good();
    wait_for_text(here, &text);
    archiving.interrupt();
    assert!(archiving.rest().last().unwrap().starts_with("stopped at sequence "));
    assert_eq!(archiving.wait().code(), Some(0));
    running.kill();

    let replay = |words: &[&str]| run(here, &[&["stream", "replay", "--directory", "copy"], words].concat()).good();
    assert!(replay(&["--raw"]).lines().eq(&lines), "every message, once, in order");
    assert_eq!(replay(&[]), text, "under the same sequences");
    let checked = run(here, &["journal", "verify", "copy"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn over_shared_memory() {
    is_archived_over("shared-memory");
}

#[test]
fn over_multicast() {
    is_archived_over("multicast");
}

#[test]
fn over_tcp() {
    is_archived_over("tcp");
}

#[test]
fn full_disk_delays_only_the_text() {
    let Some(disk) = SmallDisk::new(64) else { return };
    let directory = configured("shared-memory");
    let here = directory.path();
    let running = sequencer(here);
    let text = disk.path.join("text");
    let mut command = gapless(
        here,
        &["stream", "archive", "--config", "stream.toml", "--to", "copy", "--text", text.to_str().unwrap()],
    );
    let mut archiving = Process::start(command.stderr(Stdio::piped()));
    let said = archiving.error_lines();
    let begun = Instant::now();
    write_lines(here, "lines", &some_lines(2_000));
    stream(here, "publish lines").good();
    let lacking = |line: &String| line.contains("No space left on device") && line.contains("behind the stream");
    let told: Vec<String> = said.iter().filter(lacking).take(2).collect();
    assert!(begun.elapsed() >= Duration::from_secs(1), "{told:?}");
    disk.remount("size=8m");
    let whole = stream(here, "replay").good();
    until("the text is whole", || std::fs::read_to_string(&text).unwrap() == whole);
    archiving.interrupt();
    assert_eq!(archiving.wait().code(), Some(0));
    assert!(said.iter().any(|line| line.ends_with("is written again")), "{told:?}");
    drop(running);
}

#[test]
fn invalid_options_are_refused() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let refused = stream(here, "archive --to stream").error(2);
    assert!(refused.contains("keeps its journal already"), "{refused}");
    std::fs::write(here.join("letter"), "dear reader\n").unwrap();
    let refused = stream(here, "archive --to copy --text letter").error(1);
    assert!(refused.contains("letter: its last line begins with no sequence"), "{refused}");
    assert_eq!(std::fs::read_to_string(here.join("letter")).unwrap(), "dear reader\n", "the file is unchanged");
}
