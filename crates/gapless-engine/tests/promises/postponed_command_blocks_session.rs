//! A writer of transactions may postpone a command: its session waits in order, other sessions continue.

use gapless_agent::Waker;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_engine::transaction_service::{ReleasedTransaction, ReleasedTransactions, WriterParts, write_done};
use gapless_engine::{ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use gapless_stream::Sequencer;
use gapless_stream::transactions::{ExecutionResult, Transactions};
use gapless_testkit::random::Random;
use gapless_wire::FrameHeader;
use gapless_wire::control::TimerFired;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const NUMBER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const LONG: usize = 100_000;

struct RandomPostponer {
    random: Random,
    waker: Waker,
    waiting: Vec<(u64, u64)>,
    is_led: bool,
}

impl Transactions for RandomPostponer {
    fn lead(&mut self, _: u64, _: u64) {
        self.is_led = true;
    }

    fn follow(&mut self, _: u64) {
        self.is_led = false;
    }

    fn poll(&mut self, _: u64) -> bool {
        self.waiting.iter_mut().for_each(|(_, turns)| *turns = turns.saturating_sub(1));
        if !self.waiting.is_empty() {
            self.waker.wake();
        }
        self.is_led
    }

    fn command(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        _: &Sequencer,
        _: usize,
        out: &mut Vec<u8>,
    ) -> ExecutionResult {
        if self.random.below(4) == 0 {
            let turns = self.random.below(50);
            self.waiting.push((header.session, turns));
            return ExecutionResult::Deferred;
        }
        write_done(out, NUMBER.schema, &payload[..8], payload);
        ExecutionResult::Done
    }

    fn ready(&mut self) -> Option<u64> {
        let at = self.waiting.iter().position(|(_, turns)| *turns == 0)?;
        Some(self.waiting.swap_remove(at).0)
    }

    fn is_set(&self, _: TimerFired) -> bool {
        false
    }

    fn timer(&mut self, _: &FrameHeader, _: TimerFired, _: &Sequencer, _: usize, _: &mut Vec<u8>) {
        unreachable!("no timer is set")
    }

    fn acknowledged(&mut self, _: u64, _: u64) {}

    fn closed(&mut self, _: u64) {}
}

#[derive(Clone, Default)]
struct ExecutedCommands(Arc<Mutex<Vec<(u64, u64, u64)>>>);

impl ReleasedTransactions for ExecutedCommands {
    fn apply(&mut self, transaction: &ReleasedTransaction<'_>) -> Result<(), String> {
        let number = transaction.changes.first_chunk().ok_or("a number is missing")?;
        let ran = (transaction.sequence, transaction.session, u64::from_le_bytes(*number));
        self.0.lock().unwrap().push(ran);
        Ok(())
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn start<W: Transactions + 'static>(
    make_writer: impl FnOnce(WriterParts) -> W + Send + 'static,
    ran: &ExecutedCommands,
) -> ServiceHost {
    let make_writer = move |parts: WriterParts| Ok(Box::new(make_writer(parts)) as Box<dyn Transactions>);
    ServiceHost::start_transactions(ran.clone(), make_writer, ServiceHostOptions::in_memory()).unwrap()
}

fn send_all(client: &mut PolledClient, sessions: &[SessionKey], last: u64, random: &mut Random) {
    let (mut next, mut answered) = (vec![1; sessions.len()], vec![0; sessions.len()]);
    let mut moved = Instant::now();
    while answered.iter().any(|number| *number < last) {
        for (session, next) in sessions.iter().zip(&mut next) {
            while *next <= last && client.can_send(*session) {
                let length = if random.below(50) == 0 { LONG } else { 8 };
                let encode = |payload: &mut [u8]| {
                    payload[..length].fill(0);
                    payload[..8].copy_from_slice(&next.to_le_bytes());
                    Ok(length)
                };
                match client.enqueue(*session, NUMBER, length, encode) {
                    Ok(_) => *next += 1,
                    Err(_) => break,
                }
            }
        }
        client.flush();
        let take = |incoming: Incoming<'_>| {
            let Incoming::Reply { session, reply, first } = incoming else { return };
            assert!(first && reply.refusal.is_none(), "{:?}", reply.refusal);
            let at = sessions.iter().position(|each| *each == session).unwrap();
            let number = u64::from_le_bytes(reply.payload.try_into().unwrap());
            assert_eq!(number, answered[at] + 1, "replies come in the order of their session");
            answered[at] = number;
            moved = Instant::now();
        };
        client.poll(64, take).unwrap();
        assert!(moved.elapsed() < PATIENCE, "{answered:?} of {last} are answered, without progress");
    }
}

#[test]
fn postponed_sessions_keep_order() {
    let mut random = Random::seeded();
    let ran = ExecutedCommands::default();
    let chances = Random::new(random.number());
    let writer = |parts: WriterParts| RandomPostponer {
        random: chances,
        waker: parts.waker,
        waiting: Vec::new(),
        is_led: false,
    };
    let host = start(writer, &ran);
    let last = 1_000;
    let mut clients: Vec<_> = (0..2).map(|_| host.connect(ClientOptions::default()).unwrap()).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        let sessions: Vec<_> =
            (1..=3).map(|each| client.open_session(10 * index as u128 + each, 16).unwrap()).collect();
        send_all(client, &sessions, last, &mut random);
    }
    host.stop().unwrap();
    let ran = ran.0.lock().unwrap();
    assert_eq!(ran.len() as u64, 6 * last);
    assert!(ran.is_sorted_by(|a, b| a.0 < b.0), "each sequence is used once");
    let mut sessions: Vec<_> = ran.iter().map(|(_, session, _)| *session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    assert_eq!(sessions.len(), 6);
    for session in sessions {
        let numbers = ran.iter().filter(|each| each.1 == session).map(|each| each.2);
        assert!(numbers.eq(1..=last), "session {session}");
    }
}

struct SessionPostponer {
    is_open: Arc<AtomicBool>,
    held: Option<u64>,
    is_told: bool,
}

impl Transactions for SessionPostponer {
    fn lead(&mut self, _: u64, _: u64) {}

    fn follow(&mut self, _: u64) {}

    fn poll(&mut self, _: u64) -> bool {
        true
    }

    fn command(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        _: &Sequencer,
        _: usize,
        out: &mut Vec<u8>,
    ) -> ExecutionResult {
        if *self.held.get_or_insert(header.session) == header.session && !self.is_open.load(Ordering::SeqCst) {
            return ExecutionResult::Deferred;
        }
        write_done(out, NUMBER.schema, &payload[..8], payload);
        ExecutionResult::Done
    }

    fn ready(&mut self) -> Option<u64> {
        let is_ready = self.is_open.load(Ordering::SeqCst) && !self.is_told;
        self.is_told |= is_ready;
        self.held.filter(|_| is_ready)
    }

    fn is_set(&self, _: TimerFired) -> bool {
        false
    }

    fn timer(&mut self, _: &FrameHeader, _: TimerFired, _: &Sequencer, _: usize, _: &mut Vec<u8>) {
        unreachable!("no timer is set")
    }

    fn acknowledged(&mut self, _: u64, _: u64) {}

    fn closed(&mut self, _: u64) {}
}

#[test]
fn other_sessions_continue() {
    let (ran, is_open) = (ExecutedCommands::default(), Arc::<AtomicBool>::default());
    let writer = SessionPostponer { is_open: Arc::clone(&is_open), held: None, is_told: false };
    let host = start(|_| writer, &ran);
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let sessions = [1, 2].map(|token| client.open_session(token, 8).unwrap());
    for number in 1..=8_u64 {
        let encode = |payload: &mut [u8]| {
            payload[..8].copy_from_slice(&number.to_le_bytes());
            Ok(8)
        };
        client.send(sessions[0], NUMBER, 8, encode).unwrap();
    }
    for number in 1..=100_u64 {
        let reply = client.call(sessions[1], NUMBER, &number.to_le_bytes(), PATIENCE).unwrap();
        assert_eq!(reply.payload, number.to_le_bytes());
    }
    assert_eq!(client.in_flight(sessions[0]), 8);
    is_open.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    while client.in_flight(sessions[0]) > 0 {
        client.poll(64, |_| ()).unwrap();
        assert!(begun.elapsed() < PATIENCE, "{} wait", client.in_flight(sessions[0]));
    }
    host.stop().unwrap();
    let ran = ran.0.lock().unwrap();
    let first = ran.last().unwrap().1;
    assert!(ran.iter().filter(|each| each.1 == first).map(|each| each.2).eq(1..=8));
    assert_eq!(ran.len(), 108);
}
