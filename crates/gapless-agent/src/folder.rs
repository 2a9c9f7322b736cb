//! [`Folder`]: files in a folder that another user may write into. Nothing that such a user puts there is followed or believed.
//!
//! A process with more rights than the owner of a folder is led astray by links: on the way to the folder, in the place of a file, or as a
//! second name of a file. So the way is walked step by step, and each file is looked at once it is open.
//!
//! Behind a link of an ordinary user follows nothing of anybody else (as `CHASE_SAFE` in systemd, which refuses it behind directories, too).

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Links on one way at most, as in the kernel.
const LINKS_MAX: u32 = 40;
/// Attempts at a file that others remove meanwhile.
const TRIES: u32 = 8;

/// An open folder. Its files are named without their path.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    owner: u32,
    /// Others than this process's user may change what it holds.
    is_shared: bool,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// The system's. `PermissionDenied` where a link of another user leads to something that is not that user's.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::walked(path, false)
    }

    /// Opens a folder, and creates what is missing of its path with mode 0777 less the mask of this process.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::walked(path, true)
    }

    fn walked(path: &Path, creates_missing: bool) -> io::Result<Self> {
        let (fd, found) = walk(path, creates_missing, Users::of_this_process())?;
        // Write permission of the group or of all.
        let is_shared = found.st_uid != rustix::process::geteuid().as_raw() || found.st_mode & 0o022 != 0;
        Ok(Self { fd, owner: found.st_uid, is_shared })
    }

    /// Opens a file; `None` if there is none. `flags` say whether for reading or for writing; it is not waited for.
    ///
    /// # Errors
    /// The system's. Another user's file, one of several names in a folder that others may write, a link, and what is no file are refused.
    pub fn open_file(&self, name: impl AsRef<OsStr>, flags: OFlags) -> io::Result<Option<File>> {
        self.try_open(name.as_ref(), flags, Mode::empty())
    }

    /// As [`Folder::open_file`]; a file that is missing is created with this mode.
    ///
    /// # Errors
    /// As [`Folder::open_file`].
    pub fn open_or_create_file(&self, name: impl AsRef<OsStr>, flags: OFlags, mode: Mode) -> io::Result<File> {
        for _ in 0..TRIES {
            if let Some(file) = self.try_open(name.as_ref(), flags | OFlags::CREATE, mode)? {
                return Ok(file);
            }
        }
        Err(io::Error::other("others remove it again and again"))
    }

    /// Creates a file for reading and writing, in the place of what has that name.
    ///
    /// # Errors
    /// The system's.
    pub fn create_file(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<File> {
        let name = name.as_ref();
        self.remove(name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.fd, name, flags, mode)?.into())
    }

    /// Whether something has that name.
    #[must_use]
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        rustix::fs::statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes a file or a link; whether there was one.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.fd, name.as_ref(), AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Gives a file another name here, in the place of what has it; whether there was such a file.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<bool> {
        match rustix::fs::renameat(&self.fd, from.as_ref(), &self.fd, to.as_ref()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// `None` too of a file that was removed while it was opened.
    fn try_open(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<Option<File>> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.fd, name, flags, mode) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refused("it is a link")),
            Err(errno) => return Err(errno.into()),
        };
        let found = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(refused("it is no file"));
        }
        if self.is_shared {
            if found.st_nlink == 0 {
                return Ok(None);
            }
            if found.st_nlink > 1 {
                return Err(refused(&format!("it has {} names", found.st_nlink)));
            }
            if !Users::of_this_process().trusts(found.st_uid) && found.st_uid != self.owner {
                return Err(refused(&format!("it is of user {}", found.st_uid)));
            }
        }
        Ok(Some(file.into()))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// Users whose directories, links and files are believed.
#[derive(Clone, Copy, Debug)]
struct Users {
    own: u32,
    /// In a user namespace: what is shown of users that it does not have. They are outside, so they have more rights.
    unmapped: Option<u32>,
}

impl Users {
    fn of_this_process() -> Self {
        Self { own: rustix::process::geteuid().as_raw(), unmapped: unmapped_user() }
    }

    fn trusts(self, user: u32) -> bool {
        user == 0 || user == self.own || Some(user) == self.unmapped
    }
}

/// The number of users that this namespace does not have; `None` where it has all.
fn unmapped_user() -> Option<u32> {
    let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    if map.split_whitespace().eq(["0", "0", "4294967295"]) {
        return None;
    }
    std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()
}

/// Walks to a folder.
fn walk(path: &Path, creates_missing: bool, users: Users) -> io::Result<(OwnedFd, Stat)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = rustix::fs::open(".", flags | OFlags::DIRECTORY, Mode::empty())?;
    let mut found = rustix::fs::fstat(&here)?;
    // Whose link has led here.
    let mut guide = None;
    let mut ahead: VecDeque<OsString> = names(path).collect();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let next = match rustix::fs::openat(&here, &name, flags, Mode::empty()) {
            Err(Errno::NOENT) if creates_missing => {
                match rustix::fs::mkdirat(&here, &name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
                rustix::fs::openat(&here, &name, flags, Mode::empty())?
            }
            next => next?,
        };
        let at_next = rustix::fs::fstat(&next)?;
        let owner = at_next.st_uid;
        if let Some(guide) = guide.filter(|guide| *guide != owner) {
            return Err(refused(&format!("a link of user {guide} leads to {} of user {owner}", name.display())));
        }
        match FileType::from_raw_mode(at_next.st_mode) {
            FileType::Symlink => {
                if !users.trusts(owner) {
                    guide = Some(owner);
                }
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
                for name in names(Path::new(OsStr::from_bytes(target.as_bytes()))).rev() {
                    ahead.push_front(name);
                }
            }
            FileType::Directory => (here, found) = (next, at_next),
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    Ok((here, found))
}

fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    let steps = path.components().filter(|step| !matches!(step, Component::CurDir));
    steps.map(|step| step.as_os_str().to_owned()).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Gid, Uid, chownat};
    use std::io::{Read, Write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    const READ: OFlags = OFlags::RDONLY;
    const OTHER: u32 = 12_345;

    /// Gives a file, a link or a folder to another user; false without the rights for that.
    fn give(path: &Path) -> bool {
        let (user, group) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
        chownat(rustix::fs::CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn reason(error: &io::Error) -> String {
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        error.to_string()
    }

    #[test]
    fn files_come_and_go() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::create(&root.path().join("a/b/../c")).unwrap();
        assert!(root.path().join("a/b").is_dir() && root.path().join("a/c").is_dir());
        assert!(folder.open_file("x", READ).unwrap().is_none());
        let flags = OFlags::WRONLY | OFlags::APPEND;
        for text in ["one", "two"] {
            let mut file = folder.open_or_create_file("x", flags, Mode::from_raw_mode(0o640)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
        assert!(folder.rename("x", "y").unwrap() && !folder.rename("x", "y").unwrap());
        let mut text = String::new();
        folder.open_file("y", READ).unwrap().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "onetwo");
        assert_eq!(folder.create_file("y", Mode::RUSR).unwrap().metadata().unwrap().len(), 0);
        assert!(folder.has("y") && folder.remove("y").unwrap());
        assert!(!folder.has("y") && !folder.remove("y").unwrap());
    }

    #[test]
    fn links_and_pipes_are_no_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path()).unwrap();
        std::fs::write(root.path().join("file"), "x").unwrap();
        symlink("file", root.path().join("link")).unwrap();
        symlink("nothing", root.path().join("dangling")).unwrap();
        rustix::fs::mknodat(&folder, "pipe", FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::fs::create_dir(root.path().join("folder")).unwrap();
        for (wrong, expected) in [("link", "link"), ("dangling", "link"), ("pipe", "no file"), ("folder", "no file")] {
            let error = folder.open_file(wrong, READ).unwrap_err();
            assert!(reason(&error).contains(expected), "{wrong}: {error}");
        }
        let made = folder.open_or_create_file("dangling", OFlags::WRONLY, Mode::RUSR);
        assert!(reason(&made.unwrap_err()).contains("link") && !folder.has("nothing"));
        // Only the link goes.
        folder.create_file("link", Mode::RUSR).unwrap();
        assert_eq!(std::fs::read(root.path().join("file")).unwrap(), b"x");
    }

    #[test]
    fn shared_folders_have_files_of_one_name() {
        let root = tempfile::tempdir().unwrap();
        let [file, second] = ["file", "second"].map(|name| root.path().join(name));
        std::fs::write(&file, "x").unwrap();
        std::fs::hard_link(&file, second).unwrap();
        let open = || Folder::open(root.path()).unwrap().open_file("file", READ);
        assert!(open().unwrap().is_some(), "its user alone writes here");
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(reason(&open().unwrap_err()), "it has 2 names");
    }

    #[test]
    fn files_of_third_users_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let open = || Folder::open(root.path()).unwrap().open_file("file", READ);
        if !give(&file) {
            return println!("SKIPPED: only root can give files away");
        }
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(reason(&open().unwrap_err()), format!("it is of user {OTHER}"));
        assert!(give(root.path()));
        assert!(open().unwrap().is_some(), "it is of the folder's owner");
    }

    #[test]
    fn a_users_links_lead_to_own_folders_only() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["home", "home/logs", "private"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        symlink(at("private"), at("own")).unwrap();
        assert!(Folder::open(&at("own")).is_ok(), "a link of this user is followed");
        symlink(at("private"), at("home/absolute")).unwrap();
        symlink("../private", at("home/relative")).unwrap();
        symlink("logs", at("home/there")).unwrap();
        symlink("round", at("home/round")).unwrap();
        for folder in ["home", "home/logs", "home/absolute", "home/relative", "home/there", "home/round"] {
            if !give(&at(folder)) {
                return println!("SKIPPED: only root can give files away");
            }
        }
        std::fs::create_dir(at("home/state")).unwrap();
        for good in ["home/logs", "home/there", "home/state"] {
            assert!(Folder::open(&at(good)).is_ok(), "{good}");
        }
        for wrong in ["home/absolute", "home/relative"] {
            let error = Folder::open(&at(wrong)).unwrap_err();
            assert!(reason(&error).contains(&format!("a link of user {OTHER} leads to")), "{wrong}: {error}");
        }
        assert_eq!(Folder::open(&at("home/round")).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        // A new folder, too, would be made in a place that somebody else has chosen.
        assert!(Folder::create(&at("home/absolute/new")).is_err() && !at("private/new").exists());
    }

    #[test]
    fn a_file_is_no_folder() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "x").unwrap();
        let opened = Folder::create(&root.path().join("file/logs"));
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(Folder::open(&root.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
