//! Packets written by hand, streams cut anywhere, hostile lengths and fields, and a hidden password.

use super::*;

const LIMIT: usize = 64;

fn feed() -> FeedSession {
    FeedSession::new("FEED").unwrap()
}

fn login() -> Login {
    Login {
        username: Field::new("joe").unwrap(),
        password: Field::new("s3cret!").unwrap(),
        feed_session: feed(),
        sequence: 1234,
    }
}

fn server_packets() -> [(&'static [u8], ServerPacket<'static>); 9] {
    let accepted = |feed_session, sequence| ServerPacket::LoginAccepted { feed_session, sequence };
    let full = FeedSession::new("0123456789").unwrap();
    [
        (b"\x00\x06+hello", ServerPacket::Debug(b"hello")),
        (b"\x00\x1fA      FEED                1234", accepted(feed(), 1234)),
        (b"\x00\x1fA012345678918446744073709551615", accepted(full, u64::MAX)),
        (b"\x00\x02JA", ServerPacket::LoginRejected(RejectReason::NotAuthorized)),
        (b"\x00\x02JS", ServerPacket::LoginRejected(RejectReason::SessionNotAvailable)),
        (b"\x00\x04Sa\x00\xff", ServerPacket::Sequenced(b"a\x00\xff")),
        (b"\x00\x01S", ServerPacket::Sequenced(b"")),
        (b"\x00\x01H", ServerPacket::Heartbeat),
        (b"\x00\x01Z", ServerPacket::EndOfSession),
    ]
}

fn client_packets() -> [(&'static [u8], ClientPacket<'static>); 7] {
    let nobody =
        Login { username: Field::BLANK, password: Field::BLANK, feed_session: FeedSession::BLANK, sequence: 0 };
    [
        (b"\x00\x01+", ClientPacket::Debug(b"")),
        (b"\x00\x2fLjoe   s3cret!         FEED                1234", ClientPacket::Login(login())),
        (b"\x00\x2fL                                             0", ClientPacket::Login(nobody)),
        (b"\x00\x03Uhi", ClientPacket::Unsequenced(b"hi")),
        (b"\x00\x01U", ClientPacket::Unsequenced(b"")),
        (b"\x00\x01R", ClientPacket::Heartbeat),
        (b"\x00\x01O", ClientPacket::Logout),
    ]
}

fn write_server(buffer: &mut [u8], packet: &ServerPacket<'_>) -> Option<usize> {
    match *packet {
        ServerPacket::Debug(text) => write_debug(buffer, text),
        ServerPacket::LoginAccepted { feed_session, sequence } => write_login_accepted(buffer, feed_session, sequence),
        ServerPacket::LoginRejected(reason) => write_login_rejected(buffer, reason),
        ServerPacket::Sequenced(message) => write_sequenced(buffer, message),
        ServerPacket::Heartbeat => write_server_heartbeat(buffer),
        ServerPacket::EndOfSession => write_end_of_session(buffer),
    }
}

fn write_client(buffer: &mut [u8], packet: &ClientPacket<'_>) -> Option<usize> {
    match packet {
        ClientPacket::Debug(text) => write_debug(buffer, text),
        ClientPacket::Login(login) => write_login(buffer, login),
        ClientPacket::Unsequenced(message) => write_unsequenced(buffer, message),
        ClientPacket::Heartbeat => write_client_heartbeat(buffer),
        ClientPacket::Logout => write_logout(buffer),
    }
}

#[test]
fn server_packets_match_bytes_by_hand() {
    for (bytes, packet) in server_packets() {
        assert_eq!(ServerPacket::parse(bytes, LIMIT), Ok(Some((packet, bytes.len()))));
        let mut buffer = [0xa5; LIMIT];
        assert_eq!(write_server(&mut buffer, &packet), Some(bytes.len()), "{packet:?}");
        assert_eq!(&buffer[..bytes.len()], bytes, "{packet:?}");
        assert!(buffer[bytes.len()..].iter().all(|byte| *byte == 0xa5), "no byte is written after {packet:?}");
        assert_eq!(write_server(&mut buffer[..bytes.len() - 1], &packet), None, "{packet:?}");
    }
}

#[test]
fn client_packets_match_bytes_by_hand() {
    for (bytes, packet) in client_packets() {
        assert_eq!(ClientPacket::parse(bytes, LIMIT), Ok(Some((packet, bytes.len()))));
        let mut buffer = [0xa5; LIMIT];
        assert_eq!(write_client(&mut buffer, &packet), Some(bytes.len()), "{packet:?}");
        assert_eq!(&buffer[..bytes.len()], bytes, "{packet:?}");
        assert!(buffer[bytes.len()..].iter().all(|byte| *byte == 0xa5), "no byte is written after {packet:?}");
        assert_eq!(write_client(&mut buffer[..bytes.len() - 1], &packet), None, "{packet:?}");
    }
}

#[test]
fn partial_packet_is_waited_for() {
    for (bytes, _) in server_packets() {
        for length in 0..bytes.len() {
            assert_eq!(ServerPacket::parse(&bytes[..length], LIMIT), Ok(None));
            assert_eq!(peek(&bytes[..length], LIMIT), Ok(None));
        }
    }
    for (bytes, _) in client_packets() {
        for length in 0..bytes.len() {
            assert_eq!(ClientPacket::parse(&bytes[..length], LIMIT), Ok(None));
        }
    }
}

#[test]
fn packets_are_taken_one_by_one() {
    let stream = server_packets().map(|(bytes, _)| bytes).concat();
    let mut rest = &stream[..];
    for (bytes, packet) in server_packets() {
        assert_eq!(peek(rest, LIMIT), Ok(Some(bytes.len())));
        assert_eq!(ServerPacket::parse(rest, LIMIT), Ok(Some((packet, bytes.len()))));
        rest = &rest[bytes.len()..];
    }
    assert_eq!(ServerPacket::parse(rest, LIMIT), Ok(None));
}

#[test]
fn bad_length_is_refused_at_once() {
    for bytes in [&b"\0\0"[..], b"\0\0S"] {
        assert_eq!(peek(bytes, LIMIT), Err(SoupError::Empty));
        assert_eq!(ServerPacket::parse(bytes, LIMIT), Err(SoupError::Empty));
        assert_eq!(ClientPacket::parse(bytes, LIMIT), Err(SoupError::Empty));
    }
    let error = SoupError::Length { length_bytes: 65, limit_bytes: 64 };
    assert_eq!((peek(b"\0\x3f", LIMIT), peek(b"\0\x3e", LIMIT)), (Err(error), Ok(None)));
    assert_eq!(ServerPacket::parse(b"\0\x3f", LIMIT), Err(error));
    assert_eq!(error.to_string(), "SoupBinTCP packet has 65 bytes, at most 64 are allowed here");
    assert_eq!(peek(b"\xff\xff", PACKET_LENGTH_MAX), Ok(None));
}

#[test]
fn foreign_type_is_refused_early() {
    let from_server = |found| Err(SoupError::Kind { found, expected: "+ A J S H Z" });
    let from_client = |found| Err(SoupError::Kind { found, expected: "+ L U R O" });
    for kind in 0..=u8::MAX {
        let bytes = [0, 40, kind];
        if !b"+AJSHZ".contains(&kind) {
            assert_eq!(ServerPacket::parse(&bytes, LIMIT), from_server(kind));
        }
        if !b"+LURO".contains(&kind) {
            assert_eq!(ClientPacket::parse(&bytes, LIMIT), from_client(kind));
        }
    }
    let text = ServerPacket::parse(b"\0\x01\n", LIMIT).unwrap_err().to_string();
    assert_eq!(text, r"SoupBinTCP packet type '\n' is none of + A J S H Z");
}

#[test]
fn wrong_fixed_length_is_refused() {
    let lengths = [(b'A', 33), (b'J', 4), (b'H', 3), (b'Z', 3), (b'L', 49), (b'R', 3), (b'O', 3)];
    for (kind, expected_bytes) in lengths {
        for found_bytes in (3..=LIMIT).filter(|length| *length != expected_bytes) {
            let bytes = [0, found_bytes as u8 - 2, kind];
            let error = SoupError::FixedLength { kind, expected_bytes, found_bytes };
            let found = if b"AJHZ".contains(&kind) {
                ServerPacket::parse(&bytes, LIMIT).unwrap_err()
            } else {
                ClientPacket::parse(&bytes, LIMIT).unwrap_err()
            };
            assert_eq!(found, error);
        }
    }
    let text = ClientPacket::parse(b"\0\x02R", LIMIT).unwrap_err().to_string();
    assert_eq!(text, "SoupBinTCP packet of type 'R' has 4 bytes, 3 are expected");
}

#[test]
fn login_padding_on_either_side() {
    let bytes = b"\x00\x2fL   joe s3cret!  FEED      1234                ";
    assert_eq!(ClientPacket::parse(bytes, LIMIT), Ok(Some((ClientPacket::Login(login()), 49))));
    let bytes = b"\x00\x1fAFEED      00000000000000001234";
    let accepted = ServerPacket::LoginAccepted { feed_session: feed(), sequence: 1234 };
    assert_eq!(ServerPacket::parse(bytes, LIMIT), Ok(Some((accepted, 33))));
}

#[test]
fn bad_login_fields_are_refused() {
    let good = client_packets()[1].0;
    let parse = |place: usize, field: &[u8]| {
        let mut bytes = good.to_vec();
        bytes[place..place + field.len()].copy_from_slice(field);
        ClientPacket::parse(&bytes, LIMIT).map(|_| ()).unwrap_err()
    };
    assert_eq!(parse(3, b"j\0e"), SoupError::Username { found: *b"j\0e   " });
    assert_eq!(parse(18, b"\x7f"), SoupError::Password);
    assert_eq!(parse(19, b"FE"), SoupError::FeedSession { found: *b"FE    FEED" });
    for found in [
        *b"                    ",
        *b"                  -1",
        *b"                  +1",
        *b"                 1 2",
        *b"                 0x1",
        *b"18446744073709551616",
        *b"99999999999999999999",
        [0; 20],
    ] {
        assert_eq!(parse(29, &found), SoupError::Sequence { found });
    }
    assert_eq!(ServerPacket::parse(b"\0\x02JX", LIMIT), Err(SoupError::RejectReason { found: b'X' }));
    let text = parse(29, b"\n                   ").to_string();
    assert!(text.starts_with(r#"sequence "\n  "#), "{text}");
}

#[test]
fn sequences_round_trip() {
    let mut buffer = [0; LOGIN_ACCEPTED_LENGTH];
    let powers = (0..20).map(|digits| 10u64.pow(digits));
    for sequence in powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]) {
        assert_eq!(write_login_accepted(&mut buffer, feed(), sequence), Some(33));
        assert_eq!(&buffer[13..], format!("{sequence:>20}").as_bytes());
        let accepted = ServerPacket::LoginAccepted { feed_session: feed(), sequence };
        assert_eq!(ServerPacket::parse(&buffer, LIMIT), Ok(Some((accepted, 33))));
    }
}

#[test]
fn payload_limit_is_exact() {
    let message = vec![7; PAYLOAD_LENGTH_MAX];
    let mut buffer = vec![0; PACKET_LENGTH_MAX + 8];
    assert_eq!(PAYLOAD_LENGTH_MAX, 65_534);
    assert_eq!(write_sequenced(&mut buffer, &message), Some(PACKET_LENGTH_MAX));
    assert_eq!(buffer[..3], sequenced_header(PAYLOAD_LENGTH_MAX).unwrap());
    let parsed = ServerPacket::parse(&buffer, PACKET_LENGTH_MAX);
    assert_eq!(parsed, Ok(Some((ServerPacket::Sequenced(&message), PACKET_LENGTH_MAX))));
    for length in [PAYLOAD_LENGTH_MAX + 1, usize::MAX] {
        assert_eq!((sequenced_header(length), unsequenced_header(length)), (None, None));
    }
    assert_eq!(write_sequenced(&mut buffer, &vec![7; PAYLOAD_LENGTH_MAX + 1]), None);
    assert_eq!((sequenced_header(0x0203), unsequenced_header(0)), (Some(*b"\x02\x04S"), Some(*b"\x00\x01U")));
}

#[test]
fn credentials_ignore_case_and_padding() {
    let password = Field::<10>::new("s3cret!").unwrap();
    assert_eq!(password.bytes(), *b"s3cret!   ");
    for same in ["s3cret!", "S3CRET!", " s3cret! "] {
        assert!(password.matches(&Field::new(same).unwrap()), "{same:?}");
    }
    for other in ["", "s3cret", "s3cret!!", "s3cret1", "3cret!"] {
        assert!(!password.matches(&Field::new(other).unwrap()), "{other:?}");
    }
    let blank = Field::<6>::new("   ").unwrap();
    assert_eq!((blank, blank.is_blank(), blank.as_str()), (Field::BLANK, true, ""));
    assert_eq!(Field::<6>::new("a b").unwrap().as_str(), "a b");
}

#[test]
fn oversized_credentials_are_refused() {
    let too_long = Field::<6>::new("abcdefg").unwrap_err();
    assert_eq!(too_long.to_string(), "at most 6 characters are allowed, 7 were found");
    assert!(Field::<6>::new("  abcdef  ").is_ok());
    for (text, offset) in [("a\tb", 1), ("\x7f", 0), ("größe", 2), ("a\n", 1)] {
        assert_eq!(Field::<6>::new(text), Err(SoupFieldError::Character { offset }), "{text:?}");
    }
    let text = Field::<6>::new("a\n").unwrap_err().to_string();
    assert_eq!(text, "only printable ASCII characters are allowed, the one at byte 1 is none");
}

#[test]
fn password_is_hidden() {
    let packet = ClientPacket::Login(login());
    let shown = format!("{packet:?} {packet:#?} {:?}", login().password);
    assert!(!shown.contains("s3cret") && shown.contains("joe") && shown.contains("FEED"), "{shown}");
    let bytes = b"\x00\x2fLjoe   s3cret!\x01\x02       FEED                1234";
    let error = ClientPacket::parse(&bytes[..49], LIMIT).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    let error = Field::<10>::new("s3cret!-and-more").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}
