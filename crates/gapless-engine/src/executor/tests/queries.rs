//! Queries: their waits, deadlines and limits, and clients that do not read or are gone.

use super::*;
use crate::outputs::Outputs;
use crate::pending_query::{PendingQuery, SpeculativeAnswer};
use crate::state::speculative_executor::SpeculativeExecutor;
use crate::state::transaction_applier::TransactionApplier;
use crate::state::{StateHandlers, StateService, factory_of};
use crate::store::{Store, StoreLimits};
use gapless_agent::monotonic::monotonic_ns;
use gapless_message::request_description::{Describe, RequestKind};
use gapless_message::{Message, NoRefusal, contract};
use gapless_stream::Sequencer;
use gapless_stream::messages::QueryMessage;
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::transactions::Transactions;
use gapless_wire::control::{Refusal, RefusalCode};
use gapless_wire::descriptor::{REFUSED_FLAG, TRANSACTION_FLAG};

#[derive(Debug, PartialEq)]
struct Answer {
    number: u64,
    /// Last handled sequence.
    sequence: u64,
    result: Result<usize, (RefusalCode, u64)>,
}

impl TestExecutor {
    /// The answer has `length` bytes.
    fn ask(&mut self, life: &Arc<()>, number: u64, after: u64, length: u32) {
        let mut payload = Vec::new();
        contract::encode_request(&AskBytes(length), &mut payload).unwrap();
        let query = QueryMessage {
            connection: PUBLISHER,
            publisher: Arc::downgrade(life),
            number,
            after,
            wait_ns_max: 1000,
            schema: contract::name_key("AskBytes"),
            encoding: Encoding::Postcard,
            payload,
        };
        self.from_sequencer.push(ResponderMessage::Query(Box::new(query))).unwrap();
    }

    fn answers(&mut self, count_max: usize) -> Vec<Answer> {
        let mut answers = Vec::new();
        while answers.len() < count_max
            && let Some(length) = self.replies.next_length().unwrap()
        {
            let mut bytes = vec![0; aligned_length(length)];
            self.replies.copy(&mut bytes);
            let frame = Frame::parse(&bytes).unwrap();
            assert_eq!((frame.verify(), frame.kind(), frame.session()), (Ok(()), Kind::Answer, 0));
            let result = if frame.flags() & REFUSED_FLAG == 0 {
                Ok(contract::decode_answer::<AskBytes>(frame.payload()).unwrap().unwrap().len())
            } else {
                let refusal = Refusal::from_bytes(frame.payload()).unwrap();
                Err((refusal.code, refusal.detail))
            };
            answers.push(Answer { number: frame.session_seq(), sequence: frame.sequence(), result });
            self.replies.advance(length);
        }
        self.replies.release();
        answers
    }

    /// Name of the described request, read from the ring; `None` before the answer.
    fn describe(&mut self, life: &Arc<()>, number: u64) -> Option<String> {
        let describe = Describe { kind: RequestKind::Query, key: contract::name_key("AskBytes") };
        let mut payload = Vec::new();
        contract::encode_request(&describe, &mut payload).unwrap();
        let query = QueryMessage {
            connection: PUBLISHER,
            publisher: Arc::downgrade(life),
            number,
            after: 0,
            wait_ns_max: 1000,
            schema: contract::name_key(Describe::TYPE_NAME),
            encoding: Encoding::Postcard,
            payload,
        };
        self.from_sequencer.push(ResponderMessage::Query(Box::new(query))).unwrap();
        self.poll(0);
        let length = self.replies.next_length().unwrap()?;
        let mut bytes = vec![0; aligned_length(length)];
        self.replies.copy(&mut bytes);
        self.replies.advance(length);
        self.replies.release();
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.session_seq(), number);
        Some(contract::decode_answer::<Describe>(frame.payload()).unwrap().unwrap().request.unwrap().name)
    }

    fn query_counts(&self) -> (u64, u64) {
        (self.count("queries"), self.count("queries_waiting"))
    }
}

fn answer(number: u64, sequence: u64, length: usize) -> Answer {
    Answer { number, sequence, result: Ok(length) }
}

/// Queries must not make what every command moves longer.
#[test]
fn outcomes_stay_short() {
    assert_eq!((size_of::<crate::outputs::ExecutionOutcome>(), size_of::<Reject>()), (40, 32));
}

#[test]
fn queries_wait_for_handled_frames() {
    let (mut world, life) = (TestExecutor::new(), Arc::new(()));
    world.append_command(SCHEMA, Fragment::WHOLE, b"a");
    world.ask(&life, 1, 0, 5);
    world.ask(&life, 2, 2, 6);
    world.ask(&life, 3, 1, 7);
    assert_eq!((world.poll(0), world.answers(9)), (2, vec![answer(1, 1, 5), answer(3, 1, 7)]));
    assert_eq!((world.query_counts(), world.count("last_sequence")), ((2, 1), 1));
    world.release();
    world.ask(&life, 4, 2, 8);
    // One batch: the frame, then the queries of it.
    assert_eq!(world.poll(0), 3);
    assert_eq!(world.answered(1), [1]);
    assert_eq!(world.answers(9), [answer(2, 2, 6), answer(4, 2, 8)]);
    assert_eq!((world.query_counts(), world.waits_ns()), ((4, 0), None));
}

#[test]
fn wait_ends_at_its_deadline() {
    let (mut world, life) = (TestExecutor::new(), Arc::new(()));
    world.ask(&life, 7, u64::MAX, 5);
    assert_eq!((world.poll(0), world.waits_ns()), (0, Some(1000)));
    assert_eq!((world.poll(999), world.answers(9)), (0, vec![]));
    let behind = Answer { number: 7, sequence: 1, result: Err((RefusalCode::Behind, u64::MAX)) };
    assert_eq!((world.poll(1), world.answers(9), world.waits_ns()), (1, vec![behind], None));
    assert_eq!(world.query_counts(), (1, 0));
}

#[test]
fn unread_answers_hold_queries_back() {
    let (mut world, life) = (TestExecutor::new(), Arc::new(()));
    let length = LONG_REPLY as u32 - 5;
    for number in 1..=8 {
        world.ask(&life, number, 0, length);
    }
    // Four answers fill the ring, and the fifth waits for room.
    while world.poll(0) > 0 {}
    assert_eq!((world.query_counts(), world.count("messages_waiting")), ((5, 3), 1));
    world.send(1, b"a");
    world.poll(0);
    assert_eq!((world.count("last_sequence"), world.query_counts()), (2, (5, 3)), "the service goes on");
    let mut numbers = Vec::new();
    while numbers.len() < 8 {
        world.poll(SECOND_NS / 1000);
        numbers.extend(world.answers(1).into_iter().map(|answer| answer.number));
        if numbers.len() == 5 {
            assert_eq!(world.answered(1), [1], "the command's reply is next");
        }
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!((world.query_counts(), world.count("messages_waiting")), ((8, 0), 0));
}

#[test]
fn too_many_waiting_queries_are_busy() {
    let (mut world, life) = (TestExecutor::new(), Arc::new(()));
    let limit = QUERIES_WAITING_MAX as u64;
    for number in 1..=limit {
        world.ask(&life, number, 9, 5);
        assert_eq!(world.poll(0), 0);
    }
    world.ask(&life, limit + 1, 0, 5);
    world.poll(0);
    let busy = Answer { number: limit + 1, sequence: 1, result: Err((RefusalCode::Busy, limit)) };
    assert_eq!((world.answers(9), world.query_counts()), (vec![busy], (0, limit)));
    world.poll(1000);
    let number = world.answers(1)[0].number;
    assert_eq!(number, 1, "their deadlines end them");
    while world.query_counts().1 > 0 {
        world.poll(SECOND_NS / 1000);
        world.answers(usize::MAX);
    }
    world.ask(&life, limit + 2, 0, 5);
    world.poll(0);
    assert_eq!(world.answers(usize::MAX).pop(), Some(answer(limit + 2, 1, 5)));
}

#[test]
fn queries_of_gone_clients_are_dropped() {
    let (mut world, life) = (TestExecutor::new(), Arc::new(()));
    world.ask(&life, 1, 9, 5);
    for number in 2..=7 {
        world.ask(&life, number, 0, LONG_REPLY as u32 - 5);
    }
    world.poll(0);
    assert_eq!(world.query_counts(), (5, 2), "one waits for a frame, one for room");
    drop(life);
    world.poll(999);
    assert_eq!(world.query_counts(), (5, 2));
    world.poll(SECOND_NS);
    assert_eq!(world.query_counts(), (5, 0));
}

#[test]
fn answers_have_a_longest_length() {
    let (mut world, life) = (TestExecutor::new(), Arc::new(()));
    let limit = crate::OUTPUT_LENGTH_MAX as u32;
    // An answer begins with its kind and its contract.
    world.ask(&life, 1, 0, limit - 5 + 1);
    world.poll(0);
    let too_long = Err((RefusalCode::ReplyTooLong, u64::from(limit) + 1));
    assert_eq!(world.answers(9), [Answer { number: 1, sequence: 1, result: too_long }]);
}

/// Bytes whose query takes longer than a poll may.
const SLOW: u32 = 77;

/// Answers with as many bytes more as it has commands.
struct Counted(crate::store::Counter);

impl StateService for Counted {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(SCHEMA, |it: &Self, store, _, _| {
            store.add(it.0, 1)?;
            Ok(())
        });
        handlers.query(|it: &Self, store, AskBytes(length), _| {
            let begun_ns = monotonic_ns();
            while length == SLOW && monotonic_ns() - begun_ns <= POLL_NS_MAX {}
            Ok::<_, NoRefusal>(vec![7; length as usize + store.value(it.0) as usize])
        });
    }
}

/// The executor of a leader's service, and that of its handlers, in term 0.
fn leading() -> (TestExecutor, SpeculativeExecutor) {
    let make = factory_of(|store: &mut Store| Counted(store.counter(1, "commands")));
    let mut applier = TransactionApplier::new(make, StoreLimits::default());
    let mut handlers = applier.speculative_executor(Waker::new().unwrap());
    handlers.lead(0, 1);
    let mut world = TestExecutor::of(Fold::applying_transactions(Box::new(applier)), |_| {});
    world.poll(0);
    assert!(handlers.poll(1));
    (world, handlers)
}

impl TestExecutor {
    /// Appends the transaction of a command, not released.
    fn run(&mut self, handlers: &mut SpeculativeExecutor) {
        let sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
        let (schema, flags, mut out) = (SCHEMA, Encoding::Opaque.flags(), Vec::new());
        let header = FrameHeader { schema, flags, session: SESSION, ..FrameHeader::default() };
        handlers.command(&header, b"", &sequencer, 1024, &mut out);
        assert!(crate::transaction_layout::read(&out, &mut Outputs::default()).is_ok());
        self.session_seq += 1;
        let (kind, flags, session_seq) = (Kind::Command, TRANSACTION_FLAG, self.session_seq);
        self.append(FrameHeader { kind, flags, session_seq, schema, ..FrameHeader::default() }, &out);
    }
}

#[test]
fn leader_answers_after_release() {
    let ((mut world, mut handlers), life) = (leading(), Arc::new(()));
    world.ask(&life, 1, 0, 5);
    assert_eq!(world.poll(0), 0, "the state is elsewhere");
    assert!(handlers.poll(1));
    handlers.answer_queries(1, 1);
    assert_eq!((world.poll(0), world.answers(9)), (1, vec![answer(1, 1, 5)]), "all that it has read is released");

    world.run(&mut handlers);
    world.ask(&life, 2, 0, 5);
    world.poll(0);
    assert!(handlers.poll(2));
    handlers.answer_queries(2, 2);
    assert_eq!((world.poll(0), world.answers(9), world.query_counts()), (0, vec![], (1, 1)), "not released");
    world.run(&mut handlers);
    world.release();
    world.poll(0);
    assert_eq!(world.answered(2), [1, 2]);
    assert_eq!(world.answers(9), [answer(2, 2, 6)], "of the state without the next command");
    assert_eq!((world.query_counts(), world.count("last_sequence")), ((2, 0), 3));

    // Its wait ends, too.
    world.run(&mut handlers);
    world.ask(&life, 3, 0, 5);
    world.poll(0);
    assert!(handlers.poll(4));
    handlers.answer_queries(4, 4);
    world.poll(0);
    assert_eq!(world.waits_ns(), Some(SECOND_NS), "of a millisecond as of a second");
    world.poll(SECOND_NS);
    let behind = Answer { number: 3, sequence: 3, result: Err((RefusalCode::Behind, 4)) };
    assert_eq!((world.answers(9), world.query_counts()), (vec![behind], (3, 0)));
}

#[test]
fn queries_follow_the_state() {
    let ((mut world, mut handlers), life) = (leading(), Arc::new(()));
    world.run(&mut handlers);
    world.ask(&life, 1, 0, 5);
    world.poll(0);
    // The lead is lost before the query is answered, and the command is not released.
    handlers.follow(2);
    world.ask(&life, 2, 0, 5);
    assert_eq!((world.poll(0), world.answers(9), world.query_counts()), (0, vec![], (0, 2)));
    world.release();
    world.poll(0);
    world.poll(0);
    assert_eq!(world.answered(1), [1]);
    let mut answers = world.answers(9);
    answers.sort_by_key(|answer| answer.number);
    assert_eq!(answers, [answer(1, 2, 6), answer(2, 2, 6)], "the command is released after all");
}

/// The lead is lost, and no frame is released.
#[test]
fn wait_for_release_ends() {
    let ((mut world, mut handlers), life) = (leading(), Arc::new(()));
    world.run(&mut handlers);
    world.ask(&life, 1, 0, 5);
    world.poll(0);
    handlers.follow(2);
    let gone = Arc::new(());
    for number in 2..=300 {
        world.ask(if number == 2 { &gone } else { &life }, number, 0, 5);
        world.poll(0);
    }
    assert_eq!((world.answers(9), world.query_counts()), (vec![], (0, 300)));
    assert_eq!(world.waits_ns(), Some(SECOND_NS), "of a millisecond as of a second");
    drop(gone);
    let mut answers = Vec::new();
    world.poll(SECOND_NS);
    while world.query_counts().1 > 0 || world.count("messages_waiting") > 0 {
        answers.extend(world.answers(usize::MAX));
        world.poll(SECOND_NS / 1000);
    }
    answers.extend(world.answers(usize::MAX));
    answers.sort_by_key(|answer| answer.number);
    assert_eq!(answers.len(), 299, "none for a client that is gone");
    assert!(answers.iter().all(|answer| answer.result == Err((RefusalCode::Behind, 2))), "{answers:?}");

    // Later ones wait, too, until the frame is released.
    world.ask(&life, 301, 0, 5);
    world.poll(0);
    world.release();
    world.poll(0);
    assert_eq!(world.answered(1), [1]);
    assert_eq!((world.answers(9), world.query_counts().1), (vec![answer(301, 2, 6)], 0));
}

/// Neither lent to the leader's handlers, nor after the lead is lost.
#[test]
fn description_needs_no_state() {
    let ((mut world, mut handlers), life) = (leading(), Arc::new(()));
    assert_eq!(world.describe(&life, 1).as_deref(), Some("AskBytes"));
    world.run(&mut handlers);
    handlers.follow(2);
    assert_eq!(world.describe(&life, 2).as_deref(), Some("AskBytes"));
    assert_eq!(world.query_counts(), (2, 0));
}

/// More than are lent at once, for a client whose ring takes few answers.
#[test]
fn lent_queries_make_progress() {
    let ((mut world, mut handlers), life) = (leading(), Arc::new(()));
    for number in 1..=700 {
        world.ask(&life, number, 0, 0);
        world.poll(0);
    }
    assert_eq!(world.query_counts(), (0, 700));
    let mut numbers = Vec::new();
    while numbers.len() < 700 {
        assert!(handlers.poll(1));
        handlers.answer_queries(1, 1);
        world.poll(SECOND_NS / 1000);
        numbers.extend(world.answers(usize::MAX).into_iter().map(|answer| answer.number));
    }
    numbers.sort_unstable();
    assert_eq!((numbers, world.query_counts()), ((1..=700).collect::<Vec<_>>(), (700, 0)));
}

#[test]
fn slow_queries_leave_turns_to_commands() {
    let ((mut world, mut handlers), life) = (leading(), Arc::new(()));
    for number in 1..=3 {
        world.ask(&life, number, 0, SLOW);
        world.poll(0);
    }
    let answered = [(); 6].map(|()| {
        assert!(handlers.poll(1));
        handlers.answer_queries(1, 1);
        world.poll(0);
        world.query_counts().0
    });
    assert_eq!(answered, [1, 1, 2, 2, 3, 3]);
}

/// Lends a query, and returns it with an answer.
fn answered(queries: &mut Queries, number: u64, lineage: u64, length: usize) -> PendingQuery {
    let (connection, life, payload) = (PUBLISHER, Arc::new(()), Vec::new());
    let (schema, encoding, publisher) = (5, Encoding::Postcard, Arc::downgrade(&life));
    let query = QueryMessage { connection, publisher, number, after: 0, wait_ns_max: 1, schema, encoding, payload };
    queries.lent(PUBLISHER);
    let bytes = Ok(vec![1; length]);
    let answer = SpeculativeAnswer { sequence: 9, time_ns: 9, lineage, bytes, handler_ns: 3 };
    PendingQuery { query: Box::new(query), deadline_ns: 1, release_awaited: 0, answer: Some(answer) }
}

#[test]
fn waiting_answers_are_bounded() {
    for (length, lent_max) in [(crate::OUTPUT_LENGTH_MAX, 16), (10, 256)] {
        let (mut queries, mut lent) = (Queries::default(), 0);
        while queries.may_lend() {
            let mut at_once = Vec::new();
            while queries.may_lend() {
                lent += 1;
                at_once.push(answered(&mut queries, lent, 0, length));
            }
            assert!(at_once.len() <= 16, "each may have the longest answer");
            queries.take_lent(at_once, 0);
        }
        assert_eq!(lent, lent_max);
        assert!(lent as usize * length <= 16 << 20);
    }
}

#[test]
fn rebuilt_state_voids_answers() {
    let mut queries = Queries::default();
    let lent = vec![answered(&mut queries, 1, 0, 100), answered(&mut queries, 2, 1, 100)];
    queries.take_lent(lent, 0);
    let ready = |queries: &Queries| queries.ready.iter().map(|pending| pending.query.number).collect::<Vec<_>>();
    assert_eq!((ready(&queries), queries.lent_ns), (vec![2], 6), "of another lineage");
    queries.keep_lineage(1);
    assert_eq!(ready(&queries), [2, 1]);
    assert!(queries.ready.iter().all(|pending| pending.answer.is_none()), "they are asked again");
    assert!(queries.may_lend() && queries.next_deadline_ns().is_none());
}
