//! Every packet is read as it was written; no damage goes unnoticed.

use super::*;

fn samples() -> Vec<UpstreamPacket<'static>> {
    let hello = NodeHello {
        nonce: 9,
        stream_id: 3 << 100,
        incarnation: 4,
        position: POSITION_LIVE,
        username: Field::new("ALICE").unwrap(),
        password: Field::new("secret").unwrap(),
        seen_sequence: 10,
        seen_timestamp_ns: 11,
        seen_stream_id: 12 << 100,
        seen_incarnation: 13,
        mtu: Some(Mtu::new(9_000).unwrap()),
    };
    let welcome = NodeWelcome {
        nonce: 9,
        stream_id: 1,
        incarnation: 2,
        position: 3,
        released_sequence: 4,
        frame_length_max: 1376,
        tier: 1,
        message_bytes_max: 1 << 24,
        feed_session: FeedSession::new("MONDAY").unwrap(),
        feed_first_sequence: 5,
        feed_last_sequence: Some(6),
        heartbeat_interval_ns: 7,
    };
    let report = NodeReport {
        position: 1,
        frames_requested: 2,
        packets_refused: 3,
        frames_resent: 4,
        is_live: true,
        in_flight: 5,
    };
    let with = |key, body| UpstreamPacket { key, body };
    vec![
        with(0, UpstreamBody::Hello(hello)),
        with(77, UpstreamBody::Welcome(welcome)),
        with(77, UpstreamBody::Welcome(NodeWelcome { feed_last_sequence: None, ..welcome })),
        with(0, UpstreamBody::Refusal { nonce: 9, reason: RefusalReason::NotHeld, text: "begins at 1000" }),
        with(1, UpstreamBody::Frames(&[1; 128])),
        with(1, UpstreamBody::Answers(&[2; 64])),
        with(1, UpstreamBody::Report(report)),
        with(1, UpstreamBody::Unknown),
        with(1, UpstreamBody::Farewell),
    ]
}

#[test]
fn packets_round_trip() {
    for packet in samples() {
        let mut buffer = [0xa5; 512];
        let length = packet.write_to(&mut buffer).unwrap();
        assert_eq!(UpstreamPacket::parse(&buffer[..length]), Ok(packet));
        assert_eq!(peek(&buffer), Ok(Some(length)));
        assert_eq!(packet.write_to(&mut buffer[..length - 1]), None, "no room");
    }
}

#[test]
fn damage_outside_frames_is_detected() {
    for packet in samples() {
        let mut buffer = [0; 512];
        let length = packet.write_to(&mut buffer).unwrap();
        let checked = if matches!(packet.body, UpstreamBody::Frames(_) | UpstreamBody::Answers(_)) {
            HEADER_LENGTH
        } else {
            length
        };
        for position in 0..checked {
            let mut damaged = buffer;
            damaged[position] ^= 0x20;
            assert!(UpstreamPacket::parse(&damaged[..length]).is_err(), "{packet:?}, byte {position}");
        }
        for cut in 0..length {
            assert!(UpstreamPacket::parse(&buffer[..cut]).is_err(), "{packet:?}, cut at {cut}");
        }
        assert!(UpstreamPacket::parse(&buffer[..length + 1]).is_err(), "a byte too many");
    }
}

#[test]
fn invalid_packets_are_refused() {
    assert_eq!(peek(b"GUP"), Ok(None));
    assert_eq!(peek(b"MONDAY    \0\0"), Err(UpstreamError::Magic { found: u32::from_le_bytes(*b"MOND") }));
    let mut endless = [0; 24];
    endless[..4].copy_from_slice(&MAGIC.to_le_bytes());
    endless[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(peek(&endless), Err(UpstreamError::Length { length_bytes: u32::MAX, found_bytes: 24 }));
    let mut unknown_type = [0; 24];
    finish(&mut unknown_type, 99, 0);
    assert_eq!(UpstreamPacket::parse(&unknown_type), Err(UpstreamError::Body { kind: 99 }));
}

#[test]
fn long_text_is_cut_at_a_character() {
    let text = "é".repeat(300);
    let packet = UpstreamPacket {
        key: 0,
        body: UpstreamBody::Refusal { nonce: 1, reason: RefusalReason::OtherStream, text: &text },
    };
    let mut buffer = [0; 512];
    let length = packet.write_to(&mut buffer).unwrap();
    match UpstreamPacket::parse(&buffer[..length]).unwrap().body {
        UpstreamBody::Refusal { text, .. } => {
            assert_eq!(text, "é".repeat(50));
            assert!(length <= HELLO_LENGTH, "an answer of {length} bytes is longer than its question");
        }
        other => panic!("{other:?}"),
    }
}
