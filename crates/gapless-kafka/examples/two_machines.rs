//! The calculator on two machines: a domain for each, with a bridge, over a broker of Kafka that this starts itself.
//!
//! ```sh
//! cargo run --release -p gapless-kafka --features kafka --example two_machines
//! ```
//!
//! Needs Java 17 and, the first time, Maven.

use gapless_kafka::bridge::{Bridge, BridgeEvent};
use gapless_kafka::config::BridgeConfig;
use gapless_rpc::{CallError, CallOptions, Domain, DomainOptions, Message, Refusal};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize, Message)]
enum Ask {
    Add(i64, i64),
    Divide(i64, i64),
}

const ROUTE: &str = "calculator";
const DIVISION_BY_ZERO: u32 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bridge", file] => bridge(file),
        ["calculator", directory] => calculator(directory),
        _ => both_machines(),
    }
}

fn bridge(file: &str) -> Result<(), Box<dyn Error>> {
    let config = BridgeConfig::load(file)?;
    let name = config.name.clone();
    let bridge = Bridge::start(config, move |event: &BridgeEvent| println!("{name}: {event}"))?;
    until_input_ends();
    Ok(bridge.end()?)
}

/// The calculator of the second machine, until its standard input ends.
fn calculator(directory: &str) -> Result<(), Box<dyn Error>> {
    let domain = Domain::open_directory(directory, DomainOptions::default())?;
    let route = domain.serve(ROUTE).workers(2).handle(|ask: Ask, _context| match ask {
        Ask::Add(a, b) => Ok(a + b),
        Ask::Divide(_, 0) => Err(Refusal::new(DIVISION_BY_ZERO, "nothing can be divided by zero").into()),
        Ask::Divide(a, b) => Ok(a / b),
    })?;
    until_input_ends();
    route.drain();
    Ok(())
}

fn until_input_ends() {
    let _ended_or_broken = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

fn both_machines() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let broker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/peers/kafka/broker");
    println!("starting a broker; the first time it is fetched by Maven");
    let mut command = Command::new(broker);
    command.arg("--data").arg(folder.path().join("kafka"));
    let mut broker = Part::start(command.stdout(Stdio::piped()))?;
    let address = broker.address()?;
    println!("the broker listens at {address}");
    let mut parts = Vec::new();
    for (name, offer, take) in [("berlin", "", "\"calculator\""), ("tokyo", "\"calculator\"", "")] {
        let file = folder.path().join(format!("{name}.toml"));
        let text = format!(
            "offer = [{offer}]\ntake = [{take}]\n[kafka]\nbrokers = [\"{address}\"]\nname = \"{name}\"\n[domain]\ndirectory = \"{name}\"\n"
        );
        std::fs::write(&file, text)?;
        parts.push(Part::start(Command::new(std::env::current_exe()?).arg("bridge").arg(&file))?);
    }
    let tokyo = folder.path().join("tokyo");
    parts.push(Part::start(Command::new(std::env::current_exe()?).arg("calculator").arg(tokyo))?);
    let ended = client(&folder.path().join("berlin"));
    // Bridges before their broker.
    drop(parts);
    drop(broker);
    ended
}

fn client(directory: &Path) -> Result<(), Box<dyn Error>> {
    let domain = Domain::open_directory(directory, DomainOptions::default())?;
    let calculator = domain.caller::<Ask, i64>(ROUTE)?;
    let wait = Some(Duration::from_secs(60));
    let patient = CallOptions { timeout: wait, wait_for_route: wait, ..CallOptions::default() };
    println!("2 + 40 = {}", calculator.call_with(Ask::Add(2, 40), &patient)?);
    match calculator.call(Ask::Divide(7, 0)) {
        Err(CallError::Refused { refusal, .. }) if refusal.code == DIVISION_BY_ZERO => {
            println!("7 / 0: {}", refusal.text)
        }
        other => return Err(format!("7 / 0 was not refused: {other:?}").into()),
    }
    Ok(())
}

/// Ends with its standard input, which is dropped with this.
struct Part(Child);

impl Part {
    fn start(command: &mut Command) -> Result<Self, std::io::Error> {
        command.stdin(Stdio::piped()).spawn().map(Self)
    }

    fn address(&mut self) -> Result<String, Box<dyn Error>> {
        let output = self.0.stdout.take().ok_or("the broker's output is not read")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let said: serde_json::Value = serde_json::from_str(&line).map_err(|_| "the broker does not start")?;
        Ok(said["address"].as_str().ok_or("the broker says no address")?.to_owned())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
