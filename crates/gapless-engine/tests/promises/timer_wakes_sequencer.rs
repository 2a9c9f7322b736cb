//! A timer set while the sequencer's thread sleeps fires at its time, not at the thread's next regular wake-up.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::{PATIENCE, message};
use gapless_agent::PlanKind;
use gapless_client::polled::ClientOptions;
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions, Threads};
use gapless_transport::token::random_token;
use std::time::Duration;

const SET: u32 = 1 << 16 | 1;
const ASK: u32 = 1 << 16 | 2;
/// The sequencer's thread falls asleep long before.
const HANDLED_IN: Duration = Duration::from_millis(30);
const DELAY_NS: u64 = 2_000_000;
/// A sleeping thread wakes up by itself after 100 ms.
const LATE_NS_MAX: u64 = 30_000_000;

#[derive(Default)]
struct TimerDelays(Vec<u64>);

impl Service for TimerDelays {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SET, |_, _, context| {
            std::thread::sleep(HANDLED_IN);
            let deadline_ns = context.time_ns() + (HANDLED_IN.as_nanos() as u64) + DELAY_NS;
            context.set_numbered_timer(deadline_ns, deadline_ns);
            context.reply_with(message(SET), &[])
        });
        handlers.on_bytes(ASK, |late, _, context| {
            let bytes: Vec<u8> = late.0.iter().flat_map(|number| number.to_le_bytes()).collect();
            context.reply_with(message(ASK), &bytes)
        });
    }

    fn on_timer(&mut self, deadline_ns: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        self.0.push(context.time_ns() - deadline_ns);
        Ok(())
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn timer_wakes_the_sequencer() {
    let threads = Threads { plan: PlanKind::Max, ..Threads::default() };
    let options = ServiceHostOptions { threads, ..ServiceHostOptions::in_memory() };
    let host = ServiceHost::start(TimerDelays::default(), options).unwrap();
    let mut client = host.connect(ClientOptions { timeout: PATIENCE, ..ClientOptions::default() }).unwrap();
    let session = client.open_session(random_token(), 8).unwrap();
    let mut late = Vec::new();
    for round in 1..=5 {
        client.call(session, message(SET), b"", PATIENCE).unwrap();
        while late.len() < round {
            std::thread::sleep(Duration::from_millis(110));
            let reply = client.call(session, message(ASK), b"", PATIENCE).unwrap().payload;
            late = reply.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect::<Vec<_>>();
        }
    }
    host.stop().unwrap();
    // On a busy machine one of them may be late.
    assert!(late.iter().min() < Some(&LATE_NS_MAX), "{late:?} ns");
}
