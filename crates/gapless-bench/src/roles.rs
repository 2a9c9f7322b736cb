//! The work of a child process by role: `gapless bench child`, which only the benchmarks call.

pub use gapless_measure::child_process::Role;

use crate::{Result, canonical};

/// Does the work of `assignment`, as JSON, for a child process in `role`.
///
/// # Errors
/// A malformed assignment; any error of the role's work.
pub fn run(role: Role, assignment: &str) -> Result<()> {
    match role {
        Role::CanonicalClient => canonical::client_process::main(assignment),
        Role::CanonicalBackup => canonical::backup::main(),
        Role::SequencerProcess => gapless_load::sequencer::process::main(assignment),
        Role::LogPartner => gapless_load::components::log::partner::main(assignment),
        Role::LinkPartner => gapless_load::components::link::partner::main(assignment),
        Role::FailoverMember => gapless_load::failover::member::main(assignment),
        Role::RpcServer => gapless_load::rpc::server_process::main(assignment),
        Role::RpcFaults => gapless_load::rpc::faults::serving::main(assignment),
        Role::RpcPayloads => gapless_load::rpc::payloads::served::main(assignment),
        #[cfg(feature = "kafka")]
        Role::NetworkBridge => gapless_load::network::bridge_process::main(assignment),
        #[cfg(not(feature = "kafka"))]
        Role::NetworkBridge => Err(crate::BenchError::Option("this program is built without Kafka".to_owned())),
        Role::CommandsBus => gapless_load::commands::scale::bus_process::main(assignment),
        Role::CommandsFollower => gapless_load::commands::quorum::follower_process::main(assignment),
    }
}
