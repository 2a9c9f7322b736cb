use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate lies in <root>/crates/").to_path_buf()
}

/// Crates with a library.
pub fn crates() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates can be listed") {
        let path = entry.expect("an entry of the crates").path();
        if path.join("src/lib.rs").is_file() || path.join("src/main.rs").is_file() {
            let name = path.file_name().expect("a folder has a name").to_string_lossy();
            found.push((name.into_owned(), path));
        }
    }
    found.sort();
    assert!(found.len() > 10, "only {} crates were found", found.len());
    found
}

pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
