use crate::ledger_process::{Place, Run, example, shipped_transfers};
use std::process::Command;

const GOOD: &[u8] = b"id,from,to,amount,note\n1,,ann,10.00,\n";

fn assert_error(command: &mut Command, parts: &[&str]) {
    let ended = Run::start(command).end();
    let error = ended.error(1);
    assert!(error.starts_with("error: ") && error.lines().count() == 1, "not one line: {error}");
    for part in parts {
        assert!(error.contains(part), "{part} is expected in: {error}");
    }
}

#[test]
fn faults_of_the_file() {
    let place = Place::with(GOOD);
    let missing = place.path().join("missing.csv");
    assert_error(&mut place.command_on(&missing, &[]), &["missing.csv", "No such file"]);
    assert_error(&mut place.command_on(place.path(), &[]), &["is not a regular file"]);
    assert_error(&mut place.command_on("/dev/null".as_ref(), &[]), &["/dev/null is not a regular file"]);
    let pipe = place.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    assert_error(&mut place.command_on(&pipe, &[]), &["pipe is not a regular file"]);
    for (content, parts) in [
        (&b""[..], ["transfers.csv is empty", "id,from,to,amount,note"]),
        (b"1,,ann,10.00,\n", ["transfers.csv, line 1: the header id,from,to,amount,note", "found: 1,,ann,10.00,"]),
        (b"\xff\n\n", ["line 1: the header", "found: \u{fffd}"]),
        (&[b'x'; 100_000], ["line 1: the header", "xxxx…"]),
    ] {
        assert_error(&mut Place::with(content).command(&[]), &parts);
    }
    assert!(!place.path().join("ledger").exists(), "a wrong file makes no ledger");
}

#[test]
fn faults_of_the_directory() {
    let place = Place::with(GOOD);
    let file = place.path().join("ledger");
    std::fs::write(&file, "not a directory").unwrap();
    assert_error(&mut place.command(&[]), &[file.to_str().unwrap(), "Not a directory"]);
    std::fs::remove_file(&file).unwrap();
    assert_error(
        Command::new(example("ledger")).arg(&place.file).args(["--directory", "/proc/ledger"]),
        &["/proc/ledger", "No such file"],
    );
}

#[test]
fn directory_in_use() {
    let place = Place::with(&shipped_transfers());
    let mut holder = Run::start(&mut place.command(&["--lines-per-second", "10"]));
    assert!(holder.hear(), "it has begun");
    let holder_id = format!("process {} (ledger)", holder.id());
    let directory = place.path().join("ledger");
    assert_error(&mut place.command(&[]), &[directory.to_str().unwrap(), "in use by", &holder_id]);
    holder.signal(rustix::process::Signal::KILL);
    assert!(holder.wait().was_killed());
    assert!(place.run(&[]).report().contains("9999 lines taken"), "the dead hold no lock");
}

#[test]
fn damaged_journal() {
    let place = Place::with(&shipped_transfers());
    place.run(&[]).report();
    for snapshot in std::fs::read_dir(place.path().join("ledger/snapshots")).unwrap() {
        std::fs::remove_file(snapshot.unwrap().path()).unwrap();
    }
    let segment = place.path().join("ledger/journal/00000000000000000001.segment");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[300_000] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    assert_error(&mut place.command(&[]), &["00000000000000000001.segment", "corrupt"]);
}

#[test]
fn faults_of_options() {
    let place = Place::with(GOOD);
    for (options, parts) in [
        (&["--tier", "quorum"][..], ["--tier", "needs a cluster"]),
        (&["--tier", "disk"], ["--tier", "expected memory, journal or sync"]),
        (&["--lines-per-second", "0"], ["--lines-per-second", "0 is not in 1.."]),
        (&["--lines-per-second", "fast"], ["--lines-per-second", "invalid digit"]),
        (&["--unknown"], ["--unknown", "Usage: ledger"]),
        (&["another.csv"], ["another.csv", "Usage: ledger"]),
    ] {
        let ended = place.run(options);
        let error = ended.error(2);
        assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} are expected in: {error}");
    }
    assert!(!place.path().join("ledger").exists(), "a wrong option makes no ledger");
    let nothing = Run::start(&mut Command::new(example("ledger"))).end();
    assert!(nothing.error(2).contains("<FILE>"), "{}", nothing.err);
    let help = Run::start(Command::new(example("ledger")).arg("--help")).end().report();
    for part in ["--directory", "--tier", "--lines-per-second", "Examples:", "id,from,to,amount,note"] {
        assert!(help.contains(part), "{part} is expected in: {help}");
    }
}

#[test]
fn unread_report_is_no_error() {
    let place = Place::with(&shipped_transfers());
    let mut child = place
        .command(&["--tier", "memory"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}
