//! Bundles: several records for one inbox as one record of Kafka, so that client and broker do their work once for all of them.
//!
//! The payload is a sequence of records. Numbers are unsigned, least significant byte first.
//!
//! | bytes | content |
//! |---|---|
//! | 2 | number of headers |
//! | 2, then so many | name of a header: its length, and UTF-8 |
//! | 2, then so many | value of that header |
//! | 4, then so many | payload of the record |

use super::{KafkaRecord, PROTOCOL_VERSION, RecordHeader, header, names};
use std::borrow::Cow;

/// Records of a bundle at most.
pub const BUNDLE_RECORDS_MAX: usize = 1_024;

/// A payload that ends inside a record, or has more than [`BUNDLE_RECORDS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TruncatedBundle;

pub(crate) fn length_of(record: &KafkaRecord) -> usize {
    let headers = record.headers.iter().map(|(name, value)| 4 + name.len() + value.len());
    6 + headers.sum::<usize>() + record.payload.as_ref().map_or(0, Vec::len)
}

/// Makes one record of several that have payloads and no keys.
///
/// # Panics
/// A header of more than 65,535 bytes, a payload of more than 4 GiB.
pub(crate) fn write(records: &[KafkaRecord]) -> KafkaRecord {
    let mut payload = Vec::with_capacity(records.iter().map(length_of).sum());
    for record in records {
        // The bundle's version is that of its records.
        let headers = record.headers.iter().filter(|(name, _)| name != names::PROTOCOL);
        write_length::<2>(&mut payload, headers.clone().count());
        for (name, value) in headers {
            for bytes in [name.as_bytes(), value] {
                write_length::<2>(&mut payload, bytes.len());
                payload.extend_from_slice(bytes);
            }
        }
        let bytes = record.payload.as_deref().unwrap_or_default();
        write_length::<4>(&mut payload, bytes.len());
        payload.extend_from_slice(bytes);
    }
    let protocol = (Cow::Borrowed(names::PROTOCOL), PROTOCOL_VERSION.to_string().into_bytes());
    let kind = (Cow::Borrowed(names::KIND), b"bundle".to_vec());
    KafkaRecord { key: None, headers: vec![protocol, kind], payload: Some(payload) }
}

fn write_length<const BYTES: usize>(into: &mut Vec<u8>, length: usize) {
    assert!(length < 1 << (8 * BYTES), "a bundle has no room for {length} bytes");
    into.extend_from_slice(&length.to_le_bytes()[..BYTES]);
}

pub(crate) fn read(payload: &[u8]) -> impl Iterator<Item = Result<KafkaRecord, TruncatedBundle>> {
    let (mut left, mut count) = (payload, 0);
    std::iter::from_fn(move || {
        if left.is_empty() {
            return None;
        }
        count += 1;
        let record = read_record(&mut left).filter(|_| count <= BUNDLE_RECORDS_MAX);
        if record.is_none() {
            left = &[];
        }
        Some(record.ok_or(TruncatedBundle))
    })
}

fn read_record(left: &mut &[u8]) -> Option<KafkaRecord> {
    let count = read_length::<2>(left)?;
    let mut headers: Vec<RecordHeader> = Vec::with_capacity(count.min(32));
    for _ in 0..count {
        let (name, value) = (read_bytes::<2>(left)?, read_bytes::<2>(left)?);
        headers.extend(header(name, Some(value)));
    }
    let payload = Some(read_bytes::<4>(left)?.to_vec());
    Some(KafkaRecord { key: None, headers, payload })
}

fn read_bytes<'a, const BYTES: usize>(left: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = read_length::<BYTES>(left)?;
    left.split_off(..length)
}

fn read_length<const BYTES: usize>(left: &mut &[u8]) -> Option<usize> {
    let bytes = left.split_off(..BYTES)?;
    Some(bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::super::names::BridgeId;
    use super::super::{RecordWriter, ReplyHead};
    use super::*;

    fn records() -> Vec<KafkaRecord> {
        let writer = RecordWriter::new(&BridgeId { name: "a".into(), incarnation: 7 });
        let mut reply = writer.reply("f:1", Some(9), &ReplyHead::Reply, None);
        reply.payload = Some(vec![0, 255, 1]);
        vec![
            reply,
            writer.control("cancel", "f:2", Some(9)),
            KafkaRecord { payload: Some(Vec::new()), ..KafkaRecord::default() },
        ]
    }

    #[test]
    fn records_are_read_as_written() {
        let written = records();
        let bundle = write(&written);
        let lengths: usize = written.iter().map(length_of).sum();
        let payload = bundle.payload.unwrap();
        assert!(payload.len() <= lengths, "the protocol is written once");
        let read: Vec<_> = read(&payload).map(Result::unwrap).collect();
        let mut expected = written;
        expected.iter_mut().for_each(|record| record.headers.retain(|(name, _)| name != names::PROTOCOL));
        assert_eq!(read, expected);
    }

    #[test]
    fn cut_bundles_end_with_an_error() {
        let payload = write(&records()).payload.unwrap();
        let ends: Vec<_> = (0..=payload.len()).map(|end| read(&payload[..end]).collect::<Vec<_>>()).collect();
        let whole = ends.iter().filter(|read| read.iter().all(Result::is_ok)).count();
        assert_eq!(whole, 4, "empty, and after each record");
        assert!(ends.iter().all(|read| read.iter().rev().skip(1).all(Result::is_ok)));
        assert_eq!(ends[payload.len()].len(), 3);
    }

    #[test]
    fn a_bundle_has_a_limit() {
        let record = KafkaRecord { payload: Some(Vec::new()), ..KafkaRecord::default() };
        let payload = |count| write(&vec![record.clone(); count]).payload.unwrap();
        assert_eq!(read(&payload(BUNDLE_RECORDS_MAX)).filter(Result::is_ok).count(), BUNDLE_RECORDS_MAX);
        let over: Vec<_> = read(&payload(BUNDLE_RECORDS_MAX + 9)).collect();
        assert_eq!((over.len(), over.last()), (BUNDLE_RECORDS_MAX + 1, Some(&Err(TruncatedBundle))));
    }
}
