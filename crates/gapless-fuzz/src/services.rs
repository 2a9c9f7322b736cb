//! Targets for the persistent inputs of a service: snapshots, the record of dead letters, a replayed stream.

use crate::input::{FuzzInput, assert_says_something, heal_frames, scratch};
use crate::journals;
use crate::messages::car::Car;
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::dead_letters::{DeadLetter, DeadLetters, FILE_NAME};
use gapless_engine::fold::NoSink;
use gapless_engine::recovery::recover;
use gapless_engine::{Context, Fold, Handlers, OnPanic, Policy, Reject, Service, snapshot};
use gapless_journal::Journal;
use gapless_log::StreamIdentity;
use gapless_schema::{Protobuf, Sbe};
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::{Decision, Sequencer};
use gapless_transport::ConnectionId;
use gapless_wire::checksum::crc32c;
use gapless_wire::control::{RefusalCode, SessionOpen, TimerFired};
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length, stamp, writer};
use tempfile::TempDir;

#[derive(Default)]
pub struct CarCounter {
    cars: u64,
}

pub const ECHO: u32 = 7 << 16 | 1;

impl Service for CarCounter {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on::<Sbe<Car>>(Self::car);
        handlers.on::<Protobuf<Car>>(Self::car);
        handlers.on_bytes(ECHO, |service, payload, context| {
            service.cars = service.cars.wrapping_add(1);
            context.set_numbered_timer(u64::from(payload.first().copied().unwrap_or(0)), context.time_ns() | 1);
            context.cancel_numbered_timer(u64::from(payload.last().copied().unwrap_or(0)));
            let session = context.session();
            context.notify_bytes(session, ECHO, gapless_schema::Encoding::Opaque, 1, |buffer| {
                buffer[0] = 1;
                Ok::<_, String>(1)
            })?;
            context.reply_bytes(ECHO, gapless_schema::Encoding::Opaque, payload.len(), |buffer| {
                buffer.copy_from_slice(payload);
                Ok::<_, String>(payload.len())
            })
        });
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        context.set_numbered_timer(timer, context.time_ns());
        Ok(())
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.cars.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.cars = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
        Ok(())
    }
}

impl CarCounter {
    fn car(&mut self, car: Car, context: &mut Context<'_>) -> Result<(), Reject> {
        self.cars += 1;
        context.reply(&Sbe(car))
    }
}

fn empty_fold() -> Fold {
    let policy = Policy { on_panic: OnPanic::Stop, ..Policy::default() };
    Fold::new(CarCounter::default(), policy)
}

struct ServiceDirectory {
    directory: TempDir,
    identity: StreamIdentity,
}

const JOURNALED: u64 = 3;

impl ServiceDirectory {
    fn new() -> Self {
        let directory = scratch();
        let layout = StreamLayout::new(directory.path());
        std::fs::create_dir(layout.snapshots()).expect("a folder can be made");
        let (mut journal, _) = Journal::open(journals::options(&layout.journal())).expect("a journal can be made");
        for sequence in 1..=JOURNALED {
            let frame = mark(sequence);
            journal.append(&frame, sequence, sequence).expect("there is room");
        }
        journal.commit().expect("there is room");
        let identity = StreamIdentity { stream_id: journals::STREAM_ID, incarnation: journal.incarnation() };
        Self { directory, identity }
    }
}

fn mark(sequence: u64) -> Vec<u8> {
    let mut frame = vec![0; HEADER_LENGTH];
    let header = FrameHeader { kind: Kind::Mark, sequence, timestamp_ns: sequence, ..FrameHeader::default() };
    FrameWriter::new(&mut frame).finish(&header, 0);
    frame
}

/// Modes in the first byte of a snapshot's input.
const AS_IT_IS: u8 = 1;

const MISNAMED: u8 = 2;

/// Magic, identity and checksum are repaired, unless the first byte asks for the file as it is.
pub fn snapshot(bytes: &[u8]) {
    // A journal costs more than all the rest: one for each thread.
    thread_local!(static PLACE: ServiceDirectory = ServiceDirectory::new());
    PLACE.with(|place| snapshot_at(place, bytes));
}

fn snapshot_at(place: &ServiceDirectory, bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let mut file = input.rest().to_vec();
    if mode & AS_IT_IS == 0 {
        file.splice(..0, snapshot_head(place.identity));
        let sum = crc32c(&file);
        file.extend_from_slice(&sum.to_le_bytes());
    }
    let layout = StreamLayout::new(place.directory.path());
    let named = file.get(32..40).map_or(1, |field| u64::from_le_bytes(field.try_into().expect("eight bytes")));
    let path = layout.snapshots().join(format!("{:020}.snapshot", if mode & MISNAMED == 0 { named } else { 1 }));
    std::fs::write(&path, &file).expect("a file can be written");
    let mut fold = empty_fold();
    match snapshot::restore(&mut fold, &path, place.identity) {
        Ok(()) => {
            let written = snapshot::encode(&fold, place.identity);
            std::fs::write(&path, &written).expect("a file can be written");
            let mut again = empty_fold();
            let restored = snapshot::restore(&mut again, &path, place.identity);
            restored.expect("what was written is restored");
            assert_eq!(snapshot::encode(&again, place.identity), written);
            for entry in fold.sessions().sorted() {
                let found = fold.sessions().get(entry.session).expect("a session in the list is found");
                let _ = (entry.find_reply(0), entry.find_reply(1), found.find_reply(u64::MAX));
            }
        }
        Err(error) => assert_says_something(&error),
    }
    let (mut fold, mut sequencer) = (empty_fold(), Sequencer::new(SequencerRules::of_service(u64::MAX)));
    let recovered = recover(&layout, place.identity, &mut fold, &mut sequencer, (&mut NoSink, None), u64::MAX);
    match recovered {
        Ok(recovered) => {
            assert_eq!(recovered.last_sequence, JOURNALED, "the fold stands where the journal ends");
            assert_eq!(sequencer.last_sequence(), JOURNALED);
        }
        Err(error) => assert_says_something(&error),
    }
    std::fs::remove_file(&path).expect("it is there");
}

#[must_use]
pub fn snapshot_head(identity: StreamIdentity) -> Vec<u8> {
    let mut head = b"GAPSNAP\x01".to_vec();
    head.extend_from_slice(&identity.stream_id.to_le_bytes());
    head.extend_from_slice(&identity.incarnation.to_le_bytes());
    head
}

/// A later letter is recorded exactly once.
pub fn dead_letters(bytes: &[u8]) {
    let directory = scratch();
    let path = directory.path().join(FILE_NAME);
    std::fs::write(&path, bytes).expect("a file can be written");
    let length = || std::fs::metadata(&path).expect("it is there").len();
    let mut letters = match DeadLetters::open(directory.path(), u64::MAX) {
        Ok(letters) => letters,
        Err(error) => return assert_says_something(&error),
    };
    assert_eq!(length(), bytes.len() as u64, "opening changes nothing");
    let reason = String::from_utf8_lossy(bytes).into_owned();
    let letter =
        DeadLetter { sequence: u64::MAX, session: 1, session_seq: 2, schema: 3, code: RefusalCode::Unhandled, reason };
    letters.record(&letter);
    drop(letters);
    let recorded = std::fs::read(&path).expect("it is there");
    assert!(recorded.starts_with(bytes), "what was there stays");
    let added = String::from_utf8(recorded[bytes.len()..].to_vec()).expect("letters are text");
    assert!(added.lines().filter(|line| !line.is_empty()).count() <= 1, "one line for a letter: {added:?}");
    let mut letters = DeadLetters::open(directory.path(), u64::MAX).expect("it could be opened before");
    letters.record(&letter);
    assert_eq!(length(), recorded.len() as u64, "a letter is recorded once");
}

/// Frames back to back, applied like a sequencer's, then again from the start. Checksums, sequences and times are
/// repaired.
pub fn replay(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let mut frames = input.rest().to_vec();
    frames.resize(frames.len().next_multiple_of(8), 0);
    heal_frames(&mut frames);
    let stream = sequenced(&mut frames, mode & AS_IT_IS == 0);
    let (first, last) = apply_all(&stream);
    let (second, again) = apply_all(&stream);
    assert_eq!((first, last), (second, again), "a replay ends in the same state");
}

/// `by_sequencer` leaves out frames that no publisher may send; otherwise all are taken for a journal's.
fn sequenced(frames: &mut [u8], by_sequencer: bool) -> Vec<Vec<u8>> {
    let connection = ConnectionId(1);
    let mut sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
    let mut stream = Vec::new();
    let mut at = 0;
    while let Ok(frame) = Frame::parse(&frames[at..]) {
        let padded = aligned_length(frame.length());
        let mut bytes = frames[at..(at + padded).min(frames.len())].to_vec();
        at += bytes.len();
        let frame = Frame::parse(&bytes).expect("it was a frame before");
        if !by_sequencer {
            stamp(&mut bytes, stream.len() as u64 + 1, stream.len() as u64, 0);
            stream.push(bytes);
            continue;
        }
        if sequencer.decide(&frame, connection, 0) != Decision::Append {
            continue;
        }
        let open = (frame.kind() == Kind::SessionOpen).then(|| SessionOpen::from_bytes(frame.payload())).flatten();
        let (sequence, timestamp_ns) = sequencer.stamp(0);
        if let Some(open) = open {
            sequencer.open(sequence, &open, connection);
            writer::set_session(&mut bytes, sequence);
        }
        stamp(&mut bytes, sequence, timestamp_ns, 0);
        stream.push(bytes);
    }
    stream
}

fn apply_all(stream: &[Vec<u8>]) -> (Vec<u8>, Option<String>) {
    let mut fold = empty_fold();
    let mut observer = Sequencer::new(SequencerRules::of_service(u64::MAX));
    let mut stopped = None;
    for bytes in stream {
        let frame = Frame::parse(bytes).expect("what was stamped is a frame");
        let _ = TimerFired::from_bytes(frame.payload());
        if let Err(error) = fold.apply(&frame, &mut NoSink) {
            assert_says_something(&error);
            stopped = Some(error.to_string());
            break;
        }
        if frame.fragment().is_last() {
            observer.observe(&frame);
            assert_eq!(observer.last_sequence(), fold.last_sequence());
        }
    }
    (snapshot::encode(&fold, StreamIdentity::default()), stopped)
}
