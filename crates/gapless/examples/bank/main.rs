//! A bank with a command bus: accounts decide for themselves, a transfer is one transaction over two of them.
//!
//! ```sh
//! cargo run --release --example bank                                   # in memory: opens accounts, moves money, checks the sum
//! cargo run --release --example bank -- --directory /tmp/bank          # the same on disk: again and again, also after kill -9
//! cargo run --release --example bank -- --directory /tmp/bank --statement 3
//! cargo run --release --example bank -- --cluster                      # on three members, of which the one that leads is killed
//! ```
#![allow(clippy::unwrap_used, reason = "a panic is as good as an error here")]

mod account;
mod audit;
mod cluster;
mod tellers;
mod transfer;

use account::Account;
use clap::Parser;
use gapless::cqrs::{
    Aggregate as _, AggregateId as _, BusOptions, CommandHost, CommandHostOptions, CommandModel, Position, TypeKey,
};
use gapless::service::ServiceHostOptions;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;
use tellers::Transfers;
use transfer::TransferHandler;

/// A bank with a command bus.
#[derive(Parser)]
struct Arguments {
    /// Directory of the stream [default: in memory].
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
    /// On three members, each a process of its own, of which the one that leads is killed meanwhile.
    #[arg(long, conflicts_with_all = ["directory", "statement"])]
    cluster: bool,
    /// Be a member of a cluster, as its file says, until the input ends.
    #[arg(long, value_name = "FILE", exclusive = true)]
    member: Option<PathBuf>,
}

/// Enough for more than half a million transfers.
const WINDOW_BYTES: usize = 256 << 20;

fn model() -> CommandModel {
    CommandModel::new().aggregate::<Account>().handler(TransferHandler)
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { directory, statement: account, accounts, transfers, tell, cluster, member } = Arguments::parse();
    let transfers = Transfers { accounts, count: transfers, tell, ..Transfers::default() };
    if let Some(file) = member {
        return cluster::run_member(&file, model());
    }
    if cluster {
        return cluster::run(&transfers);
    }
    let stream = match &directory {
        Some(directory) => ServiceHostOptions::in_directory(directory),
        // Without a journal, events exist only in the window, and the audit reads all of them.
        None => ServiceHostOptions { window_bytes: WINDOW_BYTES, ..ServiceHostOptions::in_memory() },
    };
    let host = CommandHost::start(model(), CommandHostOptions::default(), stream)?;
    match account {
        Some(account) => statement(&host, account)?,
        None => {
            let bus = host.bus(&BusOptions::default())?;
            tellers::open_accounts(&bus, accounts)?;
            let begun = Instant::now();
            transfers.make(&bus);
            let rate = transfers.outcomes() as f64 / begun.elapsed().as_secs_f64();
            println!("{transfers}; {rate:.0} a second, each two events, each awaited");
        }
    }
    audit::audit(host.events(Position::default()))?;
    host.stop()?;
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
