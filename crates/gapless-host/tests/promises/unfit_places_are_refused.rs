//! Words that name no place, directories in use, and directories of other programs are refused, with the reason.

use crate::programs::{Caller, Calls, Product, Sum, add, model};
use gapless_host::{Host, HostError};

#[track_caller]
fn refusal<T>(started: Result<T, HostError>) -> String {
    started.err().expect("a refusal").to_string()
}

#[test]
fn empty_word_and_missing_file() {
    let said = refusal(Host::at(""));
    assert!(said.contains("\"memory\", a directory or a member's file"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("member-1.toml");
    let said = refusal(Host::member(&file).service(Sum::default()).start());
    assert!(said.contains("member-1.toml"), "{said}");
    // The file of a stream, which has no members.
    std::fs::write(&file, "[stream]\ndirectory = \"data\"\n").unwrap();
    let said = refusal(Host::at(file.to_str().unwrap()).unwrap().aggregates(model()).start());
    assert!(said.contains("member-1.toml") && said.contains("cluster"), "{said}");
}

#[test]
fn directory_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let host = || Host::in_directory(folder.path().join("data")).service(Sum::default());
    let first = host().start().unwrap();
    let said = refusal(host().start());
    assert!(said.contains("data") && said.contains("in use"), "{said}");
    assert_eq!(Caller::new(&first).add(&add(1)), 1, "the first goes on");
    first.stop().unwrap();
    drop(first);
    host().start().unwrap();
}

#[test]
fn directory_of_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let host = || Host::in_directory(folder.path().join("data"));
    let first = host().service(Sum::default()).start().unwrap();
    Caller::new(&first).add(&add(1));
    first.stop().unwrap();
    let said = refusal(host().service(Product::default()).start());
    assert!(said.contains("state Sum, this program has state Product: start the program of Sum"), "{said}");
    let said = refusal(host().replicated_state(Calls::new).start());
    assert!(said.contains("data"), "{said}");
    let said = refusal(host().aggregates(model()).start());
    assert!(said.contains("data"), "{said}");
    let again = host().service(Sum::default()).start().unwrap();
    assert_eq!(Caller::new(&again).add(&add(1)), 2, "nothing was changed");
}
