//! Commands of a durable client take effect once, and their outcomes are there until they are forgotten.

use super::*;
use gapless_agent::block_on::block_on;
use gapless_client::{CallError, ClientError, DurableClient, PolledClient};
use gapless_testkit::folder::{SmallDisk, copy};
use gapless_testkit::wait::until;
use gapless_wire::control::RefusalCode;

/// No service handles it.
#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Foreign(u64);

struct Place {
    folder: tempfile::TempDir,
    gate: Gate,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), gate: Gate::default() }
    }

    fn bank(&self) -> std::path::PathBuf {
        self.folder.path().join("bank")
    }

    fn home(&self) -> std::path::PathBuf {
        self.folder.path().join("home")
    }

    fn start(&self) -> ServiceHost {
        self.start_with(|_| {})
    }

    fn start_with(&self, change: impl FnOnce(&mut ServiceHostOptions)) -> ServiceHost {
        let mut options = ServiceHostOptions::in_directory(self.bank());
        options.policy.on_panic = OnPanic::DeadLetter;
        change(&mut options);
        ServiceHost::start(Effects::behind(&self.gate), options).unwrap()
    }

    fn try_open(&self) -> Result<DurableClient, ClientError> {
        Client::connect(self.bank().to_str().unwrap()).within(PATIENCE).durable(self.home())
    }

    fn open(&self) -> DurableClient {
        self.try_open().unwrap()
    }

    fn outbox(&self) -> Vec<u8> {
        std::fs::read(self.home().join("outbox")).unwrap()
    }
}

fn keep_all(client: &DurableClient, names: std::ops::Range<u64>) {
    names.for_each(|name| drop(client.keep(Add { name }).unwrap()));
}

fn effects_of(client: &DurableClient) -> Vec<u64> {
    block_on(effects(client.client()))
}

#[test]
fn outcomes_stay_until_forgotten() {
    let place = Place::new();
    let mut host = place.start();
    let mut client = place.open();
    assert_eq!(client.keep(Add { name: ONCE }).unwrap().wait(), Ok(1));
    drop(client.keep(Add { name: ONCE }).unwrap());
    drop(client.keep(Panic).unwrap());
    drop(client.keep(Fill { name: 2, length: 100_000 }).unwrap());
    drop(client.keep(Fill { name: 3, length: 2_000_000 }).unwrap());
    drop(client.keep(Foreign(4)).unwrap());
    for round in 0..3 {
        let adds = client.kept::<Add>();
        assert_eq!(adds.len(), 2);
        assert_eq!((adds[0].wait(), block_on(adds[0].outcome())), (Ok(1), Ok(1)), "in round {round}");
        assert_eq!(adds[1].request().unwrap().name, ONCE);
        assert_eq!(adds[1].wait(), Err(CallError::Refused(Twice { name: ONCE, first_place: 1 })));
        let panicked = client.kept::<Panic>()[0].wait().unwrap_err();
        assert!(matches!(panicked, CallError::Failed { code: RefusalCode::HandlerPanicked, .. }), "{panicked}");
        let fills = client.kept::<Fill>();
        assert_eq!(fills[0].wait(), Ok(Filled(vec![7; 100_000])));
        let lost = fills[1].wait().unwrap_err();
        assert!(matches!(lost, CallError::Done { .. }) && lost.took_effect() == Some(true), "{lost}");
        let foreigns = client.kept::<Foreign>();
        let foreign = &foreigns[0];
        let unhandled = foreign.wait().unwrap_err();
        assert!(matches!(unhandled, CallError::Mismatch { name: "Foreign", .. }), "{unhandled}");
        assert_eq!((foreign.request().unwrap(), client.kept_count()), (Foreign(4), 6));
        assert!(adds.iter().all(gapless_client::Kept::is_settled) && foreign.is_settled());
        assert_eq!(effects_of(&client), [ONCE, 2, 3], "each once");
        drop((adds, fills, foreigns));
        if round == 1 {
            host.stop().unwrap();
            host = place.start();
        }
        drop(client);
        client = place.open();
    }
    for kept in client.kept::<Add>() {
        kept.forget().unwrap();
    }
    assert_eq!(client.kept_count(), 4);
    drop(client);
    let client = place.open();
    assert!(client.kept::<Add>().is_empty() && client.kept_count() == 4);
    host.stop().unwrap();
}

/// Nothing but the file connects two lives: the first one leaves its session open, with commands in flight.
#[test]
fn unheard_commands_are_settled() {
    let place = Place::new();
    let mut host = place.start();
    for round in 0..4 {
        let client = place.open();
        let closed = place.gate.close();
        // More than a window, so that some are not sent.
        keep_all(&client, round * 100 + 100..round * 100 + 200);
        closed.await_arrival();
        let kept = client.kept::<Add>();
        assert_eq!(kept.len() as u64, 100);
        let (waits, is_over) = (kept[0].outcome(), kept[99].is_settled());
        assert!(!is_over);
        drop((waits, kept, client));
        closed.open();
        if round % 2 == 1 {
            host.stop().unwrap();
            host = place.start();
        }
        let client = place.open();
        for (kept, name) in client.kept::<Add>().into_iter().zip(round * 100..) {
            assert_eq!(kept.wait(), Ok(name + 1), "in the order of keeping");
            kept.forget().unwrap();
        }
        assert_eq!(client.kept_count(), 0);
        assert!(effects_of(&client).into_iter().eq(100..round * 100 + 200));
    }
    host.stop().unwrap();
}

#[test]
fn service_is_waited_for() {
    const COUNT: u64 = 10_000;
    let place = Place::new();
    let mut host = place.start();
    let client = place.open();
    keep_all(&client, 100..101);
    host.stop().unwrap();
    keep_all(&client, 101..100 + COUNT / 2);
    drop(client);
    // A client needs the service for its opening.
    assert!(Client::connect(place.bank().to_str().unwrap()).durable(place.home()).is_err());
    host = place.start();
    let client = place.open();
    keep_all(&client, 100 + COUNT / 2..100 + COUNT);
    host.stop().unwrap();
    host = place.start();
    for (kept, place) in client.kept::<Add>().into_iter().zip(1..) {
        assert_eq!(kept.wait(), Ok(place));
        kept.forget().unwrap();
    }
    assert!(effects_of(&client).into_iter().eq(100..100 + COUNT));
    assert_eq!(client.kept_count(), 0);
    assert!(place.outbox().len() < 5 << 20);
    host.stop().unwrap();
}

#[test]
fn late_commands_stay_pending() {
    let place = Place::new();
    let host = place.start();
    let address = place.bank();
    let limit = Duration::from_millis(50);
    let client = Client::connect(address.to_str().unwrap()).within(limit).waiting_max(70);
    let client = until_opened(|| client.clone().durable(place.home()));
    let closed = place.gate.close();
    keep_all(&client, 100..170);
    let kept = client.kept::<Add>();
    for late in [kept[0].wait(), block_on(kept[69].outcome())] {
        let late = late.unwrap_err();
        assert!(matches!(&late, CallError::Pending { reason } if reason.contains("50 ms")), "{late}");
        assert_eq!(late.took_effect(), None);
    }
    assert_eq!(client.keep(Add { name: 170 }).unwrap_err(), CallError::Busy { waiting: 70 });
    // The last one was not sent yet, and the first one was.
    let mut kept = kept.into_iter();
    let (first, last) = (kept.next().unwrap(), kept.next_back().unwrap());
    let other = client.kept::<Add>().remove(0);
    first.forget().unwrap();
    last.forget().unwrap();
    let forgotten = other.wait().unwrap_err();
    assert!(matches!(&forgotten, CallError::Pending { reason } if reason.contains("forgotten")), "{forgotten}");
    other.forget().unwrap();
    closed.open();
    for (kept, place) in kept.zip(2..) {
        until("an outcome", || kept.wait() == Ok(place));
    }
    until("the effects", || {
        block_on(effects(&Client::over(host.connect(ClientOptions::default()).unwrap(), options(1)).unwrap()))
            .into_iter()
            .eq(100..169)
    });
    host.stop().unwrap();
}

/// A short limit may be over before the service has answered.
fn until_opened(mut open: impl FnMut() -> Result<DurableClient, ClientError>) -> DurableClient {
    gapless_testkit::wait::until_some("an opened client", || open().ok())
}

#[test]
fn foreign_stream_is_refused() {
    let place = Place::new();
    let mut host = place.start();
    let client = place.open();
    let closed = place.gate.close();
    keep_all(&client, 100..110);
    closed.await_arrival();
    drop(client);
    closed.open();
    host.stop().unwrap();
    let aside = place.folder.path().join("aside");
    std::fs::rename(place.bank(), &aside).unwrap();
    host = place.start();
    let before = place.outbox();
    for _ in 0..2 {
        let error = place.try_open().unwrap_err();
        let ClientError::Outbox { reason, .. } = &error else { panic!("{error}") };
        assert!(reason.contains("belong to stream") && reason.contains("by hand"), "{reason}");
        assert_eq!(place.outbox(), before, "nothing changes");
    }
    host.stop().unwrap();
    std::fs::remove_dir_all(place.bank()).unwrap();
    std::fs::rename(&aside, place.bank()).unwrap();
    host = place.start();
    let client = place.open();
    for (kept, place) in client.kept::<Add>().into_iter().zip(1..) {
        assert_eq!(kept.wait(), Ok(place));
    }
    host.stop().unwrap();
}

/// The service's directory is put back to an earlier copy, which lacks seen history.
#[test]
fn restored_service_is_refused() {
    let place = Place::new();
    let mut host = place.start();
    let client = place.open();
    assert_eq!(client.keep(Add { name: 100 }).unwrap().wait(), Ok(1));
    drop(client);
    host.stop().unwrap();
    let aside = place.folder.path().join("aside");
    copy(&place.bank(), &aside);
    host = place.start();
    let client = place.open();
    assert_eq!(client.keep(Add { name: 101 }).unwrap().wait(), Ok(2));
    drop(client);
    host.stop().unwrap();
    std::fs::remove_dir_all(place.bank()).unwrap();
    std::fs::rename(&aside, place.bank()).unwrap();
    host = place.start();
    let before = place.outbox();
    let error = place.try_open().unwrap_err();
    assert!(matches!(&error, ClientError::Outbox { reason, .. } if reason.contains("by hand")), "{error}");
    assert_eq!(place.outbox(), before, "nothing changes");
    host.stop().unwrap();
}

#[test]
fn expired_session_leaves_unknown() {
    let place = Place::new();
    let short = |options: &mut ServiceHostOptions| options.session_expiry = Duration::from_millis(50);
    let mut host = place.start();
    let client = place.open();
    let closed = place.gate.close();
    keep_all(&client, 100..170);
    closed.await_arrival();
    drop(client);
    closed.open();
    host.stop().unwrap();
    host = place.start_with(short);
    // A session that was idle for a shorter time expires, too.
    let mut other = PolledClient::connect(place.bank().join("node.socket"), ClientOptions::default()).unwrap();
    let session = other.open_session(7, 4).unwrap();
    until("an expired session", || {
        std::thread::sleep(Duration::from_millis(200));
        let called = other.call_request(session, &List { place: 0 }, PATIENCE);
        called.is_err_and(|error| matches!(error, ClientError::NoSuchSession(_)))
    });
    drop(other);
    host.stop().unwrap();
    host = place.start();
    let client = place.open();
    let kept = client.kept::<Add>();
    assert_eq!(kept.len(), 70);
    let mut unknown = 0;
    for (kept, name) in kept.iter().zip(100..) {
        match kept.wait() {
            Err(CallError::Unknown { reason, .. }) => {
                assert!(name < 164 && reason.contains("between two lives"), "{name}: {reason}");
                unknown += 1;
            }
            sent => assert!(sent.is_ok() && name >= 164, "it was not sent before: {sent:?}"),
        }
    }
    assert_eq!(unknown, 64);
    let effects = effects_of(&client);
    assert!(
        effects.is_sorted() && effects.ends_with(&[164, 165, 166, 167, 168, 169]),
        "each at most once: {effects:?}"
    );
    host.stop().unwrap();
}

#[test]
fn full_disk_is_heard_of() {
    let Some(disk) = SmallDisk::new(128) else { return };
    let place = Place::new();
    let host = place.start();
    let connect = || Client::connect(place.bank().to_str().unwrap()).within(PATIENCE).durable(&disk.path).unwrap();
    let client = connect();
    let closed = place.gate.close();
    let mut names = 100..;
    let refused = loop {
        let name = names.next().unwrap();
        match client.keep(Add { name }) {
            Ok(_) => {}
            Err(error) => break (name, error),
        }
    };
    assert!(matches!(&refused.1, CallError::NotSent { reason } if reason.contains("No space left")), "{}", refused.1);
    closed.open();
    let kept = client.kept::<Add>();
    assert!(kept.len() > 64);
    let (mut done, mut pending) = (0, 0);
    for kept in kept {
        match kept.wait() {
            Ok(place) => (done, _) = (done + 1, assert_eq!(place, done + 1)),
            Err(CallError::Pending { reason }) => {
                assert!(reason.contains("No space left"), "{reason}");
                pending += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(done >= 64 && pending > 0, "{done} are done, {pending} pending");
    drop(client);
    // The first record of the next life is refused, too.
    let full = Client::connect(place.bank().to_str().unwrap()).within(PATIENCE).durable(&disk.path);
    assert!(full.is_err_and(|error| error.to_string().contains("No space left")));
    disk.remount("size=8m");
    let client = connect();
    let kept = client.kept::<Add>();
    assert_eq!(kept.len() as u64, done + pending);
    assert!(kept.iter().zip(1..).all(|(kept, place)| kept.wait() == Ok(place)), "in their order");
    assert!(effects_of(&client).into_iter().eq(100..refused.0));
    host.stop().unwrap();
}

#[test]
fn refused_commands_are_not_kept() {
    #[derive(Serialize, Deserialize, Message)]
    #[message(reply = u64)]
    struct Long(Vec<u8>);

    let place = Place::new();
    let host = place.start();
    let connect = Client::connect(place.bank().to_str().unwrap()).within(PATIENCE);
    let sessions = connect.clone().sessions(2).durable(place.home()).unwrap_err();
    assert!(matches!(sessions, ClientError::Option { option: "sessions", .. }), "{sessions}");
    let client = connect.clone().durable(place.home()).unwrap();
    let used = connect.durable(place.home()).unwrap_err();
    assert!(used.to_string().contains("another client uses this directory"), "{used}");
    // Its length is known when there is room for it.
    let long = client.keep(Long(vec![7; 17 << 20])).unwrap();
    let error = long.wait().unwrap_err();
    assert!(matches!(&error, CallError::Invalid { reason } if reason.contains("longer than the limit")), "{error}");
    assert_eq!(client.keep(Add { name: 1 }).unwrap().wait(), Ok(1));
    host.stop().unwrap();
}
