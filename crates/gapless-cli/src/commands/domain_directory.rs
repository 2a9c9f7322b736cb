//! What stands against a directory as a domain, said before it is opened: opening completes the mode of one that was just made, and
//! advises to close one that lets in others, which is no advice for `/tmp`.

use rustix::process::geteuid;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What its user needs there.
const MODE_OWN: u32 = 0o700;
/// What lets in others.
const MODE_OTHERS: u32 = 0o077;
/// Only its owner removes a file in such a directory.
const MODE_STICKY: u32 = 0o1000;

/// Why what is there is not opened by a command that only looks; `None` of one that is not there, or that opening is to judge.
pub(crate) fn reason_against(path: &Path) -> Option<String> {
    closed(path).or_else(|| no_place_for_one(path))
}

/// Why nothing is looked for in a directory: it is another user's, or its own user has closed it.
pub(crate) fn closed(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok()?;
    let shown = path.display();
    if let Some(user) = other_user(&found) {
        return Some(format!("{shown}: {user}"));
    }
    if lacks_own(path) {
        let mode = found.mode() & 0o777;
        return Some(format!("{shown}: its mode is {mode:04o}, which closes it to its own user: chmod 700 opens it"));
    }
    None
}

/// Why a domain is not to be there: others use the directory for something else.
pub(crate) fn no_place_for_one(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok().filter(Metadata::is_dir)?;
    let mode = found.mode() & 0o7777;
    if other_user(&found).is_some() || mode & MODE_OTHERS == 0 {
        return None;
    }
    let is_for_all = mode & MODE_STICKY != 0;
    let is_empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    (is_for_all || !is_empty && !has_files_of_one(path)).then(|| {
        let shown = path.display();
        format!("{shown}: its mode is {mode:04o}, which lets in others, and it is no domain's: choose another directory, which `gapless serve` makes")
    })
}

/// That a directory belongs to another user, in words.
pub(crate) fn other_user(found: &Metadata) -> Option<String> {
    let own = geteuid().as_raw();
    (found.is_dir() && found.uid() != own)
        .then(|| format!("it belongs to the user {}; this process runs as the user {own}", found.uid()))
}

/// Whether the mode takes from its user what a domain needs: it was just made under a strict umask, or closed on purpose.
pub(crate) fn lacks_own(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & MODE_OWN != MODE_OWN)
}

/// Whether a domain has left its files there: sockets and locks of copies, or counters.
pub(crate) fn has_files_of_one(path: &Path) -> bool {
    let is_one = |name: &str| {
        name.starts_with("copy-") && [".sock", ".lock"].iter().any(|ending| name.ends_with(ending))
            || ["route-", "calls-"].iter().any(|begin| name.starts_with(begin)) && name.ends_with(".counters")
    };
    std::fs::read_dir(path)
        .is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_one)))
}
