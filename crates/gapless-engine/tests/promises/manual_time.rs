//! With `manual_time` time advances only on request; due timers fire in order, each at its time. A host that fails
//! meanwhile reports the reason.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::{PATIENCE, message};
use gapless_client::polled::ClientOptions;
use gapless_client::{PolledClient, SessionKey};
use gapless_engine::{Context, EngineError, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_transport::token::random_token;
use std::time::Duration;

const SET: u32 = 1 << 16 | 1;
const ASK: u32 = 1 << 16 | 2;

const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;
/// Sets timer 8 in a second.
const CHAINED: u64 = 7;
const FAILS: u64 = 13;

#[derive(Default)]
struct Log(Vec<[u64; 2]>);

impl Service for Log {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SET, |_, payload, context| {
            for [timer, delay_ns] in pairs(payload) {
                context.set_numbered_timer(timer, context.time_ns() + delay_ns);
            }
            context.reply_with(message(SET), &context.time_ns().to_le_bytes())
        });
        handlers.on_bytes(ASK, |log, _, context| {
            let bytes = log.0.as_flattened().iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
            context.reply_with(message(ASK), &bytes)
        });
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        assert_ne!(timer, FAILS, "as it was asked to");
        self.0.push([timer, context.time_ns()]);
        if timer == CHAINED {
            context.set_numbered_timer(8, context.time_ns() + SECOND_NS);
        }
        Ok(())
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn pairs(bytes: &[u8]) -> Vec<[u64; 2]> {
    let numbers = bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect::<Vec<_>>();
    numbers.as_chunks().0.to_vec()
}

struct TestHost {
    host: ServiceHost,
    client: PolledClient,
    session: SessionKey,
}

impl TestHost {
    fn start(options: ServiceHostOptions) -> Self {
        let host = ServiceHost::start(Log::default(), options.with_manual_time()).unwrap();
        let mut client = host.connect(ClientOptions::default()).unwrap();
        let session = client.open_session(random_token(), 16).unwrap();
        Self { host, client, session }
    }

    fn call(&mut self, schema: u32, payload: &[u8]) -> Vec<u8> {
        self.client.call(self.session, message(schema), payload, PATIENCE).unwrap().payload
    }

    fn set(&mut self, timers: &[[u64; 2]]) -> u64 {
        let bytes = timers.as_flattened().iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        u64::from_le_bytes(self.call(SET, &bytes).try_into().unwrap())
    }

    fn fired_after(&mut self, begun_ns: u64) -> Vec<[u64; 2]> {
        pairs(&self.call(ASK, b"")).iter().map(|[timer, ns]| [*timer, (ns - begun_ns) / MICROSECOND_NS]).collect()
    }
}

#[test]
fn timers_fire_at_their_times() {
    let directory = tempfile::tempdir().unwrap();
    for options in [ServiceHostOptions::in_memory(), ServiceHostOptions::in_directory(directory.path())] {
        let mut world = TestHost::start(options);
        let begun_ns =
            world.set(&[[1, 5 * SECOND_NS], [CHAINED, 2 * SECOND_NS], [2, 2_500_000_000], [3, 60 * SECOND_NS]]);
        // Each frame is a nanosecond later than the previous one.
        assert!(world.set(&[]) - begun_ns < MICROSECOND_NS, "time stands still");
        world.host.advance(Duration::from_secs(2)).unwrap();
        assert_eq!(world.fired_after(begun_ns), [[CHAINED, 2_000_000]]);
        world.host.advance(Duration::from_secs(8)).unwrap();
        let expected = [[CHAINED, 2_000_000], [2, 2_500_000], [8, 3_000_000], [1, 5_000_000]];
        assert_eq!(world.fired_after(begun_ns), expected);
        assert_eq!((world.set(&[]) - begun_ns) / MICROSECOND_NS, 10_000_000);
        world.host.stop().unwrap();
    }
}

#[test]
fn all_of_many_timers_fire() {
    let mut world = TestHost::start(ServiceHostOptions::in_memory());
    let timers = (100..20_100).map(|timer| [timer, SECOND_NS]).collect::<Vec<_>>();
    let begun_ns = world.set(&timers);
    world.host.advance(Duration::from_secs(1)).unwrap();
    let fired = world.fired_after(begun_ns).iter().map(|[timer, _]| *timer).collect::<Vec<_>>();
    assert!(fired == (100..20_100).collect::<Vec<_>>(), "{} have fired", fired.len());
    world.host.stop().unwrap();
}

#[test]
fn session_expires_by_manual_time() {
    let options = ServiceHostOptions { session_expiry: Duration::from_secs(3600), ..ServiceHostOptions::in_memory() };
    let mut world = TestHost::start(options);
    world.host.advance(Duration::from_secs(3599)).unwrap();
    world.set(&[]);
    world.host.advance(Duration::from_secs(3601)).unwrap();
    let error = world.client.call(world.session, message(SET), b"", PATIENCE).unwrap_err();
    assert!(error.to_string().contains("session"), "{error}");
    world.host.stop().unwrap();
}

#[test]
fn advance_reports_the_failure() {
    let mut world = TestHost::start(ServiceHostOptions::in_memory());
    world.set(&[[FAILS, SECOND_NS]]);
    for _ in 0..2 {
        let error = world.host.advance(Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("as it was asked to"), "{error}");
    }
    world.host.stop().unwrap_err();
}

#[test]
fn advance_needs_manual_time() {
    let host = ServiceHost::start(Log::default(), ServiceHostOptions::in_memory()).unwrap();
    let error = host.advance(Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error, EngineError::Option { option: "manual_time", .. }), "{error}");
    host.stop().unwrap();
}
