//! The offer of a table to an instance, with types that both sides support.

use super::{AttachedTable, Attachment, KnownInstance, OfferRetry, RouteTables, TablesState};
use crate::caller::routes::{RouteKey, TypeKey};
use crate::message::Encoding;
use crate::outcome::CallError;
use crate::registry::{Attach, InstanceNumber, RouteDescription, RouteState, TypeDescription};
use gapless_agent::monotonic::monotonic_ns;
use std::sync::Arc;

const AGAIN_NS_MIN: u64 = 50_000_000;
const AGAIN_NS_MAX: u64 = 1_000_000_000;

impl RouteTables {
    pub(super) fn attach(&self, state: &mut TablesState, index: u64, number: InstanceNumber) {
        let TablesState { instances, attached, attachments, last_attachment, .. } = state;
        let Some(table) = attached.get_mut(&index) else { return };
        let Some(route) = instances.get(&number).and_then(|instance| instance.routes.get(&*table.key.route)) else {
            return;
        };
        let is_passed_over = table.key.is_relayed && !route.stands_for.is_empty();
        if table.instances.contains_key(&number) || route.state == RouteState::Draining || is_passed_over {
            return;
        }
        table.awaits_receiver = false;
        let (request, reply) = match agreed(&table.key, route) {
            Ok(agreed) => agreed,
            Err(mismatch) => {
                table.instances.insert(number, Attachment::Refused(mismatch));
                return;
            }
        };
        let reply_older = table.key.reply.place_of_older(reply.fingerprint).map_or(0, |place| place as u8 + 1);
        let shape = table.table.table().shape();
        let attach = Attach {
            attachment: *last_attachment + 1,
            instance_number: 0,
            request_region_bytes: shape.request_region_length() as u64,
            claim_region_bytes: shape.claim_region_length() as u64,
            route: table.key.route.to_string(),
            request,
            reply,
            reply_older,
        };
        *last_attachment += 1;
        let attachment = *last_attachment;
        table.table.expect_instance(number.0);
        attachments.insert(attachment, index);
        table.instances.insert(number, Attachment::Offered(attachment));
        // Before the instance can take a request.
        state.agree_on_version(index);
        let TablesState { attached, attachments, .. } = state;
        let Some(table) = attached.get_mut(&index) else { return };
        let sent = (|| {
            let call_table = table.table.table();
            let requests = Arc::new(call_table.request_region().read_only_fd().ok()?);
            let claims = Arc::new(call_table.claim_region().fd().try_clone_to_owned().ok()?);
            let descriptors = [requests, claims, Arc::clone(&table.eventfd)];
            self.io()?.attach(number, attach, descriptors).ok()
        })();
        if sent.is_none() {
            attachments.remove(&attachment);
            let reason = "this process has no descriptors left for it".to_owned();
            let busy = CallError::Busy { route: table.key.route.to_string(), reason };
            state.postpone(index, number, busy);
            state.agree_on_version(index);
            self.io().iter().for_each(|io| io.wake());
        }
    }

    pub(super) fn attach_again(&self, now_ns: u64) {
        let mut state = self.lock();
        if state.again_ns.is_none_or(|again_ns| again_ns > now_ns) {
            return;
        }
        let mut due = Vec::new();
        for (index, table) in &state.attached {
            let is_due = |again: &OfferRetry| again.at_ns.is_some_and(|at_ns| at_ns <= now_ns);
            due.extend(table.again.iter().filter(|(_, again)| is_due(again)).map(|(number, _)| (*index, *number)));
        }
        for (index, number) in due {
            if let Some(table) = state.attached.get_mut(&index) {
                table.instances.remove(&number);
                table.again.entry(number).and_modify(|again| again.at_ns = None);
            }
            self.attach(&mut state, index, number);
        }
        state.again_ns =
            state.attached.values().flat_map(|table| table.again.values()).filter_map(|again| again.at_ns).min();
    }

    /// An error from `then` is the reason to offer the table again later.
    pub(super) fn with_table(
        &self,
        attachment: u64,
        number: InstanceNumber,
        then: impl FnOnce(&KnownInstance, &mut AttachedTable) -> Option<CallError>,
    ) {
        let mut state = self.lock();
        let TablesState { instances, attached, attachments, .. } = &mut *state;
        if let (Some(index), Some(instance)) = (attachments.remove(&attachment), instances.get(&number))
            && let Some(table) = attached.get_mut(&index)
        {
            if let Some(error) = then(instance, table) {
                state.postpone(index, number, error);
            }
            state.agree_on_version(index);
        }
        drop(state);
        self.notify_waiters();
    }
}

impl TablesState {
    pub(super) fn postpone(&mut self, index: u64, number: InstanceNumber, error: CallError) {
        let Some(table) = self.attached.get_mut(&index) else { return };
        table.instances.insert(number, Attachment::Refused(error));
        let again = table.again.entry(number).or_default();
        again.pause_ns = (again.pause_ns * 2).clamp(AGAIN_NS_MIN, AGAIN_NS_MAX);
        let at_ns = monotonic_ns() + again.pause_ns;
        again.at_ns = Some(at_ns);
        self.again_ns = Some(self.again_ns.map_or(at_ns, |again_ns| again_ns.min(at_ns)));
    }

    /// The newest version that every attached instance reads.
    pub(super) fn agree_on_version(&self, index: u64) {
        let Some(AttachedTable { key, table, instances, .. }) = self.attached.get(&index) else { return };
        let RouteKey { route, request, .. } = key;
        let age = |(number, attachment): (&InstanceNumber, &Attachment)| {
            let route = self.instances.get(number)?.routes.get(&**route)?;
            let reads = matches!(attachment, Attachment::Offered(_) | Attachment::Attached(_));
            request.place_of_older(route.request.fingerprint).filter(|_| reads)
        };
        let oldest = instances.iter().filter_map(age).max();
        table.set_request_fingerprint(oldest.map_or(request.fingerprint, |age| request.older[age].fingerprint));
    }
}

fn agreed(key: &RouteKey, route: &RouteDescription) -> Result<(TypeDescription, TypeDescription), CallError> {
    // A JSON request gets a JSON reply, whatever the instance's types.
    let asks_json = key.request.encoding == Encoding::Json;
    let agreed_type = |own: &TypeKey, other: &TypeDescription| {
        let fingerprint = match (own.fingerprint, other.fingerprint) {
            (0, _) => 0,
            (_, theirs) if own.place_of_older(theirs).is_some() => theirs,
            // A newer instance may still read this program's version, and decides itself.
            (ours, _) => ours,
        };
        let is_same = own.encoding == other.encoding
            || own.encoding == Encoding::Bytes
            || other.encoding == Encoding::Bytes
            || asks_json;
        is_same.then(|| TypeDescription { fingerprint, ..own.description() })
    };
    let request = agreed_type(&key.request, &route.request);
    let reply = agreed_type(&key.reply, &route.reply);
    let is_request = request.is_none();
    request.zip(reply).ok_or_else(|| {
        let (what, own, other) = match is_request {
            true => ("request", &key.request, &route.request),
            false => ("reply", &key.reply, &route.reply),
        };
        CallError::Mismatch {
            route: key.route.to_string(),
            caller: format!("{} → {}", key.request.description(), key.reply.description()),
            instance: format!("{} → {}", route.request, route.reply),
            difference: format!(
                "the {what} is {:?} at the caller and {:?} at the instance",
                own.encoding, other.encoding
            ),
        }
    })
}
