//! Frames resent into a full ring go first, in order, as there is room.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_agent::Waker;
use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_log::{RingReader, RingWriter, StreamIdentity};
use gapless_stream::Acceptor;
use gapless_stream::acceptor::{AcceptorLinks, StreamDescription};
use gapless_stream::messages::{EgressMessage, PublisherEvent};
use gapless_transport::Tier;
use gapless_transport::link::RingSizes;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Encoding, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use std::time::Duration;

const TOKEN: u128 = 7;
const SESSION: u64 = 1;
/// Four commands fill the ring.
const PAYLOAD_LENGTH: usize = 900;
const RINGS: RingSizes = RingSizes { command_ring_bytes: 4096, reply_ring_bytes: 4096 };

struct Service {
    reader: RingReader,
    writer: RingWriter,
    _acceptor: Acceptor,
}

impl Service {
    fn say(&mut self, header: &FrameHeader, payload: &[u8]) {
        let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        writer.finish(header, payload.len());
        self.writer.append(&bytes).unwrap();
        let _ = self.writer.publish();
    }

    fn refuse(&mut self, session_seq: u64, next: u64) {
        let mut payload = [0; 64];
        let refusal = Refusal { code: RefusalCode::Gap, detail: next, text: "earlier ones are missing" };
        let length = refusal.write_to(&mut payload);
        let (kind, flags, session) = (Kind::Reply, REFUSED_FLAG, SESSION);
        self.say(&FrameHeader { kind, flags, session, session_seq, ..FrameHeader::default() }, &payload[..length]);
    }

    fn reply(&mut self, session_seq: u64) {
        let (kind, session, sequence) = (Kind::Reply, SESSION, session_seq + 1);
        self.say(&FrameHeader { kind, session, session_seq, sequence, ..FrameHeader::default() }, b"done");
    }

    fn take(&mut self, count_max: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        while numbers.len() < count_max
            && let Some(length) = self.reader.next_length().unwrap()
        {
            let mut bytes = vec![0; aligned_length(length)];
            self.reader.copy(&mut bytes);
            self.reader.advance(length);
            numbers.push(Frame::parse(&bytes[..length]).unwrap().session_seq());
        }
        self.reader.release();
        numbers
    }
}

fn connected() -> (PolledClient, SessionKey, Service) {
    let (ingress, delivery) = (Mailbox::new(8), Mailbox::new(8));
    let links = AcceptorLinks {
        ingress: ingress.clone(),
        egress: delivery.clone(),
        ingress_waker: Waker::new().unwrap(),
        egress_waker: Waker::new().unwrap(),
    };
    let description = StreamDescription {
        identity: StreamIdentity { stream_id: 5, incarnation: 1 },
        frame_length_max: 1024,
        message_length_max: 2048,
        tier: Tier::Quorum,
        mtu: None,
    };
    let acceptor = Acceptor::start(None, description, links, None, None, None).unwrap();
    let mut client = acceptor.client(ClientOptions { link: RINGS, ..ClientOptions::default() }).unwrap();
    let Some(PublisherEvent::Opened { reader, .. }) = ingress.pop() else { panic!("no publisher connected") };
    let Some(EgressMessage::Opened { writer, .. }) = delivery.pop() else { panic!("no publisher connected") };
    let mut service = Service { reader, writer, _acceptor: acceptor };
    let key = client.begin_session(TOKEN, 8).unwrap();
    assert_eq!(service.take(9), [0]);
    let opened = SessionOpened { token: TOKEN, next_session_seq: 1, notices_acknowledged: 0 };
    let header = FrameHeader { kind: Kind::Reply, sequence: SESSION, session: SESSION, ..FrameHeader::default() };
    service.say(&header, &opened.to_bytes());
    assert_eq!(client.poll(9, |incoming| assert!(matches!(incoming, Incoming::Opened { .. }))).unwrap(), 1);
    (client, key, service)
}

fn send(client: &mut PolledClient, key: SessionKey) -> Result<u64, ClientError> {
    let message = MessageType { schema: 1, encoding: Encoding::Opaque };
    client.send(key, message, PAYLOAD_LENGTH, |_| Ok(PAYLOAD_LENGTH))
}

#[test]
fn resends_go_before_new_commands() {
    let (mut client, key, mut service) = connected();
    let sent: Vec<u64> = std::iter::from_fn(|| send(&mut client, key).ok()).collect();
    assert_eq!(sent, [1, 2, 3, 4], "so many fill the ring");
    service.refuse(1, 1);
    assert_eq!(client.poll(9, |incoming| panic!("{incoming:?}")).unwrap(), 1);
    assert!(!client.can_send(key), "new commands wait");
    assert!(matches!(send(&mut client, key), Err(ClientError::WindowFull { .. })));
    client.wait(Duration::from_secs(60)).unwrap();

    assert_eq!(service.take(2), [1, 2]);
    client.poll(9, |incoming| panic!("{incoming:?}")).unwrap();
    assert!(!client.can_send(key));
    assert_eq!(service.take(9), [3, 4, 1, 2], "as far as there was room");
    client.poll(9, |incoming| panic!("{incoming:?}")).unwrap();
    assert!(client.can_send(key));
    assert_eq!(send(&mut client, key).unwrap(), 5);
    assert_eq!(service.take(9), [3, 4, 5]);

    let mut replies = Vec::new();
    (1..=5).for_each(|number| service.reply(number));
    let take = |incoming: Incoming<'_>| match incoming {
        Incoming::Reply { reply, first: true, .. } => replies.push(reply.session_seq),
        other => panic!("{other:?}"),
    };
    assert_eq!(client.poll(9, take).unwrap(), 5);
    assert_eq!(replies, [1, 2, 3, 4, 5]);
}

#[test]
fn answered_commands_are_not_resent() {
    let (mut client, key, mut service) = connected();
    while send(&mut client, key).is_ok() {}
    service.refuse(3, 3);
    service.refuse(1, 1);
    client.poll(9, |incoming| panic!("{incoming:?}")).unwrap();
    (1..=3).for_each(|number| service.reply(number));
    assert_eq!(service.take(9), [1, 2, 3, 4]);
    let mut replies = 0;
    client.poll(9, |_| replies += 1).unwrap();
    assert_eq!((replies, service.take(9)), (3, vec![4]));
}
