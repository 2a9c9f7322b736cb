//! Once a second at first: for a service that is gone, and one that does not reply.

use crate::warnings::Warnings;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{ClientError, PolledClient};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WAIT: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

struct GatedService(Arc<Mutex<()>>);

impl Service for GatedService {
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

#[test]
fn waiting_client_logs_service() {
    // With a single subscriber, tracing caches the interest of the thread that first reaches a callsite, for all
    // threads.
    let _other = tracing::Dispatch::new(Warnings::default());
    let (directory, gate) = (tempfile::tempdir().unwrap(), Arc::<Mutex<()>>::default());
    let host = ServiceHost::start(GatedService(Arc::clone(&gate)), ServiceHostOptions::in_directory(directory.path()))
        .unwrap();
    let mut client = PolledClient::connect(directory.path().join("node.socket"), ClientOptions::default()).unwrap();
    let session = client.open_session(1, 4).unwrap();
    let warnings = Warnings::default();
    let said = Arc::clone(&warnings.0);
    tracing::subscriber::with_default(warnings, || {
        client.call(session, WAIT, b"", Duration::from_secs(60)).unwrap();
        assert_eq!(*said.lock().unwrap(), "", "an answered client logs nothing");
        let closed = gate.lock().unwrap();
        let error = client.call(session, WAIT, b"", Duration::from_millis(3_500)).unwrap_err();
        assert!(matches!(error, ClientError::OutcomeUnknown { .. }), "{error}");
        drop(closed);
        let lines = std::mem::take(&mut *said.lock().unwrap());
        assert!(lines.contains("waited_s="), "{lines}");
        assert!(lines.contains("waits for a reply from ") && lines.contains("node.socket"), "{lines}");
        host.stop().unwrap();
        client.call(session, WAIT, b"", Duration::from_millis(2_000)).unwrap_err();
        let lines = std::mem::take(&mut *said.lock().unwrap());
        assert!(lines.contains("waited_s=") && lines.contains("no service is there for a client"), "{lines}");
    });
}
