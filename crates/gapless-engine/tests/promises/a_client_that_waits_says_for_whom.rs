//! A client that waits for its service says so in the log, once a second at first: a service that is gone, and one that does not answer.

use gapless_client::client::{ClientOptions, MessageType};
use gapless_client::{Client, ClientError};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const WAIT: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

/// Handles a command when it is let to.
struct Gate(Arc<Mutex<()>>);

impl Service for Gate {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(WAIT.schema, |it: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            drop(it.0.lock().unwrap());
            context.reply_with(WAIT, b"")
        });
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// The warnings of this thread, a line each.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<String>>);

struct InOneLine<'a>(&'a mut String);

impl Visit for InOneLine<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut lines = self.0.lock().unwrap();
        event.record(&mut InOneLine(&mut lines));
        lines.push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn of_a_service_that_is_gone_and_of_one_that_does_not_answer() {
    // With one subscriber alone, whichever thread comes by a place first would say for all whether that is of interest.
    let _other = tracing::Dispatch::new(Warnings::default());
    let (directory, gate) = (tempfile::tempdir().unwrap(), Arc::<Mutex<()>>::default());
    let host = ServiceHost::start(Gate(Arc::clone(&gate)), ServiceHostOptions::in_directory(directory.path())).unwrap();
    let mut client = Client::connect(directory.path().join("node.socket"), ClientOptions::default()).unwrap();
    let session = client.open_session(1, 4).unwrap();
    let warnings = Warnings::default();
    let said = Arc::clone(&warnings.0);
    tracing::subscriber::with_default(warnings, || {
        client.call(session, WAIT, b"", Duration::from_secs(60)).unwrap();
        assert_eq!(*said.lock().unwrap(), "", "who is answered waits for nobody");
        let closed = gate.lock().unwrap();
        let error = client.call(session, WAIT, b"", Duration::from_millis(2_500)).unwrap_err();
        assert!(matches!(error, ClientError::OutcomeUnknown { .. }), "{error}");
        drop(closed);
        let lines = std::mem::take(&mut *said.lock().unwrap());
        assert!(lines.contains("waited_s=1 ") && lines.contains("waited_s=2 "), "{lines}");
        assert!(lines.contains("waits for a reply from ") && lines.contains("node.socket"), "{lines}");
        host.stop().unwrap();
        client.call(session, WAIT, b"", Duration::from_millis(2_500)).unwrap_err();
        let lines = std::mem::take(&mut *said.lock().unwrap());
        assert!(lines.contains("waited_s=1 ") && lines.contains("no service is there for a client"), "{lines}");
    });
}
