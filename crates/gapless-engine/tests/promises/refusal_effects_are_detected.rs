//! A handler that changes the state and then refuses misinforms its client; if configured, the host detects that and
//! stops.

use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{PolledClient, SessionKey};
use gapless_engine::fold::{CheckRefusals, Policy};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// Adds even numbers and refuses odd ones: `CHECKED` refuses before it adds, `LATE` afterwards.
const CHECKED: u32 = 1 << 16 | 1;
const LATE: u32 = 1 << 16 | 2;
const TIMER: u32 = 1 << 16 | 3;

struct Sum {
    sum: u64,
    ballast: Vec<u8>,
}

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        let odd = |number: u64| if number % 2 == 1 { Err(Reject::from("odd")) } else { Ok(()) };
        handlers.on_bytes(CHECKED, move |it: &mut Self, payload: &[u8], _: &mut Context<'_>| {
            let number = u64::from(payload[0]);
            odd(number)?;
            it.sum += number;
            Ok::<_, Reject>(())
        });
        handlers.on_bytes(LATE, move |it: &mut Self, payload: &[u8], _: &mut Context<'_>| {
            let number = u64::from(payload[0]);
            it.sum += number;
            odd(number)
        });
        handlers.on_bytes(TIMER, |_: &mut Self, _: &[u8], context: &mut Context<'_>| {
            context.set_numbered_timer(7, context.time_ns());
            Ok::<_, Reject>(())
        });
    }

    fn on_timer(&mut self, _: u64, _: &mut Context<'_>) -> Result<(), Reject> {
        self.sum += 1;
        Err("too late".into())
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.sum.to_le_bytes());
        state.extend_from_slice(&self.ballast);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (sum, ballast) = state.split_first_chunk().ok_or("8 bytes")?;
        (self.sum, self.ballast) = (u64::from_le_bytes(*sum), ballast.to_vec());
        Ok(())
    }
}

fn start(directory: &Path, check_refusals: CheckRefusals, ballast: usize) -> (ServiceHost, PolledClient, SessionKey) {
    let mut options = ServiceHostOptions::in_directory(directory);
    options.policy = Policy { check_refusals, ..Policy::default() };
    let host = ServiceHost::start(Sum { sum: 0, ballast: vec![1; ballast] }, options).unwrap();
    let mut client = PolledClient::connect(host.socket_path().unwrap(), ClientOptions::default()).unwrap();
    let session = client.open_session(1, 4).unwrap();
    (host, client, session)
}

fn call(client: &mut PolledClient, session: SessionKey, schema: u32, number: u8) -> bool {
    let message = MessageType { schema, encoding: Encoding::Opaque };
    // A host that has stopped at an odd number does not reply.
    let patience = if schema == LATE && number % 2 == 1 { Duration::from_secs(2) } else { PATIENCE };
    client.call(session, message, &[number], patience).is_ok()
}

fn failure(host: &ServiceHost) -> String {
    let begun = Instant::now();
    loop {
        if let Some(failure) = host.failure() {
            return failure.to_string();
        }
        assert!(begun.elapsed() < PATIENCE, "the host has not stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn early_check_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start(directory.path(), CheckRefusals::Always, 0);
    for number in 0..20 {
        assert_eq!(call(&mut client, session, CHECKED, number), number % 2 == 0);
    }
    host.stop().unwrap();
}

#[test]
fn late_refusal_stops_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start(directory.path(), CheckRefusals::Always, 0);
    assert!(call(&mut client, session, LATE, 2) && !call(&mut client, session, CHECKED, 3));
    assert!(!call(&mut client, session, LATE, 5), "the client gets no reply");
    let said = failure(&host);
    assert!(said.contains("schema 1 template 2") && said.contains("at sequence 4") && said.contains("odd"), "{said}");
}

#[test]
fn late_refusing_timer_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start(directory.path(), CheckRefusals::Always, 0);
    assert!(call(&mut client, session, TIMER, 0));
    let said = failure(&host);
    assert!(said.contains("timer 7") && said.contains("too late"), "{said}");
}

#[test]
fn large_state_is_sampled() {
    let directory = tempfile::tempdir().unwrap();
    let how = CheckRefusals::default();
    assert_eq!(how, if cfg!(debug_assertions) { CheckRefusals::Sometimes } else { CheckRefusals::Never });
    let (host, mut client, session) = start(directory.path(), CheckRefusals::Sometimes, 40_960);
    let mut refused = 0;
    while host.failure().is_none() && refused < 100 {
        if call(&mut client, session, LATE, 1) {
            panic!("an odd number is refused");
        }
        refused += 1;
    }
    assert!((1..=12).contains(&refused), "{refused} refusals passed");
}

#[test]
fn disabled_check_ignores_effects() {
    let directory = tempfile::tempdir().unwrap();
    let (host, mut client, session) = start(directory.path(), CheckRefusals::Never, 0);
    assert!(!call(&mut client, session, LATE, 5) && call(&mut client, session, CHECKED, 2));
    host.stop().unwrap();
}
