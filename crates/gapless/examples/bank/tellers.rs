use crate::account::{Account, AccountCommand};
use crate::transfer::{Transfer, TransferHandler};
use gapless::cqrs::{Aggregate as _, CommandBus, CommandError, CommandHandler as _, PendingOutcome, Random};
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hundredths.
const FIRST_DEPOSIT: u64 = 10_000;
const THREADS: u64 = 4;
const IN_FLIGHT: u64 = 256;

/// Identifier of an account's first deposit, so that a retry after a crash is not a second deposit.
pub fn first_deposit_of(account: u64) -> u128 {
    u128::from(account) + 1
}

pub fn open_accounts(bus: &CommandBus, accounts: u64) -> Result<(), Box<dyn Error>> {
    let mut opened = 0;
    for id in 0..accounts {
        match bus.call(Account::command(&id, &AccountCommand::Open { owner: format!("owner {}", id % 10) })) {
            Ok(_) => opened += 1,
            Err(CommandError::AlreadyExists) => {}
            Err(error) => return Err(error.into()),
        }
        let deposit = AccountCommand::Deposit { amount: FIRST_DEPOSIT };
        bus.call(Account::command(&id, &deposit).identified_by(first_deposit_of(id)))?;
    }
    println!("{opened} accounts were opened, {} were there", accounts - opened);
    Ok(())
}

#[derive(Default)]
pub struct Transfers {
    pub accounts: u64,
    pub count: u64,
    pub tell: bool,
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
}

impl Transfers {
    pub fn make(&self, bus: &CommandBus) {
        std::thread::scope(|scope| {
            (1..=THREADS).for_each(|seed| _ = scope.spawn(move || self.make_part(bus, seed)));
        });
    }

    pub fn outcomes(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed) + self.refused.load(Ordering::Relaxed)
    }

    fn make_part(&self, bus: &CommandBus, seed: u64) {
        let mut random = Random::new(seed);
        let mut left = self.count / THREADS;
        while left > 0 {
            let batch = left.min(IN_FLIGHT);
            left -= batch;
            let sent: Vec<_> =
                (0..batch).map(|_| bus.send(TransferHandler::command(&self.draw(&mut random)))).collect();
            for outcome in sent.into_iter().map(PendingOutcome::wait) {
                match outcome {
                    Ok(accepted) => {
                        self.accepted.fetch_add(1, Ordering::Relaxed);
                        if self.tell {
                            println!("{}", accepted.position);
                        }
                    }
                    Err(CommandError::Refused(_)) => _ = self.refused.fetch_add(1, Ordering::Relaxed),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    fn draw(&self, random: &mut Random) -> Transfer {
        let (from, amount) = (random.below(self.accounts), 1 + random.below(5_000));
        Transfer { from, to: (from + 1 + random.below(self.accounts - 1)) % self.accounts, amount }
    }
}

impl fmt::Display for Transfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (accepted, refused) = (self.accepted.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed));
        write!(f, "{accepted} transfers, {refused} refused")
    }
}
