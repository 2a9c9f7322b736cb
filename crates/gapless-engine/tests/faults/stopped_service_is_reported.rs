//! A client of a stopped process logs that, names it in its error, and later continues. A client of a failed service
//! learns the reason.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]
#![allow(clippy::print_stdout, reason = "it says that it runs")]

use crate::warnings::Warnings;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{ClientError, PolledClient};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until_some};
use rustix::process::Signal;
use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

const SERVICE: &str = "stopped_service_is_reported::service";
const FAILING: &str = "stopped_service_is_reported::failing";
const ECHO: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

struct Echo;

impl Service for Echo {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ECHO.schema, |_: &mut Self, text: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            assert_ne!(text, b"panic", "a handler with a bug");
            context.reply_with(ECHO, text)
        });
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

pub fn run_as_service_if_requested() {
    if let Some(arguments) = started_as(FAILING) {
        let host = ServiceHost::start(Echo, ServiceHostOptions::in_directory(&arguments[0])).unwrap();
        println!("running");
        while host.failure().is_none() {
            std::thread::yield_now();
        }
        host.stop().unwrap_err();
        std::process::exit(1);
    }
    let Some(arguments) = started_as(SERVICE) else { return };
    let host = ServiceHost::start(Echo, ServiceHostOptions::in_directory(&arguments[0])).unwrap();
    println!("running");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    host.stop().unwrap();
    std::process::exit(0);
}

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("stop_is_reported_to_clients", stop_is_reported_to_clients)
        .scenario("why_it_has_failed", why_it_has_failed)
}

fn why_it_has_failed() {
    let directory = tempfile::tempdir().unwrap();
    let mut service = Process::start(this_program().arg(FAILING).arg(directory.path()));
    assert_eq!(service.line(), "running");
    let mut client = PolledClient::connect(directory.path().join("node.socket"), ClientOptions::default()).unwrap();
    let session = client.open_session(1, 4).unwrap();
    let text = b"panic";
    let encode = |buffer: &mut [u8]| {
        buffer.copy_from_slice(text);
        Ok(text.len())
    };
    client.send(session, ECHO, text.len(), encode).unwrap();
    // Another thread sends the reason, possibly long after the rings were closed.
    let reason = until_some("the reason is stated", || match client.wait(PATIENCE) {
        Ok(()) => None,
        Err(ClientError::Disconnected { reason, .. }) => reason,
        Err(error) => panic!("expected a disconnect, found {error}"),
    });
    assert!(reason.contains("sequence 2") && reason.contains("a handler with a bug"), "{reason}");
}

fn stop_is_reported_to_clients() {
    // With a single subscriber, tracing caches the interest of the thread that first reaches a callsite, for all
    // threads.
    let _other = tracing::Dispatch::new(Warnings::default());
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("node.socket");
    let mut service = Process::start(this_program().arg(SERVICE).arg(directory.path()).stdin(Stdio::piped()));
    assert_eq!(service.line(), "running");
    let mut client = PolledClient::connect(&socket, ClientOptions::default()).unwrap();
    let session = client.open_session(1, 4).unwrap();
    client.call(session, ECHO, b"one", PATIENCE).unwrap();
    let named = format!("process {}", service.pid().as_raw_nonzero());
    let is_named = |text: &str| text.contains(&named) && text.contains("is stopped by a signal; SIGCONT lets it go on");
    let warnings = Warnings::default();
    let said = Arc::clone(&warnings.0);
    tracing::subscriber::with_default(warnings, || {
        service.stop();
        let error = client.call(session, ECHO, b"two", Duration::from_millis(2_500)).unwrap_err();
        assert!(matches!(error, ClientError::OutcomeUnknown { .. }), "{error}");
        let lines = std::mem::take(&mut *said.lock().unwrap());
        assert!(lines.contains("a call waits for a reply from ") && is_named(&lines), "{lines}");
        let options = ClientOptions { timeout: Duration::from_millis(1_500), ..ClientOptions::default() };
        let Err(error) = PolledClient::connect(&socket, options) else { panic!("a stopped process accepts no client") };
        assert!(matches!(error, ClientError::TimedOut { .. }) && is_named(&error.to_string()), "{error}");
        let lines = std::mem::take(&mut *said.lock().unwrap());
        assert!(lines.contains("waited_s=") && is_named(&lines), "{lines}");
    });
    service.signal(Signal::CONT);
    client.call(session, ECHO, b"three", PATIENCE).unwrap();
}
