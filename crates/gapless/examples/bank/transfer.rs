use crate::account::{Account, AccountCommand, AccountRefusal};
use gapless::Message;
use gapless::cqrs::{CommandHandler, HandlerContext, HandlerError};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
pub struct Transfer {
    pub from: u64,
    pub to: u64,
    pub amount: u64,
}

/// A refusal of `None`: the account does not exist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum TransferRefusal {
    SameAccount,
    Refused { account: u64, refusal: Option<AccountRefusal> },
}

pub struct TransferHandler;

impl CommandHandler for TransferHandler {
    type Command = Transfer;
    /// Balance of the sender.
    type Reply = u64;
    type Refusal = TransferRefusal;

    fn handle(&self, transfer: Transfer, work: &mut HandlerContext<'_>) -> Result<u64, HandlerError<TransferRefusal>> {
        let Transfer { from, to, amount } = transfer;
        if from == to {
            return Err(HandlerError::Refused(TransferRefusal::SameAccount));
        }
        for (account, command) in [(from, AccountCommand::Withdraw(amount)), (to, AccountCommand::Deposit(amount))] {
            work.execute::<Account>(&account, command)
                .map_err(|undone| undone.refuse(|refusal| TransferRefusal::Refused { account, refusal }))?;
        }
        Ok(work.state::<Account>(&from)?.map_or(0, |account| account.balance))
    }
}
