//! Queries of one instance of a route, and the request to drain it.

use super::Caller;
use super::InheritedTerms;
use crate::caller::call::{Call, CallState};
use crate::caller::remote_call::{RemoteCall, Terms};
use crate::caller::table::RemoteOffer;
use crate::options::{CallOptions, Retry};
use crate::outcome::CallError;
use crate::protocol::request_flags::InstanceQuery;
use gapless_log::call_table::RequestHeader;
use std::time::Duration;

impl Caller<Vec<u8>, Vec<u8>> {
    /// Queries the instance in one other process, without its handler and ahead of queued calls. The answer is JSON, or
    /// empty for a ping. A fully busy instance answers when a worker is free. Never blocks: `None` if that process is
    /// not known to serve the route, is not connected yet, or takes no requests. After `timeout` the call ends as
    /// [`CallError::TimedOut`].
    ///
    /// # Errors
    /// The domain is closed or cannot be watched, or the process has no memory or number left for the route.
    pub fn query_instance(
        &self,
        process_id: u32,
        query: InstanceQuery,
        timeout: Duration,
    ) -> Result<Option<Call<Vec<u8>>>, CallError> {
        self.shared.check_process()?;
        let Some(routes) = &self.shared.remote_routes else { return Ok(None) };
        let to = match self.shared.destination.get() {
            Some(to) => to,
            None => {
                routes.discover(&self.shared.key.route)?;
                if !routes.knows_instance(&self.shared.key.route) {
                    return Ok(None);
                }
                self.set_destination(routes, routes.table(&self.shared.key)?)
            }
        };
        let is_meant = |instance: &u32| routes.process_of(*instance) == Some(process_id);
        let Some(instance) = to.table.open_numbers().into_iter().find(is_meant) else { return Ok(None) };
        let inherited = InheritedTerms::of(&CallOptions { timeout: Some(timeout), ..CallOptions::default() });
        let (sent_ns, deadline_ns) = (inherited.sent_ns, inherited.deadline_ns);
        let header = RequestHeader { kind: query as u8, sent_ns, deadline_ns, ..RequestHeader::default() };
        let offer = RemoteOffer { header, target: instance, ..RemoteOffer::default() };
        let (timeout, wait_for_route) = (inherited.timeout, Duration::ZERO);
        let terms = Terms { offer, retry: Retry::Never, affinity: None, timeout, wait_for_route };
        let remote_call = RemoteCall::start(to, terms, (&[], &[]))?;
        Ok(Some(self.call_of(CallState::Remote(Box::new(remote_call), Vec::new()), None)))
    }
}
