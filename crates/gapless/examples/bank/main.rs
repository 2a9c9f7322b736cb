//! A bank with a command bus: accounts decide for themselves, a transfer is one transaction over two of them.
//!
//! ```sh
//! bank memory                                # opens accounts, moves money, checks the sum
//! bank data                                  # the same in a directory: again and again, also after kill -9
//! bank data --statement 3                    # events of account 3
//! bank members/member-1.toml                 # a member of a cluster, until Ctrl-C
//! bank --at members/member-1,members/member-2,members/member-3    # moves money there
//! bank members/member-1 --audit              # checks the sum that this member has
//! ```

mod account;
mod audit;
mod tellers;
mod transfer;

use account::Account;
use clap::Parser;
use gapless::Host;
use gapless::cqrs::{BusOptions, CommandBus, CommandModel, EventDirectory, Position, RetryPolicy};
use std::error::Error;
use std::path::Path;
use tellers::Work;
use transfer::TransferHandler;

/// A bank with a command bus.
#[derive(Parser)]
struct Arguments {
    /// `memory`, a directory, or the file of a cluster's member.
    #[arg(default_value = "memory")]
    place: String,
    /// Moves money at a bank that runs elsewhere: directories of its members, or tcp://HOST:PORT, with commas.
    #[arg(long, conflicts_with_all = ["place", "audit", "statement"])]
    at: Option<String>,
    /// Only checks the sum in a directory.
    #[arg(long)]
    audit: bool,
    /// Only prints the events of an account in a directory.
    #[arg(long, value_name = "ACCOUNT", conflicts_with = "audit")]
    statement: Option<u64>,
    #[command(flatten)]
    work: Work,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { place, at, audit, statement, work } = Arguments::parse();
    if audit || statement.is_some() {
        let events = EventDirectory::open(Path::new(&place))?.events(Position::default());
        return if let Some(account) = statement { audit::statement(events, account) } else { audit::audit(events) };
    }
    if let Some(address) = at {
        // A command that the handle gives up is retried under its identifier, and has its effect once.
        let retry = RetryPolicy { attempts_max: 100, ..RetryPolicy::default() };
        return work.make(&CommandBus::connect(&address, &BusOptions::default())?.with_retry(retry));
    }
    let mut host = Host::at(&place)?;
    if place == "memory" {
        // Without a journal, events exist only in the window, and the audit reads all of them: enough for half a million
        // transfers.
        host = host.window_bytes(256 << 20);
    }
    let model = CommandModel::new().aggregate::<Account>().handler(TransferHandler);
    let host = host.aggregates(model).start()?;
    if place.ends_with(".toml") {
        let stopping = host.clone();
        ctrlc::set_handler(move || _ = stopping.stop())?;
        return Ok(host.wait()?);
    }
    work.make(&host.bus(&BusOptions::default())?)?;
    audit::audit(host.events(Position::default())?)?;
    host.stop()?;
    Ok(())
}
