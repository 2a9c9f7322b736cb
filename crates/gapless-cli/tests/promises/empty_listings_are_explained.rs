//! A command that sees nothing or lacks permission names the reason and the process, changes nothing, and prints
//! nothing that moves the cursor.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, run};
use gapless::rpc::{Domain, DomainOptions};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until_some;
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, send, socket_with,
};
use std::fs::{File, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

fn here(folder: &Path, words: &[&str]) -> ProgramOutput {
    run(folder, &[words, &["--directory", "domain"]].concat())
}

fn serving(folder: &Path) -> Process {
    let words = ["serve", "--directory", "domain", "up", "--", "cat"];
    let mut process = Process::start(gapless(folder, &words).stderr(Stdio::inherit()));
    assert!(process.line().contains(" is served"));
    process
}

struct FalseInstance {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _lock: File,
}

impl FalseInstance {
    fn that_says(domain: &Path, bytes: &'static [u8]) -> Self {
        let name = format!("copy-{:032x}", 7);
        let lock = File::create(domain.join(format!("{name}.lock"))).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        bind(&socket, &SocketAddrUnix::new(domain.join(format!("{name}.sock"))).unwrap()).unwrap();
        listen(&socket, 16).unwrap();
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut open = Vec::new();
            while !ends.load(Ordering::SeqCst) {
                match accept_with(&socket, SocketFlags::CLOEXEC) {
                    Ok(connection) if !bytes.is_empty() => {
                        let _ = send(&connection, bytes, rustix::net::SendFlags::NOSIGNAL);
                        // Closing a socket with unread data would discard the sent bytes.
                        open.push(connection);
                    }
                    Ok(_) => {}
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        Self { is_over, thread: Some(thread), _lock: lock }
    }
}

impl Drop for FalseInstance {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn empty(folder: &Path) -> std::path::PathBuf {
    drop(Domain::open_directory(folder.join("domain"), DomainOptions::default()).unwrap());
    folder.join("domain")
}

#[test]
fn silence_is_not_called_unserved() {
    let folder = tempfile::tempdir().unwrap();
    let domain = empty(folder.path());
    for (bytes, expected) in [(&b""[..], " serves and lets nobody in"), (b"what no instance says", " is closed: ")] {
        let _instance = FalseInstance::that_says(&domain, bytes);
        // The instance may seem to be merely silent on a busy machine.
        let ended = until_some("the closed connection is noticed", || {
            let ended = here(folder.path(), &["routes"]);
            (ended.code != Some(0) || !ended.stderr.contains("no process serves a route")).then_some(ended)
        });
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let (note, error) = ended.stderr.split_once('\n').unwrap();
        assert!(note.starts_with("note: ") && note.contains(expected), "{ended:?}");
        assert!(note.contains(&std::process::id().to_string()), "{ended:?}");
        assert!(error.starts_with("gapless: no process that could be asked serves a route in "), "{ended:?}");
        std::fs::remove_dir_all(&domain).unwrap();
        empty(folder.path());
    }
    let _instance = serving(folder.path());
    // This process may pass on its own descriptors, so the limit rises until the program has enough.
    let (mut refused, mut good) = (0, 0);
    for limit in 4.. {
        let script = format!("ulimit -n {limit}; exec \"$0\" routes --directory domain");
        let mut short = Command::new("sh");
        short.args(["-c", &script, env!("CARGO_BIN_EXE_gapless")]).current_dir(folder.path());
        let short = ProgramOutput::from(short.output().unwrap());
        match short.code {
            Some(0) => {
                assert!(short.stdout.contains("\nup "), "{limit}: {short:?}");
                good += 1;
                if good == 4 {
                    break;
                }
            }
            // The loader has no descriptor for a library.
            Some(127) => assert!(refused + good == 0, "{limit}: {short:?}"),
            _ => {
                assert!(short.stderr.contains("Too many open files"), "{limit}: {short:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "no limit was short");
}

#[test]
fn silent_instance_is_named_by_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut instance = serving(folder.path());
    let process_id = instance.pid().as_raw_nonzero();
    instance.stop();
    let is_named = |words: &[&str]| {
        let said = here(folder.path(), words).error(1);
        assert!(said.ends_with(&format!(": process {process_id} does not answer\n")), "{said}");
    };
    let pid = process_id.to_string();
    std::thread::scope(|scope| {
        for change in ["suspend", "resume", "drain"] {
            let pid = &pid;
            scope.spawn(move || is_named(&["routes", change, "up"]));
            scope.spawn(move || is_named(&["routes", change, "up", "--pid", pid]));
        }
    });
    instance.kill();
}

#[test]
fn foreign_ownership_is_reported() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: giving a directory away needs a privilege that this process does not have");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let domain = empty(folder.path());
    std::fs::write(domain.join("copy-00000000000000000000000000000001.lock"), "").unwrap();
    std::os::unix::fs::chown(&domain, Some(12345), None).unwrap();
    for words in [&["routes"][..], &["call", "up"], &["top", "--once"], &["routes", "suspend", "up"]] {
        let said = here(folder.path(), words).error(1);
        assert!(said.contains("it belongs to the user 12345; this process runs as the user 0"), "{words:?}: {said}");
    }
}

#[test]
fn looking_changes_no_mode() {
    let folder = tempfile::tempdir().unwrap();
    let domain = empty(folder.path());
    let mode = || std::fs::metadata(&domain).unwrap().mode() & 0o7777;
    std::fs::set_permissions(&domain, Permissions::from_mode(0o0)).unwrap();
    for words in [&["routes"][..], &["call", "up"], &["broadcast", "up"], &["routes", "drain", "up"]] {
        let said = here(folder.path(), words).error(1);
        assert!(said.contains("its mode is 0000, which closes it to its own user"), "{said}");
        assert_eq!(mode(), 0, "{words:?} has changed the mode");
    }
    std::fs::write(folder.path().join("something"), "").unwrap();
    for (bits, name) in [(0o1777, "domain"), (0o755, ".")] {
        std::fs::set_permissions(folder.path().join(name), Permissions::from_mode(bits)).unwrap();
        for words in [&["routes"][..], &["call", "up"], &["serve", "up"]] {
            let more: &[&str] = if words[0] == "serve" { &["--", "cat"] } else { &[] };
            let said = run(folder.path(), &[words, &["--directory", name], more].concat()).error(1);
            assert!(said.contains("choose another directory") && !said.contains("chmod"), "{words:?}: {said}");
        }
    }
    std::fs::set_permissions(&domain, Permissions::from_mode(0o755)).unwrap();
    std::fs::write(domain.join("copy-00000000000000000000000000000001.lock"), "").unwrap();
    assert!(here(folder.path(), &["routes"]).error(1).contains("chmod 700"));
}

#[test]
fn foreign_text_moves_no_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a\u{1b}[31m\nb\u{202e}";
    let path = folder.path().join(name);
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let routes = || run(folder.path(), &["routes", "--directory", name]);
    assert!(routes().stderr.contains(r"a\u{1b}[31m\nb\u{202e}"), "{:?}", routes());
    let version = "1\u{202e}\u{200f}\u{2066}";
    let _served = domain.serve("up").version(version).handle(|bytes: Vec<u8>, _| Ok(bytes)).unwrap();
    let text = routes().good();
    assert!(text.contains(r" 1\u{202e}\u{200f}\u{2066} "), "{text}");
    let text = run(folder.path(), &["top", name, "--once"]).good();
    assert!(text.starts_with(r"a\u{1b}[31m\nb\u{202e}"), "{text}");
}

#[test]
fn call_output_has_no_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let _instance = serving(folder.path());
    let _false = FalseInstance::that_says(&folder.path().join("domain"), b"what no instance says");
    let words = ["call", "up", "x", "--bytes", "--directory", "domain"];
    let ended = run(folder.path(), &words);
    assert_eq!((&*ended.stderr, &*ended.stdout, ended.code), ("", "x", Some(0)));
    let said = here(folder.path(), &["call", "nobody"]).error(1);
    assert!(said.contains("; the connection to the instance"), "a reason why there is no reply: {said}");
    let asked = ProgramOutput::from(gapless(folder.path(), &words).env("RUST_LOG", "warn").output().unwrap());
    assert!(asked.stderr.contains(" WARN "), "{asked:?}");
}

#[test]
fn waiting_for_input_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let _instance = serving(folder.path());
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let words = ["call", "up", "@fifo", "--bytes", "--directory", "domain"];
    let mut call = gapless(folder.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(call.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "note: waiting for the end of @fifo\n");
    File::options().write(true).open(&fifo).unwrap().write_all(b"x").unwrap();
    let output = call.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"x"[..]));
}

#[test]
fn domain_by_path_and_of_supervisor() {
    let folder = tempfile::tempdir().unwrap();
    let _instance = serving(folder.path());
    let path = folder.path().join("domain");
    let shown = run(folder.path(), &["routes", "--domain", path.to_str().unwrap()]).good();
    assert!(shown.contains("\nup "), "{shown}");
    let top = |words: &[&str]| run(folder.path(), &[&["top", "--once"], words].concat()).good();
    until_some("the instance counts", || {
        let shown = [top(&["--domain", path.to_str().unwrap()]), top(&["--directory", "domain"])];
        shown.iter().all(|shown| shown.contains("\nup ")).then_some(())
    });

    let state = folder.path().join("floor.state");
    std::fs::create_dir_all(state.join("domain")).unwrap();
    std::fs::write(state.join("guardian.lock"), "").unwrap();
    let mut command = gapless(folder.path(), &["routes"]);
    let ended = command.env("XDG_RUNTIME_DIR", folder.path()).env_remove("GAPLESS_DOMAIN").output().unwrap();
    let said = ProgramOutput::from(ended).error(1);
    assert!(said.ends_with(" is --directory floor.state/domain\n"), "{said}");
}
