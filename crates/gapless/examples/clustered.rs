//! A service on a cluster: an account whose balance survives the death of any member.
//!
//! ```sh
//! gapless cluster new accounts
//! for member in 1 2 3; do cargo run --release --example clustered -- accounts/member-$member.toml & done
//! cargo run --release --example clustered -- deposit 5 accounts/member-1 accounts/member-2 accounts/member-3
//! ```
//!
//! Kill the leader between two deposits, or in the middle of one: each is booked once.

use gapless::Host;
use gapless::client::TCP_PREFIX;
use gapless::prelude::*;
use gapless::stream::StreamLayout;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Default, Serialize, Deserialize, State)]
struct Account {
    balance: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = AccountFull)]
struct Deposit(u64);

#[derive(Debug, Serialize, Deserialize, Message)]
struct AccountFull;

#[gapless::service]
impl Account {
    #[command]
    fn deposit(&mut self, Deposit(amount): Deposit) -> Result<u64, AccountFull> {
        self.balance = self.balance.checked_add(amount).ok_or(AccountFull)?;
        Ok(self.balance)
    }
}

fn run(place: &str) -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::at(place)?.service(Account::default()).start()?;
    eprintln!("{place} runs from sequence {} on; Ctrl-C stops it", host.status().handled);
    let stopping = host.clone();
    ctrlc::set_handler(move || _ = stopping.stop())?;
    Ok(host.wait()?)
}

fn deposit(amount: &str, members: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let address = |member: &String| {
        let is_port = member.starts_with(TCP_PREFIX);
        if is_port { PathBuf::from(member) } else { StreamLayout::new(member).socket() }
    };
    let addresses: Vec<_> = members.iter().map(address).collect();
    let mut client = PolledClient::connect_any(&addresses, ClientOptions::default())?;
    let session = client.open_session(random_token(), 1)?;
    match client.call_request(session, &Deposit(amount.parse()?), Duration::from_secs(10))? {
        Ok(balance) => println!("the balance is {balance}"),
        Err(AccountFull) => println!("refused: the account is full"),
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [file] => run(file),
        [word, amount, members @ ..] if word == "deposit" && !members.is_empty() => deposit(amount, members),
        _ => Err("a member's file is expected, or: deposit AMOUNT MEMBER…, each a directory or tcp:HOST:PORT".into()),
    }
}
