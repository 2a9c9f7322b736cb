//! Promises of a bus, tested on each of its drives: one function for each promise.

use crate::identity::ID_LENGTH_MAX;
use crate::samples::{Account, AccountCommand, AccountRefusal, Transfer, TransferHandler, TransferRefusal};
use crate::{
    AcceptedCommand, Aggregate as _, AggregateOptions, BusError, BusOptions, CommandBus, CommandCounters, CommandError,
    CommandHandler, CommandHost, CommandModel, Draft, EventReader, HandlerContext, HandlerError, Message, PolledBus,
    Position, RetryPolicy, TypeKey,
};
use gapless_engine::ServiceHostOptions;
use gapless_testkit::random::rounds;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

macro_rules! over {
    ($($drive:ident as $module:ident: $($promise:ident),+;)+) => {$(
        mod $module {
            $(
                #[test]
                fn $promise() {
                    super::$promise::<super::$drive>();
                }
            )+
        }
    )+};
}

mod callers;
mod counting;

over! {
    Pipelined as pipelined:
        answered_commands_are_in_the_stream,
        events_are_read_live,
        panicked_apply_is_reloaded,
        restart_keeps_aggregates_and_ids,
        many_commands_are_in_flight,
        threads_get_their_own_outcomes,
        outcome_is_awaited_or_called_back,
        handler_commands_follow_its_own;
    Direct as direct:
        answered_commands_are_in_the_stream,
        events_are_read_live,
        panicked_apply_is_reloaded,
        restart_keeps_aggregates_and_ids,
        many_commands_are_in_flight;
    DirectPolled as handles_of_a_direct_bus:
        threads_get_their_own_outcomes,
        outcome_is_awaited_or_called_back,
        handler_commands_follow_its_own;
}

trait Drive: Sized {
    fn start_with(stream: ServiceHostOptions) -> Self;

    fn start(directory: Option<&Path>) -> Self {
        Self::start_with(directory.map_or_else(ServiceHostOptions::in_memory, ServiceHostOptions::in_directory))
    }

    fn call<C: Message, R: Message, F: Message>(
        &mut self,
        draft: Draft<'_, C, R, F>,
    ) -> Result<AcceptedCommand<R>, CommandError<F>>;

    fn call_all<C: Message, R: Message, F: Message>(
        &mut self,
        drafts: Vec<Draft<'_, C, R, F>>,
    ) -> Vec<Result<AcceptedCommand<R>, CommandError<F>>>;

    fn events(&self, from: Position) -> EventReader;

    fn counters(&self) -> CommandCounters;

    fn stop(self);
}

trait HandleDrive: Sized {
    fn start(model: CommandModel) -> (Self, CommandBus);

    /// May be called once.
    fn events(&mut self) -> EventReader;

    fn stop(self);
}

struct Pipelined {
    host: CommandHost,
    bus: CommandBus,
}

impl Drive for Pipelined {
    fn start_with(stream: ServiceHostOptions) -> Self {
        let host = CommandHost::start(model(), AggregateOptions::default(), stream).unwrap();
        let bus = host.bus(&BusOptions::default()).unwrap();
        Self { host, bus }
    }

    fn call<C: Message, R: Message, F: Message>(
        &mut self,
        draft: Draft<'_, C, R, F>,
    ) -> Result<AcceptedCommand<R>, CommandError<F>> {
        self.bus.call(draft)
    }

    fn call_all<C: Message, R: Message, F: Message>(
        &mut self,
        drafts: Vec<Draft<'_, C, R, F>>,
    ) -> Vec<Result<AcceptedCommand<R>, CommandError<F>>> {
        let pending: Vec<_> = drafts.into_iter().map(|draft| self.bus.send(draft)).collect();
        pending.into_iter().map(crate::PendingOutcome::wait).collect()
    }

    fn events(&self, from: Position) -> EventReader {
        self.host.events(from)
    }

    fn counters(&self) -> CommandCounters {
        self.host.counters()
    }

    fn stop(self) {
        let Self { host, bus } = self;
        host.stop().unwrap();
        let gone = bus.call(Account::command(&7, &AccountCommand::Note));
        assert_eq!(gone, Err(CommandError::Bus(BusError::Disconnected)));
    }
}

impl HandleDrive for Pipelined {
    fn start(model: CommandModel) -> (Self, CommandBus) {
        let host = CommandHost::start(model, AggregateOptions::default(), ServiceHostOptions::in_memory()).unwrap();
        let bus = host.bus(&BusOptions::default()).unwrap();
        (Self { host, bus: bus.clone() }, bus)
    }

    fn events(&mut self) -> EventReader {
        self.host.events(Position::default())
    }

    fn stop(self) {
        self.host.stop().unwrap();
    }
}

struct Direct(PolledBus);

impl Drive for Direct {
    fn start_with(stream: ServiceHostOptions) -> Self {
        Self(PolledBus::start(model(), AggregateOptions::default(), stream, &BusOptions::default()).unwrap())
    }

    fn call<C: Message, R: Message, F: Message>(
        &mut self,
        draft: Draft<'_, C, R, F>,
    ) -> Result<AcceptedCommand<R>, CommandError<F>> {
        self.0.call(draft)
    }

    fn call_all<C: Message, R: Message, F: Message>(
        &mut self,
        drafts: Vec<Draft<'_, C, R, F>>,
    ) -> Vec<Result<AcceptedCommand<R>, CommandError<F>>> {
        let tickets: Vec<_> = drafts.into_iter().map(|draft| self.0.send(draft)).collect();
        tickets.into_iter().map(|ticket| self.0.wait(ticket)).collect()
    }

    fn events(&self, from: Position) -> EventReader {
        self.0.events(from)
    }

    fn counters(&self) -> CommandCounters {
        self.0.counters()
    }

    fn stop(self) {
        let handle = self.0.handle();
        self.0.stop().unwrap();
        let gone = handle.call(Account::command(&7, &AccountCommand::Note));
        assert_eq!(gone, Err(CommandError::Bus(BusError::Disconnected)));
    }
}

struct DirectPolled {
    is_over: Arc<AtomicBool>,
    owner: JoinHandle<()>,
    bus: CommandBus,
    events: Option<EventReader>,
}

impl HandleDrive for DirectPolled {
    fn start(model: CommandModel) -> (Self, CommandBus) {
        let options = (AggregateOptions::default(), ServiceHostOptions::in_memory());
        let mut direct = PolledBus::start(model, options.0, options.1, &BusOptions { in_flight_max: 64 }).unwrap();
        let (bus, is_over) = (direct.handle(), Arc::new(AtomicBool::new(false)));
        let events = Some(direct.events(Position::default()));
        let over = Arc::clone(&is_over);
        let owner = std::thread::spawn(move || {
            while !over.load(Ordering::Acquire) {
                direct.turn_or_sleep(Duration::from_secs(100));
            }
            direct.stop().unwrap();
        });
        (Self { is_over, owner, bus: bus.clone(), events }, bus)
    }

    fn events(&mut self) -> EventReader {
        self.events.take().unwrap()
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Release);
        let last = self.bus.call(Account::command(&u64::MAX, &AccountCommand::Note));
        assert!(matches!(last, Err(CommandError::NotFound | CommandError::Bus(BusError::Disconnected))), "{last:?}");
        self.owner.join().unwrap();
    }
}

fn model() -> CommandModel {
    CommandModel::new().aggregate::<Account>().handler(TransferHandler)
}

fn answered_commands_are_in_the_stream<D: Drive>() {
    let mut bus = D::start(None);
    let opened = bus.call(Account::command(&7, &AccountCommand::Open)).unwrap();
    assert_eq!((opened.events, opened.version, opened.reply), (1, 1, ()));
    let deposited = bus.call(Account::command(&7, &AccountCommand::Deposit(50))).unwrap();
    assert!(deposited.position > opened.position && deposited.version == 2);
    let refused = bus.call(Account::command(&7, &AccountCommand::Withdraw(51)));
    assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: 50 })));
    assert_eq!(bus.call(Account::command(&8, &AccountCommand::Note)), Err(CommandError::NotFound));
    assert_eq!(bus.call(Account::command(&7, &AccountCommand::Open)), Err(CommandError::AlreadyExists));
    let conflict = bus.call(Account::command(&7, &AccountCommand::Note).expecting_version(9));
    assert_eq!(conflict, Err(CommandError::Conflict { expected: 9, found: 2 }));
    let failed = bus.call(Account::command(&7, &AccountCommand::Panic));
    assert_eq!(failed, Err(CommandError::Failed("decide panicked: this command makes decide panic".to_owned())));
    bus.call(Account::command(&8, &AccountCommand::Open)).unwrap();
    let transferred = bus.call(TransferHandler::command(&Transfer { from: 7, to: 8, amount: 20 })).unwrap();
    assert_eq!((transferred.reply.left, transferred.events), (30, 2));
    let refused = bus.call(TransferHandler::command(&Transfer { from: 7, to: 9, amount: 20 }));
    assert_eq!(refused, Err(CommandError::Refused(TransferRefusal::Target(None))));
    bus.stop();
}

fn events_are_read_live<D: Drive>() {
    let directory = tempfile::tempdir().unwrap();
    for path in [Some(directory.path().join("bank")), None] {
        let mut bus = D::start(path.as_deref());
        let headers = crate::Headers::default().with("user", "x");
        bus.call(Account::command(&1, &AccountCommand::Open).with(&headers)).unwrap();
        bus.call(Account::command(&1, &AccountCommand::Many(3))).unwrap();
        assert!(bus.call(Account::command(&1, &AccountCommand::Open)).is_err());
        let mut reader = bus.events(Position::default());
        let mut first = reader.next_transaction().unwrap().unwrap();
        assert_eq!((first.headers(), first.identity(), first.number), (headers, None, 1));
        let opened = first.next_event().unwrap().unwrap();
        assert_eq!((opened.aggregate, opened.id), (crate::TypeKey::of("account"), &1_u64.to_be_bytes()[..]));
        assert!(first.next_event().unwrap().is_none());
        let mut second = reader.next_transaction().unwrap().unwrap();
        let positions: Vec<Position> =
            std::iter::from_fn(|| second.next_event().unwrap()).map(|event| event.position).collect();
        let sequence = second.sequence;
        assert_eq!(positions, [0, 1, 2].map(|ordinal| Position { sequence, ordinal }));
        assert!(reader.next_transaction().unwrap().is_none());
        let accepted = bus.call(Account::command(&1, &AccountCommand::Deposit(7))).unwrap();
        assert_eq!(reader.next_transaction().unwrap().unwrap().sequence, accepted.position.sequence);
        let mut reader = bus.events(positions[1]);
        let mut rest = reader.next_transaction().unwrap().unwrap();
        assert_eq!(rest.next_event().unwrap().unwrap().position, positions[1]);
        bus.stop();
    }
}

fn panicked_apply_is_reloaded<D: Drive>() {
    let directory = tempfile::tempdir().unwrap();
    for path in [Some(directory.path().join("bank")), None] {
        let mut bus = D::start(path.as_deref());
        for id in [1, 2] {
            bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
            bus.call(Account::command(&id, &AccountCommand::Deposit(50))).unwrap();
        }
        let failed = bus.call(Account::command(&1, &AccountCommand::Poison));
        assert_eq!(failed, Err(CommandError::Failed("apply panicked: this event makes apply panic".to_owned())));
        let withdrawn = bus.call(Account::command(&1, &AccountCommand::Withdraw(50))).unwrap();
        assert_eq!(withdrawn.version, 3);
        assert_eq!(bus.call(Account::command(&2, &AccountCommand::Deposit(1))).unwrap().version, 3);
        bus.stop();
    }
}

fn restart_keeps_aggregates_and_ids<D: Drive>() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bank");
    let mut balance = 0;
    for round in 0..3_u64 {
        let mut bus = D::start(Some(&path));
        if round == 0 {
            bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
        }
        let identified = || Account::command(&1, &AccountCommand::Deposit(10)).identified_by(5);
        let first = bus.call(identified()).unwrap();
        assert_eq!((bus.call(identified()).unwrap(), first.version), (first, 2));
        let other = bus.call(Account::command(&1, &AccountCommand::Deposit(11)).identified_by(5));
        assert_eq!(other, Err(CommandError::IdentifierReused));
        balance = 10 + round;
        let transfer = Transfer { from: 1, to: 2, amount: 11 };
        let refused = bus.call(TransferHandler::command(&transfer).identified_by(6));
        let overdrawn = TransferRefusal::Source(Some(AccountRefusal::Overdrawn { balance: 10 }));
        assert_eq!(refused, Err(CommandError::Refused(overdrawn)));
        let refused = bus.call(Account::command(&1, &AccountCommand::Withdraw(1000)));
        assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance })));
        bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap();
        match round {
            0 => bus.stop(),
            // Like a crash, except for data in the operating system.
            _ => drop(bus),
        }
    }
    assert_eq!(balance, 12);
}

fn threads_get_their_own_outcomes<H: HandleDrive>() {
    let (host, bus) = H::start(model());
    let threads: Vec<_> = (0..8_u64)
        .map(|id| {
            let bus = bus.clone();
            std::thread::spawn(move || {
                bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
                let pending: Vec<_> =
                    (0..500).map(|_| bus.send(Account::command(&id, &AccountCommand::Deposit(1)))).collect();
                for (number, pending) in (2..).zip(pending) {
                    assert_eq!(pending.wait().unwrap().version, number);
                }
                for number in 502..600 {
                    assert_eq!(bus.call(Account::command(&id, &AccountCommand::Deposit(1))).unwrap().version, number);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    host.stop();
}

fn outcome_is_awaited_or_called_back<H: HandleDrive>() {
    let (host, bus) = H::start(model());
    gapless_agent::block_on::block_on(async {
        assert_eq!(bus.send(Account::command(&1, &AccountCommand::Open)).await.unwrap().version, 1);
        let all: Vec<_> = (0..200).map(|_| bus.send(Account::command(&1, &AccountCommand::Deposit(1)))).collect();
        for pending in all {
            pending.await.unwrap();
        }
    });
    let (sender, outcomes) = std::sync::mpsc::channel();
    for _ in 0..100 {
        let sender = sender.clone();
        bus.send(Account::command(&1, &AccountCommand::Deposit(1))).then(move |outcome| sender.send(outcome).unwrap());
    }
    let versions: Vec<u64> = (0..100).map(|_| outcomes.recv().unwrap().unwrap().version).collect();
    assert_eq!(versions, (202..302).collect::<Vec<_>>());
    let mut pending = pin!(bus.send(Account::command(&1, &AccountCommand::Deposit(1))));
    let _ = matches!(pending.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    assert_eq!(bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap().version, 303);
    drop(bus.send(Account::command(&1, &AccountCommand::Deposit(1))));
    let outcome = bus.send(Account::command(&1, &AccountCommand::Deposit(1))).wait_within(Duration::from_secs(60));
    assert_eq!(outcome.unwrap().version, 305);
    let mut pending = bus.send(Account::command(&1, &AccountCommand::Deposit(1)));
    let outcome = loop {
        match pending.try_wait() {
            Ok(outcome) => break outcome,
            Err(none_yet) => pending = none_yet,
        }
        std::thread::yield_now();
    };
    assert_eq!(outcome.unwrap().version, 306);
    let deposit = AccountCommand::Deposit(1);
    let mut versions = Vec::new();
    let mut sent = std::collections::VecDeque::new();
    let count = rounds(10_000, 2_000);
    for number in 0..count {
        let draft = Account::command(&1, &deposit);
        let pending = match number % 5 {
            0 => bus.send(draft),
            1 => bus.send_within(&draft, Duration::from_secs(60)).unwrap(),
            _ => gapless_testkit::wait::until_some("there is room", || bus.try_send(&draft)),
        };
        sent.push_back(pending);
    }
    versions.extend(sent.drain(..).map(|pending| pending.wait().unwrap().version));
    assert_eq!(versions, (307..307 + count).collect::<Vec<_>>());
    let again = bus.clone().with_retry(RetryPolicy::default());
    let sent: Vec<_> = (0..100)
        .map(|_| gapless_testkit::wait::until_some("there is room", || again.try_send(&Account::command(&1, &deposit))))
        .collect();
    let versions: Vec<u64> = sent.into_iter().map(|pending| pending.wait().unwrap().version).collect();
    assert_eq!(versions.iter().max(), Some(&(count + 406)));
    let long = "x".repeat(ID_LENGTH_MAX + 1);
    let outcome =
        bus.try_send(&Draft::<_, (), ()>::new(TypeKey::of(Account::NAME), Some(&long), &deposit)).unwrap().wait();
    assert!(matches!(outcome, Err(CommandError::Bus(BusError::NotSent(_)))), "{outcome:?}");
    host.stop();
    let outcome = bus.try_send(&Account::command(&1, &deposit)).unwrap().wait();
    assert_eq!(outcome.unwrap_err().to_string(), BusError::Disconnected.to_string());
}

fn many_commands_are_in_flight<D: Drive>() {
    let directory = tempfile::tempdir().unwrap();
    let mut last_balance = 0;
    for (round, path) in
        [None, Some(directory.path().join("journal")), Some(directory.path().join("sync"))].iter().enumerate()
    {
        let mut stream = path.as_ref().map_or_else(ServiceHostOptions::in_memory, ServiceHostOptions::in_directory);
        if round == 2 {
            stream.tier = gapless_transport::Tier::Sync;
        }
        stream.window_bytes = 1 << 18;
        let mut bus = D::start_with(stream);
        bus.call(Account::command(&1, &AccountCommand::Many(1))).unwrap();
        let deposit = AccountCommand::Many(20);
        for _ in 0..rounds(3, 1) {
            let outcomes = bus.call_all((0..3000).map(|_| Account::command(&1, &deposit)).collect());
            for outcome in outcomes {
                last_balance += 20;
                assert_eq!(outcome.unwrap().version, last_balance + 1);
            }
        }
        last_balance = 0;
        bus.stop();
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
struct DepositTwice {
    refuses: bool,
}

struct DepositTwiceHandler {
    bus: Arc<OnceLock<CommandBus>>,
    outcomes: Outcomes,
}

type Outcomes = Arc<Mutex<Vec<Result<u64, CommandError<AccountRefusal>>>>>;

impl CommandHandler for DepositTwiceHandler {
    type Command = DepositTwice;
    type Reply = ();
    type Refusal = ();

    fn handle(&self, command: DepositTwice, work: &mut HandlerContext<'_>) -> Result<(), HandlerError<()>> {
        work.execute::<Account>(&1, AccountCommand::Deposit(1)).map_err(|undone| undone.refuse(|_| ()))?;
        let bus = self.bus.get().unwrap();
        let outcomes = Arc::clone(&self.outcomes);
        let sent = bus.send(Account::command(&2, &AccountCommand::Deposit(1)));
        sent.then(move |outcome| outcomes.lock().unwrap().push(outcome.map(|accepted| accepted.version)));
        // Waiting here would be a deadlock.
        let called = bus.call(Account::command(&2, &AccountCommand::Deposit(100)));
        assert_eq!(called, Err(CommandError::Bus(BusError::CalledInHandler)));
        let waited = bus.send(Account::command(&2, &AccountCommand::Deposit(0))).wait();
        assert_eq!(waited, Err(CommandError::Bus(BusError::CalledInHandler)));
        if command.refuses { Err(HandlerError::Refused(())) } else { Ok(()) }
    }
}

fn handler_commands_follow_its_own<H: HandleDrive>() {
    let (bus_of_handler, outcomes) = (Arc::new(OnceLock::new()), Outcomes::default());
    let handler = DepositTwiceHandler { bus: Arc::clone(&bus_of_handler), outcomes: Arc::clone(&outcomes) };
    let (host, bus) = H::start(CommandModel::new().aggregate::<Account>().handler(handler));
    bus_of_handler.set(bus.clone()).unwrap();
    for id in [1, 2] {
        bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
    }
    let refused = bus.call(DepositTwiceHandler::command(&DepositTwice { refuses: true }));
    assert_eq!(refused, Err(CommandError::Refused(())));
    let reason = "the command whose handler sent it was not accepted".to_owned();
    assert_eq!(*outcomes.lock().unwrap(), [Err(CommandError::Bus(BusError::NotSent(reason)))]);
    let all: Vec<_> =
        (0..2000).map(|_| bus.send(DepositTwiceHandler::command(&DepositTwice { refuses: false }))).collect();
    all.into_iter().for_each(|pending| assert!(pending.wait().is_ok()));
    gapless_testkit::wait::until("every command of a handler has its outcome", || {
        outcomes.lock().unwrap().len() == 2001
    });
    let mut versions: Vec<u64> =
        outcomes.lock().unwrap()[1..].iter().map(|outcome| *outcome.as_ref().unwrap()).collect();
    versions.sort_unstable();
    assert!(versions.into_iter().eq(2..2002));
    assert_eq!(bus.call(Account::command(&1, &AccountCommand::Deposit(0))).unwrap().version, 2001);
    host.stop();
}

#[test]
fn drives_resume_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bank");
    let mut version = 1;
    fn deposit<D: Drive>(path: &Path, version: &mut u64) {
        let mut bus = D::start(Some(path));
        if *version == 1 {
            bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
        }
        for _ in 0..10 {
            *version += 1;
            assert_eq!(bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap().version, *version);
        }
        bus.stop();
    }
    for _ in 0..2 {
        deposit::<Direct>(&path, &mut version);
        deposit::<Pipelined>(&path, &mut version);
    }
}

#[test]
fn direct_bus_keeps_last_outcomes() {
    let stream = ServiceHostOptions { session_expiry: Duration::from_millis(1), ..ServiceHostOptions::in_memory() };
    let options = AggregateOptions::default();
    let mut bus = PolledBus::start(model(), options, stream, &BusOptions { in_flight_max: 4 }).unwrap();
    bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
    // Sequences 1 and 2 are the session's opening and the command.
    gapless_testkit::wait::until("the session is closed", || {
        bus.turn();
        bus.service().released_sequence() >= 3
    });
    assert_eq!(bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap().version, 2);
    let tickets: Vec<_> = (0..5).map(|_| bus.send(Account::command(&1, &AccountCommand::Deposit(1)))).collect();
    assert_eq!(bus.take(&tickets[0]), Some(Err(CommandError::Bus(BusError::NotKept))));
    for (version, ticket) in (4..).zip(&tickets[1..]) {
        gapless_testkit::wait::until("it is released", || bus.turn() == 0);
        assert_eq!(bus.take(ticket).unwrap().unwrap().version, version);
        assert_eq!(bus.take(ticket), Some(Err(CommandError::Bus(BusError::NotKept))));
    }
    let (sender, outcomes) = std::sync::mpsc::channel();
    bus.send_then(Account::command(&1, &AccountCommand::Withdraw(100)), move |outcome| sender.send(outcome).unwrap());
    let handle = bus.handle();
    let pending = handle.send(Account::command(&1, &AccountCommand::Deposit(1)));
    assert_eq!(pending.wait(), Err(CommandError::Bus(BusError::CalledInHandler)));
    gapless_testkit::wait::until("there is nothing to do", || bus.turn() == 0);
    assert_eq!(outcomes.recv().unwrap(), Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: 6 })));
    assert_eq!(bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap().version, 9);
    bus.stop().unwrap();
}

#[test]
fn send_within_times_out() {
    let (options, stream) = (AggregateOptions::default(), ServiceHostOptions::in_memory());
    let mut bus = PolledBus::start(model(), options, stream, &BusOptions { in_flight_max: 4 }).unwrap();
    bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
    let handle = bus.handle();
    let send = move |within| handle.send_within(&Account::command(&1, &AccountCommand::Deposit(1)), within);
    let (send, sent) = std::thread::spawn(move || {
        let sent: Vec<_> = (0..4).map(|_| send(Duration::ZERO).unwrap()).collect();
        assert!(send(Duration::from_millis(10)).is_none(), "the owner does not poll");
        (send, sent)
    })
    .join()
    .unwrap();
    assert!(send(Duration::from_secs(600)).is_none(), "the owner would wait for itself");
    let waiting = std::thread::spawn(move || send(Duration::from_secs(600)).unwrap());
    gapless_testkit::wait::until("there is room", || {
        bus.turn();
        waiting.is_finished()
    });
    let last = waiting.join().unwrap();
    gapless_testkit::wait::until("there is nothing to do", || bus.turn() == 0);
    let versions: Vec<u64> = sent.into_iter().chain([last]).map(|pending| pending.wait().unwrap().version).collect();
    assert_eq!(versions, [2, 3, 4, 5, 6]);
    bus.stop().unwrap();
}
