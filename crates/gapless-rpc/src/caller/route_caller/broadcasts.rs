//! Calls and queries of every instance of a route.

use super::Caller;
use super::InheritedTerms;
use super::destination::until;
use crate::block_on::block_on;
use crate::caller::call::{Call, CallState};
use crate::caller::observed::{ObservedCall, ask};
use crate::caller::remote_call::{Destination, RemoteCall, Terms};
use crate::caller::routes::SETTLE_MAX;
use crate::caller::table::RemoteOffer;
use crate::caller::together::all_async;
use crate::local::LocalRoute;
use crate::message::Message;
use crate::options::{CallOptions, Retry};
use crate::outcome::CallError;
use crate::protocol::request_flags::InstanceQuery;
use crate::registry::Instance;
use gapless_log::call_table::RequestHeader;
use std::borrow::{Borrow, Cow};
use std::sync::Arc;
use std::time::Duration;

/// Address of an instance in a broadcast.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceAddress {
    Process(u32),
    /// Instance in another domain, reached through a relay: [`crate::relay`].
    Elsewhere(Instance),
}

impl InstanceAddress {
    /// Process id of an instance in this domain.
    #[must_use]
    pub const fn process_id(&self) -> Option<u32> {
        match self {
            Self::Process(process_id) => Some(*process_id),
            Self::Elsewhere(_) => None,
        }
    }
}

/// Formats the process id, or the name of a relayed instance.
impl std::fmt::Display for InstanceAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process(process_id) => process_id.fmt(f),
            Self::Elsewhere(instance) => f.write_str(&instance.name),
        }
    }
}

/// Outcome of the call to each instance, with its address.
pub type InstanceOutcomes<Reply> = Vec<(InstanceAddress, Result<Reply, CallError>)>;
type StartedCalls<Reply> = (Vec<(InstanceAddress, Call<Reply>)>, InstanceOutcomes<Reply>);

impl<Request: Message + Clone, Reply: Message> Caller<Request, Reply> {
    /// Calls every instance of the route: in other processes, behind relays, and in this process. Interceptors run
    /// once. Blocks this thread within the timeout of a call; discovery may take up to a second. An instance that has
    /// not answered by then is [`CallError::TimedOut`]; one that lacks a resource is [`CallError::Busy`].
    ///
    /// # Errors
    /// [`CallError::NoRoute`] without any instance, and the refusal of an interceptor. If a process does not announce
    /// its routes, [`CallError::TimedOut`] or [`CallError::Unavailable`].
    pub fn broadcast(&self, request: &Request) -> Result<InstanceOutcomes<Reply>, CallError> {
        let (calls, without) = block_on(self.begin_broadcast(request))?;
        Ok(calls.into_iter().map(|(address, call)| (address, call.wait())).chain(without).collect())
    }

    /// Like [`Caller::broadcast`], for a task: no thread blocks. Dropping it cancels the calls that have begun.
    ///
    /// # Errors
    /// As for [`Caller::broadcast`].
    pub async fn broadcast_async(&self, request: Request) -> Result<InstanceOutcomes<Reply>, CallError> {
        let (calls, without) = self.begin_broadcast(request).await?;
        let (addresses, calls): (Vec<InstanceAddress>, Vec<_>) = calls.into_iter().unzip();
        Ok(addresses.into_iter().zip(all_async(calls).await).chain(without).collect())
    }

    async fn begin_broadcast(&self, request: impl Borrow<Request>) -> Result<StartedCalls<Reply>, CallError> {
        let options = &*self.intercepted(&self.shared.options.call)?;
        let (mut calls, mut without) = (Vec::new(), Vec::new());
        if let Some(local) = self.local()? {
            calls.push((
                InstanceAddress::Process(std::process::id()),
                self.begin_here(&local, request.borrow().clone(), options),
            ));
        }
        if let Some(routes) = &self.shared.remote_routes {
            let inherited = &InheritedTerms::of(options);
            let to = match self.find_destination(routes, options, inherited).await {
                // Other instances are unknown, but the local one is called already.
                Err(error) if !calls.is_empty() && error.has_not_begun() => return Ok((calls, without)),
                found => found?,
            };
            // Keeps the request, so that requests need not be `Sync`.
            let begin = move |instance| self.begin_with(instance, request.borrow(), options, inherited);
            let (elsewhere, left) = self.each_instance(to, inherited, begin).await;
            calls.extend(elsewhere);
            without
                .extend(left.into_iter().map(|(process_id, error)| (InstanceAddress::Process(process_id), Err(error))));
        }
        if calls.is_empty() && without.is_empty() { Err(self.no_instance_error()) } else { Ok((calls, without)) }
    }
}

impl<Request: Message, Reply: Message> Caller<Request, Reply> {
    fn intercepted<'options>(&self, options: &'options CallOptions) -> Result<Cow<'options, CallOptions>, CallError> {
        self.shared.check_process()?;
        let mut options = Cow::Borrowed(options);
        if !self.shared.interceptors.is_empty() {
            ask(&self.shared.interceptors, self.route(), options.to_mut())?;
        }
        Ok(options)
    }

    fn begin_here(&self, local: &LocalRoute<Request, Reply>, request: Request, options: &CallOptions) -> Call<Reply> {
        let (observed, options) = ObservedCall::begin(&Arc::from([]), &self.shared.key.route, options);
        let offer = InheritedTerms::of(&options).local_offer(&options, observed.span());
        let reach = match local.call(request, offer) {
            Ok(call) => CallState::Local(call),
            Err(unsent) => CallState::Failed(unsent.error),
        };
        self.call_of(reach, Some(observed))
    }

    fn begin_with(
        &self,
        (instance, identity): (u32, u64),
        request: &Request,
        options: &CallOptions,
        inherited: &InheritedTerms,
    ) -> Call<Reply> {
        // Discovery counts towards the timeout.
        let timeout = (inherited.deadline_ns != 0).then(|| inherited.left(inherited.timeout));
        let options = &CallOptions { timeout, ..options.clone() };
        let (observed, options) = ObservedCall::begin(&Arc::from([]), &self.shared.key.route, options);
        let remote_call = self.encoded(request, &options, 0, instance, |to, terms, bytes| {
            let offer =
                RemoteOffer { header: RequestHeader { instance: identity, ..terms.offer.header }, ..terms.offer };
            // A process that is gone never comes back under the same number.
            RemoteCall::start(to, Terms { offer, wait_for_route: Duration::ZERO, ..terms }, bytes)
        });
        let reach = match remote_call {
            Ok(mut remote_call) => {
                remote_call.set_timeout(inherited.timeout);
                CallState::Remote(Box::new(remote_call), Vec::new())
            }
            Err(error) => CallState::Failed(error),
        };
        self.call_of(reach, Some(observed))
    }

    /// Calls `begin` for each known instance at once, and for those discovered within a second afterwards. Also returns
    /// the processes that could not be reached, with the reason.
    async fn each_instance<StartedCalls>(
        &self,
        to: &Destination,
        inherited: &InheritedTerms,
        mut begin: impl FnMut((u32, u64)) -> StartedCalls,
    ) -> (Vec<(InstanceAddress, StartedCalls)>, Vec<(u32, CallError)>) {
        let (Destination { routes, key, table }, mut seen, mut begun) = (to, Vec::new(), Vec::new());
        for waits in [false, true] {
            if waits {
                until(routes, key, inherited.left(SETTLE_MAX), || routes.is_settled(key)).await;
            }
            for (instance, stands_for) in table.open_instances() {
                // The instance has gone meanwhile.
                let Some(process_id) = routes.process_of(instance).filter(|_| !seen.contains(&instance)) else {
                    continue;
                };
                seen.push(instance);
                if stands_for.is_empty() {
                    begun.push((InstanceAddress::Process(process_id), begin((instance, 0))));
                }
                for elsewhere in &*stands_for {
                    begun.push((InstanceAddress::Elsewhere(elsewhere.clone()), begin((instance, elsewhere.identity))));
                }
            }
        }
        let without = routes.without_table(key).into_iter();
        let without =
            without.map(|(process_id, busy)| (process_id, busy.unwrap_or_else(|| self.not_taken(process_id))));
        (begun, without.collect())
    }

    fn no_instance_error(&self) -> CallError {
        let no_route = || CallError::no_route(self.route());
        self.shared.remote_routes.as_ref().map_or_else(no_route, |routes| routes.no_instance_error(&self.shared.key))
    }

    fn not_taken(&self, process_id: u32) -> CallError {
        let (route, after) = (self.route().to_owned(), self.shared.options.call.timeout.unwrap_or(SETTLE_MAX));
        CallError::TimedOut { route, after: after.min(SETTLE_MAX), begun: false, not_taken_by: vec![process_id] }
    }

    /// Queries every instance in other processes and behind relays, without its handler: liveness, identity or
    /// statistics. The answer is JSON, empty for a ping. Waits as [`Caller::broadcast`] does.
    ///
    /// # Errors
    /// As for [`Caller::broadcast`].
    pub fn query_instances(&self, query: InstanceQuery) -> Result<Vec<Result<String, CallError>>, CallError> {
        let routes = self.shared.remote_routes.as_ref().ok_or_else(|| self.no_instance_error())?;
        let options = &self.intercepted(&self.shared.options.call)?;
        let inherited = InheritedTerms::of(options);
        let to = self.destination(routes, options, &inherited)?;
        let (sent_ns, deadline_ns) = (inherited.sent_ns, inherited.deadline_ns);
        let header = RequestHeader { kind: query as u8, sent_ns, deadline_ns, ..RequestHeader::default() };
        let ask = |(instance, identity)| {
            let header = RequestHeader { instance: identity, ..header };
            let offer = RemoteOffer { header, target: instance, ..RemoteOffer::default() };
            let (timeout, wait_for_route) = (inherited.timeout, Duration::ZERO);
            let terms = Terms { offer, retry: Retry::Never, affinity: None, timeout, wait_for_route };
            RemoteCall::start(to, terms, (&[], &[]))
        };
        let (asked, without) = block_on(self.each_instance(to, &inherited, ask));
        if asked.is_empty() && without.is_empty() {
            return Err(self.no_instance_error());
        }
        let mut said = Vec::new();
        let mut answer = |remote_call: Result<RemoteCall, CallError>| {
            remote_call?.wait(self.shared.options.waiting, &mut said)?;
            Ok(String::from_utf8_lossy(&said).into_owned())
        };
        let said = asked.into_iter().map(|(_, remote_call)| answer(remote_call)).collect::<Vec<_>>();
        Ok(said.into_iter().chain(without.into_iter().map(|(_, error)| Err(error))).collect())
    }
}
