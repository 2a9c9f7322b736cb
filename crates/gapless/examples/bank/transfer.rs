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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub struct Transferred {
    pub left: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum TransferRefusal {
    SameAccount,
    NoSuchAccount { account: u64 },
    Refused { account: u64, refusal: AccountRefusal },
}

pub struct TransferHandler;

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
        if from == to {
            return Err(HandlerError::Refused(TransferRefusal::SameAccount));
        }
        let refusal = |account| {
            move |refusal| match refusal {
                Some(refusal) => TransferRefusal::Refused { account, refusal },
                None => TransferRefusal::NoSuchAccount { account },
            }
        };
        work.execute::<Account>(&from, AccountCommand::Withdraw { amount })
            .map_err(|undone| undone.refuse(refusal(from)))?;
        work.execute::<Account>(&to, AccountCommand::Deposit { amount })
            .map_err(|undone| undone.refuse(refusal(to)))?;
        let left = work.state::<Account>(&from)?.map_or(0, |account| account.balance);
        Ok(Transferred { left })
    }
}
