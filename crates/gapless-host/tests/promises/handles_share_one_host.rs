//! Handles of one host: a stop by one ends the waits of all; without a stop the last drop ends the host cleanly.

use crate::programs::{Caller, Hours, Sum, add};
use gapless_client::ClientOptions;
use gapless_engine::{Context, Handlers, Service};
use gapless_host::{Host, HostError, Phase, Running};
use gapless_testkit::wait;
use std::sync::mpsc::channel;

#[test]
fn handles_are_shared_by_threads() {
    fn check<T: Clone + Send + Sync>() {}
    check::<Running>();
    check::<Running<gapless_host::Aggregates>>();
}

#[test]
fn stop_ends_every_wait() {
    let host = Host::in_memory().service(Sum::default()).start().unwrap();
    let (begun, waits) = channel();
    let waiting = [(); 3].map(|()| {
        let (host, begun) = (host.clone(), begun.clone());
        std::thread::spawn(move || {
            begun.send(()).unwrap();
            host.wait()
        })
    });
    waiting.iter().for_each(|_| waits.recv().unwrap());
    Caller::new(&host).add(&add(1));
    let last = host.clone().stop().unwrap();
    for thread in waiting {
        wait::until("the end of a wait", || thread.is_finished());
        thread.join().unwrap().unwrap();
    }
    assert_eq!(host.stop().unwrap(), last, "each handle is told the same");
    let error = host.polled_client(ClientOptions::default()).err().expect("no client");
    assert!(matches!(error, HostError::Stopped), "{error}");
    assert!(matches!(host.snapshot(), Err(HostError::Stopped)));
    let status = host.status();
    assert_eq!((status.phase, status.handled), (Phase::Stopped, last), "the last state is kept");
}

#[test]
fn last_drop_stops_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let host = || Host::in_directory(folder.path().join("data")).service(Sum::default()).start().unwrap();
    let first = host();
    let second = first.clone();
    let mut caller = Caller::new(&first);
    drop(first);
    assert_eq!(caller.add(&add(1)), 1, "another handle is there");
    drop(second);
    let again = host();
    let recovered = again.status().recovered;
    assert!(recovered.last_sequence > 0);
    assert_eq!(recovered.snapshot_sequence, recovered.last_sequence, "a snapshot was written");
    assert_eq!(Caller::new(&again).add(&add(1)), 2);
}

/// Panics at its second command.
#[derive(Default)]
struct Fragile(u64);

impl Service for Fragile {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(1 << 16 | 1, |fragile: &mut Self, _, _: &mut Context<'_>| {
            fragile.0 += 1;
            assert!(fragile.0 < 2, "the second command");
            Ok(())
        });
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn failure_ends_waits_with_its_reason() {
    let host = Host::in_memory().service_from(Fragile::default).start().unwrap();
    let mut client = host.polled_client(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    let message =
        gapless_client::polled::MessageType { schema: 1 << 16 | 1, encoding: gapless_schema::Encoding::Opaque };
    for _ in 0..2 {
        client.send(session, message, 1, |_| Ok(1)).unwrap();
    }
    let error = host.wait().unwrap_err().to_string();
    assert!(error.contains("the second command"), "{error}");
    let status = host.status();
    assert_eq!(status.phase, Phase::Failed);
    assert_eq!(status.failure.as_deref(), Some(error.as_str()));
    let stopped = host.stop().unwrap_err().to_string();
    assert!(stopped.contains("the second command"), "{stopped}");
    let told = host.snapshot().unwrap_err().to_string();
    assert!(told.contains("the second command"), "later handles are told the reason: {told}");
    assert_eq!(host.status().phase, Phase::Failed);
}

#[test]
fn version_begins_for_known_versions() {
    let host = Host::in_memory().service_from(Hours::default).start().unwrap();
    host.begin_version(2).unwrap();
    let error = host.begin_version(3).unwrap_err().to_string();
    assert!(error.contains("only 1 to 2"), "{error}");
}
