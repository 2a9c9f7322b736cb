//! `QueryContext`: a query handler's view of the stream; decoding and answers of typed queries.

use crate::handler_guard::HandlerRefusal;
use crate::typed_command::{TypedCommand, too_new_refusal};
use gapless_message::{Request, contract};

/// Position of the state that a query reads: after the last handled frame, or, of a leader's replicated state, after the
/// last appended one, which is released before the answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryContext {
    pub(crate) sequence: u64,
    pub(crate) time_ns: u64,
    pub(crate) version: u32,
}

impl QueryContext {
    /// Returns the sequence of that frame; 0 before the first.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the sequenced time of that frame, ns since the epoch.
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Returns the version that the service acts as ([`crate::Service::versions`]).
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }
}

pub(crate) struct TypedQuery<Q>(TypedCommand<Q>);

impl<Q: Request> TypedQuery<Q> {
    /// # Panics
    /// The types have more than 256 combinations of versions.
    pub fn new() -> Self {
        Self(TypedCommand::new())
    }

    /// Key of the name.
    pub const fn schema(&self) -> u32 {
        self.0.schema
    }

    /// Calls `handler` and appends its answer.
    ///
    /// # Errors
    /// A fault of the payload; a refusal without a form in the client's version.
    pub fn answer(
        &self,
        payload: &[u8],
        into: &mut Vec<u8>,
        handler: impl FnOnce(Q) -> Result<Q::Reply, Q::Refusal>,
    ) -> Result<(), HandlerRefusal> {
        let (agreed, query) = self.0.decode(payload)?;
        match handler(query) {
            Ok(reply) => {
                contract::encode_reply(&reply, agreed, into);
                Ok(())
            }
            Err(refusal) => {
                contract::encode_refusal(&refusal, agreed, into).map_err(|error| too_new_refusal::<Q>(&error))
            }
        }
    }
}
