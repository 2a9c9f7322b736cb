//! Encoding of a key's positions in a run, and the keys of an event.
//!
//! ```text
//! entry: u64 key, varint number of positions, each position:
//! varint (sequence − the previous one) × 2 + (1 if an ordinal follows); the first is relative to the run's first
//! sequence
//!   varint ordinal
//! ```
//! Numbers are little-endian; a varint has 7 bits a byte, lowest first, and the highest bit is set in all bytes but the
//! last.

use super::key::IndexKey;
use crate::identity::Position;
use crate::transaction::RecordedEvent;

pub(crate) fn keys_of<'a>(event: &RecordedEvent<'a>) -> impl Iterator<Item = IndexKey> + use<'a> {
    let aggregate = (event.aggregate.0 != 0).then(|| IndexKey::of_aggregate(event.aggregate, event.id));
    let tags = event.tags().map(|(name, value)| IndexKey::of_tag(name, value));
    [Some(IndexKey::of_type(event.event)), aggregate].into_iter().flatten().chain(tags)
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// `positions` ascend, from `first_sequence` on.
pub(super) fn put_entry(out: &mut Vec<u8>, key: IndexKey, first_sequence: u64, positions: &[Position]) {
    out.extend_from_slice(&key.0.to_le_bytes());
    put_varint(out, positions.len() as u64);
    let mut before = first_sequence;
    for position in positions {
        put_varint(out, (position.sequence - before) << 1 | u64::from(position.ordinal > 0));
        if position.ordinal > 0 {
            put_varint(out, position.ordinal.into());
        }
        before = position.sequence;
    }
}

/// `None` if the bytes do not decode.
pub(super) fn take_entry(bytes: &mut &[u8], first_sequence: u64, positions: &mut Vec<Position>) -> Option<IndexKey> {
    let (key, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    let mut before = first_sequence;
    for _ in 0..take_varint(bytes)? {
        let step = take_varint(bytes)?;
        let sequence = before.checked_add(step >> 1)?;
        let ordinal = if step & 1 == 0 { 0 } else { u16::try_from(take_varint(bytes)?).ok()? };
        positions.push(Position { sequence, ordinal });
        before = sequence;
    }
    Some(IndexKey(u64::from_le_bytes(*key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_round_trips() {
        let position = |sequence, ordinal| Position { sequence, ordinal };
        let positions = [position(7, 0), position(7, 1), position(200, u16::MAX), position(1 << 50, 0)];
        let mut bytes = Vec::new();
        put_entry(&mut bytes, IndexKey(9), 7, &positions);
        let (mut left, mut read) = (&bytes[..], Vec::new());
        assert_eq!(take_entry(&mut left, 7, &mut read), Some(IndexKey(9)));
        assert!(left.is_empty() && read == positions);
        for cut in 0..bytes.len() {
            assert_eq!(take_entry(&mut &bytes[..cut], 7, &mut Vec::new()), None, "cut at {cut}");
        }
    }
}
