//! Other systems beside which calls are measured, each as small and as fast as its protocol allows.
//!
//! | module | what lives there |
//! |---|---|
//! | [`rabbitmq`] | a private node of RabbitMQ; AMQP 0-9-1 for a caller and a server |
//! | [`nats`] | a private `nats-server`; its text protocol for a caller and a server |
//! | [`broker`] | a broker as a process of the benchmark: found, started, its CPU time, stopped with all that it left |
//! | `connection` | a TCP connection that waits spinning or blocking, and buffers both ways |
//! | [`subject`] | the two ends of a system under test, as a benchmark of calls sees them |
//! | `error` | [`PeerError`] |
//!
//! The protocols are written out here, with blocking sockets and no thread of their own: no library stands between the
//! clock and the broker, both ways of waiting are possible, and nobody's build pays for a client library. What can be
//! sent together leaves in one system call, what has arrived is taken in one: a broker is never slowed down by its client.

pub mod broker;
mod connection;
mod error;
pub mod nats;
pub mod rabbitmq;
pub mod subject;

pub use error::{PeerError, Result};
