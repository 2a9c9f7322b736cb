//! A command is sequenced, made durable, handled and answered; a duplicate gets the same reply without a second effect,
//! also after a restart.

#![allow(clippy::unwrap_used, reason = "a test may fail here")]

use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use gapless_transport::Tier;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Adder {
    sum: u64,
}

const PATIENCE: Duration = Duration::from_secs(60);
const ADD: u32 = 1 << 16 | 1;

impl Adder {
    fn add(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let number = payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or("8 bytes are expected")?;
        if number == 0 {
            return Err("nothing to add".into());
        }
        self.sum += number;
        context.reply_with(message(), &self.sum.to_le_bytes())
    }
}

impl Service for Adder {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ADD, Self::add);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.sum.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.sum = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
        Ok(())
    }
}

fn message() -> MessageType {
    MessageType { schema: ADD, encoding: Encoding::Opaque }
}

fn add(client: &mut PolledClient, session: SessionKey, number: u64) -> u64 {
    client
        .send(session, message(), 8, |buffer| {
            buffer.copy_from_slice(&number.to_le_bytes());
            Ok(8)
        })
        .unwrap()
}

fn next_reply(client: &mut PolledClient) -> (u64, Result<u64, String>, bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut found = None;
    while found.is_none() {
        assert!(Instant::now() < deadline, "no reply within {PATIENCE:?}");
        client
            .poll(1, |incoming| {
                if let Incoming::Reply { reply, first, .. } = incoming {
                    let answer = match reply.refusal {
                        Some(refusal) => Err(refusal.text.to_owned()),
                        None => Ok(u64::from_le_bytes(reply.payload.try_into().unwrap())),
                    };
                    found = Some((reply.session_seq, answer, first));
                }
            })
            .unwrap();
        if found.is_none() {
            client.wait(Duration::from_millis(10)).unwrap();
        }
    }
    found.unwrap()
}

#[test]
fn duplicates_repeat_the_reply() {
    let host = ServiceHost::start(Adder::default(), ServiceHostOptions::in_memory()).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(7, 8).unwrap();
    let first = add(&mut client, session, 5);
    assert_eq!(next_reply(&mut client), (first, Ok(5), true));
    let second = add(&mut client, session, 6);
    assert_eq!(next_reply(&mut client), (second, Ok(11), true));
    client.repeat(session, first).unwrap();
    client.flush();
    assert_eq!(next_reply(&mut client), (first, Ok(5), false));
    let refused = add(&mut client, session, 0);
    assert_eq!(next_reply(&mut client), (refused, Err("nothing to add".to_owned()), true));
    let third = add(&mut client, session, 1);
    assert_eq!(next_reply(&mut client), (third, Ok(12), true));
    host.stop().unwrap();
}

#[test]
fn restart_continues_the_state() {
    for tier in [Tier::Journal, Tier::Sync] {
        for snapshot in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let options = || ServiceHostOptions {
                tier,
                snapshot_on_stop: snapshot,
                persistence: gapless_engine::Persistence { segment_length_bytes: 4 << 20, ..Default::default() },
                ..ServiceHostOptions::in_directory(directory.path())
            };
            let host = ServiceHost::start(Adder::default(), options()).unwrap();
            let path = host.socket_path().unwrap().to_owned();
            let mut client = PolledClient::connect(&path, ClientOptions::default()).unwrap();
            let session = client.open_session(9, 4).unwrap();
            let mut last = 0;
            for number in 1..=100 {
                last = add(&mut client, session, number);
                assert_eq!(next_reply(&mut client), (last, Ok(number * (number + 1) / 2), true));
            }
            host.stop().unwrap();

            let host = ServiceHost::start(Adder::default(), options()).unwrap();
            assert_eq!(host.recovered().last_sequence, 101, "100 commands and a session open");
            assert_eq!(host.recovered().snapshot_sequence > 0, snapshot);
            client.reconnect().unwrap();
            client.repeat(session, last).unwrap();
            client.flush();
            assert_eq!(next_reply(&mut client), (last, Ok(5050), false), "the original reply, after the restart");
            let next = add(&mut client, session, 1);
            assert_eq!(next_reply(&mut client), (next, Ok(5051), true));
            host.stop().unwrap();
        }
    }
}

fn options_in(directory: &std::path::Path) -> ServiceHostOptions {
    ServiceHostOptions {
        persistence: gapless_engine::Persistence { segment_length_bytes: 4 << 20, ..Default::default() },
        ..ServiceHostOptions::in_directory(directory)
    }
}

#[test]
fn recovery_starts_at_the_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let options = || ServiceHostOptions { snapshot_interval_frames: None, ..options_in(directory.path()) };
    let host = ServiceHost::start(Adder::default(), options()).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(5, 4).unwrap();
    for number in 1..=10 {
        add(&mut client, session, number);
        next_reply(&mut client).1.unwrap();
    }
    assert_eq!(host.snapshot().unwrap(), 11, "a session open and ten commands");
    assert_eq!(host.snapshot().unwrap(), 11, "no frame was applied since");
    add(&mut client, session, 11);
    next_reply(&mut client).1.unwrap();
    drop(client);
    host.stop().unwrap();

    let host = ServiceHost::start(Adder::default(), options()).unwrap();
    assert_eq!((host.recovered().snapshot_sequence, host.recovered().frames_replayed), (11, 1));
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(5, 4).unwrap();
    add(&mut client, session, 1);
    assert_eq!(next_reply(&mut client).1, Ok(67));
    host.stop().unwrap();

    let host = ServiceHost::start(Adder::default(), ServiceHostOptions::in_memory()).unwrap();
    assert!(host.snapshot().unwrap_err().to_string().contains("tier memory"));
}

#[test]
fn counters_file_ends_with_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let host = ServiceHost::start(Adder::default(), options_in(directory.path())).unwrap();
    let own = host.counters().add("adder.own").unwrap();
    own.set(3);
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(5, 4).unwrap();
    let first = add(&mut client, session, 1);
    next_reply(&mut client).1.unwrap();
    client.repeat(session, first).unwrap();
    client.flush();
    next_reply(&mut client).1.unwrap();
    let path = directory.path().join("counters");
    let reader = gapless_agent::CountersReader::open(&path).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let expected = [
        ("sequencer.last_sequence", 2),
        ("sequencer.frames_repeated", 1),
        ("sequencer.frames_refused", 0),
        ("sequencer.publishers", 1),
        ("sequencer.sessions", 1),
        ("journaler.last_sequence", 2),
        ("service.last_sequence", 2),
        ("service.dead_letters", 0),
        ("service.messages_waiting", 0),
        ("adder.own", 3),
    ];
    loop {
        let values = reader.read().unwrap();
        let value_of = |label| values.iter().find(|(found, _)| found == label).map(|(_, value)| *value);
        // The counters are stored after the replies have left.
        if expected.iter().all(|(label, value)| value_of(label) == Some(*value)) {
            break;
        }
        assert!(Instant::now() < deadline, "{values:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(host.repeated_count(), 1);
    host.stop().unwrap();
    assert!(!path.exists());
}

#[test]
fn reconnect_counts_no_refusal() {
    let directory = tempfile::tempdir().unwrap();
    let host = ServiceHost::start(Adder::default(), options_in(directory.path())).unwrap();
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let mut client = PolledClient::connect(directory.path().join("node.socket"), options).unwrap();
    let sessions: Vec<_> = (1..=8).map(|token| client.open_session(token, 4).unwrap()).collect();
    client.reconnect().unwrap();
    for session in sessions {
        client.call(session, message(), &1u64.to_le_bytes(), PATIENCE).unwrap();
    }
    let reader = gapless_agent::CountersReader::open(directory.path().join("counters")).unwrap();
    let refused = |(label, value)| (label == "sequencer.frames_refused").then_some(value);
    assert_eq!(reader.read().unwrap().into_iter().find_map(refused), Some(0));
    host.stop().unwrap();
}

#[test]
fn closed_token_is_reusable() {
    let directory = tempfile::tempdir().unwrap();
    let host = ServiceHost::start(Adder::default(), options_in(directory.path())).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(5, 4).unwrap();
    let id = client.session_id(session);
    add(&mut client, session, 1);
    let refused = client.close_session(session).unwrap_err();
    assert!(refused.to_string().contains("1 commands have no reply"), "{refused}");
    next_reply(&mut client).1.unwrap();
    client.close_session(session).unwrap();
    assert!(!client.can_send(session));
    assert!(client.close_session(session).is_err(), "it is closed");
    let again = client.open_session(5, 4).unwrap();
    assert!(client.session_id(again) > id, "another session");
    assert_eq!(client.next_session_seq(again), Some(1));
    add(&mut client, again, 2);
    assert_eq!(next_reply(&mut client).1, Ok(3), "the state is the service's, not the session's");
    drop(client);
    host.stop().unwrap();
    let host = ServiceHost::start(Adder::default(), options_in(directory.path())).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let found = client.open_session(5, 4).unwrap();
    assert_eq!(client.next_session_seq(found), Some(2));
    host.stop().unwrap();
}

#[test]
fn closed_session_gets_no_messages() {
    let directory = tempfile::tempdir().unwrap();
    let host = ServiceHost::start(Adder::default(), options_in(directory.path())).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let other = client.open_session(6, 4).unwrap();
    for round in 0..100 {
        let closed = client.open_session(1_000 + round, 4).unwrap();
        add(&mut client, closed, 1);
        next_reply(&mut client).1.unwrap();
        client.repeat(closed, 1).unwrap();
        client.close_session(closed).unwrap();
        let mut heard = Vec::new();
        let (begun, mut is_sent) = (Instant::now(), false);
        while heard.is_empty() && begun.elapsed() < PATIENCE {
            if !is_sent && begun.elapsed() > Duration::from_millis(2) {
                add(&mut client, other, 1);
                is_sent = true;
            }
            client
                .poll(16, |incoming| {
                    if let Incoming::Reply { session, .. } | Incoming::SessionLost { session } = incoming {
                        heard.push(session);
                    }
                })
                .unwrap();
        }
        assert_eq!(heard, [other]);
    }
    host.stop().unwrap();
}
