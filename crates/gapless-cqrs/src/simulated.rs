//! For the simulator: a command bus on a polled member without threads; the state derived from released transactions;
//! and the encoding of commands.

use crate::draft::Draft;
use crate::error::ModelError;
use crate::host::{AggregateOptions, BusParts, Threading, bus_parts_on};
use crate::model::CommandModel;
use gapless_client::polled::MessageType;
use gapless_cluster::config::ClusterConfig;
use gapless_engine::transaction_service::fold_of_transactions;
use gapless_engine::{Fold, Replica};
use gapless_message::Message;
use gapless_stream::member_service::MemberService;
use gapless_wire::Encoding;

/// Service of [`CommandMember::start`](crate::member::CommandMember::start), for a polled member; compares the derived
/// state between members.
///
/// # Errors
/// The model is invalid.
pub fn member_service(
    model: CommandModel,
    options: AggregateOptions,
    config: &ClusterConfig,
) -> Result<Box<dyn MemberService>, ModelError> {
    let BusParts { released, make_writer, .. } = bus_parts_on(Threading::InTurns, model, options)?;
    Ok(Replica::member_transaction_service(released, make_writer, config))
}

/// State that members derive from released transactions.
///
/// # Panics
/// Never: the empty model is valid.
#[must_use]
pub fn fold(options: AggregateOptions) -> Fold {
    let parts = bus_parts_on(Threading::InTurns, CommandModel::new(), options);
    fold_of_transactions(parts.expect("the empty model is one").released)
}

/// Encodes a command for the writer.
///
/// # Errors
/// The reason why it cannot be sent.
pub fn message_of<Command: Message, Reply, Refusal>(
    draft: &Draft<'_, Command, Reply, Refusal>,
) -> Result<(MessageType, Vec<u8>), String> {
    let mut bytes = Vec::new();
    draft.write(&mut bytes)?;
    Ok((MessageType { schema: draft.command_key().0, encoding: Encoding::Opaque }, bytes))
}
