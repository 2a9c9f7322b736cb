//! [`output_file`]: whether a file can be written, before a long run whose result it is to take.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// Passes the name of a file on that can be written: `-` for standard output, a file that is there and may be written, a pipe or a
/// device, or a name in a folder where files can be made. Leaves everything as it was. For the options of a command line.
///
/// # Errors
/// Why nothing could be written there.
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
        // A link to a file that is to be made.
        Err(_) if path.is_symlink() => Ok(()),
        Err(_) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if !parent.is_dir() {
                return Err(format!("the folder {} is not there", parent.display()));
            }
            let made = OpenOptions::new().write(true).create_new(true).open(path);
            made.and_then(|_| std::fs::remove_file(path)).map_err(|error| error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_written_is_taken_and_left_as_it_was() {
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
    fn what_cannot_be_written_is_refused_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let refused = output_file(directory.path().join("gone/x.json")).unwrap_err();
        assert!(refused.ends_with("gone is not there"), "{refused}");
        assert_eq!(output_file(directory.path().to_owned()).unwrap_err(), "it is a folder, not a file");
        assert!(output_file("/proc/x.json".into()).is_err(), "nobody makes files there");
    }
}
