//! Nodes of a dispatcher and a bridge read the same stream and publish into it; either resumes at its position.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::stream_process::{configured, sequencer, some_lines, started, stream, stream_with_config, write_lines};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use std::path::Path;

fn relay(here: &Path, words: &[&str]) -> Process {
    let mut line = vec!["stream"];
    line.extend(words);
    let mut process = started(here, &line);
    assert!(process.line().starts_with("looking for the stream at "));
    assert!(process.line().contains(" passed on: "));
    process
}

fn relays_lines(transport: &str, start: impl Fn(&Path) -> Process, far: &[&str]) {
    let directory = configured(transport);
    let here = directory.path();
    let _running = sequencer(here);
    let mut relay = start(here);
    let lines = some_lines(900);
    let (first, rest) = lines.split_at(300);
    let (second, third) = rest.split_at(300);

    write_lines(here, "first", first);
    write_lines(here, "second", second);
    write_lines(here, "third", third);
    stream(here, "publish first").good();
    stream_with_config(here, far, &["publish", "second"]).good();
    relay.kill();
    stream(here, "publish third").good();

    let mut relay = start(here);
    let there = stream_with_config(here, far, &["tail", "--raw", "--from", "first", "--count", "900"]).good();
    assert!(there.lines().eq(&lines), "everything, once, in order");
    let near = stream(here, "tail --no-follow --json").good();
    let over_there = stream_with_config(here, far, &["tail", "--no-follow", "--json"]).good();
    assert!(near == over_there, "the same frames under the same sequences");
    relay.interrupt();
    assert!(relay.rest().last().unwrap().starts_with("stopped at sequence "));
    assert_eq!(relay.wait().code(), Some(0));
}

#[test]
fn by_a_dispatcher() {
    let start = |here: &Path| relay(here, &["dispatch", "--config", "stream.toml", "--to", "dispatched"]);
    relays_lines("multicast", start, &["--directory", "dispatched"]);
}

#[test]
fn by_a_bridge() {
    let other = configured("tcp");
    let file = other.path().join("stream.toml");
    let file = file.to_str().unwrap();
    let start = |here: &Path| relay(here, &["bridge", "--config", "stream.toml", "--to", file]);
    relays_lines("tcp", start, &["--config", file]);
}

#[test]
fn relay_without_stream_is_unhealthy() {
    let (directory, other) = (configured("tcp"), configured("tcp"));
    let here = directory.path();
    let running = sequencer(here);
    let file = other.path().join("stream.toml");
    let far = ["--config", file.to_str().unwrap()];
    let _relay = relay(here, &["bridge", "--config", "stream.toml", "--to", far[1]]);
    let status = || stream_with_config(here, &far, &["status", "--json"]);
    until("it is connected", || status().code == Some(0));
    drop(running);
    until("it is known there", || status().stdout.contains("\"illness\""));
    let said = status().error(1);
    assert!(said.contains("its stream is not there"), "{said}");
    let _running = sequencer(here);
    until("it is connected again", || status().code == Some(0));
}

#[test]
fn invalid_options_are_refused() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let refused = stream(here, "bridge --to stream.toml").error(2);
    assert!(refused.contains("both files name the same directory"), "{refused}");
    let refused = stream(here, "dispatch --to stream").error(2);
    assert!(refused.contains("need no dispatcher"), "{refused}");

    // A directory never holds parts of two streams.
    let first = sequencer(here);
    let mut dispatcher = relay(here, &["dispatch", "--config", "stream.toml", "--to", "dispatched"]);
    dispatcher.interrupt();
    assert_eq!(dispatcher.wait().code(), Some(0));
    drop(first);
    std::fs::remove_dir_all(here.join("stream")).unwrap();
    let _second = sequencer(here);
    let refused = stream(here, "dispatch --to dispatched").error(1);
    assert!(refused.contains("serves stream "), "{refused}");
}
