//! Reasons not to open a directory as a domain. Checked first, because opening completes the mode of a new directory,
//! and advises to close one that is open to others, which is wrong for `/tmp`.

use rustix::process::geteuid;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

const MODE_OWN: u32 = 0o700;
const MODE_OTHERS: u32 = 0o077;
const MODE_STICKY: u32 = 0o1000;

pub(crate) fn reason_against(path: &Path) -> Option<String> {
    reason_not_searched(path).or_else(|| reason_not_a_domain(path))
}

/// The directory belongs to another user, or its owner has closed it.
pub(crate) fn reason_not_searched(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok()?;
    let shown = path.display();
    if let Some(user) = foreign_owner(&found) {
        return Some(format!("{shown}: {user}"));
    }
    if lacks_owner_permissions(path) {
        let mode = found.mode() & 0o777;
        return Some(format!("{shown}: its mode is {mode:04o}, which closes it to its own user: chmod 700 opens it"));
    }
    None
}

pub(crate) fn reason_not_a_domain(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok().filter(Metadata::is_dir)?;
    let mode = found.mode() & 0o7777;
    if foreign_owner(&found).is_some() || mode & MODE_OTHERS == 0 {
        return None;
    }
    let is_for_all = mode & MODE_STICKY != 0;
    let is_empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    (is_for_all || !is_empty && !has_domain_files(path)).then(|| {
        let shown = path.display();
        format!("{shown}: its mode is {mode:04o}, which lets in others, and it is no domain's: choose another directory, which `gapless serve` makes")
    })
}

pub(crate) fn foreign_owner(found: &Metadata) -> Option<String> {
    let own = geteuid().as_raw();
    (found.is_dir() && found.uid() != own)
        .then(|| format!("it belongs to the user {}; this process runs as the user {own}", found.uid()))
}

/// The directory was just created under a strict umask, or closed on purpose.
pub(crate) fn lacks_owner_permissions(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & MODE_OWN != MODE_OWN)
}

pub(crate) fn has_domain_files(path: &Path) -> bool {
    let is_one = |name: &str| {
        name.starts_with("copy-") && [".sock", ".lock"].iter().any(|ending| name.ends_with(ending))
            || ["route-", "calls-"].iter().any(|begin| name.starts_with(begin)) && name.ends_with(".counters")
    };
    std::fs::read_dir(path)
        .is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_one)))
}
