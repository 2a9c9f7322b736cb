use gapless::cqrs::{Aggregate, Creation, Decision, OldEvent};
use gapless::message::{Message, MessageError};
use serde::{Deserialize, Serialize};

/// Amounts are in hundredths.
#[derive(Clone, Debug, Serialize, Deserialize, Message)]
pub enum AccountCommand {
    Open { owner: String },
    Deposit { amount: u64 },
    Withdraw { amount: u64 },
    Close,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(version = 2)]
pub enum AccountEvent {
    Opened {
        owner: String,
    },
    Deposited {
        amount: u64,
    },
    Withdrawn {
        amount: u64,
    },
    #[message(since = 2)]
    Closed {
        paid_out: u64,
    },
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
        match command {
            AccountCommand::Open { .. } => Creation::Creates,
            _ => Creation::MustExist,
        }
    }

    fn decide(&self, command: AccountCommand, decision: &mut Decision<'_, AccountEvent>) -> Result<(), AccountRefusal> {
        match command {
            _ if self.is_closed => return Err(AccountRefusal::Closed),
            AccountCommand::Deposit { amount: 0 } | AccountCommand::Withdraw { amount: 0 } => {
                return Err(AccountRefusal::NothingToDo);
            }
            AccountCommand::Withdraw { amount } if amount > self.balance => {
                return Err(AccountRefusal::Overdrawn { balance: self.balance });
            }
            AccountCommand::Open { owner } => {
                decision.emit(AccountEvent::Opened { owner: owner.clone() }).tag("owner", owner);
            }
            AccountCommand::Deposit { amount } => _ = decision.emit(AccountEvent::Deposited { amount }),
            AccountCommand::Withdraw { amount } => _ = decision.emit(AccountEvent::Withdrawn { amount }),
            AccountCommand::Close => _ = decision.emit(AccountEvent::Closed { paid_out: self.balance }),
        }
        Ok(())
    }

    fn apply(&mut self, event: &AccountEvent) {
        match event {
            AccountEvent::Opened { owner } => self.owner.clone_from(owner),
            AccountEvent::Deposited { amount } => self.balance += amount,
            AccountEvent::Withdrawn { amount } => self.balance -= amount,
            AccountEvent::Closed { .. } => (self.balance, self.is_closed) = (0, true),
        }
    }

    fn upcast(old: &OldEvent<'_>) -> Result<Option<AccountEvent>, MessageError> {
        if !old.is::<AccountBooking>() {
            return old.decode().map(Some);
        }
        Ok(match old.decode()? {
            AccountBooking::Booked { amount } if amount < 0 => {
                Some(AccountEvent::Withdrawn { amount: amount.unsigned_abs() })
            }
            AccountBooking::Booked { amount } => Some(AccountEvent::Deposited { amount: amount.unsigned_abs() }),
            AccountBooking::Reviewed { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless::cqrs::{CommandError, Fixture, Invariants};

    #[test]
    fn account_never_overdraws() {
        let opened = AccountEvent::Opened { owner: "Ada".to_owned() };
        let fixture = Fixture::<Account>::of(7)
            .given([opened, AccountEvent::Deposited { amount: 100 }])
            .when(AccountCommand::Withdraw { amount: 30 })
            .then([AccountEvent::Withdrawn { amount: 30 }])
            .when(AccountCommand::Withdraw { amount: 71 })
            .then_refused(AccountRefusal::Overdrawn { balance: 70 })
            .when(AccountCommand::Deposit { amount: 0 })
            .then_refused(AccountRefusal::NothingToDo)
            .when(AccountCommand::Close)
            .then([AccountEvent::Closed { paid_out: 70 }])
            .when(AccountCommand::Deposit { amount: 1 })
            .then_refused(AccountRefusal::Closed);
        assert_eq!(fixture.state().balance, 0);
    }

    #[test]
    fn account_is_opened_once_and_first() {
        let open = || AccountCommand::Open { owner: "Ada".to_owned() };
        let fixture = Fixture::<Account>::of(7).when(AccountCommand::Close).then_error(CommandError::NotFound);
        let opened = AccountEvent::Opened { owner: "Ada".to_owned() };
        let _ = fixture.when(open()).then([opened]).when(open()).then_error(CommandError::AlreadyExists);
    }

    #[test]
    fn no_command_creates_money() {
        let commands = |random: &mut gapless::cqrs::Random| match random.below(8) {
            0 => AccountCommand::Open { owner: "Ada".to_owned() },
            1 => AccountCommand::Close,
            2..=4 => AccountCommand::Deposit { amount: random.below(100) },
            _ => AccountCommand::Withdraw { amount: random.below(100) },
        };
        Invariants::<Account, _>::of(7, commands).hold(|account| assert!(account.balance < 100 * 50));
    }

    #[test]
    fn event_of_version_1_is_understood() {
        let old = AccountEvent::Deposited { amount: 5 };
        let mut bytes = Vec::new();
        old.encode_as(1, &mut bytes).unwrap();
        assert_eq!(AccountEvent::decode_as(1, &bytes).unwrap(), old);
    }

    const BOOKED_2500: &[u8] = include_bytes!("old_events/booked_2500");
    const BOOKED_MINUS_700: &[u8] = include_bytes!("old_events/booked_minus_700");
    const REVIEWED_BY_BOB: &[u8] = include_bytes!("old_events/reviewed_by_bob");

    #[test]
    fn events_of_first_program_are_upcast() {
        let fixture = Fixture::<Account>::of(7)
            .given_old("AccountBooking", 1, BOOKED_2500)
            .given_old("AccountBooking", 1, REVIEWED_BY_BOB)
            .given_old("AccountBooking", 1, BOOKED_MINUS_700)
            .when(AccountCommand::Withdraw { amount: 1801 })
            .then_refused(AccountRefusal::Overdrawn { balance: 1800 });
        assert_eq!(fixture.state().balance, 1800);
    }
}
