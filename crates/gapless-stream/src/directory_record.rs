//! [`DirectoryRecord`]: the file `directory`, with the kind and format of a directory and the program that wrote it
//! last.
//!
//! ```text
//! kind bus
//! format 1
//! written by gapless 0.1.0
//! check 0f3c8a51        CRC-32C of the three lines above, hexadecimal
//! ```
//!
//! Older directories have no such file, or one without the last line; they get it at their next start.

use crate::StreamError;
use gapless_agent::checked_file;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::replace_file;
use gapless_wire::checksum::crc32c;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Directory format that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryRecord {
    /// `stream`, `service`, `bus`, `relay`, `member` or `node`.
    pub kind: String,
    pub format: u32,
    /// Name and version of the last program started there.
    pub program: String,
}

const KINDS: [&str; 6] = ["stream", "service", "bus", "relay", "member", "node"];
const CHECK: &str = "check ";

const LENGTH_MAX: u64 = 64 << 10;

impl DirectoryRecord {
    /// Record of this program.
    #[must_use]
    pub fn of(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            format: FORMAT,
            program: concat!("gapless ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    #[must_use]
    pub fn path(layout: &StreamLayout) -> PathBuf {
        layout.root().join("directory")
    }

    /// Reads the record; `None` if there is no file.
    ///
    /// # Errors
    /// [`StreamError::System`]: the file cannot be read. [`StreamError::State`]: it is not a regular file, or damaged.
    pub fn read(layout: &StreamLayout) -> Result<Option<Self>, StreamError> {
        let path = Self::path(layout);
        let refused = |reason: String| StreamError::State { path: path.clone(), reason };
        let text = match checked_file::read_to_string(&path, LENGTH_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // An error of the operating system does not mean damage.
            Err(source) if source.raw_os_error().is_some() => {
                return Err(StreamError::System { action: format!("reading {}", path.display()), source });
            }
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
        let mut lines = text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line));
        let kind = lines.next()?.strip_prefix("kind ")?.to_owned();
        let format = lines.next()?.strip_prefix("format ")?.parse().ok()?;
        let program = lines.next()?.strip_prefix("written by ")?.to_owned();
        let record = Self { kind, format, program };
        let is_whole = match lines.next() {
            Some(_) => text == record.sealed(),
            // Without a checksum, as older versions wrote it.
            None => text == format!("{record}\n") && !record.program.contains(CHECK),
        };
        // A newer format may have kinds that are unknown here.
        let is_kind = KINDS.contains(&&*record.kind) || record.format > FORMAT;
        (is_whole && is_kind).then_some(record)
    }

    fn sealed(&self) -> String {
        let text = format!("{self}\n");
        format!("{text}{CHECK}{:08x}\n", crc32c(text.as_bytes()))
    }

    /// Reason why a program for directories of these kinds must not open it.
    #[must_use]
    pub fn refusal(&self, own: &[&str]) -> Option<String> {
        let Self { kind, format, program } = self;
        if *format > FORMAT {
            return Some(format!(
                "the directory has format {format}, and this program reads formats up to {FORMAT}: take the newer program that has \
                 written it ({program})"
            ));
        }
        if own.contains(&&**kind) {
            return None;
        }
        let start = match kind.as_str() {
            "stream" => "its sequencer (`gapless stream sequencer`)",
            "relay" => "the relay (`gapless stream archive`, `dispatch` or `bridge`)",
            "member" => "the member (`gapless cluster start`, or the program of its service)",
            _ => "its program",
        };
        Some(match own {
            [own] => format!(
                "the directory is that of a {kind}, and this is a {own}: start {start}, and give the {own} a directory of its own"
            ),
            _ => format!(
                "the directory is that of a {kind}, which has no events of a command bus; `gapless journal dump` shows its messages"
            ),
        })
    }

    pub(crate) fn write(&self, layout: &StreamLayout) -> Result<(), StreamError> {
        let (path, text) = (Self::path(layout), self.sealed());
        if checked_file::read_to_string(&path, LENGTH_MAX).is_ok_and(|found| found == text) {
            return Ok(());
        }
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
    fn record_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let layout = StreamLayout::new(directory.path());
        assert_eq!(DirectoryRecord::read(&layout).unwrap(), None);
        let record = DirectoryRecord::of("bus");
        record.write(&layout).unwrap();
        record.write(&layout).unwrap();
        assert_eq!(DirectoryRecord::read(&layout).unwrap(), Some(record));
        let unknown = "kind buz\nformat 1\nwritten by gapless 0.1.0\n";
        for damaged in ["", "kind bus\n", "kind bus\nformat x\nwritten by y\n", "\u{0}\u{0}", unknown] {
            std::fs::write(DirectoryRecord::path(&layout), damaged).unwrap();
            let error = DirectoryRecord::read(&layout).unwrap_err().to_string();
            assert!(error.contains("damaged") && error.contains("directory"), "{error}");
        }
        std::fs::File::create(DirectoryRecord::path(&layout)).unwrap().set_len(1 << 40).unwrap();
        let error = DirectoryRecord::read(&layout).unwrap_err().to_string();
        assert!(error.contains("65536 at most are read"), "{error}");
    }

    #[test]
    fn each_flipped_bit_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        let layout = StreamLayout::new(directory.path());
        DirectoryRecord::of("service").write(&layout).unwrap();
        let path = DirectoryRecord::path(&layout);
        let bytes = std::fs::read(&path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, changed).unwrap();
            assert!(DirectoryRecord::read(&layout).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn missing_checksum_is_added() {
        let directory = tempfile::tempdir().unwrap();
        let layout = StreamLayout::new(directory.path());
        let record = DirectoryRecord::of("stream");
        let path = DirectoryRecord::path(&layout);
        std::fs::write(&path, format!("{record}\n")).unwrap();
        assert_eq!(DirectoryRecord::read(&layout).unwrap().as_ref(), Some(&record));
        record.write(&layout).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("\ncheck "));
        assert_eq!(DirectoryRecord::read(&layout).unwrap(), Some(record));
    }

    #[test]
    fn newer_format_may_have_other_kinds() {
        let record = DirectoryRecord::parse("kind queue\nformat 2\nwritten by gapless 9.0.0\n").unwrap();
        assert!(record.refusal(&["stream"]).unwrap().contains("gapless 9.0.0"));
    }
}
