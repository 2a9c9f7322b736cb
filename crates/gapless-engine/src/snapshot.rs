//! The snapshot: a file that holds a fold after a prefix of the stream, so that recovery starts there
//! and older segments may be deleted.
//!
//! ```text
//!   0  u64  magic "GAPSNAP\3"; "GAPSNAP\2" without the version is read, too
//!   8  u128 stream id
//!  24  u64  incarnation
//!  32  u64  sequence             of the last frame applied
//!  40  u64  timestamp            of that frame, ns since the epoch
//!  48  u32  sessions, then each: session u64, token u128, last session_seq u64, messages u64,
//!           last active u64, window u32, and for each slot: session_seq u64, sequence u64,
//!           timestamp u64, schema u32, flags u16, payload (u32 length, bytes); last notice u64,
//!           notices u32, and for each: number u64, sequence u64, timestamp u64, schema u32,
//!           encoding u16, payload (u32 length, bytes)
//!   …  u32  timers, then each: timer u64, deadline u64
//!   …  u64  number of the next frame that it publishes into another's stream; 1 in its own
//!   …  u32  version that the service acts as
//!   …  u64  length of the service's state, then it
//!   …  u32  CRC-32C of everything before
//! ```
//! All numbers little-endian. A file is written under a temporary name, synced and renamed, so it is whole or not there.

use crate::EngineError;
use crate::fold::Fold;
use crate::sessions::{Notice, SessionEntry, StoredReply};
use gapless_agent::fault::{crash_point, mutant};
use gapless_client::client::WINDOW_COMMANDS_MAX;
use gapless_journal::FilePoint;
use gapless_log::StreamIdentity;
use gapless_schema::Encoding;
use gapless_wire::checksum::{crc32c, crc32c_append};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MAGIC: u64 = u64::from_le_bytes(*b"GAPSNAP\x03");
/// Of snapshots whose service knew one version alone, the first.
const MAGIC_UNVERSIONED: u64 = u64::from_le_bytes(*b"GAPSNAP\x02");
const EXTENSION: &str = "snapshot";
/// The newest and the one before it.
const SNAPSHOTS_RETAINED: usize = 2;

/// The bytes of a snapshot of `fold`.
pub fn encode(fold: &Fold, identity: StreamIdentity) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 << 16);
    let put64 = |out: &mut Vec<u8>, value: u64| out.extend_from_slice(&value.to_le_bytes());
    put64(&mut out, MAGIC);
    out.extend_from_slice(&identity.stream_id.to_le_bytes());
    for value in [identity.incarnation, fold.last_sequence, fold.last_timestamp_ns] {
        put64(&mut out, value);
    }
    let sessions = if mutant("drop_session_table") { Vec::new() } else { fold.sessions.sorted() };
    out.extend_from_slice(&(sessions.len() as u32).to_le_bytes());
    for entry in sessions {
        encode_session(&mut out, entry);
    }
    out.extend_from_slice(&(fold.timers.iter().len() as u32).to_le_bytes());
    for (timer, deadline_ns) in fold.timers.iter() {
        put64(&mut out, timer);
        put64(&mut out, deadline_ns);
    }
    put64(&mut out, fold.next_published);
    out.extend_from_slice(&fold.version.to_le_bytes());
    let length_at = out.len();
    put64(&mut out, 0);
    fold.service.snapshot(&mut out);
    let length = (out.len() - length_at - 8) as u64;
    out[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
    let sum = crc32c(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

fn encode_session(out: &mut Vec<u8>, entry: &SessionEntry) {
    out.extend_from_slice(&entry.session.to_le_bytes());
    out.extend_from_slice(&entry.token.to_le_bytes());
    for value in [entry.last_session_seq, entry.messages, entry.last_active_ns] {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend_from_slice(&(entry.replies.len() as u32).to_le_bytes());
    for reply in &entry.replies {
        for value in [reply.session_seq, reply.sequence, reply.timestamp_ns] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&reply.schema.to_le_bytes());
        out.extend_from_slice(&reply.flags.to_le_bytes());
        out.extend_from_slice(&(reply.payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&reply.payload);
    }
    out.extend_from_slice(&entry.last_notice.to_le_bytes());
    out.extend_from_slice(&(entry.notices.len() as u32).to_le_bytes());
    for notice in &entry.notices {
        for value in [notice.number, notice.sequence, notice.timestamp_ns] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&notice.schema.to_le_bytes());
        out.extend_from_slice(&notice.encoding.flags().to_le_bytes());
        out.extend_from_slice(&(notice.payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&notice.payload);
    }
}

/// No stream gets this far; above it sums of sequences and counts could overflow.
const COUNT_MAX: u64 = u64::MAX / 2;

/// Reads fields off the front; `None` beyond the end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// A sequence or a count, to which something will be added.
    fn count(&mut self) -> Option<u64> {
        self.u64().filter(|count| *count <= COUNT_MAX)
    }

    fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_le_bytes)
    }

    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    fn session(&mut self) -> Option<SessionEntry> {
        let (session, token) = (self.u64()?, self.u128()?);
        let (last_session_seq, messages, last_active_ns) = (self.count()?, self.count()?, self.u64()?);
        let window = self.u32()?;
        if !(1..=WINDOW_COMMANDS_MAX).contains(&window) {
            return None;
        }
        let mut replies = Vec::new();
        for _ in 0..window {
            let (session_seq, sequence, timestamp_ns) = (self.u64()?, self.u64()?, self.u64()?);
            let (schema, flags, length) = (self.u32()?, self.u16()?, self.u32()?);
            let payload = self.bytes(u64::from(length))?.to_vec();
            replies.push(StoredReply { session_seq, sequence, timestamp_ns, schema, flags, payload });
        }
        let last_notice = self.count()?;
        let mut notices = VecDeque::new();
        for _ in 0..self.u32()? {
            let (number, sequence, timestamp_ns) = (self.u64()?, self.u64()?, self.u64()?);
            let (schema, flags, length) = (self.u32()?, self.u16()?, self.u32()?);
            let encoding = Encoding::from_flags(flags)?;
            let payload = self.bytes(u64::from(length))?.to_vec();
            notices.push_back(Notice { number, sequence, timestamp_ns, schema, encoding, payload });
        }
        Some(SessionEntry {
            session,
            token,
            last_session_seq,
            messages,
            last_active_ns,
            replies,
            notices,
            last_notice,
            connection: None,
        })
    }
}

/// Whose snapshot it is that lies at `path`, as far as its first bytes tell.
///
/// # Errors
/// It cannot be read, or does not begin as a snapshot does.
pub fn identity_of(path: &Path) -> Result<StreamIdentity, EngineError> {
    let bytes = std::fs::read(path).map_err(EngineError::system(format!("reading {}", path.display())))?;
    let mut fields = Fields(&bytes);
    let identity = fields
        .u64()
        .filter(|magic| [MAGIC, MAGIC_UNVERSIONED].contains(magic))
        .and_then(|_| Some((fields.u128()?, fields.u64()?)));
    let reason = || "it does not begin as a snapshot of this version does".to_owned();
    let (stream_id, incarnation) =
        identity.ok_or_else(|| EngineError::Snapshot { path: path.to_owned(), reason: reason() })?;
    Ok(StreamIdentity { stream_id, incarnation })
}

/// Makes `fold`, which is empty, what the snapshot at `path` says.
///
/// # Errors
/// [`EngineError::Snapshot`]: another stream's, damaged, or refused by the service.
pub fn restore(fold: &mut Fold, path: &Path, identity: StreamIdentity) -> Result<(), EngineError> {
    let bytes = std::fs::read(path).map_err(EngineError::system(format!("reading {}", path.display())))?;
    let unusable = |reason: String| EngineError::Snapshot { path: path.to_owned(), reason };
    let damaged = || {
        unusable(
            "it is damaged; remove it to recover from an older snapshot or from the journal's first frame, \
             if that is still there"
                .to_owned(),
        )
    };
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
    let mut fields = Fields(body);
    let magic = fields.u64().ok_or_else(damaged)?;
    if ![MAGIC, MAGIC_UNVERSIONED].contains(&magic) || crc32c(body) != u32::from_le_bytes(*sum) {
        return Err(damaged());
    }
    let (stream_id, incarnation) = (fields.u128().ok_or_else(damaged)?, fields.u64().ok_or_else(damaged)?);
    if (StreamIdentity { stream_id, incarnation }) != identity {
        return Err(unusable(format!(
            "it belongs to stream {stream_id:032x} incarnation {incarnation:016x}, the journal to {:032x} {:016x}",
            identity.stream_id, identity.incarnation
        )));
    }
    let state = restore_fields(fold, &mut fields, magic == MAGIC).ok_or_else(damaged)?;
    fold.become_version(fold.version, fold.last_sequence)?;
    fold.service.restore(state).map_err(|reason| unusable(format!("the service refused it: {reason}")))
}

/// Everything but the service's state, which is returned.
fn restore_fields<'a>(fold: &mut Fold, fields: &mut Fields<'a>, is_versioned: bool) -> Option<&'a [u8]> {
    fold.last_sequence = fields.count()?;
    fold.last_timestamp_ns = fields.count()?;
    for _ in 0..fields.u32()? {
        fold.sessions.insert(fields.session()?);
    }
    for _ in 0..fields.u32()? {
        fold.timers.set(fields.u64()?, fields.u64()?);
    }
    fold.next_published = fields.count().filter(|number| *number > 0)?;
    if is_versioned {
        fold.version = fields.u32().filter(|version| *version > 0)?;
    }
    let length = fields.u64()?;
    let state = fields.bytes(length)?;
    fields.0.is_empty().then_some(state)
}

/// The name of the file of the snapshot at `sequence`.
#[must_use]
pub fn file_name(sequence: u64) -> String {
    format!("{sequence:020}.{EXTENSION}")
}

/// Bytes that are read at once where a snapshot is only checked.
const CHECKED_BYTES: usize = 1 << 20;
/// Magic, stream, incarnation and sequence.
const HEAD_LENGTH: usize = 40;
/// The same and the time stamp.
const POINT_LENGTH: u64 = 48;

/// Whether the snapshot at `path` is whole, of the stream `identity` and at `sequence`. It is read piece by piece; whether
/// the service takes its state is found out by [`restore`].
///
/// # Errors
/// It cannot be read, or what is wrong with it.
pub fn check(path: &Path, identity: StreamIdentity, sequence: u64) -> Result<(), EngineError> {
    let unreadable = |source| EngineError::system(format!("reading {}", path.display()))(source);
    let unusable = |reason: &str| EngineError::Snapshot { path: path.to_owned(), reason: reason.to_owned() };
    let mut file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let Some(mut left) = length.checked_sub(4).filter(|body| *body >= HEAD_LENGTH as u64) else {
        return Err(unusable("it is too short for a snapshot"));
    };
    let mut piece = vec![0; CHECKED_BYTES];
    let (mut sum, mut is_first) = (0, true);
    while left > 0 {
        let piece = &mut piece[..left.min(CHECKED_BYTES as u64) as usize];
        file.read_exact(piece).map_err(unreadable)?;
        sum = crc32c_append(sum, piece);
        left -= piece.len() as u64;
        if std::mem::take(&mut is_first) {
            let mut fields = Fields(piece);
            let magic = fields.u64();
            let found = fields.u128().zip(fields.u64());
            if !magic.is_some_and(|magic| [MAGIC, MAGIC_UNVERSIONED].contains(&magic)) {
                return Err(unusable("it does not begin as a snapshot of this version does"));
            }
            if found != Some((identity.stream_id, identity.incarnation)) {
                return Err(unusable("it belongs to another stream or incarnation"));
            }
            if fields.u64() != Some(sequence) {
                return Err(unusable("it stands at another sequence than is said"));
            }
        }
    }
    let mut found = [0; 4];
    file.read_exact(&mut found).map_err(unreadable)?;
    if u32::from_le_bytes(found) == sum { Ok(()) } else { Err(unusable("it is damaged")) }
}

/// What the snapshots in `directory` say of the journal beside them, oldest first. Of one whose first bytes are not a
/// snapshot's only its name says something; whether the rest is whole is found out when it is used.
///
/// # Errors
/// The directory or a snapshot cannot be read.
pub fn points(directory: &Path) -> Result<Vec<FilePoint>, EngineError> {
    let point = |(sequence, path): (u64, PathBuf)| {
        let mut head = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(POINT_LENGTH).read_to_end(&mut head));
        read.map_err(EngineError::system(format!("reading {}", path.display())))?;
        let mut fields = Fields(&head);
        let magic = fields.u64().filter(|magic| [MAGIC, MAGIC_UNVERSIONED].contains(magic));
        let identity = magic.and_then(|_| fields.u128().zip(fields.u64()));
        let stands_at = identity.and_then(|_| fields.u64().zip(fields.u64())).filter(|(at, _)| *at == sequence);
        let timestamp_ns = stands_at.map(|(_, timestamp_ns)| timestamp_ns);
        Ok(FilePoint { path, identity: identity.filter(|_| stands_at.is_some()), sequence, timestamp_ns })
    };
    list(directory)?.into_iter().map(point).collect()
}

/// Makes the snapshots in `directory` snapshots of `identity`, another life of the same stream.
///
/// # Errors
/// One cannot be read or written, or is damaged.
pub fn adopt(directory: &Path, identity: StreamIdentity) -> Result<(), EngineError> {
    for (sequence, path) in list(directory)? {
        let found = identity_of(&path)?;
        check(&path, found, sequence)?;
        if found == identity {
            continue;
        }
        let mut bytes = std::fs::read(&path).map_err(EngineError::system(format!("reading {}", path.display())))?;
        bytes.truncate(bytes.len() - 4);
        bytes[8..24].copy_from_slice(&identity.stream_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&identity.incarnation.to_le_bytes());
        bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
        write(directory, sequence, &bytes)?;
    }
    Ok(())
}

/// The snapshots in `directory`, oldest first: (sequence, path).
///
/// # Errors
/// The directory cannot be read.
pub fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, EngineError> {
    let action = || format!("reading {}", directory.display());
    let mut snapshots = Vec::new();
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(snapshots),
        entries => entries.map_err(EngineError::system(action()))?,
    };
    for entry in entries {
        let path = entry.map_err(EngineError::system(action()))?.path();
        let is_snapshot = path.extension().is_some_and(|extension| extension == EXTENSION);
        let sequence = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (true, Some(sequence)) = (is_snapshot, sequence) {
            snapshots.push((sequence, path));
        }
    }
    snapshots.sort_unstable();
    Ok(snapshots)
}

/// Writes a snapshot's bytes so that it is whole or not there, and removes all but the newest two.
///
/// # Errors
/// A full or read-only disk; what was there before stays.
pub fn write(directory: &Path, sequence: u64, bytes: &[u8]) -> Result<(), EngineError> {
    let path = directory.join(file_name(sequence));
    let temporary = path.with_extension("tmp");
    let action = || format!("writing {}", path.display());
    std::fs::create_dir_all(directory).map_err(EngineError::system(action()))?;
    let write = || -> std::io::Result<()> {
        // Sessions' tokens are in it.
        let mut options = OpenOptions::new();
        let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
        let (first, second) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        crash_point("in_snapshot_write");
        file.write_all(second)?;
        file.sync_all()?;
        crash_point("before_snapshot_rename");
        std::fs::rename(&temporary, &path)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(|source| {
        // What was begun is of no use; failing to remove it changes nothing for the next attempt.
        let _ = std::fs::remove_file(&temporary);
        EngineError::system(action())(source)
    })?;
    let mut snapshots = list(directory)?;
    snapshots.truncate(snapshots.len().saturating_sub(SNAPSHOTS_RETAINED));
    for (_, old) in snapshots {
        std::fs::remove_file(&old).map_err(EngineError::system(format!("removing {}", old.display())))?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::fold::Policy;
    use crate::service::{Handlers, Service};

    #[derive(Default)]
    struct Word([u8; 4]);

    impl Service for Word {
        fn versions() -> std::ops::RangeInclusive<u32> {
            1..=3
        }

        fn handlers(_: &mut Handlers<Self>) {}

        fn snapshot(&self, state: &mut Vec<u8>) {
            state.extend_from_slice(&self.0);
        }

        fn restore(&mut self, state: &[u8]) -> Result<(), String> {
            self.0 = state.try_into().map_err(|_| "4 bytes")?;
            Ok(())
        }
    }

    fn fold(word: [u8; 4]) -> Fold {
        Fold::new(Word(word), Policy::default())
    }

    #[test]
    fn a_snapshot_from_before_versions_is_of_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let identity = StreamIdentity { stream_id: 7, incarnation: 1 };
        let mut fold_before = fold(*b"word");
        fold_before.become_version(3, 1).unwrap();
        let bytes = encode(&fold_before, identity);
        let restored = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let mut fold = fold([0; 4]);
            restore(&mut fold, &path, identity).map(|()| (fold.service::<Word>().0, fold.version))
        };
        assert_eq!(restored(&bytes).unwrap(), (*b"word", 3));
        // Behind the version come the state's length, the state, and the checksum.
        let version_at = bytes.len() - 4 - 4 - 8 - 4;
        let with_sum = |body: Vec<u8>| [&body[..], &crc32c(&body).to_le_bytes()].concat();
        let with_version =
            |version: &[u8]| [&bytes[..version_at], version, &bytes[version_at + 4..bytes.len() - 4]].concat();
        let mut old = with_version(&[]);
        old[..8].copy_from_slice(&MAGIC_UNVERSIONED.to_le_bytes());
        let old = with_sum(old);
        assert_eq!(restored(&old).unwrap(), (*b"word", 1));
        std::fs::write(&path, &old).unwrap();
        assert_eq!(identity_of(&path).unwrap(), identity);
        // A version that the program lacks, and one that nobody has.
        let lacks = restored(&with_sum(with_version(&4_u32.to_le_bytes())));
        assert!(matches!(lacks, Err(EngineError::Version { version: 4, first: 1, last: 3, .. })), "{lacks:?}");
        assert!(matches!(restored(&with_sum(with_version(&[0; 4]))), Err(EngineError::Snapshot { .. })));
    }
}
