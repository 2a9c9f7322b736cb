//! A call takes at most its timeout, even if the service is away for longer; its error tells the outcome of the
//! command.

use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType, Outcome};
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_log::LogError;
use gapless_schema::Encoding;
use gapless_testkit::wait::until;
use gapless_transport::RingSizes;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const COUNT: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct Count(u64);

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(COUNT.schema, |it: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            it.0 += 1;
            context.reply_with(COUNT, &it.0.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn start(directory: &Path) -> ServiceHost {
    ServiceHost::start(Count::default(), ServiceHostOptions::in_directory(directory)).unwrap()
}

fn connect(directory: &Path, timeout: Duration) -> PolledClient {
    PolledClient::connect(directory.join("node.socket"), ClientOptions { timeout, ..ClientOptions::default() }).unwrap()
}

#[test]
fn short_call_times_out() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(directory.path());
    let mut client = connect(directory.path(), 3 * PATIENCE);
    let session = client.open_session(1, 4).unwrap();
    client.call(session, COUNT, b"", PATIENCE).unwrap();
    host.stop().unwrap();
    let begun = Instant::now();
    let error = client.call(session, COUNT, b"", Duration::from_millis(200)).unwrap_err();
    let took = begun.elapsed();
    assert!(matches!(error, ClientError::OutcomeUnknown { session_seq: 2, .. }), "{error}");
    // Half of the client's own timeout would be 90 s.
    assert!((Duration::from_millis(200)..PATIENCE).contains(&took), "{took:?}");

    let begun = Instant::now();
    for limit in [Duration::ZERO, Duration::from_millis(20)] {
        client.reconnect_within(limit).unwrap_err();
    }
    assert!(begun.elapsed() < PATIENCE);

    let host = start(directory.path());
    client.reconnect_within(PATIENCE).unwrap();
    let (mut came, begun) = (None, Instant::now());
    while came.is_none() {
        assert!(begun.elapsed() < PATIENCE, "the reply does not arrive");
        client
            .poll(1, |incoming| {
                if let Incoming::Reply { reply, first: true, .. } = incoming {
                    came = Some((reply.session_seq, reply.payload.to_vec()));
                }
            })
            .unwrap();
    }
    assert_eq!(came, Some((2, 2u64.to_le_bytes().to_vec())));
    host.stop().unwrap();
}

#[test]
fn long_call_survives_an_outage() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(directory.path());
    let mut client = connect(directory.path(), Duration::from_millis(200));
    let session = client.open_session(1, 4).unwrap();
    host.stop().unwrap();
    let place = directory.path().to_owned();
    let back = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1_500));
        start(&place)
    });
    let reply = client.call(session, COUNT, b"", PATIENCE).unwrap();
    assert_eq!(reply.payload, 1u64.to_le_bytes());
    back.join().unwrap().stop().unwrap();
}

#[test]
fn invalid_options_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(directory.path());
    let mut client = connect(directory.path(), PATIENCE);
    for (token, window, option) in [(0, 4, "token"), (1, 0, "window_messages"), (1, 65, "window_messages")] {
        let error = client.open_session(token, window).unwrap_err();
        assert!(matches!(error, ClientError::Option { option: named, .. } if named == option), "{error}");
    }
    client.open_session(1, 64).unwrap();
    host.stop().unwrap();
}

#[test]
fn unknown_host_fails_at_once() {
    // The resolver may take some seconds.
    let (begun, timeout) = (Instant::now(), 3 * PATIENCE);
    let Err(error) =
        PolledClient::connect("tcp:no-such-host.invalid:1", ClientOptions { timeout, ..ClientOptions::default() })
    else {
        panic!("an unknown host accepts a client")
    };
    assert!(begun.elapsed() < timeout, "{error}");
}

#[derive(Default)]
struct GatedCounter {
    count: Count,
    closed: Arc<Mutex<()>>,
    is_reached: Arc<AtomicBool>,
}

impl Service for GatedCounter {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(COUNT.schema, |it: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            it.is_reached.store(true, Ordering::Release);
            drop(it.closed.lock().unwrap());
            it.count.0 += 1;
            context.reply_with(COUNT, &it.count.0.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        self.count.snapshot(state);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.count.restore(state)
    }
}

fn send(client: &mut PolledClient, session: SessionKey, payload: &[u8]) -> Result<u64, ClientError> {
    client.send(session, COUNT, payload.len(), |buffer| {
        buffer.copy_from_slice(payload);
        Ok(payload.len())
    })
}

#[test]
fn call_waits_for_room_in_the_ring() {
    let gate = GatedCounter::default();
    let closed = Arc::clone(&gate.closed);
    let options = ServiceHostOptions { window_bytes: 256 << 10, ..ServiceHostOptions::in_memory() };
    let host = ServiceHost::start(gate, options).unwrap();
    let link = RingSizes { command_ring_bytes: 64 << 10, ..RingSizes::default() };
    let mut client = host.connect(ClientOptions { link, timeout: PATIENCE, ..ClientOptions::default() }).unwrap();
    let sessions: Vec<_> = (1..=8).map(|token| client.open_session(token, 64).unwrap()).collect();
    let last = client.open_session(99, 64).unwrap();
    let shut = closed.lock().unwrap();
    // With a closed handler the window fills up, then the ring.
    let payload = [7; 2_000];
    let mut sent = 0;
    let mut full_since = None;
    while full_since.is_none_or(|since: Instant| since.elapsed() < Duration::from_secs(1)) {
        match send(&mut client, sessions[sent / 64], &payload) {
            Ok(_) => (sent, full_since) = (sent + 1, None),
            Err(error) => {
                assert!(matches!(error, ClientError::Log(LogError::Full { .. })), "{error}");
                full_since = full_since.or_else(|| Some(Instant::now()));
                std::thread::yield_now();
            }
        }
    }
    let (begun, timeout) = (Instant::now(), Duration::from_millis(100));
    let error = client.call(last, COUNT, &payload, timeout).unwrap_err();
    assert!(matches!(error, ClientError::Log(LogError::Full { .. })), "{error}");
    assert!(begun.elapsed() >= timeout, "the call did not wait");
    let reply = std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            client.open_session(100, 1)?;
            client.call(last, COUNT, &payload, PATIENCE)
        });
        std::thread::sleep(Duration::from_millis(20));
        drop(shut);
        call.join().unwrap().unwrap()
    });
    assert_eq!(reply.payload, (sent as u64 + 1).to_le_bytes());
    host.stop().unwrap();
}

#[test]
fn error_states_the_given_timeout() {
    let directory = tempfile::tempdir().unwrap();
    let gate = || GatedCounter::default();
    let first = ServiceHost::start(gate(), ServiceHostOptions::in_directory(directory.path())).unwrap();
    let mut client = connect(directory.path(), PATIENCE);
    let session = client.open_session(1, 1).unwrap();
    client.call(session, COUNT, b"", PATIENCE).unwrap();
    let mut full = connect(directory.path(), PATIENCE);
    let of_full = full.open_session(3, 1).unwrap();
    first.stop().unwrap();
    let second = gate();
    let (closed, is_reached) = (Arc::clone(&second.closed), Arc::clone(&second.is_reached));
    let second = ServiceHost::start(second, ServiceHostOptions::in_directory(directory.path())).unwrap();
    let mut other = connect(directory.path(), PATIENCE);
    let of_other = other.open_session(2, 1).unwrap();
    let shut = closed.lock().unwrap();
    send(&mut other, of_other, b"").unwrap();
    until("the handler is blocked", || is_reached.load(Ordering::Acquire));

    let timeout = Duration::from_millis(250);
    let error = client.call(session, COUNT, b"", timeout).unwrap_err();
    let ClientError::OutcomeUnknown { session_seq: 2, reason } = &error else { panic!("{error}") };
    assert!(reason.ends_with(" within 250 ms"), "{reason}");
    send(&mut full, of_full, b"").unwrap();
    let error = full.call(of_full, COUNT, b"", timeout).unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { timeout_ms: 250, .. }), "{error}");
    drop(shut);
    assert!(matches!(client.outcome(session, 2, PATIENCE).unwrap(), Outcome::Done(_)));
    second.stop().unwrap();
}
