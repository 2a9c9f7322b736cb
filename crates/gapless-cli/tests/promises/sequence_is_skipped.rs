//! Each file gets the sequence once, all of them or none, and the rest of the text is unchanged.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::{Command, Output};

fn gapless(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gapless")).args(arguments).output().unwrap()
}

#[test]
fn files_get_a_sequence_all_or_none() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    assert!(gapless(&["cluster", "new", &path("orders"), "--members", "3"]).status.success());
    let files = [1, 2, 3].map(|member| path(&format!("orders/member-{member}.toml")));
    let read = || files.each_ref().map(|file| std::fs::read_to_string(file).unwrap());
    let skip = |sequence: &str, files: &[&str]| {
        let output = gapless(&[&["cluster", "skip", "--sequence", sequence], files].concat());
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.success(), text)
    };
    let before = read();
    let (is_done, said) = skip("1234", &[&files[1]]);
    assert!(is_done && said.contains("member 2 skips 1234"), "{said}");
    assert!(said.contains("the files of 1, 3 need it as well"), "{said}");
    assert_eq!(read()[1], format!("{}\n[service]\nskip = [1234]\n", before[1]));
    let (is_done, said) = skip("1234", &[&files[0], &files[1], &files[2]]);
    assert!(!is_done && said.contains("member-2.toml") && said.contains("it has 1234 already"), "{said}");
    assert_eq!((&read()[0], &read()[2]), (&before[0], &before[2]));
    assert!(skip("1234", &[&files[0], &files[2]]).0);
    let (is_done, said) = skip("99", &[&files[0], &files[1], &files[2]]);
    assert!(is_done && !said.contains("as well"), "{said}");
    assert!(read().iter().all(|text| text.ends_with("\n[service]\nskip = [99, 1234]\n")));
    let (is_done, said) = skip("7", &[&files[0], &files[0]]);
    assert!(!is_done && said.contains("both of member 1"), "{said}");
    assert!(!skip("0", &[&files[0]]).0);
    let (is_done, said) = skip("7", &[&path("none.toml")]);
    assert!(!is_done && said.contains("none.toml"), "{said}");
    assert!(read().iter().all(|text| text.ends_with("\n[service]\nskip = [99, 1234]\n")));
}
