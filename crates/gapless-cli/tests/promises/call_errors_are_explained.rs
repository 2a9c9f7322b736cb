//! Errors are one line; exit code 2 for invalid input, 1 without a result.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, names, run};
use gapless::rpc::{Domain, DomainOptions, Refusal, ServedRoute};
use gapless_testkit::process::Process;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

/// Route `refuse` refuses each request with the request as the text.
fn refusing(folder: &Path) -> (Domain, ServedRoute) {
    let domain = Domain::open_directory(folder.join("domain"), DomainOptions::default()).unwrap();
    let refuse = |request: Vec<u8>, _: &_| -> Result<Vec<u8>, _> {
        Err(Refusal::new(7, String::from_utf8_lossy(&request)).into())
    };
    let served = domain.serve("refuse").handle(refuse).unwrap();
    (domain, served)
}

fn here(folder: &Path, words: &[&str]) -> ProgramOutput {
    run(folder, &[words, &["--directory", "domain"]].concat())
}

#[test]
fn missing_route_can_be_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let _domain = refusing(folder.path());
    let folder = folder.path();
    let nobody = here(folder, &["call", "nobody"]).error(1);
    assert_eq!(
        nobody, "gapless: no instance serves the route nobody: start one, or wait for one with --wait SECONDS\n",
        "no name of the library"
    );
    for words in [&["call", "nobody", "--wait", "0.01"][..], &["broadcast", "nobody"]] {
        assert_eq!(
            here(folder, words).error(1),
            "gapless: no instance serves the route nobody\n",
            "what helps is not there"
        );
    }
}

#[test]
fn stopped_instance_is_named_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut serve = gapless(folder, &["serve", "up", "--directory", "domain", "--", "cat"]);
    let mut instance = Process::start(serve.stderr(Stdio::inherit()));
    assert!(instance.line().contains(" is served"));
    instance.stop();
    let process_id = instance.pid().as_raw_nonzero();
    // Not longer than discovery, which takes up to a second: after it a broadcast lists the silent instance instead.
    for command in ["call", "broadcast"] {
        let late = here(folder, &[command, "up", "--timeout", "1"]).error(1);
        assert!(late.starts_with("gapless: no reply from up within "), "{late}");
        let cause = format!(" ms; the instance of process {process_id} did not take the call");
        // A program that was held up adds that the connection has timed out.
        assert!(late.contains(&cause), "{late}");
    }
    instance.kill();
}

#[test]
fn looking_and_calling_make_no_domain() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let in_domain = |words: &[&str], name: &str| {
        let mut command = gapless(folder, &[words, &["--domain", name]].concat());
        ProgramOutput::from(command.env("XDG_RUNTIME_DIR", folder).env_remove("GAPLESS_DOMAIN").output().unwrap())
    };
    let all =
        [&["routes"][..], &["routes", "--json"], &["routes", "--watch"], &["call", "echo"], &["broadcast", "echo"]];
    let all = all.into_iter().chain([&["top", "--once"][..]]);
    for words in all.clone() {
        let said = in_domain(words, "tradign").error(1);
        let place = folder.join("gapless");
        assert!(said.contains(&format!("there is no domain tradign in {}", place.display())), "{words:?}: {said}");
        assert!(said.contains("there is none yet; `gapless serve` makes one"), "{words:?}: {said}");
        assert_eq!(names(folder), [""; 0], "{words:?} made something");
    }
    std::fs::create_dir(folder.join("gapless")).unwrap();
    for name in ["trading", "shop", ".hidden", "no domain"] {
        std::fs::create_dir(folder.join("gapless").join(name)).unwrap();
    }
    std::fs::write(folder.join("gapless/file"), "").unwrap();
    for words in all {
        let said = in_domain(words, "tradign").error(1);
        assert!(said.ends_with(": there are shop, trading\n"), "{words:?}: {said}");
    }
    for number in 0..20 {
        std::fs::create_dir(folder.join(format!("gapless/more-{number}"))).unwrap();
    }
    let said = in_domain(&["routes"], "tradign").error(1);
    assert!(said.contains(": there are more-0, ") && said.ends_with(" and 12 more\n"), "{said}");

    for words in [&["routes"][..], &["call", "echo"], &["broadcast", "echo"]] {
        let said = here(folder, words).error(1);
        assert!(said.contains("domain: there is no such directory"), "{words:?}: {said}");
    }
    assert_eq!(names(folder), ["gapless"]);
    let mut named = gapless(folder, &["routes"]);
    let said = ProgramOutput::from(named.env("GAPLESS_DOMAIN", "a/b").output().unwrap()).error(2);
    assert!(said.contains("GAPLESS_DOMAIN") && said.contains("\"a/b\" is no domain's name"), "{said}");
}

#[test]
fn missing_domain_can_be_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["call", "--directory", "domain", "echo", "x", "--bytes", "--timeout", "60", "--wait", "60"];
    let mut call = Process::start(gapless(folder, &words).stderr(Stdio::inherit()));
    let late = here(folder, &["call", "echo", "x", "--bytes", "--wait", "0.05"]).error(1);
    assert!(late.contains("there is no such directory"), "{late}");
    let mut instance = Process::start(
        gapless(folder, &["serve", "--directory", "domain", "echo", "--", "cat"]).stderr(Stdio::inherit()),
    );
    instance.line();
    assert_eq!(call.line(), "x");
    assert!(call.wait_end("the call").success());
}

#[test]
fn lost_output_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (called, folder) = (std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0)), folder.path());
    let count = std::sync::Arc::clone(&called);
    let echo = move |request: Vec<u8>, _: &_| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(request)
    };
    let _served = domain.serve("echo").handle(echo).unwrap();
    let place = ["--directory", "domain"];
    let commands = [
        [&["call", "echo", "x", "--bytes"][..], &place].concat(),
        [&["call", "echo", "\"x\""][..], &place].concat(),
        [&["broadcast", "echo", "\"x\""][..], &place].concat(),
        [&["routes"][..], &place].concat(),
        [&["routes", "--json"][..], &place].concat(),
        [&["routes", "--watch"][..], &place].concat(),
        vec!["top", "domain", "--interval", "0.05", "--once"],
        vec!["top", "domain", "--interval", "0.05", "--once", "--json"],
        vec!["top", "domain", "--interval", "0.05"],
        vec!["--help"],
    ];
    for words in &commands {
        let mut closed = std::process::Command::new("sh");
        closed.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_gapless")]).args(words).current_dir(folder);
        let said = ProgramOutput::from(closed.output().unwrap()).error(1);
        assert!(said.contains("standard output: it is closed"), "{words:?}: {said}");
    }
    assert_eq!(called.load(std::sync::atomic::Ordering::SeqCst), 0, "it is not even called");
    for words in &commands {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let said = ProgramOutput::from(gapless(folder, words).stdout(full).output().unwrap()).error(1);
        assert!(said.contains("standard output: No space left on device"), "{words:?}: {said}");
        let nowhere = File::options().read(true).write(true).open("/dev/null").unwrap();
        if !words.contains(&"--watch") && (words[0] != "top" || words.contains(&"--once")) {
            ProgramOutput::from(gapless(folder, words).stdout(nowhere).output().unwrap()).good();
        }
    }
}

#[test]
fn full_instance_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut instance = Process::start(&mut gapless(folder, &["serve", "--directory", "domain", "echo", "--", "cat"]));
    instance.line();
    instance.stop();
    let socket = names(&folder.join("domain")).into_iter().find(|name| name.ends_with(".sock")).unwrap();
    let address = SocketAddrUnix::new(folder.join("domain").join(socket)).unwrap();
    let mut waiting = Vec::new();
    loop {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        match connect(&connection, &address) {
            Ok(()) => waiting.push(connection),
            Err(Errno::AGAIN) => break,
            Err(errno) => panic!("{errno}"),
        }
    }
    let said = here(folder, &["call", "echo", "\"x\"", "--timeout", "5"]).error(1);
    let process = format!("process {}", instance.pid().as_raw_nonzero());
    assert!(said.contains(&process), "behind {} others: {said}", waiting.len());
    let routes = here(folder, &["routes"]);
    assert!(format!("{routes:?}").contains(&process), "{routes:?}");
}

#[test]
fn foreign_text_is_escaped_and_cut() {
    let folder = tempfile::tempdir().unwrap();
    let _domain = refusing(folder.path());
    let folder = folder.path();
    std::fs::write(folder.join("zeros"), [0; 8 << 10]).unwrap();
    for command in ["call", "broadcast"] {
        let ended = here(folder, &[command, "refuse", r#""no\u001b[2J""#]);
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert!(text.contains(r"the call of refuse was refused with code 7: no\u{1b}[2J"), "{text}");
        assert_eq!(ended.code, Some(1));
    }
    let said = here(folder, &["call", "refuse", "@zeros", "--bytes"]).error(1);
    assert!(said.starts_with(r"gapless: the call of refuse was refused with code 7: \0\0\0"), "{said}");
    assert!(said.len() < 1_100 && said.ends_with(" bytes more\n"), "{} bytes: {said}", said.len());

    let long = "x".repeat(100_000);
    for words in [
        &["call", &long][..],
        &["broadcast", &long],
        &["serve", &long, "--", "cat"],
        &["call", "a", "--timeout", &long],
    ] {
        let said = run(folder, words).error(2);
        assert!(said.contains("… (100000 bytes)") || said.contains("xxx… (100002 bytes)"), "{said}");
        assert!(said.len() < 500, "{} bytes", said.len());
    }
}

#[test]
fn invalid_input_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let _domain = refusing(folder.path());
    let folder = folder.path();
    File::create(folder.join("long")).unwrap().set_len((16 << 20) + 1).unwrap();
    File::create(folder.join("longest")).unwrap().set_len(16 << 20).unwrap();
    let header = format!("x={}", "y".repeat(17 << 10));
    for (words, expected) in [
        (&["call", "refuse", "@nofile"][..], "gapless: @nofile: No such file or directory"),
        (&["broadcast", "refuse", "@nofile"], "gapless: @nofile: No such file or directory"),
        (&["call", "refuse", "@long"], "@long: more than the 16 MiB"),
        (&["call", "refuse", "@long", "--bytes"], "@long: more than the 16 MiB"),
        (&["broadcast", "refuse", "@long"], "@long: more than the 16 MiB"),
        (&["call", "refuse", "1", "--header", &header], "--header: headers of 17415 bytes; at most 16384"),
        (&["call", "refuse", "{"], "the request is no JSON"),
        (&["call", "refuse", "long"], "; @long sends the file"),
        (&["call", "refuse", &format!("@{}", "x".repeat(100_000))], " bytes more"),
        (&["call", "refuse", "--byte"], "--byte"),
        (&["call", "../x", "1"], "\"../x\" is no route's name"),
        (&["call", "a\u{1b}b", "1"], r#""a\u{1b}b" is no route's name"#),
        (&["broadcast", " "], "\" \" is no route's name"),
        (&["routes", "a b"], "\"a b\" is no route's name"),
        (&["routes", ""], "\"\" is no route's name"),
        (&["routes", "../x"], "\"../x\" is no route's name"),
        (&["call", "refuse", "--key", "-1"], "0 to 18446744073709551615 are possible"),
        (&["call", "refuse", "--key", "99999999999999999999"], "0 to 18446744073709551615 are possible"),
        (&["routes", "drain", "refuse", "--pid", "-1"], "process ids 1 to 4194304 are possible"),
        (&["routes", "drain", "refuse", "--pid", "0"], "process ids 1 to 4194304 are possible"),
    ] {
        let said = here(folder, words).error(2);
        assert!(said.contains(expected) && said.len() < 9_000, "{words:?}: {said}");
    }
    let mut closed = std::process::Command::new("sh");
    closed.args(["-c", "exec \"$0\" call refuse - --bytes --directory domain <&-", env!("CARGO_BIN_EXE_gapless")]);
    let said = ProgramOutput::from(closed.current_dir(folder).output().unwrap()).error(2);
    assert_eq!(said, "gapless: standard input: it is closed\n");
    let mut raw = gapless(folder, &["call", "refuse", "--bytes", "--directory", "domain"]);
    raw.arg(std::ffi::OsStr::from_bytes(b"\xff"));
    let said = ProgramOutput::from(raw.output().unwrap()).error(1);
    assert!(said.ends_with("with code 7: \u{fffd}\n"), "bytes are sent as they are: {said}");
    here(folder, &["call", "refuse", "@longest", "--bytes", "--header", "x=y"]).error(1);
    here(folder, &["call", "refuse", "-12"]).error(1);

    let timed = [
        &["call", "a", "--timeout"][..],
        &["call", "a", "--wait"],
        &["broadcast", "a", "--timeout"],
        &["top", "--interval"],
    ];
    for value in ["-1", "0", "1e300", "NaN", "inf", "-inf", "junk", "", "1s"] {
        for words in timed.iter().copied().chain([&["routes", "--watch"][..]]) {
            if value == "-inf" && words.contains(&"--watch") {
                continue;
            }
            let said = run(folder, &[words, &[value]].concat()).error(2);
            assert!(said.contains("to 86400 seconds are possible"), "{words:?} {value}: {said}");
        }
        let said = run(folder, &["serve", "a", "--workers", value, "--", "cat"]).error(2);
        assert!(said.contains("1 to 4096 workers are possible"), "{value}: {said}");
    }
}

#[test]
fn unstartable_program_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("plain"), "#!/bin/sh\n").unwrap();
    std::fs::create_dir(folder.join("bin")).unwrap();
    for name in ["tool", "locked"] {
        std::fs::write(folder.join("bin").join(name), "#!/bin/sh\ncat\n").unwrap();
    }
    std::fs::set_permissions(folder.join("bin/tool"), PermissionsExt::from_mode(0o755)).unwrap();
    let serve = |program: &str| {
        let mut command = gapless(folder, &["serve", "--directory", "domain", "x", "--", program]);
        command.env("PATH", format!("{}:/no/such/folder", folder.join("bin").display()));
        command
    };
    for (program, expected) in [
        ("no-such-program", "no-such-program: no such program in the directories of PATH"),
        ("plain", "plain: no such program in the directories of PATH; the one here is ./plain"),
        ("./nothing", "./nothing: No such file or directory"),
        ("./plain", "./plain: it cannot be executed: Permission denied"),
        ("./bin", "./bin: it is no file"),
        ("locked", "bin/locked: it cannot be executed"),
        ("", "the program's name is empty"),
    ] {
        let said = ProgramOutput::from(serve(program).output().unwrap()).error(2);
        assert!(said.contains(expected), "{program:?}: {said}");
    }
    assert_eq!(names(folder), ["bin", "plain"], "no domain was made");
    for program in ["tool", "./bin/tool"] {
        let mut instance = Process::start(serve(program).stderr(Stdio::inherit()));
        assert!(instance.line().contains(" is served"), "{program}");
        instance.kill();
    }
}
