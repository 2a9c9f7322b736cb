//! `ServedRoutes`: the serving half of a domain: the routes of this process, and the callers whose tables are attached.

use crate::context::{CallerAddress, CallerIdentity, CallerWithDomain, DomainHandle};
use crate::message::described::TypeKey;
use crate::registry::{
    Attach, AttachAnswer, AttachMemory, AttachRefusal, AttachRefusalReason, CallerNumber, PeerProcess, RouteState,
    ServingSide, TypeDescription,
};
use crate::server::puller::{AttachedCaller, ServedCallers};
use gapless_log::call_table::InstanceSide;
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

pub(crate) trait RouteStates: Send + Sync {
    /// Runs on the I/O thread.
    fn change(&self, to: RouteState);
}

pub(crate) struct ServedRemote {
    pub(crate) served: Arc<ServedCallers>,
    pub(crate) states: Arc<dyn RouteStates>,
    pub(crate) request: TypeKey,
    pub(crate) reply: TypeKey,
    pub(crate) reply_version: fn(u64) -> Option<u32>,
    pub(crate) bell: Arc<OwnedFd>,
    pub(crate) eventfd: Arc<OwnedFd>,
}

#[derive(Default)]
pub(crate) struct ServedRoutes {
    domain: OnceLock<DomainHandle>,
    state: Mutex<AttachmentState>,
}

#[derive(Default)]
struct AttachmentState {
    routes: HashMap<String, Arc<ServedRemote>>,
    attachments: HashMap<(CallerNumber, u64), Arc<ServedRemote>>,
    callers: HashMap<CallerNumber, Arc<PeerProcess>>,
}

impl ServedRoutes {
    fn lock(&self) -> MutexGuard<'_, AttachmentState> {
        self.state.lock().expect("nobody panics with the lock")
    }

    pub(crate) fn set_domain(&self, domain: DomainHandle) {
        let _ = self.domain.set(domain);
    }

    fn domain(&self) -> DomainHandle {
        self.domain.get().map_or_else(|| Weak::<()>::new() as DomainHandle, Weak::clone)
    }

    pub(crate) fn has_caller(&self, address: &CallerAddress) -> bool {
        self.lock().callers.values().any(|process| address.is_of(process))
    }

    pub(crate) fn insert(&self, route: &str, served: Arc<ServedRemote>) -> bool {
        let mut state = self.lock();
        if state.routes.contains_key(route) {
            return false;
        }
        state.routes.insert(route.to_owned(), served);
        true
    }

    pub(crate) fn remove(&self, route: &str) {
        let mut state = self.lock();
        if let Some(removed) = state.routes.remove(route) {
            state.attachments.retain(|_, served| !Arc::ptr_eq(served, &removed));
        }
    }
}

fn attachment_number(caller: CallerNumber, attachment: u64) -> u64 {
    caller.0 << 32 | attachment & 0xffff_ffff
}

impl ServingSide for ServedRoutes {
    fn attach(
        &self,
        caller: CallerNumber,
        process: &Arc<PeerProcess>,
        attach: Attach,
        memory: AttachMemory,
    ) -> Result<AttachAnswer, AttachRefusal> {
        let served = self.lock().routes.get(&attach.route).map(Arc::clone);
        let served = served.ok_or_else(|| {
            AttachRefusal::new(AttachRefusalReason::NoRoute, format!("{} is not served here", attach.route))
        })?;
        let reply_version = (served.reply_version)(attach.reply.fingerprint).filter(|_| types_match(&served, &attach));
        let mismatch = || AttachRefusal::mismatch(TypeKey::shapes(&served.request, &served.reply));
        let reply_version = reply_version.ok_or_else(mismatch)?;
        let table = open(&attach, memory).map_err(|text| AttachRefusal::new(AttachRefusalReason::Memory, text))?;
        let identity = CallerIdentity {
            name: process.name.clone(),
            process_id: process.process_id,
            user_id: process.user_id,
            started_ns: process.started_ns,
        };
        self.lock().callers.insert(caller, Arc::clone(process));
        served.served.attach(AttachedCaller {
            attachment: attachment_number(caller, attach.attachment),
            table: Arc::new(table.0),
            eventfd: table.1,
            identity: Arc::new(CallerWithDomain { identity, domain: self.domain() }),
            reply_version,
            watchers: Arc::clone(served.served.watchers()),
            reply_older: attach.reply_older,
            types: Arc::new((attach.request, attach.reply)),
        });
        let answer = AttachAnswer { bell: Arc::clone(&served.bell), eventfd: Arc::clone(&served.eventfd) };
        self.lock().attachments.insert((caller, attach.attachment), served);
        Ok(answer)
    }

    fn detach(&self, caller: CallerNumber, attachment: u64) {
        let served = self.lock().attachments.remove(&(caller, attachment));
        if let Some(served) = served {
            served.served.detach(attachment_number(caller, attachment));
        }
    }

    fn change(&self, route: &str, to: RouteState) {
        let served = self.lock().routes.get(route).map(Arc::clone);
        // Without the lock: a drained route removes itself from the table.
        served.iter().for_each(|served| served.states.change(to));
    }

    fn caller_gone(&self, caller: CallerNumber) {
        let mut state = self.lock();
        state.callers.remove(&caller);
        let gone: Vec<_> = state.attachments.keys().filter(|(number, _)| *number == caller).copied().collect();
        let gone: Vec<_> = gone.into_iter().filter_map(|key| Some((key.1, state.attachments.remove(&key)?))).collect();
        drop(state);
        for (attachment, served) in gone {
            served.served.detach(attachment_number(caller, attachment));
        }
    }
}

/// Equal fingerprints, an older version of ours, or nothing to compare.
fn types_match(served: &ServedRemote, attach: &Attach) -> bool {
    let types_match = |own: &TypeKey, other: &TypeDescription| {
        own.fingerprint == 0
            || other.fingerprint == 0
            || own.fingerprint == other.fingerprint
            || own.place_of_older(other.fingerprint).is_some()
    };
    types_match(&served.request, &attach.request) && types_match(&served.reply, &attach.reply)
}

/// The size follows from the length of the request region.
fn open(attach: &Attach, memory: AttachMemory) -> Result<(InstanceSide, OwnedFd), String> {
    let AttachMemory { request_region, claim_region, completion } = memory;
    let bytes = (attach.request_region_bytes, attach.claim_region_bytes);
    gapless_agent::wake_fd::check(&completion)?;
    let table = InstanceSide::open((request_region, claim_region), bytes, attach.instance_number);
    Ok((table.map_err(|error| error.to_string())?, completion))
}
