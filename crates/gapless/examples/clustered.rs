//! A service on a cluster: an account whose balance survives the death of any member.
//!
//! ```sh
//! gapless cluster new accounts
//! for member in 1 2 3; do cargo run --release --example clustered -- accounts/member-$member.toml & done
//! cargo run --release --example clustered -- deposit 5 accounts/member-1,accounts/member-2,accounts/member-3
//! ```
//!
//! Kill the leader between two deposits, or in the middle of one: each is booked once.

use gapless::prelude::*;
use serde::{Deserialize, Serialize};

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

fn deposit(amount: &str, members: &str) -> Result<(), Box<dyn std::error::Error>> {
    match blocking::Client::connect(members)?.call(Deposit(amount.parse()?)) {
        Ok(balance) => println!("the balance is {balance}"),
        Err(CallError::Refused(AccountFull)) => println!("refused: the account is full"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [file] => run(file),
        ["deposit", amount, members] => deposit(amount, members),
        _ => Err("a member's file is expected, or: deposit AMOUNT MEMBERS, directories or tcp://HOST:PORT".into()),
    }
}
