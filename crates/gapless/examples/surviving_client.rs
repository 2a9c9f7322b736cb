//! A client that may be killed at any moment: each of its deposits is booked once, and it hears of each.
//!
//! ```sh
//! surviving_client ADDRESS HOME [AMOUNT …]
//! ```
//!
//! Run it again after it was killed, with or without other amounts. The guide `connecting-clients` explains it.

use gapless::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = String)]
struct Deposit {
    amount: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, home, amounts @ ..] = arguments.as_slice() else {
        return Err("ADDRESS HOME [AMOUNT …] are expected".into());
    };
    let client = Client::connect(address).durable(home)?;
    for amount in amounts {
        client.keep(Deposit { amount: amount.parse()? })?; // In the directory before it is sent.
    }
    for kept in client.kept::<Deposit>() {
        let Deposit { amount } = kept.request()?;
        match kept.wait() {
            Ok(balance) => println!("{amount} done, the balance is {balance}"),
            Err(CallError::Refused(reason)) => println!("{amount} refused: {reason}"),
            Err(other) => return Err(other.into()), // It stays kept for the next run.
        }
        kept.forget()?; // Heard, not before.
    }
    Ok(())
}
