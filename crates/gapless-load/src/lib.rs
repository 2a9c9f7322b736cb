//! Load of the benchmarks: code that runs for each message of a timed section, in any process.
//!
//! `gapless-bench` reads the command line, starts the processes and prints; it is compiled without optimisation. So
//! every timed loop, and every generic part of the engine on a message's path, is instantiated here.
//!
//! | module | what lives there |
//! |---|---|
//! | [`components`] | single parts of a message's path |
//! | [`failover`] | clients and service of `gapless bench failover` |
//! | [`commands`] | buses, aggregates and drivers of `gapless bench commands` |
//! | [`sequencer`] | processes of `gapless bench sequencer` |
//! | `network` | bridges and bare clients of `gapless bench network`; with the feature `kafka` |
//! | [`rpc`] | callers, servers and timed calls of `gapless bench rpc` |
//! | [`peers`] | other systems to compare calls with: their brokers, clients and servers |
//! | [`canonical`] | the message, the services and the driver of `gapless bench canonical` |
//! | [`values`] | values of single options that choose a service or a message |

#![forbid(unsafe_code)]

pub mod canonical;
pub mod commands;
pub mod components;
pub mod failover;
#[cfg(feature = "kafka")]
pub mod network;
pub mod peers;
pub mod rpc;
pub mod sequencer;
pub mod values;

pub use gapless_measure::{BenchError, Result};
use gapless_measure::{child_process, histogram, open_loop, own_directory, resources, statistics, time_sources};
