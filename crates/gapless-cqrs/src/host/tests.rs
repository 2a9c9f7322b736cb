//! The bus on a node: from a draft to its outcome, and what is left after a restart.

use super::*;
use crate::samples::{Account, AccountCommand, AccountRefusal, Transfer, TransferHandler, TransferRefusal};
use crate::{Aggregate as _, CommandError, CommandHandler as _};
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn model() -> CommandModel {
    CommandModel::new().aggregate::<Account>().handler(TransferHandler)
}

fn start(directory: Option<&Path>) -> (CommandHost, CommandBus) {
    let stream = directory.map_or_else(ServiceHostOptions::in_memory, ServiceHostOptions::in_directory);
    let host = CommandHost::start(model(), CommandHostOptions::default(), stream).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    (host, bus)
}

#[test]
fn a_command_is_answered_when_it_is_in_the_stream() {
    let (host, bus) = start(None);
    let opened = bus.call(Account::command(&7, &AccountCommand::Open)).unwrap();
    assert_eq!((opened.events, opened.version, opened.reply), (1, 1, ()));
    let deposited = bus.call(Account::command(&7, &AccountCommand::Deposit(50))).unwrap();
    assert!(deposited.position > opened.position && deposited.version == 2);
    let refused = bus.call(Account::command(&7, &AccountCommand::Withdraw(51)));
    assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: 50 })));
    assert_eq!(bus.call(Account::command(&8, &AccountCommand::Note)), Err(CommandError::NotFound));
    assert_eq!(bus.call(Account::command(&7, &AccountCommand::Open)), Err(CommandError::AlreadyExists));
    let conflict = bus.call(Account::command(&7, &AccountCommand::Note).expecting_version(9));
    assert_eq!(conflict, Err(CommandError::Conflict { expected: 9, found: 2 }));
    let failed = bus.call(Account::command(&7, &AccountCommand::Panic));
    assert_eq!(failed, Err(CommandError::Failed("decide panicked: nobody decides on that".to_owned())));
    bus.call(Account::command(&8, &AccountCommand::Open)).unwrap();
    let transferred = bus.call(TransferHandler::command(&Transfer { from: 7, to: 8, amount: 20 })).unwrap();
    assert_eq!((transferred.reply.left, transferred.events), (30, 2));
    let refused = bus.call(TransferHandler::command(&Transfer { from: 7, to: 9, amount: 20 }));
    assert_eq!(refused, Err(CommandError::Refused(TransferRefusal::Target(None))));
    host.stop().unwrap();
    let gone = bus.call(Account::command(&7, &AccountCommand::Note));
    assert_eq!(gone, Err(CommandError::Bus(crate::BusError::Disconnected)));
}

#[test]
fn many_threads_send_and_each_gets_its_own_outcomes() {
    let (host, bus) = start(None);
    let threads: Vec<_> = (0..8_u64)
        .map(|id| {
            let bus = bus.clone();
            std::thread::spawn(move || {
                bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
                let pending: Vec<_> =
                    (0..500).map(|_| bus.send(Account::command(&id, &AccountCommand::Deposit(1)))).collect();
                for (number, pending) in (2..).zip(pending) {
                    assert_eq!(pending.wait().unwrap().version, number);
                }
                for number in 502..600 {
                    assert_eq!(bus.call(Account::command(&id, &AccountCommand::Deposit(1))).unwrap().version, number);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    host.stop().unwrap();
}

#[test]
fn an_outcome_is_awaited_or_left_to_a_function() {
    let (host, bus) = start(None);
    gapless_agent::block_on::block_on(async {
        assert_eq!(bus.send(Account::command(&1, &AccountCommand::Open)).await.unwrap().version, 1);
        let all: Vec<_> = (0..200).map(|_| bus.send(Account::command(&1, &AccountCommand::Deposit(1)))).collect();
        for pending in all {
            pending.await.unwrap();
        }
    });
    let (told, tells) = std::sync::mpsc::channel();
    for _ in 0..100 {
        let told = told.clone();
        bus.send(Account::command(&1, &AccountCommand::Deposit(1))).then(move |outcome| told.send(outcome).unwrap());
    }
    let versions: Vec<u64> = (0..100).map(|_| tells.recv().unwrap().unwrap().version).collect();
    assert_eq!(versions, (202..302).collect::<Vec<_>>());
    // Whoever gives up waiting has still sent it.
    let mut pending = pin!(bus.send(Account::command(&1, &AccountCommand::Deposit(1))));
    let _ = matches!(pending.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    assert_eq!(bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap().version, 303);
    drop(bus.send(Account::command(&1, &AccountCommand::Deposit(1))));
    let outcome = bus.send(Account::command(&1, &AccountCommand::Deposit(1))).wait_within(Duration::from_secs(60));
    assert_eq!(outcome.unwrap().version, 305);
    host.stop().unwrap();
}

#[test]
fn events_are_read_from_any_position_and_live() {
    let directory = tempfile::tempdir().unwrap();
    for path in [Some(directory.path().join("bank")), None] {
        let (host, bus) = start(path.as_deref());
        let headers = crate::Headers::default().with("user", "x");
        bus.call(Account::command(&1, &AccountCommand::Open).with(&headers)).unwrap();
        bus.call(Account::command(&1, &AccountCommand::Many(3))).unwrap();
        assert!(bus.call(Account::command(&1, &AccountCommand::Open)).is_err());
        let mut reader = host.events(Position::default());
        let mut first = reader.next_transaction().unwrap().unwrap();
        assert_eq!((first.headers(), first.identity(), first.number), (headers, None, 1));
        let opened = first.next_event().unwrap().unwrap();
        assert_eq!((opened.aggregate, opened.id), (crate::TypeKey::of("account"), &1_u64.to_be_bytes()[..]));
        assert!(first.next_event().unwrap().is_none());
        let mut second = reader.next_transaction().unwrap().unwrap();
        let positions: Vec<Position> =
            std::iter::from_fn(|| second.next_event().unwrap()).map(|event| event.position).collect();
        let sequence = second.sequence;
        assert_eq!(positions, [0, 1, 2].map(|ordinal| Position { sequence, ordinal }));
        // The refused command has none. It goes on live.
        assert!(reader.next_transaction().unwrap().is_none());
        let accepted = bus.call(Account::command(&1, &AccountCommand::Deposit(7))).unwrap();
        assert_eq!(reader.next_transaction().unwrap().unwrap().sequence, accepted.position.sequence);
        let mut reader = host.events(positions[1]);
        let mut rest = reader.next_transaction().unwrap().unwrap();
        assert_eq!(rest.next_event().unwrap().unwrap().position, positions[1]);
        host.stop().unwrap();
    }
}

#[test]
fn what_apply_has_left_is_folded_anew() {
    let directory = tempfile::tempdir().unwrap();
    for path in [Some(directory.path().join("bank")), None] {
        let (host, bus) = start(path.as_deref());
        for id in [1, 2] {
            bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
            bus.call(Account::command(&id, &AccountCommand::Deposit(50))).unwrap();
        }
        let failed = bus.call(Account::command(&1, &AccountCommand::Poison));
        assert_eq!(failed, Err(CommandError::Failed("apply panicked: nobody applies that".to_owned())));
        let withdrawn = bus.call(Account::command(&1, &AccountCommand::Withdraw(50))).unwrap();
        assert_eq!(withdrawn.version, 3);
        assert_eq!(bus.call(Account::command(&2, &AccountCommand::Deposit(1))).unwrap().version, 3);
        host.stop().unwrap();
    }
}

#[test]
fn a_restart_has_every_aggregate_and_every_identifier() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bank");
    let mut balance = 0;
    for round in 0..3_u64 {
        let (host, bus) = start(Some(&path));
        if round == 0 {
            bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
        }
        let identified = || Account::command(&1, &AccountCommand::Deposit(10)).identified_by(5);
        let first = bus.call(identified()).unwrap();
        assert_eq!((bus.call(identified()).unwrap(), first.version), (first, 2));
        let other = bus.call(Account::command(&1, &AccountCommand::Deposit(11)).identified_by(5));
        assert_eq!(other, Err(CommandError::IdentifierReused));
        balance = 10 + round;
        // What a handler refuses is remembered, too, whatever becomes of its aggregates.
        let transfer = Transfer { from: 1, to: 2, amount: 11 };
        let refused = bus.call(TransferHandler::command(&transfer).identified_by(6));
        let overdrawn = TransferRefusal::Source(Some(AccountRefusal::Overdrawn { balance: 10 }));
        assert_eq!(refused, Err(CommandError::Refused(overdrawn)));
        let refused = bus.call(Account::command(&1, &AccountCommand::Withdraw(1000)));
        assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance })));
        bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap();
        match round {
            0 => _ = host.stop().unwrap(),
            // As a crash would be, but for what the operating system has.
            _ => drop(host),
        }
    }
    assert_eq!(balance, 12);
}
