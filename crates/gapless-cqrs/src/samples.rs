//! Sample model for tests: accounts, and transfers between two of them.

use crate::Message;
use crate::{Aggregate, CommandHandler, Creation, Decision, HandlerContext, HandlerError};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) enum AccountCommand {
    Open,
    Deposit(u64),
    Withdraw(u64),
    Note,
    Close,
    Panic,
    /// Emits an event that makes *apply* panic.
    Poison,
    Many(u32),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) enum AccountEvent {
    Opened,
    Deposited(u64),
    Withdrawn(u64),
    Noted { time_ns: u64, user: Option<String> },
    Closed,
    Poisoned,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) enum AccountRefusal {
    Overdrawn { balance: u64 },
    Closed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) struct Account {
    pub balance: u64,
    pub is_closed: bool,
}

impl Aggregate for Account {
    const NAME: &'static str = "account";
    type Id = u64;
    type Command = AccountCommand;
    type Event = AccountEvent;
    type Refusal = AccountRefusal;

    fn new(_: &u64) -> Self {
        Self { balance: 0, is_closed: false }
    }

    fn creation(command: &AccountCommand) -> Creation {
        match command {
            AccountCommand::Open => Creation::Creates,
            AccountCommand::Many(_) => Creation::CreatesIfMissing,
            _ => Creation::MustExist,
        }
    }

    fn decide(&self, command: AccountCommand, decision: &mut Decision<'_, AccountEvent>) -> Result<(), AccountRefusal> {
        if self.is_closed {
            return Err(AccountRefusal::Closed);
        }
        match command {
            AccountCommand::Open => _ = decision.emit(AccountEvent::Opened),
            AccountCommand::Deposit(0) => {}
            AccountCommand::Deposit(amount) => _ = decision.emit(AccountEvent::Deposited(amount)),
            AccountCommand::Withdraw(amount) => {
                decision.emit(AccountEvent::Withdrawn(amount)).tag("amount", amount.to_string());
                if amount > self.balance {
                    return Err(AccountRefusal::Overdrawn { balance: self.balance });
                }
            }
            AccountCommand::Note => {
                let headers = decision.context().headers();
                let user = headers.get("user").map(|user| String::from_utf8_lossy(user).into_owned());
                decision.emit(AccountEvent::Noted { time_ns: decision.time_ns(), user });
            }
            AccountCommand::Close => _ = decision.emit(AccountEvent::Closed),
            AccountCommand::Panic => panic!("this command makes decide panic"),
            AccountCommand::Poison => _ = decision.emit(AccountEvent::Poisoned),
            AccountCommand::Many(count) => (0..count).for_each(|_| _ = decision.emit(AccountEvent::Deposited(1))),
        }
        Ok(())
    }

    fn apply(&mut self, event: &AccountEvent) {
        match event {
            AccountEvent::Opened | AccountEvent::Noted { .. } => {}
            AccountEvent::Deposited(amount) => self.balance += amount,
            AccountEvent::Withdrawn(amount) => self.balance -= amount,
            AccountEvent::Closed => self.is_closed = true,
            AccountEvent::Poisoned => {
                self.balance = u64::MAX;
                panic!("this event makes apply panic");
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) struct Transfer {
    pub from: u64,
    pub to: u64,
    pub amount: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) struct Transferred {
    pub left: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) enum TransferRefusal {
    Source(Option<AccountRefusal>),
    Target(Option<AccountRefusal>),
}

pub(crate) struct TransferHandler;

impl CommandHandler for TransferHandler {
    type Command = Transfer;
    type Reply = Transferred;
    type Refusal = TransferRefusal;

    fn handle(
        &self,
        transfer: Transfer,
        work: &mut HandlerContext<'_>,
    ) -> Result<Transferred, HandlerError<TransferRefusal>> {
        let Transfer { from, to, amount } = transfer;
        let withdrawn = work.execute::<Account>(&from, AccountCommand::Withdraw(amount));
        withdrawn.map_err(|undone| undone.refuse(TransferRefusal::Source))?;
        if work.state::<Account>(&from)?.is_none() {
            unreachable!("it has got an event just now");
        }
        let deposited = work.execute::<Account>(&to, AccountCommand::Deposit(amount));
        deposited.map_err(|undone| undone.refuse(TransferRefusal::Target))?;
        let left = work.state::<Account>(&from)?.map_or(0, |account| account.balance);
        Ok(Transferred { left })
    }
}
