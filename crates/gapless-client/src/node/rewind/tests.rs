//! A server's packet is taken only in the right state.

use super::*;
use gapless_wire::soup::{write_login_accepted, write_sequenced};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

fn request(number: u64) -> RewindRequest {
    let feed_session = FeedSession::new("MONDAY").unwrap();
    RewindRequest { username: Field::BLANK, password: Field::BLANK, feed_session, number }
}

fn accepted(name: &str, sequence: u64) -> ServerPacket<'static> {
    ServerPacket::LoginAccepted { feed_session: FeedSession::new(name).unwrap(), sequence }
}

#[test]
fn numbering_starts_at_the_login() {
    let mut reading = SoupReader::new(&request(7));
    assert!(!reading.take(&ServerPacket::Debug(b"hello")).unwrap());
    assert!(!reading.take(&accepted("MONDAY", 7)).unwrap());
    assert!(reading.take(&ServerPacket::Sequenced(b"seven")).unwrap());
    assert!(!reading.take(&ServerPacket::Heartbeat).unwrap());
    assert!(reading.take(&ServerPacket::Sequenced(b"eight")).unwrap());
    assert_eq!(reading.next_number, 9);
    assert!(!reading.take(&ServerPacket::EndOfSession).unwrap());
    assert_eq!(reading.state, RewindState::Ended);
}

#[test]
fn out_of_place_packet_ends_rewind() {
    for packet in [ServerPacket::Sequenced(b""), ServerPacket::Heartbeat, ServerPacket::EndOfSession] {
        let outcome = SoupReader::new(&request(1)).take(&packet);
        assert!(matches!(outcome, Err(RewindError::OutOfPlace(_))), "{packet:?}: {outcome:?}");
    }
    for packet in [accepted("TUESDAY", 1), accepted("MONDAY", 2)] {
        let outcome = SoupReader::new(&request(1)).take(&packet);
        assert!(matches!(outcome, Err(RewindError::Elsewhere { .. })), "{packet:?}: {outcome:?}");
    }
    let rejected = ServerPacket::LoginRejected(RejectReason::NotAuthorized);
    let outcome = SoupReader::new(&request(1)).take(&rejected);
    assert!(matches!(outcome, Err(RewindError::Rejected(RejectReason::NotAuthorized))));
    let mut reading = SoupReader::new(&request(1));
    reading.take(&accepted("MONDAY", 1)).unwrap();
    assert!(reading.take(&accepted("MONDAY", 1)).is_err() && reading.take(&rejected).is_err());
    reading.take(&ServerPacket::EndOfSession).unwrap();
    assert!(reading.take(&ServerPacket::Sequenced(b"late")).is_err());
}

#[test]
fn unread_messages_stay_at_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut rewind = Rewind::open(listener.local_addr().unwrap(), &request(1), 0).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    rewind.tick(0).unwrap();
    let mut login = [0; LOGIN_LENGTH];
    server.read_exact(&mut login).unwrap();
    let mut packet = vec![0; PACKET_LENGTH_MAX];
    let length = write_login_accepted(&mut packet, request(1).feed_session, 1).unwrap();
    server.write_all(&packet[..length]).unwrap();
    server.set_nonblocking(true).unwrap();
    let length = write_sequenced(&mut packet, &[7; 60_000]).unwrap();
    let mut sent = 0;
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut idle = 0;
    while idle < 100 {
        match server.write(&packet[..length]) {
            Ok(bytes) => (sent, idle) = (sent + bytes, 0),
            Err(_) => {
                idle += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        while rewind.receive(1).unwrap() {}
        assert!(sent < 64 << 20, "{sent} bytes are somewhere");
        assert!(Instant::now() < deadline);
    }
    assert!(rewind.advance().unwrap());
    assert_eq!((rewind.number(), rewind.message().len(), rewind.is_accepted()), (1, 60_000, true));
    assert!(rewind.advance().unwrap());
    assert_eq!(rewind.number(), 2);
    drop(server);
    let ended = loop {
        match rewind.advance().and_then(|any| if any { Ok(true) } else { rewind.receive(2) }) {
            Ok(_) => assert!(Instant::now() < deadline),
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, RewindError::HungUp | RewindError::Connection(_) | RewindError::Malformed(_)), "{ended}");
}
