#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, run};
use gapless::Message;
use gapless::rpc::{CallContext, CallOptions, CallerOptions, Domain, DomainOptions, Reach, Rejection, ServedRoute};
use gapless_testkit::process::Process;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

#[derive(serde::Serialize, serde::Deserialize, Message)]
struct Add {
    left: i64,
    right: i64,
}

fn calculator(folder: &TempDir) -> (Domain, ServedRoute) {
    let options = DomainOptions { process_name: Some("calculator".to_owned()), ..DomainOptions::default() };
    let domain = Domain::open_directory(folder.path().join("domain"), options).unwrap();
    let add = |add: Add, context: &CallContext| -> Result<i64, Rejection> {
        let twice = context.headers().get("twice").is_some();
        let sum = add.left.checked_add(add.right).ok_or_else(|| Rejection::from("the sum is too large"))?;
        Ok(if twice { sum * 2 } else { sum })
    };
    let route = domain.serve("calculator/add").workers(3).version("1.2").metadata("team", "blue");
    let served = route.handle(add).unwrap();
    (domain, served)
}

fn here(folder: &Path, words: &[&str]) -> ProgramOutput {
    let words: Vec<&str> = [words[0], "--directory", "domain"].into_iter().chain(words[1..].iter().copied()).collect();
    run(folder, &words)
}

fn serving(folder: &Path, words: &[&str]) -> Process {
    let words: Vec<&str> = ["serve", "--directory", "domain"].into_iter().chain(words.iter().copied()).collect();
    let mut process = Process::start(gapless(folder, &words).stderr(Stdio::inherit()));
    let line = process.line();
    assert!(line.contains(" is served"), "{line}");
    process
}

fn piped(folder: &Path, words: &[&str], input: &[u8]) -> std::process::Output {
    let mut command = gapless(folder, &["call", "--directory", "domain"]);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

fn copies_in_top(folder: &Path) -> Vec<Value> {
    let top: Value =
        serde_json::from_str(&run(folder, &["top", "domain", "--interval", "0.05", "--once", "--json"]).good())
            .unwrap();
    top["directories"][0]["routes"].as_array().unwrap().clone()
}

#[test]
fn instance_counters_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let (domain, calculator) = calculator(&folder);
    let folder = folder.path();
    let long = "long/".repeat(25) + "abc";
    let mut cat = serving(folder, &[&long, "--", "cat"]);
    let call = |request: &str| here(folder, &["call", "calculator/add", request]);
    assert_eq!(call(r#"{"left": 2, "right": 3}"#).good(), "5\n");
    call(r#"{"left": 9223372036854775807, "right": 3}"#).error(1);
    let own = domain.caller::<Add, i64>("calculator/add").unwrap();
    assert_eq!(own.call(Add { left: 1, right: 2 }), Ok(3));
    let counted = || {
        let routes: Value = serde_json::from_str(&here(folder, &["routes", "--json"]).good()).unwrap();
        routes.as_array().unwrap().iter().find(|route| route["route"] == "calculator/add").unwrap()["counters"].clone()
    };
    // A handler's time is counted after its answer.
    until("all have ended", || counted()["begun"] == 3 && counted()["in_flight"] == 0);
    let counters = counted();
    let of = |name: &str| counters[name].as_u64().unwrap();
    assert_eq!(
        (of("begun"), of("replied"), of("refused"), of("panicked"), of("queued")),
        (3, 2, 1, 0, 0),
        "{counters}"
    );
    assert!(of("p50_ns") > 0 && of("p50_ns") <= of("p99_ns"), "{counters}");

    let instances = copies_in_top(folder);
    let named: Vec<_> = instances
        .iter()
        .map(|instance| (instance["route"].as_str().unwrap(), instance["counters"]["begun"].as_u64()))
        .collect();
    assert_eq!(named, [("calculator/add", Some(3)), (long.as_str(), Some(0))]);
    assert_eq!(instances[0]["process_id"], std::process::id());
    let text = run(folder, &["top", "domain", "--once"]).good();
    assert!(text.starts_with("domain\nroute "), "no table of nodes where there are none: {text}");
    let row = text.lines().find(|line| line.starts_with("calculator/add")).unwrap_or_default();
    assert!(text.contains("  p99\n") && [" µs", " ms"].iter().any(|unit| row.ends_with(unit)), "{text}");

    cat.kill();
    assert_eq!(copies_in_top(folder).len(), 1, "the row of the dead is gone");
    std::fs::write(folder.join("domain/route-0.counters"), "no counters").unwrap();
    assert_eq!(copies_in_top(folder).len(), 1, "what is no counters file is no row");
    drop(calculator);
    assert_eq!(domain.instance_statistics().unwrap(), []);
    here(folder, &["routes"]).good();
    let left: Vec<_> = std::fs::read_dir(folder.join("domain")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!left.iter().any(|path| path.to_string_lossy().ends_with(".counters")), "{left:?}");
    assert!(run(folder, &["top", "--domain", "../other"]).error(2).contains("no domain's name"));
}

/// All threads: a signal stops one after the other.
fn is_stopped(process_id: &Value) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process_id}/task")).unwrap();
    let stats = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap());
    stats.into_iter().all(|stat| stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T')))
}

fn callers_in_top(folder: &Path) -> Vec<Value> {
    let top: Value =
        serde_json::from_str(&run(folder, &["top", "domain", "--interval", "0.05", "--once", "--json"]).good())
            .unwrap();
    top["directories"][0]["calls"].as_array().unwrap().clone()
}

#[test]
fn caller_counters_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let (domain, _calculator) = calculator(&folder);
    let folder = folder.path();
    let mut cat = serving(folder, &["upper", "--", "tr", "a-z", "A-Z"]);
    let calling = Domain::open_directory(folder.join("domain"), DomainOptions::default()).unwrap();
    let patient = CallOptions { wait_for_route: Some(PATIENCE), timeout: Some(PATIENCE), ..CallOptions::default() };
    let options = CallerOptions { reach: Reach::OtherProcesses, call: patient, ..CallerOptions::default() };
    let upper = calling.caller_with::<Vec<u8>, Vec<u8>>("upper", options.clone()).unwrap();
    assert_eq!(upper.call(b"abc".to_vec()), Ok(b"ABC".to_vec()));
    let hurried = CallOptions { wait_for_route: None, ..CallOptions::default() };
    let nobody = calling.caller_with::<Vec<u8>, Vec<u8>>("nobody", CallerOptions { call: hurried, ..options }).unwrap();
    assert_eq!(nobody.call(Vec::new()).map_err(|error| error.kind()), Err("no_route"));
    let row = |route: &str| callers_in_top(folder).into_iter().find(|row| row["route"] == route).unwrap();
    let row_once = |route: &str, name: &str, value: u64| {
        until_some(name, || Some(row(route)).filter(|row| row["counters"][name] == value))
    };
    let of = |row: &Value, name: &str| row["counters"][name].as_u64().unwrap();
    let called = row_once("upper", "replied", 1);
    assert_eq!(called["process_id"], std::process::id());
    assert_eq!(["offered", "replied", "in_flight", "no_route"].map(|name| of(&called, name)), [1, 1, 0, 0], "{called}");
    assert!(of(&called, "p50_ns") > 0 && of(&called, "p50_ns") <= of(&called, "p99_ns"), "{called}");
    let called = row_once("nobody", "no_route", 1);
    assert_eq!(["offered", "in_flight", "no_route"].map(|name| of(&called, name)), [0, 0, 1], "{called}");
    let text = run(folder, &["top", "domain", "--once"]).good();
    assert!(text.contains("offered/s") && text.contains("nobody"), "{text}");
    let routes: Value = serde_json::from_str(&here(folder, &["routes", "--json"]).good()).unwrap();
    let served = routes.as_array().unwrap().iter().find(|route| route["route"] == "upper").unwrap();
    assert_eq!((of(&served["callers"][0], "replied"), &served["waiting"]), (1, &0.into()), "{served}");
    assert_eq!(domain.caller_statistics().unwrap().len(), 2);

    // A call that its instance does not take is in flight until it is abandoned. Its end is counted a moment after the
    // reply.
    let is_idle = |instance: &Value| {
        instance["route"] != "upper" || instance["counters"]["begun"] == 1 && instance["counters"]["in_flight"] == 0
    };
    until("the end of the handler", || copies_in_top(folder).iter().all(is_idle));
    let upper_instance = copies_in_top(folder).into_iter().find(|instance| instance["route"] == "upper").unwrap();
    cat.signal(Signal::STOP);
    until("the stop of every thread", || is_stopped(&upper_instance["process_id"]));
    let waiting = upper.start(b"abc".to_vec());
    let called = row_once("upper", "in_flight", 1);
    assert_eq!((of(&called, "in_flight"), &called["waiting"]), (1, &1.into()), "{called}");
    drop(waiting);
    let called = row_once("upper", "cancelled", 1);
    assert_eq!((of(&called, "in_flight"), of(&called, "cancelled")), (0, 1), "{called}");
    cat.kill();

    std::fs::write(folder.join("domain/calls-0.counters"), [0xff; 70_000]).unwrap();
    assert_eq!(callers_in_top(folder).len(), 2, "what is no counters file is no row");
    drop((upper, nobody, calling));
    assert_eq!(domain.caller_statistics().unwrap(), []);
    here(folder, &["routes"]).good();
    let left: Vec<_> = std::fs::read_dir(folder.join("domain")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!left.iter().any(|path| path.to_string_lossy().contains("calls-")), "{left:?}");
}

#[test]
fn typed_route_converts_json() {
    let folder = tempfile::tempdir().unwrap();
    let _calculator = calculator(&folder);
    let folder = folder.path();
    let call = |words: &[&str]| here(folder, &[&["call", "calculator/add"], words].concat());
    assert_eq!(call(&[r#"{"left": 2, "right": 3}"#]).good(), "5\n");
    assert_eq!(call(&[r#"{"left": 2, "right": 3}"#, "--header", "twice=yes"]).good(), "10\n");
    std::fs::write(folder.join("sum.json"), "{\"left\": -2,\n \"right\": 1}\n").unwrap();
    assert_eq!(call(&["@sum.json"]).good(), "-1\n");
    let output = piped(folder, &["calculator/add", "-"], br#"{"left": 40, "right": 2}"#);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"42\n"[..]));

    let refused = call(&[r#"{"left": 9223372036854775807, "right": 3}"#]).error(1);
    assert!(refused.contains("the call of calculator/add was refused: the sum is too large"), "{refused}");
    let other = call(&[r#"{"left": 2}"#]).error(1);
    assert!(other.contains("right"), "{other}");
    let no_json = call(&["{left: 2}"]).error(2);
    assert!(no_json.contains("no JSON"), "{no_json}");
    assert!(call(&["null", "--timeout", "0"]).error(2).contains("--timeout"));
    assert!(call(&["null", "--header", "=x"]).error(2).contains("--header"));
    assert!(here(folder, &["call", "no name", "1"]).error(2).contains("no route's name"));
    let nobody = here(folder, &["call", "calculator/subtract", "1"]).error(1);
    assert!(nobody.contains("no instance serves the route calculator/subtract"), "{nobody}");
}

#[test]
fn routes_are_listed_with_instances() {
    let folder = tempfile::tempdir().unwrap();
    drop(Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap());
    let empty = here(folder.path(), &["routes"]);
    assert!(empty.stderr.starts_with("note: no process serves a route"), "{empty:?}");
    assert_eq!(empty.good().lines().count(), 1, "the head alone");
    assert_eq!(here(folder.path(), &["routes", "--json"]).good(), "[]\n");

    let (_domain, served) = calculator(&folder);
    let folder = folder.path();
    let _instance = serving(folder, &["upper", "--workers", "2", "--route-version", "7", "--", "tr", "a-z", "A-Z"]);
    let text = here(folder, &["routes"]).good();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["ROUTE", "VERSION", "REQUEST"], "{text}");
    let process = std::process::id().to_string();
    let expected = ["calculator/add", "1.2", "Add", "→", "i64", "open", "1", "3", "calculator", &process];
    assert_eq!(lines[1], expected, "{text}");
    assert_eq!(lines[2][..8], ["upper", "7", "bytes", "→", "bytes", "open", "1", "2"], "{text}");
    served.suspend().unwrap();
    let json: Value = serde_json::from_str(&here(folder, &["routes", "--json"]).good()).unwrap();
    assert_eq!(json[0]["state"], "suspended");
    assert_eq!(json[0]["metadata"]["team"], "blue");
    assert_eq!(json[1]["workers"], 2);

    let words = ["routes", "--directory", "domain", "--json", "--watch", "0.01"];
    let mut watching = Process::start(gapless(folder, &words).stderr(Stdio::inherit()));
    let first = watching.line();
    served.resume().unwrap();
    until("the change is shown", || watching.line() != first);
    watching.stop_reading();
    assert!(watching.wait_end("a watch whose reader has gone ends").success());
}

#[test]
fn receivers_are_listed_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let (domain, _served) = calculator(&folder);
    let _notices = domain.notices(|_: String, _context| {}).unwrap();
    let folder = folder.path();
    let listed = |more: &[&str]| -> Vec<String> {
        let words = [&["routes", "--json"], more].concat();
        let routes: Vec<Value> = serde_json::from_str(&here(folder, &words).good()).unwrap();
        routes.iter().map(|route| route["route"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&[]), ["calculator/add"]);
    let all = listed(&["--all"]);
    assert_eq!((all.len(), &*all[1]), (2, "calculator/add"), "{all:?}");
    assert!(all[0].starts_with(&format!(".notices/{}.", std::process::id())), "{all:?}");
}

#[test]
fn broadcast_has_outcome_per_instance() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let instances =
        [(); 2].map(|()| serving(folder, &["who", "--json", "--", "sh", "-c", "printf '[\\n%s\\n]\\n' $PPID"]));
    let nobody = here(folder, &["broadcast", "nobody"]).error(1);
    assert!(nobody.contains("no instance serves the route nobody"), "{nobody}");
    let text = here(folder, &["broadcast", "who"]).good();
    let mut expected: Vec<_> =
        instances.iter().map(|instance| format!("{0} [ {0} ]", instance.pid().as_raw_nonzero())).collect();
    let mut lines: Vec<_> = text.lines().collect();
    expected.sort();
    lines.sort_unstable();
    assert_eq!(lines, expected);
    let refusing = serving(folder, &["who", "--", "sh", "-c", "echo not me >&2; exit 4"]);
    let some = here(folder, &["broadcast", "who", "--json"]);
    let objects: Vec<Value> = some.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3, "{some:?}");
    let failed = objects.iter().find(|object| object["process_id"] == refusing.pid().as_raw_nonzero().get()).unwrap();
    assert_eq!(failed["error"], "the call of who was refused with code 4: not me");
    assert_eq!((&failed["kind"], &failed["code"]), (&"refused".into(), &4.into()));
    assert!(some.error(1).contains("1 of 3 instances gave no reply"));
    assert!(here(folder, &["broadcast", "who", "{"]).error(2).contains("no JSON"));
}

#[test]
fn program_is_a_worker() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _upper = serving(folder, &["upper", "--", "tr", "a-z", "A-Z"]);
    assert_eq!(here(folder, &["call", "upper", "hello", "--bytes"]).good(), "HELLO");
    assert_eq!(here(folder, &["call", "upper", "\"hello\""]).good(), "\"HELLO\"\n", "bytes have a form as JSON");
    assert_eq!(here(folder, &["call", "upper", r#"{"a": 1}"#]).good(), "{\"A\": 1}\n", "and may be JSON");
    // More than pipes hold, in both directions at once.
    let long = b"abc\n".repeat(1 << 20);
    let output = piped(folder, &["upper", "-", "--bytes"], &long);
    assert_eq!(output.stdout, b"ABC\n".repeat(1 << 20), "{}", String::from_utf8_lossy(&output.stderr));

    let _deaf = serving(folder, &["deaf", "--", "true"]);
    assert_eq!(piped(folder, &["deaf", "-", "--bytes"], &long).status.code(), Some(0));
    let script = "head -c 1000000 /dev/zero | tr '\\0' 'x' >&2; exit 9";
    let _loud = serving(folder, &["loud", "--", "sh", "-c", script]);
    let refused = here(folder, &["call", "loud"]).error(1);
    assert!(refused.starts_with("gapless: the call of loud was refused with code 9: xxxx"), "{refused}");
    let _mortal = serving(folder, &["mortal", "--", "sh", "-c", "kill -9 $$"]);
    assert!(here(folder, &["call", "mortal"]).error(1).contains("refused with code 137: "));
    let _endless = serving(folder, &["endless", "--", "cat", "/dev/zero"]);
    assert!(here(folder, &["call", "endless", "--timeout", "60"]).error(1).contains("longer than 16 MiB"));
    let _json = serving(folder, &["json", "--json", "--", "cat"]);
    assert_eq!(here(folder, &["call", "json", "[1, 2]"]).good(), "[1, 2]\n");
    let _wrong = serving(folder, &["wrong", "--json", "--", "echo", "no json"]);
    assert!(here(folder, &["call", "wrong"]).error(1).contains("is no JSON"));

    assert!(here(folder, &["serve", "x"]).error(2).contains("COMMAND"));
    assert!(here(folder, &["serve", "x", "--workers", "0", "--", "cat"]).error(2).contains("--workers"));
    assert!(here(folder, &["serve", "no name", "--", "cat"]).error(2).contains("no route's name"));
}

#[test]
fn late_request_ends_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A child of the worker would hold its output open.
    let script = "read word; if [ $word = slow ]; then sleep 1000 & sleep 1000; fi; echo $word";
    let _instance = serving(folder, &["echo", "--", "sh", "-c", script]);
    let late = here(folder, &["call", "echo", "slow", "--bytes", "--timeout", "0.5"]).error(1);
    // Server and caller may report first.
    let ends = ["no reply from echo within 500 ms", "its caller no longer waits"];
    assert!(ends.iter().any(|end| late.contains(end)), "{late}");
    assert_eq!(here(folder, &["call", "echo", "fast", "--bytes", "--timeout", "60"]).good(), "fast\n");
}

#[test]
fn begun_request_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let script = "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo done";
    let mut instance = serving(folder, &["slow", "--", "sh", "-c", script]);
    let words = ["call", "--directory", "domain", "slow", "x", "--bytes", "--timeout", "60"];
    let mut call = Process::start(gapless(folder, &words).stderr(Stdio::inherit()));
    until("its process runs", || folder.join("begun").exists());
    instance.interrupt();
    until("it takes nothing new", || here(folder, &["routes"]).good().contains(" draining "));
    std::fs::write(folder.join("go"), "").unwrap();
    assert_eq!(call.line(), "done");
    assert!(call.wait_end("the call").success());
    assert!(instance.wait_end("the instance").success(), "an end by Ctrl-C is not an error");
}

#[test]
fn closed_pipe_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _instance = serving(folder, &["echo", "--", "cat"]);
    for words in [&["call", "echo", "x", "--bytes"][..], &["broadcast", "echo", "\"x\""], &["routes"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let words = [&[words[0], "--directory", "domain"], &words[1..]].concat();
        let output = gapless(folder, &words).stdout(writer).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    }
}

#[test]
fn domain_is_found_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let command = |words: &[&str], domain: Option<&str>| {
        let mut command = gapless(folder, words);
        command.env("XDG_RUNTIME_DIR", folder).env_remove("GAPLESS_DOMAIN");
        if let Some(domain) = domain {
            command.env("GAPLESS_DOMAIN", domain);
        }
        command
    };
    let words = ["serve", "echo", "--domain", "trading", "--", "cat"];
    let mut instance = Process::start(command(&words, None).stderr(Stdio::inherit()));
    instance.line();
    let run = |words: &[&str], domain| ProgramOutput::from(command(words, domain).output().unwrap());
    assert_eq!(run(&["call", "echo", "1", "--domain", "trading"], None).code, Some(1), "a number is no bytes");
    assert_eq!(run(&["call", "echo", "\"1\"", "--domain", "trading"], None).good(), "\"1\"\n");
    assert_eq!(run(&["call", "echo", "\"1\""], Some("trading")).good(), "\"1\"\n");
    let other = run(&["call", "echo", "\"1\""], None).error(1);
    assert!(other.contains("there is no domain default") && other.ends_with(": there is trading\n"), "{other}");
    let both = run(&["routes", "--domain", "trading", "--directory", "d"], None).error(2);
    assert!(both.contains("--directory"), "{both}");
    assert!(run(&["routes", "--domain", "../x"], None).error(2).contains("../x"));
}

#[test]
fn instance_survives_file_removal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["serve", "--directory", "domain", "upper", "--", "tr", "a-z", "A-Z"];
    let mut instance = Process::start(&mut gapless(folder, &words));
    instance.line();
    assert_eq!(here(folder, &["call", "upper", "\"a\""]).good(), "\"A\"\n");
    for entry in std::fs::read_dir(folder.join("domain")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    until("it is found again", || here(folder, &["call", "upper", "\"a\"", "--wait", "1"]).code == Some(0));
}
