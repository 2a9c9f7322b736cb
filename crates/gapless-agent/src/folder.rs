//! Files in a folder that another user may write into. Links can mislead a process with more rights than the owner of a
//! folder: on the path, in place of a file, or as a second hard link. So the path is walked component by component, and
//! each file is checked after it is open. After a link of an ordinary user, the path must stay with files of that user
//! (like `CHASE_SAFE` in systemd).

use crate::regular_file;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::OnceLock;

const LINKS_MAX: u32 = 40;
const TRIES: u32 = 8;

/// An open folder; its files are named without a path.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    owner: u32,
    group: u32,
    is_open: bool,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// An error of the operating system; `PermissionDenied` if a link of another user leads to something not that
    /// user's.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_walked(path, None)
    }

    /// Opens a folder, creating missing path components with mode 0777 less the umask.
    ///
    /// # Errors
    /// As for [`Folder::open`].
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open_walked(path, Some(FolderCreation { mode: 0o777, is_given: false }))
    }

    /// Like [`Folder::create`], with mode 0700; components created in another user's folder are given to that user, if
    /// possible.
    ///
    /// # Errors
    /// As for [`Folder::open`].
    pub fn create_private(path: &Path) -> io::Result<Self> {
        Self::open_walked(path, Some(FolderCreation { mode: 0o700, is_given: true }))
    }

    fn open_walked(path: &Path, missing: Option<FolderCreation>) -> io::Result<Self> {
        let (fd, found) = walk(path, missing, TrustedUsers::of_this_process())?;
        let is_open = found.st_mode & 0o022 != 0;
        Ok(Self { fd, owner: found.st_uid, group: found.st_gid, is_open })
    }

    /// Opens a file without blocking; `None` if it does not exist.
    ///
    /// # Errors
    /// An error of the operating system. Links and files that are not regular are refused. In a folder that another
    /// user may write into, the file of a third user is refused; so is a file with several hard links, unless it and
    /// the folder belong to one user and no other may write there.
    pub fn open_file(&self, name: impl AsRef<OsStr>, flags: OFlags) -> io::Result<Option<File>> {
        self.try_open(name.as_ref(), flags, Mode::empty())
    }

    /// Like [`Folder::open_file`]; a missing file is created with this mode.
    ///
    /// # Errors
    /// As for [`Folder::open_file`].
    pub fn open_or_create_file(&self, name: impl AsRef<OsStr>, flags: OFlags, mode: Mode) -> io::Result<File> {
        let name = name.as_ref();
        for _ in 0..TRIES {
            if let Some(file) = self.try_open(name, flags | OFlags::CREATE, mode)? {
                return Ok(file);
            }
        }
        Err(io::Error::other("others remove it again and again"))
    }

    /// Creates a file for reading and writing, replacing one of that name.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn create_file(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<File> {
        self.remove(name.as_ref())?;
        self.create_new_file(name, mode)
    }

    /// Creates a file for reading and writing, if none of that name exists.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn create_new_file(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.fd, name.as_ref(), flags, mode)?.into())
    }

    /// Syncs the names of its files to the device.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn sync(&self) -> io::Result<()> {
        // A descriptor opened with `O_PATH` cannot be synced.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::fsync(rustix::fs::openat(&self.fd, ".", flags, Mode::empty())?)?)
    }

    /// Gives a file created here to the folder's owner, if possible: a process of root must not take files away from
    /// the folder's user.
    pub fn give(&self, file: &File) {
        give(file, (self.owner, self.group));
    }

    /// Whether `name` is this open file.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn holds(&self, name: impl AsRef<OsStr>, file: &File) -> io::Result<bool> {
        let ours = rustix::fs::fstat(file)?;
        match rustix::fs::statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    #[must_use]
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        rustix::fs::statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes a file or a link; returns whether it existed.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.fd, name.as_ref(), AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Renames a file in this folder, replacing one of the new name; returns whether it existed.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<bool> {
        match rustix::fs::renameat(&self.fd, from.as_ref(), &self.fd, to.as_ref()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn try_open(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<Option<File>> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.fd, name, flags, mode) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refused("it is a link, which is not followed")),
            Err(errno) => return Err(errno.into()),
        };
        let found = rustix::fs::fstat(&file)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        if kind != FileType::RegularFile {
            return Err(refused(&regular_file::refusal(kind)));
        }
        let users = TrustedUsers::of_this_process();
        if self.is_open || self.owner != users.own {
            if found.st_nlink == 0 {
                return Ok(None);
            }
            // In a folder that only its user may write, that user's file gives no access beyond the user's own rights.
            let is_own = found.st_uid == self.owner && !self.is_open;
            if found.st_nlink > 1 && !is_own {
                return Err(refused(&format!("it has {} names in a folder that others may write", found.st_nlink)));
            }
            if !users.trusts(found.st_uid) && found.st_uid != self.owner {
                return Err(refused(&format!("it is of user {}, and its folder of user {}", found.st_uid, self.owner)));
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

impl From<Folder> for OwnedFd {
    fn from(folder: Folder) -> Self {
        folder.fd
    }
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

fn give(file: impl AsFd, (owner, group): (u32, u32)) {
    let users = TrustedUsers::of_this_process();
    if owner != users.own && Some(owner) != users.unmapped {
        let _ = rustix::fs::fchown(file, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)));
    }
}

#[derive(Clone, Copy, Debug)]
struct FolderCreation {
    mode: u32,
    is_given: bool,
}

#[derive(Clone, Copy, Debug)]
struct TrustedUsers {
    own: u32,
    /// Number shown for users outside the user namespace, who have more rights.
    unmapped: Option<u32>,
}

impl TrustedUsers {
    fn of_this_process() -> Self {
        Self { own: rustix::process::geteuid().as_raw(), unmapped: unmapped_user() }
    }

    fn trusts(self, user: u32) -> bool {
        user == 0 || user == self.own || Some(user) == self.unmapped
    }
}

fn unmapped_user() -> Option<u32> {
    static UNMAPPED: OnceLock<Option<u32>> = OnceLock::new();
    *UNMAPPED.get_or_init(|| {
        let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
        if map.split_whitespace().eq(["0", "0", "4294967295"]) {
            return None;
        }
        std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()
    })
}

fn walk(path: &Path, missing: Option<FolderCreation>, users: TrustedUsers) -> io::Result<(OwnedFd, Stat)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = rustix::fs::open(".", flags | OFlags::DIRECTORY, Mode::empty())?;
    let mut found = rustix::fs::fstat(&here)?;
    let mut guide = None;
    let mut ahead: VecDeque<OsString> = names(path).collect();
    // Number of upcoming components that come from a link: those are never created.
    let mut of_links = 0_usize;
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let missing = missing.filter(|_| of_links == 0);
        of_links = of_links.saturating_sub(1);
        let next = match (rustix::fs::openat(&here, &name, flags, Mode::empty()), missing) {
            (Err(Errno::NOENT), Some(missing)) => make(&here, &found, &name, missing)?,
            (next, _) => next?,
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
                    of_links += 1;
                }
            }
            FileType::Directory => (here, found) = (next, at_next),
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    Ok((here, found))
}

fn make(here: &OwnedFd, found: &Stat, name: &OsStr, missing: FolderCreation) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |more| rustix::fs::openat(here, name, flags | more, Mode::empty());
    match rustix::fs::mkdirat(here, name, Mode::from_raw_mode(missing.mode)) {
        Ok(()) if missing.is_given => {
            // Needs a new descriptor, not one of `O_PATH`; its name may belong to another's folder by now.
            let made = open(OFlags::RDONLY)?;
            if rustix::fs::fstat(&made)?.st_uid == rustix::process::geteuid().as_raw() {
                give(&made, (found.st_uid, found.st_gid));
            }
        }
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    open(OFlags::PATH)
}

fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    let steps = path.components().filter(|step| !matches!(step, Component::CurDir));
    steps.map(|step| step.as_os_str().to_owned()).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::chownat;
    use std::io::{Read, Write};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    const READ: OFlags = OFlags::RDONLY;
    const OTHER: u32 = 12_345;

    fn give(path: &Path) -> bool {
        let (user, group) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
        chownat(rustix::fs::CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn reason(error: &io::Error) -> String {
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        error.to_string()
    }

    #[test]
    fn files_are_created_and_removed() {
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
    fn links_and_pipes_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path()).unwrap();
        std::fs::write(root.path().join("file"), "x").unwrap();
        symlink("file", root.path().join("link")).unwrap();
        symlink("nothing", root.path().join("dangling")).unwrap();
        rustix::fs::mknodat(&folder, "pipe", FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::fs::create_dir(root.path().join("folder")).unwrap();
        for (wrong, expected) in
            [("link", "link"), ("dangling", "link"), ("pipe", "no regular file"), ("folder", "no regular file")]
        {
            let error = folder.open_file(wrong, READ).unwrap_err();
            assert!(reason(&error).contains(expected), "{wrong}: {error}");
        }
        let made = folder.open_or_create_file("dangling", OFlags::WRONLY, Mode::RUSR);
        assert!(reason(&made.unwrap_err()).contains("link") && !folder.has("nothing"));
        folder.create_file("link", Mode::RUSR).unwrap();
        assert_eq!(std::fs::read(root.path().join("file")).unwrap(), b"x");
    }

    #[test]
    fn hard_links_refused_in_shared_folder() {
        let root = tempfile::tempdir().unwrap();
        let [file, second] = ["file", "second"].map(|name| root.path().join(name));
        std::fs::write(&file, "x").unwrap();
        std::fs::hard_link(&file, second).unwrap();
        let open = || Folder::open(root.path()).unwrap().open_file("file", READ);
        assert!(open().unwrap().is_some(), "only its user writes here");
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o770)).unwrap();
        let expected = "it has 2 names in a folder that others may write";
        assert_eq!(reason(&open().unwrap_err()), expected);
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        if !give(root.path()) {
            return println!("SKIPPED: only root can give files away");
        }
        assert_eq!(reason(&open().unwrap_err()), expected, "another user may have linked a file of this one there");
        assert!(give(&file));
        assert!(open().unwrap().is_some(), "a backup of the folder's owner by hard links");
    }

    #[test]
    fn given_files_get_the_folders_owner() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        std::fs::create_dir(&home).unwrap();
        if !give(&home) {
            return println!("SKIPPED: only root can give files away");
        }
        let folder = Folder::create_private(&home.join("a/b")).unwrap();
        folder.give(&folder.create_file("file", Mode::RUSR).unwrap());
        Folder::create(&home.join("c")).unwrap();
        let owner = |name: &str| std::fs::metadata(home.join(name)).unwrap().uid();
        assert_eq!(["a", "a/b", "a/b/file"].map(owner), [OTHER; 3]);
        assert_eq!(owner("c"), rustix::process::geteuid().as_raw());
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
        assert_eq!(reason(&open().unwrap_err()), format!("it is of user {OTHER}, and its folder of user 0"));
        assert!(give(root.path()));
        assert!(open().unwrap().is_some(), "it is of the folder's owner");
    }

    #[test]
    fn users_links_reach_own_folders_only() {
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
        symlink(at("private/none"), at("dangling")).unwrap();
        for missing in ["dangling", "dangling/below"] {
            let error = Folder::create(&at(missing)).unwrap_err();
            assert!(error.kind() == io::ErrorKind::NotFound && !at("private/none").exists(), "{missing}: {error}");
        }
        // A new folder would also be created in a place chosen by another user.
        assert!(Folder::create(&at("home/absolute/new")).is_err() && !at("private/new").exists());
    }

    #[test]
    fn file_is_not_a_folder() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "x").unwrap();
        let opened = Folder::create(&root.path().join("file/logs"));
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(Folder::open(&root.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
