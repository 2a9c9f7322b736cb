//! A call takes as long as it was given and no longer, also where the service is away and comes back later than the client's
//! own patience with a connection; and its error says what has become of the command.

use gapless_client::ClientError;
use gapless_client::client::{ClientOptions, MessageType};
use gapless_client::{Client, Incoming};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use std::path::Path;
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

fn connect(directory: &Path, timeout: Duration) -> Client {
    Client::connect(directory.join("node.socket"), ClientOptions { timeout, ..ClientOptions::default() }).unwrap()
}

#[test]
fn a_short_one_while_the_service_is_away() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(directory.path());
    let mut client = connect(directory.path(), Duration::from_secs(30));
    let session = client.open_session(1, 4).unwrap();
    client.call(session, COUNT, b"", PATIENCE).unwrap();
    host.stop().unwrap();
    let begun = Instant::now();
    let error = client.call(session, COUNT, b"", Duration::from_millis(200)).unwrap_err();
    let took = begun.elapsed();
    assert!(matches!(error, ClientError::OutcomeUnknown { session_seq: 2, .. }), "{error}");
    // Half of the client's own patience would be 15 s.
    assert!((Duration::from_millis(200)..Duration::from_secs(10)).contains(&took), "{took:?}");

    // It was kept, and has its effect once the service is back.
    let host = start(directory.path());
    client.reconnect().unwrap();
    let (mut came, begun) = (None, Instant::now());
    while came.is_none() {
        assert!(begun.elapsed() < PATIENCE, "its reply does not come");
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
fn a_long_one_while_the_service_is_away_for_longer_than_a_connection_is_waited_for() {
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
fn what_makes_no_sense_is_an_error() {
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
fn a_name_that_nobody_knows_is_not_waited_for() {
    let begun = Instant::now();
    let timeout = Duration::from_secs(2);
    let Err(error) =
        Client::connect("tcp:no-such-host.invalid:1", ClientOptions { timeout, ..ClientOptions::default() })
    else {
        panic!("nobody is there")
    };
    assert!(begun.elapsed() < timeout + Duration::from_secs(5), "{error}");
}
