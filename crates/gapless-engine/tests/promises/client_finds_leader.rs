//! A client or node with the sockets of several members finds the leader, and its successor: one effect and one reply
//! per command.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::following_member::Follower;
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::stream_layout::StreamLayout;
use gapless_client::{ClientError, Incoming, PolledClient, SessionKey};
use gapless_engine::{Context, Handlers, Persistence, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_log::StreamIdentity;
use gapless_schema::Encoding;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::folder::copy;
use gapless_testkit::wait::until;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct NumberLog {
    numbers: Vec<u64>,
}

impl NumberLog {
    fn hear(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let number = payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or("8 bytes are expected")?;
        self.numbers.push(number);
        context.reply_with(TYPE, &(self.numbers.len() as u64).to_le_bytes())
    }
}

impl Service for NumberLog {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(TYPE.schema, Self::hear);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        self.numbers.iter().for_each(|number| state.extend_from_slice(&number.to_le_bytes()));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.numbers = state.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
        Ok(())
    }
}

fn host(directory: &Path) -> ServiceHost {
    let options = ServiceHostOptions {
        snapshot_on_stop: false,
        persistence: Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() },
        ..ServiceHostOptions::in_directory(directory)
    };
    ServiceHost::start(NumberLog::default(), options).unwrap()
}

fn send(client: &mut PolledClient, session: SessionKey, number: u64) -> u64 {
    let encode = |buffer: &mut [u8]| {
        buffer.copy_from_slice(&number.to_le_bytes());
        Ok(8)
    };
    client.send(session, TYPE, 8, encode).unwrap()
}

fn collect(client: &mut PolledClient, replies: &mut BTreeMap<u64, u64>) -> Result<usize, ClientError> {
    client.poll(1024, |incoming| match incoming {
        Incoming::Reply { reply, first, .. } => {
            assert!(first && reply.refusal.is_none(), "{reply:?}");
            let before = replies.insert(reply.session_seq, u64::from_le_bytes(reply.payload.try_into().unwrap()));
            assert_eq!(before, None, "command {} had its reply", reply.session_seq);
        }
        other => panic!("{other:?}"),
    })
}

#[test]
fn client_moves_to_the_next_leader() {
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str| root.path().join(name);
    let socket = |name: &str| StreamLayout::new(place(name)).node_socket();
    let names = ["a", "b", "c"];
    let mut leader = Some(host(&place("a")));
    let identity = leader.as_ref().unwrap().connect(ClientOptions::default()).unwrap().welcome().identity;
    let mut followers: BTreeMap<&str, Follower> = BTreeMap::new();
    followers.insert("b", Follower::start(&socket("b"), identity, Some(&socket("a").display().to_string())));
    followers.insert("c", Follower::start(&socket("c"), identity, None));

    let sockets: Vec<PathBuf> = ["b", "c", "a"].map(socket).to_vec();
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let mut client = PolledClient::connect_any(&sockets, options).unwrap();
    let session = client.open_session(9, 16).unwrap();
    assert_eq!(client.welcome().process_id, u64::from(std::process::id()));
    assert!(followers["b"].turned_away() > 0, "the client starts at a follower");

    let mut replies = BTreeMap::new();
    let mut last = 0;
    let begun = Instant::now();
    for (turn, next) in [(0, "b"), (1, "c"), (2, "")] {
        let (goal, mut is_replaced) = (last + 200, turn == 2);
        while replies.len() < goal as usize {
            assert!(begun.elapsed() < PATIENCE, "{} replies of {goal}", replies.len());
            while last < goal && client.can_send(session) {
                last += 1;
                assert_eq!(send(&mut client, session, last), last);
            }
            // The leader stops in the middle of the last commands; another continues from its journal.
            if last == goal && !is_replaced {
                is_replaced = true;
                leader.take().unwrap().stop().unwrap();
                let before = names[turn];
                followers.remove(next);
                copy(&place(before), &place(next));
                let _ = std::fs::remove_file(socket(next));
                leader = Some(host(&place(next)));
                let named = socket(next).display().to_string();
                followers.insert(before, Follower::start(&socket(before), identity, Some(&named)));
            }
            match collect(&mut client, &mut replies).and_then(|_| client.wait(Duration::from_millis(5))) {
                Err(ClientError::Disconnected { .. }) => client.reconnect().unwrap(),
                other => other.unwrap(),
            }
        }
    }
    let expected: BTreeMap<u64, u64> = (1..=600).map(|number| (number, number)).collect();
    assert_eq!(replies, expected, "each command had its effect once, in order");
    assert!(followers["a"].turned_away() > 0, "the old leader follows and redirects clients");
    assert_eq!(leader.as_ref().unwrap().handled_sequence(), 601, "and nothing else is in the stream");

    leader.take().unwrap().stop().unwrap();
    let before = Follower::start(&socket("c"), identity, None);
    let later = std::thread::spawn({
        let (from, to, left) = (place("c"), place("b"), followers.remove("b"));
        move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(left);
            std::fs::remove_dir_all(&to).unwrap();
            copy(&from, &to);
            let _ = std::fs::remove_file(StreamLayout::new(&to).node_socket());
            host(&to)
        }
    });
    let reply = client.call(session, TYPE, &601u64.to_le_bytes(), PATIENCE).unwrap();
    assert_eq!(reply.payload, 601u64.to_le_bytes());
    let leader = later.join().unwrap();
    assert!(before.turned_away() > 0);
    leader.stop().unwrap();
}

#[test]
fn other_streams_member_is_skipped() {
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str| root.path().join(name);
    let sockets: Vec<PathBuf> = ["a", "b"].map(|name| StreamLayout::new(place(name)).node_socket()).to_vec();
    let first = host(&place("a"));
    let options = ClientOptions { timeout: Duration::from_secs(2), ..ClientOptions::default() };
    let mut client = PolledClient::connect_any(&sockets, options).unwrap();
    let session = client.open_session(5, 4).unwrap();
    first.stop().unwrap();
    let other = host(&place("b"));
    let refused = client.call(session, TYPE, &[1; 8], Duration::from_secs(3)).unwrap_err();
    assert!(!matches!(refused, ClientError::Refused { .. }), "{refused}");
    assert_eq!(other.handled_sequence(), 0, "the foreign member gets no command");
    drop(other);
    let _ = std::fs::remove_file(&sockets[1]);
    let first = host(&place("a"));
    client.reconnect().unwrap();
    let mut replies = BTreeMap::new();
    let begun = Instant::now();
    while replies.is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        collect(&mut client, &mut replies).unwrap();
    }
    assert_eq!(replies, BTreeMap::from([(1, 1)]));
    first.stop().unwrap();
}

#[test]
fn node_moves_to_the_next_leader() {
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str| root.path().join(name);
    let socket = |name: &str| StreamLayout::new(place(name)).socket();
    let start = |name: &str| {
        let mut options = EventStreamOptions::in_directory(place(name));
        options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
        EventStream::start(&options).unwrap()
    };
    let first = start("a");
    let identity = first.identity();
    let follower = Follower::start(&socket("b"), identity, Some(&socket("a").display().to_string()));
    let link = SharedMemoryLink::any(&["b", "a"].map(place), SharedMemoryOptions::default());
    let mut node = StreamNode::new(link, StreamNodeOptions::with_token(3));
    let mut seen = Vec::new();
    let mut publish = |node: &mut StreamNode<SharedMemoryLink>, numbers: std::ops::Range<u8>| {
        let goal = usize::from(numbers.end);
        let mut numbers = numbers.peekable();
        let begun = Instant::now();
        while seen.len() < goal {
            assert!(begun.elapsed() < PATIENCE, "{} of {goal} came back", seen.len());
            while let Some(number) = numbers.peek() {
                match node.publish(TYPE, &[*number]) {
                    Ok(_) => _ = numbers.next(),
                    Err(ClientError::NotOpen | ClientError::WindowFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            let take = |event: NodeEvent<'_>| {
                if let NodeEvent::Message(message) = event {
                    seen.push(message.payload[0]);
                }
            };
            if node.poll(64, take).unwrap() == 0 {
                node.wait(Duration::from_millis(1)).unwrap();
            }
        }
    };
    publish(&mut node, 0..50);
    assert!(follower.turned_away() > 0, "the node starts at the follower");

    first.stop().unwrap();
    drop(follower);
    copy(&place("a"), &place("b"));
    let _ = std::fs::remove_file(socket("b"));
    let follower = Follower::start(&socket("a"), identity, None);
    let second = start("b");
    publish(&mut node, 50..100);
    assert_eq!(seen, (0..100).collect::<Vec<u8>>(), "each message comes once, in order");
    drop((node, follower));
    second.stop().unwrap();
}

#[test]
fn client_waits_for_its_only_member() {
    let root = tempfile::tempdir().unwrap();
    let socket = StreamLayout::new(root.path()).socket();
    let identity = StreamIdentity { stream_id: 4, incarnation: 2 };
    let member = Follower::start(&socket, identity, None);
    let link = SharedMemoryLink::new(root.path(), SharedMemoryOptions::default());
    let mut node = StreamNode::new(link, StreamNodeOptions::with_token(3));
    until("the node is turned away", || {
        let waited = node.wait_open(Duration::from_millis(100));
        assert!(matches!(waited, Err(ClientError::TimedOut { .. })), "{waited:?}");
        member.turned_away() > 0
    });
    let options = ClientOptions { timeout: Duration::from_secs(1), ..ClientOptions::default() };
    let mut client = PolledClient::connect(&socket, options.clone()).unwrap();
    let refused = client.open_session(8, 4).unwrap_err();
    assert!(matches!(refused, ClientError::NotLeader { .. } | ClientError::TimedOut { .. }), "{refused}");

    let opening = std::thread::spawn({
        let socket = socket.clone();
        move || {
            let mut client = PolledClient::connect(&socket, ClientOptions { timeout: PATIENCE, ..options }).unwrap();
            client.open_session(9, 4).map(|key| client.next_session_seq(key))
        }
    });
    let before = member.turned_away();
    let begun = Instant::now();
    while member.turned_away() < before + 3 {
        assert!(begun.elapsed() < PATIENCE, "the client does not retry");
        std::thread::sleep(Duration::from_millis(1));
    }
    member.lead();
    assert_eq!(opening.join().unwrap().unwrap(), Some(1));
    node.wait_open(PATIENCE).unwrap();
    node.publish(TYPE, b"at last").unwrap();
    let mut seen = 0;
    let is_back = |node: &StreamNode<SharedMemoryLink>| node.in_flight() == 0;
    let count = |event: NodeEvent<'_>| seen += u32::from(matches!(event, NodeEvent::Message(_)));
    node.poll_until(PATIENCE, "the message to come back", is_back, count).unwrap();
    assert_eq!(seen, 1);
}
