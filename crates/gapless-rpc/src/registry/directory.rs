//! [`DomainDirectory`]: the directory where the processes of a domain meet. All files are reached through one checked
//! descriptor, so the checked directory is the used one, and a long path does not exceed the 107 bytes of a socket's
//! address.

use crate::registry::error::RegistryError;
use gapless_agent::folder::Folder;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Dir, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Gid, geteuid};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

pub const DOMAIN_NAME_LENGTH_MAX: usize = 64;

const MODE_ALONE: u32 = 0o700;
/// The group may look and connect; only the owner may serve.
const MODE_GROUP: u32 = 0o750;

pub const DOMAIN_VARIABLE: &str = "GAPLESS_DOMAIN";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainLocation {
    /// `$XDG_RUNTIME_DIR/gapless/NAME` if that variable names a directory of this user, else `/tmp/gapless-USER/NAME`.
    Named(String),
    /// Created if only its last component is missing.
    Path(PathBuf),
}

impl DomainLocation {
    /// Domain named by the variable `GAPLESS_DOMAIN`, a path if it begins with a slash; `None` without it.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn from_environment() -> Result<Option<Self>, RegistryError> {
        let Some(value) = std::env::var_os(DOMAIN_VARIABLE) else { return Ok(None) };
        let path = PathBuf::from(&value);
        if path.has_root() {
            return Ok(Some(Self::Path(path)));
        }
        let name = value.to_string_lossy().into_owned();
        DomainDirectory::path_of_name(&name)?;
        Ok(Some(Self::Named(name)))
    }
}

/// Directory where the processes of a domain meet.
#[derive(Debug)]
pub struct DomainDirectory {
    fd: RwLock<Arc<OwnedFd>>,
    path: PathBuf,
    /// Absolute: the working directory may change.
    absolute: PathBuf,
    owner: u32,
    group: Option<u32>,
}

impl DomainDirectory {
    /// Opens the directory, or creates it, with mode 0700 regardless of the umask; with a `group` 0750, and its
    /// processes may call routes served here.
    ///
    /// # Errors
    /// A directory of another user, or one that more users may enter; an invalid name; a group for a default place,
    /// which is closed to other users.
    pub fn open(place: &DomainLocation, group: Option<u32>) -> Result<Self, RegistryError> {
        let name = match place {
            // Without a trailing slash, which would follow a link.
            DomainLocation::Path(path) => {
                return Self::open_path(&path.components().collect::<PathBuf>(), path.clone(), group);
            }
            DomainLocation::Named(name) => name,
        };
        if group.is_some() {
            let reason =
                format!("the domain {name} lies where only its user may enter; a group needs a domain with a path");
            return Err(RegistryError::Option { option: "group", reason });
        }
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Self::open_named(name, runtime.as_deref(), Path::new("/tmp"))
    }

    /// Path of the domain with this name, existing or not.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn path_of_name(name: &str) -> Result<PathBuf, RegistryError> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Ok(Self::parent_of(name, runtime.as_deref(), Path::new("/tmp"))?.join(name))
    }

    fn open_named(name: &str, runtime: Option<&Path>, temporary: &Path) -> Result<Self, RegistryError> {
        let parent = Self::parent_of(name, runtime, temporary)?;
        // In a directory that others may write, they could replace this one.
        let parent = Self::open_path(&parent, parent.clone(), None)?;
        Self::open_at(parent.fd().as_fd(), Path::new(name), parent.path.join(name), None)
    }

    fn parent_of(name: &str, runtime: Option<&Path>, temporary: &Path) -> Result<PathBuf, RegistryError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if !(1..=DOMAIN_NAME_LENGTH_MAX).contains(&name.len()) || !name.bytes().all(is_allowed) || name.starts_with('.')
        {
            let reason = format!(
                "{:?} is no domain's name: 1 to {DOMAIN_NAME_LENGTH_MAX} letters, digits, \".\", \"-\" and \"_\" are \
                 expected, with no \".\" in front",
                name.chars().take(200).collect::<String>()
            );
            return Err(RegistryError::Option { option: "domain", reason });
        }
        let is_own = |path: &&Path| {
            path.is_absolute() && rustix::fs::stat(*path).is_ok_and(|stat| stat.st_uid == geteuid().as_raw())
        };
        Ok(match runtime.filter(is_own) {
            Some(runtime) => runtime.join("gapless"),
            None => temporary.join(format!("gapless-{}", geteuid().as_raw())),
        })
    }

    /// Follows no link of another user: the directory would be created, and opened for a group, in a place chosen by
    /// someone else.
    fn open_path(place: &Path, path: PathBuf, group: Option<u32>) -> Result<Self, RegistryError> {
        let Some(name) = place.file_name() else {
            return Err(RegistryError::Domain { path, reason: "it has no name".to_owned() });
        };
        let failed = RegistryError::system(format!("opening the domain {}", path.display()));
        let folder = Folder::open(place.parent().unwrap_or(Path::new(""))).map_err(failed)?;
        Self::open_at(folder.as_fd(), Path::new(name), path, group)
    }

    fn open_at(at: BorrowedFd<'_>, name: &Path, path: PathBuf, group: Option<u32>) -> Result<Self, RegistryError> {
        let failed = || RegistryError::system(format!("opening the domain {}", path.display()));
        let refused = |reason| RegistryError::Domain { path: path.clone(), reason };
        match rustix::fs::mkdirat(at, name, Mode::from_raw_mode(MODE_ALONE)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed()(errno)),
        }
        complete_mode(at, name).map_err(failed())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(at, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(refused(
                    "it is no directory, or a link to one; the directory itself is expected".to_owned(),
                ));
            }
            Err(errno) => return Err(failed()(errno)),
        };
        let mut stat = rustix::fs::fstat(&fd).map_err(failed())?;
        let own = geteuid().as_raw();
        if let Some(group) = group.filter(|_| stat.st_uid == own && stat.st_mode & 0o777 == MODE_ALONE) {
            rustix::fs::fchown(&fd, None, Some(Gid::from_raw(group))).map_err(failed())?;
            rustix::fs::fchmod(&fd, Mode::from_raw_mode(MODE_GROUP)).map_err(failed())?;
            stat = rustix::fs::fstat(&fd).map_err(failed())?;
        }
        check(&stat, own, group).map_err(refused)?;
        let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        Ok(Self { fd: RwLock::new(Arc::new(fd)), path, absolute, owner: stat.st_uid, group })
    }

    /// Opens or creates the directory again if it was removed or replaced; returns whether it was.
    ///
    /// # Errors
    /// As [`DomainDirectory::open`]; its parent was removed, too, or the owner has changed.
    pub(crate) fn renew(&self) -> Result<bool, RegistryError> {
        let failed = || RegistryError::system(format!("looking at the domain {}", self.path.display()));
        let here = rustix::fs::fstat(self.fd()).map_err(failed())?;
        match rustix::fs::lstat(&self.absolute) {
            Ok(listed_instances)
                if (listed_instances.st_dev, listed_instances.st_ino) == (here.st_dev, here.st_ino) =>
            {
                return Ok(false);
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed()(errno)),
        }
        let new = Self::open_path(&self.absolute, self.path.clone(), self.group)?;
        if new.owner != self.owner {
            let reason = format!("it belongs to the user {} now, and belonged to {}", new.owner, self.owner);
            return Err(RegistryError::Domain { path: self.path.clone(), reason });
        }
        *self.fd.write().unwrap_or_else(PoisonError::into_inner) = new.fd();
        Ok(true)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn may_serve(&self, user_id: u32) -> bool {
        user_id == self.owner || user_id == 0
    }

    /// Whether a process of this user may call here; with a group, the modes of the files decide.
    #[must_use]
    pub fn may_call(&self, user_id: u32) -> bool {
        self.group.is_some() || self.may_serve(user_id)
    }

    pub(crate) fn socket_mode(&self) -> Mode {
        Mode::from_raw_mode(if self.group.is_some() { 0o660 } else { 0o600 })
    }

    pub(crate) fn group(&self) -> Option<Gid> {
        self.group.map(Gid::from_raw)
    }

    pub(crate) fn fd(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn list(&self) -> Result<Vec<(InstanceId, FileKind)>, RegistryError> {
        let failed = || RegistryError::system(format!("listing the domain {}", self.path.display()));
        let mut found = Vec::new();
        for entry in Dir::read_from(self.fd()).map_err(failed())? {
            found.extend(InstanceId::of_file(entry.map_err(failed())?.file_name().to_bytes()));
        }
        Ok(found)
    }
}

/// Short path of a name in a directory, valid in this process while the descriptor is open.
pub fn path_in(directory: &OwnedFd, name: &str) -> String {
    format!("/proc/self/fd/{}/{name}", directory.as_raw_fd())
}

/// The umask of the creating process may have removed the owner's permissions.
fn complete_mode(at: BorrowedFd<'_>, name: &Path) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(found) = rustix::fs::openat(at, name, flags, Mode::empty()) else { return Ok(()) };
    let stat = rustix::fs::fstat(&found)?;
    let is_lacking = (stat.st_mode & 0o777) | MODE_ALONE == MODE_ALONE && stat.st_mode & MODE_ALONE != MODE_ALONE;
    if stat.st_uid == geteuid().as_raw() && is_lacking {
        // By its descriptor, since the name may be another's by now. A descriptor opened with `O_PATH` takes no mode
        // itself.
        rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::from_raw_mode(MODE_ALONE))?;
    }
    Ok(())
}

fn check(stat: &Stat, own: u32, group: Option<u32>) -> Result<(), String> {
    let (user, mode) = (stat.st_uid, stat.st_mode & 0o777);
    if let Some(group) = group.filter(|group| stat.st_gid != *group) {
        return Err(format!("it belongs to the group {}; the group {group} is configured", stat.st_gid));
    }
    // Members of a group trust each other.
    if user != own && group.is_none() {
        return Err(format!("it belongs to the user {user}; this process runs as the user {own}"));
    }
    let allowed = if group.is_some() { MODE_GROUP } else { MODE_ALONE };
    match mode & !allowed {
        0 => Ok(()),
        _ => Err(format!(
            "its mode is {mode:04o}, which lets in others; at most {allowed:04o} is allowed: chmod {allowed:o}"
        )),
    }
}

/// Random number in the names of a serving process's files, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(u128);

/// File of a serving process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Socket,
    /// Locked while the process lives.
    Lock,
    /// The socket before it listens.
    NewSocket,
}

impl FileKind {
    const fn ending(self) -> &'static str {
        match self {
            Self::Socket => ".sock",
            Self::Lock => ".lock",
            Self::NewSocket => ".new",
        }
    }
}

impl InstanceId {
    pub fn random() -> Self {
        Self(gapless_transport::token::random_token())
    }

    pub fn file(self, kind: FileKind) -> String {
        format!("{self}{}", kind.ending())
    }

    /// Parses the name of a file of an instance.
    pub fn of_file(name: &[u8]) -> Option<(Self, FileKind)> {
        let rest = std::str::from_utf8(name).ok()?.strip_prefix("copy-")?;
        let (digits, ending) = rest.split_at_checked(32)?;
        let kind =
            [FileKind::Socket, FileKind::Lock, FileKind::NewSocket].into_iter().find(|kind| kind.ending() == ending)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_id = digits.bytes().all(is_digit);
        is_id.then(|| u128::from_str_radix(digits, 16).ok()).flatten().map(|number| (Self(number), kind))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copy-{:032x}", self.0)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn open(path: &Path) -> Result<DomainDirectory, RegistryError> {
        DomainDirectory::open(&DomainLocation::Path(path.to_owned()), None)
    }

    #[test]
    fn directory_is_private_or_refused() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("domain");
        drop(open(&path).unwrap());
        assert_eq!(mode(&path), 0o700);
        drop(open(&path).unwrap());
        for bad in [0o701, 0o710, 0o720, 0o750, 0o755, 0o777] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bad)).unwrap();
            let error = open(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("its mode is 0{bad:o}")) && error.contains("chmod 700"), "{error}");
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
        let link = parent.path().join("link");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for link in [link.clone(), link.join(""), link.join("."), link.join("./")] {
            assert!(open(&link).unwrap_err().to_string().contains("it is no directory, or a link"), "{link:?}");
        }
        drop(open(&path.join("")).unwrap());
        let file = parent.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(open(&file).unwrap_err().to_string().contains("it is no directory"));
        assert!(matches!(open(&parent.path().join("no/such")), Err(RegistryError::System { .. })));
    }

    #[test]
    fn removed_directory_is_made_again() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("domain");
        let domain = open(&path).unwrap();
        assert!(!domain.renew().unwrap());
        std::fs::remove_dir(&path).unwrap();
        assert!(domain.renew().unwrap() && !domain.renew().unwrap() && mode(&path) == 0o700);
        std::fs::rename(&path, parent.path().join("before")).unwrap();
        drop(open(&path).unwrap());
        assert!(domain.renew().unwrap() && !domain.renew().unwrap(), "another has its path");
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(domain.renew().unwrap_err().to_string().contains("it is no directory"));
    }

    #[test]
    fn directory_of_other_user_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("domain");
        drop(open(&path).unwrap());
        let mut stat = rustix::fs::stat(&path).unwrap();
        stat.st_uid = 12345;
        let own = geteuid().as_raw();
        let error = check(&stat, own, None).unwrap_err();
        assert_eq!(error, format!("it belongs to the user 12345; this process runs as the user {own}"));
        if !geteuid().is_root() {
            println!("SKIPPED: giving a directory away needs a privilege that this process does not have");
            return;
        }
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        assert!(open(&path).unwrap_err().to_string().contains("it belongs to the user 12345"));
    }

    #[test]
    fn foreign_link_opens_no_directory() {
        if !geteuid().is_root() {
            println!("SKIPPED: only root can give links away");
            return;
        }
        let parent = tempfile::tempdir().unwrap();
        let (secret, home) = (parent.path().join("secret"), parent.path().join("home"));
        std::fs::create_dir_all(secret.join("domain")).unwrap();
        std::fs::set_permissions(secret.join("domain"), std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(&secret, home.join("run")).unwrap();
        for path in [&home, &home.join("run")] {
            std::os::unix::fs::lchown(path, Some(12345), Some(12345)).unwrap();
        }
        for name in ["domain", "new"] {
            let place = DomainLocation::Path(home.join("run").join(name));
            for group in [Some(12345), None] {
                let error = DomainDirectory::open(&place, group).unwrap_err().to_string();
                assert!(error.contains("a link of user 12345 leads to"), "{error}");
            }
        }
        assert_eq!((mode(&secret.join("domain")), std::fs::read_dir(&secret).unwrap().count()), (0o700, 1));
    }

    #[test]
    fn configured_group_may_enter() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("domain");
        let group = rustix::process::getegid().as_raw();
        let with_group = |group| DomainDirectory::open(&DomainLocation::Path(path.clone()), Some(group));
        let domain = with_group(group).unwrap();
        assert_eq!((mode(&path), domain.socket_mode().as_raw_mode()), (0o750, 0o660));
        assert!(domain.may_call(12345) && !domain.may_serve(12345));
        assert!(open(&path).unwrap_err().to_string().contains("at most 0700"));
        let error = with_group(group + 1).unwrap_err().to_string();
        assert!(error.contains(&format!("the group {} is configured", group + 1)), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o770)).unwrap();
        assert!(with_group(group).unwrap_err().to_string().contains("at most 0750"));
        let named = DomainDirectory::open(&DomainLocation::Named("shared".to_owned()), Some(group));
        assert!(named.unwrap_err().to_string().contains("a group needs a domain with a path"));
    }

    #[test]
    fn default_place_belongs_to_user() {
        let (runtime, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = |name: &str, runtime: Option<&Path>| DomainDirectory::open_named(name, runtime, temporary.path());
        let own = temporary.path().join(format!("gapless-{}", geteuid().as_raw()));
        assert_eq!(open("a", Some(runtime.path())).unwrap().path(), runtime.path().join("gapless/a"));
        for other in [None, Some(Path::new("relative")), Some(Path::new("/no/such/directory"))] {
            assert_eq!(open("a", other).unwrap().path(), own.join("a"));
        }
        assert_eq!((mode(&own), mode(&own.join("a"))), (0o700, 0o700));
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(open("a", None).unwrap_err().to_string().contains("its mode is 0777"));
        for bad in ["", ".", "..", ".a", "a/b", "ä", &"x".repeat(65)] {
            assert!(matches!(open(bad, None), Err(RegistryError::Option { option: "domain", .. })), "{bad}");
        }
    }

    #[test]
    fn foreign_file_names_are_ignored() {
        let id = InstanceId::random();
        for kind in [FileKind::Socket, FileKind::Lock, FileKind::NewSocket] {
            assert_eq!(InstanceId::of_file(id.file(kind).as_bytes()), Some((id, kind)));
        }
        let digits = "0".repeat(32);
        let others =
            ["copy-.sock", "copy-12.sock", "other", "copy-é", "", "..", &format!("copy-+{}.sock", &digits[1..])];
        let upper = format!("copy-{}A.sock", &digits[1..]);
        for other in others.into_iter().chain([&*upper, &format!("copy-{digits}.sock2")]) {
            assert_eq!(InstanceId::of_file(other.as_bytes()), None, "{other}");
        }
        assert_eq!(InstanceId::of_file(b"copy-\xff"), None);
    }
}
