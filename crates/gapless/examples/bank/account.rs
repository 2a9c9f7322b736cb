use gapless::cqrs::{Aggregate, Creation, Decision, OldEvent};
use gapless::message::{Message, MessageError};
use serde::{Deserialize, Serialize};

/// `Open` has the owner, the others have amounts in hundredths.
#[derive(Clone, Debug, Serialize, Deserialize, Message)]
pub enum AccountCommand {
    Open(String),
    Deposit(u64),
    Withdraw(u64),
    Close,
}

/// `Opened` has the owner, `Closed` the amount paid out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(version = 2)]
pub enum AccountEvent {
    Opened(String),
    Deposited(u64),
    Withdrawn(u64),
    #[message(since = 2)]
    Closed(u64),
}

/// Events of the bank's first program: amounts with a sign, and reviews, which are obsolete.
#[derive(Clone, Debug, Serialize, Deserialize, Message)]
pub enum AccountBooking {
    Booked { amount: i64 },
    Reviewed { by: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum AccountRefusal {
    Overdrawn { balance: u64 },
    Closed,
    NothingToDo,
}

#[derive(Clone, Debug)]
pub struct Account {
    pub owner: String,
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
        Self { owner: String::new(), balance: 0, is_closed: false }
    }

    fn creation(command: &AccountCommand) -> Creation {
        if matches!(command, AccountCommand::Open(_)) { Creation::Creates } else { Creation::MustExist }
    }

    fn decide(&self, command: AccountCommand, decision: &mut Decision<'_, AccountEvent>) -> Result<(), AccountRefusal> {
        let balance = self.balance;
        match command {
            _ if self.is_closed => return Err(AccountRefusal::Closed),
            AccountCommand::Deposit(0) | AccountCommand::Withdraw(0) => return Err(AccountRefusal::NothingToDo),
            AccountCommand::Withdraw(amount) if amount > balance => return Err(AccountRefusal::Overdrawn { balance }),
            AccountCommand::Open(owner) => _ = decision.emit(AccountEvent::Opened(owner.clone())).tag("owner", owner),
            AccountCommand::Deposit(amount) => _ = decision.emit(AccountEvent::Deposited(amount)),
            AccountCommand::Withdraw(amount) => _ = decision.emit(AccountEvent::Withdrawn(amount)),
            AccountCommand::Close => _ = decision.emit(AccountEvent::Closed(balance)),
        }
        Ok(())
    }

    fn apply(&mut self, event: &AccountEvent) {
        match event {
            AccountEvent::Opened(owner) => self.owner.clone_from(owner),
            AccountEvent::Deposited(amount) => self.balance += amount,
            AccountEvent::Withdrawn(amount) => self.balance -= amount,
            AccountEvent::Closed(_) => (self.balance, self.is_closed) = (0, true),
        }
    }

    fn upcast(old: &OldEvent<'_>) -> Result<Option<AccountEvent>, MessageError> {
        if !old.is::<AccountBooking>() {
            return old.decode().map(Some);
        }
        Ok(match old.decode()? {
            AccountBooking::Booked { amount } if amount < 0 => Some(AccountEvent::Withdrawn(amount.unsigned_abs())),
            AccountBooking::Booked { amount } => Some(AccountEvent::Deposited(amount.unsigned_abs())),
            AccountBooking::Reviewed { .. } => None,
        })
    }
}
