//! Readers sleep until there are more events, a timeout, or the end of the stream.

use super::{AggregateOptions, CommandHost};
use crate::Aggregate as _;
use crate::bus::BusOptions;
use crate::directory::EventDirectory;
use crate::event_filter::EventFilter;
use crate::events::ReadError;
use crate::identity::Position;
use crate::model::CommandModel;
use crate::samples::{Account, AccountCommand};
use gapless_client::ClientError;
use gapless_engine::ServiceHostOptions;
use gapless_testkit::wait::PATIENCE;
use std::time::Duration;

#[test]
fn a_reader_is_woken_by_events() {
    let directory = tempfile::tempdir().unwrap();
    for stream in [ServiceHostOptions::in_memory(), ServiceHostOptions::in_directory(directory.path())] {
        let is_stored = stream.directory.is_some();
        let model = CommandModel::new().aggregate::<Account>();
        let host = CommandHost::start(model, AggregateOptions::default(), stream).unwrap();
        let bus = host.bus(&BusOptions::default()).unwrap();
        let mut reader = host.events(Position::default());
        let mut found = host.found_events(EventFilter::aggregate::<Account>(&1), Position::default());
        let mut outside =
            is_stored.then(|| EventDirectory::open(directory.path()).unwrap().events(Position::default()));
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                for version in 0..20 {
                    let read = loop {
                        if let Some(transaction) = reader.next_transaction().unwrap() {
                            break transaction.sequence;
                        }
                        assert!(reader.wait(PATIENCE).unwrap(), "no event came after {version}");
                    };
                    while is_stored && found.next_event().unwrap().is_none_or(|(of, _)| of.sequence < read) {
                        assert!(found.wait(PATIENCE).unwrap());
                    }
                    if let Some(outside) = &mut outside {
                        while outside.next_transaction().unwrap().is_none() {
                            assert!(outside.wait(PATIENCE).unwrap());
                        }
                    }
                }
            });
            bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
            for _ in 1..20 {
                bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap();
            }
            reading.join().unwrap();
        });
        assert!(!reader.wait(Duration::from_millis(1)).unwrap());
        drop(bus);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| reader.wait(PATIENCE));
            host.stop().unwrap();
            // The end of the bus's sessions may come before.
            assert!(matches!(waiting.join().unwrap(), Ok(true) | Err(ReadError::Stream(ClientError::Closed))));
        });
        while reader.next_transaction().unwrap().is_some() {}
        assert!(matches!(reader.wait(PATIENCE), Err(ReadError::Stream(ClientError::Closed))));
    }
}
