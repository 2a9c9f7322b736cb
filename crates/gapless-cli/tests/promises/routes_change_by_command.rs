#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, run};
use gapless::Message;
use gapless::rpc::{Domain, DomainOptions};
use gapless_testkit::process::Process;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

fn here(folder: &Path, words: &[&str]) -> ProgramOutput {
    run(folder, &[words, &["--directory", "domain"]].concat())
}

fn serving(folder: &Path, words: &[&str]) -> Process {
    let words = [&["serve", "--directory", "domain"], words].concat();
    let mut process = Process::start(gapless(folder, &words).stderr(Stdio::inherit()));
    assert!(process.line().contains(" is served"));
    process
}

#[test]
fn suspend_resume_and_drain() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut instances = [0, 1].map(|_| serving(folder, &["upper", "--json", "--", "cat"]));
    let pids = instances.each_ref().map(|instance| instance.pid().as_raw_nonzero().to_string());
    let is_called = || here(folder, &["call", "upper", "7", "--timeout", "20"]).good() == "7\n";
    let line = |pid: &str, state: &str| format!("gapless {pid}: upper is {state}\n");
    assert_eq!(here(folder, &["routes", "suspend", "upper", "--pid", &pids[0]]).good(), line(&pids[0], "suspended"));
    assert!(is_called(), "by the other");
    let shown: Value = serde_json::from_str(&here(folder, &["routes", "--json"]).good()).unwrap();
    let shown = shown.as_array().unwrap().iter();
    let mut states: Vec<_> =
        shown.map(|instance| (instance["process_id"].to_string(), instance["state"].as_str().unwrap())).collect();
    states.sort();
    let mut expected = [(pids[0].clone(), "suspended"), (pids[1].clone(), "open")];
    expected.sort();
    assert_eq!(states, expected);

    let all = here(folder, &["routes", "suspend", "upper"]).good();
    assert!(all.lines().count() == 2 && all.lines().all(|line| line.ends_with(" is suspended")), "{all}");
    let late = here(folder, &["call", "upper", "7", "--timeout", "0.2"]).error(1);
    assert!(late.contains("upper"), "{late}");
    here(folder, &["routes", "resume", "upper"]).good();
    assert!(is_called());

    assert_eq!(here(folder, &["routes", "drain", "upper", "--pid", &pids[0]]).good(), line(&pids[0], "gone"));
    assert!(instances[0].wait_end("a server whose route is drained").success());
    assert!(is_called(), "by the other");
    here(folder, &["routes", "drain", "upper"]).good();
    assert!(instances[1].wait_end("a server whose route is drained").success());
}

#[test]
fn impossible_change_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(here(folder, &["routes", "suspend", "upper"]).error(1).contains("there is no such directory"));
    let _instance = serving(folder, &["suspend", "--", "cat"]);
    let nobody = here(folder, &["routes", "suspend", "lower"]).error(1);
    assert!(nobody.contains("no process serves lower"), "{nobody}");
    let nobody = here(folder, &["routes", "drain", "suspend", "--pid", "1"]).error(1);
    assert!(nobody.contains("process 1 does not serve suspend"), "{nobody}");
    for words in [&["routes", "drain"][..], &["routes", "resume", "../x"], &["routes", "drain", ".notices"]] {
        here(folder, words).error(2);
    }
    let shown = here(folder, &["routes", "suspend/"]).good();
    assert!(shown.lines().nth(1).unwrap().starts_with("suspend "), "{shown}");
}

#[derive(serde::Serialize, serde::Deserialize, Message)]
#[message(version = 2)]
struct Order {
    id: u64,
    #[serde(default)]
    #[message(since = 2)]
    note: String,
}

#[test]
fn types_show_compared_fingerprints() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let _orders = domain.serve("shop/order").handle(|order: Order, _| Ok(order.id)).unwrap();
    let _bytes = domain.serve("raw").handle(|bytes: Vec<u8>, _| Ok(bytes)).unwrap();
    let text = here(folder.path(), &["routes", "--types"]).good();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().take(6).collect()).collect();
    let (order, number) = (format!("{:016x}", Order::fingerprint()), format!("{:016x}", u64::fingerprint()));
    let of = |route: &str, side: &str| rows.iter().find(|row| row[..2] == [route, side]).unwrap()[2..].to_vec();
    assert_eq!(of("shop/order", "request"), ["Order", "v2", "postcard", &order], "{text}");
    assert_eq!(of("shop/order", "reply")[1..3], ["postcard", &number], "{text}");
    assert_eq!(of("raw", "request")[1], "bytes", "{text}");
    let json: Value = serde_json::from_str(&here(folder.path(), &["routes", "shop", "--json"]).good()).unwrap();
    assert_eq!(json[0]["request_type"], serde_json::json!({ "encoding": "postcard", "fingerprint": order }));
}
