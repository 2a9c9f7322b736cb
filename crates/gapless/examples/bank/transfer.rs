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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountEvent;
    use gapless::cqrs::{CommandModel, ModelFixture, ModelInvariants, Random, TestEvent};

    fn to(account: u64, event: AccountEvent) -> TestEvent {
        TestEvent::to::<Account>(&account, event)
    }

    fn accounts() -> ModelFixture {
        let opened = |account| {
            let owner = "Ada".to_owned();
            [to(account, AccountEvent::Opened { owner }), to(account, AccountEvent::Deposited { amount: 100 })]
        };
        let model = CommandModel::new().aggregate::<Account>().handler(TransferHandler);
        ModelFixture::of(model).given([1, 2, 3].map(opened).into_iter().flatten())
    }

    #[test]
    fn transfer_changes_both_or_none() {
        let overdrawn = AccountRefusal::Overdrawn { balance: 70 };
        let mut fixture = accounts()
            .when(TransferHandler::command(&Transfer { from: 1, to: 2, amount: 30 }))
            .then_reply(Transferred { left: 70 })
            .then([to(1, AccountEvent::Withdrawn { amount: 30 }), to(2, AccountEvent::Deposited { amount: 30 })])
            .when(TransferHandler::command(&Transfer { from: 1, to: 2, amount: 71 }))
            .then_refused(TransferRefusal::Refused { account: 1, refusal: overdrawn })
            .when(TransferHandler::command(&Transfer { from: 1, to: 4, amount: 70 }))
            .then_refused(TransferRefusal::NoSuchAccount { account: 4 })
            .when(TransferHandler::command(&Transfer { from: 1, to: 1, amount: 70 }))
            .then_refused(TransferRefusal::SameAccount);
        assert_eq!(fixture.state::<Account>(&1).unwrap().balance, 70);
    }

    #[test]
    fn transfers_keep_the_sum() {
        let transfers = |random: &mut Random| {
            let (from, to) = (random.below(5), random.below(5));
            Transfer { from, to, amount: random.below(150) }
        };
        let send = |fixture: ModelFixture, transfer| fixture.when(TransferHandler::command(&transfer)).then_anything();
        ModelInvariants::of(accounts, transfers, send).hold(|fixture| {
            let balances = (0..5).filter_map(|id| fixture.state::<Account>(&id)).map(|account| account.balance);
            assert_eq!(balances.sum::<u64>(), 300);
        });
    }
}
