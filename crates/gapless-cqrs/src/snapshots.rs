//! States of aggregates in files, so that an aggregate with many events is not loaded from all of them. They are
//! derived from the stream alone and may be deleted at any time.
//!
//! ```text
//!   0  magic "GAPAGGR\x01"
//!   8  u128 stream      24  u64 incarnation
//!  32  u32 key of the aggregate's type, 36 u32 version of the state's type
//!  40  u64 events that it is made of
//!  48  u64 sequence of the last, 56 u64 time stamp of that frame, ns since the epoch
//!  64  u32 length of the state, 68 u8 length of the identifier, zeros, 72 u32 hash of the layout of the state's type
//!  76  u32 checksum of the bytes before and of those that follow
//!  80  the identifier, the state
//! ```
//!
//! Numbers are little-endian, the checksum is CRC-32C. The file name is the key of the type and the identifier, both
//! hexadecimal. A file is valid if all of that is as expected and the stream has that frame with that time. Files are
//! not synced: one that is cut by a power failure is invalid.

use crate::identity::{ID_LENGTH_MAX, TypeKey};
use gapless_agent::{checked_file, private_folder};
use gapless_log::StreamIdentity;
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{u32_at, u64_at, u128_at};
use std::fmt::Write as _;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const SNAPSHOTS_FOLDER: &str = "aggregates";
const MAGIC: [u8; 7] = *b"GAPAGGR";
const FORMAT: u8 = 1;
const HEAD_LENGTH: usize = 80;
const STATE_LAYOUT_AT: usize = 72;
const SUM_AT: usize = 76;

/// When to write an aggregate's state to a file: at either limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// Events since the last snapshot, rounded to a power of two; 0: never.
    pub events: u32,
    /// Time that a load took.
    pub load_time: Duration,
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        Self { events: 1024, load_time: Duration::from_millis(20) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotKey<'a> {
    pub aggregate: TypeKey,
    pub id: &'a [u8],
    pub state_version: u32,
    /// Hash of the layout of the state's type.
    pub state_layout: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Events so far.
    pub version: u64,
    /// Sequence of the last event.
    pub last_sequence: u64,
    pub last_time_ns: u64,
    pub state: Vec<u8>,
}

pub(crate) struct SnapshotFiles {
    directory: PathBuf,
    identity: StreamIdentity,
}

impl SnapshotFiles {
    /// Opens nothing: the first file creates the directory.
    pub const fn new(directory: PathBuf, identity: StreamIdentity) -> Self {
        Self { directory, identity }
    }

    fn path(&self, key: SnapshotKey<'_>) -> PathBuf {
        let mut name = format!("{:08x}-", key.aggregate.0);
        key.id.iter().for_each(|byte| write!(name, "{byte:02x}").expect("a text takes all"));
        self.directory.join(name)
    }

    /// Snapshot of an aggregate; `None` also for another stream, version or layout. The caller has to check that the
    /// stream has its last frame.
    ///
    /// # Errors
    /// The fault of the file.
    pub fn read(&self, key: SnapshotKey<'_>) -> Result<Option<Snapshot>, String> {
        let path = self.path(key);
        let unusable = |reason: &str| format!("the snapshot {} cannot be used: {reason}", path.display());
        let bytes = match read_declared_length(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&error.to_string())),
        };
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LENGTH>() else { return Err(unusable("it is cut")) };
        if head[..7] != MAGIC {
            return Err(unusable("it does not begin as one does"));
        }
        if head[7] != FORMAT {
            return Err(unusable(&format!("it has format {}, and this program reads {FORMAT}", head[7])));
        }
        if rest.len() != declared_length(head) {
            return Err(unusable("it is cut, or longer than it says"));
        }
        if u32_at(head, SUM_AT) != sum(head, rest) {
            return Err(unusable("it is damaged"));
        }
        let id_length = usize::from(head[68]);
        let is_own = (u128_at(head, 8), u64_at(head, 24)) == (self.identity.stream_id, self.identity.incarnation)
            && (u32_at(head, 32), u32_at(head, 36)) == (key.aggregate.0, key.state_version)
            && u32_at(head, STATE_LAYOUT_AT) == key.state_layout
            && rest[..id_length] == *key.id;
        Ok(is_own.then(|| Snapshot {
            version: u64_at(head, 40),
            last_sequence: u64_at(head, 48),
            last_time_ns: u64_at(head, 56),
            state: rest[id_length..].to_vec(),
        }))
    }

    /// Replaces the snapshot.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, key: SnapshotKey<'_>, snapshot: &Snapshot) -> io::Result<()> {
        debug_assert!(key.id.len() <= ID_LENGTH_MAX, "no aggregate has a longer one");
        let mut head = [0; HEAD_LENGTH];
        head[..7].copy_from_slice(&MAGIC);
        head[7] = FORMAT;
        head[8..24].copy_from_slice(&self.identity.stream_id.to_le_bytes());
        head[24..32].copy_from_slice(&self.identity.incarnation.to_le_bytes());
        head[32..36].copy_from_slice(&key.aggregate.0.to_le_bytes());
        head[36..40].copy_from_slice(&key.state_version.to_le_bytes());
        head[40..48].copy_from_slice(&snapshot.version.to_le_bytes());
        head[48..56].copy_from_slice(&snapshot.last_sequence.to_le_bytes());
        head[56..64].copy_from_slice(&snapshot.last_time_ns.to_le_bytes());
        let length = u32::try_from(snapshot.state.len());
        let length = length.map_err(|_| io::Error::other("the state has more than 4 GiB"))?;
        head[64..68].copy_from_slice(&length.to_le_bytes());
        head[68] = key.id.len() as u8;
        head[STATE_LAYOUT_AT..][..4].copy_from_slice(&key.state_layout.to_le_bytes());
        let rest = [key.id, &snapshot.state].concat();
        let checksum = sum(&head, &rest);
        head[SUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        private_folder::create(&self.directory)?;
        checked_file::replace(&self.path(key), &[&head[..], &rest].concat(), 0o600)
    }
}

/// Reads a file; only its head if the length in it differs from the file's.
fn read_declared_length(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = checked_file::open(path)?;
    let mut head = Vec::new();
    (&file).take(HEAD_LENGTH as u64).read_to_end(&mut head)?;
    let declared = head.first_chunk::<HEAD_LENGTH>().map_or(0, |head| declared_length(head) + HEAD_LENGTH) as u64;
    if file.metadata()?.len() != declared {
        return Ok(head);
    }
    file.rewind()?;
    checked_file::read_from(&file, declared)
}

fn declared_length(head: &[u8; HEAD_LENGTH]) -> usize {
    usize::from(head[68]) + u32_at(head, 64) as usize
}

fn sum(head: &[u8; HEAD_LENGTH], rest: &[u8]) -> u32 {
    crc32c(&[&head[..SUM_AT], rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SnapshotKey<'_> = SnapshotKey { aggregate: TypeKey(7), id: b"id", state_version: 2, state_layout: 9 };

    fn snapshot() -> Snapshot {
        Snapshot { version: 5, last_sequence: 9, last_time_ns: 11, state: b"state".to_vec() }
    }

    #[test]
    fn snapshot_round_trips_for_its_type() {
        let directory = tempfile::tempdir().unwrap();
        let identity = StreamIdentity { stream_id: 1 << 100, incarnation: 3 };
        let key = |identity| SnapshotFiles::new(directory.path().join("snapshots"), identity);
        let snapshots = key(identity);
        assert_eq!(snapshots.read(KEY), Ok(None));
        snapshots.write(KEY, &Snapshot { version: 4, ..snapshot() }).unwrap();
        snapshots.write(KEY, &snapshot()).unwrap();
        assert_eq!(snapshots.read(KEY), Ok(Some(snapshot())));
        for other in [
            SnapshotKey { id: b"ie", ..KEY },
            SnapshotKey { aggregate: TypeKey(8), ..KEY },
            SnapshotKey { state_version: 3, ..KEY },
            SnapshotKey { state_layout: 8, ..KEY },
        ] {
            assert_eq!(snapshots.read(other), Ok(None));
        }
        assert_eq!(key(StreamIdentity { incarnation: 4, ..identity }).read(KEY), Ok(None));
    }

    #[test]
    fn damaged_snapshot_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let snapshots =
            SnapshotFiles::new(directory.path().to_owned(), StreamIdentity { stream_id: 1, incarnation: 3 });
        snapshots.write(KEY, &snapshot()).unwrap();
        let path = snapshots.path(KEY);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, damaged).unwrap();
            assert!(snapshots.read(KEY).unwrap_err().contains("cannot be used"), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(snapshots.read(KEY).unwrap_err().contains("cannot be used"), "cut at {at}");
        }
        std::fs::write(&path, &whole).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(snapshots.read(KEY).unwrap_err().contains("longer than it says"));
        let mut newer = whole.clone();
        newer[7] = 2;
        std::fs::write(&path, newer).unwrap();
        let error = snapshots.read(KEY).unwrap_err();
        assert!(error.contains("it has format 2, and this program reads 1"), "{error}");
    }
}
