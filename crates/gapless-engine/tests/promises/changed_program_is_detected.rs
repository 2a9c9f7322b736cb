//! Replayed outputs are compared with the record, and a change of program is logged or refused.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::polled::MessageType;
use gapless_client::session_key::SessionKey;
use gapless_client::{ClientOptions, PolledClient};
use gapless_engine::{
    Context, EngineError, Handlers, OnOtherOutputs, OnOtherProgram, Reject, Service, ServiceHost, ServiceHostOptions,
};
use gapless_schema::Encoding;
use gapless_transport::token::random_token;
use std::path::Path;
use std::time::Duration;

const ADD: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const TIMEOUT: Duration = Duration::from_secs(20);

/// `factor` differs in another build, `is_silent` suppresses replies.
struct Sum {
    sum: u64,
    factor: u64,
    is_silent: bool,
}

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(
            ADD.schema,
            |sum: &mut Self, payload: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
                sum.sum += sum.factor * u64::from(payload[0]);
                if sum.is_silent { Ok(()) } else { context.reply_with(ADD, &sum.sum.to_le_bytes()) }
            },
        );
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.sum.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.sum = u64::from_le_bytes(state.try_into().map_err(|_| "eight bytes")?);
        Ok(())
    }
}

const SUM: Sum = Sum { sum: 0, factor: 1, is_silent: false };

fn options(directory: &Path, program: &str) -> ServiceHostOptions {
    let mut options = ServiceHostOptions {
        socket_path: None,
        snapshot_on_stop: false,
        ..ServiceHostOptions::in_directory(directory)
    };
    options.policy.program = Some(program.to_owned());
    options
}

fn add(client: &mut PolledClient, session: SessionKey, count: u64) -> u64 {
    let reply = (0..count).map(|_| client.call(session, ADD, &[1], TIMEOUT).unwrap()).last().unwrap();
    reply.payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn handled(directory: &Path, service: Sum, count: u64) {
    let host = ServiceHost::start(service, options(directory, "first")).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(random_token(), 16).unwrap();
    add(&mut client, session, count);
    host.stop().unwrap();
}

#[test]
fn changed_handlers_are_found() {
    let directory = tempfile::tempdir().unwrap();
    handled(directory.path(), SUM, 100);
    let changed = || Sum { factor: 12, ..SUM };
    // Even under the same name, which wrongly declares two builds equal.
    for program in ["first", "second"] {
        let error = ServiceHost::start(changed(), options(directory.path(), program)).err().unwrap();
        assert!(matches!(error, EngineError::OtherOutputs { first: 1, last: 101, .. }), "{error}");
        let named = "outputs, from sequence 2 (schema 1 template 1, session 1, session_seq 1) on: ";
        assert!(error.to_string().contains(named), "{error}");
    }
    let host = ServiceHost::start(SUM, options(directory.path(), "second")).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(random_token(), 16).unwrap();
    assert_eq!(add(&mut client, session, 11), 111);
    host.stop().unwrap();
    let error = ServiceHost::start(changed(), options(directory.path(), "second")).err().unwrap();
    assert!(matches!(error, EngineError::OtherOutputs { first: 1, last: 101, .. }), "{error}");
    let mut accepting = options(directory.path(), "second");
    accepting.policy.on_other_outputs = OnOtherOutputs::Warn;
    let host = ServiceHost::start(changed(), accepting).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(random_token(), 16).unwrap();
    assert_eq!(add(&mut client, session, 1), 12 * 112, "as it was asked to");
    host.stop().unwrap();
}

#[test]
fn snapshot_begins_a_record() {
    let directory = tempfile::tempdir().unwrap();
    let mut each_tenth = options(directory.path(), "first");
    each_tenth.snapshot_interval_frames = Some(10);
    let host = ServiceHost::start(SUM, each_tenth).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(random_token(), 16).unwrap();
    add(&mut client, session, 95);
    host.snapshot().unwrap();
    add(&mut client, session, 7);
    host.stop().unwrap();
    let error = ServiceHost::start(Sum { factor: 2, ..SUM }, options(directory.path(), "first")).err().unwrap();
    let EngineError::OtherOutputs { first, last: 103, ref at, .. } = error else { panic!("{error}") };
    assert_eq!((first, at), (97, &(97..=97)), "after the snapshot");
    assert_eq!(ServiceHost::start(SUM, options(directory.path(), "first")).unwrap().stop().unwrap(), 103);
}

#[test]
fn other_program_can_be_refused() {
    let directory = tempfile::tempdir().unwrap();
    handled(directory.path(), Sum { is_silent: true, ..SUM }, 20);
    let changed = || Sum { is_silent: true, factor: 5, ..SUM };
    let mut refusing = options(directory.path(), "second");
    refusing.policy.on_other_program = OnOtherProgram::Refuse;
    let error = ServiceHost::start(changed(), refusing.clone()).err().unwrap();
    assert!(matches!(error, EngineError::OtherProgram { first: 1, last: 21 }), "{error}");
    let mut first = options(directory.path(), "first");
    first.snapshot_on_stop = true;
    ServiceHost::start(Sum { is_silent: true, ..SUM }, first).unwrap().stop().unwrap();
    ServiceHost::start(changed(), refusing).unwrap().stop().unwrap();
    let other = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut unnamed = options(other.path(), "");
        (unnamed.policy.program, unnamed.policy.on_other_program) = (None, OnOtherProgram::Refuse);
        let host = ServiceHost::start(SUM, unnamed).unwrap();
        let mut client = host.connect(ClientOptions::default()).unwrap();
        let session = client.open_session(random_token(), 16).unwrap();
        add(&mut client, session, 5);
        host.stop().unwrap();
    }
}
