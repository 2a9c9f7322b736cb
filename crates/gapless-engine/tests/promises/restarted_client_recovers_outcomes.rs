//! A killed client with its saved session learns the outcome of each sent command, and may resend each under its
//! number. Queries append no frames.

use crate::replicas::{Cluster, PATIENCE};
use gapless_client::polled::{ClientOptions, MessageType, Outcome, OwnedReply, SavedSession};
use gapless_client::session_key::CommandNumber;
use gapless_client::{ClientError, Incoming, PolledClient, SessionKey};
use gapless_engine::{Context, Handlers, OUTPUT_LENGTH_MAX, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use gapless_testkit::ports::free_address;
use gapless_transport::token::random_token;
use gapless_wire::control::RefusalCode;
use std::path::Path;
use std::time::{Duration, Instant};

const ADD: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const REFUSE: MessageType = MessageType { schema: 1 << 16 | 2, encoding: Encoding::Opaque };
const SHOUT: MessageType = MessageType { schema: 1 << 16 | 3, encoding: Encoding::Opaque };
/// As many as one acknowledgement covers.
const TELL: MessageType = MessageType { schema: 1 << 16 | 4, encoding: Encoding::Opaque };
const NOTICES: u64 = 64;
const WINDOW: u32 = 8;

#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn add(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        self.0 += payload.len() as u64;
        context.reply_with(ADD, &self.0.to_le_bytes())
    }
}

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ADD.schema, Self::add);
        handlers.on_bytes(REFUSE.schema, |_: &mut Self, _: &[u8], _: &mut Context<'_>| Err(Reject::new(42, "no")));
        handlers.on_bytes(SHOUT.schema, |it: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            it.0 += payload.len() as u64;
            context.reply_with(ADD, &vec![0; OUTPUT_LENGTH_MAX + 1])
        });
        handlers.on_bytes(TELL.schema, |it: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            for _ in 0..NOTICES {
                context.notify_bytes(context.session(), TELL.schema, Encoding::Opaque, 1, |_| Ok::<_, String>(1))?;
            }
            it.add(payload, context)
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "eight bytes are expected")?);
        Ok(())
    }
}

fn send(client: &mut PolledClient, key: SessionKey, message: MessageType, length: usize) -> u64 {
    client.send(key, message, length, |_| Ok(length)).unwrap()
}

fn outcome(client: &mut PolledClient, key: SessionKey, number: u64) -> Outcome {
    client.outcome(key, number, PATIENCE).unwrap()
}

#[track_caller]
fn sum(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Done(OwnedReply { payload, .. }) => u64::from_le_bytes(payload.as_slice().try_into().unwrap()),
        other => panic!("{other:?}"),
    }
}

fn take_notices(client: &mut PolledClient, key: SessionKey, count: u64) {
    let (mut notices, deadline) = (0, Instant::now() + PATIENCE);
    while notices < count || client.in_flight(key) > 0 {
        assert!(Instant::now() < deadline, "{notices} of {count} notices have come");
        client.poll(64, |incoming| notices += u64::from(matches!(incoming, Incoming::Notice { .. }))).unwrap();
        client.wait(Duration::from_millis(1)).unwrap();
    }
    assert_eq!(notices, count);
}

/// One command of each kind; the last number is 9. Exits without taking the replies.
fn send_and_exit(mut client: PolledClient) -> SavedSession {
    let key = client.resume_session(&SavedSession::new(random_token(), WINDOW)).unwrap();
    let saved = client.saved_session(key).unwrap();
    assert_eq!(send(&mut client, key, ADD, 5), 1);
    assert_eq!(send(&mut client, key, REFUSE, 1), 2);
    assert_eq!(send(&mut client, key, SHOUT, 7), 3);
    assert_eq!(client.number_for(key, 10_000).map(|number| number.session_seq), Some(6));
    assert_eq!(send(&mut client, key, ADD, 10_000), 6, "of three frames");
    assert_eq!(send(&mut client, key, TELL, 1), 7);
    take_notices(&mut client, key, NOTICES);
    assert_eq!(send(&mut client, key, ADD, 3), 9);
    assert_eq!(sum(&outcome(&mut client, key, 9)), 10_016);
    SavedSession::from_bytes(&saved.to_bytes()).unwrap()
}

fn check_outcomes(client: &mut PolledClient, saved: &SavedSession) -> SessionKey {
    let key = client.resume_session(saved).unwrap();
    assert_eq!(client.next_session_seq(key), Some(10));
    for _ in 0..2 {
        assert_eq!(sum(&outcome(client, key, 1)), 5);
        let refused = Outcome::Refused { code: RefusalCode::Rejected, detail: 42, reason: "no".to_owned() };
        assert_eq!(outcome(client, key, 2), refused);
        let shouted = outcome(client, key, 3);
        let length = (OUTPUT_LENGTH_MAX + 1) as u64;
        assert!(matches!(shouted, Outcome::ReplyTooLong { length_bytes, .. } if length_bytes == length), "{shouted:?}");
        for frame in [4, 5] {
            assert_eq!(outcome(client, key, frame), Outcome::NoCommand { part_of: Some(6) });
        }
        assert_eq!(sum(&outcome(client, key, 6)), 10_012);
        assert_eq!(sum(&outcome(client, key, 7)), 10_013);
        assert_eq!(outcome(client, key, 8), Outcome::NoCommand { part_of: None });
        assert_eq!(sum(&outcome(client, key, 9)), 10_016);
        for never in [10, 17, u64::MAX] {
            assert_eq!(outcome(client, key, never), Outcome::NotArrived { next_session_seq: 10 });
        }
    }
    key
}

fn numbered(client: &PolledClient, key: SessionKey, session_seq: u64) -> CommandNumber {
    CommandNumber { session: client.session_id(key).unwrap(), session_seq }
}

fn check_replaced_replies(client: &mut PolledClient, key: SessionKey) {
    for (number, total) in (10..13).zip(10_017..) {
        client.send_as(key, numbered(client, key, number), ADD, &[1]).unwrap();
        assert_eq!(sum(&outcome(client, key, number)), total);
    }
    // 3, 6, 7, 8, 9, 10, 11 and 12 are kept.
    for gone in [1, 2] {
        assert_eq!(outcome(client, key, gone), Outcome::NoLongerKept { first_kept: 3 });
    }
    assert!(matches!(outcome(client, key, 3), Outcome::ReplyTooLong { .. }));
    assert_eq!(outcome(client, key, 5), Outcome::NoCommand { part_of: Some(6) });
    client.repeat(key, 6).unwrap();
    let (mut came, deadline) = (None, Instant::now() + PATIENCE);
    while came.is_none() {
        assert!(Instant::now() < deadline, "the repeated command has no reply");
        let take = |incoming: Incoming<'_>| {
            if let Incoming::Reply { reply, first, .. } = incoming {
                assert!(!first);
                came = Some((reply.session_seq, reply.payload.to_vec()));
            }
        };
        client.poll(1, take).unwrap();
    }
    assert_eq!(came, Some((6, 10_012u64.to_le_bytes().to_vec())));
    let never = client.repeat(key, 13);
    assert!(matches!(never, Err(ClientError::NotSent { session_seq: 13, next_session_seq: 13, .. })), "{never:?}");
}

fn check_resending(connect: &mut dyn FnMut() -> PolledClient) {
    let mut client = connect();
    let key = client.resume_session(&SavedSession::new(random_token(), WINDOW)).unwrap();
    let saved = client.saved_session(key).unwrap();
    let before = sum(&{
        assert_eq!(send(&mut client, key, ADD, 0), 1);
        outcome(&mut client, key, 1)
    });
    let long = vec![0; 10_000];
    let notes: [(u64, &[u8]); 5] = [(2, &[0; 2]), (5, &long), (6, &[0; 3]), (9, &long), (12, &[0; 4])];
    // Two of them are sent before the kill. The acknowledgement between the last two never arrived.
    assert_eq!(send(&mut client, key, ADD, 2), 2);
    assert_eq!(send(&mut client, key, ADD, 10_000), 5);
    drop(client);
    let mut replies = Vec::new();
    for _ in 0..3 {
        let mut client = connect();
        let key = client.resume_session(&saved).unwrap();
        let mut came = Vec::new();
        for (number, payload) in notes {
            client.send_as(key, CommandNumber { session: saved.session, session_seq: number }, ADD, payload).unwrap();
            came.push(sum(&outcome(&mut client, key, number)) - before);
        }
        for left_out in [10, 11] {
            assert_eq!(outcome(&mut client, key, left_out), Outcome::NoCommand { part_of: None });
        }
        assert_eq!(client.next_session_seq(key), Some(13));
        replies.push(came);
        let far = client.send_as(key, numbered(&client, key, 12 + 2 + u64::from(WINDOW)), ADD, &[]);
        assert!(matches!(far, Err(ClientError::Option { option: "session_seq", .. })), "{far:?}");
        let strange = CommandNumber { session: saved.session + 1, session_seq: 13 };
        let refused = client.send_as(key, strange, ADD, &[]);
        assert!(matches!(refused, Err(ClientError::OtherSession { number, .. }) if number == strange), "{refused:?}");
    }
    assert_eq!(
        replies,
        [[2, 10_002, 10_005, 20_005, 20_009]; 3],
        "each command had its effect once, and the same reply"
    );
}

fn options() -> ClientOptions {
    ClientOptions { timeout: PATIENCE, ..ClientOptions::default() }
}

fn host(directory: &Path) -> ServiceHost {
    let options = ServiceHostOptions { frame_length_max: 4096, ..ServiceHostOptions::in_directory(directory) };
    ServiceHost::start(Sum::default(), options).unwrap()
}

fn connect(directory: &Path) -> PolledClient {
    PolledClient::connect(directory.join("node.socket"), options()).unwrap()
}

#[test]
fn outcomes_in_process() {
    let host = ServiceHost::start(
        Sum::default(),
        ServiceHostOptions { frame_length_max: 4096, ..ServiceHostOptions::in_memory() },
    )
    .unwrap();
    let saved = send_and_exit(host.connect(options()).unwrap());
    let mut client = host.connect(options()).unwrap();
    client.resume_session(&saved).unwrap();
    let (released, repeated) = (host.released_sequence(), host.repeated_count());
    let key = check_outcomes(&mut client, &saved);
    assert!(host.repeated_count() > repeated);
    assert_eq!(host.released_sequence(), released, "queries append no frames");
    check_replaced_replies(&mut client, key);
    check_resending(&mut || host.connect(options()).unwrap());
}

#[test]
fn outcomes_after_restart() {
    let directory = tempfile::tempdir().unwrap();
    let first = host(directory.path());
    let saved = send_and_exit(connect(directory.path()));
    check_outcomes(&mut connect(directory.path()), &saved);
    first.stop().unwrap();
    let second = host(directory.path());
    let mut client = connect(directory.path());
    let key = check_outcomes(&mut client, &saved);
    check_replaced_replies(&mut client, key);
    drop(second);
    let place = directory.path().to_owned();
    let back = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        host(&place)
    });
    assert_eq!(sum(&outcome(&mut client, key, 6)), 10_012);
    let _third = back.join().unwrap();
    check_resending(&mut || connect(directory.path()));
}

#[test]
fn outcomes_after_leader_change() {
    let mut cluster = Cluster::new(3, "");
    let ports = [(); 3].map(|()| free_address());
    for (member, port) in (1..).zip(&ports) {
        let text = std::fs::read_to_string(cluster.file(member)).unwrap();
        let text = text.replace("[journal]", "frame_length_max = \"4 KiB\"\n[journal]");
        std::fs::write(cluster.file(member), format!("{text}[clients]\naddress = \"{port}\"\n")).unwrap();
        cluster.start(member, Sum::default()).unwrap();
    }
    let addresses: Vec<_> = ports.iter().map(|port| format!("tcp:{port}")).collect();
    let connect = || PolledClient::connect_any(&addresses, options()).unwrap();
    cluster.leader();
    let saved = send_and_exit(connect());
    let mut client = connect();
    let key = check_outcomes(&mut client, &saved);
    let leader = cluster.leader();
    cluster.members[leader - 1].take().unwrap().stop().unwrap();
    assert_eq!(sum(&outcome(&mut client, key, 6)), 10_012);
    let mut client = connect();
    let key = check_outcomes(&mut client, &saved);
    check_replaced_replies(&mut client, key);
    check_resending(&mut || connect());
    cluster.start(leader, Sum::default()).unwrap();
    cluster.ends_equal(&[1, 2, 3]);
}

#[test]
fn foreign_session_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let in_memory = || ServiceHostOptions {
        socket_path: Some(directory.path().join("node.socket")),
        ..ServiceHostOptions::in_memory()
    };
    let first = ServiceHost::start(Sum::default(), in_memory()).unwrap();
    let mut client = connect(directory.path());
    let key = client.resume_session(&SavedSession::new(7, WINDOW)).unwrap();
    let saved = client.saved_session(key).unwrap();
    send(&mut client, key, ADD, 1);
    outcome(&mut client, key, 1);
    drop(first);
    let _second = ServiceHost::start(Sum::default(), in_memory()).unwrap();
    // The token opens a session with the same identifier there.
    let mut other = connect(directory.path());
    let lost = other.resume_session(&saved);
    assert!(matches!(lost, Err(ClientError::OtherStream { .. })), "{lost:?}");
    let again = other.open_session(7, WINDOW).unwrap();
    assert_eq!(other.saved_session(again).unwrap().session, saved.session);
    assert_eq!(outcome(&mut other, again, 1), Outcome::NotArrived { next_session_seq: 1 });
    send(&mut other, again, ADD, 5);
    assert_eq!(sum(&outcome(&mut other, again, 1)), 5);
    let lost = client.outcome(key, 1, PATIENCE);
    assert!(matches!(lost, Err(ClientError::NoSuchSession(lost)) if lost == key), "{lost:?}");
}

#[test]
fn restored_old_copy_is_found() {
    let (directory, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = directory.path().join("data");
    let run = |saved: &SavedSession| {
        let host = host(&place);
        let mut client = connect(&place);
        let resumed = client.resume_session(saved).map(|key| {
            send(&mut client, key, ADD, 1);
            let number = client.next_session_seq(key).unwrap() - 1;
            outcome(&mut client, key, number);
            client.saved_session(key).unwrap()
        });
        host.stop().unwrap();
        resumed
    };
    let first = run(&SavedSession::new(7, WINDOW)).unwrap();
    crate::damages::copy(&place, copy.path());
    let second = run(&first).unwrap();
    assert!(second.seen.sequence > first.seen.sequence);
    let third = run(&SavedSession::from_bytes(&second.to_bytes()).unwrap()).unwrap();
    crate::damages::copy(copy.path(), &place);
    match run(&third) {
        Err(ClientError::OtherHistory { seen, .. }) => assert_eq!(seen, third.seen),
        other => panic!("{other:?}"),
    }
    run(&first).unwrap();
}

#[test]
fn expired_session_stays_lost() {
    let directory = tempfile::tempdir().unwrap();
    let short = ServiceHostOptions {
        session_expiry: Duration::from_millis(50),
        ..ServiceHostOptions::in_directory(directory.path())
    };
    let _node = ServiceHost::start(Sum::default(), short).unwrap();
    let mut client = connect(directory.path());
    let key = client.resume_session(&SavedSession::new(7, WINDOW)).unwrap();
    let saved = client.saved_session(key).unwrap();
    send(&mut client, key, ADD, 1);
    drop(client);
    let deadline = Instant::now() + PATIENCE;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let mut client = connect(directory.path());
        match client.resume_session(&saved) {
            Ok(_) => assert!(Instant::now() < deadline, "the session never expires"),
            Err(ClientError::NoSuchSession(lost)) => {
                assert!(matches!(client.outcome(lost, 1, PATIENCE), Err(ClientError::NoSuchSession(_))));
                let again = client.open_session(saved.token, WINDOW).unwrap();
                assert_ne!(client.saved_session(again).unwrap().session, saved.session);
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
}
