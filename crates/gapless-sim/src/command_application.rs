//! The simulator's own command bus: accounts, and transfers between two. Little memory and small index files make short
//! runs cover discarded decisions, folds, and look-ups in the index. In some seeds an event is unreadable: its account
//! is set apart once evicted, and more accounts are set apart than fit in memory.

use crate::checker::Violation;
use crate::options::ApplicationKind;
use crate::random::Random;
use crate::reference::Reference;
use crate::system_under_test::{Deployment, SystemUnderTest};
use gapless_bus_checker::{Decision, Event, History, Transaction};
use gapless_client::Reply;
use gapless_client::polled::MessageType;
use gapless_cluster::config::ClusterConfig;
use gapless_cqrs::simulated;
use gapless_cqrs::{
    Aggregate, AggregateOptions, CommandHandler, CommandModel, Creation, Decision as Deciding, HandlerContext,
    HandlerError, Headers, Message,
};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const ACCOUNTS: u64 = 10;
/// One command in this many repeats its predecessor's identifier.
const REPEATED_EVERY: u64 = 6;
const ACCOUNT: &str = "account";
const TARGET: &str = "target";

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
enum Ask {
    Open,
    Deposit(u64),
    Withdraw(u64),
    Blur,
}

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
enum Happened {
    Opened,
    Deposited(u64),
    Withdrawn(u64),
    /// Cannot be folded, like an event of an unknown type.
    Blurred(#[message(shape = "unreadable")] Unreadable),
}

#[derive(Clone, Debug, Serialize)]
struct Unreadable;

impl<'de> Deserialize<'de> for Unreadable {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("nobody can read it"))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
struct Overdrawn {
    balance: u64,
}

/// Forbidden input that a test plants in a decision.
#[cfg(test)]
static PLANTED: std::sync::OnceLock<fn() -> u64> = std::sync::OnceLock::new();

#[cfg(test)]
fn planted() -> u64 {
    PLANTED.get().map_or(0, |look| look())
}

#[cfg(not(test))]
const fn planted() -> u64 {
    0
}

#[derive(Clone)]
struct Account {
    balance: u64,
}

impl Aggregate for Account {
    const NAME: &'static str = "account";
    type Id = u64;
    type Command = Ask;
    type Event = Happened;
    type Refusal = Overdrawn;

    fn new(_: &u64) -> Self {
        Self { balance: 0 }
    }

    fn creation(command: &Ask) -> Creation {
        if matches!(command, Ask::Open) { Creation::Creates } else { Creation::MustExist }
    }

    fn decide(&self, command: Ask, decision: &mut Deciding<'_, Happened>) -> Result<(), Overdrawn> {
        decision.emit(match command {
            Ask::Open => Happened::Opened,
            Ask::Deposit(amount) => Happened::Deposited(amount + planted()),
            Ask::Withdraw(amount) if amount > self.balance => return Err(Overdrawn { balance: self.balance }),
            Ask::Withdraw(amount) => Happened::Withdrawn(amount),
            Ask::Blur => Happened::Blurred(Unreadable),
        });
        Ok(())
    }

    fn apply(&mut self, event: &Happened) {
        match event {
            Happened::Opened | Happened::Blurred(_) => {}
            Happened::Deposited(amount) => self.balance += amount,
            Happened::Withdrawn(amount) => self.balance -= amount,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
struct Transfer {
    from: u64,
    to: u64,
    amount: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
struct Transferred {
    left: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
struct NotTransferred;

struct TransferHandler;

impl CommandHandler for TransferHandler {
    type Command = Transfer;
    type Reply = Transferred;
    type Refusal = NotTransferred;

    fn handle(
        &self,
        Transfer { from, to, amount }: Transfer,
        work: &mut HandlerContext<'_>,
    ) -> Result<Transferred, HandlerError<NotTransferred>> {
        work.execute::<Account>(&from, Ask::Withdraw(amount)).map_err(|undone| undone.refuse(|_| NotTransferred))?;
        if work.state::<Account>(&to)?.is_none() {
            work.execute::<Account>(&to, Ask::Open).map_err(|undone| undone.refuse(|_| NotTransferred))?;
        }
        work.execute::<Account>(&to, Ask::Deposit(amount)).map_err(|undone| undone.refuse(|_| NotTransferred))?;
        Ok(Transferred { left: work.state::<Account>(&from)?.map_or(0, |account| account.balance) })
    }
}

fn options() -> AggregateOptions {
    AggregateOptions { aggregates_max: 4, index_entries_max: 40, ..AggregateOptions::default() }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandApplication {
    seed: u64,
    /// Percent of commands that make an account unreadable.
    blurs_of_100: u64,
}

impl CommandApplication {
    pub(crate) fn of(seed: u64) -> Self {
        Self { seed, blurs_of_100: Random::of(seed, &[23]).pick(&[0, 0, 5, 20]) }
    }
}

impl SystemUnderTest for CommandApplication {
    const APPLICATION_KIND: ApplicationKind = ApplicationKind::Commands;

    fn deploy(&self, config: &ClusterConfig) -> Result<Deployment, Violation> {
        let model = CommandModel::new().aggregate::<Account>().handler(TransferHandler);
        simulated::member_service(model, options(), config)
            .map(Deployment::OwnService)
            .map_err(|error| error.to_string())
    }

    fn reference(&self) -> Reference {
        let mut audit = BankAudit::default();
        Reference::new(simulated::fold(options())).with_audit(Box::new(move |frame| audit.follow(frame)))
    }

    fn message(&self, publisher: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        self.encoded(publisher, first_of(index))
    }

    /// Many commands wait for each other where many accounts are set apart.
    fn crowd(&self) -> Option<u32> {
        (self.blurs_of_100 > 0).then_some(64)
    }

    fn describe_sent(&self, publisher: u64, index: u64) -> Option<String> {
        let (sent, _) = self.sent(publisher, first_of(index));
        Some(match sent {
            SentCommand::Transfer(transfer) => format!("{transfer:?}"),
            SentCommand::Ask(account, ask) => format!("Ask::{ask:?} of account {account}"),
        })
    }

    fn check_reply(&self, _: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        match &reply.refusal {
            None => Ok(()),
            Some(refusal) => Err(format!("command {index} has failed: {:?} {}", refusal.code, refusal.text)),
        }
    }
}

enum SentCommand {
    Transfer(Transfer),
    Ask(u64, Ask),
}

const fn first_of(index: u64) -> u64 {
    if index % REPEATED_EVERY == REPEATED_EVERY - 1 { index - 1 } else { index }
}

impl CommandApplication {
    /// Depends on the arguments alone, so that a repeat can be generated again.
    fn sent(&self, publisher: u64, index: u64) -> (SentCommand, u64) {
        let mut random = Random::of(publisher, &[17, index]);
        let (account, amount) = (random.below(ACCOUNTS), 1 + random.below(50));
        if Random::of(self.seed, &[24, publisher, index]).percent(self.blurs_of_100) {
            return (SentCommand::Ask(account, Ask::Blur), account);
        }
        if random.percent(35) {
            return (SentCommand::Transfer(Transfer { from: account, to: random.below(ACCOUNTS), amount }), account);
        }
        let ask = match random.below(10) {
            0..=2 => Ask::Open,
            3..=6 => Ask::Deposit(amount),
            _ => Ask::Withdraw(amount),
        };
        (SentCommand::Ask(account, ask), account)
    }

    fn encoded(&self, publisher: u64, index: u64) -> (MessageType, Vec<u8>) {
        let (sent, account) = self.sent(publisher, index);
        let headers = Headers::default().with(ACCOUNT, account.to_le_bytes());
        let identifier = u128::from(publisher) << 64 | u128::from(index);
        let is_identified = index.is_multiple_of(2);
        let bytes = match sent {
            SentCommand::Transfer(transfer) => {
                let headers = headers.with(TARGET, transfer.to.to_le_bytes());
                let draft = TransferHandler::command(&transfer).with(&headers);
                simulated::message_of(&if is_identified { draft.identified_by(identifier) } else { draft })
            }
            SentCommand::Ask(account, ask) => {
                let draft = Account::command(&account, &ask).with(&headers);
                simulated::message_of(&if is_identified { draft.identified_by(identifier) } else { draft })
            }
        };
        bytes.expect("it is short")
    }
}

/// Compares answers with accounts folded from released frames.
#[derive(Default)]
struct BankAudit {
    history: History,
    checked: usize,
    accounts: Accounts,
}

#[derive(Default)]
struct Accounts {
    balances: BTreeMap<u64, u64>,
    /// Cannot be folded any more; the member that decided so keeps them in memory for a while.
    unreadable: BTreeSet<u64>,
}

const IDENTIFIERS_MAX: usize = 1_000_000;
/// Transactions between two checks of the whole history.
const CHECKED_EVERY: usize = 16;

impl BankAudit {
    fn follow(&mut self, frame: &gapless_wire::Frame<'_>) -> Result<(), Violation> {
        self.history.take(frame)?;
        let Self { history, checked, accounts } = self;
        for transaction in &history.transactions()[*checked..] {
            accounts.check(transaction).map_err(|what| format!("transaction {}: {what}", transaction.sequence))?;
            *checked += 1;
            if checked.is_multiple_of(CHECKED_EVERY) {
                history.check(IDENTIFIERS_MAX)?;
            }
        }
        Ok(())
    }
}

impl Accounts {
    fn check(&mut self, transaction: &Transaction) -> Result<(), String> {
        let Decision::Answered { answer, events, .. } = &transaction.decision else {
            return Err(format!("it has failed: {:?}", transaction.decision));
        };
        if answer.sequence != transaction.sequence {
            return Ok(());
        }
        for event in events {
            self.apply(event)?;
        }
        let named = |header| transaction.header(header)?.try_into().ok().map(u64::from_le_bytes);
        let (account, target) = (named(ACCOUNT), named(TARGET));
        let balance = account.and_then(|account| self.balances.get(&account));
        match (answer.outcome, balance) {
            (0, Some(balance)) if !answer.rest.is_empty() => is(&Transferred { left: *balance }, &answer.rest),
            (0, Some(_)) => Ok(()),
            // Such commands do not name their accounts.
            (1..=3, _) if account.is_none() => Ok(()),
            (6, _) if account.is_none() && !self.unreadable.is_empty() => Ok(()),
            (1, Some(balance)) if !answer.rest.is_empty() => is(&Overdrawn { balance: *balance }, &answer.rest),
            (1, _) if answer.rest.is_empty() => Ok(()),
            (2, None) | (3, Some(_)) => Ok(()),
            (6, _) if [account, target].iter().flatten().any(|one| self.unreadable.contains(one)) => Ok(()),
            (outcome, balance) => Err(format!("outcome {outcome} of account {account:?}, which has {balance:?}")),
        }
    }

    fn apply(&mut self, event: &Event) -> Result<(), String> {
        let id =
            event.id[..].try_into().map(u64::from_be_bytes).map_err(|_| format!("{:?} is no account", event.id))?;
        let found = self.balances.get(&id);
        if is(&Happened::Blurred(Unreadable), &event.payload).is_ok() && found.is_some() {
            self.unreadable.insert(id);
            return Ok(());
        }
        let happened = Happened::decode_as(event.version.into(), &event.payload).map_err(|error| error.to_string())?;
        let balance = match (&happened, found) {
            (Happened::Opened, None) => Some(0),
            (Happened::Deposited(amount), Some(balance)) => balance.checked_add(*amount),
            (Happened::Withdrawn(amount), Some(balance)) => balance.checked_sub(*amount),
            _ => None,
        };
        let balance = balance.ok_or_else(|| format!("{happened:?} of account {id}, which has {found:?}"))?;
        self.balances.insert(id, balance);
        Ok(())
    }
}

fn is(expected: &(impl Message + std::fmt::Debug), found: &[u8]) -> Result<(), String> {
    let mut bytes = Vec::new();
    expected.encode(&mut bytes).map_err(|error| error.to_string())?;
    if bytes == found { Ok(()) } else { Err(format!("{expected:?} is due, and it is {found:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, SecondPass};
    use crate::simulate_own;
    use std::time::{SystemTime, UNIX_EPOCH};

    /// Members of one process read the same clock, and all apply the leader's decision.
    #[test]
    fn second_process_finds_clock_use() {
        let whole_days = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
        PLANTED.set(whole_days).expect("no other test of this process plants a fault");
        let options = Options { messages: 12, faults_ms: 200, ..Options::default() };
        let alone = Options { second_pass: SecondPass::Off, ..options.clone() };
        // Seeds that release no clock-dependent event show nothing.
        let failure = (1..=20).find_map(|seed| {
            simulate_own(Some(ApplicationKind::Commands), &alone, seed).expect("one process does not find the fault");
            simulate_own(Some(ApplicationKind::Commands), &options, seed).err()
        });
        let failure = failure.expect("a second process finds the fault");
        let text = failure.to_string();
        let is_named = text.contains("the same seed gives another run in a second process")
            && text.contains("message: Ask::Deposit(")
            && text.contains("the frames part at byte ");
        assert!(is_named, "{text}");
    }
}
