//! A handler that exceeds a session's 1,024 unacknowledged notices gets an error at once, so that sending first and
//! changing the state afterwards has no effect.

use gapless_client::polled::{ClientOptions, Incoming, MessageType};
use gapless_client::{ClientError, PolledClient, SessionKey};
use gapless_engine::fold::{CheckRefusals, Policy};
use gapless_engine::state::{StateHandlers, StateService};
use gapless_engine::store::{Store, Transaction};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// Payload: a session, and the number of notices for it.
const TELL: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const TELL_LATER: MessageType = MessageType { schema: 1 << 16 | 2, encoding: Encoding::Opaque };
/// Reply: sent notices, finished timers, and room of the payload's session.
const ASK: MessageType = MessageType { schema: 1 << 16 | 3, encoding: Encoding::Opaque };
const TELL_TOO_LATE: MessageType = MessageType { schema: 1 << 16 | 4, encoding: Encoding::Opaque };
const CLOSED: u64 = u64::MAX;
const MOST: u64 = 1_024;

#[derive(Default)]
struct Notifier {
    told: u64,
    rung: u64,
    receiver: u64,
}

fn numbers(payload: &[u8]) -> [u64; 2] {
    [0, 8].map(|at| u64::from_le_bytes(payload[at..at + 8].try_into().unwrap()))
}

fn tell(context: &mut Context<'_>, session: u64, count: u64) -> Result<(), Reject> {
    (0..count).try_for_each(|_| context.notify_bytes(session, ASK.schema, ASK.encoding, 0, |_| Ok::<_, String>(0)))
}

fn room(context: &Context<'_>, session: u64) -> u64 {
    context.room_for_notices(session).map_or(CLOSED, |room| room as u64)
}

impl Service for Notifier {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(TELL.schema, |teller: &mut Self, payload, context| {
            let [session, count] = numbers(payload);
            tell(context, session, count)?;
            teller.told += count;
            Ok(())
        });
        handlers.on_bytes(TELL_LATER.schema, |teller: &mut Self, payload, context| {
            let [session, count] = numbers(payload);
            teller.receiver = session;
            context.set_numbered_timer(count, context.time_ns());
            Ok(())
        });
        handlers.on_bytes(TELL_TOO_LATE.schema, |teller: &mut Self, payload, context| {
            let [session, count] = numbers(payload);
            teller.told += count;
            tell(context, session, count)
        });
        handlers.on_bytes(ASK.schema, |teller: &mut Self, payload, context| {
            let said = [teller.told, teller.rung, room(context, numbers(payload)[0])];
            context.reply_with(ASK, &said.map(u64::to_le_bytes).concat())
        });
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        tell(context, self.receiver, timer)?;
        self.rung += 1;
        Ok(())
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&[self.told, self.rung, self.receiver].map(u64::to_le_bytes).concat());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.receiver = u64::from_le_bytes(state[16..].try_into().map_err(|_| "24 bytes")?);
        [self.told, self.rung] = numbers(state);
        Ok(())
    }
}

fn start(directory: &Path) -> ServiceHost {
    let mut options = ServiceHostOptions::in_directory(directory);
    options.policy = Policy { check_refusals: CheckRefusals::Always, ..Policy::default() };
    // A start replays everything, and stops if handlers have other outputs.
    options.snapshot_on_stop = false;
    ServiceHost::start(Notifier::default(), options).unwrap()
}

fn connect(host: &ServiceHost, token: u128) -> (PolledClient, SessionKey, u64) {
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let key = client.open_session(token, 64).unwrap();
    let session = client.session_id(key).unwrap();
    (client, key, session)
}

fn call(
    client: &mut PolledClient,
    key: SessionKey,
    message: MessageType,
    numbers: [u64; 2],
) -> Result<Vec<u8>, ClientError> {
    client.call(key, message, &numbers.map(u64::to_le_bytes).concat(), PATIENCE).map(|reply| reply.payload)
}

fn ask(client: &mut PolledClient, key: SessionKey, session: u64) -> [u64; 3] {
    let said = call(client, key, ASK, [session, 0]).unwrap();
    [0, 8, 16].map(|at| u64::from_le_bytes(said[at..at + 8].try_into().unwrap()))
}

fn is_refused(outcome: Result<Vec<u8>, ClientError>, session: u64) {
    match outcome {
        Err(ClientError::Refused { code: RefusalCode::Rejected, reason, .. }) => {
            assert!(reason.contains(&format!("session {session} has 1024 unreceived notices")), "{reason}");
        }
        other => panic!("a refusal is expected, not {other:?}"),
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn refused_notices_have_no_effect() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(directory.path());
    let (_deaf, _, receiver) = connect(&host, 1);
    let (mut client, key, _) = connect(&host, 2);
    call(&mut client, key, TELL, [receiver, MOST - 1]).unwrap();
    is_refused(call(&mut client, key, TELL, [receiver, 2]), receiver);
    assert_eq!(ask(&mut client, key, receiver), [MOST - 1, 0, 1], "neither of the two was sent");
    call(&mut client, key, TELL, [receiver, 1]).unwrap();
    is_refused(call(&mut client, key, TELL, [receiver, 1]), receiver);
    call(&mut client, key, TELL_LATER, [receiver, 1]).unwrap();
    until("the refusal of the timer", || host.dead_letter_count() > 0);
    let said = ask(&mut client, key, receiver);
    assert_eq!((said, host.failure().is_none()), ([MOST, 0, 0], true));
    drop(client);
    host.stop().unwrap();

    let host = start(directory.path());
    let (mut client, key, _) = connect(&host, 2);
    assert_eq!(ask(&mut client, key, receiver), said, "the replay has the same results");
    is_refused(call(&mut client, key, TELL, [receiver, 1]), receiver);

    let (mut heard, mut receiving) = (0, connect(&host, 1).0);
    until("room", || {
        let count = |incoming: Incoming<'_>| heard += usize::from(matches!(incoming, Incoming::Notice { .. }));
        receiving.poll(64, count).unwrap();
        ask(&mut client, key, receiver)[2] == MOST
    });
    assert_eq!(heard as u64, MOST);
    call(&mut client, key, TELL, [receiver, 1]).unwrap();
    drop((client, receiving));
    host.stop().unwrap();
}

#[test]
fn early_changes_are_detected() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(directory.path());
    let (_deaf, _, receiver) = connect(&host, 1);
    let (mut client, key, _) = connect(&host, 2);
    call(&mut client, key, TELL, [receiver, MOST]).unwrap();
    let bytes = [receiver, 1].map(u64::to_le_bytes).concat();
    assert!(client.call(key, TELL_TOO_LATE, &bytes, Duration::from_secs(2)).is_err());
    until("the failure", || host.failure().is_some());
    let said = host.failure().unwrap().to_string();
    assert!(said.contains("schema 1 template 4") && said.contains("unreceived notices"), "{said}");
}

#[test]
fn closed_session_gets_no_notices() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(directory.path());
    let (mut gone, gone_key, closed) = connect(&host, 1);
    let (mut client, key, own) = connect(&host, 2);
    assert_eq!(ask(&mut client, key, closed)[2], MOST);
    gone.close_session(gone_key).unwrap();
    until("the close", || ask(&mut client, key, closed)[2] == CLOSED);
    for session in [closed, 0, 1 << 40] {
        call(&mut client, key, TELL, [session, 2 * MOST]).unwrap();
        assert_eq!(ask(&mut client, key, session)[2], CLOSED);
    }
    is_refused(call(&mut client, key, TELL, [own, MOST + 1]), own);
    drop((client, gone));
    host.stop().unwrap();
}

struct Speculative;

impl StateService for Speculative {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(TELL.schema, |_: &Self, _: &mut Transaction<'_>, payload, context| {
            let [session, count] = numbers(payload);
            tell(context, session, count)?;
            context.reply_with(ASK, &room(context, session).to_le_bytes())
        });
    }
}

#[test]
fn state_handlers_share_the_limit() {
    let host = ServiceHost::start_state(|_: &mut Store| Speculative, ServiceHostOptions::in_memory()).unwrap();
    let (_deaf, _, receiver) = connect(&host, 1);
    let (mut client, key, _) = connect(&host, 2);
    let mut told = |session, count| call(&mut client, key, TELL, [session, count]);
    assert_eq!(told(receiver, MOST - 1).unwrap(), 1_u64.to_le_bytes());
    is_refused(told(receiver, 2), receiver);
    assert_eq!(told(receiver, 1).unwrap(), 0_u64.to_le_bytes());
    is_refused(told(receiver, 1), receiver);
    assert_eq!(told(1 << 40, 2 * MOST).unwrap(), CLOSED.to_le_bytes());
    drop(client);
    host.stop().unwrap();
}
