//! Small files in a member's directory that outlive its journal's records: who the other members are ([`Instances`]), and
//! that this one was removed. Each is written aside, synced and renamed.
//!
//! ```text
//! instances   a line for each member: its number, its instance as 16 hexadecimal digits
//! incarnation a decimal number: that of the configuration that the directory was begun or recovered with
//! removed     in words, who said so
//! ```

use crate::ClusterError;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Members of which an instance is kept, those that were removed included; more are not remembered.
const INSTANCES_MAX: usize = 1024;

/// Writes a small file durably: after a crash it has the old or the new text.
pub(crate) fn write_durably(path: &Path, text: &str) -> Result<(), ClusterError> {
    let failed = |source| ClusterError::System { action: format!("writing {}", path.display()), source };
    let partial = path.with_extension("new");
    let mut file = File::create(&partial).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(&partial, path).map_err(failed)?;
    let directory = path.parent().expect("it stands in a directory");
    File::open(directory).and_then(|opened| opened.sync_all()).map_err(failed)
}

/// A small file's text; `None` if it is not there.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ClusterError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ClusterError::System { action: format!("reading {}", path.display()), source }),
    }
}

/// Who the other members are.
#[derive(Debug)]
pub(super) struct Instances {
    path: PathBuf,
    known: BTreeMap<u64, u64>,
}

impl Instances {
    pub fn read(directory: &Path) -> Result<Self, ClusterError> {
        let path = directory.join("instances");
        let text = read_text(&path)?.unwrap_or_default();
        let line = |line: &str| {
            let (member, instance) = line.split_once(' ')?;
            Some((member.parse().ok()?, u64::from_str_radix(instance, 16).ok().filter(|instance| *instance != 0)?))
        };
        let known = text.lines().map(line).collect::<Option<_>>();
        let known = known.ok_or_else(|| ClusterError::Damaged { path: path.clone() })?;
        Ok(Self { path, known })
    }

    pub fn get(&self, member: u64) -> Option<u64> {
        self.known.get(&member).copied()
    }

    pub fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        self.known.iter().map(|(member, instance)| (*member, *instance))
    }

    /// Remembers one, durably.
    pub fn keep(&mut self, member: u64, instance: u64) -> Result<(), ClusterError> {
        if self.known.len() >= INSTANCES_MAX || instance == 0 {
            return Ok(());
        }
        self.known.insert(member, instance);
        let mut text = String::new();
        for (member, instance) in &self.known {
            let _ = writeln!(text, "{member} {instance:016x}");
        }
        write_durably(&self.path, &text)
    }
}

/// Keeps which incarnation the directory is of.
pub(super) fn keep_incarnation(directory: &Path, incarnation: u64) -> Result<(), ClusterError> {
    write_durably(&directory.join("incarnation"), &format!("{incarnation}\n"))
}

/// Refuses the file of another incarnation; a directory without one is of this one from now on.
pub(super) fn check_incarnation(directory: &Path, configured: u64) -> Result<(), ClusterError> {
    let path = directory.join("incarnation");
    let Some(text) = read_text(&path)? else { return keep_incarnation(directory, configured) };
    let found: u64 = text.trim().parse().map_err(|_| ClusterError::Damaged { path: path.clone() })?;
    if found == configured { Ok(()) } else { Err(ClusterError::OtherIncarnation { path, found, configured }) }
}

/// Where it stands that a member was removed.
fn removed_path(directory: &Path) -> PathBuf {
    directory.join("removed")
}

/// Keeps it that the member was removed.
pub(super) fn mark_removed(directory: &Path, reason: &str) -> Result<(), ClusterError> {
    write_durably(&removed_path(directory), &format!("{reason}\n"))
}

/// Refuses the directory of a member that was removed.
pub(super) fn check_not_removed(directory: &Path, member: u64) -> Result<(), ClusterError> {
    match read_text(&removed_path(directory))? {
        None => Ok(()),
        Some(reason) => Err(ClusterError::Removed { member, reason: reason.trim().to_owned() }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn instances_are_kept_and_damage_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let mut instances = Instances::read(directory.path()).unwrap();
        assert_eq!(instances.get(2), None);
        instances.keep(2, 7).unwrap();
        instances.keep(3, u64::MAX).unwrap();
        let again = Instances::read(directory.path()).unwrap();
        assert_eq!((again.get(2), again.get(3), again.get(4)), (Some(7), Some(u64::MAX), None));
        for text in ["2\n", "2 x\n", "a 1\n", "2 0000000000000000\n"] {
            std::fs::write(directory.path().join("instances"), text).unwrap();
            assert!(Instances::read(directory.path()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn another_incarnation_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        check_incarnation(directory.path(), 1).unwrap();
        check_incarnation(directory.path(), 1).unwrap();
        let refused = check_incarnation(directory.path(), 2).unwrap_err().to_string();
        assert!(refused.contains("incarnation 1") && refused.contains("says 2"), "{refused}");
        keep_incarnation(directory.path(), 2).unwrap();
        check_incarnation(directory.path(), 2).unwrap();
        std::fs::write(directory.path().join("incarnation"), "one").unwrap();
        assert!(check_incarnation(directory.path(), 1).unwrap_err().to_string().contains("damaged"));
    }

    #[test]
    fn a_removed_member_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        check_not_removed(directory.path(), 3).unwrap();
        mark_removed(directory.path(), "member 1 says so").unwrap();
        let refused = check_not_removed(directory.path(), 3).unwrap_err().to_string();
        assert!(refused.contains("member 3") && refused.contains("member 1 says so"), "{refused}");
    }
}
