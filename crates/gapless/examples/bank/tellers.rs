use crate::account::{Account, AccountCommand};
use crate::transfer::{Transfer, TransferHandler, TransferRefusal};
use clap::Args;
use gapless::cqrs::{Aggregate as _, CommandBus, CommandError, CommandHandler as _, PendingOutcome, Random};
use std::error::Error;
use std::time::Instant;

/// Hundredths.
const FIRST_DEPOSIT: u64 = 10_000;
const THREADS: u64 = 4;
const IN_FLIGHT: usize = 256;

#[derive(Args)]
pub struct Work {
    /// Accounts.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(2..))]
    accounts: u64,
    /// Transfers, by four threads.
    #[arg(long, default_value_t = 200_000)]
    transfers: u64,
    /// Print the position of each transfer as soon as it is accepted.
    #[arg(long)]
    tell: bool,
}

/// Identifier of an account's first deposit, so that a retry after a crash is not a second deposit.
pub fn first_deposit_of(account: u64) -> u128 {
    u128::from(account) + 1
}

impl Work {
    pub fn make(&self, bus: &CommandBus) -> Result<(), Box<dyn Error>> {
        self.open_accounts(bus)?;
        let begun = Instant::now();
        let accepted = std::thread::scope(|scope| {
            let parts = (1..=THREADS).map(|seed| scope.spawn(move || self.transfer(bus, seed))).collect::<Vec<_>>();
            parts.into_iter().map(|part| part.join().expect("no teller panics")).sum::<Result<u64, _>>()
        })?;
        let made = self.transfers / THREADS * THREADS;
        let rate = made as f64 / begun.elapsed().as_secs_f64();
        println!("{accepted} transfers, {} refused; {rate:.0} a second, each awaited", made - accepted);
        Ok(())
    }

    fn open_accounts(&self, bus: &CommandBus) -> Result<(), Box<dyn Error>> {
        let mut opened = 0;
        for id in 0..self.accounts {
            match bus.call(Account::command(&id, &AccountCommand::Open(format!("owner {}", id % 10)))) {
                Ok(_) => opened += 1,
                Err(CommandError::AlreadyExists) => {}
                Err(error) => return Err(error.into()),
            }
            let deposit = AccountCommand::Deposit(FIRST_DEPOSIT);
            bus.call(Account::command(&id, &deposit).identified_by(first_deposit_of(id)))?;
        }
        println!("{opened} accounts were opened, {} were there", self.accounts - opened);
        Ok(())
    }

    /// Returns the number of accepted transfers.
    fn transfer(&self, bus: &CommandBus, seed: u64) -> Result<u64, CommandError<TransferRefusal>> {
        let (mut random, mut accepted) = (Random::new(seed), 0);
        let transfers: Vec<_> = (0..self.transfers / THREADS).map(|_| self.draw(&mut random)).collect();
        for batch in transfers.chunks(IN_FLIGHT) {
            let sent: Vec<_> = batch.iter().map(|transfer| bus.send(TransferHandler::command(transfer))).collect();
            for outcome in sent.into_iter().map(PendingOutcome::wait) {
                match outcome {
                    Ok(transfer) if self.tell => println!("{}", transfer.position),
                    Err(CommandError::Refused(_)) => continue,
                    outcome => _ = outcome?,
                }
                accepted += 1;
            }
        }
        Ok(accepted)
    }

    fn draw(&self, random: &mut Random) -> Transfer {
        let (from, amount) = (random.below(self.accounts), 1 + random.below(5_000));
        Transfer { from, to: (from + 1 + random.below(self.accounts - 1)) % self.accounts, amount }
    }
}
