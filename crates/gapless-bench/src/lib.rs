//! Code that runs for each message of a timed section is in [`gapless_load`], measuring and reporting in
//! `gapless-measure`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`roles`] | the work of each child process of a benchmark |
//! | [`overview`] | `gapless bench` without a name: one table over all systems |
//! | [`report`] | `gapless bench report`: published figures and ours, as one page |
//! | [`compare`] | `gapless bench compare`: whether one build is slower than another |
//! | [`commands`] | `gapless bench commands`: the command bus, next to the canonical row |
//! | [`components`] | `gapless bench serialization`, `log`, `messaging`, `persistence` and `time` |
//! | [`canonical`] | `gapless bench canonical` |
//! | [`options`] | every option of `gapless bench canonical`, parsed and validated |
//! | [`sequencer`] | `gapless bench sequencer`: nodes and a sequencer, over every transport |
//! | [`failover`] | `gapless bench failover`: the outage that clients see while members die and the lead changes |
//! | `network` | `gapless bench network`: calls between machines, over Kafka; with the feature `kafka` |
//! | [`rpc`] | `gapless bench rpc`: calls, next to those of other systems |
//! | [`supervisor`] | `gapless bench supervisor`: what a supervisor costs, and how fast it is |
//! | `ports` | free ports of this machine |

#![forbid(unsafe_code)]

pub mod canonical;
pub mod commands;
pub mod compare;
pub mod components;
pub mod failover;
#[cfg(feature = "kafka")]
pub mod network;
pub mod options;
pub mod overview;
mod ports;
pub mod report;
pub mod roles;
pub mod rpc;
pub mod sequencer;
pub mod supervisor;

pub use gapless_measure::{BenchError, Result};
use gapless_measure::{child_process, floor, histogram, own_directory, resources, statistics, time_sources};
