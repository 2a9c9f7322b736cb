//! [`Explaining`]: a request that the service does not handle waits for the service's types, so that its error names the
//! first difference.

use super::Client;
use super::answer::{encode, query_result_of};
use super::call_state::{CallKind, Ending};
use super::untyped_call::{Refused, UntypedCall};
use crate::polled::MessageType;
use crate::polled::mismatch::{DESCRIPTION_WITHIN, describe};
use gapless_message::Request;
use gapless_message::request_description::{Describe, RequestKind, difference_to};
use std::task::{Context, Poll};
use std::time::Duration;

pub(super) struct Explaining {
    kind: RequestKind,
    query: UntypedCall,
    /// Returned if there is no difference, or no description.
    ending: Ending,
}

/// The first difference of the types; `None`: the request failed for the reason that its ending has.
pub(super) struct Explained {
    pub ending: Ending,
    pub difference: Option<String>,
}

impl Explaining {
    /// `call` has ended with `ending`.
    #[cold]
    pub fn new<R: Request>(kind: RequestKind, call: &UntypedCall, ending: Ending) -> Self {
        Self::of_client::<R>(kind, call.client(), call.left(), ending)
    }

    /// A request of `client` has ended with `ending`, with `left` of its limit.
    #[cold]
    pub fn of_client<R: Request>(kind: RequestKind, client: &Client, left: Duration, ending: Ending) -> Self {
        let wait_max = left.min(DESCRIPTION_WITHIN);
        let encoded = encode(&describe::<R>(kind));
        let of_query = CallKind::Query { after: 0, wait_max };
        let mut query = UntypedCall::new(client, of_query, MessageType::typed::<Describe>(), encoded);
        query.within(wait_max);
        Self { kind, query, ending }
    }

    fn end<R: Request>(&mut self, ended: Result<Ending, Refused>) -> Explained {
        let described = ended.ok().and_then(|ending| query_result_of::<Describe>(ending).ok());
        let difference = described.and_then(|described| difference_to::<R>(self.kind, &described));
        Explained { ending: self.ending.clone(), difference }
    }

    pub fn poll<R: Request>(&mut self, context: &mut Context<'_>) -> Poll<Explained> {
        self.query.poll(context).map(|ended| self.end::<R>(ended))
    }

    /// Blocks until the end.
    pub fn wait<R: Request>(mut self) -> Explained {
        let ended = self.query.wait();
        self.end::<R>(ended)
    }
}
