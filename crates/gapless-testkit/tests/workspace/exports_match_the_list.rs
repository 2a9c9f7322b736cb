//! The exports of `gapless` are committed in `crates/gapless/public-names.txt`, so that each change is visible.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::rust_tokens::{self, Token};
use super::workspace;

/// About 200 for services, streams, clusters and calls, 80 for the command bus, and 20 for typed requests and states.
const NAMES_MAX: usize = 300;
const LIST: &str = "public-names.txt";

#[test]
fn exported_names_match_the_list() {
    let folder = workspace::root().join("crates/gapless");
    let names = names_of(&folder.join("src"));
    let list = std::fs::read_to_string(folder.join(LIST)).expect("the list is committed");
    let listed = list.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let mut report = String::new();
    for name in names.difference(&listed) {
        _ = writeln!(report, "+{name}");
    }
    for name in listed.difference(&names) {
        _ = writeln!(report, "-{name}");
    }
    assert!(report.is_empty(), "crates/gapless exports other names than {LIST} lists:\n{report}");
    // The prelude repeats names of other modules.
    let own = names.iter().filter(|name| !name.starts_with("prelude::")).count();
    assert!(own <= NAMES_MAX, "the facade exports {own} names; at most {NAMES_MAX} are allowed");
}

/// `module::Name` for each export.
///
/// # Panics
/// If a module re-exports a whole crate, or uses a glob: no list of names.
fn names_of(source: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(source).expect("the facade has sources") {
        let path = entry.expect("a folder can be read").path();
        let text = std::fs::read_to_string(&path).expect("a source is text");
        let stem = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let prefix = if stem == "lib" { String::new() } else { format!("{stem}::") };
        let tokens = rust_tokens::tokens(&text);
        for item in rust_tokens::items(&tokens).1 {
            match item.body[0].word() {
                Some("use") if item.is_public => {
                    for (path, name) in rust_tokens::used(&item.body[1..]) {
                        let name = name.unwrap_or_else(|| panic!("{prefix}: a glob is exported"));
                        assert!(path.len() > 1, "{prefix}: the whole crate {} is exported", path[0]);
                        names.insert(format!("{prefix}{name}"));
                    }
                }
                Some("mod") if item.body[item.body.len() - 1].is_mark(';') => {
                    names.extend(item.body[1].word().map(str::to_owned));
                }
                // The README's code, compiled as an example and not exported.
                Some("struct") if item.attributes.iter().any(|attribute| is_of_examples(attribute)) => {}
                _ => panic!("{} has other items than modules and names", path.display()),
            }
        }
    }
    names
}

fn is_of_examples(attribute: &[Token<'_>]) -> bool {
    let mut words = Vec::new();
    rust_tokens::words(attribute, &mut words);
    words == ["cfg", "doctest"]
}

#[test]
#[should_panic(expected = "the whole crate gapless_log is exported")]
fn whole_crate_export_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("lib.rs"), "pub use gapless_log as log;").expect("a file");
    names_of(folder.path());
}

#[test]
fn grouped_names_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("lib.rs"), "pub mod client; pub use a::{B, c::{D, E as F}};").expect("a file");
    let names = names_of(folder.path()).into_iter().collect::<Vec<_>>();
    assert_eq!(names, ["B", "D", "F", "client"]);
}
