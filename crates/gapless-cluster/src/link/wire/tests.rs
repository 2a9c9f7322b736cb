//! Tests of the documented layout, and of bytes that are not a message.

use super::*;

fn identity() -> MemberIdentity {
    MemberIdentity {
        cluster: ClusterName::new("market").unwrap(),
        stream_id: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
        incarnation: 3,
        member: 1,
        instance: 77,
    }
}

fn healed(bytes: [u8; HEADER_LENGTH]) -> [u8; HEADER_LENGTH] {
    let mut bytes = bytes;
    let crc = crc32c(&bytes[..HEADER_CRC_OFFSET]);
    put_at(&mut bytes, HEADER_CRC_OFFSET, &crc.to_le_bytes());
    bytes
}

#[test]
fn header_has_the_documented_layout() {
    let header = MessageHeader::new(MessageKind::Consensus, 9, b"abc", 17);
    let bytes = header.to_bytes();
    assert_eq!(&bytes[..24], b"GCL\x01\x02\x05\0\0\x03\0\0\0\x11\0\0\0\x09\0\0\0\0\0\0\0");
    assert_eq!(MessageHeader::parse(&bytes), Ok(header));
    assert_eq!((header.frames_offset(), header.message_length()), (40, 64));
}

#[test]
fn flipped_bits_are_detected() {
    let bytes = MessageHeader::new(MessageKind::Consensus, 9, b"abc", 16).to_bytes();
    for bit in 0..HEADER_LENGTH * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(MessageHeader::parse(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn header_fields_are_validated() {
    let good = MessageHeader::new(MessageKind::Consensus, 1, b"", 0).to_bytes();
    let parse = |offset: usize, value: &[u8]| {
        let mut bytes = good;
        bytes[offset..offset + value.len()].copy_from_slice(value);
        MessageHeader::parse(&healed(bytes))
    };
    let long = (FRAMES_LENGTH_MAX as u32 + 1).to_le_bytes();
    assert!(matches!(parse(FRAMES_LENGTH_OFFSET, &long), Err(WireError::Length { part: "frames", .. })));
    let long = (CONSENSUS_LENGTH_MAX as u32 + 1).to_le_bytes();
    assert!(matches!(parse(CONSENSUS_LENGTH_OFFSET, &long), Err(WireError::Length { part: "consensus", .. })));
    assert_eq!(parse(KIND_OFFSET, &[99]), Err(WireError::Kind { found: 99 }));
    assert_eq!(parse(KIND_OFFSET + 1, &[1]), Err(WireError::Malformed { what: "header" }));
    assert_eq!(parse(VERSION_OFFSET, &[1]), Err(WireError::Version { found: 1 }));
    let mut ping = good;
    ping[KIND_OFFSET] = MessageKind::Ping as u8;
    ping[CONSENSUS_LENGTH_OFFSET] = 1;
    assert!(matches!(MessageHeader::parse(&healed(ping)), Err(WireError::Length { limit_bytes: 0, .. })));
}

#[test]
fn consensus_part_is_checked() {
    let header = MessageHeader::new(MessageKind::Consensus, 1, b"abc", 9);
    let mut message = header.to_bytes().to_vec();
    message.extend(b"abc\0\0\0\0\x00123456789\0\0\0\0\0\0\0");
    assert_eq!(header.parts(&message), Ok((&b"abc"[..], &b"123456789"[..])));
    let damaged = |at: usize| {
        let mut message = message.clone();
        message[at] ^= 1;
        header.parts(&message).map(|_| ())
    };
    assert!(matches!(damaged(33), Err(WireError::ConsensusChecksum { .. })));
    assert_eq!(damaged(36), Err(WireError::Malformed { what: "filling" }));
    assert_eq!(damaged(55), Err(WireError::Malformed { what: "filling" }));
    assert_eq!(damaged(41), Ok(()), "frames have checksums of their own");
}

#[test]
fn handshake_messages_round_trip() {
    let introduction =
        Introduction { from: identity(), to: 2, log: LogState { term: 5, last_index: 0x0203, is_rejoining: true } };
    let bytes = introduction.to_bytes();
    assert_eq!(&bytes[48..64], b"\x01\0\0\0\0\0\x06\0market\0\0");
    assert_eq!(&bytes[120..], b"\x05\0\0\0\0\0\0\0\x03\x02\0\0\0\0\0\0");
    assert_eq!(Introduction::parse(&bytes), Ok(introduction));
    for offset in [24, 32, 48, 53, 55, 56, 70, 119] {
        let mut damaged = bytes;
        damaged[offset] ^= if offset == 24 {
            1
        } else if offset == 32 {
            2
        } else {
            0x80
        };
        assert!(Introduction::parse(&damaged).is_err(), "byte {offset}");
    }
    assert!(Introduction::parse(&bytes[1..]).is_err());
    let refusal = LinkRefusal { code: LinkRefusalCode::OtherStream, text: "é".repeat(150) };
    let parsed = LinkRefusal::parse(&refusal.to_bytes()).unwrap();
    assert_eq!((parsed.code, parsed.text), (LinkRefusalCode::OtherStream, "é".repeat(100)));
    for code in LinkRefusalCode::ALL {
        assert_eq!(LinkRefusal::parse(&LinkRefusal { code, text: String::new() }.to_bytes()).unwrap().code, code);
    }
    assert_eq!(LinkRefusal::parse(&[1, 0, 0, 0, 0, 0, 0, 0, b'\n']).unwrap().text, " ");
    assert!(LinkRefusal::parse(&[0; 8]).is_err() && LinkRefusal::parse(&[1; 7]).is_err());
}

#[test]
fn name_is_short_and_printable() {
    assert!(ClusterName::new("").is_none() && ClusterName::new("a\nb").is_none());
    assert!(ClusterName::new(&"x".repeat(CLUSTER_NAME_LENGTH_MAX)).is_some());
    assert!(ClusterName::new(&"x".repeat(CLUSTER_NAME_LENGTH_MAX + 1)).is_none());
}
