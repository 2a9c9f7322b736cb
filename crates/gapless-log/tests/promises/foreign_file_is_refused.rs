//! The error names the field, and comes before anything is mapped.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gapless_log::{LogError, MemoryKind, RingReader, RingWriter, StreamIdentity, Window, WindowOptions, ring};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const CAPACITY: usize = 8192;

fn sound_files() -> (TempDir, PathBuf, PathBuf) {
    let directory = TempDir::new().unwrap();
    let (ring_path, window_path) = (directory.path().join("ring"), directory.path().join("window"));
    ring::create(&MemoryKind::File(ring_path.clone()), CAPACITY, StreamIdentity::default()).unwrap();
    let options = WindowOptions {
        memory: MemoryKind::File(window_path.clone()),
        capacity_bytes: CAPACITY,
        index_slots: 64,
        frame_length_max: 1024,
        ..WindowOptions::default()
    };
    options.create(1).unwrap();
    Window::open_file(&window_path).unwrap();
    RingReader::open_file(&ring_path).unwrap();
    (directory, ring_path, window_path)
}

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

fn foreign_field(error: LogError) -> &'static str {
    match error {
        LogError::Foreign { field, .. } => field,
        error => panic!("{error}"),
    }
}

fn fields(ring_path: &Path, window_path: &Path) -> [&'static str; 3] {
    [
        foreign_field(RingReader::open_file(ring_path).err().unwrap()),
        foreign_field(RingWriter::open_file(ring_path).err().unwrap()),
        foreign_field(Window::open_file(window_path).err().unwrap()),
    ]
}

#[test]
fn wrong_header_word_is_named() {
    let cases: [(u64, &[u64], &str); 4] = [
        (0, &[0, 1, u64::MAX, u64::from_le_bytes(*b"GAPLESS\x02")], "magic"),
        (8, &[0, 3, u64::MAX], "kind"),
        (16, &[0, 1, 4095, 4097, 1 << 37, u64::MAX], "capacity"),
        (24, &[3, 1 << 14, 1 << 60, u64::MAX], "index slots"),
    ];
    for (offset, values, field) in cases {
        for value in values {
            let (_directory, ring_path, window_path) = sound_files();
            for path in [&ring_path, &window_path] {
                open(path).write_all_at(&value.to_le_bytes(), offset).unwrap();
            }
            assert_eq!(fields(&ring_path, &window_path), [field; 3], "{value:#x} at {offset}");
        }
    }
}

#[test]
fn another_kind_of_mapping_is_refused() {
    let (_directory, ring_path, window_path) = sound_files();
    assert_eq!(fields(&window_path, &ring_path), ["kind"; 3]);
}

#[test]
fn index_must_match_the_kind() {
    let (_directory, ring_path, window_path) = sound_files();
    open(&window_path).write_all_at(&0_u64.to_le_bytes(), 24).unwrap();
    open(&ring_path).write_all_at(&64_u64.to_le_bytes(), 24).unwrap();
    assert_eq!(fields(&ring_path, &window_path), ["index slots"; 3]);
}

#[test]
fn wrong_file_length_is_refused() {
    for change in [-8192, -4096, -1, 1, 4096] {
        let (_directory, ring_path, window_path) = sound_files();
        for path in [&ring_path, &window_path] {
            let file = open(path);
            let length = file.metadata().unwrap().len();
            file.set_len(length.saturating_add_signed(change)).unwrap();
        }
        assert_eq!(fields(&ring_path, &window_path), ["file length"; 3], "{change}");
    }
}

#[test]
fn capacity_beyond_the_file_is_refused() {
    for capacity in [4096_u64, 16384, 1 << 36] {
        let (_directory, ring_path, window_path) = sound_files();
        for path in [&ring_path, &window_path] {
            open(path).write_all_at(&capacity.to_le_bytes(), 16).unwrap();
        }
        assert_eq!(fields(&ring_path, &window_path), ["file length"; 3], "{capacity}");
    }
}

#[test]
fn short_file_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("short");
    for length in [0, 1, 63] {
        fs::write(&path, vec![b'G'; length]).unwrap();
        assert_eq!(fields(&path, &path), ["file length"; 3], "{length}");
    }
    fs::write(&path, [b'G'; 64]).unwrap();
    assert_eq!(fields(&path, &path), ["magic"; 3]);
}

#[test]
fn special_file_is_refused_at_once() {
    let directory = TempDir::new().unwrap();
    assert_eq!(foreign_field(Window::open_file(directory.path()).err().unwrap()), "file type");
    assert_eq!(foreign_field(Window::open_file(Path::new("/dev/null")).err().unwrap()), "file type");
    // A pipe without a writer would block an ordinary open.
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert_eq!(foreign_field(Window::open_file(&pipe).err().unwrap()), "file type");
}

#[test]
fn open_error_names_the_path() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("nowhere").join("window");
    let error = Window::open_file(&path).err().unwrap();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    let options = WindowOptions { memory: MemoryKind::File(path.clone()), ..WindowOptions::default() };
    let error = options.create(1).err().unwrap();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn a_link_is_not_followed() {
    let (directory, _ring_path, window_path) = sound_files();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&window_path, &link).unwrap();
    let error = Window::open_file(&link).err().unwrap();
    assert!(matches!(error, LogError::System { .. }), "{error}");
}

#[test]
fn new_file_is_private() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("window");
    fs::write(&path, "something else").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let options = WindowOptions { memory: MemoryKind::File(path.clone()), ..WindowOptions::default() };
    let (mut first, _releaser) = options.create(1).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // Truncating the old file would kill a process that maps it.
    let reader = Window::open_file(&path).unwrap();
    let (_second, _releaser) = options.create(100).unwrap();
    first.claim(64).unwrap();
    first.commit(64, 1);
    first.publish();
    assert_eq!((reader.appended(), reader.appended_sequence()), (64, 1));
    assert_eq!(Window::open_file(&path).unwrap().appended_sequence(), 99);
}

#[test]
fn shared_window_is_read_only() {
    let options = WindowOptions { memory: MemoryKind::Shared, ..WindowOptions::default() };
    let (writer, _releaser) = options.create(1).unwrap();
    let window = writer.window();
    let file = File::from(window.fd().try_clone_to_owned().unwrap());
    assert!(file.write_all_at(&[0; 8], 128).is_err(), "sealed against writing");
    assert!(file.set_len(0).is_err(), "sealed against shrinking");
    // SAFETY: a mapping at an address of the kernel's choice, which is expected to be refused.
    let mapped = unsafe {
        let protection = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE;
        rustix::mm::mmap(std::ptr::null_mut(), 4096, protection, rustix::mm::MapFlags::SHARED, &file, 0)
    };
    assert!(mapped.is_err(), "sealed against writing mappings");
    Window::open(file.into()).unwrap();
}

fn sound_memories(seals: SealFlags) -> [OwnedFd; 2] {
    let (_directory, ring_path, window_path) = sound_files();
    [ring_path, window_path].map(|path| {
        let fd = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        File::from(fd.try_clone().unwrap()).write_all_at(&fs::read(path).unwrap(), 0).unwrap();
        rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
        fd
    })
}

fn open_all([ring, window]: [OwnedFd; 2]) -> [Result<(), LogError>; 3] {
    [
        RingReader::open(ring.try_clone().unwrap()).map(drop),
        RingWriter::open(ring).map(drop),
        Window::open(window).map(drop),
    ]
}

#[test]
fn unsealed_memory_is_refused() {
    for opened in open_all(sound_memories(SealFlags::SHRINK | SealFlags::GROW)) {
        opened.unwrap();
    }
    for seals in [SealFlags::empty(), SealFlags::SEAL, SealFlags::SHRINK, SealFlags::GROW | SealFlags::FUTURE_WRITE] {
        for opened in open_all(sound_memories(seals)) {
            assert_eq!(foreign_field(opened.expect_err("it can be cut under its reader")), "seals", "{seals:?}");
        }
    }
}

#[test]
fn a_file_is_no_memory() {
    let (directory, ring_path, window_path) = sound_files();
    let nothing = [open(&ring_path).into(), open(&window_path).into()];
    let folder = || File::open(directory.path()).unwrap().into();
    for opened in open_all(nothing).into_iter().chain(open_all([folder(), folder()])) {
        assert_eq!(foreign_field(opened.expect_err("whose it is can cut it")), "seals");
    }
}

#[test]
fn other_users_file_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can give a file away");
        return;
    }
    let (_directory, ring_path, window_path) = sound_files();
    for path in [&ring_path, &window_path] {
        std::os::unix::fs::chown(path, Some(1), None).unwrap();
    }
    assert_eq!(fields(&ring_path, &window_path), ["owner"; 3]);
}
