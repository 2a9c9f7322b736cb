use gapless_testkit::process::started_as;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const ROLE: &str = "be-an-instance";
/// Last of the arguments directory, instance, incarnation and behaviour.
pub const STAY: &str = "stay";
/// `exit:7`
pub const EXIT: &str = "exit:";
pub const CLOSE: &str = "close";
pub const ESCAPE: &str = "escape";
pub const LEAVE: &str = "leave";
/// `leave:1000`: leaves short-lived children.
pub const LEAVE_MANY: &str = "leave:";
pub const OWN: &str = "own";
pub const NOTIFY: &str = "notify";
pub const SINGLE: &str = "single";
pub const STUBBORN: &str = "stubborn";
/// Megabytes of numbered lines, then `the last line`: `print:64`.
pub const PRINT: &str = "print:";
const STAYS_MAX: Duration = Duration::from_secs(300);
/// Longest death of a process, on a busy machine.
const DIES_WITHIN: Duration = Duration::from_secs(30);

pub const STARTS: &str = "starts";
pub const DOUBLES: &str = "doubles";

pub const TEST: &str = "test";

pub fn is_over(folder: &Path) -> bool {
    let test = std::fs::read_to_string(folder.join(TEST));
    !test.is_ok_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
}

pub fn note(folder: &Path, file: &str, line: &str) {
    let opened = File::options().append(true).create(true).open(folder.join(file));
    let Ok(mut opened) = opened else { return };
    opened.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn own_name(folder: &Path) -> (String, String) {
    let instance = std::env::var("GAPLESS_INSTANCE").unwrap();
    let record = std::fs::read_to_string(folder.join("state/instances").join(&instance).join("lock")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    (instance, record["incarnation"].to_string())
}

/// Ignores a full disk.
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

/// Takes the lock that the active instance keeps; false if that one lives on.
fn becomes_active(lock: &Path) -> bool {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(lock).unwrap();
    let begun = Instant::now();
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let holder = std::fs::read_to_string(lock).unwrap_or_default();
        if lives_on(holder.trim_end()) || begun.elapsed() > DIES_WITHIN {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    file.write_all_at(format!("{:<10}", std::process::id()).as_bytes(), 0).unwrap();
    std::mem::forget(file);
    true
}

/// False for a dying process, whose files the kernel closes one after the other.
fn lives_on(process_id: &str) -> bool {
    const EXITING: u64 = 4;
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    // The state and, six fields later, the flags follow the name, which may contain any character.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut fields = rest.split(' ');
    let (state, flags) = (fields.next(), fields.nth(5).and_then(|flags| flags.parse::<u64>().ok()));
    !matches!(state, Some("Z" | "X")) && flags.is_some_and(|flags| flags & EXITING == 0)
}

pub fn run_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let [folder, instance, incarnation, wish] = &arguments[..] else { panic!("{arguments:?}") };
    let folder = Path::new(folder);
    let (instance, incarnation) = &match instance == OWN {
        true => own_name(folder),
        false => (instance.clone(), incarnation.clone()),
    };
    let witness = File::create(folder.join(format!("witness.{instance}"))).unwrap();
    note(folder, STARTS, &format!("{instance} {incarnation} {}", std::process::id()));
    if flock(&witness, FlockOperation::NonBlockingLockExclusive).is_err() {
        note(folder, DOUBLES, &format!("{instance} {incarnation} {}", std::process::id()));
    }
    if wish == SINGLE {
        let process = instance.split('.').next().unwrap();
        if !becomes_active(&folder.join(format!("active.{process}"))) {
            note(folder, DOUBLES, &format!("{instance} {incarnation} {} beside another", std::process::id()));
        }
    }
    let _ = writeln!(std::io::stdout(), "{instance} {incarnation} runs");
    if wish == ESCAPE {
        let mut escaped = Command::new(std::env::current_exe().unwrap());
        escaped.args([ROLE, folder.to_str().unwrap(), "escaped.1", incarnation, CLOSE]).stdin(Stdio::null());
        drop(escaped.spawn().unwrap());
    }
    if wish == CLOSE {
        let _leads_already = rustix::process::setsid();
        let listed = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let numbers = listed.map(|entry| entry.file_name().to_str().unwrap().parse::<i32>().unwrap());
        let numbers = numbers.filter(|number| *number > 2).collect::<Vec<_>>();
        std::mem::forget(witness);
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
        let words = std::fs::read(folder.join("words")).unwrap_or_else(|_| b"READY=1\nSTATUS=fine".to_vec());
        while socket.send_to(&words, std::env::var_os("NOTIFY_SOCKET").unwrap()).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        note(folder, "spoken", instance);
    }
    let _deaf = (wish == STUBBORN).then(|| {
        use nix::sys::signal::{SigSet, Signal};
        SigSet::from_iter([Signal::SIGTERM]).thread_block().unwrap();
        note(folder, "deaf", instance);
    });
    let _served = super::serving_program::served(folder, wish);
    if let Some(status) = wish.strip_prefix(EXIT) {
        std::process::exit(status.parse().unwrap());
    }
    if let Some(count) = wish.strip_prefix(LEAVE_MANY) {
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
