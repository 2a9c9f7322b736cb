//! `TypedCommand`: decoding of a typed command in the versions of its client, and its answer.

use crate::context::{Context, OUTPUT_LENGTH_MAX};
use crate::handler_guard::HandlerRefusal;
use gapless_message::contract::{self, Contract};
use gapless_message::{Message as _, Request};
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
        let (hash, payload) = contract::split_request(payload).ok_or_else(|| without_contract::<C>(payload.len()))?;
        let agreed = self.contracts.iter().find(|contract| contract.hash == hash);
        let agreed = agreed.ok_or_else(|| other_types::<C>(hash))?;
        let command = C::decode_as(agreed.request_version, payload).map_err(HandlerRefusal::undecodable)?;
        context.check_replies().map_err(HandlerRefusal::Rejected)?;
        match handler(command, context) {
            Ok(reply) => context.reply_typed(self.schema, |into| {
                contract::encode_reply(&reply, agreed.reply_version, into);
                Ok(())
            }),
            Err(refusal) => {
                context.outputs.clear();
                context.reply_typed(self.schema, |into| {
                    contract::encode_refusal(&refusal, agreed.refusal_version, into)
                })?;
                match context.outputs.reply_too_long {
                    None => Err(HandlerRefusal::Typed(C::Refusal::TYPE_NAME)),
                    Some(length) => Err(too_long_refusal::<C>(length)),
                }
            }
        }
    }
}

#[cold]
fn without_contract<C: Request>(length: usize) -> HandlerRefusal {
    HandlerRefusal::undecodable(format_args!("{}: {length} bytes have no contract", C::TYPE_NAME))
}

#[cold]
fn other_types<C: Request>(hash: u32) -> HandlerRefusal {
    HandlerRefusal::Unhandled(format!(
        "{}: the client's types (contract {hash:08x}) are not those of the service: {}",
        C::TYPE_NAME,
        contract::describe::<C>()
    ))
}

#[cold]
fn too_long_refusal<C: Request>(length: u64) -> HandlerRefusal {
    let name = C::Refusal::TYPE_NAME;
    HandlerRefusal::Rejected(
        format!("refused, but the {name} of {length} bytes is too long: {OUTPUT_LENGTH_MAX} are the most").into(),
    )
}
