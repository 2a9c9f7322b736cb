use super::model::{Account, TransferHandler};
use super::process::BankProcess;
use super::tellers::{Command, CommandContent, Teller, outcome_of};
use gapless::Message;
use gapless::cqrs::{Aggregate as _, BusError, CommandError, CommandHandler as _, Draft, PolledBus};
use gapless::message::Headers;
use gapless_bus_checker::ReportedOutcome;
use gapless_bus_checker::reported_outcomes::LABEL;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Duration;

#[derive(Serialize, Deserialize, Message)]
struct Order {
    label: u64,
    identifier: Option<u64>,
    what: CommandContent,
}

impl Order {
    fn identifier(&self) -> Option<u128> {
        self.identifier.map(|low| u128::from(self.label) << 64 | u128::from(low))
    }
}

pub fn serve(bus: &mut PolledBus) {
    println!("ready");
    let (lines, orders) = channel();
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    loop {
        match orders.try_recv() {
            Ok(line) => send(bus, Order::from_json(line.as_bytes()).unwrap()),
            Err(TryRecvError::Empty) => _ = bus.turn_or_sleep(Duration::from_micros(200)),
            Err(TryRecvError::Disconnected) => return,
        }
    }
}

fn send(bus: &mut PolledBus, order: Order) {
    let (label, identifier) = (order.label, order.identifier());
    let headers = Headers::default().with(LABEL, label.to_le_bytes());
    match &order.what {
        CommandContent::Account(id, command) => {
            let draft = identified(Account::command(id, command), identifier).with(&headers);
            bus.send_then(draft, move |outcome| print_outcome(label, &outcome_of(outcome)));
        }
        CommandContent::Transfer(transfer) => {
            let draft = identified(TransferHandler::command(transfer), identifier).with(&headers);
            bus.send_then(draft, move |outcome| print_outcome(label, &outcome_of(outcome)));
        }
    }
}

fn identified<Command: Message, Reply, Refusal>(
    draft: Draft<'_, Command, Reply, Refusal>,
    identifier: Option<u128>,
) -> Draft<'_, Command, Reply, Refusal> {
    match identifier {
        Some(identifier) => draft.identified_by(identifier),
        None => draft,
    }
}

fn print_outcome(label: u64, outcome: &Result<ReportedOutcome, CommandError<()>>) {
    match outcome {
        Ok(ReportedOutcome::Accepted { sequence, events, version }) => {
            println!("{label} accepted {sequence} {events} {version}")
        }
        Ok(_) => println!("{label} refused"),
        Err(error) => println!("{label} failed {error}"),
    }
}

fn read(line: &str) -> Option<(u64, Result<ReportedOutcome, CommandError<()>>)> {
    let (label, said) = line.split_once(' ')?;
    let outcome = match said.split_once(' ') {
        Some(("accepted", numbers)) => {
            let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
            let [sequence, events, version] = numbers[..] else { return None };
            Ok(ReportedOutcome::Accepted { sequence, events: events as u32, version })
        }
        None if said == "refused" => Ok(ReportedOutcome::Refused),
        _ => Err(CommandError::Failed(said.to_owned())),
    };
    Some((label.parse().ok()?, outcome))
}

impl Teller {
    /// Returns whether the bank has died before `outcomes` outcomes.
    pub fn drive_owner(&mut self, process: &mut BankProcess, outcomes: u64) -> bool {
        let goal = self.counts().0 + outcomes;
        while self.counts().0 < goal && self.known().problem.is_none() {
            let mut awaited = BTreeMap::new();
            let mut lines = Vec::new();
            for command in self.batch() {
                let Command { label, identifier, what } = command.clone();
                let order = Order { label, identifier: identifier.map(|whole| whole as u64), what };
                lines.extend(order.to_json().unwrap());
                lines.push(b'\n');
                awaited.insert(label, command);
            }
            process.write(&String::from_utf8(lines).unwrap());
            while !awaited.is_empty() {
                let Some(line) = process.next_line() else {
                    let lost = awaited.into_values();
                    lost.for_each(|command| _ = self.note(command, Err(CommandError::Bus(BusError::Disconnected))));
                    return true;
                };
                if line == "ready" {
                    continue;
                }
                // The last line of a killed process may be cut.
                let Some((label, outcome)) = read(&line) else { continue };
                let command = awaited.remove(&label).unwrap_or_else(|| panic!("{line:?} is of no command"));
                self.note(command, outcome);
            }
        }
        false
    }
}
