//! All examples are built into one folder: two with the same name overwrite each other.

use super::workspace;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[test]
fn example_names_are_unique() {
    let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
    let crates = std::fs::read_dir(workspace::root().join("crates")).expect("there are crates");
    for folder in crates.map(|entry| entry.expect("a folder can be read").path().join("examples")) {
        let Ok(examples) = std::fs::read_dir(&folder) else { continue };
        for path in examples.map(|entry| entry.expect("a folder can be read").path()) {
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            if let Some(other) = seen.insert(name, path.clone()) {
                panic!("{} and {} are built as one file", other.display(), path.display());
            }
        }
    }
    assert!(seen.len() > 5, "{seen:?}");
}
