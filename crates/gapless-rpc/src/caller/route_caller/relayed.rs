//! `RelayedBytes`: a request that arrived encoded from another domain and is forwarded as those bytes.

use super::Caller;
use crate::caller::remote_call::Terms;
use crate::caller::routes::{RouteKey, SharedTable, TypeKey};
use crate::message::described::TypeDescription;
use crate::message::{Encoding, Message, MessageError};
use crate::options::Retry;
use crate::outcome::CallError;
use crate::protocol::request_flags::{FLAG_JSON, FLAG_ONE_WAY, InstanceQuery};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Forwarded as the bytes that arrived from another domain, with fields that [`CallOptions`](crate::CallOptions) lacks.
#[derive(Debug, Default)]
pub(crate) struct RelayedBytes {
    pub(crate) payload: Vec<u8>,
    pub(crate) hops: u8,
    /// Counted from 1; 0 means 1.
    pub(crate) attempt: u8,
    pub(crate) is_one_way: bool,
    pub(crate) instance: Option<u64>,
    pub(crate) query: Option<InstanceQuery>,
}

impl RelayedBytes {
    /// Resolved at compile time.
    #[inline]
    pub(super) fn of<Request: Message>(request: &Request) -> Option<&Self> {
        (request as &dyn Any).downcast_ref()
    }

    pub(super) fn put_terms(&self, key: &RouteKey, table: &SharedTable, terms: &mut Terms) -> Result<(), CallError> {
        let (offer, encoding) = (&mut terms.offer, key.request.encoding);
        let header = &mut offer.header;
        (header.hops, header.attempt, header.encoding) = (self.hops, self.attempt.saturating_sub(1), encoding as u32);
        header.flags |= if encoding == Encoding::Json { FLAG_JSON } else { 0 };
        if self.is_one_way {
            header.flags |= FLAG_ONE_WAY;
            offer.is_followed = true;
        }
        header.kind = self.query.map_or(header.kind, |query| query as u8);
        if let Some(instance) = self.instance {
            let gone = || {
                let reason = format!("the instance {instance:016x} is not there");
                CallError::NoRoute { route: key.route.to_string(), reason }
            };
            offer.target = table.number_of_identity(instance).ok_or_else(gone)?;
            (terms.retry, terms.affinity, terms.wait_for_route) = (Retry::Never, None, Duration::ZERO);
        }
        Ok(())
    }
}

impl Message for RelayedBytes {
    const TYPE_NAME: &'static str = "relayed bytes";
    const ENCODING: Encoding = Encoding::Bytes;

    fn fingerprint() -> u64 {
        0
    }

    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        into.extend_from_slice(&self.payload);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        Ok(Self { payload: bytes.to_vec(), ..Self::default() })
    }

    fn encoded(&self) -> Option<&[u8]> {
        Some(&self.payload)
    }

    fn into_buffer(self) -> Vec<u8> {
        self.payload
    }
}

impl Caller<RelayedBytes, Vec<u8>> {
    /// Sets the types of requests and replies, as another program has described them.
    pub(crate) fn of_described(mut self, request: TypeDescription, reply: TypeDescription) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            let (route, is_relayed) = (Arc::clone(&shared.key.route), true);
            let (request, reply) = (TypeKey::described(request), TypeKey::described(reply));
            shared.key = Arc::new(RouteKey { route, request, reply, is_relayed });
        }
        self
    }
}
