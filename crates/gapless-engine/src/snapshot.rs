//! State of a fold after a prefix of the stream, as a file. Recovery starts there, and older segments can be deleted.
//!
//! ```text
//!   0  u64  magic "GAPSNAP\5", or "GAPSNAP\4" without timer messages; also readable: "GAPSNAP\3" without
//!           fault rules, "GAPSNAP\2" also without the version
//!   8  u128 stream id
//!  24  u64  incarnation
//!  32  u64  sequence             of the last applied frame
//!  40  u64  timestamp            of that frame, ns since the epoch
//!  48  u32  sessions, then each: session u64, token u128, last session_seq u64, messages u64,
//!           last active u64, window u32, and for each slot: session_seq u64, sequence u64,
//!           timestamp u64, schema u32, flags u16, payload (u32 length, bytes); last notice u64,
//!           notices u32, and for each: number u64, sequence u64, timestamp u64, schema u32,
//!           encoding u16, payload (u32 length, bytes)
//!   …  u32  timers, then each: timer u64, deadline u64
//!   …  u64  numbers tried for timers with a message; from format 5 on
//!   …  u32  timers with a message, then each: timer u64, schema u32, message (u32 length, bytes);
//!           from format 5 on
//!   …  u64  number of the service's next frame in a stream of others; 1 in its own stream
//!   …  u32  version that the service acts as
//!   …  u32  fault rules, the flags of their mark and bit 31; 0 if the stream has none
//!   …  u64  length of the service's state, then the state
//!   …  u32  CRC-32C of everything before
//! ```
//! All numbers are little-endian. A file is written under a temporary name, synced and renamed, so it appears whole or not
//! at all.

use crate::EngineError;
use crate::fold::{CheckSnapshots, Fold};
use crate::sessions::{SessionEntry, StoredNotice, StoredReply};
use crate::timers::TimerMessage;
use gapless_agent::fault::{crash_point, mutant};
use gapless_agent::{checked_file, private_folder};
use gapless_client::polled::WINDOW_COMMANDS_MAX;
use gapless_journal::{FilePoint, FileReplacement};
use gapless_log::StreamIdentity;
use gapless_message::state;
use gapless_schema::Encoding;
use gapless_wire::checksum::{crc32c, crc32c_append};
use gapless_wire::fields::{FieldError, FieldReader, FieldWriter};
use gapless_wire::mark::FaultRules;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

const MAGIC: u64 = u64::from_le_bytes(*b"GAPSNAP\x05");
const FORMAT_BITS: u32 = 56;
const FORMAT_MIN: u64 = 2;
const FORMAT_WITH_VERSION: u64 = 3;
const FORMAT_WITH_RULES: u64 = 4;
const FORMAT_WITH_TIMER_MESSAGES: u64 = 5;
const HAS_RULES: u32 = 1 << 31;
const EXTENSION: &str = "snapshot";
const SNAPSHOTS_RETAINED: usize = 2;

pub fn encode(fold: &Fold, identity: StreamIdentity) -> Vec<u8> {
    encode_with_form(fold, identity).0
}

/// Also returns the identity of the state's form.
pub fn encode_with_form(fold: &Fold, identity: StreamIdentity) -> (Vec<u8>, u64) {
    let mut out = Vec::with_capacity(1 << 16);
    let mut fields = FieldWriter::new(&mut out);
    // A stream without timer messages is read by older programs, and its members of both formats have equal bytes.
    let has_messages = fold.timers.numbered() > 0;
    let magic = if has_messages { MAGIC } else { MAGIC - (1 << FORMAT_BITS) };
    fields.u64(magic).u128(identity.stream_id).u64(identity.incarnation);
    fields.u64(fold.last_sequence).u64(fold.last_timestamp_ns);
    let sessions = if mutant("drop_session_table") { Vec::new() } else { fold.sessions.sorted() };
    fields.u32(sessions.len() as u32);
    for entry in sessions {
        encode_session(&mut fields, entry);
    }
    fields.u32(fold.timers.iter().len() as u32);
    for (timer, deadline_ns) in fold.timers.iter() {
        fields.u64(timer).u64(deadline_ns);
    }
    if has_messages {
        fields.u64(fold.timers.numbered()).u32(fold.timers.messages().len() as u32);
    }
    for (timer, TimerMessage { schema, payload }) in fold.timers.messages() {
        fields.u64(timer).u32(*schema).u32(payload.len() as u32).bytes(payload);
    }
    let rules = fold.fault_rules.map_or(0, |rules| rules.bits() | HAS_RULES);
    fields.u64(fold.next_published).u32(fold.version).u32(rules);
    let length_at = out.len();
    out.extend_from_slice(&[0; 8]);
    fold.service.snapshot(&mut out);
    let length = (out.len() - length_at - 8) as u64;
    let form = state::form_of(&out[length_at + 8..]);
    out[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
    let sum = crc32c(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    (out, form)
}

fn encode_session(out: &mut FieldWriter, entry: &SessionEntry) {
    out.u64(entry.session).u128(entry.token).u64(entry.last_session_seq).u64(entry.messages).u64(entry.last_active_ns);
    out.u32(entry.window_messages);
    let unused = StoredReply::default();
    for at in 0..entry.window_messages as usize {
        let reply = entry.replies.get(at).unwrap_or(&unused);
        out.u64(reply.session_seq).u64(reply.sequence).u64(reply.timestamp_ns).u32(reply.schema).u16(reply.flags);
        out.u32(reply.payload.len() as u32).bytes(&reply.payload);
    }
    out.u64(entry.last_notice).u32(entry.notices.len() as u32);
    for notice in &entry.notices {
        out.u64(notice.number).u64(notice.sequence).u64(notice.timestamp_ns).u32(notice.schema);
        out.u16(notice.encoding.flags()).u32(notice.payload.len() as u32).bytes(&notice.payload);
    }
}

/// Far above any real stream, so that sums cannot overflow.
const COUNT_MAX: u64 = u64::MAX / 2;

fn count(fields: &mut FieldReader, what: &'static str) -> Result<u64, FieldError> {
    fields.u64(what).and_then(|count| if count <= COUNT_MAX { Ok(count) } else { Err(FieldError::Value { what }) })
}

fn magic(fields: &mut FieldReader) -> Result<u64, String> {
    const FORMAT_MAX: u64 = MAGIC >> FORMAT_BITS;
    match fields.u64("the magic") {
        Ok(magic) if magic << 8 == MAGIC << 8 => match magic >> FORMAT_BITS {
            format @ FORMAT_MIN..=FORMAT_MAX => Ok(format),
            format => Err(format!(
                "it has format {format}, and this program reads {FORMAT_MIN} to {FORMAT_MAX}: start the program that has written it"
            )),
        },
        _ => Err("it does not begin as a snapshot does".to_owned()),
    }
}

fn identity(fields: &mut FieldReader) -> Result<StreamIdentity, FieldError> {
    Ok(StreamIdentity { stream_id: fields.u128("the stream")?, incarnation: fields.u64("the incarnation")? })
}

fn session(fields: &mut FieldReader) -> Result<SessionEntry, FieldError> {
    let (session, token) = (fields.u64("a session")?, fields.u128("a token")?);
    let (last_session_seq, messages) = (count(fields, "a session's last number")?, count(fields, "its messages")?);
    let (last_active_ns, window) = (fields.u64("a session's time")?, fields.u32("a window")?);
    if !(1..=WINDOW_COMMANDS_MAX).contains(&window) {
        return Err(FieldError::Value { what: "a window" });
    }
    let mut replies = Vec::new();
    for _ in 0..window {
        let (session_seq, sequence) = (fields.u64("a reply's number")?, fields.u64("a reply's sequence")?);
        let (timestamp_ns, schema) = (fields.u64("a reply's time stamp")?, fields.u32("a reply's schema")?);
        let (flags, length) = (fields.u16("a reply's flags")?, fields.u32("a reply's length")?);
        let payload = fields.bytes(length as usize, "a reply")?.to_vec();
        replies.push(StoredReply { session_seq, sequence, timestamp_ns, schema, flags, payload });
    }
    let used = replies.iter().rposition(|reply| reply.session_seq != 0).map_or(0, |last| last + 1);
    replies.truncate(used);
    replies.shrink_to_fit();
    let last_notice = count(fields, "the last notice")?;
    let mut notices = VecDeque::new();
    for _ in 0..fields.u32("the notices")? {
        let (number, sequence) = (fields.u64("a notice's number")?, fields.u64("a notice's sequence")?);
        let (timestamp_ns, schema) = (fields.u64("a notice's time stamp")?, fields.u32("a notice's schema")?);
        let (flags, length) = (fields.u16("a notice's encoding")?, fields.u32("a notice's length")?);
        let encoding = Encoding::from_flags(flags);
        if encoding.flags() != flags {
            return Err(FieldError::Value { what: "a notice's encoding" });
        }
        let payload = fields.bytes(length as usize, "a notice")?.to_vec();
        notices.push_back(StoredNotice { number, sequence, timestamp_ns, schema, encoding, payload });
    }
    Ok(SessionEntry {
        session,
        token,
        last_session_seq,
        messages,
        last_active_ns,
        window_messages: window,
        replies,
        notices,
        last_notice,
        connection: None,
    })
}

/// Reads only the first bytes.
///
/// # Errors
/// It cannot be read, or has no valid head.
pub fn identity_of(path: &Path) -> Result<StreamIdentity, EngineError> {
    let head = head_of(path)?;
    let mut fields = FieldReader::new(&head);
    let found = magic(&mut fields).and_then(|_| identity(&mut fields).map_err(|error| error.to_string()));
    found.map_err(|reason| EngineError::Snapshot { path: path.to_owned(), reason })
}

/// `fold` must be empty.
///
/// # Errors
/// [`EngineError::Snapshot`]: it belongs to another stream, is damaged, or is refused by the service;
/// [`EngineError::MissingMessage`]: the service does not read the message of a timer.
pub fn restore(fold: &mut Fold, path: &Path, identity: StreamIdentity) -> Result<(), EngineError> {
    let unusable = |reason: String| EngineError::Snapshot { path: path.to_owned(), reason };
    let damaged = || {
        unusable(
            "it is damaged; move it away to recover from an older snapshot or from the journal's first frame, \
             if that is still there"
                .to_owned(),
        )
    };
    let body = whole_body(path)?.ok_or_else(damaged)?;
    let mut fields = FieldReader::new(&body);
    let format = magic(&mut fields).map_err(unusable)?;
    let found = self::identity(&mut fields).map_err(|_| damaged())?;
    if found != identity {
        return Err(unusable(format!(
            "it belongs to stream {:032x} incarnation {:016x}, the journal to {:032x} {:016x}",
            found.stream_id, found.incarnation, identity.stream_id, identity.incarnation
        )));
    }
    let state = restore_fields(fold, &mut fields, format).map_err(|_| damaged())?;
    fold.become_version(fold.version, fold.last_sequence)?;
    fold.check_timers()?;
    fold.service.restore(state).map_err(|reason| unusable(format!("the service refused it: {reason}")))?;
    if fold.policy().check_snapshots == CheckSnapshots::AtStart {
        let mut again = Vec::with_capacity(state.len());
        fold.service.snapshot(&mut again);
        if let Some(at) = state::first_difference(state, &again) {
            return Err(unusable(format!(
                "a second write of the restored state differs at byte {at}, as with an unordered collection: use BTreeMap \
                 or BTreeSet. To start nevertheless, set policy.check_snapshots to Never"
            )));
        }
    }
    Ok(())
}

/// Returns the service's state, not yet restored.
fn restore_fields<'a>(fold: &mut Fold, fields: &mut FieldReader<'a>, format: u64) -> Result<&'a [u8], FieldError> {
    fold.last_sequence = count(fields, "the last sequence")?;
    fold.restored_sequence = fold.last_sequence;
    fold.last_timestamp_ns = count(fields, "the last time stamp")?;
    for _ in 0..fields.u32("the sessions")? {
        fold.sessions.insert(session(fields)?);
    }
    for _ in 0..fields.u32("the timers")? {
        fold.timers.restore(fields.u64("a timer")?, fields.u64("a deadline")?);
    }
    if format >= FORMAT_WITH_TIMER_MESSAGES {
        fold.timers.restore_numbered(fields.u64("the count of timers")?);
        let what = "a timer's message";
        for _ in 0..fields.u32("the timers with a message")? {
            let (timer, schema, length) = (fields.u64(what)?, fields.u32(what)?, fields.u32(what)?);
            let payload = fields.bytes(length as usize, what)?.into();
            if !fold.timers.restore_message(timer, TimerMessage { schema, payload }) {
                return Err(FieldError::Value { what });
            }
        }
    }
    fold.next_published = at_least_one(count(fields, "the next frame")?, "the next frame")?;
    if format >= FORMAT_WITH_VERSION {
        fold.version = at_least_one(fields.u32("the version")?, "the version")?;
    }
    if format >= FORMAT_WITH_RULES {
        let what = "the rules for faults";
        fold.fault_rules = match fields.u32(what)? {
            0 => None,
            rules if rules & HAS_RULES == 0 => return Err(FieldError::Value { what }),
            rules => Some(FaultRules::from_bits(rules & !HAS_RULES).ok_or(FieldError::Value { what })?),
        };
    }
    let what = "the service's state";
    let length = usize::try_from(fields.u64(what)?).map_err(|_| FieldError::Value { what })?;
    let state = fields.bytes(length, what)?;
    if fields.rest().is_empty() { Ok(state) } else { Err(FieldError::Value { what }) }
}

fn at_least_one<T: Default + PartialEq>(value: T, what: &'static str) -> Result<T, FieldError> {
    if value == T::default() { Err(FieldError::Value { what }) } else { Ok(value) }
}

#[must_use]
pub fn file_name(sequence: u64) -> String {
    format!("{sequence:020}.{EXTENSION}")
}

const CHECKED_BYTES: usize = 1 << 20;
const HEAD_LENGTH: usize = 40;
const POINT_LENGTH: u64 = 48;

/// Checks that the snapshot is whole, belongs to `identity` and ends at `sequence`. Only [`restore`] shows whether the
/// service accepts its state.
///
/// # Errors
/// Defect of the file, or it cannot be read.
pub fn check(path: &Path, identity: StreamIdentity, sequence: u64) -> Result<(), EngineError> {
    let unusable = |reason: &str| EngineError::Snapshot { path: path.to_owned(), reason: reason.to_owned() };
    let is_whole = is_whole(&mut open(path)?, path, |head| {
        let mut fields = FieldReader::new(head);
        magic(&mut fields).map_err(|reason| unusable(&reason))?;
        if self::identity(&mut fields) != Ok(identity) {
            return Err(unusable("it belongs to another stream or incarnation"));
        }
        if fields.u64("the sequence") != Ok(sequence) {
            return Err(unusable("it stands at another sequence than is said"));
        }
        Ok(())
    });
    if is_whole? { Ok(()) } else { Err(unusable("it is damaged")) }
}

fn open(path: &Path) -> Result<File, EngineError> {
    checked_file::open(path).map_err(unreadable(path))
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> EngineError {
    EngineError::system(format!("reading {}", path.display()))
}

fn head_of(path: &Path) -> Result<Vec<u8>, EngineError> {
    let mut head = Vec::new();
    open(path)?.take(POINT_LENGTH).read_to_end(&mut head).map_err(unreadable(path))?;
    Ok(head)
}

fn is_whole(
    file: &mut File,
    path: &Path,
    head: impl FnOnce(&[u8]) -> Result<(), EngineError>,
) -> Result<bool, EngineError> {
    let length = file.metadata().map_err(unreadable(path))?.len();
    let Some(mut left) = length.checked_sub(4).filter(|body| *body >= HEAD_LENGTH as u64) else { return Ok(false) };
    let mut piece = vec![0; CHECKED_BYTES];
    let (mut sum, mut head) = (0, Some(head));
    while left > 0 {
        let piece = &mut piece[..left.min(CHECKED_BYTES as u64) as usize];
        file.read_exact(piece).map_err(unreadable(path))?;
        sum = crc32c_append(sum, piece);
        left -= piece.len() as u64;
        head.take().map_or(Ok(()), |head| head(piece))?;
    }
    let mut found = [0; 4];
    file.read_exact(&mut found).map_err(unreadable(path))?;
    Ok(u32::from_le_bytes(found) == sum)
}

/// `None` if the checksum does not match. Memory, of any length, is allocated after the check.
fn whole_body(path: &Path) -> Result<Option<Vec<u8>>, EngineError> {
    let mut file = open(path)?;
    if !is_whole(&mut file, path, |_| Ok(()))? {
        return Ok(None);
    }
    let length = file.stream_position().map_err(unreadable(path))?;
    file.rewind().map_err(unreadable(path))?;
    let mut body = checked_file::read_from(&file, length).map_err(unreadable(path))?;
    body.truncate(body.len().saturating_sub(4));
    Ok(Some(body))
}

/// Positions of the snapshots, oldest first, to be checked against the journal. With an invalid head, only the sequence
/// in the file's name is known.
///
/// # Errors
/// The directory or a snapshot cannot be read.
pub fn points(directory: &Path) -> Result<Vec<FilePoint>, EngineError> {
    let point = |(sequence, path): (u64, PathBuf)| {
        let head = head_of(&path)?;
        let mut fields = FieldReader::new(&head);
        let found = magic(&mut fields).ok().and_then(|_| identity(&mut fields).ok());
        let identity = found.filter(|_| fields.u64("the sequence") == Ok(sequence));
        let timestamp_ns = identity.and_then(|_| fields.u64("the time stamp").ok());
        let identity = identity.filter(|_| timestamp_ns.is_some());
        Ok(FilePoint { path, identity: identity.map(|of| (of.stream_id, of.incarnation)), sequence, timestamp_ns })
    };
    list(directory)?.into_iter().map(point).collect()
}

/// Rewrites the snapshots for `identity`, another incarnation of the stream.
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
        let damaged = || EngineError::Snapshot { path: path.clone(), reason: "it is damaged".to_owned() };
        let mut bytes = whole_body(&path)?.ok_or_else(damaged)?;
        bytes[8..24].copy_from_slice(&identity.stream_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&identity.incarnation.to_le_bytes());
        bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
        write(directory, sequence, &bytes)?;
    }
    Ok(())
}

/// (sequence, path), oldest first.
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

/// Writes atomically; removes all but the newest two.
///
/// # Errors
/// A full or read-only disk; the old snapshots stay.
pub fn write(directory: &Path, sequence: u64, bytes: &[u8]) -> Result<(), EngineError> {
    let path = directory.join(file_name(sequence));
    let action = || format!("writing {}", path.display());
    private_folder::create(directory).map_err(EngineError::system(action()))?;
    let write = || -> std::io::Result<()> {
        // Private to the user: it contains session tokens.
        let mut file = FileReplacement::begin(&path, path.with_extension("tmp"), 0o600)?;
        let (first, second) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        crash_point("in_snapshot_write");
        file.write_all(second)?;
        file.sync()?;
        crash_point("before_snapshot_rename");
        file.put_in_place().map(drop)
    };
    write().map_err(EngineError::system(action()))?;
    let mut snapshots = list(directory)?;
    snapshots.truncate(snapshots.len().saturating_sub(SNAPSHOTS_RETAINED));
    for (_, old) in snapshots {
        checked_file::remove(&old).map_err(EngineError::system(format!("removing {}", old.display())))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
