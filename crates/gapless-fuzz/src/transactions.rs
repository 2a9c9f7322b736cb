//! Target for the transactions of a state-replicated service: any content of a leader's frames is applied as a whole or
//! is an error with its position, and the applied state survives a snapshot.

use crate::input::{FuzzInput, assert_says_something};
use crate::stores::{Flags, FuzzCollections};
use gapless_engine::fold::NoSink;
use gapless_engine::state::{StateHandlers, StateService, fold_of};
use gapless_engine::store::{Store, StoreLimits};
use gapless_engine::{EngineError, snapshot};
use gapless_log::StreamIdentity;
use gapless_wire::control::SessionOpen;
use gapless_wire::descriptor::TRANSACTION_FLAG;
use gapless_wire::{Fragment, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};

struct EmptyService;

impl StateService for EmptyService {
    fn handlers(_: &mut StateHandlers<Self>) {}
}

fn declare(store: &mut Store) -> EmptyService {
    let FuzzCollections { .. } = crate::stores::declare(store);
    EmptyService
}

/// Each transaction follows a byte with its origin (bit 0: a timer, else a command; bits 1 and 2: in how many frames
/// more than one; bit 3: of a leader that ran no handler), and its length of two bytes.
pub fn transactions(bytes: &[u8]) {
    let limits =
        StoreLimits { objects_max: 500, bytes_max: 1 << 20, object_length_max: 1 << 16, changes_length_max: 1 << 16 };
    let mut fold = fold_of(declare, limits);
    let open = SessionOpen { token: 7, window_messages: 4, shared: false, notices_seen: 0 }.to_bytes();
    let mut sequence = 1;
    let header = FrameHeader { kind: Kind::SessionOpen, session: 1, ..FrameHeader::default() };
    apply(&mut fold, header, sequence, &open).expect("a session can be opened");
    let mut input = FuzzInput(bytes);
    let mut session_seq = 0;
    while !input.is_empty() {
        let (what, length) = (input.byte(), usize::from(input.u16()));
        let payload = input.bytes(length);
        let flags = if what & 8 == 0 { TRANSACTION_FLAG } else { 0 };
        let header = match what & 1 {
            0 => FrameHeader { flags, session: 1, session_seq: session_seq + 1, ..FrameHeader::default() },
            _ => FrameHeader { kind: Kind::Timer, flags, ..FrameHeader::default() },
        };
        session_seq += u64::from(what & 1 == 0);
        let count = u16::from(what >> 1 & 3) + 1;
        let part = payload.len().div_ceil(usize::from(count)).max(1);
        for index in 0..count {
            sequence += 1;
            let begin = payload.len().min(usize::from(index) * part);
            let payload = &payload[begin..payload.len().min(begin + part)];
            let header = FrameHeader { fragment: Fragment { index, count }, ..header };
            if let Err(error) = apply(&mut fold, header, sequence, payload) {
                assert_says_something(&error);
                let EngineError::Corrupt { sequence: told, .. } = error else { panic!("{error} has no place") };
                assert_eq!(told, sequence, "the error names the frame");
                return;
            }
        }
    }
    let written = snapshot::encode(&fold, StreamIdentity::default());
    let directory = crate::input::scratch();
    let path = directory.path().join("0.snapshot");
    std::fs::write(&path, &written).expect("a file can be written");
    let mut again = fold_of(declare, limits);
    // Restoring checks the hash of the state and the number of objects.
    snapshot::restore(&mut again, &path, StreamIdentity::default()).expect("what was written is restored");
    assert_eq!(again.last_sequence(), sequence);
}

fn apply(
    fold: &mut gapless_engine::Fold,
    header: FrameHeader,
    sequence: u64,
    payload: &[u8],
) -> Result<(), EngineError> {
    let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut frame);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    let length = writer.finish(&FrameHeader { sequence, timestamp_ns: sequence, term: 1, ..header }, payload.len());
    fold.apply(&Frame::parse(&frame[..length]).expect("it was just made"), &mut NoSink)
}

#[must_use]
pub fn sample() -> Vec<u8> {
    let mut store = Store::new(StoreLimits::default());
    let handles = crate::stores::declare(&mut store);
    let mut transaction = store.begin();
    transaction.insert(handles.flags, 1, Flags { number: 5, are_set: [true; 5] });
    let mut changes = Vec::new();
    transaction.commit(&mut changes).expect("it can be encoded");
    let mut bytes = vec![1, 0, 0, 0];
    bytes.extend_from_slice(&(7_u32 << 16 | 1).to_le_bytes());
    bytes.extend_from_slice(&store.state_hash().to_le_bytes());
    bytes.extend_from_slice(&store.layout_hash().to_le_bytes());
    [5_u32, 1, 1].iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
    bytes.extend_from_slice(b"reply");
    bytes.extend_from_slice(&1_u64.to_le_bytes());
    bytes.extend_from_slice(&(7_u32 << 16 | 1).to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 6, 0, 0, 0]);
    bytes.extend_from_slice(b"notice");
    bytes.push(1);
    [3_u64, 9].iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
    [bytes, changes].concat()
}
