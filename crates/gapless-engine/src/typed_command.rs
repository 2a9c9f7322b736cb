//! `TypedCommand`: decoding of a typed command in the versions of its client, and its answer.

use crate::context::Context;
use crate::handler_guard::{HandlerRefusal, describe};
use crate::outputs::OUTPUT_LENGTH_MAX;
use gapless_message::contract::{self, Contract};
use gapless_message::{Message as _, MessageError, Request};
use gapless_schema::Encoding;
use std::marker::PhantomData;

pub(crate) struct TypedCommand<C> {
    /// Key of the name.
    pub schema: u32,
    contracts: Vec<Contract>,
    command: PhantomData<fn() -> C>,
}

impl<C: Request> TypedCommand<C> {
    /// # Panics
    /// The types have more than 256 combinations of versions.
    pub fn new() -> Self {
        Self {
            schema: contract::name_key(C::TYPE_NAME),
            contracts: contract::contracts_of::<C>(),
            command: PhantomData,
        }
    }

    pub fn contracts(&self) -> impl Iterator<Item = u32> {
        self.contracts.iter().map(|contract| contract.hash)
    }

    /// Decodes a payload in the versions of its contract.
    ///
    /// # Errors
    /// A fault of the payload, or an unknown contract.
    #[inline]
    pub fn decode(&self, payload: &[u8]) -> Result<(&Contract, C), HandlerRefusal> {
        let (hash, payload) = contract::split_request(payload).ok_or_else(|| without_contract::<C>(payload.len()))?;
        let agreed = self.contracts.iter().find(|contract| contract.hash == hash);
        let agreed = agreed.ok_or_else(|| other_types::<C>(hash))?;
        let command = C::decode_as(agreed.request_version, payload).map_err(|error| malformed::<C>(&error))?;
        Ok((agreed, command))
    }

    /// Calls `handler` and stages its answer. After a refusal the outputs hold nothing else.
    ///
    /// # Errors
    /// [`HandlerRefusal::Typed`], or a fault of the payload or of the handler.
    #[inline]
    pub fn call(
        &self,
        payload: &[u8],
        context: &mut Context<'_>,
        handler: impl FnOnce(C, &mut Context<'_>) -> Result<C::Reply, C::Refusal>,
    ) -> Result<(), HandlerRefusal> {
        let (agreed, command) = self.decode(payload)?;
        context.check_replies().map_err(HandlerRefusal::Rejected)?;
        match handler(command, context) {
            Ok(reply) => context.reply_typed(self.schema, |into| {
                contract::encode_reply(&reply, agreed, into);
                Ok(())
            }),
            Err(refusal) => {
                context.outputs.clear();
                context.reply_typed(self.schema, |into| {
                    contract::encode_refusal(&refusal, agreed, into).map_err(|error| too_new_refusal::<C>(&error))
                })?;
                match context.outputs.reply_too_long {
                    None => Err(HandlerRefusal::Typed(C::Refusal::TYPE_NAME)),
                    Some(length) => Err(too_long_refusal::<C>(length)),
                }
            }
        }
    }
}

// Texts of refusals are kept in the sessions, which the members of a cluster compare: they must not depend on what this
// program reads. The log has more.

/// Refusal of a command with [`gapless_wire::descriptor::UNHANDLED_FLAG`]: the same in programs that know its name and in
/// those that do not.
#[cold]
pub(crate) fn unhandled_by_leader(schema: u32, payload: &[u8]) -> HandlerRefusal {
    let message = describe(schema, Encoding::Postcard);
    match contract::split_request(payload) {
        Some((hash, _)) => HandlerRefusal::Unhandled(format!(
            "the service takes no {message} with contract {hash:08x}: it lacks the command, or its types differ from the \
             client's; build both with the same types"
        )),
        None => HandlerRefusal::Undecodable(format!(
            "{message}: a payload of {} bytes is too short for a contract",
            payload.len()
        )),
    }
}

#[cold]
fn without_contract<C: Request>(length: usize) -> HandlerRefusal {
    HandlerRefusal::undecodable(format_args!(
        "{}: a payload of {length} bytes is too short for a contract",
        C::TYPE_NAME
    ))
}

#[cold]
fn other_types<C: Request>(hash: u32) -> HandlerRefusal {
    tracing::debug!("{}: contract {hash:08x} is unknown; known here: {}", C::TYPE_NAME, contract::describe::<C>());
    let name = C::TYPE_NAME;
    HandlerRefusal::Unhandled(format!(
        "{name}: contract {hash:08x} is unknown to this program, whose types differ from the client's: build both with the \
         same types"
    ))
}

#[cold]
fn malformed<C: Request>(error: &MessageError) -> HandlerRefusal {
    tracing::debug!("a command is malformed: {error}");
    HandlerRefusal::Undecodable(format!("{}: the payload is malformed", C::TYPE_NAME))
}

#[cold]
pub(crate) fn too_new_refusal<C: Request>(error: &MessageError) -> HandlerRefusal {
    tracing::debug!("a refusal cannot be encoded: {error}");
    let name = C::Refusal::TYPE_NAME;
    HandlerRefusal::Rejected(format!("refused, but the {name} has no form in the client's version").into())
}

#[cold]
fn too_long_refusal<C: Request>(length: u64) -> HandlerRefusal {
    let name = C::Refusal::TYPE_NAME;
    HandlerRefusal::Rejected(
        format!("refused, but the {name} of {length} bytes is too long: {OUTPUT_LENGTH_MAX} are the most").into(),
    )
}
