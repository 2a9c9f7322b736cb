//! Faults of a connection that another one is without.

use super::connection::Reconnection;
use super::*;
use crate::error::QueryError;
use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

/// A service that can be left and found again, driven by its own thread until it is dropped.
pub(super) struct Server {
    state: Arc<Mutex<State>>,
    pub sessions: Arc<Mutex<Sessions>>,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    ring_bytes: usize,
    identity: StreamIdentity,
    /// An attempt to connect panics.
    panics: bool,
    /// The last one is connected.
    connections: Vec<FakeService>,
}

impl State {
    fn disconnect(&mut self) {
        let last = self.connections.last_mut().unwrap();
        let closed = ring::create(&MemoryKind::Anonymous, 4_096, IDENTITY).unwrap().0;
        drop(std::mem::replace(&mut last.replies, closed));
        last.is_gone = true;
        wake_fd::signal(&last.wake);
    }
}

impl Server {
    pub fn start(ring_bytes: usize) -> Self {
        let state =
            Arc::new(Mutex::new(State { ring_bytes, identity: IDENTITY, panics: false, connections: Vec::new() }));
        let stops = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (state, stops) = (Arc::clone(&state), Arc::clone(&stops));
            move || {
                while !stops.load(Ordering::SeqCst) {
                    let has_taken = state.lock().unwrap().connections.last_mut().is_some_and(FakeService::take);
                    if !has_taken {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                }
            }
        });
        Self { state, sessions: Arc::default(), stops, thread: Some(thread) }
    }

    pub fn client(&self, sessions: usize) -> Client {
        Client::over(self.polled_client(), options(sessions)).unwrap()
    }

    fn polled_client(&self) -> PolledClient {
        let (state, of_service) = (Arc::clone(&self.state), Arc::clone(&self.sessions));
        let connect = move || {
            let panics = state.lock().unwrap().panics;
            assert!(!panics, "a bug");
            let mut state = state.lock().unwrap();
            let (link, service) = FakeService::link(state.ring_bytes, state.identity, &of_service);
            state.connections.push(service);
            Ok(link)
        };
        PolledClient::connect_by(Arc::new(connect)).unwrap()
    }

    /// Ends the connection, which the client has not noticed yet.
    pub fn disconnect(&self) {
        self.state.lock().unwrap().disconnect();
    }

    /// Goes on as another incarnation of its stream, whose sessions have the same identifiers.
    pub fn be_restored(&self) {
        let mut state = self.state.lock().unwrap();
        state.identity.incarnation += 1;
        let mut sessions = self.sessions.lock().unwrap();
        *sessions = Sessions { effects: std::mem::take(&mut sessions.effects), ..Sessions::default() };
        drop(sessions);
        state.disconnect();
    }

    pub fn with<T>(&self, work: impl FnOnce(&mut FakeService) -> T) -> T {
        work(self.state.lock().unwrap().connections.last_mut().unwrap())
    }

    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().connections.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            assert!(joined.is_ok() || std::thread::panicking());
        }
    }
}

fn call(client: &Client, has_helper: bool, length: usize) {
    let call = client.call(Bytes(vec![7; length]));
    assert_eq!(if has_helper { block_on(call) } else { call.wait() }, Ok(length as u64));
}

#[test]
fn protocol_error_reconnects() {
    for has_helper in [false, true] {
        let server = Server::start(1 << 16);
        let client = server.client(2);
        call(&client, has_helper, 1);
        server.with(|service| service.say(&FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() }, &[]));
        until("another connection", || {
            call(&client, has_helper, 2);
            server.connections() == 2
        });
        call(&client, has_helper, 3);
        assert_eq!(server.connections(), 2, "it reconnects once");
    }
}

#[test]
fn session_limit_is_waited_for() {
    for has_helper in [false, true] {
        let server = Server::start(1 << 16);
        server.sessions.lock().unwrap().refused = 3;
        let client = server.client(2);
        call(&client, has_helper, 1);
        call(&client, has_helper, 2);
        until("both sessions", || {
            call(&client, has_helper, 3);
            server.sessions.lock().unwrap().open.len() == 2
        });
        assert_eq!(server.connections(), 1);
    }
}

/// An open takes about a fortieth of the ring.
#[test]
fn sessions_reopen_as_room_allows() {
    const SESSIONS: usize = 200;
    for has_helper in [false, true] {
        let server = Server::start(4_096);
        let client = server.client(SESSIONS);
        let call_all = || (0..SESSIONS).for_each(|length| call(&client, has_helper, length));
        call_all();
        server.disconnect();
        call_all();
        assert_eq!(server.connections(), 2);
        assert_eq!(server.sessions.lock().unwrap().open.len(), SESSIONS, "no session is new");
    }
}

/// The service's sessions have expired while it was gone.
#[test]
fn idle_client_sends_nothing_in_vain() {
    for has_helper in [false, true] {
        let server = Server::start(1 << 16);
        let client = server.client(1);
        call(&client, has_helper, 1);
        // From here on the connection is checked before the next command.
        std::thread::sleep(Duration::from_millis(70));
        server.disconnect();
        server.sessions.lock().unwrap().open.clear();
        call(&client, has_helper, 2);
        assert_eq!(server.connections(), 2);
    }
}

/// Nothing would wake the watcher for the commands that wait.
#[test]
fn lost_session_is_replaced_by_the_same_pass() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    call(&client, false, 1);
    server.be_restored();
    let (outbox, mut wakers) = (&client.channel().outbox, Vec::new());
    let mut connection = client.channel().connection.lock().0;
    until("the loss", || {
        connection.pass(outbox, &mut wakers);
        connection.is_lost()
    });
    until("an attempt", || match connection.reconnect(Duration::from_secs(1), outbox, &mut wakers) {
        Reconnection::Attempt(attempt) => {
            connection.end_attempt(attempt.connect(), outbox, &mut wakers);
            true
        }
        _ => false,
    });
    connection.pass(outbox, &mut wakers);
    until("another session", || server.sessions.lock().unwrap().open.len() == 1);
    drop(connection);
    call(&client, false, 2);
}

/// Threads of this process.
pub(super) fn threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
    names.filter(|found| found.trim_end() == name).count()
}

#[test]
fn keeper_minds_an_idle_connection() {
    let server = Server::start(1 << 16);
    let mut channel = channel::Channel::new(server.polled_client(), options(1)).unwrap();
    channel.needs_heartbeats = true;
    let client = Client::of(Arc::new(channel));
    for round in 1..4 {
        call(&client, false, round);
        server.disconnect();
        until("another connection, without a call", || server.connections() == round + 1);
    }
    assert_eq!(threads(channel::KEEPER_NAME), 1);
    call(&client, true, 1);
    until("a helper instead", || threads(channel::KEEPER_NAME) == 0);
    server.disconnect();
    call(&client, true, 1);
}

#[test]
fn panic_of_the_helper_ends_the_client() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    call(&client, true, 1);
    let mut notices = client.notices();
    server.sessions.lock().unwrap().is_mute = true;
    let sent = client.start(Bytes(vec![7; 2]));
    server.state.lock().unwrap().panics = true;
    server.disconnect();
    assert_eq!(block_on(client.ended()), "its helper has panicked: a bug");
    assert!(matches!(block_on(sent), Err(CallError::Unknown { .. })));
    for has_helper in [false, true] {
        let late = client.call(Bytes(vec![7]));
        let late = if has_helper { block_on(late) } else { late.wait() };
        assert!(matches!(late, Err(CallError::NotSent { .. })), "{late:?}");
    }
    assert!(block_on(notices.next()).is_none());
}

#[test]
fn other_incarnation_resets_queries() {
    let server = Server::start(1 << 16);
    let client = server.client(1);
    call(&client, true, 1);
    let seen = client.seen_sequence();
    assert!(seen > 0);
    let mut context = Context::from_waker(Waker::noop());
    let (mut plain, mut ahead) = (pin!(client.query(Bytes(vec![]))), pin!(client.query(Bytes(vec![])).after(seen)));
    let dropped = Box::pin(client.query(Bytes(vec![])));
    for mut query in [plain.as_mut(), ahead.as_mut(), { dropped }.as_mut()] {
        assert!(query.as_mut().poll(&mut context).is_pending());
    }
    until("three queries", || server.with(|service| service.queries.len() == 3));
    assert_eq!(server.with(|service| service.queries.clone()), [seen, seen, seen]);
    server.state.lock().unwrap().identity.incarnation += 1;
    server.disconnect();
    let end = block_on(ahead).unwrap_err();
    assert!(matches!(&end, QueryError::Unavailable { reason } if reason.contains("former incarnation")), "{end}");
    until("a query", || server.with(|service| !service.queries.is_empty()));
    call(&client, true, 2);
    assert_eq!(server.with(|service| service.queries.clone()), [0], "the dropped one is not asked again");
}
