//! Promises to senders, on handles of each drive: interceptors, retries, and consequences of a command.

use super::{DirectPolled, HandleDrive, Pipelined};
use crate::samples::{Account, AccountCommand, AccountRefusal};
use crate::{
    Aggregate as _, AggregateOptions, BusOptions, CAUSATION, CORRELATION, Cause, CommandBus, CommandError,
    CommandHandler, CommandHost, CommandModel, CommandOutcome, DispatchInterceptor, DispatchedCommand, HandlerContext,
    HandlerError, HandlerInterceptor, Headers, InterceptedCommand, Message, PolledBus, Position, RetryPolicy, TypeKey,
};
use gapless_engine::ServiceHostOptions;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

over! {
    Pipelined as pipelined:
        caller_interceptor_sees_outcomes,
        writer_interceptor_refuses_first,
        failures_and_refusals_are_retried,
        consequences_carry_their_cause;
    DirectPolled as handles_of_a_direct_bus:
        caller_interceptor_sees_outcomes,
        writer_interceptor_refuses_first,
        failures_and_refusals_are_retried,
        consequences_carry_their_cause;
}

type InterceptorLog = Arc<Mutex<Vec<String>>>;

fn logged(log: &InterceptorLog) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

struct SigningInterceptor {
    name: &'static str,
    log: InterceptorLog,
}

impl DispatchInterceptor for SigningInterceptor {
    fn before(&self, command: &mut DispatchedCommand) -> Result<(), String> {
        self.log.lock().unwrap().push(format!("{} before {}", self.name, command.command_name));
        if command.id == 13_u64.to_be_bytes() {
            return Err(format!("{} is superstitious", self.name));
        }
        let before = command.headers.get("user").map(|user| String::from_utf8_lossy(user).into_owned());
        command.headers.set("user", before.unwrap_or_default() + self.name);
        Ok(())
    }

    fn after(&self, _: &DispatchedCommand, outcome: &CommandOutcome<'_>) {
        let outcome = match outcome {
            CommandOutcome::Accepted { events, version, .. } => format!("{events} to {version}"),
            other => format!("{other:?}"),
        };
        self.log.lock().unwrap().push(format!("{} after: {outcome}", self.name));
    }
}

fn caller_interceptor_sees_outcomes<H: HandleDrive>() {
    let (mut host, plain) = H::start(CommandModel::new().aggregate::<Account>());
    let log = InterceptorLog::default();
    let bus = ["a", "b"].into_iter().fold(plain.clone(), |bus, name| {
        let log = Arc::clone(&log);
        bus.with_interceptor(SigningInterceptor { name, log })
    });
    bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
    let names = ["a before AccountCommand", "b before AccountCommand"];
    assert_eq!(logged(&log), [names[0], names[1], "b after: 1 to 1", "a after: 1 to 1"]);
    bus.call(Account::command(&1, &AccountCommand::Note).with(&Headers::default().with("user", "x"))).unwrap();
    logged(&log);
    assert_eq!(bus.call(Account::command(&2, &AccountCommand::Note)), Err(CommandError::NotFound));
    assert_eq!(logged(&log)[2..], ["b after: NotFound", "a after: NotFound"]);
    let refused = bus.call(Account::command(&13, &AccountCommand::Open));
    assert_eq!(refused, Err(CommandError::Intercepted("a is superstitious".to_owned())));
    let told = ["b", "a"].map(|name| format!("{name} after: Intercepted(\"a is superstitious\")"));
    assert_eq!(logged(&log), [names[0].to_owned(), told[0].clone(), told[1].clone()]);
    drop(bus.send(Account::command(&1, &AccountCommand::Deposit(5))));
    let (tell, told) = std::sync::mpsc::channel();
    bus.send(Account::command(&1, &AccountCommand::Deposit(5))).then(move |outcome| tell.send(outcome).unwrap());
    assert_eq!(told.recv().unwrap().unwrap().version, 4);
    gapless_testkit::wait::until("they are told of both", || log.lock().unwrap().len() == 8);
    logged(&log);
    plain.call(Account::command(&13, &AccountCommand::Open)).unwrap();
    assert!(logged(&log).is_empty());
    let mut events = host.events();
    let users: Vec<_> = std::iter::from_fn(|| {
        let transaction = events.next_transaction().unwrap()?;
        Some(transaction.headers().get("user").map(|user| String::from_utf8_lossy(user).into_owned()))
    })
    .collect();
    assert_eq!(users, [Some("ab"), Some("xab"), Some("ab"), Some("ab"), None].map(|user| user.map(str::to_owned)));
    host.stop();
}

struct GuardInterceptor(InterceptorLog);

impl HandlerInterceptor for GuardInterceptor {
    fn before(&mut self, command: &InterceptedCommand<'_>) -> Result<(), String> {
        assert_eq!(command.aggregate, TypeKey::of("account"));
        match command.decode::<AccountCommand>().unwrap() {
            Some(AccountCommand::Withdraw(amount)) if amount > 1000 => {
                let user = command.context.header("user").unwrap_or(b"nobody");
                Err(format!("{} may not", String::from_utf8_lossy(user)))
            }
            Some(AccountCommand::Close) => panic!("never"),
            Some(_) => Ok(()),
            None => unreachable!("nothing else is sent"),
        }
    }

    fn after(&mut self, command: &InterceptedCommand<'_>, outcome: &CommandOutcome<'_>) {
        let number = command.decode::<AccountCommand>().unwrap().unwrap();
        let outcome = match outcome {
            CommandOutcome::Accepted { version, .. } => version.to_string(),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(format!("{number:?}: {outcome}"));
        assert!(number != AccountCommand::Deposit(0), "a panic here has no effect");
    }
}

fn writer_interceptor_refuses_first<H: HandleDrive>() {
    let log = InterceptorLog::default();
    let model = CommandModel::new().aggregate::<Account>().interceptor(GuardInterceptor(Arc::clone(&log)));
    let (host, bus) = H::start(model);
    bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
    assert_eq!(logged(&log), ["Open: 1"]);
    let headers = Headers::default().with("user", "eve");
    for _ in 0..2 {
        let refused = bus.call(Account::command(&1, &AccountCommand::Withdraw(1001)).identified_by(1).with(&headers));
        assert_eq!(refused, Err(CommandError::Intercepted("eve may not".to_owned())));
    }
    assert_eq!(logged(&log), ["Withdraw(1001): Intercepted(\"eve may not\")"]);
    let failed = bus.call(Account::command(&1, &AccountCommand::Close));
    assert_eq!(failed, Err(CommandError::Failed("an interceptor panicked: never".to_owned())));
    let refused = bus.call(Account::command(&1, &AccountCommand::Withdraw(1000)));
    assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: 0 })));
    logged(&log);
    assert_eq!(bus.call(Account::command(&1, &AccountCommand::Deposit(0))).unwrap().version, 1);
    assert_eq!(bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap().version, 2);
    assert_eq!(logged(&log), ["Deposit(0): 1", "Deposit(1): 2"]);
    host.stop();
}

struct FailingInterceptor {
    panics: u32,
    refuses: u32,
    identifiers: Arc<Mutex<Vec<Option<u128>>>>,
}

impl HandlerInterceptor for FailingInterceptor {
    fn before(&mut self, command: &InterceptedCommand<'_>) -> Result<(), String> {
        let Some(AccountCommand::Deposit(_)) = command.decode().unwrap() else { return Ok(()) };
        self.identifiers.lock().unwrap().push(command.identifier);
        if self.panics > 0 {
            self.panics -= 1;
            panic!("not yet");
        }
        if self.refuses > 0 {
            self.refuses -= 1;
            return Err("not now".to_owned());
        }
        Ok(())
    }
}

fn retrying() -> RetryPolicy {
    RetryPolicy {
        delay_first: Duration::from_millis(1),
        retries: |outcome| matches!(outcome, CommandOutcome::Failed(_) | CommandOutcome::Intercepted(_)),
        ..RetryPolicy::default()
    }
}

fn failures_and_refusals_are_retried<H: HandleDrive>() {
    let identifiers = Arc::default();
    let fails = FailingInterceptor { panics: 2, refuses: 2, identifiers: Arc::clone(&identifiers) };
    let (host, bus) = H::start(CommandModel::new().aggregate::<Account>().interceptor(fails));
    bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
    let (log, retrying_bus) = (InterceptorLog::default(), bus.clone().with_retry(retrying()));
    let retrying_bus = retrying_bus.with_interceptor(SigningInterceptor { name: "a", log: Arc::clone(&log) });
    gapless_agent::block_on::block_on(async {
        let deposited = retrying_bus.send(Account::command(&1, &AccountCommand::Deposit(1))).await;
        assert_eq!(deposited.unwrap().version, 2);
    });
    assert_eq!(logged(&log), ["a before AccountCommand", "a after: 1 to 2"]);
    let sent = std::mem::take(&mut *identifiers.lock().unwrap());
    assert!(sent.len() == 5 && sent.iter().all(Option::is_some), "{sent:?}");
    assert!(sent[..3].iter().all(|identifier| *identifier == sent[0]) && sent[3] != sent[2] && sent[4] != sent[3]);
    retrying_bus.call(Account::command(&1, &AccountCommand::Deposit(1)).identified_by(9)).unwrap();
    assert_eq!(std::mem::take(&mut *identifiers.lock().unwrap()), [Some(9)]);
    host.stop();
    let gone = bus.with_retry(RetryPolicy { delay_first: Duration::from_millis(1), ..RetryPolicy::default() });
    assert!(matches!(gone.call(Account::command(&1, &AccountCommand::Note)), Err(CommandError::Bus(_))));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
struct DepositSoon;

struct DepositSoonHandler(Arc<OnceLock<CommandBus>>);

impl CommandHandler for DepositSoonHandler {
    type Command = DepositSoon;
    type Reply = ();
    type Refusal = ();

    fn handle(&self, _: DepositSoon, work: &mut HandlerContext<'_>) -> Result<(), HandlerError<()>> {
        work.execute::<Account>(&1, AccountCommand::Deposit(1)).map_err(|undone| undone.refuse(|_| ()))?;
        let bus = self.0.get().unwrap();
        let own = Headers::default().with("user", "x");
        drop(bus.send(Account::command(&1, &AccountCommand::Deposit(2)).with(&own).identified()));
        let other = Headers::default().with(CORRELATION, "other").with(CAUSATION, "no reason");
        drop(bus.send(Account::command(&1, &AccountCommand::Deposit(3)).with(&other)));
        Ok(())
    }
}

fn consequences_carry_their_cause<H: HandleDrive>() {
    let bus_of_handler = Arc::new(OnceLock::new());
    let handler = DepositSoonHandler(Arc::clone(&bus_of_handler));
    let (mut host, bus) = H::start(CommandModel::new().aggregate::<Account>().handler(handler));
    bus_of_handler.set(bus.clone()).unwrap();
    bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
    bus.call(DepositSoonHandler::command(&DepositSoon)).unwrap();
    let correlated = Headers::default().with(CORRELATION, "order 17");
    bus.call(DepositSoonHandler::command(&DepositSoon).with(&correlated)).unwrap();
    let mut events = host.events();
    let mut seen = Vec::new();
    gapless_testkit::wait::until("all that follows is there", || {
        while let Some(transaction) = events.next_transaction().unwrap() {
            let command = Cause::Command { session: transaction.session, number: transaction.number };
            let user = transaction.headers().get("user").map(<[u8]>::to_vec);
            let event = Position { sequence: transaction.sequence, ordinal: 0 };
            let next = transaction.headers_of_consequence(event);
            assert_eq!(next.get(CORRELATION), Some(&*transaction.correlation()));
            assert_eq!(next.get(CAUSATION), Some(&Cause::Event(event).to_bytes()[..]));
            seen.push((command, transaction.cause(), transaction.correlation().into_owned(), user));
        }
        seen.len() == 7
    });
    // The second command may come before or after the consequences of the first.
    let mut rest = seen.split_off(2);
    let (open, first) = (&seen[0], &seen[1]);
    let place = rest.iter().position(|each| each.2 == b"order 17" && each.1.is_none()).unwrap();
    let second = rest.swap_remove(place);
    for root in [open, first] {
        assert_eq!((root.1, &root.2), (None, &root.0.to_bytes()));
    }
    for (root, correlation) in [(first, first.0.to_bytes()), (&second, b"order 17".to_vec())] {
        let caused: Vec<_> = rest.iter().filter(|each| each.1 == Some(root.0)).collect();
        assert_eq!(caused.len(), 1);
        assert_eq!((&caused[0].2, caused[0].3.as_deref()), (&correlation, Some(&b"x"[..])));
    }
    let other: Vec<_> = rest.iter().filter(|each| each.2 == b"other").collect();
    assert!(other.len() == 2 && other.iter().all(|each| each.1.is_none()));
    host.stop();
}

#[test]
fn direct_bus_intercepts_and_retries() {
    let identifiers = Arc::default();
    let fails = FailingInterceptor { panics: 2, refuses: 1, identifiers: Arc::clone(&identifiers) };
    let model = CommandModel::new().aggregate::<Account>().interceptor(fails);
    let (options, stream) = (AggregateOptions::default(), ServiceHostOptions::in_memory());
    let log = InterceptorLog::default();
    let direct = PolledBus::start(model, options, stream, &BusOptions { in_flight_max: 4 }).unwrap();
    let mut bus = direct.with_interceptor(SigningInterceptor { name: "a", log: Arc::clone(&log) });
    bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
    let deposited = bus.call_with_retry(&Account::command(&1, &AccountCommand::Deposit(1)), retrying());
    assert_eq!(deposited.unwrap().version, 2);
    let sent: HashSet<_> = identifiers.lock().unwrap().iter().copied().collect();
    assert!(sent.len() == 2 && !sent.contains(&None));
    let refused = bus.call(Account::command(&13, &AccountCommand::Open));
    assert_eq!(refused, Err(CommandError::Intercepted("a is superstitious".to_owned())));
    gapless_testkit::wait::until("it is told", || {
        bus.turn();
        log.lock().unwrap().len() == 12
    });
    let mut reader = bus.events(Position::default());
    assert_eq!(reader.next_transaction().unwrap().unwrap().headers().get("user"), Some(&b"a"[..]));
    bus.stop().unwrap();
}

#[test]
fn handle_opens_sessions_on_demand() {
    let model = CommandModel::new().aggregate::<Account>();
    let host = CommandHost::start(model, AggregateOptions::default(), ServiceHostOptions::in_memory()).unwrap();
    for (id, in_flight_max) in [(1, 64), (2, 5000), (3, 1)] {
        let bus = host.bus(&BusOptions { in_flight_max }).unwrap();
        assert_eq!(bus.sessions(), 0);
        bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
        assert_eq!(bus.sessions(), 1);
        let pending: Vec<_> = (0..8000).map(|_| bus.send(Account::command(&id, &AccountCommand::Deposit(1)))).collect();
        for (version, pending) in (2..).zip(pending) {
            assert_eq!(pending.wait().unwrap().version, version);
        }
        let sessions = bus.sessions();
        assert!(sessions <= usize::div_ceil(in_flight_max, 64), "{sessions}");
        assert!(sessions > 1 || in_flight_max <= 64, "many are in flight before the first outcome is taken");
        let mut senders = HashSet::new();
        let mut reader = host.events(Position::default());
        while let Some(mut transaction) = reader.next_transaction().unwrap() {
            let event = transaction.next_event().unwrap().unwrap();
            if event.id == u64::to_be_bytes(id) {
                senders.insert(transaction.session);
            }
        }
        // One session may have been opened just when others had room again.
        assert!(senders.len() <= sessions && (senders.len() > 1 || in_flight_max <= 64), "{}", senders.len());
    }
    host.stop().unwrap();
}
