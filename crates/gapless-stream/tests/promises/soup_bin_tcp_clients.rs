//! Clients of SoupBinTCP 3.00, by hand from the specification, without any of our code.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_soup::{Client, PATIENCE, counter, login, reaches};
use gapless_agent::{Agent, AgentError, AgentThread, Clock, Counters, IdleStrategy, Now, ThreadSpec, Waker};
use gapless_client::ClientError;
use gapless_client::feed_sessions::{Feed, Feeds, SharedFeeds};
use gapless_client::node::{SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_client::replay_merge::ReplayMerge;
use gapless_client::stream_layout::StreamLayout;
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::network::TcpNetwork;
use gapless_stream::network::soup_server::{SoupServer, SoupServerCounters, SoupServerOptions, SoupSource};
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use gapless_testkit::wait::until;
use gapless_transport::credentials::Credentials;
use gapless_transport::link::RingSizes;
use gapless_wire::soup::Field;
use gapless_wire::{Encoding, FeedSession};
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TYPE: MessageType = MessageType { schema: 9 << 16 | 1, encoding: Encoding::Opaque };

fn options(directory: &TempDir) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(directory.path());
    options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
    options.window_bytes = 1 << 20;
    options.message_length_max = 64 << 10;
    options.frame_length_max = 1_376;
    options.feed_session = FeedSession::new("MONDAY").unwrap();
    let any_port = SocketAddr::from((own_loopback(), 0));
    let mut network = TcpNetwork::new(any_port, any_port);
    let (username, password) = (Field::new("reader").unwrap(), Field::new("swordfish").unwrap());
    network.sessions.users = vec![Credentials { username, password }];
    network.sessions.clients_max = 8;
    options.tcp = Some(network);
    options
}

struct World {
    stream: EventStream,
    node: StreamNode<SharedMemoryLink>,
    directory: TempDir,
}

impl World {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let stream = EventStream::start(&options(&directory)).unwrap();
        let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
        let mut node = StreamNode::new(link, StreamNodeOptions::default());
        node.wait_open(PATIENCE).unwrap();
        Self { stream, node, directory }
    }

    fn publish(&mut self, payloads: impl IntoIterator<Item = Vec<u8>>) {
        for payload in payloads {
            while let Err(ClientError::WindowFull { .. } | ClientError::KeptFull { .. }) =
                self.node.publish(TYPE, &payload)
            {
                self.node.poll(1024, |_| {}).unwrap();
            }
        }
        self.node.poll_until(PATIENCE, "all come back", |node| node.in_flight() == 0, |_| {}).unwrap();
    }

    fn begin_feed(&self, name: &str) {
        let before = self.stream.released_sequence();
        self.stream.ask(SequencerRequest::BeginFeed { name: FeedSession::new(name).unwrap() }).unwrap();
        let begun = Instant::now();
        while self.stream.released_sequence() < before + 2 {
            assert!(begun.elapsed() < PATIENCE, "{name} does not begin");
            std::thread::yield_now();
        }
    }

    fn client(&self) -> Client {
        Client::connect(&self.stream)
    }

    fn logged_in(&self, feed_session: &str, sequence: u64) -> Client {
        let mut client = self.client();
        client.send(&login("reader", "swordfish", feed_session, sequence));
        client
    }
}

fn payloads(count: u64, length: usize) -> Vec<Vec<u8>> {
    let payload = |number: u64| {
        let mut payload = vec![number as u8; length];
        payload[..8].copy_from_slice(&number.to_le_bytes());
        payload
    };
    (0..count).map(payload).collect()
}

#[test]
fn history_then_live_in_order() {
    let mut world = World::start();
    // More than the window: from the journal, then the window.
    let sent = payloads(5_000, 400);
    world.publish(sent.clone());
    let last = world.stream.released_sequence();
    let mut first = world.logged_in("", 1);
    first.accepted("MONDAY", 1);
    assert!(first.frames(1, last) == sent);
    let mut middle = world.logged_in("MONDAY", last - 9);
    middle.accepted("MONDAY", last - 9);
    assert_eq!(middle.frames(last - 9, last), sent[4_990..]);
    let mut newest = world.logged_in("MONDAY", 0);
    newest.accepted("MONDAY", last + 1);
    let mut next = world.logged_in("MONDAY", last + 1);
    next.accepted("MONDAY", last + 1);
    let more = payloads(20, 30);
    world.publish(more.clone());
    for client in [&mut first, &mut middle, &mut newest, &mut next] {
        assert_eq!(client.frames(last + 1, last + 20), more);
    }
    // Fields may be aligned to either side, and a login may arrive in pieces.
    let mut pieces = world.client();
    for byte in format!("\0\x2fLreaderSWORDFISH     MONDAY{:<20}", 1).bytes() {
        pieces.send(&[byte]);
    }
    pieces.accepted("MONDAY", 1);
    reaches(&world.stream, "rewind.clients", 5);
    first.send(&[0, 1, b'O']);
    while first.next().is_some() {}
    drop(middle);
    reaches(&world.stream, "rewind.clients", 3);
    assert_eq!((counter(&world.stream, "rewind.logins"), counter(&world.stream, "rewind.logins_refused")), (5, 0));
}

#[test]
fn damage_ends_only_its_client() {
    let mut world = World::start();
    world.publish(payloads(5_000, 400));
    let last = world.stream.released_sequence();
    let segment = StreamLayout::new(world.directory.path()).journal().join(format!("{:020}.segment", 1));
    let damaged = payloads(1_500, 400).pop().unwrap();
    let bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(400).position(|window| window == damaged).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    file.write_all_at(&[!damaged[100]], at as u64 + 100).unwrap();
    let mut at_it = world.logged_in("MONDAY", last - 3_500);
    let mut before_it = world.logged_in("MONDAY", 1);
    assert_eq!(at_it.next(), None);
    before_it.accepted("MONDAY", 1);
    while before_it.next().is_some() {}
    reaches(&world.stream, "rewind.clients", 0);
    let mut good = world.logged_in("MONDAY", last + 1);
    good.accepted("MONDAY", last + 1);
    let more = payloads(20, 30);
    world.publish(more.clone());
    assert_eq!(good.frames(last + 1, last + 20), more);
}

#[test]
fn bad_login_is_refused() {
    let mut world = World::start();
    world.publish(payloads(10, 8));
    let last = world.stream.released_sequence();
    let changed = |offset: usize, byte: u8| {
        let mut bytes = login("reader", "swordfish", "MONDAY", 1);
        bytes[offset] = byte;
        bytes
    };
    let refusals = [
        (login("reader", "trout", "", 1), b'A'),
        (login("writer", "swordfish", "", 1), b'A'),
        (login("", "", "", 0), b'A'),
        (login("reader", "swordfish", "SUNDAY", 1), b'S'),
        (login("reader", "swordfish", "MONDAY", last + 2), b'S'),
        (login("reader", "swordfish", "MONDAY", u64::MAX), b'S'),
        (changed(2 + 1, 0xff), b'A'),
        (changed(2 + 1 + 6, 0xff), b'A'),
        (changed(2 + 1 + 6 + 10, 0xff), b'S'),
        (changed(48, b'x'), b'S'),
        (changed(48, b' '), b'S'),
    ];
    for (bytes, reason) in &refusals {
        let mut client = world.client();
        client.send(bytes);
        client.rejected(*reason);
    }
    reaches(&world.stream, "rewind.logins_refused", refusals.len() as u64);
    reaches(&world.stream, "rewind.clients", 0);
    let mut clients: Vec<_> = (0..8).map(|_| world.logged_in("", 1)).collect();
    clients.iter_mut().for_each(|client| client.accepted("MONDAY", 1));
    assert_eq!(world.client().next(), None);
    reaches(&world.stream, "rewind.clients_refused", 1);
    clients.pop();
    reaches(&world.stream, "rewind.clients", 7);
    world.logged_in("", 1).accepted("MONDAY", 1);
}

#[test]
fn invalid_bytes_are_dropped() {
    let mut world = World::start();
    world.publish(payloads(10, 8));
    let good = login("reader", "swordfish", "", 1);
    let strangers: [&[u8]; 8] = [
        // The length alone is refused.
        &[0x40, 0x00, b'L'],
        &[0, 48, b'L'],
        &[0, 0],
        &[0, 1, b'S'],
        b"GET / HTTP/1.1\r\n\r\n",
        &[0, 1, b'R'],
        &[0, 46, b'L'],
        &[0, 2, b'U', 1],
    ];
    for (number, bytes) in strangers.iter().enumerate() {
        let mut client = world.client();
        client.send(bytes);
        assert_eq!(client.next(), None, "{} got an answer", bytes.escape_ascii());
        reaches(&world.stream, "rewind.malformed", number as u64 + 1);
    }
    let after_login: [&[u8]; 3] = [&good, &[0, 0, b'U', 1], &[0, 1, b'?']];
    for (number, bytes) in after_login.iter().enumerate() {
        let mut client = world.client();
        client.send(&good);
        client.accepted("MONDAY", 1);
        client.send(bytes);
        while client.next().is_some() {}
        reaches(&world.stream, "rewind.malformed", (strangers.len() + number) as u64 + 1);
    }
    let mut client = world.client();
    client.send(&good);
    client.accepted("MONDAY", 1);
    client.send(&[0, 1, b'R', 0, 6, b'+', b'h', b'e', b'l', b'l', b'o', 0, 1, b'R']);
    client.frames(1, world.stream.released_sequence());
    client.send(&[0, 2, b'U', 1]);
    for kind in *b"U+" {
        client.send(&[0xff, 0xff, kind]);
        client.send(&[b'R'; 65_534]);
    }
    client.send(&[0, 1, b'U', 0, 1, b'R']);
    reaches(&world.stream, "rewind.messages_ignored", 3);
    world.publish(payloads(1, 8));
    client.frame();
    reaches(&world.stream, "rewind.clients", 1);
    assert_eq!(counter(&world.stream, "rewind.malformed"), (strangers.len() + after_login.len()) as u64);
}

#[test]
fn sessions_count_from_one_and_end() {
    let mut world = World::start();
    let mut watching = world.logged_in("", 1);
    watching.accepted("MONDAY", 1);
    world.publish(payloads(10, 8));
    world.begin_feed("TUESDAY");
    world.publish(payloads(5, 16));
    let last = world.stream.released_sequence();
    let mut monday_frames = Vec::new();
    loop {
        match watching.next().expect("an end message precedes the close") {
            (b'S', frame) => monday_frames.push(frame),
            (b'Z', _) => break,
            (b'H', _) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(watching.next(), None);
    let tuesday_first = monday_frames.len() as u64 + 1;
    let mut late = world.logged_in("MONDAY", 1);
    late.accepted("MONDAY", 1);
    assert_eq!(late.frames(1, tuesday_first - 1), payloads(10, 8));
    assert_eq!((late.next(), late.next()), (Some((b'Z', Vec::new())), None));
    for number in [0, tuesday_first] {
        let mut client = world.logged_in("MONDAY", number);
        client.accepted("MONDAY", tuesday_first);
        assert_eq!((client.next(), client.next()), (Some((b'Z', Vec::new())), None));
    }
    world.logged_in("MONDAY", tuesday_first + 1).rejected(b'S');
    for name in ["", "TUESDAY"] {
        let mut client = world.logged_in(name, 1);
        client.accepted("TUESDAY", 1);
        assert_eq!(client.frames(tuesday_first, last), payloads(5, 16));
    }
}

/// A server without deadlines, so that only a wake-up ends its sleep.
struct WithoutDeadlines(SoupServer);

impl Agent for WithoutDeadlines {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.0.poll(now)
    }

    fn arm(&mut self) {
        self.0.arm();
    }

    fn disarm(&mut self) {
        self.0.disarm();
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        self.0.watch(descriptors);
    }
}

/// Serves the stream next to its own server, from a thread that parks at once and for ever.
fn sleeping_server(world: &World) -> (AgentThread, SocketAddr) {
    let rings = RingSizes { command_ring_bytes: 4096, reply_ring_bytes: 4096 };
    let news = world.stream.connect(rings).unwrap();
    let window = news.window.clone().unwrap();
    let monday = Feed { name: FeedSession::new("MONDAY").unwrap(), first_sequence: 1, last_sequence: None };
    let read = window.clone();
    let source = SoupSource {
        window,
        feeds: SharedFeeds::new(Feeds::restored(vec![monday])),
        make_reader: Box::new(move |sequence| ReplayMerge::new(read.clone(), None, sequence)),
        news,
        ends_here: false,
    };
    let network = options(&world.directory).tcp.unwrap();
    let counters = SoupServerCounters::add_to(&Counters::in_memory(64).unwrap()).unwrap();
    let server = SoupServer::bind(network.rewind, source, SoupServerOptions::new(network.sessions), counters).unwrap();
    let address = server.local_address();
    let idle = IdleStrategy::SpinYieldPark { spin_ns: 0, yield_ns: 0, park_ns_max: u64::MAX };
    let spec = ThreadSpec { idle, ..ThreadSpec::new("rewind") };
    let agents: Vec<Box<dyn Agent>> = vec![Box::new(WithoutDeadlines(server))];
    (AgentThread::spawn(spec, agents, Clock::system(), Waker::new().unwrap()).unwrap(), address)
}

#[test]
fn new_message_wakes_sleepers() {
    let mut world = World::start();
    let (thread, address) = sleeping_server(&world);
    for _ in 0..5 {
        let mut client = Client::connect_to(address);
        client.send(&login("reader", "swordfish", "", 0));
        client.accepted("MONDAY", world.stream.released_sequence() + 1);
        until("the server sleeps", || thread.waker().is_parked());
        // It is parked a moment before it sleeps.
        std::thread::sleep(Duration::from_millis(20));
        world.publish(payloads(1, 8));
        client.frame();
    }
}

const IS_ALONE: &str = "GAPLESS_TEST_IS_ALONE";

/// Whether this process runs only `test`, which measures a whole process; if not, runs it in a new instance of this
/// program.
#[track_caller]
fn is_alone(test: &str) -> bool {
    if std::env::var_os(IS_ALONE).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = again.args(["--exact", test, "--nocapture"]).env(IS_ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    false
}

fn anonymous_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn slow_client_costs_no_other() {
    if !is_alone("soup_bin_tcp_clients::slow_client_costs_no_other") {
        return;
    }
    let mut world = World::start();
    let mut asleep: Vec<_> = (0..4).map(|_| world.logged_in("", 1)).collect();
    asleep.iter_mut().for_each(|client| client.accepted("MONDAY", 1));
    let mut awake = world.logged_in("", 1);
    awake.accepted("MONDAY", 1);
    let before = anonymous_memory_bytes();
    let (mut longest, mut read) = (Duration::ZERO, 0);
    // 30 MB, of which sockets and buffers hold a part.
    for _ in 0..300 {
        let begun = Instant::now();
        world.publish(payloads(100, 1_000));
        longest = longest.max(begun.elapsed());
        let released = world.stream.released_sequence();
        awake.frames(read + 1, released);
        read = released;
    }
    let grown = anonymous_memory_bytes().saturating_sub(before);
    assert!(grown < 48 << 20, "{grown} bytes more; four clients do not read 120 MB");
    assert!(longest < PATIENCE / 2, "100 messages took {longest:?}");
    for client in &mut asleep {
        assert_eq!(client.frames(1, read).len(), 30_000);
    }
    assert_eq!(counter(&world.stream, "rewind.malformed"), 0);
}

struct ManualStream {
    stream: EventStream,
    now_ns: u64,
    _directory: TempDir,
}

impl ManualStream {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let stream = EventStream::start_by_hand(&options(&directory)).unwrap();
        Self { stream, now_ns: 1_000_000_000, _directory: directory }
    }

    fn pass(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds.div_ceil(100) {
            self.now_ns += 100_000_000;
            self.stream.turn(Now { monotonic_ns: self.now_ns, epoch_ns: self.now_ns }).unwrap();
        }
    }

    /// In hardly any time; `None` at the end.
    fn next(&mut self, client: &mut Client) -> Option<(u8, Vec<u8>)> {
        client.socket.set_nonblocking(true).unwrap();
        let begun = Instant::now();
        loop {
            self.now_ns += 20_000;
            self.stream.turn(Now { monotonic_ns: self.now_ns, epoch_ns: self.now_ns }).unwrap();
            if let Some(packet) = client.take() {
                return Some(packet);
            }
            let mut bytes = [0; 4096];
            match client.socket.read(&mut bytes) {
                Ok(0) => return None,
                Ok(length) => client.received.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(_) => assert!(begun.elapsed() < PATIENCE, "nothing received"),
            }
        }
    }
}

#[test]
fn late_login_is_dropped() {
    let mut world = ManualStream::start();
    world.pass(100);
    let mut slow = Client::connect(&world.stream);
    let bytes = login("reader", "swordfish", "", 1);
    // Would take half a minute.
    for byte in &bytes[..8] {
        slow.send(&[*byte]);
        world.pass(600);
    }
    assert_eq!(counter(&world.stream, "rewind.clients_silent"), 0, "4.8 s are not too long");
    world.pass(600);
    assert_eq!(world.next(&mut slow), None);
    assert_eq!((counter(&world.stream, "rewind.clients_silent"), counter(&world.stream, "rewind.clients")), (1, 0));
}

#[test]
fn heartbeats_keep_both_sides_alive() {
    let mut world = ManualStream::start();
    world.pass(100);
    let mut client = Client::connect(&world.stream);
    client.send(&login("reader", "swordfish", "", 0));
    assert_eq!(world.next(&mut client).unwrap().0, b'A');
    let mut mute = Client::connect(&world.stream);
    mute.send(&login("reader", "swordfish", "", 0));
    assert_eq!(world.next(&mut mute).unwrap().0, b'A');
    for _ in 0..20 {
        world.pass(1_100);
        assert_eq!(world.next(&mut client), Some((b'H', Vec::new())), "one a second");
        client.send(&[0, 1, b'R']);
    }
    assert_eq!(counter(&world.stream, "rewind.clients"), 1, "the one that said nothing for 15 s is gone");
    assert_eq!(counter(&world.stream, "rewind.clients_silent"), 1);
    world.pass(14_000);
    assert_eq!(counter(&world.stream, "rewind.clients"), 1);
    world.pass(2_000);
    assert_eq!(counter(&world.stream, "rewind.clients"), 0);
}
