//! Runs one command after the other, without a stream.

use super::*;
use crate::model::CommandModel;
use crate::samples::{
    Account, AccountCommand, AccountEvent, AccountRefusal, Transfer, TransferHandler, TransferRefusal, Transferred,
};
use crate::transaction::RecordedEvents;
use crate::{Aggregate, Creation, Decision};
use gapless_message::{Encoding, Message, MessageError};
use gapless_testkit::random::rounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Bench {
    writer: CommandWriter,
    sequence: u64,
}

type Events = Vec<(u64, AccountEvent)>;

impl Bench {
    fn new() -> Self {
        let model = CommandModel::new().aggregate::<Account>().handler(TransferHandler).finish().unwrap();
        let identifiers = Identifiers::new(crate::identifiers::IdentifierLimits::default());
        Self {
            writer: CommandWriter::new(model, identifiers, AggregateCache::new(None, 0), DecisionModels::new(None, 0)),
            sequence: 0,
        }
    }

    fn run(&mut self, envelope: &CommandEnvelope<'_>) -> RunResult {
        self.sequence += 1;
        let stamp =
            CommandStamp { sequence: self.sequence, time_ns: self.sequence * 10, session: 1, number: self.sequence };
        let mut bytes = Vec::new();
        let written = envelope.write_head(&mut bytes, |into| {
            into.extend_from_slice(envelope.metadata);
            Ok(())
        });
        written.unwrap();
        bytes.extend_from_slice(envelope.payload);
        self.writer.run(&stamp, &bytes, 1 << 20)
    }

    fn account(
        &mut self,
        id: u64,
        command: &AccountCommand,
        change: impl FnOnce(&mut CommandEnvelope<'_>),
    ) -> RunResult {
        let mut payload = Vec::new();
        command.encode(&mut payload).unwrap();
        let id = id.to_be_bytes();
        let mut envelope = CommandEnvelope {
            aggregate: TypeKey::of(<Account as crate::Aggregate>::NAME),
            command: TypeKey::of(AccountCommand::TYPE_NAME),
            version: 1,
            identifier: None,
            expected_version: None,
            condition: None,
            metadata: &[],
            id: &id,
            payload: &payload,
        };
        change(&mut envelope);
        self.run(&envelope)
    }

    fn transfer(&mut self, from: u64, to: u64, amount: u64) -> RunResult {
        let mut payload = Vec::new();
        Transfer { from, to, amount }.encode(&mut payload).unwrap();
        self.run(&CommandEnvelope {
            aggregate: TypeKey::NONE,
            command: TypeKey::of(Transfer::TYPE_NAME),
            version: 1,
            identifier: None,
            expected_version: None,
            condition: None,
            metadata: &[],
            id: &[],
            payload: &payload,
        })
    }

    fn answer(&self) -> (AnswerKind, u64, u32, Vec<u8>) {
        let answer = CommandAnswer::read(self.writer.answer()).unwrap();
        (answer.kind, answer.aggregate_version, answer.events, answer.rest.to_vec())
    }

    fn events(&self) -> Events {
        let mut events = RecordedEvents::read(self.sequence, self.writer.changes()).unwrap();
        let mut all = Vec::new();
        while let Some(event) = events.next_event().unwrap() {
            assert_eq!(usize::from(event.position.ordinal), all.len());
            let id = u64::from_be_bytes(event.id.try_into().unwrap());
            all.push((id, AccountEvent::decode_as(event.version, event.payload).unwrap()));
        }
        all
    }

    fn balance(&mut self, id: u64) -> Option<u64> {
        let (cache, model) = self.writer.cache_mut();
        let place = cache.find(&model.aggregates, 0, &id.to_be_bytes()).ok()?;
        let balance = cache.state(place).downcast_ref::<Account>().unwrap().balance;
        let exists = cache.version(place) > 0;
        cache.drop_if_empty(place);
        exists.then_some(balance)
    }

    fn with_accounts(ids: &[u64], balance: u64) -> Self {
        let mut bench = Self::new();
        for id in ids {
            assert_eq!(bench.account(*id, &AccountCommand::Open, |_| {}), RunResult::Answered);
            assert_eq!(bench.account(*id, &AccountCommand::Deposit(balance), |_| {}), RunResult::Answered);
        }
        bench
    }
}

#[test]
fn decision_is_encoded_and_applied() {
    let mut bench = Bench::new();
    assert_eq!(bench.account(7, &AccountCommand::Deposit(1), |_| {}), RunResult::Answered);
    assert_eq!(bench.answer(), (AnswerKind::NotFound, 0, 0, vec![]));
    assert_eq!((bench.balance(7), bench.writer.changes()), (None, &[][..]));
    assert_eq!(bench.account(7, &AccountCommand::Open, |_| {}), RunResult::Answered);
    assert_eq!(
        (bench.answer(), bench.events()),
        ((AnswerKind::Accepted, 1, 1, vec![]), vec![(7, AccountEvent::Opened)])
    );
    bench.account(7, &AccountCommand::Open, |_| {});
    assert_eq!(bench.answer(), (AnswerKind::AlreadyExists, 1, 0, vec![]));
    bench.account(7, &AccountCommand::Deposit(50), |_| {});
    bench.account(7, &AccountCommand::Withdraw(51), |_| {});
    let (answered, _, _, refusal) = bench.answer();
    assert_eq!(answered, AnswerKind::Refused);
    assert_eq!(AccountRefusal::decode(&refusal).unwrap(), AccountRefusal::Overdrawn { balance: 50 });
    assert_eq!((bench.balance(7), bench.writer.changes()), (Some(50), &[][..]));
    bench.account(7, &AccountCommand::Withdraw(20), |_| {});
    assert_eq!(bench.events(), [(7, AccountEvent::Withdrawn(20))]);
    let mut events = RecordedEvents::read(1, bench.writer.changes()).unwrap();
    assert_eq!(events.next_event().unwrap().unwrap().tags().collect::<Vec<_>>(), [("amount", &b"20"[..])]);
}

#[test]
fn expected_version_detects_conflict() {
    let mut bench = Bench::with_accounts(&[7], 10);
    bench.account(7, &AccountCommand::Deposit(1), |envelope| envelope.expected_version = Some(1));
    assert_eq!((bench.answer(), bench.balance(7)), ((AnswerKind::Conflict, 2, 0, vec![]), Some(10)));
    bench.account(7, &AccountCommand::Deposit(1), |envelope| envelope.expected_version = Some(2));
    assert_eq!((bench.answer(), bench.balance(7)), ((AnswerKind::Accepted, 3, 1, vec![]), Some(11)));
}

#[test]
fn duplicate_gets_first_answer() {
    let mut bench = Bench::with_accounts(&[7], 10);
    let identified = |envelope: &mut CommandEnvelope<'_>| envelope.identifier = Some(99);
    bench.account(7, &AccountCommand::Deposit(1), identified);
    let first = bench.writer.answer().to_vec();
    assert_eq!(bench.events(), [(7, AccountEvent::Deposited(1))]);
    assert_eq!(bench.account(7, &AccountCommand::Deposit(1), identified), RunResult::Answered);
    assert_eq!((bench.balance(7), bench.writer.answer(), bench.writer.changes()), (Some(11), &first[..], &[][..]));
    bench.account(7, &AccountCommand::Deposit(2), identified);
    assert_eq!((bench.answer().0, bench.balance(7)), (AnswerKind::IdentifierReused, Some(11)));
    bench.account(7, &AccountCommand::Deposit(1), identified);
    assert_eq!(bench.writer.answer(), first);
    let identified = |envelope: &mut CommandEnvelope<'_>| envelope.identifier = Some(100);
    bench.account(7, &AccountCommand::Withdraw(500), identified);
    let (first, changes) = (bench.writer.answer().to_vec(), bench.writer.changes().to_vec());
    let events = RecordedEvents::read(1, &changes).unwrap();
    assert_eq!(events.identity().map(|identity| identity.identifier), Some(100));
    bench.account(7, &AccountCommand::Deposit(500), |_| {});
    bench.account(7, &AccountCommand::Withdraw(500), identified);
    assert_eq!((bench.balance(7), bench.writer.answer()), (Some(511), &first[..]));
}

#[test]
fn transfer_is_all_or_nothing() {
    let mut bench = Bench::with_accounts(&[1, 2], 100);
    assert_eq!(bench.transfer(1, 2, 30), RunResult::Answered);
    let (answered, _, events, reply) = bench.answer();
    assert_eq!((answered, events, Transferred::decode(&reply).unwrap().left), (AnswerKind::Accepted, 2, 70));
    assert_eq!(bench.events(), [(1, AccountEvent::Withdrawn(30)), (2, AccountEvent::Deposited(30))]);
    assert_eq!((bench.balance(1), bench.balance(2)), (Some(70), Some(130)));

    let refused = |bench: &Bench| TransferRefusal::decode(&bench.answer().3).unwrap();
    bench.transfer(1, 2, 71);
    assert_eq!(refused(&bench), TransferRefusal::Source(Some(AccountRefusal::Overdrawn { balance: 70 })));
    bench.transfer(1, 3, 10);
    assert_eq!(refused(&bench), TransferRefusal::Target(None));
    assert_eq!((bench.balance(1), bench.balance(2), bench.balance(3)), (Some(70), Some(130), None));
    let mut looked = Bench::with_accounts(&[1, 2], 100);
    looked.account(2, &AccountCommand::Close, |_| {});
    looked.transfer(1, 2, 30);
    assert_eq!(refused(&looked), TransferRefusal::Target(Some(AccountRefusal::Closed)));
    assert_eq!((looked.balance(1), looked.writer.cache_mut().0.loads().is_empty()), (Some(100), true));
    bench.transfer(1, 1, 10);
    assert_eq!((bench.balance(1), bench.events().len()), (Some(70), 2));
}

#[test]
fn panic_is_undone_and_state_reloaded() {
    let mut bench = Bench::with_accounts(&[1, 2], 100);
    assert_eq!(bench.account(1, &AccountCommand::Panic, |_| {}), RunResult::Failed(RunFailure::Panicked));
    assert_eq!(
        (bench.balance(1), bench.writer.text()),
        (Some(100), "decide panicked: this command makes decide panic")
    );
    assert_eq!(bench.account(1, &AccountCommand::Poison, |_| {}), RunResult::Failed(RunFailure::Panicked));
    assert_eq!(bench.writer.text(), "apply panicked: this event makes apply panic");
    assert_eq!(bench.account(1, &AccountCommand::Deposit(1), |_| {}), RunResult::Later);
    assert_eq!(bench.account(2, &AccountCommand::Deposit(1), |_| {}), RunResult::Answered);
    assert_eq!(bench.transfer(2, 1, 5), RunResult::Later);
    assert_eq!(bench.balance(2), Some(101));
}

#[test]
fn malformed_command_fails_with_reason() {
    let mut bench = Bench::with_accounts(&[1], 100);
    let mut failed = |command: &AccountCommand, failure, text: &str, change: &dyn Fn(&mut CommandEnvelope<'_>)| {
        assert_eq!(bench.account(1, command, change), RunResult::Failed(failure));
        assert!(bench.writer.text().contains(text), "{}", bench.writer.text());
        assert_eq!(bench.balance(1), Some(100));
    };
    let open = AccountCommand::Open;
    failed(&open, RunFailure::Unknown, "the model has no aggregate 0x", &|envelope| {
        envelope.aggregate = TypeKey::of("x")
    });
    failed(&open, RunFailure::Unknown, "account takes AccountCommand", &|envelope| envelope.command = TypeKey::of("x"));
    failed(&open, RunFailure::Unknown, "the model has no handler of AccountCommand", &|envelope| {
        envelope.aggregate = TypeKey::NONE
    });
    failed(&open, RunFailure::Malformed, "version 9", &|envelope| envelope.version = 9);
    failed(&open, RunFailure::Malformed, "AccountCommand: ", &|envelope| envelope.payload = &[77]);
    failed(&open, RunFailure::Malformed, "no identifier", &|envelope| envelope.id = &[1]);
    failed(&open, RunFailure::Malformed, "no headers", &|envelope| envelope.metadata = &[1]);
    failed(&AccountCommand::Many(65_536), RunFailure::Inadmissible, "no more have room", &|_| {});
    let mut bench = Bench::new();
    assert_eq!(bench.account(5, &AccountCommand::Many(65_535), |_| {}), RunResult::Failed(RunFailure::Inadmissible));
    assert_eq!(bench.balance(5), None, "{}", bench.writer.text());
    let stamp = CommandStamp { sequence: 1, time_ns: 1, session: 1, number: 1 };
    assert_eq!(bench.writer.run(&stamp, &[1], 1000), RunResult::Failed(RunFailure::Malformed));
}

#[derive(Clone, Debug, PartialEq)]
struct Blob(Arc<Vec<u8>>);

impl Message for Blob {
    const TYPE_NAME: &'static str = "blob";
    const ENCODING: Encoding = Encoding::Bytes;

    fn fingerprint() -> u64 {
        0
    }

    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        into.extend_from_slice(&self.0);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        Ok(Self(Arc::new(bytes.to_vec())))
    }
}

#[derive(Clone)]
struct Flood;

static KEPT: AtomicUsize = AtomicUsize::new(0);

impl Aggregate for Flood {
    const NAME: &'static str = "flood";
    type Id = u64;
    type Command = Blob;
    type Event = Blob;
    type Refusal = ();

    fn new(_: &u64) -> Self {
        Self
    }

    fn creation(_: &Blob) -> Creation {
        Creation::CreatesIfMissing
    }

    fn decide(&self, Blob(command): Blob, decision: &mut Decision<'_, Blob>) -> Result<(), ()> {
        let (count, length) = (u32::from_le_bytes(command[..4].try_into().unwrap()), command[4]);
        let event = Blob(Arc::new(vec![7; 1 << length]));
        for _ in 0..count {
            decision.emit(event.clone()).tag("kind", "blob");
            KEPT.fetch_max(Arc::strong_count(&event.0), Ordering::Relaxed);
        }
        Ok(())
    }

    fn apply(&mut self, _: &Blob) {}
}

#[test]
fn oversized_transaction_is_refused() {
    let model = CommandModel::new().aggregate::<Account>().aggregate::<Flood>().finish().unwrap();
    let identifiers = Identifiers::new(crate::identifiers::IdentifierLimits::default());
    let writer = CommandWriter::new(model, identifiers, AggregateCache::new(None, 0), DecisionModels::new(None, 0));
    let mut bench = Bench { writer, sequence: 0 };
    let flood = |bench: &mut Bench, count: u32, length: u8| {
        let payload = [&count.to_le_bytes()[..], &[length]].concat();
        let (aggregate, command) = (TypeKey::of(Flood::NAME), TypeKey::of(Blob::TYPE_NAME));
        bench.account(1, &AccountCommand::Open, |envelope| {
            (envelope.aggregate, envelope.command, envelope.payload) = (aggregate, command, payload.leak());
        })
    };
    // At most a mebibyte: many events, a GiB of a few, one too large by itself. The first four events of a decision are
    // encoded later.
    for (count, length, kept_max) in
        [(u32::MAX >> rounds(6, 10), 0, 50_000), (u32::MAX >> rounds(8, 12), 6, 16_500), (1 << 10, 20, 6), (1, 28, 6)]
    {
        KEPT.store(0, Ordering::Relaxed);
        assert_eq!(flood(&mut bench, count, length), RunResult::Failed(RunFailure::Inadmissible));
        let (text, kept) = (bench.writer.text(), KEPT.load(Ordering::Relaxed));
        assert!(text.contains("more than 1048576 bytes") && kept <= kept_max, "{kept} events: {text}");
        assert_eq!(bench.account(2, &AccountCommand::Open, |_| {}), RunResult::Answered);
        assert_eq!(flood(&mut bench, 1000, 8), RunResult::Answered);
        assert_eq!(bench.answer().2, 1000);
    }
}
