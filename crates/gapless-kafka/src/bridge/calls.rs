//! Calls of the domain for requests of others.

use super::ready::{ReadySources, WorkSource};
use crate::bridge_core::BridgeInput;
use crate::effects::{CallId, IncomingCall};
use crate::outcome::CallOutcome;
use crate::record::RequestHead;
use gapless_message::Encoding;
use gapless_message::described::TypeDescription;
use gapless_rpc::relay::{RelayedCall, RelayedCaller};
use gapless_rpc::{Call, CallError, Domain, Retry};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Each caller has a table, of which a process has at most 1,024.
const CALLERS_MAX: usize = 512;

type CallerKey = (String, TypeDescription, TypeDescription);

pub(super) struct DomainCalls {
    ready: Arc<ReadySources>,
    callers: HashMap<CallerKey, (RelayedCaller, u64)>,
    made: u64,
    under_way: HashMap<CallId, Call<Vec<u8>>>,
}

impl DomainCalls {
    pub(super) fn new(ready: Arc<ReadySources>) -> Self {
        Self { ready, callers: HashMap::new(), made: 0, under_way: HashMap::new() }
    }

    pub(super) fn start(&mut self, domain: &Domain, incoming: IncomingCall) -> Option<BridgeInput> {
        let IncomingCall { call, head, payload, timeout } = incoming;
        let caller = match self.caller(domain, &head) {
            Ok(caller) => caller,
            Err(error) => return Some(BridgeInput::CallEnded { call, outcome: CallOutcome::from(error) }),
        };
        let RequestHead { headers, key, priority, is_one_way, hops, attempt, trace, instance, query, .. } = *head;
        let under_way = caller.start(RelayedCall {
            payload,
            headers,
            key,
            priority,
            timeout,
            is_one_way,
            hops,
            attempt,
            trace,
            retry: Retry::Never,
            wait_for_route: None,
            instance,
            query,
        });
        self.under_way.insert(call, under_way);
        self.poll(call)
    }

    pub(super) fn poll(&mut self, call: CallId) -> Option<BridgeInput> {
        let Entry::Occupied(mut under_way) = self.under_way.entry(call) else { return None };
        let waker = self.ready.waker(WorkSource::Call(call));
        let Poll::Ready(ended) = Pin::new(under_way.get_mut()).poll(&mut Context::from_waker(&waker)) else {
            return None;
        };
        drop(under_way.remove());
        let outcome = match ended {
            Ok(reply) => CallOutcome::Reply(reply),
            Err(error) => CallOutcome::from(error),
        };
        Some(BridgeInput::CallEnded { call, outcome })
    }

    pub(super) fn cancel(&mut self, call: CallId) {
        self.under_way.remove(&call);
    }

    fn caller(&mut self, domain: &Domain, head: &RequestHead) -> Result<&RelayedCaller, CallError> {
        self.made += 1;
        let key = (head.route.clone(), request_type(head), reply_type(head));
        if !self.callers.contains_key(&key) {
            if self.callers.len() >= CALLERS_MAX
                && let Some(oldest) = self.callers.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone())
            {
                self.callers.remove(&oldest);
            }
            let made = domain.relayed_caller(&key.0, key.1.clone(), key.2.clone());
            let caller =
                made.map_err(|error| CallError::Unavailable { route: key.0.clone(), reason: error.to_string() })?;
            self.callers.insert(key.clone(), (caller, 0));
        }
        let (caller, used) = self.callers.get_mut(&key).expect("it was there or is inserted");
        *used = self.made;
        Ok(caller)
    }
}

fn request_type(head: &RequestHead) -> TypeDescription {
    let described = head.request_type.clone().unwrap_or_default();
    match head.encoding {
        // A caller that knows no types gets JSON.
        Encoding::Json => TypeDescription { encoding: Encoding::Json, fingerprint: 0, ..described },
        encoding => TypeDescription { encoding, fingerprint: head.fingerprint, ..described },
    }
}

fn reply_type(head: &RequestHead) -> TypeDescription {
    let described = head.reply_type.clone();
    described.unwrap_or_else(|| TypeDescription { encoding: head.encoding, ..TypeDescription::default() })
}
