//! A process that a benchmark starts, and how the two speak with each other.
//!
//! The benchmark starts this very program with the hidden subcommand `gapless bench child`, a [`ChildRole`], and that
//! role's assignment as JSON in an argument, where `ps` shows it. Every later message is a line of JSON: requests on
//! the child's standard input, answers on its standard output. Standard error is for errors and warnings, whose text
//! stands in the error if the child ends too early. When its standard input ends, the benchmark has gone.

mod child;
mod parent;

pub use child::{Child, receive_all};
pub use parent::{OrphanPolicy, Parent};

use serde::Serialize;
use std::io::Write;

/// The role of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ChildRole {
    /// The driver of `canonical`
    CanonicalClient,
    /// The backup of `canonical`
    CanonicalBackup,
    /// The event stream of `sequencer`, or one of its nodes
    SequencerProcess,
    /// The second process of `log`
    LogPartner,
    /// The second process of `link`
    LinkPartner,
    /// A member of the cluster of `failover`
    FailoverMember,
    /// The server of `rpc curve`, or its idle callers
    RpcServer,
    /// A copy of `rpc faults`, or the server of its broker
    RpcFaults,
    /// The server of `rpc payloads` and `network`
    RpcPayloads,
    /// A bridge of `network`
    NetworkBridge,
    /// The bus of `commands` with very many aggregates
    CommandsBus,
    /// The follower of a row of `commands` at tier `quorum`
    CommandsFollower,
}

pub fn write_line(mut writer: impl Write, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    writer.write_all(&line)?;
    writer.flush()
}
