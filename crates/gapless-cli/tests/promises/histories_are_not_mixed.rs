//! A directory assembled from several points in time is refused with both files named, `journal verify` reports it, and
//! `journal restore` makes it a history of its own.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, names, run};
use crate::stream_process::{configured, sequencer, some_lines, started, stream, stream_command, write_lines};
use gapless_journal::descriptor::JOURNALED_MARK_OFFSET;
use gapless_testkit::folder::copy;
use gapless_testkit::process::Process;
use serde_json::Value;
use std::os::unix::fs::FileExt;
use std::path::Path;

fn stop(mut running: Process) {
    running.interrupt();
    assert_eq!(running.wait().code(), Some(0));
}

fn start_is_refused(here: &Path) -> String {
    let ended: ProgramOutput = stream_command(here, "sequencer").output().unwrap().into();
    ended.error(1)
}

#[test]
fn older_journal_needs_a_restore() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let lines = some_lines(3_500);
    write_lines(here, "a", &lines[..1_000]);
    write_lines(here, "b", &lines[1_000..2_000]);
    write_lines(here, "c", &lines[2_000..]);
    let journal = here.join("stream/journal");
    let running = sequencer(here);
    stream(here, "publish a").good();
    stop(running);
    copy(&journal, &here.join("copy"));
    let running = sequencer(here);
    stream(here, "publish b").good();
    stop(running);
    assert!(run(here, &["journal", "verify", "stream"]).good().ends_with("\nwhole\n"));
    copy(&here.join("copy"), &journal);

    let newest = names(&here.join("stream/sequencer")).pop().unwrap();
    let told = run(here, &["journal", "verify", "stream"]);
    assert!(told.stdout.ends_with("\nDAMAGED\n"), "{told:?}");
    let told = told.error(1);
    let refused = start_is_refused(here);
    for text in [&told, &refused] {
        let names_both = text.contains(&newest) && text.contains("00000000000000000001.segment");
        assert!(names_both && text.contains("one history"), "{text}");
    }

    let restored = run(here, &["journal", "restore", "stream", "--json"]).good();
    let restored: Value = serde_json::from_str(&restored).unwrap();
    assert_ne!(restored["incarnation"], restored["incarnation_before"]);
    let set_aside = restored["set_aside"].as_array().unwrap();
    assert!(set_aside.iter().any(|path| path.as_str().unwrap().contains(&newest)), "{restored}");
    assert!(run(here, &["journal", "verify", "stream"]).good().ends_with("\nwhole\n"));

    let mut running = sequencer(here);
    stream(here, "publish c --token import").good();
    running.kill();
    let running = sequencer(here);
    let again = stream(here, "publish c --token import");
    assert!(again.stderr.starts_with("0 lines published") && again.stderr.contains("1500 were there"), "{again:?}");
    stop(running);
    let expected: Vec<&String> = lines[..1_000].iter().chain(&lines[2_000..]).collect();
    assert!(stream(here, "replay --raw").good().lines().eq(expected));
}

#[test]
fn missing_journal_is_noticed() {
    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "a", &some_lines(100));
    let running = sequencer(here);
    stream(here, "publish a").good();
    stop(running);
    std::fs::rename(here.join("stream/journal"), here.join("aside")).unwrap();
    let refused = start_is_refused(here);
    assert!(refused.contains("sequencer/state-") && refused.contains("no segment of a journal"), "{refused}");
    let _made_by_the_start = std::fs::remove_dir_all(here.join("stream/journal"));
    std::fs::rename(here.join("aside"), here.join("stream/journal")).unwrap();
    stop(sequencer(here));
}

#[test]
fn restore_needs_a_stopped_stream() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let running = sequencer(here);
    let refused = run(here, &["journal", "restore", "stream"]).error(1);
    assert!(refused.contains("in use"), "{refused}");
    stop(running);
    std::fs::write(here.join("stream/ballot"), []).unwrap();
    let refused = run(here, &["journal", "restore", "stream"]).error(1);
    assert!(refused.contains("cluster add --replace"), "{refused}");
    std::fs::remove_file(here.join("stream/ballot")).unwrap();
    std::fs::write(here.join("stream/origin"), []).unwrap();
    let refused = run(here, &["journal", "restore", "stream"]).error(1);
    assert!(refused.contains("relay"), "{refused}");
    std::fs::remove_file(here.join("stream/origin")).unwrap();
    let refused = run(here, &["journal", "restore", "nowhere"]).error(1);
    assert!(refused.contains("nowhere"), "{refused}");
    let text = run(here, &["journal", "restore", "stream"]).good();
    assert!(text.contains("is a history of its own, to sequence "), "{text}");
    stop(sequencer(here));
}

#[test]
fn damaged_mark_slot_is_reported() {
    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "a", &some_lines(100));
    let running = sequencer(here);
    stream(here, "publish a").good();
    stop(running);
    let name = names(&here.join("stream/journal")).into_iter().rfind(|name| name.ends_with(".segment")).unwrap();
    let segment = here.join("stream/journal").join(&name);
    let file = std::fs::OpenOptions::new().write(true).open(segment).unwrap();
    file.write_all_at(&[0xee; 32], JOURNALED_MARK_OFFSET as u64).unwrap();

    let told = run(here, &["journal", "verify", "stream"]);
    assert!(told.stdout.ends_with("\nDAMAGED\n"), "{told:?}");
    let info = run(here, &["journal", "info", "stream"]).good();
    for text in [told.error(1), run(here, &["journal", "dump", "stream"]).error(1), info] {
        assert!(text.contains("one slot") && text.contains(&name), "{text}");
        assert!(!text.contains("both of its slots"), "{text}");
    }
    let mut running = started(here, &["stream", "sequencer", "--config", "stream.toml"]);
    let line = running.line();
    assert!(line.contains(&name) && line.contains("written anew, one slot of which was damaged"), "{line}");
    stop(running);
    assert!(run(here, &["journal", "verify", "stream"]).good().ends_with("\nwhole\n"));
    assert_eq!(stream(here, "replay --raw").good().lines().count(), 100);
}
