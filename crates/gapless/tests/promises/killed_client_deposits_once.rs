use crate::ledger_process::{Run, example};
use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::{Arc, Mutex};

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = String)]
struct Deposit {
    amount: u64,
}

#[derive(Clone, Default)]
struct Bank(Arc<Mutex<Vec<u64>>>);

impl Service for Bank {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.command(|bank: &mut Self, Deposit { amount }: Deposit, context: &mut Context<'_>| {
            if amount % 10 == 0 {
                return Err("no round sums".to_owned());
            }
            // Long enough for a kill between sending and outcome.
            std::thread::sleep(Duration::from_millis(2));
            let mut booked = bank.0.lock().unwrap();
            booked.push(amount);
            let session = context.session();
            context.notify_bytes(session, 1, Encoding::Opaque, 0, |_| Ok::<_, String>(0)).unwrap();
            Ok(booked.iter().sum::<u64>())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend(self.0.lock().unwrap().iter().flat_map(|amount| amount.to_le_bytes()));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        *self.0.lock().unwrap() = state.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        Ok(())
    }
}

/// Amounts of whole lines.
fn heard(out: &str) -> impl Iterator<Item = (u64, bool)> {
    let lines = out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| {
        let (amount, rest) = line.split_once(' ').unwrap();
        (amount.parse().unwrap(), rest.starts_with("done, the balance is "))
    })
}

#[test]
fn killed_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, home) = (folder.path().join("bank"), folder.path().join("home"));
    let start = |bank: &Bank| {
        let bank = bank.clone();
        Host::in_directory(&directory).service_from(move || bank.clone()).start().unwrap()
    };
    let (mut bank, mut host) = (Bank::default(), None);
    host.replace(start(&bank));
    let socket = directory.join("node.socket");
    let (mut done, mut refused) = (BTreeSet::new(), BTreeSet::new());
    let mut run = |amounts: &[u64], kill_after: Option<Duration>| {
        let mut command = Command::new(example("surviving_client"));
        command.arg(&socket).arg(&home).args(amounts.iter().map(u64::to_string));
        let run = Run::start(&mut command);
        if let Some(after) = kill_after {
            std::thread::sleep(after);
            run.signal(rustix::process::Signal::KILL);
        }
        let ended = run.end();
        assert!(ended.was_killed() || ended.status.success(), "{}", ended.err);
        let out = String::from_utf8(ended.out.clone()).unwrap();
        heard(&out).for_each(|(amount, is_done)| _ = if is_done { &mut done } else { &mut refused }.insert(amount));
        !ended.was_killed()
    };
    let (mut ended, mut killed) = (Vec::new(), 0);
    for amount in (1..=300).step_by(3) {
        // From before it reads its directory to after it has ended.
        let kill_after = (amount % 4 != 0).then(|| Duration::from_micros(amount * 97 % 14_000));
        let amounts = [amount, amount + 1, amount + 2];
        if run(&amounts, kill_after) {
            ended.extend(amounts)
        } else {
            killed += 1
        }
        if amount == 151 {
            drop(host.take());
            bank = Bank::default();
            host = Some(start(&bank));
        }
    }
    assert!(run(&[], None));
    let booked = bank.0.lock().unwrap().clone();
    let mut times: BTreeMap<u64, u64> = BTreeMap::new();
    booked.iter().for_each(|amount| *times.entry(*amount).or_default() += 1);
    assert!(times.values().all(|times| *times == 1), "each deposit once: {times:?}");
    assert!(times.keys().eq(&done), "it has heard of each: {times:?}, {done:?}");
    assert!(refused.iter().all(|amount| amount % 10 == 0));
    assert!(ended.iter().all(|amount| done.contains(amount) || refused.contains(amount)), "{ended:?}");
    assert!(killed > 10 && ended.len() >= 75, "{killed} were killed, {} ended", ended.len() / 3);
}
