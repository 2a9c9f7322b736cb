//! Small text files in a member's directory that outlive its journal's records. Each is written to a temporary file,
//! synced and renamed, and sealed: its first line holds a checksum over its name, the number in `instance`, and its
//! text, so that a damaged file and one of another directory are recognised.
//!
//! ```text
//! sealed      <CRC-32C as 8 hexadecimal digits>, the first line of each of these:
//! instance    16 hexadecimal digits: the number that identifies this directory
//! instances   a line for each other member that has connected: its number, its instance
//! incarnation a decimal number: that of the configuration that the directory was begun or recovered with
//! voting      see `voting`
//! base        see `snapshot_transfer`
//!
//! removed     text naming the member that reported the removal; not sealed: its existence is enough
//! ```
//!
//! A directory has the first four before it has a journal, so if one is missing while others or a journal exist, that
//! is an error.

use crate::ClusterError;
use gapless_agent::checked_file;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::durable_file::replace_file;
use gapless_stream::directory_record::DirectoryRecord;
use gapless_transport::token::random_token;
use gapless_wire::checksum::crc32c;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Removed members included; more are not remembered.
const INSTANCES_MAX: usize = 1024;
const SEAL: &str = "sealed ";
const LENGTH_MAX: u64 = 1 << 20;
/// Written after `instance`, whose number their checksums cover.
const SEALED_BEHIND: [&str; 4] = ["incarnation", "instances", "voting", "base"];

#[derive(Clone, Debug)]
pub(super) struct MemberFiles {
    directory: PathBuf,
    instance: u64,
}

impl MemberFiles {
    /// A directory without files and journal is new: its number is `given`, or random.
    pub fn open(directory: &Path, given: Option<u64>, has_journal: bool) -> Result<Self, ClusterError> {
        match Self::open_read_only(directory) {
            Err(error @ ClusterError::Missing { .. }) => {
                let has_others = || SEALED_BEHIND.iter().any(|name| directory.join(name).exists());
                if has_journal || has_others() {
                    return Err(error);
                }
                Self::begin(directory, given.unwrap_or_else(|| random_token() as u64))
            }
            found => found,
        }
    }

    /// Opens the files of `directory`, which has an `instance`. Writes nothing.
    pub fn open_read_only(directory: &Path) -> Result<Self, ClusterError> {
        let files = Self { directory: directory.to_owned(), instance: 0 };
        let text = match files.read("instance") {
            Err(ClusterError::Damaged { .. }) if files.is_of_earlier_format()? => {
                let record = DirectoryRecord::read(&StreamLayout::new(directory)).ok().flatten();
                let (directory, written_by) = (directory.to_owned(), record.map(|record| record.program));
                return Err(ClusterError::EarlierFormat { directory, written_by });
            }
            text => text?.ok_or_else(|| files.missing("instance"))?,
        };
        let number = u64::from_str_radix(text.trim(), 16).ok().filter(|number| *number != 0);
        Ok(Self { instance: number.ok_or_else(|| files.damaged("instance"))?, ..files })
    }

    /// Earlier programs wrote no seals.
    fn is_of_earlier_format(&self) -> Result<bool, ClusterError> {
        let instance = read_text(&self.path("instance"))?.unwrap_or_default();
        let digits = instance.strip_suffix('\n').unwrap_or_default();
        let is_number = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut others = SEALED_BEHIND.iter().map(|name| read_text(&self.path(name)));
        Ok(is_number && others.all(|text| !text.is_ok_and(|text| text.is_some_and(|text| text.starts_with(SEAL)))))
    }

    /// Durable before any other member receives the number, because they keep it for ever.
    pub fn begin(directory: &Path, number: u64) -> Result<Self, ClusterError> {
        let files = Self { directory: directory.to_owned(), instance: number.max(1) };
        files.write("instance", &format!("{:016x}\n", files.instance))?;
        Ok(files)
    }

    /// Number of the directory.
    pub const fn instance(&self) -> u64 {
        self.instance
    }

    /// `None` without the file.
    pub fn read(&self, name: &str) -> Result<Option<String>, ClusterError> {
        let Some(text) = read_text(&self.path(name))? else { return Ok(None) };
        self.unsealed(name, &text).map(|text| Some(text.to_owned()))
    }

    fn unsealed<'a>(&self, name: &str, text: &'a str) -> Result<&'a str, ClusterError> {
        let sealed = text.strip_prefix(SEAL).and_then(|sealed| sealed.split_once('\n'));
        let whole = sealed.filter(|(sum, text)| *sum == self.sum(name, text));
        whole.map(|(_, text)| text).ok_or_else(|| self.damaged(name))
    }

    /// Whether the file exists.
    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Durable.
    pub fn write(&self, name: &str, text: &str) -> Result<(), ClusterError> {
        self.write_at(&self.path(name), name, text)
    }

    /// Writes the file to a path from which it is moved to its own name later.
    pub fn write_at(&self, path: &Path, name: &str, text: &str) -> Result<(), ClusterError> {
        write_durably(path, &format!("{SEAL}{}\n{text}", self.sum(name, text)))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Error for an invalid seal or text.
    pub fn damaged(&self, name: &str) -> ClusterError {
        ClusterError::Damaged { path: self.path(name) }
    }

    /// Error for a missing file.
    pub fn missing(&self, name: &str) -> ClusterError {
        ClusterError::Missing { path: self.path(name) }
    }

    fn sum(&self, name: &str, text: &str) -> String {
        // `instance` is sealed without its own number.
        let instance = if name == "instance" { 0 } else { self.instance };
        format!("{:08x}", crc32c(format!("{name}\n{instance:016x}\n{text}").as_bytes()))
    }
}

/// Writes a small file durably: after a crash it has the old or the new text.
fn write_durably(path: &Path, text: &str) -> Result<(), ClusterError> {
    let failed = |source| ClusterError::System { action: format!("writing {}", path.display()), source };
    replace_file(path, path.with_extension("new"), text.as_bytes()).map_err(failed)
}

fn read_text(path: &Path) -> Result<Option<String>, ClusterError> {
    match checked_file::read(path, LENGTH_MAX) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| ClusterError::Damaged { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ClusterError::System { action: format!("reading {}", path.display()), source }),
    }
}

#[derive(Debug)]
pub(super) struct Instances {
    files: MemberFiles,
    known: BTreeMap<u64, u64>,
}

impl Instances {
    /// Writes nothing.
    pub fn read_existing(files: &MemberFiles) -> Result<Option<Self>, ClusterError> {
        let Some(text) = files.read("instances")? else { return Ok(None) };
        let line = |line: &str| {
            let (member, instance) = line.split_once(' ')?;
            Some((member.parse().ok()?, u64::from_str_radix(instance, 16).ok().filter(|instance| *instance != 0)?))
        };
        let known = text.lines().map(line).collect::<Option<_>>().ok_or_else(|| files.damaged("instances"))?;
        Ok(Some(Self { files: files.clone(), known }))
    }

    /// Makes a missing file. Call it before `voting` is written, whose existence implies this file.
    pub fn read(files: &MemberFiles) -> Result<Self, ClusterError> {
        if let Some(instances) = Self::read_existing(files)? {
            return Ok(instances);
        }
        if files.exists("voting") {
            return Err(files.missing("instances"));
        }
        let instances = Self { files: files.clone(), known: BTreeMap::new() };
        instances.write()?;
        Ok(instances)
    }

    /// A member never connects to itself, so an entry with its number means another member's directory.
    pub fn check_member(&self, member: u64) -> Result<(), ClusterError> {
        if self.get(member).is_none() {
            return Ok(());
        }
        let reason = format!("the directory is another member's: it knows member {member} as one that it has met");
        Err(ClusterError::Foreign { path: self.files.path("instances"), reason })
    }

    pub fn get(&self, member: u64) -> Option<u64> {
        self.known.get(&member).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.known.iter().map(|(member, instance)| (*member, *instance))
    }

    /// Durable.
    pub fn store(&mut self, member: u64, instance: u64) -> Result<(), ClusterError> {
        if self.known.len() >= INSTANCES_MAX || instance == 0 {
            return Ok(());
        }
        self.known.insert(member, instance);
        self.write()
    }

    fn write(&self) -> Result<(), ClusterError> {
        let mut text = String::new();
        for (member, instance) in &self.known {
            let _ = writeln!(text, "{member} {instance:016x}");
        }
        self.files.write("instances", &text)
    }
}

pub(super) fn store_incarnation(files: &MemberFiles, incarnation: u64) -> Result<(), ClusterError> {
    files.write("incarnation", &format!("{incarnation}\n"))
}

/// A directory without an incarnation gets this one.
pub(super) fn check_incarnation(files: &MemberFiles, configured: u64) -> Result<(), ClusterError> {
    match read_incarnation(files)? {
        Some(found) if found == configured => Ok(()),
        Some(found) => Err(ClusterError::OtherIncarnation { path: files.path("incarnation"), found, configured }),
        None if files.exists("voting") => Err(files.missing("incarnation")),
        None => store_incarnation(files, configured),
    }
}

pub(super) fn read_incarnation(files: &MemberFiles) -> Result<Option<u64>, ClusterError> {
    let text = files.read("incarnation")?;
    text.map(|text| text.trim().parse().map_err(|_| files.damaged("incarnation"))).transpose()
}

fn removed_path(directory: &Path) -> PathBuf {
    directory.join("removed")
}

pub(super) fn mark_removed(directory: &Path, reason: &str) -> Result<(), ClusterError> {
    write_durably(&removed_path(directory), &format!("{reason}\n"))
}

pub(super) fn check_not_removed(directory: &Path, member: u64) -> Result<(), ClusterError> {
    match checked_file::read(&removed_path(directory), LENGTH_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        found => {
            let reason = found.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default();
            Err(ClusterError::Removed { member, reason })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    fn directory() -> (tempfile::TempDir, MemberFiles) {
        let directory = tempfile::tempdir().unwrap();
        let files = MemberFiles::open(directory.path(), Some(7), false).unwrap();
        (directory, files)
    }

    #[test]
    fn endless_file_is_not_read() {
        let (directory, files) = directory();
        for name in ["instance", "instances"] {
            std::fs::File::create(directory.path().join(name)).unwrap().set_len(1 << 40).unwrap();
            let error = files.read(name).unwrap_err().to_string();
            assert!(error.contains(&format!("/{name}")) && error.contains("1048576 at most are read"), "{error}");
        }
    }

    #[test]
    fn damaged_file_is_an_error() {
        let (directory, files) = directory();
        let (_other, others) = directory_of(8);
        for name in ["incarnation", "voting", "instances", "base"] {
            let path = directory.path().join(name);
            files.write(name, "12 3 word\n").unwrap();
            let right = std::fs::read(&path).unwrap();
            assert_eq!(files.read(name).unwrap().as_deref(), Some("12 3 word\n"));
            let is_taken = |bytes: &[u8]| {
                std::fs::write(&path, bytes).unwrap();
                files.read(name).is_ok()
            };
            for at in 0..right.len() {
                let mut bytes = right.clone();
                bytes[at] ^= 1;
                assert!(!is_taken(&bytes), "{name}: byte {at}");
                assert!(!is_taken(&right[..at]), "{name}: length {at}");
            }
            others.write_at(&path, name, "12 3 word\n").unwrap();
            assert!(files.read(name).is_err(), "{name} of another directory");
            for text in ["", "12 3 word\n"] {
                std::fs::write(&path, text).unwrap();
                assert!(files.read(name).is_err(), "{text:?} has no seal");
            }
        }
    }

    fn directory_of(instance: u64) -> (tempfile::TempDir, MemberFiles) {
        let directory = tempfile::tempdir().unwrap();
        let files = MemberFiles::open(directory.path(), Some(instance), false).unwrap();
        (directory, files)
    }

    #[test]
    fn directory_with_journal_is_old() {
        let directory = tempfile::tempdir().unwrap();
        let refused = MemberFiles::open(directory.path(), Some(7), true).unwrap_err().to_string();
        assert!(refused.contains("/instance is missing"), "{refused}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        for text in ["", "00000000000000ab", "00000000000000ag\n", "sealed 00000000\n00000000000000ab\n"] {
            std::fs::write(directory.path().join("instance"), text).unwrap();
            let refused = MemberFiles::open(directory.path(), None, false).unwrap_err().to_string();
            assert!(refused.contains("/instance is damaged"), "{text:?}: {refused}");
        }
    }

    #[test]
    fn earlier_format_names_its_program() {
        let directory = tempfile::tempdir().unwrap();
        let refused = || MemberFiles::open(directory.path(), None, true).unwrap_err();
        std::fs::write(directory.path().join("instance"), "00000000000000ab\n").unwrap();
        assert!(matches!(refused(), ClusterError::EarlierFormat { written_by: None, .. }));
        std::fs::write(directory.path().join("voting"), "level 1 synced\n").unwrap();
        std::fs::write(directory.path().join("directory"), "kind member\nformat 1\nwritten by gapless 0.0.9\n")
            .unwrap();
        assert!(refused().to_string().contains("of an earlier format, written by gapless 0.0.9, "), "{}", refused());
        std::fs::write(directory.path().join("voting"), "sealed 00000000\nlevel 1 synced\n").unwrap();
        assert!(matches!(refused(), ClusterError::Damaged { .. }));
    }

    #[test]
    fn missing_file_is_an_error() {
        let (directory, files) = directory();
        check_incarnation(&files, 1).unwrap();
        let _instances = Instances::read(&files).unwrap();
        files.write("voting", "level 1 synced\n").unwrap();
        for name in ["instance", "instances", "incarnation"] {
            let path = directory.path().join(name);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let opened = MemberFiles::open(directory.path(), None, false).and_then(|files| {
                check_incarnation(&files, 1)?;
                Instances::read(&files).map(drop)
            });
            let refused = opened.unwrap_err().to_string();
            assert!(refused.contains(&format!("/{name} is missing")), "{refused}");
            std::fs::write(&path, bytes).unwrap();
        }
    }

    #[test]
    fn damaged_instances_are_an_error() {
        let (directory, files) = directory();
        let mut instances = Instances::read(&files).unwrap();
        assert_eq!(instances.get(2), None);
        instances.store(2, 7).unwrap();
        instances.store(3, u64::MAX).unwrap();
        let again = Instances::read(&files).unwrap();
        assert_eq!((again.get(2), again.get(3), again.get(4)), (Some(7), Some(u64::MAX), None));
        for text in ["2\n", "2 x\n", "a 1\n", "2 0000000000000000\n"] {
            std::fs::write(directory.path().join("instances"), text).unwrap();
            assert!(Instances::read(&files).is_err(), "{text:?}");
        }
    }

    #[test]
    fn other_incarnation_is_refused() {
        let (_directory, files) = directory();
        check_incarnation(&files, 1).unwrap();
        check_incarnation(&files, 1).unwrap();
        let refused = check_incarnation(&files, 2).unwrap_err().to_string();
        assert!(refused.contains("incarnation 1") && refused.contains("file 2"), "{refused}");
        store_incarnation(&files, 2).unwrap();
        check_incarnation(&files, 2).unwrap();
        files.write("incarnation", "one").unwrap();
        assert!(check_incarnation(&files, 1).unwrap_err().to_string().contains("damaged"));
    }

    #[test]
    fn removed_member_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        check_not_removed(directory.path(), 3).unwrap();
        mark_removed(directory.path(), "member 1 says so").unwrap();
        let refused = check_not_removed(directory.path(), 3).unwrap_err().to_string();
        assert!(refused.contains("member 3") && refused.contains("member 1 says so"), "{refused}");
        for bytes in [&b""[..], b"\xff\xfe"] {
            std::fs::write(directory.path().join("removed"), bytes).unwrap();
            assert!(matches!(check_not_removed(directory.path(), 3), Err(ClusterError::Removed { .. })));
        }
    }
}
