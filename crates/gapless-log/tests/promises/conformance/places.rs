//! The kinds of memory, and how a second process would come to map them.

use gapless_log::{MemoryKind, RingReader, RingWriter, StreamIdentity, Window, WindowOptions, WindowWriter, ring};
use rustix::fd::OwnedFd;
use std::path::PathBuf;
use tempfile::TempDir;

/// A kind of memory.
pub trait Place {
    fn new() -> Self;
    /// For `WindowOptions` and `ring::create`.
    fn kind(&self) -> MemoryKind;
    /// Another mapping of the memory behind `fd`, if another process could have one.
    fn reopen(&self, fd: OwnedFd) -> Option<OwnedFd>;

    /// Options of a small window here.
    fn options(&self) -> WindowOptions {
        WindowOptions {
            memory: self.kind(),
            capacity_bytes: 4096,
            index_slots: 64,
            frame_length_max: 2048,
            identity: StreamIdentity { stream_id: 7 << 64 | 5, incarnation: 3 },
        }
    }

    /// A reader's handle, over a mapping of its own where there can be one.
    fn reader(&self, writer: &WindowWriter) -> Window {
        let window = writer.window();
        match self.reopen(window.fd().try_clone_to_owned().unwrap()) {
            Some(fd) => Window::open(fd).unwrap(),
            None => window,
        }
    }

    /// Both ends of a small ring, over mappings of their own where there can be two.
    fn ring(&self) -> (RingWriter, RingReader) {
        let (writer, reader) = ring::create(&self.kind(), 4096, StreamIdentity::default()).unwrap();
        match self.reopen(writer.fd().try_clone_to_owned().unwrap()) {
            Some(fd) => {
                writer.leave_to_peer();
                (RingWriter::open(fd).unwrap(), reader)
            }
            None => (writer, reader),
        }
    }
}

/// One mapping, one process.
pub struct Anonymous;

impl Place for Anonymous {
    fn new() -> Self {
        Self
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Anonymous
    }

    fn reopen(&self, _fd: OwnedFd) -> Option<OwnedFd> {
        None
    }
}

/// Mapped again from the descriptor.
pub struct Shared;

impl Place for Shared {
    fn new() -> Self {
        Self
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Shared
    }

    fn reopen(&self, fd: OwnedFd) -> Option<OwnedFd> {
        Some(fd)
    }
}

/// Mapped again from the path.
pub struct InFile {
    _directory: TempDir,
    path: PathBuf,
}

impl Place for InFile {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        Self { path: directory.path().join("mapping"), _directory: directory }
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::File(self.path.clone())
    }

    fn reopen(&self, _fd: OwnedFd) -> Option<OwnedFd> {
        Some(std::fs::File::options().read(true).write(true).open(&self.path).unwrap().into())
    }
}
