//! Other systems to compare calls with, each as small and as fast as its protocol allows.
//!
//! | module | what lives there |
//! |---|---|
//! | [`rabbitmq`] | a private node of RabbitMQ; AMQP 0-9-1 for a caller and a server |
//! | [`nats`] | a private `nats-server`; its text protocol for a caller and a server |
//! | [`broker`] | a broker as a process of the benchmark: found, started, measured, stopped with all its children |
//! | `connection` | a TCP connection that waits spinning or blocking, and buffers both ways |
//! | [`subject`] | the two ends of a system under test |
//! | `error` | [`PeerError`] |
//!
//! The protocols are implemented here, with blocking sockets and no threads: no library is between the clock and the
//! broker, both ways of waiting are possible, and no build pays for a client library.

pub mod broker;
mod connection;
mod error;
pub mod nats;
pub mod rabbitmq;
pub mod subject;

pub use error::{PeerError, Result};
