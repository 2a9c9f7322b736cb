//! Routes of other machines, served in the domain, and their requests.

use super::BridgeEvent;
use super::backoff::RetryBackoff;
use super::ready::{ReadySources, WorkSource};
use crate::bridge_core::BridgeInput;
use crate::calls_out::OutgoingCall;
use crate::effects::{RemoteRoute, RequestId};
use crate::outcome::CallOutcome;
use crate::record::RequestHead;
use gapless_message::Encoding;
use gapless_rpc::relay::{Instance, Relay, RelayedRequest};
use gapless_rpc::{Domain, RpcError};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Interval of looks for drained relays: not all of them wake.
const DRAIN_CHECK_INTERVAL_NS: u64 = 1_000_000_000;

struct WantedRoute {
    remote: RemoteRoute,
    number: Option<u64>,
    backoff: RetryBackoff,
    reported_reason: Option<String>,
}

struct TakenRequest {
    request: RelayedRequest,
    /// The request has left, or is about to.
    has_begun: bool,
}

pub(super) struct Relays {
    ready: Arc<ReadySources>,
    machine: String,
    wanted: BTreeMap<String, WantedRoute>,
    relays: HashMap<u64, Relay>,
    due_ns: u64,
    drain_check_ns: u64,
    last_number: u64,
    taken: HashMap<RequestId, TakenRequest>,
    unwatched: Vec<RequestId>,
    last_request: u64,
}

impl Relays {
    pub(super) fn new(ready: Arc<ReadySources>, machine: &str) -> Self {
        Self {
            ready,
            machine: machine.to_owned(),
            wanted: BTreeMap::new(),
            relays: HashMap::new(),
            due_ns: u64::MAX,
            drain_check_ns: 0,
            last_number: 0,
            taken: HashMap::new(),
            unwatched: Vec::new(),
            last_request: 0,
        }
    }

    pub(super) fn relay(&mut self, domain: &Domain, remote: RemoteRoute, now_ns: u64, events: &mut Vec<BridgeEvent>) {
        let route = remote.route.clone();
        if let Some(wanted) = self.wanted.get_mut(&route) {
            wanted.remote = remote;
        } else {
            let wanted = WantedRoute { remote, number: None, backoff: RetryBackoff::default(), reported_reason: None };
            self.wanted.insert(route.clone(), wanted);
        }
        self.serve(domain, &route, now_ns, events);
    }

    /// Reports a failure once for each reason.
    fn serve(&mut self, domain: &Domain, route: &str, now_ns: u64, events: &mut Vec<BridgeEvent>) {
        let Some(wanted) = self.wanted.get_mut(route) else { return };
        let failed = match wanted.number.and_then(|number| self.relays.get(&number)) {
            Some(relay) => describe(relay, &wanted.remote),
            None => open(domain, &wanted.remote).map(|relay| {
                self.last_number += 1;
                wanted.number = Some(self.last_number);
                self.relays.insert(self.last_number, relay);
                self.ready.signal(WorkSource::Relay(self.last_number));
            }),
        };
        let Err(error) = failed else {
            wanted.reported_reason = None;
            return;
        };
        wanted.backoff.fail(now_ns);
        self.due_ns = self.due_ns.min(wanted.backoff.due_ns().unwrap_or(u64::MAX));
        let reason = error.to_string();
        if wanted.reported_reason.as_ref() != Some(&reason) {
            wanted.reported_reason = Some(reason.clone());
            events.push(BridgeEvent::NotRelayed { route: route.to_owned(), reason });
        }
    }

    /// Requests that were taken keep their way back.
    pub(super) fn withdraw(&mut self, route: &str) {
        if let Some(number) = self.wanted.remove(route).and_then(|wanted| wanted.number) {
            self.relays.remove(&number);
        }
    }

    pub(super) fn serves(&self, route: &str) -> bool {
        self.wanted.get(route).is_some_and(|wanted| wanted.number.is_some())
    }

    pub(super) fn retry_due(&mut self, domain: &Domain, now_ns: u64, events: &mut Vec<BridgeEvent>) {
        if now_ns >= self.drain_check_ns {
            self.drain_check_ns = now_ns + DRAIN_CHECK_INTERVAL_NS;
            let drained = self.relays.iter().filter(|(_, relay)| !relay.is_served()).map(|(number, _)| *number);
            drained.collect::<Vec<_>>().into_iter().for_each(|number| self.remove_drained(number, now_ns));
        }
        if now_ns < self.due_ns {
            return;
        }
        let due = self.wanted.iter_mut().filter_map(|(route, wanted)| wanted.backoff.take_due(now_ns).then_some(route));
        for route in due.cloned().collect::<Vec<_>>() {
            self.serve(domain, &route, now_ns, events);
        }
        let all = self.wanted.values().filter_map(|wanted| wanted.backoff.due_ns());
        self.due_ns = all.min().unwrap_or(u64::MAX);
    }

    pub(super) const fn next_attempt_ns(&self) -> u64 {
        self.due_ns
    }

    fn remove_drained(&mut self, number: u64, now_ns: u64) {
        let Some(relay) = self.relays.remove(&number) else { return };
        if let Some(wanted) = self.wanted.get_mut(relay.route()) {
            wanted.number = None;
            wanted.backoff.fail(now_ns);
            self.due_ns = self.due_ns.min(wanted.backoff.due_ns().unwrap_or(u64::MAX));
        }
    }

    pub(super) fn take(&mut self, number: u64, into: &mut VecDeque<BridgeInput>) {
        let Some(relay) = self.relays.get_mut(&number) else { return };
        let waker = self.ready.waker(WorkSource::Relay(number));
        let mut context = Context::from_waker(&waker);
        loop {
            let mut request = match relay.poll_take(&mut context) {
                Poll::Ready(Some(request)) => request,
                Poll::Ready(None) => return self.remove_drained(number, super::now().monotonic_ns),
                Poll::Pending => return,
            };
            self.last_request += 1;
            let id = RequestId(self.last_request);
            if !request.is_one_way() && !request.watch(&self.ready.waker(WorkSource::Request(id))) {
                self.unwatched.push(id);
            }
            let timeout = request.remaining();
            let head = head_of(&request, &self.machine);
            let payload = request.take_payload();
            self.taken.insert(id, TakenRequest { request, has_begun: false });
            into.push_back(BridgeInput::Request(OutgoingCall { request: id, head: Box::new(head), payload, timeout }));
        }
    }

    pub(super) fn check_caller(&mut self, id: RequestId, into: &mut VecDeque<BridgeInput>) {
        let Some(TakenRequest { request, .. }) = self.taken.get_mut(&id) else { return };
        if request.is_cancelled() {
            self.taken.remove(&id);
            into.push_back(BridgeInput::GivenUp(id));
        } else if !request.watch(&self.ready.waker(WorkSource::Request(id))) && !self.unwatched.contains(&id) {
            self.unwatched.push(id);
        }
    }

    pub(super) fn check_unwatched(&mut self, into: &mut VecDeque<BridgeInput>) {
        let taken = &self.taken;
        self.unwatched.retain(|id| taken.contains_key(id));
        for id in self.unwatched.clone() {
            self.check_caller(id, into);
        }
    }

    pub(super) fn has_unwatched(&self) -> bool {
        !self.unwatched.is_empty()
    }

    /// False if the caller has given the request up.
    pub(super) fn begin(&mut self, id: RequestId, into: &mut VecDeque<BridgeInput>) -> bool {
        let has_begun = self.taken.get_mut(&id).is_some_and(|taken| {
            taken.has_begun = taken.request.begin();
            taken.has_begun
        });
        if !has_begun {
            self.taken.remove(&id);
            into.push_back(BridgeInput::Withheld(id));
        }
        has_begun
    }

    pub(super) fn end(&mut self, id: RequestId, outcome: CallOutcome) {
        let Some(TakenRequest { request, has_begun }) = self.taken.remove(&id) else { return };
        // A caller that hears nothing of it has given it up.
        let _is_heard = match outcome {
            CallOutcome::Reply(reply) => request.reply(&reply),
            CallOutcome::Refused(refusal) => request.refuse(&refusal),
            CallOutcome::Failed(failure) => {
                let failure = if has_begun { failure } else { failure.into_unsent() };
                let error = failure.into_call_error(request.route());
                request.end(&error)
            }
        };
    }
}

fn instances_of(remote: &RemoteRoute) -> Vec<Instance> {
    let instances = remote.instances.iter();
    instances.map(|each| Instance { identity: each.identity, name: each.name.clone() }).collect()
}

fn open(domain: &Domain, remote: &RemoteRoute) -> Result<Relay, RpcError> {
    let builder = domain.relay(&remote.route).describe(remote.request.clone(), remote.reply.clone());
    let mut builder = builder.version(&remote.version).workers(remote.workers);
    for (name, value) in &remote.metadata {
        builder = builder.metadata(name, value);
    }
    builder.stands_for(instances_of(remote)).open()
}

fn describe(relay: &Relay, remote: &RemoteRoute) -> Result<(), RpcError> {
    relay.set_description(remote.request.clone(), remote.reply.clone())?;
    relay.set_metadata(remote.version.clone(), remote.metadata.clone())?;
    relay.set_workers(remote.workers)?;
    relay.set_stands_for(instances_of(remote))
}

fn head_of(request: &RelayedRequest, machine: &str) -> RequestHead {
    let (request_type, caller) = (request.request_type(), request.caller());
    RequestHead {
        route: request.route().to_string(),
        instance: request.instance(),
        query: request.query(),
        priority: request.priority(),
        key: request.key(),
        time_left_ms: None,
        deadline_ms: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::RemoteInstance;
    use gapless_message::described::TypeDescription;
    use gapless_rpc::DomainOptions;
    use gapless_rpc::domain::{KnownRoute, KnownRouteState};
    use gapless_testkit::wait::{PATIENCE, until, until_some};

    const ROUTE: &str = "shop/price";
    const SECOND: u64 = 1_000_000_000;

    fn remote(version: &str) -> RemoteRoute {
        RemoteRoute {
            route: ROUTE.to_owned(),
            version: version.to_owned(),
            metadata: vec![("team".to_owned(), format!("blue {version}"))],
            request: TypeDescription::default(),
            reply: TypeDescription::default(),
            workers: 4,
            instances: vec![RemoteInstance { identity: 7, name: "m2/shop.1".to_owned() }],
        }
    }

    fn domains(folder: &tempfile::TempDir) -> [Domain; 2] {
        let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
        [open(), open()]
    }

    fn known(member: &Domain) -> Option<KnownRoute> {
        member.offered_routes().into_iter().find(|known| known.route == ROUTE && known.state == KnownRouteState::Open)
    }

    #[test]
    fn changes_of_metadata_are_announced() {
        let folder = tempfile::tempdir().unwrap();
        let ([domain, member], mut events) = (domains(&folder), Vec::new());
        let _watch = member.watch_routes(|| {}).unwrap();
        let mut relays = Relays::new(Arc::default(), "m1");
        for version in ["1.0", "1.1"] {
            relays.relay(&domain, remote(version), SECOND, &mut events);
            let is_told =
                |known: KnownRoute| (known.version, known.metadata) == (version.to_owned(), remote(version).metadata);
            until("the version is known", || known(&member).is_some_and(is_told));
        }
        assert_eq!((relays.relays.len(), events), (1, vec![]));
    }

    #[test]
    fn a_drained_relay_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let ([domain, member], mut events) = (domains(&folder), Vec::new());
        let mut relays = Relays::new(Arc::default(), "m1");
        relays.relay(&domain, remote("1.0"), SECOND, &mut events);
        let draining = std::thread::spawn(move || {
            until("it is drained", || {
                member.drain_route(ROUTE, None, PATIENCE).is_ok_and(|changed| !changed.is_empty())
            });
        });
        let number = until_some("it is drained", || {
            let found = relays.relays.iter().find(|(_, relay)| !relay.is_served());
            found.map(|(number, _)| *number)
        });
        relays.take(number, &mut VecDeque::new());
        draining.join().unwrap();
        assert!(relays.relays.is_empty() && relays.next_attempt_ns() < u64::MAX);
        relays.retry_due(&domain, relays.next_attempt_ns(), &mut events);
        assert_eq!((relays.relays.len(), relays.next_attempt_ns(), events), (1, u64::MAX, vec![]));
        assert!(relays.relays.values().all(Relay::is_served));
        relays.relays.values().for_each(Relay::drain);
        relays.retry_due(&domain, relays.drain_check_ns, &mut Vec::new());
        assert!(relays.relays.is_empty() && relays.next_attempt_ns() > relays.drain_check_ns - DRAIN_CHECK_INTERVAL_NS);
    }

    #[test]
    fn an_unopened_route_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let ([domain, _], mut events) = (domains(&folder), Vec::new());
        let mut relays = Relays::new(Arc::default(), "m1");
        let taken = domain.relay(ROUTE).open().unwrap();
        relays.relay(&domain, remote("1.0"), SECOND, &mut events);
        assert!(matches!(&events[..], [BridgeEvent::NotRelayed { route, .. }] if route == ROUTE), "{events:?}");
        relays.retry_due(&domain, relays.next_attempt_ns(), &mut events);
        assert_eq!(events.len(), 1, "one word for one reason");
        drop(taken);
        relays.retry_due(&domain, relays.next_attempt_ns(), &mut events);
        assert_eq!((relays.relays.len(), relays.next_attempt_ns(), events.len()), (1, u64::MAX, 1));
        relays.withdraw(ROUTE);
        assert!(relays.relays.is_empty());
    }

    #[test]
    fn unbegun_requests_are_withheld() {
        let mut inputs = VecDeque::new();
        assert!(!Relays::new(Arc::default(), "m1").begin(RequestId(7), &mut inputs));
        assert_eq!(inputs, [BridgeInput::Withheld(RequestId(7))], "also of a request that was given up before");
    }
}
