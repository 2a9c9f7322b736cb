use gapless_log::{LogError, MemoryKind, RingReader, RingWriter, Window};
use gapless_testkit::process::{Process, this_program};
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const PART: &str = "GAPLESS_LOG_PEER";
const MEMORY: &str = "GAPLESS_LOG_MEMORY";

pub enum Place {
    Shared,
    File(TempDir),
}

impl Place {
    pub fn each() -> [Self; 2] {
        [Self::Shared, Self::File(TempDir::new().unwrap())]
    }

    pub fn kind(&self, name: &str) -> MemoryKind {
        match self {
            Self::Shared => MemoryKind::Shared,
            Self::File(directory) => MemoryKind::File(directory.path().join(name)),
        }
    }

    pub fn reopen(&self, name: &str, fd: BorrowedFd<'_>) -> Memory {
        match self {
            Self::Shared => Memory::Shared(rustix::io::dup(fd).unwrap()),
            Self::File(directory) => Memory::File(directory.path().join(name)),
        }
    }

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

pub struct Peer {
    process: Process,
    deadline: Instant,
}

impl Peer {
    pub fn start(part: &str, place: &Place, memories: &[(&str, BorrowedFd<'_>)]) -> Self {
        let told: Vec<_> = memories.iter().map(|(name, fd)| place.tell(name, *fd)).collect();
        let mut command = this_program();
        command.args(["--exact", "between_processes::peer_entry", "--nocapture"]).env(PART, part).stdout(Stdio::null());
        for (number, (how, _)) in told.iter().enumerate() {
            command.env(format!("{MEMORY}_{number}"), how);
        }
        // A busy machine gets minutes.
        Self { process: Process::start_as(&mut command), deadline: Instant::now() + Duration::from_secs(300) }
    }

    pub fn wait_a_little(&mut self) {
        if let Some(status) = self.process.ended() {
            assert!(status.success(), "the peer ended with {status}");
        }
        assert!(Instant::now() < self.deadline, "the peer does nothing");
        std::thread::yield_now();
    }

    pub fn join(mut self) {
        while self.process.ended().is_none() {
            self.wait_a_little();
        }
        assert!(self.process.wait().success());
    }

    pub fn kill(mut self) {
        self.process.kill();
    }
}

pub fn memory(number: usize) -> Memory {
    let how = std::env::var(format!("{MEMORY}_{number}")).unwrap();
    match how.strip_prefix("fd:") {
        // SAFETY: the parent left this descriptor open for us, and each is taken once.
        Some(fd) => Memory::Shared(unsafe { OwnedFd::from_raw_fd(fd.parse().unwrap()) }),
        None => Memory::File(how.into()),
    }
}

pub enum Memory {
    Shared(OwnedFd),
    File(std::path::PathBuf),
}

impl Memory {
    pub fn writer(self) -> Result<RingWriter, LogError> {
        match self {
            Self::Shared(fd) => RingWriter::open(fd),
            Self::File(path) => RingWriter::open_file(&path),
        }
    }

    pub fn reader(self) -> Result<RingReader, LogError> {
        match self {
            Self::Shared(fd) => RingReader::open(fd),
            Self::File(path) => RingReader::open_file(&path),
        }
    }

    pub fn window(self) -> Result<Window, LogError> {
        match self {
            Self::Shared(fd) => Window::open(fd),
            Self::File(path) => Window::open_file(&path),
        }
    }

    pub fn file(self) -> std::fs::File {
        match self {
            Self::Shared(fd) => fd.into(),
            Self::File(path) => std::fs::File::options().write(true).open(path).unwrap(),
        }
    }
}
