//! Targets for the input of a cluster member from its peers: a stream of messages in any pieces, and the handshakes
//! that decide on acceptance.

use crate::input::{FuzzInput, assert_says_something};
use gapless_cluster::link::beacon::Beacon;
use gapless_cluster::link::wire::{
    CONSENSUS_LENGTH_MAX, ClusterName, FRAMES_LENGTH_MAX, HEADER_LENGTH, Introduction, LinkRefusal, MAGIC,
    MemberIdentity, MessageHeader, VERSION,
};
use gapless_cluster::link::{ReceiveBuffer, judge};
use gapless_wire::checksum::crc32c;

const BUFFER_BYTES: usize = 512;

pub fn cluster_link(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let (flags, piece) = (input.byte(), usize::from(input.byte()) + 1);
    let mut bytes = input.rest().to_vec();
    if flags & 1 != 0 {
        heal(&mut bytes);
    }
    let mut buffer = ReceiveBuffer::new(BUFFER_BYTES);
    let (mut rest, mut read, mut number) = (&bytes[..], 0, 0);
    'connection: loop {
        loop {
            number += 1;
            match buffer.next_message() {
                Ok(Some(message)) => {
                    assert!(message.frames.as_ptr().cast::<u64>().is_aligned());
                    let header = MessageHeader::new(message.kind, number, message.consensus, message.frames.len());
                    let written = &bytes[read..read + header.message_length()];
                    assert_eq!(header.to_bytes(), written[..HEADER_LENGTH]);
                    assert_eq!(header.parts(written), Ok((message.consensus, message.frames)));
                    if message.kind.is_of_handshake() {
                        cluster_handshake(message.consensus);
                    }
                    read += header.message_length();
                }
                Ok(None) => break,
                Err(error) => {
                    assert_says_something(&error);
                    break 'connection;
                }
            }
        }
        number -= 1;
        assert!(buffer.capacity() <= BUFFER_BYTES.max(HEADER_LENGTH + CONSENSUS_LENGTH_MAX + FRAMES_LENGTH_MAX));
        if rest.is_empty() {
            break;
        }
        let room = buffer.room();
        assert!(!room.is_empty(), "where nothing is whole there is room for more");
        let length = piece.min(room.len()).min(rest.len());
        let (now, later) = rest.split_at(length);
        room[..length].copy_from_slice(now);
        buffer.commit(length);
        rest = later;
    }
}

/// The checksum is repaired, so that the fields after it are reached.
pub fn cluster_beacon(bytes: &[u8]) {
    const CRC: std::ops::Range<usize> = 24..28;
    let source = std::net::IpAddr::from([192, 0, 2, 9]);
    let mut healed = bytes.to_vec();
    if healed.len() >= CRC.end {
        healed[CRC].fill(0);
        let crc = crc32c(&healed);
        healed[CRC].copy_from_slice(&crc.to_le_bytes());
    }
    for bytes in [bytes, &healed] {
        if let Some(beacon) = Beacon::parse(bytes, source) {
            assert!(beacon.addresses.iter().all(|each| each.port() != 0 && !each.ip().is_unspecified()));
            // A beacon without an address of its own has the sender's now.
            assert_eq!(Beacon::parse(&beacon.to_bytes(), source), Some(beacon));
        }
    }
}

pub fn cluster_handshake(bytes: &[u8]) {
    match Introduction::parse(bytes) {
        Ok(introduction) => {
            assert_eq!(introduction.to_bytes(), *bytes);
            let cluster = ClusterName::new("market").expect("a short printable name");
            let own = MemberIdentity { cluster, stream_id: 9, incarnation: 4, member: 2, instance: 5 };
            match judge(&own, &introduction, |member| member == 1) {
                Ok(()) => {
                    let from = &introduction.from;
                    assert_eq!((&from.cluster, from.member, introduction.to), (&own.cluster, 1, 2));
                    assert!([0, own.stream_id].contains(&from.stream_id));
                    assert!([0, own.incarnation].contains(&from.incarnation));
                }
                Err(refusal) => {
                    assert_says_something(&*refusal);
                    let heard = LinkRefusal::parse(&refusal.to_bytes()).expect("what is said is understood");
                    assert_eq!(heard.code, refusal.code);
                }
            }
        }
        Err(error) => assert_says_something(&error),
    }
    match LinkRefusal::parse(bytes) {
        Ok(refusal) => {
            assert_says_something(&refusal);
            assert_eq!(LinkRefusal::parse(&refusal.to_bytes()), Ok(refusal));
        }
        Err(error) => assert_says_something(&error),
    }
}

fn heal(bytes: &mut [u8]) {
    let (mut rest, mut number) = (bytes, 0u64);
    while rest.len() >= HEADER_LENGTH {
        number += 1;
        let length_at = |rest: &[u8], at: usize| {
            let length = [rest[at], rest[at + 1], rest[at + 2], rest[at + 3]];
            u32::from_le_bytes(length) as usize
        };
        let (consensus_length, frames_length) = (length_at(rest, 8), length_at(rest, 12));
        rest[..4].copy_from_slice(&MAGIC.to_le_bytes());
        rest[4] = VERSION;
        rest[6..8].fill(0);
        rest[16..24].copy_from_slice(&number.to_le_bytes());
        let frames_at = HEADER_LENGTH.saturating_add(consensus_length.next_multiple_of(8));
        let end = frames_at.saturating_add(frames_length.next_multiple_of(8));
        let is_whole = end <= rest.len();
        if is_whole {
            rest[HEADER_LENGTH + consensus_length..frames_at].fill(0);
            rest[frames_at + frames_length..end].fill(0);
            let crc = crc32c(&rest[HEADER_LENGTH..HEADER_LENGTH + consensus_length]);
            rest[24..28].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32c(&rest[..28]);
        rest[28..32].copy_from_slice(&crc.to_le_bytes());
        if !is_whole {
            return;
        }
        rest = rest.split_at_mut(end).1;
    }
}
