//! A calculator: two instances that serve and a client that calls, each a process of its own.
//!
//! ```sh
//! cargo run -p gapless-rpc --example calculator                # starts all three
//! cargo run -p gapless-rpc --example calculator -- instance        # or one of each, in terminals of their own
//! cargo run -p gapless-rpc --example calculator -- client
//! ```
//!
//! Or supervised, so that a dead instance is restarted at once: put `calculator.toml` from this folder into a folder of
//! its own, and there
//!
//! ```sh
//! cargo build --release -p gapless-cli -p gapless-rpc --bins --examples
//! export PATH=$PWD/target/release:$PWD/target/release/examples:$PATH
//! cp crates/gapless-rpc/examples/calculator/calculator.toml /tmp; cd /tmp
//! gapless up calculator.toml
//! GAPLESS_DOMAIN=$PWD/calculator.state/domain calculator client
//! gapless ps
//! gapless down
//! ```

use gapless_rpc::{CallError, CallOptions, Domain, DomainOptions, Message, Refusal};
use serde::{Deserialize, Serialize};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize, Message)]
enum Ask {
    Add(i64, i64),
    Divide(i64, i64),
}

const ROUTE: &str = "calculator";
const DIVISION_BY_ZERO: u32 = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("instance") => instance(false),
        Some("instance-of-all") => instance(true),
        Some("client") => client(),
        _ => all(),
    }
}

/// Serves until SIGTERM or Ctrl-C, or, if the example itself started it, until its standard input ends.
fn instance(is_of_all: bool) -> Result<(), Box<dyn std::error::Error>> {
    let (stop, stopped) = std::sync::mpsc::channel();
    let ended = stop.clone();
    ctrlc::set_handler(move || {
        let _ = stop.send(());
    })?;
    let domain = Domain::open_from_environment("calculator-example", DomainOptions::default())?;
    let route = domain.serve(ROUTE).workers(2).handle(|ask: Ask, _context| match ask {
        Ask::Add(a, b) => Ok(a + b),
        Ask::Divide(_, 0) => Err(Refusal::new(DIVISION_BY_ZERO, "nothing can be divided by zero").into()),
        Ask::Divide(a, b) => Ok(a / b),
    })?;
    if is_of_all {
        std::thread::spawn(move || {
            let _ended_or_broken = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = ended.send(());
        });
    }
    stopped.recv()?;
    route.drain();
    Ok(())
}

fn client() -> Result<(), Box<dyn std::error::Error>> {
    let domain = Domain::open_from_environment("calculator-example", DomainOptions::default())?;
    let calculator = domain.caller::<Ask, i64>(ROUTE)?;
    let patient = CallOptions { wait_for_route: Some(Duration::from_secs(10)), ..CallOptions::default() };
    println!("2 + 40 = {}", calculator.call_with(Ask::Add(2, 40), &patient)?);
    match calculator.call(Ask::Divide(7, 0)) {
        Err(CallError::Refused { refusal, .. }) if refusal.code == DIVISION_BY_ZERO => {
            println!("7 / 0: {}", refusal.text)
        }
        other => return Err(format!("7 / 0 was not refused: {other:?}").into()),
    }
    Ok(())
}

fn all() -> Result<(), Box<dyn std::error::Error>> {
    let start = |role: &str, input| Command::new(std::env::current_exe()?).arg(role).stdin(input).spawn();
    let instances: Vec<Child> =
        (0..2).map(|_| start("instance-of-all", Stdio::piped())).collect::<Result<_, std::io::Error>>()?;
    let client = start("client", Stdio::null())?.wait()?;
    for mut instance in instances {
        drop(instance.stdin.take());
        instance.wait()?;
    }
    if client.success() { Ok(()) } else { Err("the client has failed".into()) }
}
