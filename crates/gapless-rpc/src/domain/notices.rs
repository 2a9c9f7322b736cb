//! Notices: one-way requests to a route named by the receiver's process id, time of joining and notice type, so neither
//! another process nor a later one with the same id can get them.

use super::opening::Domain;
use super::route_builder::RouteBuilder;
use super::served_route::ServedRoute;
use crate::caller::routes::RemoteRoutes as _;
use crate::caller::{CallerOptions, Reach};
use crate::context::{CallContext, CallerAddress};
use crate::error::RpcError;
use crate::message::Message;
use crate::notice_route;
use crate::options::CallOptions;
use crate::outcome::CallError;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_trace::InheritedContext;
use std::sync::Arc;
use std::time::Duration;

const QUEUE_MAX: usize = 1024;

impl Domain {
    /// Receives notices of a type until the result is dropped. `receive` runs for one notice at a time; those of one
    /// sender come in order. Register before the first call to also get the notices that it causes. This serves a route
    /// as [`Domain::serve`] does, so a process that enters the domain only by its group cannot.
    ///
    /// ```
    /// # mod gapless { pub use gapless_rpc as rpc; }
    /// use gapless::rpc::{CallContext, CallerAddress, Domain};
    /// use std::sync::mpsc;
    ///
    /// let domain = Domain::in_process("shop");
    /// let (keep, kept) = mpsc::channel::<CallerAddress>();
    /// let _orders = domain.serve("orders").handle(move |number: u64, context: &CallContext| {
    ///     keep.send(context.caller_address()).map_err(|error| error.to_string())?;
    ///     Ok(number)
    /// })?;
    /// // The caller, here or in another process, receives notices.
    /// let (tell, told) = mpsc::channel();
    /// let notices = domain.notices(move |shipped: String, _context| drop(tell.send(shipped)))?;
    /// domain.caller::<u64, u64>("orders")?.call(7)?;
    /// // Whenever there is something to be told:
    /// domain.notify(&kept.recv()?, "order 7 is on its way".to_owned())?;
    /// assert_eq!(told.recv()?, "order 7 is on its way");
    /// assert_eq!(notices.statistics().begun, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// This process receives notices of that type already; otherwise as [`RouteBuilder::handle`].
    pub fn notices<Notice: Message>(
        &self,
        receive: impl Fn(Notice, &CallContext) + Send + Sync + 'static,
    ) -> Result<ServedRoute, RpcError> {
        let route = route_of::<Notice>(&self.address());
        RouteBuilder::new(Arc::clone(&self.shared), &route).hidden().queue_max(QUEUE_MAX).handle(
            move |notice: Notice, context| {
                receive(notice, context);
                Ok(())
            },
        )
    }

    /// Sends a notice to a process that has made a call ([`CallContext::caller_address`]). Never blocks: notices for a
    /// process that has not answered yet wait in its table. The outcome is not reported. Within a process the value
    /// moves, without encoding.
    ///
    /// # Errors
    /// [`CallError::NoRoute`]: that process has gone, or receives no such notices; [`CallError::Busy`]: its queue is
    /// full (`DomainOptions::slots`, 1,024 within a process); [`CallError::Mismatch`]: the receiver has another type
    /// under that name; [`CallError::BadMessage`]; [`CallError::Unavailable`].
    pub fn notify<Notice: Message>(&self, to: &CallerAddress, notice: Notice) -> Result<(), CallError> {
        self.notify_until(to, notice, Duration::ZERO, 0)
    }

    /// Like [`Domain::notify`], but blocks this thread up to `timeout` for the process's first answer and for room; not
    /// within a process.
    ///
    /// # Errors
    /// Like [`Domain::notify`]; [`CallError::Busy`] also if that process does not answer.
    pub fn notify_within<Notice: Message>(
        &self,
        to: &CallerAddress,
        notice: Notice,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let timeout_ns = saturating_ns(timeout);
        self.notify_until(to, notice, timeout, monotonic_ns().saturating_add(timeout_ns))
    }

    fn notify_until<Notice: Message>(
        &self,
        to: &CallerAddress,
        notice: Notice,
        contact: Duration,
        until_ns: u64,
    ) -> Result<(), CallError> {
        self.shared.check_process().map_err(|_| CallError::Closed)?;
        let route = route_of::<Notice>(to);
        let busy = |reason: String| CallError::Busy { route: route.clone(), reason };
        let reach = if *to == self.address() { Reach::ThisProcess } else { Reach::OtherProcesses };
        let machine = self.shared.machine.as_ref().filter(|_| reach == Reach::OtherProcesses);
        if let Some(machine) = machine {
            machine.calling.discover(&route)?;
            let is_there = || machine.serving.has_caller(to);
            machine.calling.check_receiver(to, &route, is_there, contact)?;
        }
        let options = CallerOptions { reach, ..CallerOptions::default() };
        let caller = self.shared.caller::<Notice, ()>(&route, options).map_err(|error| busy(error.to_string()))?;
        let caller = if machine.is_some() { caller.before_its_instance() } else { caller };
        // The deadline of the call being handled does not apply.
        let current = InheritedContext { deadline_ns: 0, ..InheritedContext::get() };
        // Makes the table even before the process has announced its receiver.
        let wait_for_route = machine.map(|_| Duration::from_nanos(1));
        let options = CallOptions { timeout: None, wait_for_route, ..CallOptions::default() };
        current.enter(|| caller.send_until(notice, &options, until_ns))
    }

    fn address(&self) -> CallerAddress {
        CallerAddress { process_id: std::process::id(), started_ns: self.shared.started_ns, notices: 0 }
    }
}

impl CallContext {
    /// Like [`Domain::notify`] to the caller, but needs no `Domain`, which would keep the domain open.
    ///
    /// # Errors
    /// Like [`Domain::notify`]; [`CallError::Closed`] if this process has left the domain.
    pub fn notify<Notice: Message>(&self, notice: Notice) -> Result<(), CallError> {
        let shared = self.caller.domain.upgrade().and_then(|domain| domain.downcast().ok());
        Domain { shared: shared.ok_or(CallError::Closed)? }.notify(&self.caller_address(), notice)
    }
}

fn route_of<Notice: Message>(receiver: &CallerAddress) -> String {
    notice_route::of(receiver.process_id, receiver.started_ns, Notice::TYPE_NAME)
}
