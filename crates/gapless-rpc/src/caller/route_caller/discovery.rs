//! `RouteDiscovery`: a call whose caller has no destination yet.

use super::InheritedTerms;
use super::{Caller, KEYED_SETTLE_MAX, RelayedBytes};
use crate::caller::call::{CallState, NewCall};
use crate::caller::discovering_call::{CallFactory, DiscoveringCall};
use crate::caller::routes::{RemoteRoutes, SharedTable};
use crate::caller::table::CallEnd;
use crate::message::Message;
use crate::options::CallOptions;
use crate::outcome::CallError;
use gapless_agent::foreign::catch_panic;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

impl<Request: Message, Reply: Message> Caller<Request, Reply> {
    #[cold]
    pub(super) fn discover(
        &self,
        routes: &Arc<dyn RemoteRoutes>,
        request: Request,
        options: &CallOptions,
        span: Option<&Span>,
    ) -> NewCall<Reply> {
        routes.discover(self.route()).inspect_err(|error| self.count_tableless(routes, CallEnd::of(error)))?;
        let InheritedTerms { sent_ns, deadline_ns, timeout, trace } = InheritedTerms::of(options);
        let (caller, options, span) = (self.clone(), CallOptions { trace, ..options.clone() }, span.cloned());
        let settle_max_ns = saturating_ns(self.shared.settle_max);
        let until_ns = sent_ns.saturating_add(settle_max_ns);
        let until_ns = if deadline_ns == 0 { until_ns } else { until_ns.min(deadline_ns) };
        let keyed_max_ns = KEYED_SETTLE_MAX.as_nanos() as u64;
        let all_until_ns = self.waits_for_all(&options).then(|| sent_ns.saturating_add(keyed_max_ns).min(until_ns));
        // An unknown target may be any process that has not answered yet.
        let is_for_one = RelayedBytes::of(&request).is_some_and(|relayed| relayed.instance.is_some());
        let all_until_ns = if is_for_one { Some(until_ns) } else { all_until_ns };
        let (request, table, own) = (Some(request), None, Arc::clone(routes));
        let discovery =
            RouteDiscovery { all_until_ns, caller, routes: own, table, request, options, deadline_ns, timeout, span };
        let mut discovering =
            DiscoveringCall::begin((routes.news(), &self.shared.key.route), discovery, until_ns, all_until_ns);
        discovering.poll_call(None).unwrap_or(Ok(CallState::Discovering(discovering)))
    }
}

struct RouteDiscovery<Request, Reply> {
    caller: Caller<Request, Reply>,
    routes: Arc<dyn RemoteRoutes>,
    table: Option<Arc<SharedTable>>,
    request: Option<Request>,
    options: CallOptions,
    deadline_ns: u64,
    timeout: Duration,
    /// End of the wait for all instances, for a call with a key; ns of the monotonic clock.
    all_until_ns: Option<u64>,
    span: Option<Span>,
}

impl<Request: Message, Reply: Message> RouteDiscovery<Request, Reply> {
    fn is_over(&self, now_ns: u64) -> bool {
        self.deadline_ns != 0 && now_ns >= self.deadline_ns
    }

    /// `None` while discovery must go on.
    fn discover(&mut self, is_late: bool) -> Option<Result<(), CallError>> {
        let (Self { caller, routes, .. }, now_ns) = (&*self, monotonic_ns());
        if self.is_over(now_ns) {
            return Some(Err(caller.timed_out(routes, self.timeout)));
        }
        let one_is_enough = self.all_until_ns.is_none_or(|until_ns| now_ns >= until_ns);
        if caller.shared.destination.get().is_some() && (one_is_enough || is_late) {
            if self.all_until_ns.is_some() {
                caller.has_waited_for_all();
            }
            return Some(Ok(()));
        }
        if self.table.is_none() {
            let is_known = one_is_enough && routes.knows_instance(caller.route());
            if !is_late && !is_known && !routes.is_discovered() {
                return None;
            }
            match caller.open_table(routes, self.options.wait_for_route.unwrap_or_default()) {
                Ok(table) => self.table = Some(table),
                Err(error) => return Some(Err(error)),
            }
        }
        let (Self { caller, routes, .. }, key) = (&*self, &self.caller.shared.key);
        let has_instance = one_is_enough && routes.has_instance(key);
        if !is_late && !has_instance && !routes.is_settled(key) {
            return None;
        }
        if self.all_until_ns.is_some() {
            caller.has_waited_for_all();
        }
        self.table.take().map(|table| {
            self.caller.set_destination(&self.routes, table);
            Ok(())
        })
    }
}

impl<Request: Message, Reply: Message> CallFactory<NewCall<Reply>> for RouteDiscovery<Request, Reply> {
    fn make(&mut self, is_late: bool) -> Option<NewCall<Reply>> {
        if let Err(error) = self.discover(is_late)? {
            self.caller.count_tableless(&self.routes, CallEnd::of(&error));
            self.span = None;
            return Some(Err(error));
        }
        // Takes the span too, so that it ends with the call and not later on this thread.
        let (request, span) = (self.request.take()?, self.span.take());
        let left_ns = self.deadline_ns.saturating_sub(monotonic_ns());
        let timeout = (self.deadline_ns != 0).then(|| Duration::from_nanos(left_ns));
        let options = CallOptions { timeout, ..self.options.clone() };
        // A panic of the encoder must not reach this foreign thread.
        let made =
            catch_panic(|| self.caller.make_of(request, &options, span.as_ref(), false)).unwrap_or_else(|reason| {
                let route = self.caller.route().to_owned();
                Err(CallError::bad_request_here(route, &reason))
            });
        Some(made.map(|reach| match reach {
            CallState::Remote(mut remote_call, reply) => {
                remote_call.set_timeout(self.timeout);
                CallState::Remote(remote_call, reply)
            }
            reach => reach,
        }))
    }

    fn give_up(&mut self) {
        let end = if self.is_over(monotonic_ns()) { CallEnd::TimedOut } else { CallEnd::Cancelled };
        self.caller.count_tableless(&self.routes, end);
    }
}
