//! Invalid stream files, and the place of the error.

use super::*;

#[track_caller]
fn refuses(text: &str, line: usize, words: &[&str]) {
    let found = match StreamConfig::parse(text, "s.toml") {
        Err(ConfigError::Refused { place, reason }) => format!("{place}: {reason}"),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was taken: {text}"),
    };
    assert!(found.starts_with(&format!("s.toml:{line}: ")), "line {line}: {found}");
    assert!(words.iter().all(|word| found.contains(word)), "{words:?}: {found}");
    assert!(!found.contains('\n'), "one line: {found}");
}

#[test]
fn invalid_configuration_is_refused() {
    refuses("[stream]\ndirectory = \n", 2, &[]);
    refuses("[stream]\ndirectory = \"d\"\ndirectory = \"e\"", 3, &["duplicate"]);
    refuses("[stream]\ndirectory = \"d\"\n[surprise]\nx = 1", 3, &["surprise: unknown", "stream, journal"]);
    refuses("stream = 3", 1, &["stream: 3 was found", "table"]);
    refuses("[stream]\ndirectory = \"d\"\n[user]\nname = \"a\"", 3, &["user: a table was found", "a list"]);
    assert!(StreamConfig::load("/nowhere/s.toml").err().unwrap().to_string().starts_with("reading /nowhere/s.toml: "));
}

#[test]
fn directory_is_relative_to_the_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("s.toml");
    for (directory, expected) in [("orders", place.path().join("orders")), ("/absolute", "/absolute".into())] {
        std::fs::write(&path, format!("[stream]\ndirectory = {directory:?}\n")).unwrap();
        assert_eq!(StreamConfig::load(&path).unwrap().directory(), Some(&*expected));
    }
}
