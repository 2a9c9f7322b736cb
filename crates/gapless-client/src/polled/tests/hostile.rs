//! A service that breaks the protocol: errors, and no panic.

use super::*;

#[test]
fn impossible_numbers_are_refused() {
    for (next_session_seq, notices_acknowledged) in [(0, 0), (u64::MAX, 0), (1, u64::MAX)] {
        let (mut client, service) = connected();
        client.begin_session(7, 8).unwrap();
        service.lock().say(opened(7, next_session_seq, notices_acknowledged));
        assert!(matches!(client.poll(8, |_| {}), Err(ClientError::Protocol { .. })), "{next_session_seq}");
    }
}

#[test]
fn lost_session_is_not_revived() {
    let (mut client, service) = connected();
    let key = client.open_session(7, 8).unwrap();
    send(&mut client, key, 8).unwrap();
    for bytes in [refusal(RefusalCode::SessionUnknown, 107, 1, 0), opened(7, 2, 0), reply(107, 1, 3)] {
        service.lock().say(bytes);
    }
    assert_eq!(polled(&mut client), ["lost 0", "again 0 1"]);
    assert!(!client.can_send(key) && client.next_session_seq(key).is_none());
    assert!(matches!(send(&mut client, key, 8), Err(ClientError::NoSuchSession(_))));
}

#[test]
fn former_identifier_is_forgotten() {
    let (mut client, service) = connected();
    client.open_session(7, 8).unwrap();
    client.reconnect().unwrap();
    for id in 200..300 {
        let opened = SessionOpened { token: 7, next_session_seq: 1, notices_acknowledged: 0 };
        let header = FrameHeader { kind: Kind::Reply, session: id, ..FrameHeader::default() };
        service.lock().say(frame(&header, &opened.to_bytes()));
        polled(&mut client);
    }
    assert_eq!(client.by_id.len(), 1);
}

#[test]
fn frames_without_room_are_refused() {
    for frame_length_max in [0, 1, HEADER_LENGTH as u32] {
        let welcome = connected().0.link.welcome;
        let connect = move || {
            let (writer, _) = ring::create(&MemoryKind::Anonymous, RING_BYTES_MIN, StreamIdentity::default())?;
            let (_, reader) = ring::create(&MemoryKind::Anonymous, RING_BYTES_MIN, StreamIdentity::default())?;
            let welcome = Welcome { frame_length_max, ..welcome };
            Ok(PublisherLink::of_rings(welcome, writer, reader)?)
        };
        let mut client = PolledClient::connect_by(Arc::new(connect)).unwrap();
        let refused = client.reconnect_within(Duration::ZERO);
        assert!(matches!(refused, Err(ClientError::Protocol { .. })), "{refused:?}");
    }
}

/// Frames with correct checksums, and with fields that no service sends.
#[test]
fn no_frame_panics() {
    const NUMBERS: [u64; 5] = [0, 1, 2, 65, u64::MAX];
    let kinds = [Kind::Reply, Kind::Notice, Kind::Answer, Kind::Command, Kind::SessionClose];
    let mut payloads = vec![Vec::new(), vec![0; 7], vec![255; 40]];
    payloads.extend((0..16).map(|code| {
        let mut payload = [255; 32];
        payload[..8].copy_from_slice(&[code, 0, 0, 0, 0, 0, 0, 0]);
        payload[16..].fill(b'x');
        payload.to_vec()
    }));
    let opened =
        |next_session_seq, notices_acknowledged| SessionOpened { token: 7, next_session_seq, notices_acknowledged };
    payloads.extend(NUMBERS.map(|number| opened(number, number / 2).to_bytes().to_vec()));
    for kind in kinds {
        for payload in &payloads {
            let (mut client, service) = connected();
            let key = client.open_session(7, 8).unwrap();
            for (session, session_seq, sequence) in
                [0, 107, u64::MAX].into_iter().flat_map(|session| NUMBERS.map(|number| (session, number, number)))
            {
                for flags in [0, REFUSED_FLAG, 3] {
                    let timestamp_ns = sequence;
                    let header = FrameHeader {
                        kind,
                        flags,
                        session,
                        session_seq,
                        sequence,
                        timestamp_ns,
                        ..FrameHeader::default()
                    };
                    let _ = send(&mut client, key, 8);
                    service.lock().take();
                    service.lock().say(frame(&header, payload));
                    let _ = client.poll(8, |_| {});
                    let _ = client.repeat(key, session_seq);
                    client.flush();
                }
            }
        }
    }
}
