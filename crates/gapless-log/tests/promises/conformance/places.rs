use gapless_log::{MemoryKind, RingReader, RingWriter, StreamIdentity, Window, WindowOptions, WindowWriter, ring};
use rustix::fd::OwnedFd;
use std::path::PathBuf;
use tempfile::TempDir;

pub trait Place {
    fn new() -> Self;
    fn kind(&self) -> MemoryKind;
    fn reopen_writer(&self, fd: OwnedFd) -> RingWriter {
        RingWriter::open(fd).unwrap()
    }
    fn reopen_reader(&self, fd: OwnedFd) -> RingReader {
        RingReader::open(fd).unwrap()
    }
    fn reopen_window(&self, fd: OwnedFd) -> Window {
        Window::open(fd).unwrap()
    }

    fn options(&self) -> WindowOptions {
        WindowOptions {
            memory: self.kind(),
            capacity_bytes: 4096,
            index_slots: 64,
            frame_length_max: 2048,
            identity: StreamIdentity { stream_id: 7 << 64 | 5, incarnation: 3 },
        }
    }

    fn reader(&self, writer: &WindowWriter) -> Window {
        self.reopen_window(writer.window().fd().try_clone_to_owned().unwrap())
    }

    fn ring(&self) -> (RingWriter, RingReader) {
        let (writer, reader) = ring::create(&self.kind(), 4096, StreamIdentity::default()).unwrap();
        let again = self.reopen_writer(writer.fd().try_clone_to_owned().unwrap());
        writer.leave_to_peer();
        (again, reader)
    }
}

pub struct Anonymous;

impl Place for Anonymous {
    fn new() -> Self {
        Self
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Anonymous
    }

    fn reader(&self, writer: &WindowWriter) -> Window {
        writer.window()
    }

    fn ring(&self) -> (RingWriter, RingReader) {
        ring::create(&self.kind(), 4096, StreamIdentity::default()).unwrap()
    }
}

pub struct Shared;

impl Place for Shared {
    fn new() -> Self {
        Self
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Shared
    }
}

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

    fn reopen_writer(&self, _fd: OwnedFd) -> RingWriter {
        RingWriter::open_file(&self.path).unwrap()
    }

    fn reopen_reader(&self, _fd: OwnedFd) -> RingReader {
        RingReader::open_file(&self.path).unwrap()
    }

    fn reopen_window(&self, _fd: OwnedFd) -> Window {
        Window::open_file(&self.path).unwrap()
    }
}
