//! A client that waits for one reply loses no other message; an undelivered notice stays unreceived, also for a later
//! client.

use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_engine::{Context, Handlers, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// Sends its session a notice of the requested length with a counter, and replies with the counter.
const TELL: u32 = 1 << 16 | 1;
const REFUSE: u32 = 1 << 16 | 2;

#[derive(Default)]
struct Herald {
    told: u64,
}

impl Service for Herald {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(TELL, |herald: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            let length = payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or("4 bytes are expected")?;
            herald.told += 1;
            let number = herald.told.to_le_bytes();
            context.notify_bytes(context.session(), TELL, Encoding::Opaque, length as usize, |buffer| {
                buffer.fill(0);
                buffer[..8].copy_from_slice(&number);
                Ok::<_, String>(length as usize)
            })?;
            context.reply_with(message(TELL), &number)
        });
        handlers.on_bytes(REFUSE, |_: &mut Self, _: &[u8], _: &mut Context<'_>| Err("not today".into()));
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.told.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.told = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
        Ok(())
    }
}

fn message(schema: u32) -> MessageType {
    MessageType { schema, encoding: Encoding::Opaque }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().unwrap())
}

fn tell(client: &mut PolledClient, session: SessionKey, length: u32) -> u64 {
    number(&client.call(session, message(TELL), &length.to_le_bytes(), PATIENCE).unwrap().payload)
}

fn send(client: &mut PolledClient, session: SessionKey, schema: u32) -> u64 {
    let encode = |buffer: &mut [u8]| {
        buffer.copy_from_slice(&8u32.to_le_bytes());
        Ok(4)
    };
    client.send(session, message(schema), 4, encode).unwrap()
}

fn incoming(client: &mut PolledClient, count: usize) -> Vec<(SessionKey, String)> {
    let mut seen = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while seen.len() < count {
        assert!(Instant::now() < deadline, "{} of {count}: {seen:?}", seen.len());
        let take = |incoming: Incoming<'_>| match incoming {
            Incoming::Notice { session, notice } => seen.push((session, format!("notice {}", number(notice.payload)))),
            Incoming::Reply { session, reply, first } => {
                assert!(first);
                let answer = match reply.refusal {
                    Some(refusal) => refusal.text.to_owned(),
                    None => number(reply.payload).to_string(),
                };
                seen.push((session, format!("reply {}: {answer}", reply.session_seq)));
            }
            other => panic!("{other:?}"),
        };
        client.poll(3, take).unwrap();
        client.wait(Duration::from_millis(1)).unwrap();
    }
    seen
}

fn host(directory: &Path) -> ServiceHost {
    let options = ServiceHostOptions { frame_length_max: 4096, ..ServiceHostOptions::in_directory(directory) };
    ServiceHost::start(Herald::default(), options).unwrap()
}

fn connect(directory: &Path) -> PolledClient {
    PolledClient::connect(directory.join("node.socket"), ClientOptions::default()).unwrap()
}

#[test]
fn notices_wait_for_the_next_poll() {
    let directory = tempfile::tempdir().unwrap();
    let _node = host(directory.path());
    let mut client = connect(directory.path());
    let session = client.open_session(7, 1).unwrap();
    for told in 1..=500 {
        assert_eq!(tell(&mut client, session, if told % 10 == 0 { 10_000 } else { 8 }), told);
    }
    let expected: Vec<_> = (1..=500).map(|told| (session, format!("notice {told}"))).collect();
    assert_eq!(incoming(&mut client, 500), expected);
    // The reply to an acknowledgement may be among them.
    client.poll(usize::MAX, |incoming| panic!("{incoming:?}")).unwrap();
}

#[test]
fn undelivered_notices_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let _node = host(directory.path());
    let mut client = connect(directory.path());
    let session = client.open_session(7, 8).unwrap();
    for told in 1..=200 {
        assert_eq!(tell(&mut client, session, 8), told);
    }
    drop(client);
    let mut client = connect(directory.path());
    let session = client.open_session(7, 8).unwrap();
    let expected: Vec<_> = (1..=200).map(|told| (session, format!("notice {told}"))).collect();
    assert_eq!(incoming(&mut client, 200), expected);
}

#[test]
fn other_replies_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let _node = host(directory.path());
    let mut client = connect(directory.path());
    let (mine, other) = (client.open_session(7, 8).unwrap(), client.open_session(8, 8).unwrap());
    let first = send(&mut client, other, TELL);
    let second = send(&mut client, mine, TELL);
    let refused = send(&mut client, other, REFUSE);
    assert_eq!(tell(&mut client, mine, 8), 3);
    let refusal = client.call(mine, message(REFUSE), &[], PATIENCE).unwrap_err();
    assert!(matches!(refusal, ClientError::Refused { ref reason, .. } if reason == "not today"), "{refusal}");
    assert_eq!((client.in_flight(mine), client.in_flight(other)), (0, 0));
    let of = |wanted: SessionKey, seen: &[(SessionKey, String)]| -> Vec<String> {
        seen.iter().filter(|(session, _)| *session == wanted).map(|(_, what)| what.clone()).collect()
    };
    let seen = incoming(&mut client, 6);
    let of_mine = of(mine, &seen);
    assert_eq!(of_mine.len(), 3, "{seen:?}");
    assert!(of_mine.contains(&format!("reply {second}: 2")), "{seen:?}");
    let notices: Vec<&String> = of_mine.iter().filter(|what| what.starts_with("notice")).collect();
    assert_eq!(notices, ["notice 2", "notice 3"]);
    let of_other = of(other, &seen);
    assert!(of_other.contains(&format!("reply {first}: 1")), "{seen:?}");
    assert!(of_other.contains(&format!("reply {refused}: not today")), "{seen:?}");
    assert!(of_other.contains(&"notice 1".to_owned()), "{seen:?}");
}

#[test]
fn call_waits_for_room_in_the_window() {
    let host = ServiceHost::start(Herald::default(), ServiceHostOptions::in_memory()).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(7, 1).unwrap();
    let sent = send(&mut client, session, TELL);
    assert_eq!(tell(&mut client, session, 8), 2);
    let seen = incoming(&mut client, 3);
    assert!(seen.contains(&(session, format!("reply {sent}: 1"))), "{seen:?}");
}

#[test]
fn restart_delivers_each_notice_once() {
    let directory = tempfile::tempdir().unwrap();
    let first = host(directory.path());
    let mut client = connect(directory.path());
    let session = client.open_session(7, 8).unwrap();
    for told in 1..=100 {
        assert_eq!(tell(&mut client, session, 8), told);
    }
    first.stop().unwrap();
    let _second = host(directory.path());
    for told in 101..=200 {
        assert_eq!(tell(&mut client, session, 8), told);
    }
    let expected: Vec<_> = (1..=200).map(|told| (session, format!("notice {told}"))).collect();
    assert_eq!(incoming(&mut client, 200), expected);
}

#[test]
fn closed_session_gets_no_messages() {
    let host = ServiceHost::start(Herald::default(), ServiceHostOptions::in_memory()).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let (closed, other) = (client.open_session(7, 8).unwrap(), client.open_session(8, 8).unwrap());
    tell(&mut client, closed, 8);
    tell(&mut client, other, 8);
    client.close_session(closed).unwrap();
    tell(&mut client, other, 8);
    let expected = [(other, "notice 2".to_owned()), (other, "notice 3".to_owned())];
    assert_eq!(incoming(&mut client, 2), expected);
}
