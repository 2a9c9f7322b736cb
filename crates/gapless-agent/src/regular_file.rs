//! Opening a pipe without a writer would never return: other kinds of files are refused without blocking.

use rustix::fs::{FileType, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Opens a regular file for reading.
///
/// # Errors
/// An error of the operating system. Files that are not regular are refused.
pub fn open(path: &Path) -> io::Result<File> {
    let (file, kind) = open_at_once(path)?;
    if kind == FileType::RegularFile { Ok(file) } else { Err(io::Error::other(refusal(kind))) }
}

/// Reads a regular text file.
///
/// # Errors
/// As for [`open`], and read errors; a file of more than 1 MiB.
pub fn read_text(path: &Path) -> io::Result<String> {
    text_of(open(path)?)
}

/// Like [`read_text`], but also reads a pipe, such as `<(COMMAND)` of a shell, until its writers close it.
///
/// # Errors
/// As for [`read_text`].
pub fn read_piped_text(path: &Path) -> io::Result<String> {
    let (file, kind) = open_at_once(path)?;
    if kind == FileType::Directory {
        return Err(io::Error::other(refusal(kind)));
    }
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    text_of(file)
}

fn open_at_once(path: &Path) -> io::Result<(File, FileType)> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let kind = FileType::from_raw_mode(file.metadata()?.mode());
    Ok((file, kind))
}

fn text_of(file: File) -> io::Result<String> {
    let mut text = String::new();
    if file.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)? as u64 > TEXT_BYTES_MAX {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

pub(crate) fn refusal(kind: FileType) -> String {
    let name = match kind {
        FileType::Fifo => "a pipe",
        FileType::Directory => "a folder",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    format!("it is {name}, no regular file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mknodat};
    use std::io::Write;

    #[test]
    fn only_regular_files_of_text_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "text").unwrap();
        assert_eq!(read_text(&path("file")).unwrap(), "text");
        std::fs::write(path("long"), vec![b' '; TEXT_BYTES_MAX as usize + 1]).unwrap();
        assert_eq!(read_text(&path("long")).unwrap_err().to_string(), "it has more than 1 MiB");
        mknodat(CWD, path("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        for (wrong, expected) in
            [(path("pipe"), "a pipe"), (folder.path().to_owned(), "a folder"), ("/dev/zero".into(), "a device")]
        {
            let told = open(&wrong).unwrap_err().to_string();
            assert_eq!(told, format!("it is {expected}, no regular file"));
        }
        assert_eq!(open(&path("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn pipe_is_read_until_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(read_piped_text(&path).unwrap(), "", "no writer");
        let _reader = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path).unwrap();
        let mut writer = File::options().write(true).open(&path).unwrap();
        let reading = std::thread::spawn(move || read_piped_text(&path).unwrap());
        writer.write_all(b"text").unwrap();
        drop(writer);
        assert_eq!(reading.join().unwrap(), "text");
    }
}
