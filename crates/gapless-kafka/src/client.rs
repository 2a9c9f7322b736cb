//! Connection to Kafka's brokers. No other module names `rdkafka`; all calls but those of [`Topics`] return at once.
//!
//! ```no_run
//! use gapless_kafka::client::{BrokerConnection, ProduceRequest, Producer, ProducerEvent, ProducerOptions};
//!
//! let connection = BrokerConnection::new("127.0.0.1:9092", "example");
//! let producer = Producer::open(&connection, &ProducerOptions::default())?;
//! let headers = [("gapless-kind", &b"ping"[..])];
//! producer.send(&ProduceRequest { topic: "shop.inbox.b", key: None, payload: Some(b"1"), headers: &headers }, 1)?;
//! producer.flush(std::time::Duration::from_secs(5))?;
//! if let Some(ProducerEvent::DeliveryReport(delivery)) = producer.take() {
//!     println!("record {} has offset {:?}", delivery.token, delivery.offset);
//! }
//! # Ok::<(), gapless_kafka::client::BrokerError>(())
//! ```

mod callbacks;
mod consumer;
mod errors;
#[allow(unsafe_code, reason = "see the module")]
mod native;
mod producer;
mod settings;
mod topics;
mod waiting_task;

#[cfg(test)]
#[allow(unsafe_code, reason = "librdkafka's own call for tests")]
pub(crate) mod faults;
#[cfg(test)]
mod tests;

pub use crate::config::Compression;
pub use consumer::{Consumer, ConsumerEvent, ReceivedRecord};
pub use errors::{BrokerError, BrokerErrorKind};
pub use native::{KafkaHeader, RecordPersistence};
pub use producer::{DeliveryReport, ProduceRequest, Producer, ProducerEvent};
pub use settings::{BrokerConnection, ConsumerOptions, ProducerOptions, StartOffset};
pub use topics::{TopicCreation, TopicDescription, TopicDifference, TopicSpec, Topics};
