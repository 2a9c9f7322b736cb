//! The other process: started, given its memory, watched, and never left behind.

use gapless_log::MemoryKind;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the peer's part.
pub const PART: &str = "GAPLESS_LOG_PEER";
const MEMORY: &str = "GAPLESS_LOG_MEMORY";

/// Where the memory between two processes lives.
pub enum Place {
    /// Its descriptor is inherited.
    Shared,
    /// Its path is told.
    File(TempDir),
}

impl Place {
    /// Both.
    pub fn each() -> [Self; 2] {
        [Self::Shared, Self::File(TempDir::new().unwrap())]
    }

    pub fn kind(&self, name: &str) -> MemoryKind {
        match self {
            Self::Shared => MemoryKind::Shared,
            Self::File(directory) => MemoryKind::File(directory.path().join(name)),
        }
    }

    /// How the peer finds `fd`, created here as `name`.
    fn tell(&self, name: &str, fd: BorrowedFd<'_>) -> (String, Option<OwnedFd>) {
        match self {
            Self::Shared => {
                let inherited = rustix::io::dup(fd).unwrap();
                (format!("fd:{}", inherited.as_raw_fd()), Some(inherited))
            }
            Self::File(directory) => (directory.path().join(name).to_str().unwrap().to_owned(), None),
        }
    }
}

/// Another process that plays a part; killed when it is dropped.
pub struct Peer {
    child: Child,
    deadline: Instant,
}

impl Peer {
    /// Starts one with the named memories.
    pub fn start(part: &str, place: &Place, memories: &[(&str, BorrowedFd<'_>)]) -> Self {
        let told: Vec<_> = memories.iter().map(|(name, fd)| place.tell(name, *fd)).collect();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "between_processes::peer_entry", "--nocapture"]).env(PART, part).stdout(Stdio::null());
        for (number, (how, _)) in told.iter().enumerate() {
            command.env(format!("{MEMORY}_{number}"), how);
        }
        // A stuck peer fails the test instead of holding it up; a busy machine gets minutes.
        Self { child: command.spawn().unwrap(), deadline: Instant::now() + Duration::from_secs(300) }
    }

    /// While waiting for the peer: gives it the processor, and fails if it is dead or stuck.
    pub fn wait_a_little(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            assert!(status.success(), "the peer ended with {status}");
        }
        assert!(Instant::now() < self.deadline, "the peer does nothing");
        std::thread::yield_now();
    }

    /// Waits until it is done.
    pub fn join(mut self) {
        while self.child.try_wait().unwrap().is_none() {
            self.wait_a_little();
        }
        assert!(self.child.wait().unwrap().success());
    }

    /// SIGKILL, and it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the peer: memory `number`, for reading and writing.
pub fn memory(number: usize) -> OwnedFd {
    let how = std::env::var(format!("{MEMORY}_{number}")).unwrap();
    match how.strip_prefix("fd:") {
        // SAFETY: the parent left this descriptor open for us, and each is taken once.
        Some(fd) => unsafe { OwnedFd::from_raw_fd(fd.parse().unwrap()) },
        None => std::fs::File::options().read(true).write(true).open(how).unwrap().into(),
    }
}

/// In the peer: the path of memory `number`, if it was told one.
pub fn memory_path(number: usize) -> Option<std::path::PathBuf> {
    let how = std::env::var(format!("{MEMORY}_{number}")).unwrap();
    (!how.starts_with("fd:")).then(|| how.into())
}
