use gapless_testkit::process::started_as;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::Write;
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
        let active = File::create(folder.join(format!("active.{process}"))).unwrap();
        // The kernel closes the files of a dying process one after the other.
        let is_alone = (0..200).any(|_| {
            let is_alone = flock(&active, FlockOperation::NonBlockingLockExclusive).is_ok();
            std::thread::sleep(Duration::from_millis(u64::from(!is_alone)));
            is_alone
        });
        if !is_alone {
            note(folder, DOUBLES, &format!("{instance} {incarnation} {} beside another", std::process::id()));
        }
        std::mem::forget(active);
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
