//! The work of a child process by role: `gapless bench child`, which only the benchmarks call.

pub use gapless_measure::child_process::ChildRole;

use crate::{Result, canonical};

pub fn run(role: ChildRole, assignment: &str) -> Result<()> {
    match role {
        ChildRole::CanonicalClient => canonical::client_process::main(assignment),
        ChildRole::CanonicalBackup => canonical::backup::main(),
        ChildRole::SequencerProcess => gapless_load::sequencer::process::main(assignment),
        ChildRole::LogPartner => gapless_load::components::log::partner::main(assignment),
        ChildRole::LinkPartner => gapless_load::components::link::partner::main(assignment),
        ChildRole::FailoverMember => gapless_load::failover::member::main(assignment),
        ChildRole::RpcServer => gapless_load::rpc::server_process::main(assignment),
        ChildRole::RpcFaults => gapless_load::rpc::faults::serving::main(assignment),
        ChildRole::RpcPayloads => gapless_load::rpc::payloads::served::main(assignment),
        #[cfg(feature = "kafka")]
        ChildRole::NetworkBridge => gapless_load::network::bridge_process::main(assignment),
        #[cfg(not(feature = "kafka"))]
        ChildRole::NetworkBridge => Err(crate::BenchError::Option("this program is built without Kafka".to_owned())),
        ChildRole::CommandsBus => gapless_load::commands::scale::bus_process::main(assignment),
        ChildRole::CommandsFollower => gapless_load::commands::quorum::follower_process::main(assignment),
    }
}
