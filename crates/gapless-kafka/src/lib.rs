//! Calls between machines: bridges that carry the routes of their domains over Kafka.
//!
//! A bridge is a process of a domain. It serves the routes of other machines there, sends the requests as records to the inbox of the
//! bridge that offers the route, and calls its own domain for the requests of others. `docs/protocols/kafka.md` has the protocol.
//!
//! [`BridgeCore`] does no input or output, reads no clock and draws no random number: it takes inputs with a time and returns
//! effects. `bridge` and `client`, with the feature `kafka`, do the rest.
//!
//! | module | what lives there |
//! |---|---|
//! | `bridge` | `Bridge`: a bridge that runs; with the feature `kafka` |
//! | `client` | the connection to the brokers; with the feature `kafka` |
//! | [`bridge_core`] | [`BridgeCore`]: incarnation, mark, lease, liveness; gives each input to its part |
//! | [`status`] | [`BridgeStatus`](status::BridgeStatus): the state of a running bridge |
//! | [`bundles`] | [`Bundles`](bundles::Bundles): small records to one inbox, several as one record |
//! | [`calls_in`] | requests of other bridges and programs to this domain |
//! | [`calls_out`] | requests of this domain to other bridges |
//! | [`peers`] | the other bridges: their leases, limits, and the choice of one for a call |
//! | [`config`] | [`BridgeConfig`](config::BridgeConfig): the file of a bridge |
//! | [`counters`] | [`Counters`](counters::Counters): records that changed nothing |
//! | [`effects`] | [`Effect`](effects::Effect): an order of a core to its owner |
//! | [`presence`] | [`Lease`](presence::Lease): the statement of a bridge about itself |
//! | [`segments`] | payloads longer than a record |
//! | [`broker_time`] | the broker's clock of append times, estimated |
//! | [`record`] | records and their headers |
//! | [`outcome`] | [`CallOutcome`](outcome::CallOutcome): how a call ends, and its form in a record |
//! | [`route_filter`] | the lists of routes that are offered and taken |
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

#[cfg(feature = "kafka")]
pub mod bridge;
pub mod bridge_core;
pub mod broker_time;
pub mod bundles;
pub mod calls_in;
pub mod calls_out;
#[cfg(feature = "kafka")]
pub mod client;
pub mod config;
pub mod counters;
pub mod effects;
pub mod outcome;
pub mod peers;
pub mod presence;
pub mod record;
pub mod route_filter;
pub mod segments;
pub mod status;

pub use bridge_core::BridgeCore;
