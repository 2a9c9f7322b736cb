use super::clients::{connection, consumer, delivery, make_topic, producer, record, send};
use gapless_kafka::client::{BrokerConnection, BrokerErrorKind, RecordPersistence, StartOffset, Topics};
use gapless_testkit::kafka_broker::{CertificateAuthority, KafkaBroker};
use gapless_testkit::ports::own_loopback;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::PATIENCE;
use std::path::Path;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("connections_are_encrypted", connections_are_encrypted)
}

fn connections_are_encrypted() {
    let (host, folder, other) = (own_loopback(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    CertificateAuthority::new(folder.path()).certify(folder.path(), host, 4096);
    CertificateAuthority::new(other.path()).certify(other.path(), host, 4096);
    let tls = folder.path().to_str().expect("the folder has a plain name");
    let arguments = ["--tls", tls, "--sasl", "root:secret-1"];
    let Some(broker) = KafkaBroker::start_at(host, None, &arguments) else { return };
    let with = |folder: &Path, mechanism: &str, password: &str| {
        connection(&broker.address())
            .with("security.protocol", "SASL_SSL")
            .with("ssl.ca.location", folder.join("ca.pem").to_str().expect("a plain name"))
            .with("sasl.mechanism", mechanism)
            .with("sasl.username", "root")
            .with("sasl.password", password)
    };
    let good = with(folder.path(), "SCRAM-SHA-512", "secret-1");
    make_topic(&good, "a");
    let sender = producer(&good);
    send(&sender, "a", b"1", 1);
    assert_eq!(delivery(&sender).persistence, RecordPersistence::Persisted);
    assert_eq!(record(&consumer(&good, "a", StartOffset::Beginning)).payload.as_deref(), Some(&b"1"[..]));

    let refusal = |connection: &BrokerConnection| {
        let refused = Topics::connect(connection, PATIENCE).err().expect("it is refused");
        println!("{refused}");
        refused.kind
    };
    assert_eq!(refusal(&with(folder.path(), "SCRAM-SHA-256", "secret-0")), BrokerErrorKind::Authentication);
    assert_eq!(refusal(&with(other.path(), "PLAIN", "secret-1")), BrokerErrorKind::Authentication);

    let (host, expired) = (own_loopback(), tempfile::tempdir().unwrap());
    CertificateAuthority::new(expired.path()).certify(expired.path(), host, 2001);
    let tls = expired.path().to_str().expect("the folder has a plain name");
    let Some(broker) = KafkaBroker::start_at(host, None, &["--tls", tls]) else { return };
    let late = connection(&broker.address())
        .with("security.protocol", "SSL")
        .with("ssl.ca.location", expired.path().join("ca.pem").to_str().expect("a plain name"));
    assert_eq!(refusal(&late), BrokerErrorKind::Authentication);
}
