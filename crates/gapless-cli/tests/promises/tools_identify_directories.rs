//! Each command reports the actual state, and none suggests a remedy that is refused.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use crate::program::{gapless, run};
use crate::stream_process::{configured, sequencer, some_lines, started, stream, write_lines};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

fn stop(mut running: Process) {
    running.interrupt();
    assert_eq!(running.wait().code(), Some(0));
}

fn stopped_stream() -> TempDir {
    let directory = configured("shared-memory");
    write_lines(directory.path(), "lines", &some_lines(10));
    let running = sequencer(directory.path());
    stream(directory.path(), "publish lines").good();
    stop(running);
    directory
}

fn change_record(directory: &Path, change: impl FnOnce(&str) -> String) {
    let path = directory.join("directory");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, change(&text)).unwrap();
}

#[test]
fn newer_format_is_refused_by_all() {
    let directory = stopped_stream();
    let here = directory.path();
    change_record(&here.join("stream"), |_| "kind bus\nformat 2\nwritten by gapless 9.0.0\n".to_owned());
    for words in [
        &["events", "stats", "stream"][..],
        &["events", "ls", "stream"],
        &["events", "archive", "stream", "--to", "archive"],
        &["journal", "restore", "stream"],
        &["stream", "sequencer", "--config", "stream.toml"],
    ] {
        let told = run(here, words).error(1);
        assert!(told.contains("format 2") && told.contains("gapless 9.0.0"), "{words:?}: {told}");
    }
    let verified = run(here, &["journal", "verify", "stream"]);
    assert!(verified.stdout.ends_with("\nanother format\n"), "{verified:?}");
    assert!(verified.error(1).contains("gapless 9.0.0"));
    let verified = run(here, &["journal", "verify", "stream", "--json"]);
    let object: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!(object["verdict"], "another format");
    assert!(object["refused"].as_str().unwrap().contains("format 2"), "{object}");
    assert!(!here.join("archive").exists());
}

#[test]
fn changed_record_is_damage() {
    let directory = stopped_stream();
    let here = directory.path();
    change_record(&here.join("stream"), |text| text.replace("stream", "stseam"));
    let verified = run(here, &["journal", "verify", "stream"]);
    assert!(verified.stdout.ends_with("\nDAMAGED\n"), "{verified:?}");
    for told in [verified.error(1), stream(here, "sequencer").error(1)] {
        assert!(told.contains("directory") && told.contains("a start writes it anew"), "{told}");
    }
    std::fs::remove_file(here.join("stream/directory")).unwrap();
    stop(sequencer(here));
    run(here, &["journal", "verify", "stream"]).good();
}

#[test]
fn stream_has_no_events() {
    let directory = stopped_stream();
    let here = directory.path();
    for subcommand in ["stats", "ls", "read"] {
        let told = run(here, &["events", subcommand, "stream"]).error(1);
        assert!(told.contains("that of a stream") && told.contains("gapless journal dump"), "{told}");
    }
    run(here, &["journal", "dump", "stream"]).good();
    let running = sequencer(here);
    assert!(run(here, &["events", "stats", "stream"]).error(1).contains("that of a stream"));
    stop(running);
    let none = run(here, &["journal", "dead-letters", "stream"]);
    assert_eq!((&*none.stderr, none.code), ("note: no dead letters\n", Some(0)));
}

#[test]
fn memory_stream_merely_stopped() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let text = std::fs::read_to_string(here.join("stream.toml")).unwrap();
    let (head, _) = text.split_once("[journal]").unwrap();
    let in_memory = head.replacen("[stream]\n", "[stream]\ntier = \"memory\"\n", 1);
    std::fs::write(here.join("stream.toml"), in_memory).unwrap();
    stop(sequencer(here));
    let told = stream(here, "status --json");
    assert!(told.stdout.contains("\"running\":false"), "{told:?}");
    assert!(told.error(3).contains("no sequencer or relay runs"));
    let told = run(here, &["top", "stream", "--once"]);
    assert!(!told.stderr.contains("was ever there"), "{told:?}");
    std::fs::create_dir(here.join("empty")).unwrap();
    run(here, &["stream", "status", "--directory", "empty"]).error(3);
}

#[test]
fn killed_process_has_no_counters() {
    let directory = configured("shared-memory");
    let mut running = sequencer(directory.path());
    running.kill();
    let told = run(directory.path(), &["counters", "stream"]);
    assert_eq!(told.stdout, "");
    assert!(told.error(1).contains("is gone"));
}

#[test]
fn supervisor_is_found_by_broken_file() {
    let floor = Floor::new("[process.worker]\ncommand = [\"sleep\", \"300\"]\n");
    run(floor.path(), &["up", "floor.toml"]).good();
    let file = floor.path().join("floor.toml");
    let good = std::fs::read_to_string(&file).unwrap();
    for bad in ["[process.b\n", "[process.b]\nsize = 3\n", "[supervisor]\ndirectory = 5\n"] {
        std::fs::write(&file, format!("{good}{bad}")).unwrap();
        let shown = run(floor.path(), &["ps", "--at", "floor.toml"]);
        assert!(shown.stdout.contains("worker.1") && shown.stderr.starts_with("note: "), "{bad}: {shown:?}");
    }
    std::fs::remove_file(&file).unwrap();
    let ended = run(floor.path(), &["down", "--at", "floor.toml"]);
    assert!(ended.stderr.contains("No such file"), "{ended:?}");
    assert_eq!(ended.good(), "all has ended\n");
    run(floor.path(), &["ps", "--at", "other.toml"]).error(2);
}

#[test]
fn archive_of_restored_stream() {
    let directory = stopped_stream();
    let here = directory.path();
    let running = sequencer(here);
    let words = ["stream", "archive", "--config", "stream.toml", "--to", "copy"];
    let mut archiving = started(here, &words);
    assert!(archiving.line().starts_with("looking for the stream at "));
    assert!(archiving.line().contains(" passed on: "));
    let last = |directory: &str| {
        let info = run(here, &["journal", "info", directory, "--json"]).stdout;
        serde_json::from_str::<Value>(&info).ok().map(|info| info["journaled_sequence"].clone())
    };
    until("the copy is complete", || last("copy") == last("stream"));
    stop(archiving);
    stop(running);
    run(here, &["journal", "restore", "stream"]).good();
    let running = sequencer(here);
    let told = gapless(here, &words).output().unwrap();
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("restored") && told.contains("move the directory away"), "{told}");
    stop(running);
}
