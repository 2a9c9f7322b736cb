#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{self, gapless, run};
use crate::stream_process::{configured, sequencer, stream, stream_command, stream_with, write_lines};
use gapless_testkit::process::Process;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn bad_file_is_refused_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("stream.toml"), "[stream]\ndirectory = \"d\"\ntier = \"fast\"\n").unwrap();
    for words in ["sequencer", "node", "tail", "publish", "replay", "status"] {
        let text = stream(directory.path(), words).error(1);
        let expected =
            "gapless: stream.toml:3: stream.tier: \"fast\" was found; \"memory\", \"journal\", \"sync\" are allowed\n";
        assert_eq!(text, expected, "{words}");
    }
    let by_variable =
        gapless(directory.path(), &["stream", "tail"]).env("GAPLESS_STREAM", "absent.toml").output().unwrap().into();
    let text = program::ProgramOutput::error(by_variable, 1);
    assert!(text.contains("reading absent.toml"), "{text}");
    assert_eq!(program::names(directory.path()), ["stream.toml"], "nothing was begun");
}

#[test]
fn wrong_options_exit_with_2() {
    let directory = tempfile::tempdir().unwrap();
    for (words, expected) in [
        ("stream tail", "--config FILE or --directory DIRECTORY"),
        ("stream tail --config a --directory b", "--directory"),
        ("stream tail --directory d --from yesterday", "first, live, or a sequence"),
        ("stream tail --directory d --json --raw", "--raw"),
        ("stream replay --directory d --from 9 --to 3", "--from 9 lies behind --to 3"),
        ("stream publish --directory d --schema 7", "two numbers"),
        ("stream publish --directory d --rate 0", "number of lines"),
        ("stream status --directory d --watch never", "--watch"),
        ("stream dance", "dance"),
    ] {
        let line: Vec<&str> = words.split(' ').collect();
        let text = run(directory.path(), &line).error(2);
        assert!(text.contains(expected), "{words}: {text}");
    }
}

#[test]
fn second_sequencer_is_refused() {
    let directory = configured("udp");
    let _running = sequencer(directory.path());
    let text = stream(directory.path(), "sequencer").error(1);
    assert!(text.contains("is in use by process"), "{text}");
    let file = std::fs::read_to_string(directory.path().join("stream.toml")).unwrap();
    let other = file.replace("directory = \"stream\"", "directory = \"other\"");
    std::fs::write(directory.path().join("stream.toml"), other).unwrap();
    let text = stream(directory.path(), "sequencer").error(1);
    assert!(text.contains("127.0.0.1:") && text.contains("in use"), "the ports are taken: {text}");
}

#[test]
fn unknown_user_is_refused() {
    for transport in ["udp", "tcp"] {
        let directory = configured(transport);
        let here = directory.path();
        let file = std::fs::read_to_string(here.join("stream.toml")).unwrap();
        let with_user = |node: &str| {
            let users = "[[user]]\nname = \"anna\"\npassword = \"swordfish\"\n";
            std::fs::write(here.join("stream.toml"), format!("{file}{users}{node}")).unwrap();
        };
        with_user("[node]\nusername = \"anna\"\npassword = \"swordfish\"\n");
        write_lines(here, "lines", &["one".to_owned()]);
        let _running = sequencer(here);
        stream(here, "publish lines").good();
        // A user given by option needs no entry in the file.
        std::fs::write(here.join("stream.toml"), &file).unwrap();
        std::fs::write(here.join("password"), "swordfish\n").unwrap();
        stream(here, "publish lines --username anna --password-file password").good();
        let read = stream(here, "tail --raw --no-follow --username anna --password-file password").good();
        assert_eq!(read, "one\none\n");
        for node in ["", "[node]\nusername = \"anna\"\npassword = \"sardine\"\n"] {
            with_user(node);
            let ended = stream(here, "publish lines");
            assert_eq!(ended.code, Some(1), "{transport}: {ended:?}");
            assert!(ended.stderr.contains("username and password are not known here"), "{transport}: {ended:?}");
            let ended = stream(here, "tail --no-follow");
            assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{transport}: {ended:?}");
        }
    }
}

#[test]
fn failed_publish_exits_with_1() {
    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "lines", &["one".to_owned(), "xyz".to_owned()]);
    let text = stream(here, "publish lines --timeout 1").error(1);
    assert!(text.contains("no sequencer answers at") && text.contains("is it running?"), "{text}");
    let text = stream(here, "publish absent").error(1);
    assert!(text.contains("reading absent"), "{text}");
    let text = stream(here, "replay --from 5 --timeout 1").error(1);
    assert!(text.contains("no sequencer answers at") && text.contains("within 1 s"), "{text}");
    let _running = sequencer(here);
    let text = stream(here, "publish lines --hex").error(1);
    assert!(text.contains("line 1: an even number of hexadecimal digits"), "{text}");
    write_lines(here, "long", &["x".repeat(2 << 20)]);
    let text = stream(here, "publish long").error(1);
    assert!(text.contains("1048576 bytes"), "{text}");
}

#[test]
fn closed_pipe_ends_tail_silently() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let lines: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    write_lines(here, "lines", &lines);
    let _running = sequencer(here);
    stream(here, "publish lines").good();
    for words in ["tail --raw", "tail --raw --no-follow", "replay --raw"] {
        let mut tail = Process::start(&mut stream_command(here, words));
        assert_eq!(tail.line(), "0");
        tail.stop_reading();
        assert_eq!(tail.wait().code(), Some(0), "{words}");
    }
    let mut tail = Process::start(&mut stream_command(here, "tail --raw --from 20002"));
    assert_eq!(tail.line(), "19999");
    tail.stop_reading();
    assert_eq!(tail.wait().code(), Some(0));
    let mut interrupted = Process::start(&mut stream_command(here, "tail --raw --from 20002"));
    interrupted.line();
    interrupted.interrupt();
    assert_eq!(interrupted.wait().code(), Some(0));
}

#[test]
fn status_shows_state_and_position() {
    let directory = configured("udp");
    let here = directory.path();
    let text = stream(here, "status").error(3);
    assert!(text.contains("no stream was ever there"), "{text}");
    let mut running = sequencer(here);
    std::fs::write(here.join("lines"), "a\nb\nc\n").unwrap();
    stream_with(here, "publish", &here.join("lines")).good();
    let object = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let status = object(&stream(here, "status --json").good());
    assert_eq!((&status["running"], &status["last_sequence"]), (&true.into(), &6.into()), "{status}");
    assert_eq!((&status["journal_lag"], &status["sequencer.sessions"]), (&0.into(), &0.into()), "{status}");
    assert!(status["frames_per_s"].is_number() && status["gateway.nodes"].is_number(), "{status}");
    assert_eq!(
        (&status["tier"], &status["transports"]),
        (&"journal".into(), &serde_json::json!(["shared-memory", "udp"]))
    );
    assert_eq!((&status["halted"], &status["feed_ended"]), (&false.into(), &false.into()), "{status}");
    assert!(status["feed_session"].is_string(), "{status}");
    stream(here, "control halt").good();
    assert_eq!(object(&stream(here, "status --json").good())["halted"], true);
    stream(here, "control resume").good();
    stream(here, "control roll-over TUESDAY").good();
    stream(here, "control end").good();
    let status = object(&stream(here, "status --json").good());
    assert_eq!((&status["halted"], &status["feed_ended"]), (&false.into(), &true.into()), "{status}");
    assert_eq!(status["feed_session"], "TUESDAY");
    let text = stream(here, "status").good();
    assert!(text.lines().any(|line| line.split_whitespace().collect::<Vec<_>>() == ["feed_ended", "yes"]), "{text}");
    assert!(text.starts_with("stream: running\n") || text.contains(": running\n"), "{text}");
    let mut watch = Process::start(stream_command(here, "status --watch 0.2 --json").stderr(Stdio::inherit()));
    assert_eq!(object(&watch.line())["last_sequence"], 11);
    assert_eq!(object(&watch.line())["running"], true);
    watch.interrupt();
    assert_eq!(watch.wait().code(), Some(0));
    running.kill();
    let ended = stream(here, "status --json");
    let status = object(&ended.stdout);
    assert_eq!((&status["running"], &status["last_sequence"]), (&false.into(), &11.into()), "{status}");
    let text = ended.error(3);
    assert!(text.contains("no sequencer or relay runs in stream"), "{text}");
    assert!(stream(here, "status").stdout.contains("no sequencer runs"));
}

#[test]
fn removed_lock_hides_no_sequencer() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let _running = sequencer(here);
    let journal = here.join("stream/journal");
    let lock = journal.join("lock");
    std::fs::remove_file(&lock).unwrap();
    let ended = stream(here, "status --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("\"running\":true") && ended.stderr.contains("was removed while process"),
        "{ended:?}"
    );
    let text = stream(here, "sequencer").error(1);
    assert!(text.contains("in use by process"), "{text}");
}

fn limited(directory: &Path, before: &str, words: &str) -> program::ProgramOutput {
    let script = format!("{before}; exec \"$0\" {words}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_gapless")]).current_dir(directory).output().unwrap().into()
}

#[test]
fn own_lack_of_descriptors_is_named() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let _running = sequencer(here);
    let told: Vec<String> = std::thread::scope(|scope| {
        let tail = |limit| {
            move || {
                limited(here, &format!("ulimit -n {limit}"), "stream tail --config stream.toml --no-follow --timeout 1")
                    .stderr
            }
        };
        let tails: Vec<_> = (4..14).map(|limit| scope.spawn(tail(limit))).collect();
        tails.into_iter().map(|tail| tail.join().unwrap()).collect()
    });
    assert!(told.iter().any(|told| told.contains("no room for the descriptors that were sent to it")), "{told:?}");
    assert!(!told.iter().any(|told| told.contains("a welcome without")), "{told:?}");
}

#[test]
fn closed_input_is_not_empty_input() {
    let directory = tempfile::tempdir().unwrap();
    let publish = "stream publish --directory d <&-";
    assert_eq!(limited(directory.path(), ":", publish).error(1), "gapless: standard input: it is closed\n");
    let node = "stream node --directory d <&-";
    assert_eq!(limited(directory.path(), ":", node).error(1), "gapless: standard input: it is closed\n");
}

#[test]
fn file_size_limit_is_named() {
    let directory = tempfile::tempdir().unwrap();
    // 4 MiB, in blocks of 512 bytes.
    let said = limited(directory.path(), "ulimit -f 8192", "stream sequencer --directory orders").error(75);
    assert!(said.contains("orders") && said.contains("File too large"), "{said}");
}

#[test]
fn shortage_exits_with_75() {
    let directory = tempfile::tempdir().unwrap();
    for limit in [6, 10, 14] {
        let said =
            limited(directory.path(), &format!("ulimit -n {limit}"), "stream sequencer --directory orders").error(75);
        assert!(said.contains("Too many open files"), "{said}");
    }
    let said = limited(directory.path(), "ulimit -n 6", "serve --directory domain upper -- cat").error(75);
    assert!(said.contains("Too many open files"), "{said}");
}

#[test]
fn unwritable_output_stops_nothing() {
    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "lines", &["one".to_owned()]);
    for redirection in [">/dev/full 2>/dev/full", ">&- 2>&-"] {
        let script = format!("exec \"$0\" stream sequencer --config stream.toml {redirection}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_gapless")]).current_dir(here).stdin(Stdio::null());
        let mut sequencer = Process::start_as(&mut command);
        stream(here, "publish lines").good();
        sequencer.interrupt();
        assert!(sequencer.wait_end("a sequencer that is interrupted").success(), "{redirection}");
    }
}

#[test]
fn tier_memory_hides_no_journal() {
    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "lines", &["old".to_owned()]);
    let mut running = sequencer(here);
    stream(here, "publish lines").good();
    running.interrupt();
    assert!(running.wait_end("a sequencer that is interrupted").success());
    let file = std::fs::read_to_string(here.join("stream.toml")).unwrap();
    let file = file.replace("[stream]\n", "[stream]\ntier = \"memory\"\n");
    let file: String = file
        .lines()
        .filter(|line| !line.contains("journal") && !line.contains("segment"))
        .fold(String::new(), |text, line| text + line + "\n");
    std::fs::write(here.join("stream.toml"), file).unwrap();
    let refused = stream(here, "sequencer").error(1);
    assert!(refused.contains("stream/journal") && refused.contains("choose another directory"), "{refused}");
    let replayed = stream(here, "replay").error(1);
    assert!(replayed.contains("--rewind"), "{replayed}");
}

#[test]
fn hard_link_copy_is_independent() {
    let directory = configured("shared-memory");
    let here = directory.path();
    write_lines(here, "lines", &["one".to_owned()]);
    write_lines(here, "more", &["two".to_owned()]);
    let mut running = sequencer(here);
    stream(here, "publish lines").good();
    running.interrupt();
    assert!(running.wait_end("a sequencer that is interrupted").success());
    assert!(Command::new("cp").args(["-al", "stream", "copy"]).current_dir(here).status().unwrap().success());
    run(here, &["journal", "restore", "copy"]).good();
    let mut copy = Process::start(&mut gapless(here, &["stream", "sequencer", "--directory", "copy"]));
    copy.line();
    run(here, &["stream", "publish", "--directory", "copy", "more"]).good();
    let _original = sequencer(here);
    assert!(!stream(here, "replay --raw").good().contains("two"));
    let copied = run(here, &["stream", "replay", "--directory", "copy", "--raw"]).good();
    assert!(copied.contains("one") && copied.contains("two"), "{copied}");
    run(here, &["journal", "verify", "copy"]).good();
}
