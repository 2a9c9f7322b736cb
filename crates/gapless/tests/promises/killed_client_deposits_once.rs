use crate::ledger_process::{Run, example};
use gapless::prelude::*;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};

const DEPOSIT: u32 = 1 << 16 | 1;

#[derive(Clone, Default)]
struct Bank(Arc<Mutex<Vec<u64>>>);

impl Service for Bank {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(
            DEPOSIT,
            |bank: &mut Self, payload: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
                let amount = u64::from_le_bytes(payload.try_into().map_err(|_| "8 bytes are expected")?);
                if amount % 10 == 0 {
                    return Err("no round sums".into());
                }
                // Long enough for a kill between sending and outcome.
                std::thread::sleep(Duration::from_millis(2));
                let mut booked = bank.0.lock().unwrap();
                booked.push(amount);
                let balance: u64 = booked.iter().sum();
                context.notify_bytes(context.session(), DEPOSIT, Encoding::Opaque, 0, |_| Ok::<_, String>(0))?;
                context.reply_with(MessageType { schema: DEPOSIT, encoding: Encoding::Opaque }, &balance.to_le_bytes())
            },
        );
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend(self.0.lock().unwrap().iter().flat_map(|amount| amount.to_le_bytes()));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        *self.0.lock().unwrap() = state.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        Ok(())
    }
}

#[test]
fn killed_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, home) = (folder.path().join("bank"), folder.path().join("home"));
    std::fs::create_dir(&home).unwrap();
    let start = |bank: &Bank| {
        let bank = bank.clone();
        Host::in_directory(&directory).service_from(move || bank.clone()).start().unwrap()
    };
    let (mut bank, mut host) = (Bank::default(), None);
    host.replace(start(&bank));
    let socket = directory.join("node.socket");
    let run = |amount: Option<u64>, kill_after: Option<Duration>| {
        let mut command = Command::new(example("surviving_client"));
        command.arg(&socket).arg(&home).args(amount.map(|amount| amount.to_string()));
        let run = Run::start(&mut command);
        if let Some(after) = kill_after {
            std::thread::sleep(after);
            run.signal(rustix::process::Signal::KILL);
        }
        let ended = run.end();
        assert!(ended.was_killed() || ended.status.success(), "{}", ended.err);
        (!ended.was_killed()).then(|| String::from_utf8(ended.out).unwrap())
    };
    let (mut ended, mut killed) = (Vec::new(), 0);
    for amount in 1..=100 {
        // From before it reads its session to after it has ended.
        let kill_after = (amount % 4 != 0).then(|| Duration::from_micros(amount * 97 % 7_000));
        match run(Some(amount), kill_after) {
            // A deposit left in the outbox was sent first, and then this one.
            Some(_) => ended.push(amount),
            None => killed += 1,
        }
        if amount == 50 {
            drop(host.take());
            bank = Bank::default();
            host = Some(start(&bank));
        }
    }
    assert!(run(None, None).is_some());
    assert!(!home.join("outbox").exists());
    let booked = bank.0.lock().unwrap().clone();
    let mut times: BTreeMap<u64, u64> = BTreeMap::new();
    booked.iter().for_each(|amount| *times.entry(*amount).or_default() += 1);
    assert!(times.values().all(|times| *times == 1), "each deposit once: {times:?}");
    for amount in ended.iter().filter(|amount| *amount % 10 != 0) {
        assert!(times.contains_key(amount), "{amount} was said to be done");
    }
    assert!(killed > 10 && ended.len() >= 25, "{killed} were killed, {} ended", ended.len());
}
