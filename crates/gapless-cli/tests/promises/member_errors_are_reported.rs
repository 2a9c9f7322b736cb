#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use gapless_cluster::member::control::{AdminAnswer, AdminRequest, ask};
use gapless_testkit::process::Process;
use gapless_testkit::wait::{until, until_some};
use std::process::Stdio;

#[test]
fn taken_address_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    run(here, &["cluster", "new", "orders", "--members", "1"]).good();
    let _member = Process::start(&mut gapless(here, &["cluster", "start", "orders/member-1.toml"]));
    let status = ["cluster", "status", "orders/member-1.toml"];
    until_some("it leads", || run(here, &status).stdout.contains("member 1 of orders: leader").then_some(()));
    let file = std::fs::read_to_string(here.join("orders/member-1.toml")).unwrap();
    let address = file.split('"').find(|text| text.starts_with("127.0.0.1:")).unwrap();
    let by_name = address.replace("127.0.0.1", "localhost");
    let expected = "is the address of member 1; give the new member another address";
    for address in [address, &by_name] {
        let add = ["cluster", "add", "orders/member-1.toml", "--member", "2", "--address", address];
        let text = run(here, &add).error(1);
        assert!(text.contains(expected), "{text}");
    }
    let addresses = vec![address.to_owned()];
    let request = AdminRequest::Add { member: 2, addresses, kind: "full".to_owned(), replaces: None };
    match ask(&here.join("orders/member-1"), &request).unwrap() {
        AdminAnswer::Refused(reason) => assert!(reason.contains(expected), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(!run(here, &status).stdout.contains("     2  "), "no member was added");
    let text = run(here, &["cluster", "transfer", "orders/member-1.toml", "--to", "1"]).error(1);
    assert!(text.contains("member 1 leads already"), "{text}");
    let text = run(here, &["cluster", "transfer", "orders/member-1.toml", "--to", "7"]).error(1);
    assert!(text.contains("member 7 is no member that votes"), "{text}");
    std::fs::write(here.join("lines"), "one\n").unwrap();
    run(here, &["stream", "publish", "lines", "--directory", "orders/member-1"]).good();
    let text = run(here, &["cluster", "skip", "orders/member-1.toml", "--sequence", "1"]).error(1);
    assert!(text.contains("sequence 1 is no command"), "{text}");
    let text = run(here, &["cluster", "skip", "orders/member-1.toml", "--sequence", "99999"]).error(1);
    assert!(text.contains("the journal of member 1 ends at sequence "), "{text}");
}

#[test]
fn member_is_healthy_with_quorum() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    run(here, &["cluster", "new", "orders", "--members", "2"]).good();
    let start = |member: u64| {
        Process::start(&mut gapless(here, &["cluster", "start", &format!("orders/member-{member}.toml")]))
    };
    let status = || run(here, &["stream", "status", "--directory", "orders/member-1", "--json"]);
    let _one = start(1);
    until("it runs alone", || {
        let said = status().stderr;
        said.contains("it does not take part yet") || said.contains("no leader is known")
    });
    status().error(1);
    let _two = start(2);
    until("there is a leader", || status().code == Some(0));
    let sockets = ["stream.socket", "cluster.socket"].map(|name| here.join("orders/member-1").join(name));
    sockets.iter().for_each(|socket| std::fs::remove_file(socket).unwrap());
    until("its sockets are there again", || sockets.iter().all(|socket| socket.exists()));
    status().good();
    run(here, &["cluster", "status", "orders/member-1.toml"]).good();
}

#[test]
fn printed_commands_work() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let printed = run(here, &["cluster", "new", "a b"]).good();
    assert!(printed.contains("gapless cluster start 'a b/member-1.toml'"), "{printed}");
    let help = run(here, &["cluster", "start", "--help"]).good();
    assert!(!help.contains("or the directory"), "start takes no directory: {help}");
    let file = here.join("a b/member-1.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[election]\ntimeout = 300\n")).unwrap();
    let text = run(here, &["cluster", "start", "a b/member-1.toml"]).error(1);
    assert!(text.contains("300, which is 300 s, was found") && text.contains("\"300 ms\""), "{text}");
}

#[test]
fn fatal_error_is_printed_once() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    run(here, &["cluster", "new", "orders", "--members", "2"]).good();
    let start = |member: u64, log: &str| {
        let file = format!("orders/member-{member}.toml");
        let log = std::fs::File::create(here.join(log)).unwrap();
        Process::start_as(gapless(here, &["cluster", "start", &file]).stdout(Stdio::null()).stderr(log))
    };
    let (mut one, two) = (start(1, "one"), start(2, "two"));
    let status = |member: u64| run(here, &["cluster", "status", &format!("orders/member-{member}.toml")]).stdout;
    until_some("they have met", || (status(1) + &status(2)).contains("follower of member").then_some(()));
    one.kill();
    // The other member knows it with another directory, and refuses it permanently.
    std::fs::remove_dir_all(here.join("orders/member-1")).unwrap();
    let mut one = start(1, "again");
    assert_eq!(one.wait().code(), Some(1));
    let said = std::fs::read_to_string(here.join("again")).unwrap();
    assert_eq!(said.matches("is refused by member 2").count(), 1, "{said}");
    drop(two);
}
