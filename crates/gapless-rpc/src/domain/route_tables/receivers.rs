//! Receivers of notices: waiting for them, and removing their tables.

use super::{AttachedTable, Attachment, RouteTables, TablesState};
use crate::context::CallerAddress;
use crate::notice_route;
use crate::outcome::CallError;
use std::time::{Duration, Instant};

const CHECK_INTERVAL: Duration = Duration::from_millis(10);

impl RouteTables {
    /// Whether a process may receive such notices: it is alive (`is_there`) and has not yet announced all that it
    /// served when this call began. Waits up to `timeout`.
    pub(crate) fn check_receiver(
        &self,
        address: &CallerAddress,
        route: &str,
        is_there: impl Fn() -> bool,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.lock();
        loop {
            let left = until.map_or(CHECK_INTERVAL, |until| until.saturating_duration_since(Instant::now()));
            match state.receiver(address, route, &is_there) {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => {
                    // Notices queued for it will never be taken.
                    let of_route = state.attached.values_mut().filter(|attached| *attached.key.route == *route);
                    of_route.for_each(|attached| attached.awaits_receiver = false);
                    let gone = self.take_receivers_gone(&mut state);
                    drop(state);
                    drop(gone);
                    return Err(error);
                }
                None if timeout.is_zero() && address.notices != 0 => return Ok(()),
                None if left.is_zero() => {
                    let reason = "it has not told yet that it receives any".to_owned();
                    return Err(CallError::Busy { route: route.to_owned(), reason });
                }
                // Polled, because the end of a process that serves nothing is not reported here.
                None => {
                    state = self
                        .changed
                        .wait_timeout(state, left.min(CHECK_INTERVAL))
                        .expect("nobody panics with the lock")
                        .0
                }
            }
        }
    }

    /// Each process has notice routes of its own.
    pub(super) fn take_receivers_gone(&self, state: &mut TablesState) -> Vec<AttachedTable> {
        let is_gone = |attached: &AttachedTable| {
            let is_of_receiver = notice_route::is_one(&attached.key.route);
            is_of_receiver && attached.instances.is_empty() && !attached.awaits_receiver
        };
        let gone = state.attached.iter().filter(|(_, attached)| is_gone(attached));
        let gone: Vec<u64> = gone.map(|(index, _)| *index).collect();
        gone.into_iter().filter_map(|index| self.take_table(state, index)).collect()
    }
}

impl TablesState {
    /// `None` while it may receive and has not answered yet.
    fn receiver(
        &self,
        address: &CallerAddress,
        route: &str,
        is_there: impl Fn() -> bool,
    ) -> Option<Result<(), CallError>> {
        let no_route = || Some(Err(CallError::no_route(route)));
        let Some(instance) = self.instances.values().find(|instance| address.is_of(&instance.process)) else {
            let may_come =
                !self.is_discovered || self.is_unknown(address.process_id()) || address.notices != 0 && is_there();
            return if may_come { None } else { no_route() };
        };
        if !instance.routes.contains_key(route) {
            return if instance.notices >= address.notices.into() { no_route() } else { None };
        }
        let of_route = self.attached.values().filter(|attached| *attached.key.route == *route);
        let refusal =
            of_route.flat_map(|attached| attached.instances.values()).find_map(|attachment| match attachment {
                Attachment::Refused(error) => Some(error.clone()),
                Attachment::Offered(_) | Attachment::Attached(_) => None,
            });
        Some(refusal.map_or(Ok(()), Err))
    }

    pub(super) fn is_in_vain(&self, attached: &AttachedTable) -> bool {
        let has_instance = |attachment: &Attachment| !matches!(attachment, Attachment::Refused(_));
        let Some((process_id, _)) = notice_route::receiver(&attached.key.route) else { return false };
        // A table that is offered again after a temporary refusal may still be taken.
        let may_be_taken = !attached.again.is_empty() || attached.instances.values().any(has_instance);
        self.is_discovered && !may_be_taken && !self.is_unknown(process_id)
    }

    pub(super) fn is_unknown(&self, process_id: u32) -> bool {
        self.unknown_servers.process_ids().any(|unknown| unknown == process_id)
    }
}
