//! [`TransferFile`]: reads a file line by line, so that an unclosed quote spoils only its own line.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

pub type Failure = Box<dyn Error>;

/// Limit of a line without its end, bytes.
pub const LINE_LENGTH_MAX: usize = 4096;
const HEADER: &str = "id,from,to,amount,note";

pub struct TransferFile {
    pub path: PathBuf,
    reader: BufReader<File>,
    /// Last line read, without its end; only the beginning of one that is too long.
    pub line: Vec<u8>,
    pub number: u64,
    /// Checksum of the lines after the header as read here, against accidents and not against attacks.
    pub checksum: u32,
}

impl TransferFile {
    /// Reads the header.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let about = |error| format!("cannot read {shown}: {error}");
        // Checked before opening: opening a pipe without a writer would block forever.
        if !std::fs::metadata(path).map_err(about)?.is_file() {
            return Err(format!("{shown} is not a regular file; a file is read again after a kill").into());
        }
        let reader = BufReader::new(File::open(path).map_err(about)?);
        let mut file = Self { path: path.to_owned(), reader, line: Vec::new(), number: 0, checksum: 0 };
        if !file.next().map_err(about)? {
            return Err(format!("{shown} is empty; its first line must be {HEADER}").into());
        }
        if file.line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&file.line) != HEADER.as_bytes() {
            let found = file.shown_line();
            return Err(format!("{shown}, line 1: the header {HEADER} was expected, found: {found}").into());
        }
        file.checksum = 0;
        Ok(file)
    }

    /// Reads the next line, or returns `false` at the end.
    pub fn next(&mut self) -> std::io::Result<bool> {
        self.line.clear();
        self.reader.by_ref().take(LINE_LENGTH_MAX as u64 + 2).read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Ok(false);
        }
        if self.line.pop_if(|last| *last == b'\n').is_none() {
            self.reader.skip_until(b'\n')?;
        }
        self.line.pop_if(|last| *last == b'\r');
        self.number += 1;
        // Without the line end, which may be missing until the file grows.
        self.checksum = [&self.line[..], b"\n"].into_iter().fold(self.checksum, crc32c::crc32c_append);
        Ok(true)
    }

    /// Cuts the line to 80 characters, without control characters.
    pub fn shown_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.line).replace(char::is_control, "\u{fffd}");
        text.char_indices().nth(80).map_or_else(|| text.clone(), |(end, _)| format!("{}…", &text[..end]))
    }
}
