use gapless::Message;
use gapless::cqrs::{Aggregate, CommandHandler, CommandModel, Creation, Decision, HandlerContext, HandlerError};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum BankCommand {
    Open,
    Deposit(u64),
    Withdraw(u64),
    /// Longer than a frame.
    Note(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum BankEvent {
    Opened,
    Deposited(u64),
    Withdrawn(u64),
    Noted(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Overdrawn {
    pub balance: u64,
}

#[derive(Clone, Debug)]
pub struct Account {
    pub balance: u64,
}

impl Aggregate for Account {
    const NAME: &'static str = "account";
    type Id = u64;
    type Command = BankCommand;
    type Event = BankEvent;
    type Refusal = Overdrawn;

    fn new(_: &u64) -> Self {
        Self { balance: 0 }
    }

    fn creation(command: &BankCommand) -> Creation {
        match command {
            BankCommand::Open => Creation::Creates,
            _ => Creation::MustExist,
        }
    }

    fn decide(&self, command: BankCommand, decision: &mut Decision<'_, BankEvent>) -> Result<(), Overdrawn> {
        let event = match command {
            BankCommand::Open => BankEvent::Opened,
            BankCommand::Deposit(amount) => BankEvent::Deposited(amount),
            BankCommand::Withdraw(amount) if amount > self.balance => return Err(Overdrawn { balance: self.balance }),
            BankCommand::Withdraw(amount) => BankEvent::Withdrawn(amount),
            BankCommand::Note(text) => BankEvent::Noted(text),
        };
        decision.emit(event);
        Ok(())
    }

    fn apply(&mut self, event: &BankEvent) {
        match event {
            BankEvent::Opened | BankEvent::Noted(_) => {}
            BankEvent::Deposited(amount) => self.balance += amount,
            BankEvent::Withdrawn(amount) => self.balance -= amount,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Transfer {
    pub from: u64,
    pub to: u64,
    pub amount: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Transferred {
    pub left: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct NotTransferred {
    pub overdrawn: Option<Overdrawn>,
}

pub struct TransferHandler;

impl CommandHandler for TransferHandler {
    type Command = Transfer;
    type Reply = Transferred;
    type Refusal = NotTransferred;

    fn handle(
        &self,
        transfer: Transfer,
        work: &mut HandlerContext<'_>,
    ) -> Result<Transferred, HandlerError<NotTransferred>> {
        let Transfer { from, to, amount } = transfer;
        let refusal = |overdrawn| NotTransferred { overdrawn };
        // If the target is missing, the withdrawal is undone.
        let withdrawn = work.execute::<Account>(&from, BankCommand::Withdraw(amount));
        withdrawn.map_err(|undone| undone.refuse(refusal))?;
        let deposited = work.execute::<Account>(&to, BankCommand::Deposit(amount));
        deposited.map_err(|undone| undone.refuse(refusal))?;
        let left = work.state::<Account>(&from)?.map_or(0, |account| account.balance);
        Ok(Transferred { left })
    }
}

pub fn model() -> CommandModel {
    CommandModel::new().aggregate::<Account>().handler(TransferHandler)
}
