//! A bank with a command bus: accounts decide for themselves, a transfer is one transaction over two of them.
//!
//! ```sh
//! cargo run --release --example bank                                   # in memory: opens accounts, moves money, checks the sum
//! cargo run --release --example bank -- --directory /tmp/bank          # the same on disk: again and again, also after kill -9
//! cargo run --release --example bank -- --directory /tmp/bank --statement 3
//! ```
#![allow(clippy::unwrap_used, reason = "a panic is as good as an error here")]

mod account;
mod transfer;

use account::{Account, AccountCommand, AccountEvent};
use clap::Parser;
use gapless::cqrs::{
    Aggregate as _, AggregateId as _, BusOptions, CommandBus, CommandError, CommandHandler as _, CommandHost,
    CommandHostOptions, CommandModel, Position, Random, TypeKey,
};
use gapless::service::ServiceHostOptions;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;
use transfer::{Transfer, TransferHandler};

/// A bank with a command bus.
#[derive(Parser)]
struct Arguments {
    /// Where its stream lies; without it, in memory.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Prints an account's events instead of moving money.
    #[arg(long, value_name = "ACCOUNT")]
    statement: Option<u64>,
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

/// What each account gets when it is opened, in hundredths.
const FIRST_DEPOSIT: u64 = 10_000;
const THREADS: u64 = 4;
/// Transfers of a thread that are on their way at once.
const IN_FLIGHT: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let model = CommandModel::new().aggregate::<Account>().handler(TransferHandler);
    let stream =
        arguments.directory.as_ref().map_or_else(ServiceHostOptions::in_memory, ServiceHostOptions::in_directory);
    let host = CommandHost::start(model, CommandHostOptions::default(), stream)?;
    match arguments.statement {
        Some(account) => statement(&host, account)?,
        None => {
            let bus = host.bus(&BusOptions::default())?;
            open_accounts(&bus, arguments.accounts)?;
            let begun = Instant::now();
            let (done, refused) = transfer_at_random(&bus, &arguments);
            let rate = arguments.transfers as f64 / begun.elapsed().as_secs_f64();
            println!("{done} transfers, {refused} refused; {rate:.0} a second, each two events, each awaited");
        }
    }
    check(&host)?;
    host.stop()?;
    Ok(())
}

/// Opens those that are not there yet. The identifier makes a deposit that was sent before a crash, and is sent again, one deposit.
fn open_accounts(bus: &CommandBus, accounts: u64) -> Result<(), Box<dyn Error>> {
    let mut opened = 0;
    for id in 0..accounts {
        match bus.call(Account::command(&id, &AccountCommand::Open { owner: format!("owner {}", id % 10) })) {
            Ok(_) => opened += 1,
            Err(CommandError::AlreadyExists) => {}
            Err(error) => return Err(error.into()),
        }
        let deposit = AccountCommand::Deposit { amount: FIRST_DEPOSIT };
        bus.call(Account::command(&id, &deposit).identified_by(u128::from(id) + 1))?;
    }
    println!("{opened} accounts were opened, {} were there", accounts - opened);
    Ok(())
}

fn transfer_at_random(bus: &CommandBus, arguments: &Arguments) -> (u64, u64) {
    let (accounts, count, tell) = (arguments.accounts, arguments.transfers / THREADS, arguments.tell);
    let threads = (1..=THREADS).map(|seed| {
        let bus = bus.clone();
        std::thread::spawn(move || {
            let mut random = Random::new(seed);
            let (mut done, mut refused) = (0, 0);
            let mut left = count;
            while left > 0 {
                let batch = left.min(IN_FLIGHT as u64);
                left -= batch;
                let pending: Vec<_> = (0..batch)
                    .map(|_| {
                        let (from, amount) = (random.below(accounts), 1 + random.below(5_000));
                        let to = (from + 1 + random.below(accounts - 1)) % accounts;
                        bus.send(TransferHandler::command(&Transfer { from, to, amount }))
                    })
                    .collect();
                for outcome in pending.into_iter().map(gapless::cqrs::Pending::wait) {
                    match outcome {
                        Ok(accepted) => {
                            done += 1;
                            if tell {
                                println!("{}", accepted.position);
                            }
                        }
                        Err(CommandError::Refused(_)) => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            (done, refused)
        })
    });
    let threads: Vec<_> = threads.collect();
    let outcomes = threads.into_iter().map(|thread| thread.join().unwrap());
    outcomes.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Reads the whole stream and looks whether the money that was paid in is there: a checker that knows nothing but the events.
fn check(host: &CommandHost) -> Result<(), Box<dyn Error>> {
    let mut balances = BTreeMap::<u64, i128>::new();
    let (mut paid_in, mut events) = (0_i128, 0_u64);
    let mut reader = host.events(Position::default());
    while let Some(mut transaction) = reader.next_transaction()? {
        let identified = transaction.identity().is_some();
        while let Some(event) = transaction.next_event()? {
            let account = u64::read(event.id).ok_or("an account has a number")?;
            let balance = balances.entry(account).or_default();
            events += 1;
            match event.decode::<Account>()? {
                // What older programs have written may mean nothing any more.
                None | Some(AccountEvent::Opened { .. }) => {}
                Some(AccountEvent::Deposited { amount }) => {
                    *balance += i128::from(amount);
                    paid_in += if identified { i128::from(amount) } else { 0 };
                }
                Some(AccountEvent::Withdrawn { amount }) => *balance -= i128::from(amount),
                Some(AccountEvent::Closed { paid_out }) => *balance -= i128::from(paid_out),
            }
        }
    }
    let sum: i128 = balances.values().sum();
    if sum != paid_in || balances.values().any(|balance| *balance < 0) {
        return Err(format!("{paid_in} were paid in, {sum} are there").into());
    }
    println!("{events} events of {} accounts: the sum is what was paid in, no account is overdrawn", balances.len());
    Ok(())
}

fn statement(host: &CommandHost, account: u64) -> Result<(), Box<dyn Error>> {
    let mut reader = host.events(Position::default());
    while let Some(mut transaction) = reader.next_transaction()? {
        while let Some(event) = transaction.next_event()? {
            if event.aggregate == TypeKey::of(Account::NAME) && u64::read(event.id) == Some(account) {
                println!("{}  {:?}", event.position, event.decode::<Account>()?);
            }
        }
    }
    Ok(())
}
