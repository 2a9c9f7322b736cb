//! A refusal's application code reaches the client, also when the command is repeated after a restart.

use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{Incoming, PolledClient};
use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const ORDER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const OUT_OF_STOCK: u64 = 0x1234_5678_9abc;

struct Shop;

impl Service for Shop {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ORDER.schema, |_: &mut Self, payload: &[u8], _: &mut Context<'_>| -> Result<(), Reject> {
            match payload {
                b"a lamp" => Err(Reject::new(OUT_OF_STOCK, "no lamp is left")),
                _ => Err("nobody knows it".into()),
            }
        });
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn start(directory: &Path) -> ServiceHost {
    ServiceHost::start(Shop, ServiceHostOptions::in_directory(directory)).unwrap()
}

#[test]
fn client_gets_the_refusal_code() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(directory.path());
    let mut client = PolledClient::connect(host.socket_path().unwrap(), ClientOptions::default()).unwrap();
    let session = client.open_session(1, 4).unwrap();
    let refused = client.call(session, ORDER, b"a lamp", PATIENCE).unwrap_err();
    assert_eq!(refused.to_string(), format!("refused (Rejected {OUT_OF_STOCK}): no lamp is left"));
    let ClientError::Refused { code, detail, reason } = refused else { panic!("{refused}") };
    assert_eq!((code, detail, &*reason), (RefusalCode::Rejected, OUT_OF_STOCK, "no lamp is left"));
    let refused = client.call(session, ORDER, b"a chair", PATIENCE).unwrap_err();
    assert!(matches!(&refused, ClientError::Refused { detail: 0, reason, .. } if reason == "nobody knows it"));
    host.stop().unwrap();

    let host = start(directory.path());
    client.reconnect().unwrap();
    client.repeat(session, 1).unwrap();
    client.flush();
    let (mut told, begun) = (None, Instant::now());
    while told.is_none() {
        assert!(begun.elapsed() < PATIENCE, "the repeated command gets no reply");
        client
            .poll(1, |incoming| {
                if let Incoming::Reply { reply, .. } = incoming {
                    told = reply.refusal.map(|refusal| (refusal.code, refusal.detail));
                }
            })
            .unwrap();
    }
    assert_eq!(told, Some((RefusalCode::Rejected, OUT_OF_STOCK)));
    host.stop().unwrap();
}
