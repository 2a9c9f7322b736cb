//! [`DirectoryRecord`]: the file `directory` that says what a directory is of, in which format, and which program has written it last.
//!
//! ```text
//! kind bus
//! format 1
//! written by gapless 0.1.0
//! ```
//! A directory of before has none, and gets one at its next start.

use crate::StreamError;
use gapless_agent::checked_file;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::replace_file;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The format of a whole directory that this program writes, and the newest one that it reads.
pub const FORMAT: u32 = 1;

/// What a directory is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryRecord {
    /// `stream`, `service`, `bus`, `relay` or `member`.
    pub kind: String,
    /// See [`FORMAT`].
    pub format: u32,
    /// Name and version of the program that has started there last.
    pub program: String,
}

/// Bytes of the file at most.
const LENGTH_MAX: u64 = 64 << 10;

impl DirectoryRecord {
    /// That of this program, for a directory of that kind.
    #[must_use]
    pub fn of(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            format: FORMAT,
            program: concat!("gapless ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn path(layout: &StreamLayout) -> PathBuf {
        layout.root().join("directory")
    }

    /// Reads it; `None` where there is none.
    ///
    /// # Errors
    /// [`StreamError::State`]: it cannot be read, or is damaged.
    pub fn read(layout: &StreamLayout) -> Result<Option<Self>, StreamError> {
        let path = Self::path(layout);
        let refused = |reason: String| StreamError::State { path: path.clone(), reason };
        let text = match checked_file::read_to_string(&path, LENGTH_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error.to_string())),
        };
        let record = Self::parse(&text);
        record.map(Some).ok_or_else(|| {
            refused(
                "it is damaged; remove it, if you know of which program the directory is: a start writes it anew"
                    .to_owned(),
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let kind = lines.next()?.strip_prefix("kind ")?.to_owned();
        let format = lines.next()?.strip_prefix("format ")?.parse().ok()?;
        let program = lines.next()?.strip_prefix("written by ")?.to_owned();
        Some(Self { kind, format, program })
    }

    /// Writes it, unless it is there already.
    ///
    /// # Errors
    /// [`StreamError::System`].
    pub(crate) fn write(&self, layout: &StreamLayout) -> Result<(), StreamError> {
        if Self::read(layout)?.as_ref() == Some(self) {
            return Ok(());
        }
        let path = Self::path(layout);
        let text = format!("{self}\n");
        replace_file(&path, path.with_extension("new"), text.as_bytes())
            .map_err(|source| StreamError::System { action: format!("writing {}", path.display()), source })
    }
}

impl std::fmt::Display for DirectoryRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kind {}\nformat {}\nwritten by {}", self.kind, self.format, self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let layout = StreamLayout::new(directory.path());
        assert_eq!(DirectoryRecord::read(&layout).unwrap(), None);
        let record = DirectoryRecord::of("bus");
        record.write(&layout).unwrap();
        record.write(&layout).unwrap();
        assert_eq!(DirectoryRecord::read(&layout).unwrap(), Some(record));
        for damaged in ["", "kind bus\n", "kind bus\nformat x\nwritten by y\n", "\u{0}\u{0}"] {
            std::fs::write(DirectoryRecord::path(&layout), damaged).unwrap();
            let error = DirectoryRecord::read(&layout).unwrap_err().to_string();
            assert!(error.contains("damaged") && error.contains("directory"), "{error}");
        }
        std::fs::File::create(DirectoryRecord::path(&layout)).unwrap().set_len(1 << 40).unwrap();
        let error = DirectoryRecord::read(&layout).unwrap_err().to_string();
        assert!(error.contains("65536 at most are read"), "{error}");
    }
}
