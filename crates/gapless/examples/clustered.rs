//! A service on a cluster: an account whose balance survives the death of any member. Kill the leader between two
//! deposits, or in the middle of one: each is booked once.
//!
//! ```sh
//! gapless cluster new accounts
//! for member in 1 2 3; do cargo run --release --example clustered -- accounts/member-$member.toml & done
//! cargo run --release --example clustered -- 5 accounts/member-1,accounts/member-2,accounts/member-3
//! ```

use gapless::prelude::*;
use serde::{Deserialize, Serialize};

/// Its balance.
#[derive(Default, Serialize, Deserialize, State)]
struct Account(u64);

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = String)]
struct Deposit(u64);

#[gapless::service]
impl Account {
    #[command]
    fn deposit(&mut self, Deposit(amount): Deposit) -> Result<u64, String> {
        self.0 = self.0.checked_add(amount).ok_or("the account is full")?;
        Ok(self.0)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [amount, members] = &arguments[..] {
        let balance = blocking::Client::connect(members)?.call(Deposit(amount.parse()?))?;
        println!("the balance is {balance}");
        return Ok(());
    }
    let [file] = &arguments[..] else { return Err("MEMBER_FILE or AMOUNT MEMBERS is expected".into()) };
    let host = Host::at(file)?.service(Account::default()).start()?;
    eprintln!("{file} runs from sequence {} on; Ctrl-C stops it", host.status().handled);
    let stopping = host.clone();
    ctrlc::set_handler(move || _ = stopping.stop())?;
    Ok(host.wait()?)
}
