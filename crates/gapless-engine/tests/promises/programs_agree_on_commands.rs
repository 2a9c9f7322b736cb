//! Members and replays with different programs: a typed command is handled by all or by none. The leader's program
//! decides, the stream records it, and a program that lacks a handled command stops.

use crate::replicas::{Cluster, PATIENCE, wait};
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{CallError, Client, ClientError, PolledClient, SessionKey, blocking};
use gapless_engine::fold::{NoSink, Policy};
use gapless_engine::recovery::replay_copy;
use gapless_engine::{Context, EngineError, Handlers, OnUnhandled, Service, ServiceHost, ServiceHostOptions};
use gapless_journal::JournalReader;
use gapless_message::{Message, NoRefusal, contract};
use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use gapless_wire::descriptor::UNHANDLED_FLAG;
use gapless_wire::{Fragment, Kind};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::path::Path;

/// Long enough for several frames.
const LONG: usize = 300_000;

/// Replied to by the length of all texts.
#[derive(Serialize, Deserialize, Message)]
#[message(version = 2, reply = u64)]
struct Put {
    text: String,
    #[serde(default)]
    #[message(since = 2)]
    copies: u32,
}

/// The command of the old program.
mod old {
    use super::*;

    #[derive(Serialize, Deserialize, Message)]
    #[message(reply = u64)]
    pub struct Put {
        pub text: String,
    }
}

/// Unknown to the old program.
#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Clear;

struct Old;
struct New;

trait Program: Send + Sized + 'static {
    fn handlers(handlers: &mut Handlers<Notes<Self>>);
}

impl Program for Old {
    fn handlers(handlers: &mut Handlers<Notes<Self>>) {
        handlers.command(|notes: &mut Notes<Self>, old::Put { text }, _: &mut Context<'_>| notes.put(&text, 1));
    }
}

impl Program for New {
    fn handlers(handlers: &mut Handlers<Notes<Self>>) {
        handlers
            .command(|notes: &mut Notes<Self>, Put { text, copies }, _: &mut Context<'_>| {
                notes.put(&text, copies.max(1))
            })
            .command(|notes: &mut Notes<Self>, _: Clear, _: &mut Context<'_>| -> Result<(), NoRefusal> {
                notes.length = 0;
                Ok(())
            });
    }
}

struct Notes<P> {
    length: u64,
    program: PhantomData<fn() -> P>,
}

impl<P> Default for Notes<P> {
    fn default() -> Self {
        Self { length: 0, program: PhantomData }
    }
}

impl<P> Notes<P> {
    fn put(&mut self, text: &str, copies: u32) -> Result<u64, NoRefusal> {
        self.length += text.len() as u64 * u64::from(copies);
        Ok(self.length)
    }
}

impl<P: Program> Service for Notes<P> {
    fn handlers(handlers: &mut Handlers<Self>) {
        P::handlers(handlers);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.length.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.length = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn start<P: Program>(options: ServiceHostOptions) -> (ServiceHost, PolledClient, SessionKey) {
    let host = ServiceHost::start(Notes::<P>::default(), options).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    (host, client, session)
}

/// A start replays all frames.
fn options(directory: &Path) -> ServiceHostOptions {
    let mut options = ServiceHostOptions::in_directory(directory);
    options.snapshot_on_stop = false;
    options.policy.on_other_outputs = gapless_engine::OnOtherOutputs::Stop;
    options
}

fn put(text: &str, copies: u32) -> Put {
    Put { text: text.to_owned(), copies }
}

fn code_of<T>(result: Result<T, ClientError>) -> RefusalCode {
    match result.map(drop).unwrap_err() {
        ClientError::Refused { code, .. } => code,
        ClientError::Mismatch { .. } => RefusalCode::Unhandled,
        other => panic!("{other}"),
    }
}

fn state_of<P: Program>(directory: &Path) -> (Vec<u8>, Vec<String>) {
    let replayed = replay_copy(directory, Notes::<P>::default(), Policy::default(), u64::MAX, &mut NoSink);
    let (fold, _) = replayed.unwrap();
    let sessions = fold.sessions().sorted().iter().map(|entry| format!("{entry:?}")).collect();
    (fold.state(), sessions)
}

/// Flags of the typed commands in a journal, with their fragments.
fn flagged(directory: &Path) -> Vec<(bool, Fragment)> {
    let reader = JournalReader::open(directory.join("journal")).unwrap();
    let mut replay = reader.replay(1).unwrap();
    let mut found = Vec::new();
    while let Some(frame) = replay.next_frame().unwrap() {
        if frame.kind() == Kind::Command {
            found.push((frame.flags() & UNHANDLED_FLAG != 0, frame.fragment()));
        }
    }
    found
}

#[test]
fn unhandled_command_stays_unhandled() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start::<Old>(options(directory.path()));
    assert_eq!(client.call_request(session, &old::Put { text: "one".to_owned() }, PATIENCE).unwrap(), Ok(3));
    assert_eq!(code_of(client.call_request(session, &put("two", 2), PATIENCE)), RefusalCode::Unhandled);
    let long = put(&"x".repeat(LONG), 1);
    assert_eq!(code_of(client.call_request(session, &long, PATIENCE)), RefusalCode::Unhandled);
    assert_eq!(code_of(client.call_request(session, &Clear, PATIENCE)), RefusalCode::Unhandled);
    host.stop().unwrap();
    let flags = flagged(directory.path());
    assert!(flags.len() > 4 && !flags[0].0 && flags[1..].iter().all(|(is_flagged, _)| *is_flagged), "{flags:?}");
    assert_eq!(state_of::<Old>(directory.path()), state_of::<New>(directory.path()));

    // The new program handles them from now on, and none of those before.
    let (host, mut client, session) = start::<New>(options(directory.path()));
    assert_eq!(host.recovered().frames_replayed, host.recovered().last_sequence);
    assert_eq!(client.call_request(session, &put("two", 2), PATIENCE).unwrap(), Ok(9));
    host.stop().unwrap();
    assert!(!flagged(directory.path()).last().unwrap().0);
}

#[test]
fn lost_command_stops_replay() {
    for (index, length) in [4, LONG].into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let (host, mut client, session) = start::<New>(options(directory.path()));
        assert_eq!(client.call_request(session, &put(&"x".repeat(length), 0), PATIENCE).unwrap(), Ok(length as u64));
        let last = client.call_request(session, &Clear, PATIENCE).unwrap();
        assert_eq!(last, Ok(()));
        host.stop().unwrap();
        let flags = flagged(directory.path());
        assert!(flags.iter().all(|(is_flagged, _)| !is_flagged), "{flags:?}");
        assert_eq!(flags.iter().any(|(_, fragment)| fragment.count > 1), index == 1, "{flags:?}");

        let error = ServiceHost::start(Notes::<Old>::default(), options(directory.path())).map(drop).unwrap_err();
        assert!(matches!(&error, EngineError::MissingMessage { message, .. } if message == "Put"), "{error}");
        let text = error.to_string();
        let contract = format!("contract {:08x}", contract::newest::<Put>());
        assert!(text.contains(&contract) && text.contains("start a program that has it"), "{text}");

        let (host, ..) = start::<New>(options(directory.path()));
        host.stop().unwrap();
        assert_eq!(state_of::<New>(directory.path()).0, 0_u64.to_le_bytes());
    }
}

/// Also if no handler has the name.
#[test]
fn lost_name_stops_replay() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start::<New>(options(directory.path()));
    assert_eq!(client.call_request(session, &Clear, PATIENCE).unwrap(), Ok(()));
    host.stop().unwrap();
    let error = ServiceHost::start(Notes::<Old>::default(), options(directory.path())).map(drop).unwrap_err();
    let key = format!("typed message {:#010x}", contract::name_key("Clear"));
    assert!(matches!(&error, EngineError::MissingMessage { message, .. } if *message == key), "{error}");
}

#[test]
fn malformed_commands_are_unhandled_alike() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start::<New>(options(directory.path()));
    let of_put = MessageType { schema: contract::name_key("Put"), encoding: Encoding::Postcard };
    let known = contract::newest::<Put>().to_le_bytes();
    for (payload, expected) in [
        (&[][..], RefusalCode::Malformed),
        (&known[..3], RefusalCode::Malformed),
        (&known, RefusalCode::Malformed),
        (b"!!!!!", RefusalCode::Unhandled),
    ] {
        assert_eq!(code_of(client.call(session, of_put, payload, PATIENCE)), expected, "{payload:?}");
    }
    host.stop().unwrap();
    let flags: Vec<bool> = flagged(directory.path()).iter().map(|(is_flagged, _)| *is_flagged).collect();
    assert_eq!(flags, [true, true, false, true]);
}

#[test]
fn unhandled_command_may_stop_all_programs() {
    let directory = tempfile::tempdir().unwrap();
    let strict = || {
        let mut options = options(directory.path());
        options.policy.on_unhandled = OnUnhandled::Stop;
        options
    };
    let (host, mut client, session) = start::<Old>(strict());
    client.send_request(session, &put("two", 2)).unwrap();
    wait("the end of the service", || host.failure());
    host.stop().unwrap_err();
    let error = ServiceHost::start(Notes::<New>::default(), strict()).map(drop).unwrap_err();
    assert!(matches!(error, EngineError::Unhandled { .. }), "{error}");
}

fn restart<P: Program>(cluster: &mut Cluster, member: usize) {
    cluster.members[member - 1].take().unwrap().stop().unwrap();
    cluster.start(member, Notes::<P>::default()).unwrap();
}

fn client_of(cluster: &Cluster) -> blocking::Client {
    let address: Vec<_> = cluster.sockets().iter().map(|socket| socket.display().to_string()).collect();
    Client::connect(address.join(",")).within(PATIENCE).blocking().unwrap()
}

#[test]
fn old_leader_decides_for_new_member() {
    let mut cluster = Cluster::new(3, "[service]\nhash_interval_frames = 2\n");
    (1..=3).for_each(|member| cluster.start(member, Notes::<Old>::default()).unwrap());
    let leader = cluster.leader();
    restart::<New>(&mut cluster, leader % 3 + 1);
    let client = client_of(&cluster);
    assert_eq!(client.call(old::Put { text: "one".to_owned() }).unwrap(), 3);
    if cluster.leader() == leader {
        let unhandled = client.call(put("two", 2));
        assert!(matches!(unhandled, Err(CallError::Mismatch { .. })), "{unhandled:?}");
    }
    for _ in 0..10 {
        client.call(old::Put { text: "one".to_owned() }).unwrap();
    }
    cluster.end_failed();
    assert!(cluster.failures.is_empty(), "{:?}", cluster.failures);
    // The client stays, or the close of its session would be one more frame.
    cluster.ends_equal(&[1, 2, 3]);
    drop(client);
}

#[test]
fn old_member_stops_behind_new_leader() {
    let mut cluster = Cluster::new(3, "[service]\nhash_interval_frames = 2\n");
    (1..=3).for_each(|member| cluster.start(member, Notes::<New>::default()).unwrap());
    let client = client_of(&cluster);
    assert_eq!(client.call(put("one", 1)).unwrap(), 3);
    let old = cluster.leader() % 3 + 1;
    // It recovers what it knows.
    cluster.members[old - 1].take().unwrap().stop().unwrap();
    let started = cluster.start(old, Notes::<Old>::default());
    let error = match started {
        Err(error) => error.to_string(),
        Ok(()) => {
            assert_eq!(client.call(put("two", 2)).unwrap(), 9);
            wait("its end", || {
                cluster.end_failed();
                cluster.failures.remove(&old)
            })
        }
    };
    assert!(error.contains("lacks a message that another program of the service handles, Put at sequence"), "{error}");
    cluster.start(old, Notes::<New>::default()).unwrap();
    assert_eq!(client.call(put("three", 1)).unwrap(), client.call(put("", 1)).unwrap());
    cluster.end_failed();
    assert!(cluster.failures.is_empty(), "{:?}", cluster.failures);
    // The client stays, or the close of its session would be one more frame.
    cluster.ends_equal(&[1, 2, 3]);
    drop(client);
}
