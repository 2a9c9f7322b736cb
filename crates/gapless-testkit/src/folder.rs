//! Copies of directories, and small file systems for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Replaces `to` by a copy without sockets.
#[track_caller]
pub fn copy(from: &Path, to: &Path) {
    let _absent = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("a directory can be made");
    for entry in std::fs::read_dir(from).expect("a directory can be listed") {
        let entry = entry.expect("a directory can be listed");
        let (kind, target) = (entry.file_type().expect("an entry has a type"), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            std::fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}

/// A small file system in memory, unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk {
    pub path: PathBuf,
    _parent: Option<TempDir>,
}

impl SmallDisk {
    /// Mounts in a temporary directory; `None` and a note where that is not allowed.
    pub fn new(kilobytes: u32) -> Option<Self> {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let mut disk = Self::mount(&parent.path().join("disk"), kilobytes)?;
        disk._parent = Some(parent);
        Some(disk)
    }

    /// Mounts at a new directory; `None` and a note where that is not allowed.
    pub fn mount(path: &Path, kilobytes: u32) -> Option<Self> {
        std::fs::create_dir_all(path).expect("a directory can be made");
        if !run("mount", &["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "gapless-test"], path) {
            println!("SKIPPED: mounting a tmpfs needs a privilege that this process does not have");
            return None;
        }
        Some(Self { path: path.to_owned(), _parent: None })
    }

    /// Accepts options such as `size=2m` or `ro`. Retries, because a process just forked by another test may hold a
    /// file for writing.
    #[track_caller]
    pub fn remount(&self, options: &str) {
        crate::wait::until(&format!("remount {options}"), || {
            run("mount", &["-o", &format!("remount,{options}")], &self.path)
        });
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process may still have files there.
        run("umount", &["-l"], &self.path);
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    Command::new(program).args(arguments).arg(path).output().is_ok_and(|output| output.status.success())
}
