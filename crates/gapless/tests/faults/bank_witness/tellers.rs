//! Commands with an identifier are retried until there is an outcome, and occasionally long after it.

use super::model::{Account, BankCommand, Transfer, TransferHandler};
use gapless::Message;
use gapless::client::{ClientOptions, PolledClient};
use gapless::cqrs::{
    AcceptedCommand, Aggregate as _, BusError, BusOptions, CommandBus, CommandError, CommandHandler as _,
    PendingOutcome,
};
use gapless::message::Headers;
use gapless_bus_checker::reported_outcomes::LABEL;
use gapless_bus_checker::{ReportedOutcome, ReportedOutcomes};
use gapless_testkit::random::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

pub const ACCOUNTS: u64 = 40;
const IN_FLIGHT: u64 = 48;
/// Large enough that most are older than the bank's newest snapshot.
const RETRIES_MAX: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(60);
const TELLERS: u64 = 2;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum CommandContent {
    Account(u64, BankCommand),
    Transfer(Transfer),
}

#[derive(Clone, Debug)]
pub struct Command {
    pub label: u64,
    pub identifier: Option<u128>,
    pub what: CommandContent,
}

#[derive(Default)]
pub struct KnownOutcomes {
    pub outcomes: ReportedOutcomes,
    pub commands: BTreeMap<u64, CommandContent>,
    pub problem: Option<String>,
}

#[derive(Default)]
struct TellerState {
    known: Mutex<KnownOutcomes>,
    answered: AtomicU64,
    repeated: AtomicU64,
    is_over: AtomicBool,
}

/// A handle of a bank at one of `sockets`.
pub fn bus_of(sockets: &[PathBuf]) -> Option<CommandBus> {
    let client = PolledClient::connect_any(sockets, ClientOptions::default()).ok()?;
    CommandBus::over(client, &BusOptions::default()).ok()
}

pub struct Tellers {
    shared: Arc<TellerState>,
    threads: Vec<JoinHandle<()>>,
}

impl Tellers {
    pub fn start(sockets: &[PathBuf], random: &mut Random) -> Self {
        let shared = Arc::<TellerState>::default();
        let threads = (1..=TELLERS).map(|number| {
            let (shared, random) = (Arc::clone(&shared), Random::new(random.number()));
            let (sockets, again, answered) = (sockets.to_vec(), Vec::new(), Vec::new());
            std::thread::spawn(move || Teller { number, sockets, random, shared, labels: 0, again, answered }.run())
        });
        let threads = threads.collect();
        Self { shared, threads }
    }

    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    pub fn repeated(&self) -> u64 {
        self.shared.repeated.load(Ordering::Relaxed)
    }

    pub fn known(&self) -> MutexGuard<'_, KnownOutcomes> {
        self.shared.known.lock().unwrap()
    }

    /// Waits for an outcome of each command that can have one.
    pub fn finish(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

impl Drop for Tellers {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

pub struct Teller {
    number: u64,
    sockets: Vec<PathBuf>,
    random: Random,
    shared: Arc<TellerState>,
    labels: u64,
    again: Vec<Command>,
    answered: Vec<Command>,
}

enum PendingCommand {
    Account(PendingOutcome<(), super::model::Overdrawn>),
    Transfer(PendingOutcome<super::model::Transferred, super::model::NotTransferred>),
}

impl Teller {
    pub fn single(random: &mut Random) -> Self {
        let (random, shared) = (Random::new(random.number()), Arc::default());
        Self { number: 1, sockets: Vec::new(), random, shared, labels: 0, again: Vec::new(), answered: Vec::new() }
    }

    pub fn counts(&self) -> (u64, u64) {
        (self.shared.answered.load(Ordering::Relaxed), self.shared.repeated.load(Ordering::Relaxed))
    }

    pub fn known(&self) -> MutexGuard<'_, KnownOutcomes> {
        self.shared.known.lock().unwrap()
    }

    fn run(mut self) {
        let is_over = |shared: &TellerState| shared.is_over.load(Ordering::Relaxed);
        while !is_over(&self.shared) {
            let Some(bus) = bus_of(&self.sockets) else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            // The handle reconnects to a restarted bank.
            while !is_over(&self.shared) && self.serve(&bus) {}
        }
    }

    fn serve(&mut self, bus: &CommandBus) -> bool {
        let sent: Vec<_> = self.batch().into_iter().map(|command| (send(bus, &command), command)).collect();
        let mut is_there = true;
        for (awaited, command) in sent {
            let outcome = match awaited {
                PendingCommand::Account(pending) => outcome_of(pending.wait_within(PATIENCE)),
                PendingCommand::Transfer(pending) => outcome_of(pending.wait_within(PATIENCE)),
            };
            is_there &= self.note(command, outcome);
        }
        is_there
    }

    pub fn batch(&mut self) -> Vec<Command> {
        let count = 1 + self.random.below(IN_FLIGHT);
        let mut batch = std::mem::take(&mut self.again);
        if !self.answered.is_empty() {
            let once_more = &self.answered[self.random.below(self.answered.len() as u64) as usize];
            // A command that was retried after a death may be in the batch already.
            if batch.iter().all(|command| command.label != once_more.label) {
                batch.push(once_more.clone());
                self.shared.repeated.fetch_add(1, Ordering::Relaxed);
            }
        }
        batch.extend((0..count).map(|_| self.draw()));
        batch
    }

    pub fn note(&mut self, command: Command, outcome: Result<ReportedOutcome, CommandError<()>>) -> bool {
        let mut known = self.shared.known.lock().unwrap();
        match outcome {
            Ok(outcome) => {
                if let Err(problem) = known.outcomes.report(command.label, outcome) {
                    known.problem.get_or_insert(problem);
                }
                drop(known);
                self.queue_retry(command);
                self.shared.answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(CommandError::Bus(BusError::Disconnected | BusError::Forgotten)) => {
                if command.identifier.is_some() {
                    self.again.push(command);
                }
                return false;
            }
            Err(error) => _ = known.problem.get_or_insert(format!("{command:?} ended as {error:?}")),
        }
        true
    }

    fn queue_retry(&mut self, command: Command) {
        if command.identifier.is_none() {
            return;
        }
        if self.answered.len() < RETRIES_MAX {
            self.answered.push(command);
        } else {
            let replaced = self.random.below(RETRIES_MAX as u64) as usize;
            self.answered[replaced] = command;
        }
    }

    fn draw(&mut self) -> Command {
        let random = &mut self.random;
        let (account, amount) = (random.below(ACCOUNTS), 1 + random.below(100));
        let what = match random.below(20) {
            0..=1 => CommandContent::Account(account, BankCommand::Open),
            2..=7 => CommandContent::Account(account, BankCommand::Deposit(amount)),
            8..=12 => CommandContent::Account(account, BankCommand::Withdraw(amount)),
            13 if random.below(3) == 0 => CommandContent::Account(account, BankCommand::Note(vec![7; 6000])),
            _ => CommandContent::Transfer(Transfer { from: account, to: random.below(ACCOUNTS), amount }),
        };
        self.labels += 1;
        let label = self.number << 32 | self.labels;
        let identifier = (random.below(3) > 0).then(|| u128::from(label) << 64 | u128::from(random.number()));
        let mut known = self.shared.known.lock().unwrap();
        known.outcomes.record_sent(label, identifier);
        known.commands.insert(label, what.clone());
        Command { label, identifier, what }
    }
}

fn send(bus: &CommandBus, Command { label, identifier, what }: &Command) -> PendingCommand {
    let headers = Headers::default().with(LABEL, label.to_le_bytes());
    match what {
        CommandContent::Account(id, command) => {
            let draft = Account::command(id, command).with(&headers);
            PendingCommand::Account(match identifier {
                Some(identifier) => bus.send(draft.identified_by(*identifier)),
                None => bus.send(draft),
            })
        }
        CommandContent::Transfer(transfer) => {
            let draft = TransferHandler::command(transfer).with(&headers);
            PendingCommand::Transfer(match identifier {
                Some(identifier) => bus.send(draft.identified_by(*identifier)),
                None => bus.send(draft),
            })
        }
    }
}

pub fn outcome_of<Reply, Refusal>(
    outcome: Result<AcceptedCommand<Reply>, CommandError<Refusal>>,
) -> Result<ReportedOutcome, CommandError<()>> {
    match outcome {
        Ok(AcceptedCommand { position, events, version, .. }) => {
            Ok(ReportedOutcome::Accepted { sequence: position.sequence, events, version })
        }
        Err(CommandError::Quarantined(reason)) => Err(CommandError::Quarantined(reason)),
        Err(CommandError::Failed(reason)) => Err(CommandError::Failed(reason)),
        Err(CommandError::Bus(error)) => Err(CommandError::Bus(error)),
        Err(_) => Ok(ReportedOutcome::Refused),
    }
}
