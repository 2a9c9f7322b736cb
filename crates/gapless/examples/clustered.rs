//! A service on a cluster: an account whose balance survives the death of any member.
//!
//! ```sh
//! gapless cluster new accounts
//! for member in 1 2 3; do cargo run --release --example clustered -- accounts/member-$member.toml & done
//! cargo run --release --example clustered -- deposit 5 accounts/member-1 accounts/member-2 accounts/member-3
//! ```
//!
//! Kill the leader between two deposits, or in the middle of one: each is booked once.

use gapless::client::TCP_PREFIX;
use gapless::prelude::*;
use gapless::stream::StreamLayout;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

const DEPOSIT: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct Account {
    balance: u64,
}

impl Service for Account {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(DEPOSIT.schema, |account, payload, context| {
            let amount = u64::from_le_bytes(payload.try_into().map_err(|_| "8 bytes are expected")?);
            account.balance = account.balance.checked_add(amount).ok_or("the account is full")?;
            context.reply_with(DEPOSIT, &account.balance.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.balance.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.balance = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
        Ok(())
    }
}

fn run(file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let config = ClusterConfig::load(Path::new(file))?;
    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || _ = stop.send(()))?;
    loop {
        let replica = Replica::start(Account::default(), ReplicaOptions::default(), &config)?;
        eprintln!("{file} runs from sequence {} on; Ctrl-C stops it", replica.handled_sequence());
        loop {
            if stopped.recv_timeout(Duration::from_millis(200)).is_ok() {
                replica.stop()?;
                return Ok(());
            }
            match replica.failure() {
                // The member was away for long, and has fetched the state of another member.
                Some(_) if replica.must_start_again() => break,
                Some(failure) => return Err(failure.into()),
                None => {}
            }
        }
    }
}

fn deposit(amount: &str, members: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let address = |member: &String| {
        let is_port = member.starts_with(TCP_PREFIX);
        if is_port { PathBuf::from(member) } else { StreamLayout::new(member).socket() }
    };
    let addresses: Vec<_> = members.iter().map(address).collect();
    let mut client = PolledClient::connect_any(&addresses, ClientOptions::default())?;
    let session = client.open_session(random_token(), 1)?;
    let amount: u64 = amount.parse()?;
    let reply = client.call(session, DEPOSIT, &amount.to_le_bytes(), Duration::from_secs(10))?;
    println!("the balance is {}", u64::from_le_bytes(reply.payload.as_slice().try_into()?));
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
