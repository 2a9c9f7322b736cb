//! [`Relays`]: routes of other machines, served in the domain, and the requests that were taken of them.

use super::ready::{Ready, Source};
use crate::bridge_core::Input;
use crate::calls_out::OutgoingCall;
use crate::effects::{RemoteRoute, RequestId};
use crate::outcome::Outcome;
use crate::record::RequestHead;
use gapless_message::Encoding;
use gapless_rpc::relay::{Instance, Relay, RelayedRequest};
use gapless_rpc::{Domain, RpcError};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Routes served for others.
pub(super) struct Relays {
    ready: Arc<Ready>,
    machine: String,
    /// Numbers of the routes.
    numbers: BTreeMap<String, u64>,
    relays: HashMap<u64, Relay>,
    last_number: u64,
    taken: HashMap<RequestId, RelayedRequest>,
    /// Requests that nobody tells of when their callers give them up.
    unwatched: Vec<RequestId>,
    last_request: u64,
}

impl Relays {
    pub(super) fn new(ready: Arc<Ready>, machine: &str) -> Self {
        Self {
            ready,
            machine: machine.to_owned(),
            numbers: BTreeMap::new(),
            relays: HashMap::new(),
            last_number: 0,
            taken: HashMap::new(),
            unwatched: Vec::new(),
            last_request: 0,
        }
    }

    /// Serves a route, or describes it anew.
    ///
    /// # Errors
    /// As [`gapless_rpc::relay::RelayBuilder::open`].
    pub(super) fn relay(&mut self, domain: &Domain, remote: RemoteRoute) -> Result<(), RpcError> {
        let RemoteRoute { route, version, metadata, request, reply, workers, instances } = remote;
        let instances: Vec<_> = instances
            .into_iter()
            .map(|instance| Instance { identity: instance.identity, name: instance.name })
            .collect();
        // Version and metadata are those of its first description: they are for people.
        if let Some(relay) = self.numbers.get(&route).and_then(|number| self.relays.get(number)) {
            relay.set_description(request, reply)?;
            relay.set_workers(workers)?;
            return relay.set_stands_for(instances);
        }
        let mut builder = domain.relay(&route).describe(request, reply).version(version).workers(workers);
        for (name, value) in metadata {
            builder = builder.metadata(name, value);
        }
        let relay = builder.stands_for(instances).open()?;
        self.last_number += 1;
        let number = self.last_number;
        self.numbers.insert(route, number);
        self.relays.insert(number, relay);
        self.ready.tell(Source::Relay(number));
        Ok(())
    }

    /// Serves a route no longer. Requests that were taken keep their way back.
    pub(super) fn withdraw(&mut self, route: &str) {
        if let Some(number) = self.numbers.remove(route) {
            self.relays.remove(&number);
        }
    }

    /// True while the route is served here.
    pub(super) fn serves(&self, route: &str) -> bool {
        self.numbers.contains_key(route)
    }

    /// Takes the requests that wait at a relay.
    pub(super) fn take(&mut self, number: u64, into: &mut VecDeque<Input>) {
        let Some(relay) = self.relays.get_mut(&number) else { return };
        let waker = self.ready.waker(Source::Relay(number));
        let mut context = Context::from_waker(&waker);
        while let Poll::Ready(Some(mut request)) = relay.poll_take(&mut context) {
            self.last_request += 1;
            let id = RequestId(self.last_request);
            if !request.is_one_way() && !request.watch(&self.ready.waker(Source::Request(id))) {
                self.unwatched.push(id);
            }
            let timeout = request.remaining();
            let head = head_of(&request, &self.machine);
            let payload = request.take_payload();
            self.taken.insert(id, request);
            into.push_back(Input::Request(OutgoingCall { request: id, head: Box::new(head), payload, timeout }));
        }
    }

    /// Looks whether the caller of a request has given it up.
    pub(super) fn look(&mut self, id: RequestId, into: &mut VecDeque<Input>) {
        let Some(request) = self.taken.get_mut(&id) else { return };
        if request.is_cancelled() {
            self.taken.remove(&id);
            into.push_back(Input::GivenUp(id));
        } else if !request.watch(&self.ready.waker(Source::Request(id))) && !self.unwatched.contains(&id) {
            // Its route is withdrawn: nobody tells any more.
            self.unwatched.push(id);
        }
    }

    /// Looks at the requests that nobody tells of.
    pub(super) fn look_at_unwatched(&mut self, into: &mut VecDeque<Input>) {
        let taken = &self.taken;
        self.unwatched.retain(|id| taken.contains_key(id));
        for id in self.unwatched.clone() {
            self.look(id, into);
        }
    }

    /// Whether requests are to be looked at, of which nobody tells.
    pub(super) fn has_unwatched(&self) -> bool {
        !self.unwatched.is_empty()
    }

    /// The request goes to the network now. False if its caller no longer wants it: it is given up.
    pub(super) fn begin(&mut self, id: RequestId, into: &mut VecDeque<Input>) -> bool {
        let has_begun = self.taken.get_mut(&id).is_some_and(RelayedRequest::begin);
        if !has_begun && self.taken.remove(&id).is_some() {
            into.push_back(Input::GivenUp(id));
        }
        has_begun
    }

    /// Ends a request.
    pub(super) fn end(&mut self, id: RequestId, outcome: Outcome) {
        let Some(request) = self.taken.remove(&id) else { return };
        // A caller that hears nothing of it has given it up.
        let _is_heard = match outcome {
            Outcome::Reply(reply) => request.reply(&reply),
            Outcome::Refused(refusal) => request.refuse(&refusal),
            Outcome::Ended(ended) => {
                let error = ended.into_call_error(request.route());
                request.end(&error)
            }
        };
    }
}

/// The head of a request that was taken.
fn head_of(request: &RelayedRequest, machine: &str) -> RequestHead {
    let (request_type, caller) = (request.request_type(), request.caller());
    RequestHead {
        route: request.route().to_string(),
        instance: request.instance(),
        query: request.query(),
        priority: request.priority(),
        key: request.key(),
        time_left_ms: None,
        attempt: request.attempt(),
        hops: request.hops(),
        trace: request.trace().clone(),
        encoding: if request.is_json() { Encoding::Json } else { request_type.encoding },
        fingerprint: request_type.fingerprint,
        request_type: Some(request_type.clone()),
        reply_type: Some(request.reply_type().clone()),
        is_one_way: request.is_one_way(),
        caller: format!("{machine}/{}", caller.name),
        headers: request.headers().clone(),
    }
}
