//! Tests of `Fold`: its state, replies, notices, timers and dead letters after each kind of frame, and its errors.

use super::*;
use crate::service::Handlers;
use crate::sessions::{SessionEntry, StoredReply};
use crate::timers::TimerMessage;
use crate::transaction_service::{ReleasedTransaction, ReleasedTransactions, fold_of_transactions};
use gapless_schema::{Decode, DecodeError, Encoding, MessageSchema};
use gapless_wire::control::TimerFired;
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, mark};
use std::ops::RangeInclusive;

const SCHEMA: u32 = 3 << 16 | 7;
const SESSION: u64 = 1;
const PAIR: u32 = 3 << 16 | 9;
const TIME_NS: u64 = 1_000;

struct Pair;

impl MessageSchema for Pair {
    const SCHEMA_ID: u16 = 3;
    const TEMPLATE_ID: u16 = 9;
    const ENCODING: Encoding = Encoding::Opaque;
    const NAME: &'static str = "Pair";
}

impl Decode for Pair {
    type Decoded<'a> = &'a [u8; 2];

    fn decode(payload: &[u8]) -> Result<&[u8; 2], DecodeError> {
        let (field, found_bytes) = ("pair", payload.len());
        payload.first_chunk().ok_or(DecodeError::Truncated { field, position: 0, needed_bytes: 2, found_bytes })
    }
}

#[derive(Default)]
struct Keeper {
    kept: Vec<u8>,
    versions: Vec<u32>,
}

impl Service for Keeper {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on::<Pair>(|service, pair, _| {
            service.kept.extend_from_slice(pair);
            Ok(())
        });
        handlers.on_bytes(SCHEMA, |service, payload, context| {
            let (what, rest) = payload.split_first().ok_or("empty")?;
            let number = u64::from(rest.first().copied().unwrap_or(0));
            if *what == b'x' {
                return Err(Reject::new(9, "no"));
            }
            assert_ne!(*what, b'p', "a fault of the handler");
            service.kept.extend_from_slice(payload);
            service.versions.push(context.version());
            match what {
                b'e' => return Err("too late".into()),
                b'r' => context.reply_bytes(5, Encoding::Opaque, rest.len(), |buffer| copy(buffer, rest))?,
                b'l' => context.reply_bytes(5, Encoding::Opaque, 2 << 20, |buffer| copy(buffer, &[]))?,
                b'n' => context.notify_bytes(number, 6, Encoding::Opaque, rest.len(), |buffer| copy(buffer, rest))?,
                b't' => context.set_numbered_timer(number, u64::from(rest[1])),
                b'c' => context.cancel_numbered_timer(number),
                _ => {}
            }
            assert_eq!((context.session(), context.time_ns()), (SESSION, context.sequence() * TIME_NS));
            Ok(())
        });
    }

    fn versions() -> RangeInclusive<u32> {
        1..=2
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        assert_eq!((context.session(), context.session_seq()), (0, 0));
        if timer == 9 {
            return Err("a timer that refuses".into());
        }
        self.kept.push(timer as u8);
        Ok(())
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.kept);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.kept = state.to_vec();
        Ok(())
    }
}

fn copy(buffer: &mut [u8], bytes: &[u8]) -> Result<usize, String> {
    buffer[..bytes.len()].copy_from_slice(bytes);
    Ok(bytes.len())
}

#[derive(Default)]
struct RecordingSink(Vec<String>);

impl Sink for RecordingSink {
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply) {
        let text = if reply.flags & REFUSED_FLAG != 0 {
            let refusal = Refusal::from_bytes(&reply.payload).unwrap();
            format!("{:?} {} {}", refusal.code, refusal.detail, refusal.text)
        } else {
            format!("{} {}", reply.schema, String::from_utf8_lossy(&reply.payload))
        };
        self.0.push(format!("reply {} {} {}: {text}", session.session, reply.session_seq, reply.sequence));
    }

    fn opened(&mut self, session: &mut SessionEntry) {
        self.0.push(format!("opened {} {}", session.session, session.token));
    }

    fn notice(&mut self, session: &SessionEntry) {
        let notice = session.notices.back().unwrap();
        self.0.push(format!("notice {} {} {}", session.session, notice.number, notice.sequence));
    }

    fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.0.push(format!("set {timer} {deadline_ns}"));
    }

    fn cancel_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.0.push(format!("cancel {timer} {deadline_ns}"));
    }

    fn dead_letter(&mut self, letter: DeadLetter) {
        let DeadLetter { sequence, session, session_seq, schema, reason, .. } = letter;
        self.0.push(format!("dead {sequence} {session} {session_seq} {schema}: {reason}"));
    }
}

struct TestFold {
    fold: Fold,
    session_seq: u64,
}

impl TestFold {
    fn open(policy: Policy) -> Self {
        let mut world = Self { fold: Fold::new(Keeper::default(), policy), session_seq: 0 };
        let open = SessionOpen { token: 7, window_messages: 4, shared: false, notices_seen: 0 };
        assert_eq!(world.tell(Kind::SessionOpen, &open.to_bytes()), ["opened 1 7"]);
        world
    }

    fn apply(&mut self, header: FrameHeader, payload: &[u8]) -> Result<Vec<String>, EngineError> {
        let mut bytes = vec![0; HEADER_LENGTH + payload.len().next_multiple_of(8)];
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        let length = writer.finish(&header, payload.len());
        let mut outputs = RecordingSink::default();
        self.fold.apply(&Frame::parse(&bytes[..length]).unwrap(), &mut outputs)?;
        Ok(outputs.0)
    }

    fn header(&self, kind: Kind) -> FrameHeader {
        let sequence = self.fold.last_sequence() + 1;
        FrameHeader { kind, sequence, timestamp_ns: sequence * TIME_NS, session: SESSION, ..FrameHeader::default() }
    }

    fn tell(&mut self, kind: Kind, payload: &[u8]) -> Vec<String> {
        self.apply(self.header(kind), payload).unwrap()
    }

    fn command(&mut self, payload: &[u8]) -> Result<Vec<String>, EngineError> {
        self.command_of(SCHEMA, payload)
    }

    fn command_of(&mut self, schema: u32, payload: &[u8]) -> Result<Vec<String>, EngineError> {
        self.session_seq += 1;
        self.apply(FrameHeader { session_seq: self.session_seq, schema, ..self.header(Kind::Command) }, payload)
    }

    fn fire(&mut self, timer: u64, deadline_ns: u64) -> Vec<String> {
        self.apply(
            FrameHeader { session: 0, ..self.header(Kind::Timer) },
            &TimerFired { timer, deadline_ns }.to_bytes(),
        )
        .unwrap()
    }
}

#[test]
fn commands_change_state_and_reply() {
    let mut world = TestFold::open(Policy::default());
    assert_eq!(world.command(b"rone").unwrap(), ["reply 1 1 2: 5 one"]);
    assert_eq!(world.command(b"_").unwrap(), ["reply 1 2 3: 0 "], "also one without a reply of its own");
    assert_eq!(world.command(b"rtwo").unwrap(), ["reply 1 3 4: 5 two"]);
    let fold = &world.fold;
    assert_eq!((fold.state(), fold.service::<Keeper>().kept.as_slice()), (b"rone_rtwo".to_vec(), &b"rone_rtwo"[..]));
    assert_eq!((fold.last_sequence(), fold.last_timestamp_ns(), fold.runs_handlers()), (4, 4 * TIME_NS, true));
    let entry = fold.sessions().get(SESSION).unwrap();
    assert_eq!((entry.messages, entry.last_session_seq, entry.last_active_ns), (3, 3, 4 * TIME_NS));
    assert_eq!(entry.find_reply(1).unwrap().payload, b"one");
    let outputs = world.command(b"l").unwrap();
    assert_eq!(outputs, ["reply 1 4 5: ReplyTooLong 2097152 the command is done; its reply is longer than any may be"]);
    assert_eq!(world.fold.state(), b"rone_rtwol");
    assert_eq!(world.fold.prefetch(&[SESSION, SESSION + 1]), 2);
}

#[test]
fn unexpected_frames_are_corrupt() {
    let mut world = TestFold::open(Policy::default());
    let reason = |outcome| match outcome {
        Err(EngineError::Corrupt { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    for sequence in [0, 1, 3] {
        let header = FrameHeader { sequence, ..world.header(Kind::Command) };
        assert_eq!(reason(world.apply(header, b"_")), "sequence 2 was due");
    }
    let header = FrameHeader { session: 5, schema: SCHEMA, session_seq: 1, ..world.header(Kind::Command) };
    let mut other = TestFold::open(Policy::default());
    assert!(
        other
            .apply(FrameHeader { schema: 4, ..header }, b"_")
            .is_err_and(|error| error.to_string().contains("session 5"))
    );
    for kind in [Kind::Event, Kind::Reply, Kind::Notice, Kind::Query, Kind::Answer] {
        let mut world = TestFold::open(Policy::default());
        assert_eq!(reason(world.apply(world.header(kind), b"")), format!("a frame of kind {kind:?}"));
    }
    let mut world = TestFold::open(Policy::default());
    assert_eq!(reason(world.apply(world.header(Kind::SessionOpen), b"?")), "a malformed session open");
    let mut world = TestFold::open(Policy::default());
    assert_eq!(reason(world.apply(world.header(Kind::Timer), b"?")), "a malformed timer");
    let mut world = TestFold::open(Policy::default());
    let header = FrameHeader { flags: TRANSACTION_FLAG, session_seq: 1, ..world.header(Kind::Command) };
    assert!(matches!(world.apply(header, b"_"), Err(EngineError::Kind { sequence: 2, .. })));
}

#[test]
fn fragments_run_with_the_last_one() {
    let mut world = TestFold::open(Policy::default());
    let part = |world: &mut TestFold, index: u16, payload: &[u8]| {
        let fragment = Fragment { index, count: 3 };
        let session_seq = u64::from(index) + 1;
        world
            .apply(FrameHeader { session_seq, schema: SCHEMA, fragment, ..world.header(Kind::Command) }, payload)
            .unwrap()
    };
    let before = (world.fold.last_sequence(), world.fold.last_timestamp_ns());
    for _ in 0..2 {
        assert!(!world.fold.is_mid_message());
        assert!(part(&mut world, 0, b"ra").is_empty() && part(&mut world, 1, b"bc").is_empty());
        assert!(world.fold.is_mid_message() && world.fold.state().is_empty());
        world.fold.forget_incomplete(before.0, before.1);
        assert_eq!((world.fold.last_sequence(), world.fold.last_timestamp_ns()), before);
    }
    assert!(part(&mut world, 0, b"rx").is_empty() && part(&mut world, 1, b"yz").is_empty());
    assert_eq!(part(&mut world, 2, b"!"), ["reply 1 3 4: 5 xyz!"]);
    assert_eq!((world.fold.state(), world.fold.is_mid_message()), (b"rxyz!".to_vec(), false));
}

#[test]
fn notices_stay_until_acknowledged() {
    let mut world = TestFold::open(Policy::default());
    for number in 1..=3 {
        let outputs = world.command(&[b'n', SESSION as u8]).unwrap();
        assert_eq!(outputs[1], format!("notice 1 {number} {}", number + 1));
    }
    assert_eq!(world.command(&[b'n', 99]).unwrap().len(), 1, "a notice to a session that is not open is dropped");
    let kept = |world: &TestFold| world.fold.sessions().get(SESSION).unwrap().notices.len();
    assert_eq!(kept(&world), 3);
    let header = FrameHeader { session_seq: 5, ..world.header(Kind::Acknowledge) };
    let outputs = world.apply(header, &2u64.to_le_bytes()).unwrap();
    assert_eq!((outputs, kept(&world)), (vec!["reply 1 5 6: NotACommand 0 it acknowledges notices".to_owned()], 1));
    assert_eq!(world.fold.sessions().get(SESSION).unwrap().last_active_ns, 6 * TIME_NS);
    assert!(world.tell(Kind::SessionClose, b"").is_empty() && world.fold.sessions().is_empty());
}

#[test]
fn timer_fires_at_last_deadline() {
    let mut world = TestFold::open(Policy::default());
    let side = |world: &mut TestFold, payload: &[u8]| world.command(payload).unwrap()[1..].to_vec();
    assert_eq!(side(&mut world, &[b't', 3, 50]), ["set 3 50"]);
    assert_eq!(side(&mut world, &[b't', 3, 50]), ["set 3 50"], "setting the same deadline cancels nothing");
    assert_eq!(side(&mut world, &[b't', 3, 60]), ["set 3 60", "cancel 3 50"]);
    assert_eq!(side(&mut world, &[b't', 4, 70]), ["set 4 70"]);
    assert_eq!(side(&mut world, &[b'c', 4]), ["cancel 4 70"]);
    assert!(side(&mut world, &[b'c', 4]).is_empty());
    let before = world.fold.state();
    for (timer, deadline_ns) in [(3, 50), (4, 70), (5, 1)] {
        assert!(world.fire(timer, deadline_ns).is_empty());
    }
    assert_eq!(world.fold.state(), before, "none of these is set");
    assert!(world.fire(3, 60).is_empty() && world.fire(3, 60).is_empty());
    assert_eq!(world.fold.state(), [&before[..], &[3]].concat());
    side(&mut world, &[b't', 9, 80]);
    assert_eq!(world.fire(9, 80), [format!("dead {} 0 0 0: a timer that refuses", world.fold.last_sequence())]);
}

#[test]
fn refusal_has_reason_but_no_effect() {
    let check_refusals = CheckRefusals::Always;
    let mut world = TestFold::open(Policy { check_refusals, ..Policy::default() });
    assert_eq!(world.command(b"x").unwrap(), ["reply 1 1 2: Rejected 9 no"]);
    let outputs = world.command_of(SCHEMA + 1, b"?").unwrap();
    assert!(
        outputs[0].starts_with("reply 1 2 3: Unhandled 0 ")
            && outputs[1].starts_with(&format!("dead 3 1 2 {}: ", SCHEMA + 1))
    );
    assert!(outputs[1].contains("schema 3 template 8"), "{outputs:?}");
    assert!(world.fold.state().is_empty());
    match world.command(b"e") {
        Err(EngineError::RefusalWithEffect { message, sequence, session, session_seq, reason }) => {
            let named = (message.as_str(), sequence, session, session_seq, reason.as_str());
            assert_eq!(named, ("schema 3 template 7", 4, 1, 3, "too late"));
        }
        other => panic!("{other:?}"),
    }
    let mut world = TestFold::open(Policy { check_refusals: CheckRefusals::Never, ..Policy::default() });
    assert_eq!(world.command(b"e").unwrap(), ["reply 1 1 2: Rejected 0 too late"]);
}

#[test]
fn policy_selects_stop_or_skip() {
    let mut world = TestFold::open(Policy::default());
    match world.command(b"p") {
        Err(EngineError::HandlerPanicked { message, sequence, session, session_seq, reason }) => {
            assert_eq!((message.as_str(), sequence, session, session_seq), ("schema 3 template 7", 2, 1, 1));
            assert!(reason.contains("a fault of the handler"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let policy = Policy { on_panic: OnPanic::DeadLetter, on_unhandled: OnUnhandled::Stop, ..Policy::default() };
    let mut world = TestFold::open(policy.clone());
    assert_eq!(world.fold.policy(), &policy);
    let outputs = world.command(b"p").unwrap();
    assert!(
        outputs[0].starts_with("reply 1 1 2: HandlerPanicked") && outputs[1].starts_with("dead 2 1 1 "),
        "{outputs:?}"
    );
    match world.command_of(SCHEMA + 1, b"?") {
        Err(EngineError::Unhandled { message, sequence, session, session_seq, .. }) => {
            assert_eq!((message.as_str(), sequence, session, session_seq), ("schema 3 template 8", 3, 1, 2));
        }
        other => panic!("{other:?}"),
    }
    let mut world = TestFold::open(Policy { check_refusals: CheckRefusals::Always, ..Policy::default() });
    world.command(&[b't', 9, 5]).unwrap();
    assert!(world.fire(9, 5)[0].ends_with("a timer that refuses"));
    let mut world = TestFold::open(Policy { skip_sequences: [3].into(), ..Policy::default() });
    assert_eq!(world.command(b"r1").unwrap(), ["reply 1 1 2: 5 1"]);
    let skipped = "skipped by an operator";
    let dead = format!("dead 3 1 2 {SCHEMA}: {skipped}");
    assert_eq!(world.command(b"r2").unwrap(), [format!("reply 1 2 3: Rejected 0 {skipped}"), dead]);
    assert_eq!(
        (world.command(b"r3").unwrap(), world.fold.state()),
        (vec!["reply 1 3 4: 5 3".to_owned()], b"r1r3".to_vec())
    );
}

#[test]
fn mark_changes_the_version() {
    let mut world = TestFold::open(Policy::default());
    world.command(b"_").unwrap();
    assert!(world.tell(Kind::Mark, &mark_of(2)).is_empty());
    world.command(b"_").unwrap();
    assert_eq!(world.fold.service::<Keeper>().versions, [1, 2]);
    match world.apply(world.header(Kind::Mark), &mark_of(3)) {
        Err(EngineError::Version { version, sequence, first, last }) => {
            assert_eq!((version, sequence, first, last), (3, 5, 1, 2))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn first_fault_rules_hold() {
    let rules = |panic_is_dead_letter, unhandled_stops| FaultRules { panic_is_dead_letter, unhandled_stops };
    let mut world = TestFold::open(Policy::default());
    for later in [rules(false, true), rules(true, true)] {
        world.tell(Kind::Mark, &payload_of(Mark::FaultRules(later)));
    }
    // Under the later rules this would be a dead letter.
    assert!(matches!(world.command(b"p"), Err(EngineError::HandlerPanicked { .. })));
}

fn mark_of(version: u32) -> Vec<u8> {
    payload_of(Mark::ServiceVersion { version })
}

fn payload_of(mark: Mark<'_>) -> Vec<u8> {
    let mut payload = [0; mark::LENGTH_MAX];
    let length = mark.write_to(&mut payload);
    payload[..length].to_vec()
}

struct Second;

impl Service for Second {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |_, _, _| Ok(()));
    }

    fn versions() -> RangeInclusive<u32> {
        2..=2
    }

    fn snapshot(&self, _state: &mut Vec<u8>) {}

    fn restore(&mut self, _state: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn missing_version_is_an_error() {
    let mut world = TestFold { fold: Fold::new(Second, Policy::default()), session_seq: 0 };
    let open = SessionOpen { token: 7, window_messages: 4, shared: false, notices_seen: 0 };
    world.tell(Kind::SessionOpen, &open.to_bytes());
    match world.command(b"_") {
        Err(EngineError::Version { version, sequence, first, last }) => {
            assert_eq!((version, sequence, first, last), (1, 2, 2, 2));
        }
        other => panic!("{other:?}"),
    }
    world.tell(Kind::Mark, &mark_of(2));
    assert_eq!(world.command(b"_").unwrap(), ["reply 1 2 4: 0 "]);
}

#[test]
fn undecodable_payload_is_a_fault() {
    let reason = "pair at byte 0 needs 2 bytes, but only 1 are left";
    let mut world = TestFold::open(Policy::default());
    let outputs = world.command_of(PAIR, b"1").unwrap();
    assert_eq!(outputs, [format!("reply 1 1 2: Malformed 0 {reason}"), format!("dead 2 1 1 {PAIR}: {reason}")]);
    assert_eq!(world.command_of(PAIR, b"12").unwrap(), ["reply 1 2 3: 0 "]);
    assert_eq!(world.fold.state(), b"12");
    let mut world = TestFold::open(Policy { on_unhandled: OnUnhandled::Stop, ..Policy::default() });
    match world.command_of(PAIR, b"1") {
        Err(EngineError::Unhandled { message, sequence, session, session_seq, reason: found }) => {
            assert_eq!((message.as_str(), sequence, session, session_seq), ("schema 3 template 9", 2, 1, 1));
            assert_eq!(found, reason);
        }
        other => panic!("{other:?}"),
    }
}

struct NoState;

impl ReleasedTransactions for NoState {
    fn apply(&mut self, _transaction: &ReleasedTransaction<'_>) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self, _state: &mut Vec<u8>) {}

    fn restore(&mut self, _state: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn bare_timer_frame_is_rejected() {
    let mut world = TestFold { fold: fold_of_transactions(NoState), session_seq: 0 };
    assert!(!world.fold.runs_handlers());
    let header = FrameHeader { session: 0, ..world.header(Kind::Timer) };
    match world.apply(header, &TimerFired { timer: 3, deadline_ns: 50 }.to_bytes()) {
        Err(EngineError::Corrupt { sequence: 1, reason }) => {
            assert_eq!(reason, "a timer whose handler has not run, or that is not set");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn timer_without_handler_stops() {
    let mut world = TestFold::open(Policy::default());
    let message = TimerMessage { schema: 1 << 31 | 5, payload: (*b"any").into() };
    world.fold.timers.restore(9, 50);
    assert!(world.fold.timers.restore_message(9, message));
    for error in [
        world.fold.check_timers(),
        world
            .apply(
                FrameHeader { session: 0, ..world.header(Kind::Timer) },
                &TimerFired { timer: 9, deadline_ns: 50 }.to_bytes(),
            )
            .map(drop),
    ] {
        match error {
            Err(EngineError::MissingMessage { message, sequence, session: 0, session_seq: 0, reason }) => {
                assert_eq!(message, "timer typed message 0x80000005 (due at 1970-01-01T00:00:00.000000050Z)");
                assert!(reason.contains("no handler takes timers") && (1..=2).contains(&sequence), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}
