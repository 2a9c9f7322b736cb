//! The program that the tests have supervised. It notes that it was started, and whether another one of the same copy ran.

use gapless_testkit::process::started_as;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first argument of the program that is a copy.
pub const ROLE: &str = "be-a-copy";
/// Behind it: folder of the notes, copy, incarnation, and one of these.
pub const STAY: &str = "stay";
/// Ends with that status: `exit:7`.
pub const EXIT: &str = "exit:";
/// Closes whatever it has inherited, and stays.
pub const CLOSE: &str = "close";
/// Has a process stay that has left its session and closed whatever it has inherited, and stays.
pub const ESCAPE: &str = "escape";
/// Leaves a process behind that stays, and ends with 3.
pub const LEAVE: &str = "leave";
/// Leaves as many processes behind that end soon, and stays: `leave:1000`.
pub const LEAVE_MANY: &str = "leave:";
/// For copy and incarnation: what it was started as.
pub const OWN: &str = "own";
/// Says that it is ready when the file `ready` is there, and stays.
pub const NOTIFY: &str = "notify";
/// Of a singleton: notes if another copy of its process runs, and stays.
pub const SINGLE: &str = "single";
/// Does not end when it is asked to.
pub const STUBBORN: &str = "stubborn";
/// Prints so many megabytes, as lines with their numbers, then `the last line`, and stays: `print:64`.
pub const PRINT: &str = "print:";
/// No copy stays longer.
const STAYS_MAX: Duration = Duration::from_secs(300);

/// The file in which starts are noted: copy, incarnation and process.
pub const STARTS: &str = "starts";
/// The file for what must not be.
pub const DOUBLES: &str = "doubles";

/// In the folder: the process of the test.
pub const TEST: &str = "test";

/// Whether the test is over, or was killed.
pub fn is_over(folder: &Path) -> bool {
    let test = std::fs::read_to_string(folder.join(TEST));
    !test.is_ok_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
}

/// Appends a line, whole.
pub fn note(folder: &Path, file: &str, line: &str) {
    let opened = File::options().append(true).create(true).open(folder.join(file));
    // A test that is over has removed the folder.
    let Ok(mut opened) = opened else { return };
    opened.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// What its lock says that it is.
fn own_name(folder: &Path) -> (String, String) {
    let copy = std::env::var("GAPLESS_COPY").unwrap();
    let record = std::fs::read_to_string(folder.join("state/copies").join(&copy).join("lock")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    (copy, record["incarnation"].to_string())
}

/// Prints so many bytes. A disk that is full is none of its affair.
fn print(bytes: usize) {
    let (mut number, mut printed) = (0_u64, 0);
    while printed < bytes {
        let mut piece = String::new();
        while piece.len() < 60_000 {
            piece += &format!("line {number} {}\n", "x".repeat(number as usize % 100));
            number += 1;
        }
        let _ = std::io::stdout().write_all(piece.as_bytes());
        printed += piece.len();
    }
    let _ = writeln!(std::io::stdout(), "the last line");
}

pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let [folder, copy, incarnation, wish] = &arguments[..] else { panic!("{arguments:?}") };
    let folder = Path::new(folder);
    let (copy, incarnation) = &match copy == OWN {
        true => own_name(folder),
        false => (copy.clone(), incarnation.clone()),
    };
    let witness = File::create(folder.join(format!("witness.{copy}"))).unwrap();
    note(folder, STARTS, &format!("{copy} {incarnation} {}", std::process::id()));
    if flock(&witness, FlockOperation::NonBlockingLockExclusive).is_err() {
        note(folder, DOUBLES, &format!("{copy} {incarnation} {}", std::process::id()));
    }
    if wish == SINGLE {
        let process = copy.split('.').next().unwrap();
        let active = File::create(folder.join(format!("active.{process}"))).unwrap();
        // Of one that is dying the kernel closes one file after the other.
        let is_alone = (0..200).any(|_| {
            let is_alone = flock(&active, FlockOperation::NonBlockingLockExclusive).is_ok();
            std::thread::sleep(Duration::from_millis(u64::from(!is_alone)));
            is_alone
        });
        if !is_alone {
            note(folder, DOUBLES, &format!("{copy} {incarnation} {} beside another", std::process::id()));
        }
        std::mem::forget(active);
    }
    // Its log may be full.
    let _ = writeln!(std::io::stdout(), "{copy} {incarnation} runs");
    if wish == ESCAPE {
        let mut escaped = Command::new(std::env::current_exe().unwrap());
        escaped.args([ROLE, folder.to_str().unwrap(), "escaped.1", incarnation, CLOSE]).stdin(Stdio::null());
        // It is waited for by whoever is there then.
        drop(escaped.spawn().unwrap());
    }
    if wish == CLOSE {
        // A launched one leads a session already.
        let _leads_already = rustix::process::setsid();
        let listed = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let numbers = listed.map(|entry| entry.file_name().to_str().unwrap().parse::<i32>().unwrap());
        let numbers = numbers.filter(|number| *number > 2).collect::<Vec<_>>();
        std::mem::forget(witness);
        // One was the listing's own.
        for number in numbers {
            let _ = nix::unistd::close(number);
        }
        note(folder, "closed", "all");
    }
    if wish == NOTIFY {
        while !folder.join("ready").exists() && !is_over(folder) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
        // A supervisor may be killed just now.
        let words = std::fs::read(folder.join("words")).unwrap_or_else(|_| b"READY=1\nSTATUS=fine".to_vec());
        while socket.send_to(&words, std::env::var_os("NOTIFY_SOCKET").unwrap()).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        note(folder, "spoken", copy);
    }
    let _deaf = (wish == STUBBORN).then(|| {
        use nix::sys::signal::{SigSet, Signal};
        SigSet::from_iter([Signal::SIGTERM]).thread_block().unwrap();
        note(folder, "deaf", copy);
    });
    let _served = super::serving_program::served(folder, wish);
    if let Some(status) = wish.strip_prefix(EXIT) {
        std::process::exit(status.parse().unwrap());
    }
    if let Some(count) = wish.strip_prefix(LEAVE_MANY) {
        // Each is left by the shell that made it.
        let script = format!("i=0; while [ $i -lt {count} ]; do (sleep 0.0$((i % 10)) &); i=$((i+1)); done");
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        note(folder, "left", "all");
    }
    if let Some(megabytes) = wish.strip_prefix(PRINT) {
        print(megabytes.parse::<usize>().unwrap() << 20);
        note(folder, "printed", "all");
    }
    if wish == LEAVE {
        let left = Command::new("sleep").arg("300").stdin(Stdio::null()).spawn().unwrap();
        note(folder, "left", &left.id().to_string());
        std::process::exit(3);
    }
    let begun = Instant::now();
    while !is_over(folder) && begun.elapsed() < STAYS_MAX {
        std::thread::sleep(Duration::from_millis(200));
    }
    std::process::exit(0);
}
