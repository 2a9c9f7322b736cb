#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::run;
use crate::stream_process::{configured, sequencer, started, stream, stream_command, write_lines};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Sequence and kind.
fn frames(here: &Path) -> Vec<(u64, String)> {
    let text = stream(here, "replay --json").good();
    let frame = |line: &str| {
        let object = object(line);
        (object["sequence"].as_u64().unwrap(), object["kind"].as_str().unwrap().to_owned())
    };
    text.lines().map(frame).collect()
}

fn is_controlled_over(transport: &str) {
    let directory = configured(transport);
    let here = directory.path();
    let mut running = sequencer(here);
    write_lines(here, "lines", &["one".to_owned(), "two".to_owned()]);
    stream(here, "publish lines").good();
    let before = frames(here).len() as u64;

    let halted = stream(here, "control halt --reason a-look").good();
    assert_eq!(halted, format!("halted at sequence {}\n", before + 1));
    assert_eq!(frames(here).last().unwrap(), &(before + 1, "halted".to_owned()), "it is in the stream already");
    let again = object(&stream(here, "control halt --json").good());
    assert_eq!((&again["sequence"], &again["changed"]), (&(before + 1).into(), &false.into()), "{again}");

    write_lines(here, "late", &["three".to_owned()]);
    let mut publish = Process::start(stream_command(here, "publish late").stderr(Stdio::null()));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(frames(here).len() as u64, before + 1, "nothing passes a halt");
    let resumed = object(&stream(here, "control resume --json").good());
    assert_eq!((&resumed["sequence"], &resumed["changed"]), (&(before + 2).into(), &true.into()), "{resumed}");
    assert_eq!(publish.wait().code(), Some(0));
    let not_halted = stream(here, "control resume").good();
    assert!(not_halted.starts_with("not halted; "), "{not_halted}");
    assert_eq!(stream(here, "tail --no-follow --raw").good(), "one\ntwo\nthree\n");

    let rolled = object(&stream(here, "control roll-over TUESDAY --json").good());
    let begun = rolled["sequence"].as_u64().unwrap();
    let stands = frames(here);
    assert_eq!(stands[stands.len() - 2..], [(begun - 1, "feed-ended".to_owned()), (begun, "feed-began".to_owned())]);
    let taken = stream(here, "control roll-over TUESDAY").error(1);
    assert!(taken.contains("holds a feed session of this name already"), "{taken}");
    let ended = stream(here, "control end").good();
    assert_eq!(ended, format!("the feed session ended at sequence {}\n", begun + 1));
    for words in ["control end", "control halt", "control resume"] {
        let refused = stream(here, words).error(1);
        assert!(refused.contains("the feed session has ended; roll over to begin another"), "{words}: {refused}");
    }
    let began = stream(here, "control roll-over WEDNESDAY").good();
    assert_eq!(began, format!("feed session WEDNESDAY begins at sequence {}\n", begun + 2));
    write_lines(here, "more", &["four".to_owned()]);
    stream(here, "publish more").good();

    stream(here, "control halt").good();
    running.kill();
    let _running = sequencer(here);
    assert!(stream(here, "control halt").good().starts_with("halted already; "));
    assert!(stream(here, "control resume").good().starts_with("resumed at sequence "));
    assert_eq!(stream(here, "tail --no-follow --raw").good(), "one\ntwo\nthree\nfour\n");
}

#[test]
fn over_shared_memory() {
    is_controlled_over("shared-memory");
}

#[test]
fn over_udp() {
    is_controlled_over("udp");
}

#[test]
fn over_tcp() {
    is_controlled_over("tcp");
}

#[test]
fn no_message_passes_a_halt() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let _running = sequencer(here);
    let mut tail = Process::start(&mut stream_command(here, "tail --raw --from first"));
    let seen = tail.lines_in_background();
    let command = &mut stream_command(here, "publish --rate 1500");
    let mut publish = Process::start(command.stdin(Stdio::piped()).stderr(Stdio::null()));
    let mut input = publish.input();
    let line = |number: usize| format!("{number} {}", "x".repeat(200));
    let was_halted = Arc::<AtomicBool>::default();
    let writer = std::thread::spawn({
        let was_halted = Arc::clone(&was_halted);
        move || {
            let numbers = (0..).take_while(|_| !was_halted.load(Ordering::Relaxed));
            numbers.inspect(|number| writeln!(input, "{}", line(*number)).unwrap()).count()
        }
    });
    assert_eq!(seen.recv().unwrap(), line(0));
    let halted = object(&stream(here, "control halt --json").good())["sequence"].as_u64().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let status = object(&stream(here, "status --json").good());
    assert_eq!(status["last_sequence"].as_u64().unwrap(), halted, "no message follows the halt");
    stream(here, "control resume").good();
    was_halted.store(true, Ordering::Relaxed);
    let written = writer.join().unwrap();
    assert_eq!(publish.wait().code(), Some(0));
    for number in 1..written {
        assert_eq!(seen.recv().unwrap(), line(number), "everything that waited comes, in order");
    }
}

#[test]
fn uncontrollable_stream_gives_reason() {
    let directory = configured("shared-memory");
    let here = directory.path();
    for words in ["control halt", "control resume", "control roll-over X", "control end"] {
        let text = stream(here, words).error(1);
        assert!(text.contains("stream.socket: no sequencer answers there; is it running?"), "{words}: {text}");
    }
    for (words, expected) in [
        ("stream control roll-over TOOLONGNAME --directory d", "1 to 10 characters"),
        ("stream control roll-over größe --directory d", "printable ASCII"),
        ("stream control roll-over --directory d", "<NAME>"),
        ("stream control halt", "--config FILE or --directory DIRECTORY"),
        ("stream control halt --directory d --timeout 0", "--timeout"),
        ("stream control pause --directory d", "pause"),
    ] {
        let line: Vec<&str> = words.split(' ').collect();
        let text = run(here, &line).error(2);
        assert!(text.contains(expected), "{words}: {text}");
    }
    let mut running = sequencer(here);
    let mut relay = started(here, &["stream", "dispatch", "--config", "stream.toml", "--to", "dispatched"]);
    assert!(relay.line().starts_with("looking for the stream at "));
    assert!(relay.line().contains(" passed on: "));
    let text = run(here, &["stream", "control", "halt", "--directory", "dispatched"]).error(1);
    assert!(text.contains("passes another's stream on; control it where its sequencer runs"), "{text}");
    running.kill();
    let text = stream(here, "control halt").error(1);
    assert!(text.contains("no sequencer answers there"), "a socket that is left behind: {text}");
}

/// 0 if the sequencer hangs up.
fn answer_length(here: &Path, word: &[u8]) -> usize {
    let address = SocketAddrUnix::new(here.join("stream/stream.socket")).unwrap();
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    rustix::net::send(&socket, word, SendFlags::NOSIGNAL).unwrap();
    rustix::net::recv(&socket, &mut [0u8; 256], RecvFlags::empty()).map_or(0, |(length, _)| length)
}

#[test]
fn invalid_requests_are_counted() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let _running = sequencer(here);
    let mut halt = Vec::from(*b"GAPCTRL\x01\x01\0\0\0\xff\0\0\0");
    halt.resize(60, 0);
    let mut other_version = Vec::from(*b"GAPCTRL\x02");
    other_version.resize(40, 0);
    for (word, answered) in [
        (&b"nonsense"[..], 0),
        (&[0xff; 4096], 0),
        (b"GAPCTRL", 0),
        (b"GAPHELO\x02", 0),
        (&halt, 0),
        (&other_version, 56),
    ] {
        assert_eq!(answer_length(here, word), answered, "{}", word.escape_ascii());
    }
    let counted = |name: &str| object(&stream(here, "status --json").good())[name].as_u64();
    until("six are counted", || counted("control.refused") == Some(6));
    assert_eq!(counted("control.done"), Some(0));
    assert_eq!(frames(here).len(), 1, "nothing came of it");
    stream(here, "control halt").good();
    assert_eq!(counted("control.done"), Some(1));
}
