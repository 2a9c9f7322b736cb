//! Each outcome equals that of a model that decides one command after the other, over any commands and restarts. A
//! failing sequence is minimised. Few aggregates are in memory, index files are soon full, and occasionally the index
//! is deleted.

use crate::account::{Account, AccountCommand, AccountRefusal};
use gapless::Host;
use gapless::cqrs::{
    AcceptedCommand, Aggregate as _, AggregateOptions, BusOptions, CommandBus, CommandError, CommandModel, EventFilter,
    PendingOutcome, Position, TypeKey,
};
use gapless::host::Aggregates;
use gapless_bus_checker::History;
use gapless_testkit::random::rounds;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

const ACCOUNTS: u64 = 5;

#[derive(Clone, Debug)]
enum Step {
    Send { account: u64, command: AccountCommand, identifier: Option<u8>, expecting: Option<u64> },
    Await,
    Stop,
    Drop,
    LoseIndex,
}

type Outcome = Result<AcceptedCommand, CommandError<AccountRefusal>>;

fn step() -> impl Strategy<Value = Step> {
    let command = prop_oneof![
        2 => Just(AccountCommand::Open("Ada".to_owned())),
        5 => (0_u64..20).prop_map(AccountCommand::Deposit),
        4 => (0_u64..20).prop_map(AccountCommand::Withdraw),
        1 => Just(AccountCommand::Close),
    ];
    let identifier = prop_oneof![2 => Just(None), 1 => (0_u8..3).prop_map(Some)];
    let expecting = prop_oneof![4 => Just(None), 1 => (0_u64..6).prop_map(Some)];
    let send = (0..ACCOUNTS, command, identifier, expecting)
        .prop_map(|(account, command, identifier, expecting)| Step::Send { account, command, identifier, expecting });
    prop_oneof![30 => send, 4 => Just(Step::Await), 1 => Just(Step::Stop), 1 => Just(Step::Drop), 1 => Just(Step::LoseIndex)]
}

#[derive(Clone, Copy, Default)]
struct AccountState {
    balance: u64,
    version: u64,
    is_closed: bool,
}

#[derive(Default)]
struct Model {
    accounts: BTreeMap<u64, AccountState>,
    identified: BTreeMap<(u64, u8), (String, usize)>,
}

#[derive(Debug)]
enum ExpectedOutcome {
    Accepted(u64),
    Rejected(CommandError<AccountRefusal>),
    SameAs(usize),
}

impl Model {
    fn decide(&mut self, number: usize, step: &Step) -> ExpectedOutcome {
        let Step::Send { account, command, identifier, expecting } = step else { unreachable!("a command") };
        if let Some(identifier) = identifier {
            let sent = format!("{command:?}");
            match self.identified.get(&(*account, *identifier)) {
                Some((before, first)) if *before == sent => return ExpectedOutcome::SameAs(*first),
                Some(_) => return ExpectedOutcome::Rejected(CommandError::IdentifierReused),
                None => _ = self.identified.insert((*account, *identifier), (sent, number)),
            }
        }
        let known = self.accounts.get(account).copied();
        let AccountState { balance, version, is_closed } = known.unwrap_or_default();
        let refused = |refusal| ExpectedOutcome::Rejected(CommandError::Refused(refusal));
        if let Some(expected) = expecting.filter(|expected| *expected != version) {
            identifier.map(|identifier| self.identified.remove(&(*account, identifier)));
            return ExpectedOutcome::Rejected(CommandError::Conflict { expected, found: version });
        }
        let (balance, is_closed) = match (command, known) {
            (AccountCommand::Open(_), Some(_)) => return ExpectedOutcome::Rejected(CommandError::AlreadyExists),
            (AccountCommand::Open(_), None) => (0, false),
            (_, None) => return ExpectedOutcome::Rejected(CommandError::NotFound),
            (_, Some(_)) if is_closed => return refused(AccountRefusal::Closed),
            (AccountCommand::Deposit(0) | AccountCommand::Withdraw(0), _) => {
                return refused(AccountRefusal::NothingToDo);
            }
            (AccountCommand::Withdraw(amount), _) if *amount > balance => {
                return refused(AccountRefusal::Overdrawn { balance });
            }
            (AccountCommand::Deposit(amount), _) => (balance + amount, false),
            (AccountCommand::Withdraw(amount), _) => (balance - amount, false),
            (AccountCommand::Close, _) => (0, true),
        };
        let version = version + 1;
        self.accounts.insert(*account, AccountState { balance, version, is_closed });
        ExpectedOutcome::Accepted(version)
    }
}

struct Running {
    host: gapless::Running<Aggregates>,
    buses: [CommandBus; 2],
}

impl Running {
    fn start(directory: &Path) -> Self {
        let model = CommandModel::new().aggregate::<Account>();
        let options = AggregateOptions { aggregates_max: 2, index_entries_max: 24, ..AggregateOptions::default() };
        let host = Host::in_directory(directory).aggregates(model).aggregate_options(options).start().unwrap();
        let buses = [(); 2].map(|()| host.bus(&BusOptions { in_flight_max: 128 }).unwrap());
        Self { host, buses }
    }

    /// One handle for each account: only its commands have an order.
    fn send(&self, step: &Step) -> PendingOutcome<(), AccountRefusal> {
        let Step::Send { account, command, identifier, expecting } = step else { unreachable!("a command") };
        let mut draft = Account::command(account, command);
        if let Some(identifier) = identifier {
            draft = draft.identified_by(u128::from(*account) << 8 | u128::from(*identifier));
        }
        if let Some(expecting) = expecting {
            draft = draft.expecting_version(*expecting);
        }
        self.buses[(account % 2) as usize].send(draft)
    }
}

fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let mut running = Running::start(directory.path());
    let mut model = Model::default();
    let mut pending = Vec::new();
    let mut outcomes = BTreeMap::<usize, Outcome>::new();
    for (number, step) in steps.iter().chain([&Step::Await]).enumerate() {
        if let Step::Send { .. } = step {
            pending.push((number, model.decide(number, step), running.send(step)));
            continue;
        }
        for (number, due, pending) in pending.drain(..) {
            let outcome = pending.wait();
            match &due {
                ExpectedOutcome::Accepted(version) => {
                    let found = outcome.as_ref().map(|accepted| (accepted.version, accepted.events));
                    prop_assert_eq!(found, Ok((*version, 1)), "command {}: {:?}", number, steps[number]);
                }
                ExpectedOutcome::Rejected(error) => {
                    prop_assert_eq!(&outcome, &Err(error.clone()), "command {}", number)
                }
                ExpectedOutcome::SameAs(first) => {
                    prop_assert_eq!(&outcome, &outcomes[first], "command {} again as {}", first, number);
                }
            }
            outcomes.insert(number, outcome);
        }
        match step {
            Step::Send { .. } | Step::Await => continue,
            Step::Drop => drop(running),
            Step::Stop | Step::LoseIndex => _ = running.host.stop().unwrap(),
        }
        if matches!(step, Step::LoseIndex) {
            std::fs::remove_dir_all(directory.path().join("index")).unwrap();
        }
        running = Running::start(directory.path());
    }
    for (account, known) in &model.accounts {
        let mut found =
            running.host.found_events(EventFilter::aggregate::<Account>(account), Position::default()).unwrap();
        let count = std::iter::from_fn(|| found.next_event().unwrap().map(drop)).count();
        prop_assert_eq!(count as u64, known.version, "events of {}", account);
    }
    running.host.stop().unwrap();
    let history = History::read(&directory.path().join("journal")).unwrap();
    prop_assert_eq!(history.check(1_000_000), Ok(()));
    let versions: BTreeMap<_, _> =
        history.aggregates().into_iter().map(|(key, events)| (key, events.len() as u64)).collect();
    let due = model
        .accounts
        .iter()
        .map(|(account, known)| ((TypeKey::of(Account::NAME).0, account.to_be_bytes().to_vec()), known.version));
    prop_assert_eq!(versions, due.collect::<BTreeMap<_, _>>());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(25, 3) as u32, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn over_restarts(steps in prop::collection::vec(step(), 1..120)) {
        run(&steps)?;
    }
}
