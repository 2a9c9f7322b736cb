#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use crate::stream_process::{configured, sequencer, some_lines, started, stream_with, write_lines};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

fn json(directory: &Path, place: &str) -> Option<Value> {
    let ended = run(directory, &["top", place, "--once", "--json", "--interval", "0.05"]);
    (ended.code == Some(0)).then(|| serde_json::from_str(&ended.stdout).unwrap())
}

#[test]
fn stream_is_watched_through_a_restart() {
    let directory = configured("shared-memory");
    let mut process = sequencer(directory.path());
    write_lines(directory.path(), "lines", &some_lines(100));
    stream_with(directory.path(), "publish", &directory.path().join("lines")).good();

    let text = run(directory.path(), &["top", "stream", "--once"]).good();
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..3], ["stream", "running", "sequencer"], "{text}");
    assert!(row[6].parse::<u64>().unwrap() >= 100, "{text}");
    assert!(text.lines().any(|line| line.starts_with("sequencer.last_sequence ")), "{text}");

    let mut watch = Process::start(
        gapless(directory.path(), &["top", "stream", "--json", "--interval", "0.05"]).stderr(Stdio::inherit()),
    );
    let mut next = || -> Value { serde_json::from_str::<Value>(&watch.line()).unwrap()["directories"][0].take() };
    let first = next();
    assert_eq!((&first["state"], &first["restarts"]), (&"running".into(), &0.into()));
    assert!(first["counters"]["sequencer.last_sequence"].as_u64().unwrap() >= 100, "{first}");
    assert_eq!(first["per_s"]["sequencer.last_sequence"], 0.0, "nothing is published");
    stream_with(directory.path(), "publish", &directory.path().join("lines")).good();
    until("a rate", || next()["per_s"]["sequencer.last_sequence"].as_f64().is_some_and(|rate| rate > 0.0));
    process.kill();
    until("the end", || next()["state"] == "gone");
    let _again = sequencer(directory.path());
    until("the return", || {
        let seen = next();
        seen["state"] == "running" && seen["restarts"] == 1
    });
    watch.interrupt();
    assert_eq!(watch.wait().code(), Some(0));
}

#[test]
fn member_is_watched_as_repeated_text() {
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), &["cluster", "new", "orders", "--members", "1"]).good();
    let mut member = started(directory.path(), &["cluster", "start", "orders/member-1.toml"]);
    member.line();
    until("a leader", || {
        let found = json(directory.path(), "orders").map(|mut seen| seen["directories"][0]["member"].take());
        found.is_some_and(|member| member["role"] == "leader" && member["leader"] == 1)
    });
    let mut watch = started(directory.path(), &["top", "orders", "--interval", "0.05"]);
    for _ in 0..2 {
        let titles = watch.line();
        assert!(titles.starts_with("directory "), "{titles}");
        let row = watch.line();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[..3], ["orders/member-1", "running", "leader"], "{row}");
        assert_eq!((cells[4], cells[5]), ("1", "quorum"), "{row}");
        until("its members", || watch.line().starts_with("member "));
        assert!(watch.line().contains("itself"));
        until("the next text", || watch.line().is_empty());
    }
    watch.stop_reading();
    assert_eq!(watch.wait().code(), Some(0));
}

/// Waits until the stream is shown; returns the terminal's other end.
fn on_a_screen(directory: &Path) -> (Process, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let end = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    // The terminal does not control this process, so no signal reports its hang-up.
    let mut command = gapless(directory, &["top", "stream"]);
    command.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
    let screen = Process::start_as(&mut command);
    fcntl_setfl(&terminal, OFlags::NONBLOCK).unwrap();
    let mut terminal = File::from(terminal);
    let mut shown = Vec::new();
    until("the screen", || {
        read_what_is_shown(&mut terminal, &mut shown);
        String::from_utf8_lossy(&shown).contains("sequencer")
    });
    (screen, terminal)
}

fn read_what_is_shown(terminal: &mut File, shown: &mut Vec<u8>) {
    let mut bytes = [0; 4096];
    let read = terminal.read(&mut bytes).unwrap_or(0);
    shown.extend_from_slice(&bytes[..read]);
}

#[test]
fn screen_ends_with_its_terminal() {
    let directory = configured("shared-memory");
    let _process = sequencer(directory.path());
    let (mut screen, terminal) = on_a_screen(directory.path());
    assert_eq!(screen.ended(), None);
    drop(terminal);
    until("the end", || screen.ended().is_some());
}

#[test]
fn key_after_a_flood_is_seen() {
    let directory = configured("shared-memory");
    let _process = sequencer(directory.path());
    for flood in [b"x".repeat(2_000), b"\x1b[B".repeat(342)] {
        let (mut screen, mut terminal) = on_a_screen(directory.path());
        assert_eq!(terminal.write(&[&flood[..], b"q"].concat()).unwrap(), flood.len() + 1);
        let mut shown = Vec::new();
        until("the end by q", || {
            read_what_is_shown(&mut terminal, &mut shown);
            screen.ended().is_some()
        });
        assert!(screen.wait().success());
    }
}

#[test]
fn invalid_use_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    std::fs::create_dir(directory.path().join("foreign")).unwrap();
    std::fs::write(directory.path().join("foreign/counters"), "no counters").unwrap();
    for (words, code, expected) in [
        ("top missing", 1, "there is no such directory"),
        ("top foreign/counters", 1, "is no directory"),
        ("top empty", 1, "no service, stream or member was ever there"),
        ("top foreign --once", 1, "counters"),
        ("top foreign --interval 0", 2, "0.05 to 86400"),
        ("top foreign --interval often", 2, "0.05 to 86400"),
        ("top \u{1b}[2J", 1, "\\u{1b}[2J: there is no such directory"),
    ] {
        let line: Vec<&str> = words.split(' ').collect();
        let error = run(directory.path(), &line).error(code);
        assert!(error.contains(expected), "{words}: {error}");
    }
}
