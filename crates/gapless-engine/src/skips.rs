//! Commands that an operator has skipped on a single node. A mark after the last frame records a skip in the stream.
//! The file `skips` records it for a start, which replays the command before the mark.
//!
//! ```text
//! 4711 at 4790
//! ```
//!
//! One line per skip: the sequence of the command, and that of its mark. A start checks each mark in the journal, so
//! the file alone proves nothing; a replay that meets a mark without its line fails. Lines of commands covered by a
//! snapshot are ignored, because their marks may have been deleted by retention, or be in a missing archive.

use crate::interruption::{InterruptedFrame, interrupted_at};
use crate::output_record::RecordedOutputs;
use crate::{EngineError, snapshot};
use gapless_agent::{Clock, checked_file};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::inspect::{holds_journal, info};
use gapless_journal::{Journal, JournalReader, replace_file};
use gapless_log::StreamIdentity;
use gapless_stream::Persistence;
use gapless_stream::directory_record::DirectoryRecord;
use gapless_stream::locked_directory::{DirectoryOwner, LockedDirectory};
use gapless_stream::persistence::JournalParameters;
use gapless_transport::Tier;
use gapless_wire::descriptor::TRANSACTION_FLAG;
use gapless_wire::mark::{LENGTH_MAX, Mark};
use gapless_wire::{Fragment, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const FILE_BYTES_MAX: u64 = 1 << 20;

/// A skipped command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedCommand {
    pub sequence: u64,
    pub mark: u64,
    pub is_repeated: bool,
}

/// Skips the command or timer at `sequence` of the stopped service in `directory`. The client gets a refusal, and the
/// command is a dead letter. Idempotent.
///
/// # Errors
/// [`EngineError::Skip`]: not a single-node service, no command at `sequence`, or the command was handled. Other
/// errors: the directory is in use, damaged, or not writable.
pub fn skip(directory: &Path, sequence: u64) -> Result<SkippedCommand, EngineError> {
    let refused = |reason: String| EngineError::Skip { directory: directory.to_owned(), sequence, reason };
    let layout = StreamLayout::new(directory);
    if !holds_journal(&layout.journal()) {
        return Err(refused("there is no journal; name the directory of a service".to_owned()));
    }
    check_kind(&layout).and_then(|()| check_user(&layout)).map_err(refused)?;
    let mut locked = LockedDirectory::lock(layout.clone())?;
    locked.check_owner(DirectoryOwner::Service)?;
    let mut skips = lines(&layout)?;
    let points = snapshot::points(&layout.snapshots())?;
    if let Some(point) = points.last().filter(|point| point.sequence >= sequence) {
        let at = point.sequence;
        return Err(refused(format!(
            "it was handled or skipped before the snapshot at {at}, with which a start begins"
        )));
    }
    let frame_length_max = info(layout.journal())?.frame_length_max as usize;
    let opening = JournalParameters { points, ..JournalParameters::new(Tier::Sync, frame_length_max) };
    let opened = Persistence::default().open(&layout.journal(), opening)?;
    let mut journal = opened.journal;
    let found = SkipCheck::read(&JournalReader::open(layout.journal())?, sequence)?;
    if let Some(reason) = found.refusal {
        return Err(refused(reason));
    }
    if found.mark.is_none()
        && let Some(reason) = handled(&layout, opened.identity, sequence)?
    {
        return Err(refused(reason));
    }
    // Retention has deleted these marks; a snapshot covers the commands.
    skips.retain(|_, mark| *mark >= found.first_sequence);
    let skip = match found.mark {
        Some(mark) => SkippedCommand { sequence, mark, is_repeated: true },
        None => SkippedCommand { sequence, mark: append(&mut journal, &found, sequence)?, is_repeated: false },
    };
    journal.close()?;
    skips.insert(sequence, skip.mark);
    write(&layout, &skips)?;
    Ok(skip)
}

fn check_kind(layout: &StreamLayout) -> Result<(), String> {
    let kind = DirectoryRecord::read(layout).map_err(|error| error.to_string())?.map(|record| record.kind);
    let is_member = kind.as_deref() == Some("member") || layout.root().join("instance").exists();
    Err(match kind.as_deref() {
        _ if is_member => "the directory is a member's: `gapless cluster skip` writes it into the files of all members",
        Some("stream" | "relay") => {
            "no handler runs on this stream: a service on it skips by its own policy (skip_sequences)"
        }
        Some("bus") => {
            "the handlers of a command bus run before their commands enter the stream, and one that panics refuses its command"
        }
        _ => return Ok(()),
    }
    .to_owned())
}

/// Refuses users other than the owner, who could not read the files created by them.
fn check_user(layout: &StreamLayout) -> Result<(), String> {
    let path = layout.journal();
    let owner = path.metadata().map_err(|error| format!("reading {}: {error}", path.display()))?.uid();
    let user = rustix::process::geteuid().as_raw();
    if user == owner {
        return Ok(());
    }
    Err(format!(
        "its files are those of user {owner}, who could not read the ones that user {user} makes: run this as user {owner}"
    ))
}

fn handled(layout: &StreamLayout, identity: StreamIdentity, sequence: u64) -> Result<Option<String>, EngineError> {
    if RecordedOutputs::read(layout.root(), identity)?.has(sequence) {
        let why = "it was handled, and its outputs are recorded: clients may have its reply. Start the program that has handled \
                   it, stop it cleanly, so that a snapshot covers it, and start the new one then";
        return Ok(Some(why.to_owned()));
    }
    // The outputs of the last second may not be recorded.
    let interrupted = interrupted_at(layout.root()).filter(|interrupted| interrupted.sequence > sequence);
    Ok(interrupted.map(|InterruptedFrame { sequence, .. }| {
        format!("it was handled: the process before was ended at sequence {sequence}. Clients may have its reply")
    }))
}

struct SkipCheck {
    refusal: Option<String>,
    mark: Option<u64>,
    first_sequence: u64,
    last_sequence: u64,
    last_timestamp_ns: u64,
}

impl SkipCheck {
    fn read(reader: &JournalReader, sequence: u64) -> Result<Self, EngineError> {
        let (first, last) = (reader.first_sequence(), reader.last_sequence()?);
        let mut found =
            Self { refusal: None, mark: None, first_sequence: first, last_sequence: last, last_timestamp_ns: 0 };
        if !(first..=last).contains(&sequence) {
            let is_empty = last < first;
            let held = if is_empty { "no frame yet".to_owned() } else { format!("{first} to {last}") };
            found.refusal = Some(format!("the journal holds {held}"));
            return Ok(found);
        }
        let mut replay = reader.replay_until(sequence, last)?;
        while let Some(frame) = replay.next_frame()? {
            if frame.sequence() == sequence {
                found.refusal = refusal_of(&frame, last);
            }
            if frame.fragment().is_last() {
                (found.last_sequence, found.last_timestamp_ns) = (frame.sequence(), frame.timestamp_ns());
            }
            if marked(&frame) == Some(sequence) {
                found.mark.get_or_insert(frame.sequence());
            }
        }
        Ok(found)
    }
}

fn refusal_of(frame: &Frame<'_>, last_sequence: u64) -> Option<String> {
    let is_ahead = frame.flags() & TRANSACTION_FLAG != 0;
    Some(match (frame.kind(), frame.fragment()) {
        (Kind::Command | Kind::Timer, _) if is_ahead => {
            "the handlers of a replicated state run before their commands enter the stream, and one that panics refuses its command"
                .to_owned()
        }
        (Kind::Command, Fragment { index, count }) if !frame.fragment().is_last() => {
            let end = frame.sequence() + u64::from(count - index) - 1;
            if end > last_sequence {
                let why = "no handler was called with it, and a start cuts it off";
                format!("it is a part of a message that ends at {end}, and the journal ends at {last_sequence}: {why}")
            } else {
                format!("it is a part of a message whose handler is called at {end}")
            }
        }
        (Kind::Command | Kind::Timer, _) => return None,
        (kind, _) => format!("there stands no command but a {kind:?}, at which no handler stops"),
    })
}

pub(crate) fn marked(frame: &Frame<'_>) -> Option<u64> {
    match (frame.kind(), Mark::from_bytes(frame.payload())) {
        (Kind::Mark, Some(Mark::Skipped { sequence })) => Some(sequence),
        _ => None,
    }
}

/// Appends the mark of `sequence` after the last whole message. Later fragments were never released, and are truncated.
fn append(journal: &mut Journal, found: &SkipCheck, sequence: u64) -> Result<u64, EngineError> {
    journal.truncate_after(found.last_sequence)?;
    let mark = found.last_sequence + 1;
    let mut payload = [0; LENGTH_MAX];
    let length = Mark::Skipped { sequence }.write_to(&mut payload);
    let mut frame = vec![0; aligned_length(HEADER_LENGTH + length)];
    let mut writer = FrameWriter::new(&mut frame);
    writer.payload_mut()[..length].copy_from_slice(&payload[..length]);
    let timestamp_ns = Clock::system().now().epoch_ns.max(found.last_timestamp_ns + 1);
    writer.finish(&FrameHeader { kind: Kind::Mark, sequence: mark, timestamp_ns, ..FrameHeader::default() }, length);
    journal.append(&frame, mark, mark)?;
    journal.commit()?;
    journal.syncer().sync_and_check()?;
    Ok(mark)
}

/// Reads the skipped commands after `covered`, the last frame of the snapshot. Each needs its mark in the journal,
/// unless retention has deleted it.
///
/// # Errors
/// The file cannot be read, or belongs to another journal.
pub fn read(layout: &StreamLayout, reader: &JournalReader, covered: u64) -> Result<Vec<u64>, EngineError> {
    let mut skips = lines(layout)?;
    skips.retain(|sequence, _| *sequence > covered);
    for (sequence, mark) in &skips {
        let is_held = *mark >= reader.first_sequence();
        let said = if is_held && *mark <= reader.last_sequence()? {
            reader.replay_until(*mark, *mark)?.next_frame()?.and_then(|frame| marked(&frame))
        } else {
            None
        };
        if is_held && said != Some(*sequence) {
            let reason = format!(
                "{} says that the stream skips it at {mark}, which the stream does not: the file is of another journal. Put back \
                 that of this directory, or remove it if there was none",
                layout.skips().display()
            );
            return Err(EngineError::Skip { directory: layout.root().to_owned(), sequence: *sequence, reason });
        }
    }
    Ok(skips.into_keys().collect())
}

/// Skipped commands and their marks.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub fn lines(layout: &StreamLayout) -> Result<BTreeMap<u64, u64>, EngineError> {
    let path = layout.skips();
    let text = match checked_file::read_to_string(&path, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(EngineError::system(format!("reading {}", path.display()))(error)),
    };
    let parsed = text.lines().map(|line| {
        let (sequence, mark) = line.split_once(" at ")?;
        Some((sequence.parse().ok()?, mark.parse().ok()?)).filter(|(sequence, mark)| sequence < mark)
    });
    parsed.collect::<Option<_>>().ok_or_else(|| {
        let reason =
            "it is damaged; remove it, and `gapless journal skip` writes it again for each sequence that a start names";
        EngineError::system(format!("reading {}", path.display()))(std::io::Error::other(reason))
    })
}

/// `covered`: last frame of the newest snapshot.
pub(crate) fn damage(layout: &StreamLayout, marks: &[(u64, u64)], (first, covered): (u64, u64)) -> Option<String> {
    let lines = match lines(layout) {
        Ok(lines) => lines,
        Err(error) => return Some(error.to_string()),
    };
    let missing = marks.iter().find(|(sequence, _)| *sequence > covered && !lines.contains_key(sequence));
    if let Some((sequence, mark)) = missing {
        return Some(EngineError::NotSkipped { sequence: *sequence, mark: *mark }.to_string());
    }
    let foreign = lines.iter().find(|(sequence, mark)| **mark >= first && !marks.contains(&(**sequence, **mark)));
    foreign.map(|(sequence, mark)| format!("the stream has no mark at {mark} that skips {sequence}"))
}

fn write(layout: &StreamLayout, skips: &BTreeMap<u64, u64>) -> Result<(), EngineError> {
    let path = layout.skips();
    let text: String = skips.iter().map(|(sequence, mark)| format!("{sequence} at {mark}\n")).collect();
    replace_file(&path, path.with_extension("new"), text.as_bytes())
        .map_err(EngineError::system(format!("writing {}", path.display())))
}
