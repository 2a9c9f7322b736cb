//! Packets written by hand, every way to be cut short, and the limits of the writer.

use super::*;

const TWO_MESSAGES: &[u8] = b"FEED      \x01\x02\x03\x04\x05\x06\x07\x08\x00\x02\x00\x03abc\x00\x00";
const HEARTBEAT: &[u8] = b"FEED      \x00\x00\x00\x00\x00\x00\x00\x05\x00\x00";
const END_OF_SESSION: &[u8] = b"FEED      \x00\x00\x00\x00\x00\x00\x00\x05\xff\xff";

fn feed() -> FeedSession {
    FeedSession::new("FEED").unwrap()
}

fn messages(bytes: &[u8]) -> Vec<&[u8]> {
    match MoldPacket::parse(bytes).unwrap().content {
        PacketContent::Messages(messages) => messages.collect(),
        content => panic!("messages are expected, {content:?} found"),
    }
}

fn packet(count: u16, blocks: &[u8]) -> Vec<u8> {
    [&TWO_MESSAGES[..COUNT_OFFSET], &count.to_be_bytes(), blocks].concat()
}

#[test]
fn messages_are_parsed() {
    let packet = MoldPacket::parse(TWO_MESSAGES).unwrap();
    assert_eq!((packet.feed_session, packet.sequence), (feed(), 0x0102_0304_0506_0708));
    assert_eq!(packet.next_sequence(), 0x0102_0304_0506_070a);
    let PacketContent::Messages(mut messages) = packet.content else { panic!("there are two") };
    assert_eq!(format!("{messages:?}"), "Messages { count: 2, length: 7 }");
    assert_eq!((messages.len(), messages.next()), (2, Some(&b"abc"[..])));
    assert_eq!((messages.len(), messages.next()), (1, Some(&b""[..])));
    assert_eq!((messages.len(), messages.next(), messages.next()), (0, None, None));
}

#[test]
fn heartbeat_and_end_are_parsed() {
    let packet = MoldPacket { feed_session: feed(), sequence: 5, content: PacketContent::Heartbeat };
    assert_eq!((packet.next_sequence(), MoldPacket::parse(HEARTBEAT)), (5, Ok(packet)));
    let packet = MoldPacket { feed_session: feed(), sequence: 5, content: PacketContent::EndOfSession };
    assert_eq!((packet.next_sequence(), MoldPacket::parse(END_OF_SESSION)), (5, Ok(packet)));
}

#[test]
fn writers_match_bytes_by_hand() {
    let mut buffer = [0xa5; 64];
    let mut writer = PacketWriter::new(&mut buffer, feed(), 0x0102_0304_0506_0708);
    assert_eq!((writer.count(), writer.length()), (0, HEADER_LENGTH));
    assert!(writer.push(b"abc") && writer.push(b""));
    assert_eq!((writer.count(), writer.length()), (2, 27));
    let length = writer.finish();
    assert_eq!(&buffer[..length], TWO_MESSAGES);
    assert!(buffer[length..].iter().all(|byte| *byte == 0xa5), "no byte is written after the packet");

    for (written, expected) in [
        (heartbeat(&mut buffer, feed(), 5), HEARTBEAT),
        (end_of_session(&mut buffer[..HEADER_LENGTH], feed(), 5), END_OF_SESSION),
        (PacketWriter::new(&mut buffer, feed(), 5).finish(), HEARTBEAT),
    ] {
        assert_eq!(written, expected.len());
    }
    heartbeat(&mut buffer, feed(), 5);
    assert_eq!(&buffer[..HEADER_LENGTH], HEARTBEAT);
    end_of_session(&mut buffer, feed(), 5);
    assert_eq!(&buffer[..HEADER_LENGTH], END_OF_SESSION);
}

#[test]
fn truncated_packet_names_offset() {
    for length in 0..TWO_MESSAGES.len() {
        let expected = match length {
            0..20 => MoldError::Header { found_bytes: length },
            20..22 => MoldError::Block { index: 0, offset: 20, needed_bytes: 2, found_bytes: length - 20 },
            22..25 => MoldError::Block { index: 0, offset: 20, needed_bytes: 5, found_bytes: length - 20 },
            _ => MoldError::Block { index: 1, offset: 25, needed_bytes: 2, found_bytes: length - 25 },
        };
        assert_eq!(MoldPacket::parse(&TWO_MESSAGES[..length]), Err(expected), "cut to {length} bytes");
    }
    let text = MoldPacket::parse(&TWO_MESSAGES[..26]).unwrap_err().to_string();
    assert_eq!(text, "message block 1 at byte 25 needs 2 bytes, the packet has 1 left");
}

#[test]
fn hostile_lengths_are_refused() {
    let block =
        |index, offset, needed_bytes, found_bytes| Err(MoldError::Block { index, offset, needed_bytes, found_bytes });
    assert_eq!(MoldPacket::parse(&packet(1, b"\xff\xffabc")), block(0, 20, 65_537, 5));
    assert_eq!(MoldPacket::parse(&packet(2, b"\x00\x01a\x00\x02b")), block(1, 23, 4, 3));
    assert_eq!(MoldPacket::parse(&packet(1, b"")), block(0, 20, 2, 0));
    assert_eq!(MoldPacket::parse(&packet(0xfffe, &[0; 2 * 0xfffd])), block(0xfffd, 20 + 2 * 0xfffd, 2, 0));
    assert_eq!(messages(&packet(0xfffe, &[0; 2 * 0xfffe])), [b""; 0xfffe]);
}

#[test]
fn trailing_bytes_are_refused() {
    let trailing = |count, offset, found_bytes| Err(MoldError::Trailing { count, offset, found_bytes });
    assert_eq!(MoldPacket::parse(&packet(1, b"\x00\x01ab")), trailing(1, 23, 1));
    assert_eq!(MoldPacket::parse(&packet(1, b"\x00\x00\x00\x00")), trailing(1, 22, 2));
    assert_eq!(MoldPacket::parse(&packet(0, b"\x00\x01a")), trailing(0, 20, 3));
    assert_eq!(MoldPacket::parse(&packet(0xffff, b"\x00")), trailing(0, 20, 1));
    let text = MoldPacket::parse(&packet(1, b"\x00\x01ab")).unwrap_err().to_string();
    assert_eq!(text, "MoldUDP64 packet of 1 messages ends at byte 23, 1 bytes follow");
}

#[test]
fn bad_feed_session_is_refused() {
    for found in [*b"      FEED", *b"FE ED     ", *b"FEED\0\0\0\0\0\0", *b"FEED\n     "] {
        let bytes = [&found[..], &HEARTBEAT[10..]].concat();
        assert_eq!(MoldPacket::parse(&bytes), Err(MoldError::FeedSession { found }));
        assert_eq!(MoldRequest::from_bytes(&bytes), Err(MoldError::FeedSession { found }));
    }
    let text = MoldError::FeedSession { found: *b"FEED\n     " }.to_string();
    assert_eq!(text, r#"feed session "FEED\n     " is not printable ASCII filled up with spaces on the right"#);
    let blank = [&[b' '; 10], &HEARTBEAT[10..]].concat();
    assert_eq!(MoldPacket::parse(&blank).unwrap().feed_session, FeedSession::BLANK);
}

#[test]
fn sequence_overflow_is_refused() {
    let with_sequence = |sequence: u64, count: u16, blocks: &[u8]| {
        [&HEARTBEAT[..10], &sequence.to_be_bytes(), &count.to_be_bytes(), blocks].concat()
    };
    let error = MoldError::Sequence { sequence: u64::MAX, count: 1 };
    assert_eq!(MoldPacket::parse(&with_sequence(u64::MAX, 1, &[0, 0])), Err(error));
    assert_eq!(MoldRequest::from_bytes(&with_sequence(u64::MAX, 1, &[])), Err(error));
    assert_eq!(MoldPacket::parse(&with_sequence(u64::MAX - 1, 1, &[0, 0])).unwrap().next_sequence(), u64::MAX);
    for count in [MESSAGE_COUNT_HEARTBEAT, MESSAGE_COUNT_END_OF_SESSION] {
        assert_eq!(MoldPacket::parse(&with_sequence(u64::MAX, count, &[])).unwrap().next_sequence(), u64::MAX);
    }
}

#[test]
fn oversized_message_changes_nothing() {
    let mut buffer = [0; 27];
    let mut writer = PacketWriter::new(&mut buffer, feed(), 1);
    assert!(writer.fits(5) && !writer.fits(6) && !writer.fits(usize::MAX));
    assert!(!writer.push(b"abcdef"));
    assert!(writer.push(b"abc"));
    assert!(writer.fits(0) && !writer.fits(1));
    assert!(!writer.push(b"d"));
    assert!(writer.push(b"") && !writer.push(b""));
    assert_eq!((writer.count(), writer.length()), (2, 27));
    assert_eq!(writer.finish(), 27);
    assert_eq!(messages(&buffer), [&b"abc"[..], b""]);
}

#[test]
fn largest_messages_and_counts_fit() {
    let mut buffer = vec![0; HEADER_LENGTH + 2 * 0x1_0010];
    let mut writer = PacketWriter::new(&mut buffer, feed(), 1);
    let longest = vec![7; 0xffff];
    assert!(!writer.push(&vec![7; 0x1_0000]) && writer.push(&longest));
    let length = writer.finish();
    assert_eq!(messages(&buffer[..length]), [&longest[..]]);

    let mut writer = PacketWriter::new(&mut buffer, feed(), 1);
    for _ in 0..0xfffe {
        assert!(writer.push(b""));
    }
    assert!(!writer.fits(0) && !writer.push(b""));
    assert_eq!(writer.count(), MESSAGE_COUNT_MAX);
    let length = writer.finish();
    assert_eq!(messages(&buffer[..length]).len(), 0xfffe);
}

#[test]
fn mixed_lengths_round_trip() {
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let mut buffer = [0; PACKET_LENGTH_UDP];
    for step in 0..80 {
        let mut writer = PacketWriter::new(&mut buffer, feed(), step as u64);
        let pushed: Vec<&[u8]> =
            (0..).map(|index| &all[..index * step % 256]).take_while(|message| writer.push(message)).take(40).collect();
        assert_eq!((usize::from(writer.count()), writer.finish() <= PACKET_LENGTH_UDP), (pushed.len(), true));
        let length = HEADER_LENGTH + pushed.iter().map(|message| 2 + message.len()).sum::<usize>();
        assert_eq!(messages(&buffer[..length]), pushed);
    }
}

#[test]
#[should_panic(expected = "a packet needs room for its header")]
fn buffer_without_header_room_panics() {
    heartbeat(&mut [0; HEADER_LENGTH - 1], feed(), 1);
}

#[test]
fn request_is_exactly_twenty_bytes() {
    let bytes = b"FEED      \x01\x02\x03\x04\x05\x06\x07\x08\xab\xcd";
    let request = MoldRequest { feed_session: feed(), sequence: 0x0102_0304_0506_0708, count: 0xabcd };
    assert_eq!(MoldRequest::from_bytes(bytes), Ok(request));
    assert_eq!(request.to_bytes(), *bytes);
    for length in 0..bytes.len() {
        assert_eq!(MoldRequest::from_bytes(&bytes[..length]), Err(MoldError::Request { found_bytes: length }));
    }
    assert_eq!(MoldRequest::from_bytes(&[0; 21]), Err(MoldError::Request { found_bytes: 21 }));
}
