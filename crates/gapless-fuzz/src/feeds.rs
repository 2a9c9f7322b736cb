//! Targets for foreign feed protocols: bytes are an error, or a packet that gives the same bytes when written again.

use crate::input::{FuzzInput, assert_says_something};
use gapless_wire::FeedSession;
use gapless_wire::mold::{self, MoldError, MoldPacket, MoldRequest, PacketContent, PacketWriter};
use gapless_wire::soup::{self, ClientPacket, Field, ServerPacket, SoupError};

pub fn mold_packet(bytes: &[u8]) {
    match MoldPacket::parse(bytes) {
        Ok(packet) => check_packet(bytes, &packet),
        Err(error) => assert_says_something(&error),
    }
}

fn check_packet(bytes: &[u8], packet: &MoldPacket<'_>) {
    let (feed_session, sequence) = (packet.feed_session, packet.sequence);
    check_feed_session(feed_session);
    let mut again = vec![0xa5; bytes.len()];
    let mut count = 0;
    let length = match packet.content.clone() {
        PacketContent::Heartbeat => mold::heartbeat(&mut again, feed_session, sequence),
        PacketContent::EndOfSession => mold::end_of_session(&mut again, feed_session, sequence),
        PacketContent::Messages(messages) => {
            count = messages.len() as u64;
            assert_eq!(messages.clone().count() as u64, count, "there are as many as it says");
            let mut writer = PacketWriter::new(&mut again, feed_session, sequence);
            for message in messages {
                assert!(writer.fits(message.len()) && writer.push(message), "there is room for as much as was read");
            }
            assert!(!writer.fits(0), "the packet was full");
            writer.finish()
        }
    };
    assert_eq!(again[..length], *bytes);
    assert_eq!(packet.next_sequence(), sequence + count);

    for length in [0, mold::HEADER_LENGTH - 1, bytes.len() - 1] {
        assert!(MoldPacket::parse(&bytes[..length]).is_err(), "cut to {length} bytes");
    }
    again.push(0);
    assert!(matches!(MoldPacket::parse(&again), Err(MoldError::Trailing { found_bytes: 1, .. })));
}

pub fn mold_request(bytes: &[u8]) {
    match MoldRequest::from_bytes(bytes) {
        Ok(request) => {
            assert_eq!(request.to_bytes(), *bytes);
            assert!(request.sequence.checked_add(u64::from(request.count)).is_some());
            check_feed_session(request.feed_session);
        }
        Err(error) => assert_says_something(&error),
    }
}

fn check_feed_session(feed_session: FeedSession) {
    assert_eq!(FeedSession::from_bytes(feed_session.bytes()), Some(feed_session));
    assert_eq!(feed_session.as_str().is_empty(), feed_session.is_blank());
    if !feed_session.is_blank() {
        assert_eq!(FeedSession::new(feed_session.as_str()), Ok(feed_session));
    }
}

/// u16 limit, then the stream.
fn limit_and_stream(bytes: &[u8]) -> (usize, &[u8]) {
    let mut input = FuzzInput(bytes);
    (usize::from(input.u16()), input.rest())
}

pub fn soup_server(bytes: &[u8]) {
    let (limit, stream) = limit_and_stream(bytes);
    walk(stream, limit, ServerPacket::parse, |packet, bytes| {
        let mut again = vec![0xa5; bytes.len()];
        let (length, payload) = match *packet {
            ServerPacket::Debug(text) => (soup::write_debug(&mut again, text), text.to_vec()),
            ServerPacket::Sequenced(message) => {
                assert_eq!(soup::sequenced_header(message.len()).as_ref(), bytes.first_chunk());
                (soup::write_sequenced(&mut again, message), message.to_vec())
            }
            ServerPacket::LoginAccepted { feed_session, sequence } => {
                check_feed_session(feed_session);
                let payload = format!("{feed_session:>10}{sequence:>20}").into_bytes();
                (soup::write_login_accepted(&mut again, feed_session, sequence), payload)
            }
            ServerPacket::LoginRejected(reason) => (soup::write_login_rejected(&mut again, reason), vec![reason as u8]),
            ServerPacket::Heartbeat => (soup::write_server_heartbeat(&mut again), vec![]),
            ServerPacket::EndOfSession => (soup::write_end_of_session(&mut again), vec![]),
        };
        assert_eq!(length, Some(bytes.len()), "there is room for as much as was read");
        assert_eq!(again, [&bytes[..soup::HEADER_LENGTH], &payload].concat());
        // The fields of a login may be padded otherwise than we write them.
        assert!(again == bytes || matches!(packet, ServerPacket::LoginAccepted { .. }));
        assert_eq!(ServerPacket::parse(&again, limit), Ok(Some((*packet, bytes.len()))));
    });
}

pub fn soup_client(bytes: &[u8]) {
    let (limit, stream) = limit_and_stream(bytes);
    walk(stream, limit, ClientPacket::parse, |packet, bytes| {
        let mut again = vec![0xa5; bytes.len()];
        let (length, payload) = match packet {
            ClientPacket::Debug(text) => (soup::write_debug(&mut again, text), text.to_vec()),
            ClientPacket::Unsequenced(message) => {
                assert_eq!(soup::unsequenced_header(message.len()).as_ref(), bytes.first_chunk());
                (soup::write_unsequenced(&mut again, message), message.to_vec())
            }
            ClientPacket::Login(login) => {
                check_feed_session(login.feed_session);
                check_field(&login.username);
                check_field(&login.password);
                let credentials = format!("{:<6}{:<10}", login.username.as_str(), login.password.as_str());
                let wanted = format!("{:>10}{:>20}", login.feed_session, login.sequence);
                (soup::write_login(&mut again, login), (credentials + &wanted).into_bytes())
            }
            ClientPacket::Heartbeat => (soup::write_client_heartbeat(&mut again), vec![]),
            ClientPacket::Logout => (soup::write_logout(&mut again), vec![]),
        };
        assert_eq!(length, Some(bytes.len()), "there is room for as much as was read");
        assert_eq!(again, [&bytes[..soup::HEADER_LENGTH], &payload].concat());
        assert!(again == bytes || matches!(packet, ClientPacket::Login(_)));
        assert_eq!(ClientPacket::parse(&again, limit), Ok(Some((*packet, bytes.len()))));
    });
}

fn check_field<const N: usize>(field: &Field<N>) {
    assert_eq!(Field::new(field.as_str()), Ok(*field));
    assert_eq!(Field::from_bytes(&field.bytes()), Some(*field));
    assert!(field.matches(field));
    assert_eq!(format!("{field:?}"), "Field(hidden)");
}

type Parsed<T> = Result<Option<(T, usize)>, SoupError>;

/// Each packet must parse the same with and without the bytes after it, and not at all from any part of it.
fn walk<'a, T: PartialEq + std::fmt::Debug>(
    mut stream: &'a [u8],
    limit: usize,
    parse: fn(&'a [u8], usize) -> Parsed<T>,
    check: impl Fn(&T, &'a [u8]),
) {
    loop {
        let peeked = soup::peek(stream, limit);
        let (packet, length) = match parse(stream, limit) {
            Ok(Some(found)) => found,
            Ok(None) => return assert_eq!(peeked, Ok(None)),
            Err(error) => {
                assert_says_something(&error);
                return assert!(peeked.is_ok() || peeked == Err(error));
            }
        };
        assert_eq!(peeked, Ok(Some(length)));
        assert!((soup::HEADER_LENGTH..=limit.min(stream.len())).contains(&length));
        let (bytes, rest) = stream.split_at(length);
        for part in 0..length {
            assert_eq!(parse(&bytes[..part], limit), Ok(None), "{part} of {length} bytes");
        }
        check(&packet, bytes);
        assert_eq!(parse(bytes, limit), Ok(Some((packet, length))));
        stream = rest;
    }
}
