//! `output_file`: checks before a long run that the file of its result can be written.

use rustix::io::Errno;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Checks before a long run that a result can be written: to `-` for standard output, an existing file, a pipe, a
/// device, or a new name in a writable folder. Changes nothing.
///
/// # Errors
/// The reason why nothing can be written there.
pub fn output_file(path: PathBuf) -> Result<PathBuf, String> {
    if path.as_os_str() != "-" {
        check(&path)?;
    }
    Ok(path)
}

fn check(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err("it is a folder, not a file".to_owned()),
        // A pipe may have no reader yet.
        Ok(found) if !found.is_file() => Ok(()),
        Ok(_) => OpenOptions::new().write(true).open(path).map(|_| ()).map_err(|error| error.to_string()),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Err(error.to_string()),
        // The link's target may be made later.
        Err(_) if path.is_symlink() => {
            let target = std::fs::read_link(path).map_err(|error| error.to_string())?;
            check(&folder_of(path).join(target))
        }
        Err(_) => {
            let parent = folder_of(path);
            if !parent.is_dir() {
                return Err(format!("the folder {} is not there", parent.display()));
            }
            let made = OpenOptions::new().write(true).create_new(true).open(path);
            made.and_then(|_| std::fs::remove_file(path)).map_err(|error| error.to_string())
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The files need not exist.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let resolved = |path: &Path| Some((folder_of(path).canonicalize().ok()?, path.file_name()?.to_owned()));
    one == other || resolved(one).is_some_and(|one| resolved(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writable_file_is_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        std::os::unix::fs::symlink("not-made-yet", file("link.json")).unwrap();
        for path in ["-".into(), "/dev/null".into(), file("new.json"), file("link.json")] {
            assert_eq!(output_file(path.clone()), Ok(path));
        }
        assert!(!directory.path().join("new.json").exists());
        std::fs::write(file("old.json"), "text").unwrap();
        output_file(file("old.json")).unwrap();
        assert_eq!(std::fs::read_to_string(file("old.json")).unwrap(), "text");
    }

    #[test]
    fn unwritable_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let refused = output_file(directory.path().join("gone/x.json")).unwrap_err();
        assert!(refused.ends_with("gone is not there"), "{refused}");
        assert_eq!(output_file(directory.path().to_owned()).unwrap_err(), "it is a folder, not a file");
        assert!(output_file("/proc/x.json".into()).is_err(), "nobody makes files there");
        for (target, name) in [("gone/x.json", "dangling.json"), ("loop.json", "loop.json")] {
            let link = directory.path().join(name);
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(output_file(link).is_err(), "{name}");
        }
    }

    #[test]
    fn one_file_has_many_names() {
        let directory = tempfile::tempdir().unwrap();
        let (file, other) = (directory.path().join("out.json"), directory.path().join("out.svg"));
        assert!(is_same_file(&file, &directory.path().join("./../").join(directory.path()).join("out.json")));
        assert!(is_same_file(Path::new("out.json"), Path::new("./out.json")));
        assert!(!is_same_file(&file, &other));
    }
}
