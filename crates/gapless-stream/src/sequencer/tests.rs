//! Decisions on each frame, the sequencer's state, and that a fold of the stream gives the same state.

use super::*;
use gapless_wire::descriptor::UNHANDLED_FLAG;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length, mark, stamp};

const EXPIRY_NS: u64 = 30_000_000_000;
const ONE: ConnectionId = ConnectionId(1);
const OTHER: ConnectionId = ConnectionId(2);

fn frame(header: &FrameHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    writer.finish(header, payload.len());
    bytes
}

fn of_kind(kind: Kind, session: u64, session_seq: u64, payload: &[u8]) -> Vec<u8> {
    frame(&FrameHeader { kind, session, session_seq, ..FrameHeader::default() }, payload)
}

fn event(session: u64, session_seq: u64) -> Vec<u8> {
    of_kind(Kind::Event, session, session_seq, b"an event")
}

fn open_payload(token: u128, shared: bool) -> [u8; SessionOpen::LENGTH] {
    SessionOpen { token, window_messages: 64, shared, notices_seen: 0 }.to_bytes()
}

fn timer_request(session: u64, session_seq: u64, timer: u64, deadline_ns: u64) -> Vec<u8> {
    of_kind(Kind::TimerRequest, session, session_seq, &TimerFired { timer, deadline_ns }.to_bytes())
}

struct World {
    sequencer: Sequencer,
    stream: Vec<Vec<u8>>,
}

impl World {
    fn new(rules: SequencerRules) -> Self {
        Self { sequencer: Sequencer::new(rules), stream: Vec::new() }
    }

    fn of_stream() -> Self {
        Self::new(SequencerRules::of_stream(EXPIRY_NS))
    }

    fn put(&mut self, mut bytes: Vec<u8>, epoch_ns: u64) -> u64 {
        let (sequence, timestamp_ns) = self.sequencer.stamp(epoch_ns);
        stamp(&mut bytes, sequence, timestamp_ns, self.sequencer.term());
        self.stream.push(bytes);
        sequence
    }

    fn offer_at(&mut self, mut bytes: Vec<u8>, connection: ConnectionId, epoch_ns: u64) -> Decision {
        let decision = self.sequencer.decide(&Frame::parse(&bytes).unwrap(), connection, epoch_ns);
        if decision == Decision::AppendRefused {
            let header = Frame::parse(&bytes).unwrap().header();
            let payload = Frame::parse(&bytes).unwrap().payload().to_vec();
            bytes = frame(&FrameHeader { flags: header.flags | REFUSED_FLAG, ..header }, &payload);
        }
        if matches!(decision, Decision::Append | Decision::AppendRefused) {
            self.put(bytes, epoch_ns);
        }
        decision
    }

    fn offer(&mut self, bytes: Vec<u8>, connection: ConnectionId) -> Decision {
        self.offer_at(bytes, connection, 0)
    }

    fn open_at(&mut self, token: u128, connection: ConnectionId, shared: bool, epoch_ns: u64) -> u64 {
        let payload = open_payload(token, shared);
        let bytes = of_kind(Kind::SessionOpen, 0, 0, &payload);
        assert_eq!(self.sequencer.decide(&Frame::parse(&bytes).unwrap(), connection, epoch_ns), Decision::Append);
        let session = self.sequencer.last_sequence() + 1;
        let header = FrameHeader { kind: Kind::SessionOpen, session, ..FrameHeader::default() };
        self.put(frame(&header, &payload), epoch_ns);
        self.sequencer.open(session, &SessionOpen::from_bytes(&payload).unwrap(), connection);
        session
    }

    fn open(&mut self, token: u128) -> u64 {
        self.open_at(token, ONE, false, 0)
    }

    fn note(&mut self, mark: Mark<'_>) -> u64 {
        let mut payload = [0; mark::LENGTH_MAX];
        let length = mark.write_to(&mut payload);
        let sequence = self.put(of_kind(Kind::Mark, 0, 0, &payload[..length]), 0);
        self.sequencer.note(sequence, mark);
        sequence
    }

    fn fire(&mut self, timer: Timer) {
        let payload = TimerFired { timer: timer.timer, deadline_ns: timer.deadline_ns }.to_bytes();
        self.put(of_kind(Kind::Timer, timer.owner, 0, &payload), timer.deadline_ns);
        self.sequencer.take_timer(timer);
    }

    fn folded(&self) -> Sequencer {
        let mut folded = Sequencer::new(*self.sequencer.rules());
        self.stream.iter().for_each(|bytes| folded.observe(&Frame::parse(bytes).unwrap()));
        folded
    }

    fn check_fold(&self) {
        let (here, folded) = (&self.sequencer, self.folded());
        let position = |each: &Sequencer| (each.last_sequence(), each.last_timestamp_ns(), each.term());
        assert_eq!(position(here), position(&folded));
        let sessions = |each: &Sequencer| {
            let sessions = each.sessions().into_iter().map(|(session, state)| {
                (session, state.token, state.next_session_seq, state.last_active_ns, state.shared)
            });
            sessions.collect::<Vec<_>>()
        };
        assert_eq!(sessions(here), sessions(&folded));
        assert!(here.timers().eq(folded.timers()) && here.deadlines == folded.deadlines);
        assert_eq!((here.feeds().all(), here.is_halted()), (folded.feeds().all(), folded.is_halted()));
        assert_eq!(here.session_count(), folded.session_count());
    }
}

fn is_malformed(decision: Decision) -> bool {
    matches!(decision, Decision::Malformed(_))
}

#[test]
fn session_frames_taken_once_in_order() {
    let mut world = World::of_stream();
    let session = world.open(7);
    assert_eq!(session, 1);
    let open = world.sequencer.sessions().into_iter().map(|(session, state)| (session, state.token));
    assert_eq!(Vec::from_iter(open), [(session, 7)]);
    assert_eq!(world.offer(event(session, 1), ONE), Decision::Append);
    assert_eq!(world.offer(event(session, 1), ONE), Decision::Repeat);
    assert_eq!(world.offer(event(session, 3), ONE), Decision::Gap { next_session_seq: 2 });
    assert!(is_malformed(world.offer(event(session, 0), ONE)));
    assert_eq!(world.offer(of_kind(Kind::Command, session, 2, b"a command"), ONE), Decision::Append);
    assert_eq!(world.offer(of_kind(Kind::Acknowledge, session, 3, &[0; 8]), ONE), Decision::Append);
    assert_eq!(world.sequencer.prefetch(&[session, session + 1]), 2);
    assert_eq!(world.sequencer.expected(session, ONE), Ok(4));
    world.sequencer.count_message(session, 3);
    assert_eq!(world.sequencer.expected(session, ONE), Ok(7));
    assert_eq!(world.offer(of_kind(Kind::SessionClose, session, 7, b""), ONE), Decision::Append);
    assert_eq!(world.offer(event(session, 8), ONE), Decision::SessionUnknown);
    assert_eq!((world.sequencer.session_count(), world.sequencer.session(session)), (0, None));
    assert_eq!(world.open(7), 6);
    world.check_fold();
}

#[test]
fn session_belongs_to_its_publisher() {
    let mut world = World::of_stream();
    let session = world.open(7);
    for connection in [OTHER, ConnectionId(0)] {
        assert_eq!(world.offer(event(session, 1), connection), Decision::SessionUnknown);
        assert_eq!(world.sequencer.expected(session, connection), Err(Decision::SessionUnknown));
    }
    assert_eq!(world.offer(event(session + 1, 1), ONE), Decision::SessionUnknown);
    let reopen = Decision::Reopen { session, token: 7, next_session_seq: 1 };
    assert_eq!(world.offer(of_kind(Kind::SessionOpen, 0, 0, &open_payload(7, true)), OTHER), reopen);
    world.sequencer.attach(session, OTHER, true);
    assert_eq!(world.offer(event(session, 1), ONE), Decision::SessionUnknown);
    assert_eq!(world.offer(event(session, 1), OTHER), Decision::Append);
    assert!(!world.sequencer.is_detached(session));
    world.sequencer.detach(ONE);
    assert_eq!(world.sequencer.expected(session, OTHER), Ok(2));
    world.sequencer.detach(OTHER);
    assert!(world.sequencer.is_detached(session) && !world.sequencer.is_detached(session + 1));
    assert_eq!(world.offer(event(session, 2), OTHER), Decision::SessionUnknown);
    world.sequencer.attach(session, ONE, false);
    assert_eq!(world.offer(event(session, 2), ONE), Decision::Append);
    world.check_fold();
}

#[test]
fn exclusive_open_ends_sharing() {
    let mut world = World::of_stream();
    let session = world.open_at(7, ONE, true, 0);
    let third = ConnectionId(3);
    let users =
        |world: &World| [ONE, OTHER, third].map(|connection| world.sequencer.expected(session, connection).is_ok());
    world.sequencer.attach(session, OTHER, true);
    assert_eq!(users(&world), [true, true, false]);
    for connection in [third, OTHER, ONE, ONE] {
        world.sequencer.attach(session, connection, true);
        assert_eq!(users(&world), [true, true, true], "{connection:?}");
        assert_eq!(world.sequencer.session(session).unwrap().sharing.len(), 2);
    }
    assert_eq!(world.offer(event(session, 1), OTHER), Decision::Append);
    assert_eq!(world.offer(event(session, 1), third), Decision::Repeat);
    for (gone, left) in [(OTHER, [true, false, true]), (ONE, [false, false, true]), (third, [false; 3])] {
        world.sequencer.detach(gone);
        assert_eq!(users(&world), left);
    }
    for connection in [ONE, OTHER] {
        world.sequencer.attach(session, connection, true);
    }
    world.sequencer.attach(session, third, false);
    assert_eq!(users(&world), [false, false, true]);
    world.sequencer.attach(session, ONE, true);
    world.sequencer.detach_all();
    assert!(users(&world) == [false; 3] && world.sequencer.is_detached(session));
    world.check_fold();
}

#[test]
fn token_names_one_session() {
    let mut rules = SequencerRules::of_stream(EXPIRY_NS);
    rules.sessions_max = 2;
    let mut world = World::new(rules);
    let (first, second) = (world.open(7), world.open_at(8, OTHER, false, 0));
    assert_eq!(world.offer(event(first, 1), ONE), Decision::Append);
    let mut open =
        |session, token| world.offer(of_kind(Kind::SessionOpen, session, 0, &open_payload(token, false)), ONE);
    let reopen = |session, token, next_session_seq| Decision::Reopen { session, token, next_session_seq };
    assert_eq!((open(0, 7), open(0, 8)), (reopen(first, 7, 2), reopen(second, 8, 1)));
    assert_eq!((open(first, 7), open(second, 7)), (reopen(first, 7, 2), Decision::SessionUnknown));
    assert_eq!((open(9, 9), open(0, 9)), (Decision::SessionUnknown, Decision::Limit { token: 9 }));
    world.sequencer.close_expired(second);
    assert_eq!(world.sequencer.session_count(), 1);
    world.sequencer.rules.sessions_max = 1;
    assert_eq!(
        world.offer(of_kind(Kind::SessionOpen, 0, 0, &open_payload(8, false)), ONE),
        Decision::Limit { token: 8 }
    );
}

#[test]
fn forbidden_frames_are_malformed() {
    let open = |session, session_seq, window_messages| {
        let payload = SessionOpen { token: 1, window_messages, shared: false, notices_seen: 0 }.to_bytes();
        of_kind(Kind::SessionOpen, session, session_seq, &payload)
    };
    let (stream, service) = (SequencerRules::of_stream(EXPIRY_NS), SequencerRules::of_service(EXPIRY_NS));
    assert_eq!((stream.takes_events, service.takes_events), (true, false));
    for rules in [stream, service] {
        let mut world = World::new(rules);
        let session = world.open(7);
        for flags in [TRANSACTION_FLAG, UNHANDLED_FLAG] {
            let forged = FrameHeader { flags, session, session_seq: 1, ..FrameHeader::default() };
            assert!(is_malformed(world.offer(frame(&forged, b""), ONE)));
        }
        for kind in [Kind::Mark, Kind::Timer, Kind::Reply, Kind::Query, Kind::Answer] {
            assert!(is_malformed(world.offer(of_kind(kind, session, 1, b""), ONE)), "{kind:?}");
        }
        assert_eq!(is_malformed(world.offer(event(session, 1), ONE)), !rules.takes_events);
        let next = 1 + u64::from(rules.takes_events);
        assert_eq!(is_malformed(world.offer(timer_request(session, next, 1, 5), ONE)), !rules.takes_events);
        assert!(is_malformed(world.offer(of_kind(Kind::SessionOpen, 0, 0, b"?"), ONE)));
        assert!(is_malformed(world.offer(open(0, 1, 64), ONE)));
        assert!(is_malformed(world.offer(open(0, 0, rules.window_messages_max + 1), ONE)));
        assert_eq!(world.offer(open(0, 0, rules.window_messages_max), ONE), Decision::Append);
        assert_eq!(is_malformed(world.offer(open(9, 0, 64), ONE)), !rules.takes_events);
    }
    assert_eq!((stream.window_messages_max, service.window_messages_max), (WINDOW_MESSAGES_MAX, 64));
    assert_eq!((stream.sessions_max, stream.timers_max), (1 << 20, 1 << 20));
}

#[test]
fn queries_have_no_place_in_the_stream() {
    let query = |session, session_seq| of_kind(Kind::Query, session, session_seq, b"a query");
    for rules in [SequencerRules::of_stream(EXPIRY_NS), SequencerRules::of_service(EXPIRY_NS)] {
        let mut world = World::new(rules);
        assert_eq!(world.offer(query(0, 1), ONE), Decision::Query, "without a session");
        let session = world.open(7);
        assert_eq!(world.offer(query(0, 1), ONE), Decision::Query);
        assert_eq!((world.sequencer.last_sequence(), world.stream.len()), (session, 1));
        for (session, session_seq) in [(session, 1), (session + 1, 1), (0, 0)] {
            assert!(is_malformed(world.offer(query(session, session_seq), ONE)), "{session} {session_seq}");
        }
        for flags in [REFUSED_FLAG, UNHANDLED_FLAG] {
            let marked = FrameHeader { kind: Kind::Query, flags, session_seq: 1, ..FrameHeader::default() };
            assert!(is_malformed(world.offer(frame(&marked, b"a query"), ONE)));
        }
    }
}

#[test]
fn timers_fire_move_and_cancel() {
    let mut world = World::of_stream();
    let (first, second) = (world.open(7), world.open(8));
    assert_eq!((world.sequencer.next_deadline_ns(), world.sequencer.due_timer(u64::MAX)), (None, None));
    let timer = |owner, timer, deadline_ns| Timer { deadline_ns, owner, timer };
    for bytes in [timer_request(first, 1, 1, 500), timer_request(second, 1, 1, 300), timer_request(first, 2, 2, 400)] {
        assert_eq!(world.offer(bytes, ONE), Decision::Append);
    }
    world.sequencer.set_timer(1, 100);
    let due = [timer(0, 1, 100), timer(second, 1, 300), timer(first, 2, 400), timer(first, 1, 500)];
    assert!(world.sequencer.timers().eq(&due));
    assert_eq!((world.sequencer.due_timer(99), world.sequencer.due_timer(100)), (None, Some(due[0])));
    world.sequencer.cancel_timer(1, 100);
    assert_eq!(world.sequencer.next_deadline_ns(), Some(300));
    assert_eq!(world.offer(timer_request(first, 3, 1, 200), ONE), Decision::Append);
    assert_eq!(world.offer(timer_request(first, 4, 2, 0), ONE), Decision::Append);
    assert!(world.sequencer.timers().eq(&[timer(first, 1, 200), timer(second, 1, 300)]));
    world.check_fold();
    world.fire(timer(first, 1, 200));
    assert!(world.sequencer.timers().eq(&[timer(second, 1, 300)]));
    world.check_fold();
    assert_eq!(world.offer(timer_request(first, 5, 1, 600), ONE), Decision::Append);
    world.fire(timer(first, 1, 200));
    assert_eq!(world.sequencer.deadlines.get(&(first, 1)), Some(&600));
    assert!(world.sequencer.timers().eq(&[timer(second, 1, 300), timer(first, 1, 600)]));
    world.check_fold();
    world.put(event(0, 0), 300);
    assert_eq!(world.sequencer.due_timer(0), Some(timer(second, 1, 300)));
    assert_eq!(world.offer(of_kind(Kind::SessionClose, second, 2, b""), ONE), Decision::Append);
    assert!(world.sequencer.timers().eq(&[timer(first, 1, 600)]));
    assert_eq!(Vec::from_iter(&world.sequencer.deadlines), [(&(first, 1), &600)]);
}

#[test]
fn own_timers_are_not_publishers() {
    let mut sequencer = Sequencer::new(SequencerRules::of_stream(EXPIRY_NS));
    sequencer.set_timer(1, 100);
    sequencer.restore_timer(Timer { deadline_ns: 50, owner: 3, timer: 1 });
    sequencer.restore_timer(Timer { deadline_ns: 60, owner: 0, timer: 2 });
    // From a transaction of a service with speculative execution.
    let header = FrameHeader { kind: Kind::Timer, flags: TRANSACTION_FLAG, ..FrameHeader::default() };
    let fired = frame(&header, &TimerFired { timer: 1, deadline_ns: 100 }.to_bytes());
    sequencer.observe(&Frame::parse(&fired).unwrap());
    assert_eq!(sequencer.timers().count(), 3);
    sequencer.forget_own_timers();
    assert!(sequencer.timers().eq(&[Timer { deadline_ns: 50, owner: 3, timer: 1 }]));
    assert_eq!(Vec::from_iter(sequencer.deadlines), [((3, 1), 50)]);
}

#[test]
fn timer_over_limit_is_refused() {
    let mut world = World::of_stream();
    world.sequencer.rules.timers_max = 2;
    let session = world.open(7);
    for (session_seq, timer, deadline_ns, decision) in [
        (1, 1, 500, Decision::Append),
        (2, 2, 600, Decision::Append),
        (3, 3, 700, Decision::AppendRefused),
        (4, 2, 650, Decision::Append),
        (5, 4, 0, Decision::Append),
        (6, 1, 0, Decision::Append),
        (7, 3, 700, Decision::Append),
    ] {
        assert_eq!(
            world.offer(timer_request(session, session_seq, timer, deadline_ns), ONE),
            decision,
            "{session_seq}"
        );
        world.check_fold();
    }
    assert_eq!(world.sequencer.timers().count(), 2);
    let header = FrameHeader { kind: Kind::TimerRequest, session, session_seq: 8, ..FrameHeader::default() };
    let refused = FrameHeader { flags: REFUSED_FLAG, ..header };
    let payload = TimerFired { timer: 1, deadline_ns: 5 }.to_bytes();
    assert!(is_malformed(world.offer(frame(&refused, &payload), ONE)));
    assert!(is_malformed(world.offer(frame(&header, b"?"), ONE)));
    assert_eq!(
        world.offer(of_kind(Kind::Event, session, 8, &payload), ONE),
        Decision::Append,
        "an event with this payload is valid"
    );
    world.check_fold();
}

#[test]
fn time_and_sequence_increase() {
    let mut sequencer = Sequencer::new(SequencerRules::of_stream(EXPIRY_NS));
    assert_eq!(
        [500, 400, 501, 503].map(|epoch_ns| sequencer.stamp(epoch_ns)),
        [(1, 500), (2, 501), (3, 502), (4, 503)]
    );
    sequencer.resume_at(90, 2_000);
    assert_eq!((sequencer.last_sequence(), sequencer.last_timestamp_ns()), (90, 2_000));
    assert_eq!(sequencer.stamp(0), (91, 2_001));
}

#[test]
fn reverted_frame_leaves_no_trace() {
    let mut world = World::of_stream();
    let session = world.open_at(7, ONE, false, 100);
    assert_eq!(world.offer_at(event(session, 1), ONE, 200), Decision::Append);
    let before = (world.sequencer.last_sequence(), world.sequencer.last_timestamp_ns());
    assert_eq!(before, (2, 200));
    assert_eq!(world.offer_at(event(session, 2), ONE, 300), Decision::Append);
    world.sequencer.take_back(session, before.1);
    assert_eq!((world.sequencer.last_sequence(), world.sequencer.last_timestamp_ns()), before);
    assert_eq!(world.offer_at(event(session, 2), ONE, 250), Decision::Append);
    assert_eq!((world.sequencer.last_sequence(), world.sequencer.last_timestamp_ns()), (3, 250));
    world.sequencer.take_stamp_back(200);
    assert_eq!((world.sequencer.stamp(0), world.sequencer.expected(session, ONE)), ((3, 201), Ok(3)));
}

#[test]
fn empty_term_is_forgotten() {
    let mut world = World::of_stream();
    world.put(event(0, 0), 0);
    world.sequencer.begin_term(4);
    assert_eq!(world.sequencer.term(), 4);
    world.sequencer.end_term();
    assert_eq!(world.sequencer.term(), 0);
    world.sequencer.begin_term(6);
    world.put(event(0, 0), 0);
    world.sequencer.end_term();
    assert_eq!(world.sequencer.term(), 6);
    world.check_fold();
}

#[test]
fn silent_sessions_expire() {
    let second_ns = EXPIRY_SCAN_INTERVAL_NS;
    let mut world = World::of_stream();
    let start_ns = 1_000 * second_ns;
    let silent = world.open_at(7, ONE, false, start_ns);
    let also = world.open_at(8, ONE, false, start_ns);
    let talking = world.open_at(9, ONE, false, start_ns);
    let shared = world.open_at(10, ONE, true, start_ns);
    let sequencer = &mut world.sequencer;
    assert!(sequencer.look_for_expired_sessions(start_ns).is_empty());
    let due_ns = start_ns + EXPIRY_NS;
    assert!(!sequencer.is_expired(silent, due_ns) && sequencer.is_expired(silent, due_ns + 1));
    assert!(!sequencer.is_expired(shared, u64::MAX) && !sequencer.is_expired(99, u64::MAX));
    assert!(sequencer.look_for_expired_sessions(due_ns - second_ns + 2).is_empty());
    assert!(sequencer.look_for_expired_sessions(due_ns + 1).is_empty());
    assert_eq!(world.offer_at(event(talking, 1), ONE, due_ns), Decision::Append);
    let sequencer = &mut world.sequencer;
    assert_eq!(sequencer.look_for_expired_sessions(due_ns + 2), [silent, also]);
    assert!(sequencer.look_for_expired_sessions(due_ns + 3).is_empty(), "the next look is a second later");
    sequencer.close_expired(also);
    assert_eq!(sequencer.look_for_expired_sessions(due_ns + 2 + second_ns), [silent]);
    assert_eq!((sequencer.session_count(), sequencer.session(also)), (3, None));
    world.put(event(0, 0), due_ns + EXPIRY_NS + 1);
    assert!(world.sequencer.is_expired(talking, 0));
}

#[test]
fn halt_and_feed_end_close_the_stream() {
    let mut world = World::of_stream();
    let state = |world: &World| {
        let sequencer = &world.sequencer;
        (sequencer.is_halted(), sequencer.is_between_feeds(), sequencer.is_closed())
    };
    assert_eq!((state(&world), world.sequencer.feed_session()), ((false, false, false), None));
    world.note(Mark::Halted { reason: "a test" });
    assert_eq!(state(&world), (true, false, true));
    world.check_fold();
    world.note(Mark::Resumed);
    assert_eq!(state(&world), (false, false, false));
    let feed_session = FeedSession::new("morning").unwrap();
    let began = world.note(Mark::FeedBegan { feed_session });
    assert_eq!((state(&world), world.sequencer.feed_session()), ((false, false, false), Some(feed_session)));
    world.note(Mark::ServiceVersion { version: 2 });
    let ended = world.note(Mark::FeedEnded { feed_session });
    assert_eq!((state(&world), world.sequencer.feed_session()), ((false, true, true), None));
    let feed = world.sequencer.feeds().newest().unwrap();
    assert_eq!((feed.first_sequence, feed.last_sequence), (began, Some(ended)));
    world.check_fold();
    let mut restored = Sequencer::new(SequencerRules::of_stream(EXPIRY_NS));
    restored.restore_feeds(world.sequencer.feeds().clone(), true);
    assert!(restored.is_halted() && restored.is_between_feeds());
    restored.forget_feeds_before(ended + 1);
    world.note(Mark::FeedBegan { feed_session: FeedSession::new("noon").unwrap() });
    assert_eq!(world.sequencer.feeds().all().len(), 2);
    world.sequencer.forget_feeds_before(ended + 1);
    assert_eq!(world.sequencer.feeds().all().len(), 1);
}
